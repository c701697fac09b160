//! Puts together the WHERE part of a query from what a person has chosen.
//!
//! Values always go in as parameters, never as text of the statement.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value};

/// Conditions that must all hold.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    clauses: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// `column` has this value, if there is one.
    pub(super) fn equal(self, column: &str, value: Option<impl ToSql>) -> Self {
        self.compare(&format!("{column} ="), value)
    }

    /// `column` has one of these values; without any, it may have any.
    pub(super) fn one_of(mut self, column: &str, values: &[impl ToSql]) -> Self {
        let values: Vec<Value> = values.iter().filter_map(owned).collect();
        if values.is_empty() {
            return self;
        }
        let mut numbers = Vec::with_capacity(values.len());
        for value in values {
            self.values.push(value);
            numbers.push(format!("?{}", self.values.len()));
        }
        self.clauses
            .push(format!("{column} IN ({})", numbers.join(", ")));
        self
    }

    /// The comparison, for example `time >=`, holds with this value, if there is one.
    pub(super) fn compare(mut self, comparison: &str, value: Option<impl ToSql>) -> Self {
        if let Some(value) = value.as_ref().and_then(owned) {
            self.values.push(value);
            self.clauses
                .push(format!("{comparison} ?{}", self.values.len()));
        }
        self
    }

    /// One of two columns has this value, if there is one.
    pub(super) fn either(mut self, [first, second]: [&str; 2], value: Option<String>) -> Self {
        if let Some(value) = value {
            self.values.push(Value::Text(value));
            let number = self.values.len();
            self.clauses
                .push(format!("({first} = ?{number} OR {second} = ?{number})"));
        }
        self
    }

    /// `open` is followed by this value and a closing parenthesis, if there is one.
    pub(super) fn within(mut self, open: &str, value: Option<i64>) -> Self {
        if let Some(value) = value {
            self.values.push(Value::Integer(value));
            self.clauses.push(format!("{open} ?{})", self.values.len()));
        }
        self
    }

    /// One of the columns has this text in it, whatever the case of ASCII letters.
    pub(super) fn contains(mut self, columns: &[&str], text: Option<&str>) -> Self {
        if let Some(text) = text {
            self.values.push(Value::Text(like(text)));
            let number = self.values.len();
            let any: Vec<String> = columns
                .iter()
                .map(|column| format!("{column} LIKE ?{number} ESCAPE '\\'"))
                .collect();
            self.clauses.push(format!("({})", any.join(" OR ")));
        }
        self
    }

    /// A condition without a value.
    pub(super) fn and(mut self, clause: &str) -> Self {
        self.clauses.push(clause.to_owned());
        self
    }

    /// `WHERE …`, or nothing.
    pub(super) fn clause(&self) -> String {
        match self.clauses.is_empty() {
            true => String::new(),
            false => format!("WHERE {}", self.clauses.join(" AND ")),
        }
    }

    /// The values of the clause, in order.
    pub(super) fn values(&self) -> impl rusqlite::Params + '_ {
        rusqlite::params_from_iter(&self.values)
    }
}

fn owned(value: &impl ToSql) -> Option<Value> {
    match value.to_sql().ok()? {
        ToSqlOutput::Borrowed(value) => Value::try_from(value).ok(),
        ToSqlOutput::Owned(value) => Some(value),
        _ => None,
    }
}

fn like(text: &str) -> String {
    let mut pattern = String::from("%");
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_set_becomes_a_condition_and_numbers_match_values() {
        let conditions = Conditions::default()
            .equal("a", None::<i64>)
            .equal("b", Some("x"))
            .one_of("f", &[1, 2])
            .one_of("g", &[0i64; 0])
            .contains(&["c", "d"], Some("50%"))
            .and("e IS NULL");
        assert_eq!(
            conditions.clause(),
            "WHERE b = ?1 AND f IN (?2, ?3) AND (c LIKE ?4 ESCAPE '\\' OR d LIKE ?4 ESCAPE '\\') AND e IS NULL"
        );
        assert_eq!(conditions.values[3], Value::Text("%50\\%%".to_owned()));
        assert_eq!(Conditions::default().clause(), "");
    }
}
