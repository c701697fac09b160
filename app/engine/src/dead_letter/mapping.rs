//! A person's own header names. Many applications write marks that no framework knows; a profile says which header fills
//! which field.

use std::collections::BTreeMap;

use dlo_core::Value;
use serde::{Deserialize, Serialize};

use super::{
    Confidence, Death,
    field::{Field, fill},
    marks::Marks,
};

/// Header name → field, for example `x-error` → `reason.message`; `[death_headers]` in a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mapping(pub BTreeMap<String, String>);

impl Mapping {
    /// What is wrong with it: fields that do not exist, each as a sentence.
    pub fn problems(&self) -> Vec<String> {
        let known: Vec<&str> = Field::ALL.into_iter().map(Field::path).collect();
        let wrong = self
            .0
            .iter()
            .filter(|(_, path)| Field::from_path(path).is_none());
        wrong
            .map(|(header, path)| {
                format!(
                    "{header} is mapped to {path}, which is no field; use one of {}.",
                    known.join(", ")
                )
            })
            .collect()
    }
}

/// The death that the mapped headers tell; `None` when the message has none of them.
pub(super) fn read(marks: &Marks<'_>, mapping: &Mapping) -> Option<Death> {
    let mut death = Death::new("own mapping", Confidence::Sure);
    for (header, path) in &mapping.0 {
        let value: Option<&Value> = marks.last(header);
        if let (Some(field), Some(value)) = (Field::from_path(path), value) {
            fill(&mut death, field, value, header);
        }
    }
    (!death.from.is_empty()).then_some(death)
}
