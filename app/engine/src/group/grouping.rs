//! Groups that grow as messages arrive.

use std::collections::HashMap;

use super::{Hint, Rules, fingerprint};
use crate::dead_letter::Death;

/// One failure group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its number, counted from 0 in the order of appearance.
    pub id: u32,
    /// The same in every session for the same failure.
    pub key: String,
    /// For example `NullPointerException  OrderHandler.price`. As long as all members say the same it is in their own words, after
    /// that with `#` and `<id>` for what differs.
    pub label: String,
    pub hint: Option<Hint>,
    pub count: u64,
}

/// Puts dead letters into groups one by one.
#[derive(Debug, Default)]
pub struct Grouping {
    rules: Rules,
    groups: Vec<Group>,
    by_key: HashMap<String, u32>,
}

impl Grouping {
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            ..Self::default()
        }
    }

    /// The number of the group that a dead letter belongs to; `None` is a message without marks.
    pub fn add(&mut self, death: Option<&Death>) -> u32 {
        let print = fingerprint(death);
        if let Some(id) = self.by_key.get(&print.key) {
            if let Some(group) = self.groups.get_mut(*id as usize) {
                group.count += 1;
                if group.label != print.label && group.label != print.general {
                    group.label = print.general;
                }
            }
            return *id;
        }
        let id = u32::try_from(self.groups.len()).unwrap_or(u32::MAX);
        self.by_key.insert(print.key.clone(), id);
        self.groups.push(Group {
            id,
            key: print.key,
            label: print.label,
            hint: death.and_then(|death| self.rules.hint(death)).cloned(),
            count: 1,
        });
        id
    }

    /// All groups in the order of appearance.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The group with that number.
    pub fn get(&self, id: u32) -> Option<&Group> {
        self.groups.get(id as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::{dead_letter::Confidence, group::Class};

    fn death(class: &str, message: &str, stack: Option<&str>, queue: &str) -> Death {
        let mut death = Death::new("test", Confidence::Sure);
        death.reason.class = Some(class.to_owned());
        death.reason.message = Some(message.to_owned()).filter(|message| !message.is_empty());
        death.reason.stack = stack.map(str::to_owned);
        death.origin.queue = Some(queue.to_owned());
        death
    }

    fn stack(line: u32) -> String {
        format!(
            "java.lang.NullPointerException: price of {line}\n\tat java.base/java.util.Objects.requireNonNull(Objects.java:1)\n\tat shop.OrderHandler.price(OrderHandler.java:{line})\n{}",
            "\tat org.springframework.Some.method(Some.java:1)\n".repeat(80)
        )
    }

    #[test]
    fn the_story_has_three_groups() {
        let mut grouping = Grouping::default();
        for number in 0..10 {
            let text = stack(number);
            grouping.add(Some(&death(
                "java.lang.NullPointerException",
                &format!("price of {number}"),
                Some(&text),
                "orders",
            )));
            grouping.add(Some(&death(
                "TimeoutException",
                "timeout: db-3",
                None,
                "orders",
            )));
            grouping.add(Some(&death(
                "SchemaError",
                &format!("schema orders v7, row {number}: field \"currency\" missing"),
                None,
                "orders",
            )));
        }
        let seen: Vec<_> = grouping
            .groups()
            .iter()
            .map(|group| {
                (
                    group.label.as_str(),
                    group.count,
                    group.hint.as_ref().map(|hint| hint.class),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                (
                    "NullPointerException  OrderHandler.price",
                    10,
                    Some(Class::Bug)
                ),
                (
                    "TimeoutException: timeout: db-3",
                    10,
                    Some(Class::Transient)
                ),
                (
                    "SchemaError: schema orders v#, row #: field \"currency\" missing",
                    10,
                    Some(Class::Contract)
                ),
            ]
        );
    }

    #[test]
    fn reasons_without_text_are_told_apart_by_their_origin() {
        let mut grouping = Grouping::default();
        assert_eq!(grouping.add(Some(&death("rejected", "", None, "a"))), 0);
        assert_eq!(grouping.add(Some(&death("rejected", "", None, "b"))), 1);
        assert_eq!(grouping.add(Some(&death("rejected", "", None, "a"))), 0);
        assert_eq!(grouping.add(None), 2);
        assert_eq!(
            grouping.get(1).map(|group| group.label.as_str()),
            Some("rejected, from b")
        );
        assert_eq!(
            grouping.get(2).map(|group| group.label.as_str()),
            Some("no failure recorded")
        );
    }

    /// Run with `--release -- --ignored --nocapture`.
    #[test]
    #[ignore = "prints a rate, proves nothing"]
    fn grouping_speed() {
        let deaths: Vec<Death> = (0..100_000)
            .map(|number| {
                let text = stack(number % 50);
                death(
                    "java.lang.NullPointerException",
                    &format!("price of {number}"),
                    (number % 2 == 0).then_some(&text),
                    "orders",
                )
            })
            .collect();
        let start = Instant::now();
        let mut grouping = Grouping::default();
        for death in &deaths {
            grouping.add(Some(death));
        }
        println!(
            "{} deaths in {:?}, {} groups",
            deaths.len(),
            start.elapsed(),
            grouping.groups().len()
        );
    }
}
