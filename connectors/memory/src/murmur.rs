//! Murmur2 as Kafka's Java client computes it, so that a key goes to the same partition as in a real topic.

/// The hash of a key, as `org.apache.kafka.common.utils.Utils.murmur2` gives it.
pub(crate) fn murmur2(key: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ u32::try_from(key.len()).unwrap_or(u32::MAX);
    let mut words = key.chunks_exact(4);
    for word in &mut words {
        let mut k = word
            .iter()
            .rev()
            .fold(0_u32, |k, byte| (k << 8) | u32::from(*byte))
            .wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let tail = rest
            .iter()
            .rev()
            .fold(0_u32, |k, byte| (k << 8) | u32::from(*byte));
        hash = (hash ^ tail).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::murmur2;

    /// Values of Kafka's own `UtilsTest.testMurmur2`.
    #[test]
    fn hashes_are_those_of_kafkas_own_test() {
        for (key, expected) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            (
                "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), expected, "{key}");
        }
    }
}
