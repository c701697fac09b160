//! `dlo list`.

use dlo_core::{Certainty, Figure, Millis, Result};
use dlo_engine::{Ask, News, event::Listed};

use super::json;
use crate::{args::List, client::Client, exit, out::Out};

pub async fn run(client: &mut Client, args: List) -> Result<u8> {
    let connected = client.connect_at(&args.at).await?;
    let ask = Ask::List {
        connection: connected.connection,
    };
    let pick = |news| {
        if let News::Destinations { list, .. } = news {
            Some(list)
        } else {
            None
        }
    };
    let list = client.ask_for(ask, pick).await?;
    let wanted = list
        .iter()
        .filter(|listed| !args.dead || listed.destination.holds_dead_letters());
    let mut out = Out::new(args.format.json);
    if out.json {
        wanted.for_each(|listed| out.object(&json::listed(listed)));
    } else {
        let rows: Vec<_> = wanted.map(row).collect();
        out.table(
            &[
                "",
                "DESTINATION",
                "KIND",
                "DEPTH",
                "OLDEST",
                "EXPIRES",
                "OWNER",
                "LOOKING COSTS",
            ],
            &rows,
        );
    }
    out.flush();
    Ok(exit::DONE)
}

fn row(listed: &Listed) -> Vec<String> {
    let destination = &listed.destination;
    let dead = destination.holds_dead_letters();
    vec![
        if dead {
            "†".to_owned()
        } else {
            String::new()
        },
        destination.address.name.clone(),
        destination.label.clone(),
        figure(destination.depth, |depth| depth.to_string()),
        figure(destination.oldest, |time| age(Millis::now().since(time))),
        figure(destination.expires, |time| {
            format!("in {}", age(time.since(Millis::now())))
        }),
        listed.notes.owner.clone().unwrap_or_else(|| {
            if dead {
                "no owner".to_owned()
            } else {
                String::new()
            }
        }),
        destination.look.line.clone(),
    ]
}

/// A figure with a sign for how sure it is.
fn figure<T: Copy>(figure: Figure<T>, show: impl Fn(T) -> String) -> String {
    let sign = match figure.certainty {
        Certainty::Exact => "",
        Certainty::About => "≈",
        Certainty::AtLeast => "≥",
        Certainty::AtMost => "≤",
        Certainty::Unknown => "?",
    };
    figure
        .value
        .map_or(sign.to_owned(), |value| format!("{sign}{}", show(value)))
}

/// Milliseconds as a person says them.
fn age(millis: i64) -> String {
    match millis / 1000 {
        seconds @ ..120 => format!("{} s", seconds.max(0)),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}
