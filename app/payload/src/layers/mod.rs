//! Transport layers: bytes in, bytes out, without meaning. Every unpacking spends from the budget,
//! so a bomb ends in a note.
//!
//! They are separate from the formats because any of them can lie around any format, in any order.

mod base64;
mod charset;
mod compression;

use crate::limits::Budget;
use crate::recipe::Step;
use crate::report::Refusal;

pub(crate) use base64::alphabet;
pub(crate) use charset::{Marked, byte_order_mark, guess_without_mark};
pub(crate) use compression::{by_magic, inflate_start};

/// Takes a transport layer off.
pub(crate) fn unpack(step: &Step, bytes: &[u8], budget: &mut Budget) -> Result<Vec<u8>, Refusal> {
    let unpacked = match step {
        Step::Base64 | Step::Base64Url => base64::decode(step, bytes),
        Step::Charset(name) => charset::decode(name, bytes),
        _ => compression::unpack(step, bytes, budget),
    }?;
    budget.take_bytes(unpacked.len())?;
    budget.time()?;
    Ok(unpacked)
}

/// Puts a transport layer back on.
pub(crate) fn pack(step: &Step, bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    match step {
        Step::Base64 | Step::Base64Url => Ok(base64::encode(step, bytes)),
        Step::Charset(name) => charset::encode(name, bytes),
        _ => compression::pack(step, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    fn budget() -> Budget {
        Budget::new(&Limits::default())
    }

    const COMPRESSIONS: [Step; 8] = [
        Step::Gzip,
        Step::Zlib,
        Step::Deflate,
        Step::Zstd,
        Step::Lz4,
        Step::Snappy,
        Step::SnappyFramed,
        Step::Brotli,
    ];

    #[test]
    fn every_layer_comes_back() {
        let text = "Grüße, {\"id\": 1}".repeat(50);
        let others = [
            Step::Base64,
            Step::Base64Url,
            Step::Charset("utf-16le"),
            Step::Charset("utf-16be"),
            Step::Charset("utf-32le"),
            Step::Charset("utf-32be"),
            Step::Charset("windows-1252"),
        ];
        for step in COMPRESSIONS.into_iter().chain(others) {
            let packed = pack(&step, text.as_bytes()).unwrap();
            assert_ne!(packed, text.as_bytes(), "{step}");
            assert_eq!(
                unpack(&step, &packed, &mut budget()).unwrap(),
                text.as_bytes(),
                "{step}"
            );
        }
    }

    #[test]
    fn bombs_stop_at_the_limit() {
        let zeros = vec![0u8; 3_000_000];
        for step in COMPRESSIONS {
            let bomb = pack(&step, &zeros).unwrap();
            let mut small = Budget::new(&Limits {
                bytes: 1_000_000,
                ..Limits::default()
            });
            let refusal = unpack(&step, &bomb, &mut small).unwrap_err();
            assert!(refusal.is_limit(), "{step}: {refusal}");
        }
    }

    #[test]
    fn what_is_cut_or_followed_by_rubbish_is_refused() {
        for step in COMPRESSIONS {
            let packed = pack(&step, "hello, hello, hello".repeat(40).as_bytes()).unwrap();
            assert!(
                unpack(&step, &packed[..packed.len() - 3], &mut budget()).is_err(),
                "{step} cut"
            );
            let longer = [packed.as_slice(), b"rubbish!"].concat();
            assert!(
                unpack(&step, &longer, &mut budget()).is_err(),
                "{step} followed by rubbish"
            );
        }
    }

    #[test]
    fn empty_bytes_are_no_compression() {
        for step in COMPRESSIONS {
            assert!(unpack(&step, b"", &mut budget()).is_err(), "{step}");
        }
    }
}
