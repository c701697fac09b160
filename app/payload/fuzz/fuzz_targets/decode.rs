//! Any bytes, detected: they must end in a document.
#![no_main]

use dlo_payload::{Input, NoSchemas, Settings, decode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let decoded = decode(&Input::value(bytes), &Settings::default(), &NoSchemas);
    assert!(
        !decoded
            .report()
            .iter()
            .any(|line| line.contains("failed inside"))
    );
    let _ = decoded.to_json().to_string();
});
