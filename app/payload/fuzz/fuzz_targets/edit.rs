//! Any bytes, decoded, encoded unedited and with an edit: unedited bytes stay, an edit never panics.
#![no_main]

use dlo_payload::{Document, Input, NoSchemas, Settings, decode, edit};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let decoded = decode(&Input::value(bytes), &Settings::default(), &NoSchemas);
    let same = edit::encode(&decoded, &decoded.document).expect("an unedited payload");
    assert_eq!(same.bytes, bytes);
    let _ = edit::encode(&decoded, &Document::List(vec![decoded.document.clone()]));
    let _ = edit::encode_text(&decoded, &edit::to_text(&decoded));
});
