//! Bodies in other formats than JSON. Small encoders of our own: a payload crate would be a heavy dependency for a handful
//! of demo messages, and connectors know no payload formats.

use std::io::Write as _;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};

/// The body in gzip.
pub(super) fn gzip(body: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail; without the bytes the demo shows a broken message, which it has anyway.
    let written = encoder
        .write_all(body)
        .and_then(|()| encoder.finish())
        .unwrap_or_default();
    written.into()
}

/// Confluent's framing: a zero byte, the schema id, the payload.
pub(super) fn confluent(schema_id: u32, payload: &[u8]) -> Bytes {
    let mut framed = vec![0];
    framed.extend(schema_id.to_be_bytes());
    framed.extend(payload);
    framed.into()
}

/// Avro's binary encoding (<https://avro.apache.org/docs/1.12.0/specification/#binary-encoding>).
#[derive(Debug, Default)]
pub(super) struct Avro(Vec<u8>);

impl Avro {
    pub fn long(mut self, value: i64) -> Self {
        varint(&mut self.0, zigzag(value));
        self
    }

    pub fn string(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    pub fn bytes(self, bytes: &[u8]) -> Self {
        let mut this = self.long(i64::try_from(bytes.len()).unwrap_or_default());
        this.0.extend(bytes);
        this
    }

    /// A decimal of scale 2, given in hundredths.
    pub fn decimal(self, hundredths: i64) -> Self {
        let all = hundredths.to_be_bytes();
        // The shortest two's complement: a leading byte goes when the next one has the same sign.
        let sign = if hundredths < 0 { 0xff } else { 0 };
        let is_needed = |place: usize| {
            all[place] != sign
                || (all
                    .get(place + 1)
                    .is_none_or(|next| (next ^ sign) & 0x80 != 0))
        };
        let first = (0..8).find(|place| is_needed(*place)).unwrap_or(7);
        self.bytes(&all[first..])
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Protobuf's wire format (<https://protobuf.dev/programming-guides/encoding/>).
#[derive(Debug, Default)]
pub(super) struct Protobuf(Vec<u8>);

impl Protobuf {
    pub fn string(mut self, field: u64, text: &str) -> Self {
        varint(&mut self.0, field << 3 | 2);
        varint(&mut self.0, text.len() as u64);
        self.0.extend(text.as_bytes());
        self
    }

    pub fn int(mut self, field: u64, value: i64) -> Self {
        varint(&mut self.0, field << 3);
        varint(&mut self.0, value.cast_unsigned());
        self
    }

    pub fn finish(self) -> Bytes {
        self.0.into()
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn avro_numbers_are_those_of_the_specification() {
        for (value, expected) in [(0, vec![0]), (-1, vec![1]), (64, vec![0x80, 1])] {
            assert_eq!(Avro::default().long(value).finish(), expected, "{value}");
        }
        assert_eq!(Avro::default().string("foo").finish(), b"\x06foo");
    }

    #[test]
    fn decimals_are_the_shortest_twos_complement() {
        let bytes = |value| Avro::default().decimal(value).finish();
        assert_eq!(bytes(4_058), [4, 0x0f, 0xda]);
        assert_eq!(bytes(0), [2, 0]);
        assert_eq!(bytes(128), [4, 0, 128]);
        assert_eq!(bytes(-1), [2, 0xff]);
    }

    #[test]
    fn protobuf_fields_have_tag_and_value() {
        let message = Protobuf::default().string(1, "a").int(3, 150).finish();
        assert_eq!(&message[..], [0x0a, 1, b'a', 0x18, 0x96, 1]);
    }
}
