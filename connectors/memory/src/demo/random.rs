//! Numbers that look random and are the same in every run.

/// SplitMix64 (<https://prng.di.unimi.it/splitmix64.c>).
#[derive(Clone, Copy, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 up to, but not including, `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// A number from `start` up to, but not including, `end`.
    pub fn between(&mut self, start: i64, end: i64) -> i64 {
        let width = u64::try_from(end - start).unwrap_or(1);
        start + i64::try_from(self.below(width)).unwrap_or_default()
    }

    /// One of these.
    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        let index = self.below(choices.len() as u64);
        choices.get(usize::try_from(index).ok()?).copied()
    }

    /// Lower-case hexadecimal digits, for ids.
    pub fn hex(&mut self, digits: usize) -> String {
        (0..digits)
            .map(|_| char::from(b"0123456789abcdef"[(self.next() >> 60) as usize]))
            .collect()
    }
}
