//! The difference in bytes: runs that stayed, went or came.

use similar::{Algorithm, DiffTag, capture_diff_slices_deadline};

use std::ops::Range;
use std::time::{Duration, Instant};

/// A run of bytes: `before` is what it was, `after` what it is. Equal runs have both.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ByteRun {
    pub before: Range<usize>,
    pub after: Range<usize>,
    pub same: bool,
}

/// All runs in order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ByteDiff {
    pub runs: Vec<ByteRun>,
}

impl ByteDiff {
    /// How many bytes went and how many came.
    pub fn changed(&self) -> (usize, usize) {
        self.runs
            .iter()
            .filter(|run| !run.same)
            .fold((0, 0), |(went, came), run| {
                (went + run.before.len(), came + run.after.len())
            })
    }
}

/// Compares bytes. What is alike at both ends is found at once; the middle is compared for at most
/// a fifth of a second and then taken as one change, so that 20 MB cost no more than that.
pub fn bytes(before: &[u8], after: &[u8]) -> ByteDiff {
    let front = before
        .iter()
        .zip(after)
        .take_while(|(before, after)| before == after)
        .count();
    let most = before.len().min(after.len()) - front;
    let back = before
        .iter()
        .rev()
        .zip(after.iter().rev())
        .take(most)
        .take_while(|(before, after)| before == after)
        .count();
    let mut runs = Vec::new();
    push(&mut runs, 0..front, 0..front, true);
    let (old, new) = (front..before.len() - back, front..after.len() - back);
    middle(before, after, old.clone(), new.clone(), &mut runs);
    push(&mut runs, old.end..before.len(), new.end..after.len(), true);
    ByteDiff { runs }
}

fn middle(
    before: &[u8],
    after: &[u8],
    old: Range<usize>,
    new: Range<usize>,
    runs: &mut Vec<ByteRun>,
) {
    const SMALL: usize = 256 * 1024;
    if old.len() > SMALL || new.len() > SMALL {
        return push(runs, old, new, false);
    }
    let deadline = Instant::now() + Duration::from_millis(200);
    for op in capture_diff_slices_deadline(
        Algorithm::Myers,
        &before[old.clone()],
        &after[new.clone()],
        Some(deadline),
    ) {
        let (tag, was, is) = op.as_tag_tuple();
        push(
            runs,
            old.start + was.start..old.start + was.end,
            new.start + is.start..new.start + is.end,
            tag == DiffTag::Equal,
        );
    }
}

fn push(runs: &mut Vec<ByteRun>, before: Range<usize>, after: Range<usize>, same: bool) {
    if !before.is_empty() || !after.is_empty() {
        runs.push(ByteRun {
            before,
            after,
            same,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs() {
        let diff = bytes(b"{\"a\":1,\"b\":2}", b"{\"a\":15,\"b\":2}");
        assert_eq!(diff.changed(), (0, 1));
        assert_eq!(diff.runs.len(), 3);
        assert_eq!(bytes(b"same", b"same").changed(), (0, 0));
        assert_eq!(bytes(b"", b"new").changed(), (0, 3));
        let (big, other) = (vec![1u8; 1_000_000], vec![2u8; 1_000_000]);
        assert_eq!(bytes(&big, &other).changed(), (1_000_000, 1_000_000));
    }
}
