//! Compressions, each unpacked to its end and never beyond the budget.

use std::io::Read;

use flate2::Compression;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use crate::limits::Budget;
use crate::recipe::Step;
use crate::report::Refusal;

const BUFFER: usize = 32 * 1024;

/// The compression whose magic bytes these are. Raw deflate, raw snappy and brotli have none.
pub(crate) fn by_magic(bytes: &[u8]) -> Option<Step> {
    match bytes {
        [0x1f, 0x8b, 8, ..] => Some(Step::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Step::Zstd),
        [0x04, 0x22, 0x4d, 0x18, ..] => Some(Step::Lz4),
        [
            0xff,
            0x06,
            0x00,
            0x00,
            b's',
            b'N',
            b'a',
            b'P',
            b'p',
            b'Y',
            ..,
        ] => Some(Step::SnappyFramed),
        // RFC 1950: method 8, a window of at most 32 KB, and a check that makes it divisible by 31.
        [method, flags, ..]
            if method & 0x0f == 8
                && method >> 4 <= 7
                && u16::from_be_bytes([*method, *flags]).is_multiple_of(31) =>
        {
            Some(Step::Zlib)
        }
        _ => None,
    }
}

pub(super) fn unpack(step: &Step, bytes: &[u8], budget: &Budget) -> Result<Vec<u8>, Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::new("it is empty"));
    }
    match step {
        Step::Gzip => read(MultiGzDecoder::new(bytes), budget),
        Step::Zlib => {
            let mut decoder = ZlibDecoder::new(bytes);
            let unpacked = read(&mut decoder, budget)?;
            whole(decoder.total_in(), bytes, unpacked)
        }
        Step::Deflate => {
            let mut decoder = DeflateDecoder::new(bytes);
            let unpacked = read(&mut decoder, budget)?;
            whole(decoder.total_in(), bytes, unpacked)
        }
        Step::Zstd => read(zstd::Decoder::with_buffer(bytes).map_err(refuse)?, budget),
        Step::Lz4 => lz4(bytes, budget),
        Step::Snappy => snappy(bytes, budget),
        Step::SnappyFramed => read(snap::read::FrameDecoder::new(bytes), budget),
        Step::Brotli => {
            let mut rest = bytes;
            let unpacked = read(brotli::Decompressor::new(&mut rest, BUFFER), budget)?;
            brotli_end(bytes, unpacked, rest)
        }
        other => Err(Refusal::new(format!("{other} is no compression"))),
    }
}

/// Inflates what begins here and leaves what follows alone: some writers of Avro files leave a part
/// of zlib's checksum behind each block.
pub(crate) fn inflate_start(bytes: &[u8], budget: &mut Budget) -> Result<Vec<u8>, Refusal> {
    let unpacked = read(DeflateDecoder::new(bytes), budget)?;
    budget.take_bytes(unpacked.len())?;
    Ok(unpacked)
}

pub(super) fn pack(step: &Step, bytes: &[u8]) -> Result<Vec<u8>, Refusal> {
    let packed = match step {
        Step::Gzip => written(
            GzEncoder::new(Vec::new(), Compression::default()),
            bytes,
            GzEncoder::finish,
        ),
        Step::Zlib => written(
            ZlibEncoder::new(Vec::new(), Compression::default()),
            bytes,
            ZlibEncoder::finish,
        ),
        Step::Deflate => written(
            DeflateEncoder::new(Vec::new(), Compression::default()),
            bytes,
            DeflateEncoder::finish,
        ),
        Step::Zstd => zstd::encode_all(bytes, 0),
        Step::Lz4 => written(
            lz4_flex::frame::FrameEncoder::new(Vec::new()),
            bytes,
            |encoder| encoder.finish().map_err(std::io::Error::other),
        ),
        Step::Snappy => snap::raw::Encoder::new()
            .compress_vec(bytes)
            .map_err(std::io::Error::other),
        Step::SnappyFramed => {
            let mut packed = Vec::new();
            snap::read::FrameEncoder::new(bytes)
                .read_to_end(&mut packed)
                .map(|_| packed)
        }
        Step::Brotli => {
            let mut packed = Vec::new();
            brotli::CompressorReader::new(bytes, BUFFER, 5, 22)
                .read_to_end(&mut packed)
                .map(|_| packed)
        }
        other => return Err(Refusal::new(format!("{other} is no compression"))),
    };
    packed.map_err(refuse)
}

fn written<W: std::io::Write>(
    mut encoder: W,
    bytes: &[u8],
    finish: impl FnOnce(W) -> std::io::Result<Vec<u8>>,
) -> std::io::Result<Vec<u8>> {
    encoder.write_all(bytes)?;
    finish(encoder)
}

