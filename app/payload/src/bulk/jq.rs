//! jq programs, run by jaq. A document goes in as the JSON it is shown as and comes back the same
//! way, so bytes and decimals stay what they are unless the program changes them.

use std::cell::RefCell;

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Native, Vars, compile, data};
use jaq_json::{Val, read};

use crate::document::Document;
use crate::formats::json;

/// A program that was understood.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Program {
    text: String,
}

type Filter = compile::Filter<Native<data::JustLut<Val>>>;

thread_local! {
    /// The last program of this thread: the same one runs over thousands of messages, and a
    /// compiled one cannot go to another thread.
    static LAST: RefCell<Option<(String, Filter)>> = const { RefCell::new(None) };
}

impl Program {
    /// Reads a program. The error names what is not understood.
    pub fn parse(text: &str) -> Result<Self, String> {
        compile(text)?;
        Ok(Self {
            text: text.to_owned(),
        })
    }

    /// The program's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Runs the program, which must give exactly one value.
    pub(super) fn run(&self, document: &Document) -> Result<Document, String> {
        LAST.with_borrow_mut(|last| {
            let known = last.take().filter(|(text, _)| *text == self.text);
            let (_, filter) = last.insert(match known {
                Some(known) => known,
                None => (self.text.clone(), compile(&self.text)?),
            });
            run(filter, document)
        })
    }
}

fn compile(text: &str) -> Result<Filter, String> {
    let defs = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs());
    let funs = jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs());
    let arena = Arena::default();
    let modules = Loader::new(defs)
        .load(
            &arena,
            File {
                code: text,
                path: (),
            },
        )
        .map_err(|errors| format!("the jq program cannot be read: {}", places(text, &errors)))?;
    let wrong = |errors: compile::Errors<&str, ()>| {
        let names = errors
            .iter()
            .flat_map(|(_, errors)| errors)
            .map(|(name, undefined)| format!("the {} {name} is not known", undefined.as_str()));
        format!(
            "the jq program cannot be used: {}",
            names.collect::<Vec<_>>().join("; ")
        )
    };
    Compiler::default()
        .with_funs(funs)
        .compile(modules)
        .map_err(wrong)
}

/// Where a program is not understood: what stands there.
fn places(text: &str, errors: &jaq_core::load::Errors<&str, ()>) -> String {
    use jaq_core::load::Error;
    let at = |rest: &str| {
        let place = rest.as_ptr() as usize - text.as_ptr() as usize;
        match rest.chars().take(12).collect::<String>() {
            found if found.is_empty() || place > text.len() => "it ends too early".to_owned(),
            found => format!(
                "something else is expected at \"{found}\" (character {})",
                place + 1
            ),
        }
    };
    let all = errors.iter().flat_map(|(_, error)| match error {
        Error::Io(errors) => errors
            .iter()
            .map(|(path, error)| format!("{path}: {error}"))
            .collect::<Vec<_>>(),
        Error::Lex(errors) => errors.iter().map(|(_, rest)| at(rest)).collect(),
        Error::Parse(errors) => errors.iter().map(|(_, found)| at(found)).collect(),
    });
    all.collect::<Vec<_>>().join("; ")
}

fn run(filter: &Filter, document: &Document) -> Result<Document, String> {
    let input = read::parse_single(document.to_json().to_string().as_bytes())
        .map_err(|error| format!("the value cannot be given to jq: {error}"))?;
    let ctx = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut values = filter.id.run((ctx, input)).map(|value| {
        value.map_err(|stop| match stop.get_err() {
            Ok(error) => format!("jq: {error}"),
            Err(_) => "jq stopped without a value".to_owned(),
        })
    });
    let value = values.next().ok_or("jq gave no value for it")??;
    if values.next().is_some() {
        return Err("jq gave more than one value; put them in a list with [ ]".into());
    }
    let again = json::parse(&value.to_string())
        .map_err(|refusal| format!("what jq gave is no JSON: {refusal}"))?;
    Ok(Document::from_json(&again.to_json()))
}
