//! What the tests on real brokers share. The brokers themselves are started by the scripts beside this crate;
//! `tests/brokers/with` runs a test with the ones it needs.

pub mod engine;
pub mod kafka;
pub mod localstack;
pub mod rabbit;
pub mod sqs;
pub mod stub;

use anyhow::{Context, Result};

/// The address of a broker that was started for the tests.
///
/// # Errors
/// Says how to start it: a test whose broker is missing fails, it is never skipped in silence.
pub fn required(variable: &str) -> Result<String> {
    std::env::var(variable)
        .with_context(|| format!("{variable} is not set: the broker was not started; run tests/run, or tests/brokers/with BROKER -- COMMAND"))
}