/// Reads to the end, in pieces, so that time and size are checked on the way.
fn read(mut from: impl Read, budget: &Budget) -> Result<Vec<u8>, Refusal> {
    let mut unpacked = Vec::new();
    let mut buffer = vec![0; BUFFER];
    let mut pieces = 0u32;
    loop {
        match from.read(&mut buffer).map_err(refuse)? {
            0 => return Ok(unpacked),
            count if unpacked.len() + count > budget.bytes_left() => {
                return Err(budget.too_many_bytes());
            }
            count => unpacked.extend_from_slice(&buffer[..count]),
        }
        pieces += 1;
        if pieces.is_multiple_of(64) {
            budget.time()?;
        }
    }
}

fn whole(read: u64, bytes: &[u8], unpacked: Vec<u8>) -> Result<Vec<u8>, Refusal> {
    if read == bytes.len() as u64 {
        return Ok(unpacked);
    }
    Err(Refusal::new(format!(
        "it ends at byte {read}, with {} bytes after it",
        bytes.len() as u64 - read
    )))
}

/// The frame decoder stops at a frame's end and takes what follows for the next frame, so a cut
/// frame would look like a short one: the end mark tells.
fn lz4(bytes: &[u8], budget: &Budget) -> Result<Vec<u8>, Refusal> {
    let mut rest = bytes;
    let mut unpacked = Vec::new();
    while !rest.is_empty() {
        let length = lz4_frame_length(rest)?;
        let (frame, after) = rest.split_at(length);
        let part = read(lz4_flex::frame::FrameDecoder::new(frame), budget)?;
        if unpacked.len() + part.len() > budget.bytes_left() {
            return Err(budget.too_many_bytes());
        }
        unpacked.extend_from_slice(&part);
        rest = after;
    }
    Ok(unpacked)
}

/// The length of one frame, by its block sizes.
/// <https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md>
fn lz4_frame_length(bytes: &[u8]) -> Result<usize, Refusal> {
    let cut = || Refusal::new("the frame is cut");
    if !bytes.starts_with(&[0x04, 0x22, 0x4d, 0x18]) {
        return Err(Refusal::new(
            "there is something after the frame that is none",
        ));
    }
    let flags = *bytes.get(4).ok_or_else(cut)?;
    let flag = |bit: u8, size: usize| if flags >> bit & 1 == 1 { size } else { 0 };
    let mut at = 4 + 2 + flag(3, 8) + flag(0, 4) + 1;
    loop {
        let size = bytes
            .get(at..at + 4)
            .and_then(|size| size.try_into().ok())
            .map(u32::from_le_bytes)
            .ok_or_else(cut)?;
        at += 4;
        if size == 0 {
            break;
        }
        at += (size & 0x7fff_ffff) as usize + flag(4, 4);
    }
    at += flag(2, 4);
    if at > bytes.len() { Err(cut()) } else { Ok(at) }
}

fn snappy(bytes: &[u8], budget: &Budget) -> Result<Vec<u8>, Refusal> {
    let length = snap::raw::decompress_len(bytes).map_err(refuse)?;
    if length > budget.bytes_left() {
        return Err(budget.too_many_bytes());
    }
    // A copy of 64 bytes takes at least two bytes; a length beyond that lies.
    if length > bytes.len().saturating_mul(64) {
        return Err(Refusal::new(format!(
            "it claims {length} bytes, which {} cannot hold",
            bytes.len()
        )));
    }
    snap::raw::Decoder::new()
        .decompress_vec(bytes)
        .map_err(refuse)
}

/// Brotli's reader takes a whole buffer from its source, so what it left says little: a stream with
/// something behind it is found by asking whether one byte less is enough.
fn brotli_end(bytes: &[u8], unpacked: Vec<u8>, rest: &[u8]) -> Result<Vec<u8>, Refusal> {
    let shorter = &bytes[..bytes.len() - 1];
    let mut probe = brotli::Decompressor::new(shorter, BUFFER);
    let ended_early = rest.is_empty() && std::io::copy(&mut probe, &mut std::io::sink()).is_ok();
    if ended_early || !rest.is_empty() {
        return Err(Refusal::new("there is something after its end"));
    }
    Ok(unpacked)
}

fn refuse(error: impl std::fmt::Display) -> Refusal {
    Refusal::new(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magic_bytes() {
        for step in [
            Step::Gzip,
            Step::Zlib,
            Step::Zstd,
            Step::Lz4,
            Step::SnappyFramed,
        ] {
            assert_eq!(by_magic(&pack(&step, b"hello").unwrap()), Some(step));
        }
        assert_eq!(by_magic(b"{\"a\":1}"), None);
    }

    #[test]
    fn several_frames_are_one_payload() {
        for step in [Step::Gzip, Step::Zstd, Step::Lz4] {
            let two = [pack(&step, b"one,").unwrap(), pack(&step, b"two").unwrap()].concat();
            let budget = Budget::new(&crate::limits::Limits::default());
            assert_eq!(unpack(&step, &two, &budget).unwrap(), b"one,two", "{step}");
        }
    }
}
