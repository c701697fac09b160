//! How much one decoding may cost: bytes, depth, values and time.
//!
//! A broker can hold anything, so every decoder spends from one [`Budget`] and stops with a
//! sentence when it is used up. It is separate because the rule must be the same for all of them.

use std::time::{Duration, Instant};

use crate::report::Refusal;

/// What one decoding may cost.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(default)]
pub struct Limits {
    /// The most bytes that all decompressed and decoded layers of one payload may have.
    pub bytes: usize,
    /// How deep values may nest.
    pub depth: usize,
    /// How many values a document may have. A value takes about 60 bytes of memory.
    pub nodes: usize,
    /// How long a decoding may take, in milliseconds.
    pub millis: u64,
    /// How many layers may lie inside each other.
    pub layers: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 64 << 20,
            depth: 128,
            nodes: 4_000_000,
            millis: 5_000,
            layers: 8,
        }
    }
}

/// What is left of the limits while one payload is decoded.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    bytes: usize,
    nodes: usize,
    depth: usize,
    until: Instant,
}

impl Budget {
    /// A full budget whose time starts now.
    pub fn new(limits: &Limits) -> Self {
        Self {
            bytes: limits.bytes,
            nodes: limits.nodes,
            depth: limits.depth,
            until: Instant::now() + Duration::from_millis(limits.millis),
            limits: limits.clone(),
        }
    }

    /// The limits this budget began with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How many more bytes layers may produce.
    pub fn bytes_left(&self) -> usize {
        self.bytes
    }

    /// Takes the bytes that a layer produced.
    pub fn take_bytes(&mut self, count: usize) -> Result<(), Refusal> {
        self.bytes = self
            .bytes
            .checked_sub(count)
            .ok_or_else(|| self.too_many_bytes())?;
        Ok(())
    }

    /// The refusal of a layer that produces more bytes than allowed.
    pub fn too_many_bytes(&self) -> Refusal {
        Refusal::limit(format!(
            "it unpacks to more than {} bytes, the limit",
            self.limits.bytes
        ))
    }

    /// Takes one value.
    #[inline]
    pub fn node(&mut self) -> Result<(), Refusal> {
        if self.nodes == 0 {
            return Err(self.too_many_nodes());
        }
        self.nodes -= 1;
        if self.nodes & 0xfff == 0 {
            self.time()
        } else {
            Ok(())
        }
    }

    /// Checks that a claimed number of items may be had at all, before room is made for them.
    pub fn can_hold(&self, items: u64) -> Result<(), Refusal> {
        if items > self.nodes as u64 {
            return Err(Refusal::limit(format!(
                "it claims {items} values, more than the limit of {}",
                self.limits.nodes
            )));
        }
        Ok(())
    }

    /// Goes one level deeper; [`Budget::leave`] comes back.
    #[inline]
    pub fn enter(&mut self) -> Result<(), Refusal> {
        self.depth = self.depth.checked_sub(1).ok_or_else(|| self.too_deep())?;
        Ok(())
    }

    /// Comes back one level.
    #[inline]
    pub fn leave(&mut self) {
        self.depth += 1;
    }

    /// Checks the time.
    pub fn time(&self) -> Result<(), Refusal> {
        if Instant::now() < self.until {
            return Ok(());
        }
        Err(Refusal::limit(format!(
            "it took longer than {} ms, the limit",
            self.limits.millis
        )))
    }

    /// Gives back values and depth of an attempt that was refused: its memory is free again. Time
    /// and bytes stay spent, so that many attempts cannot add up without end.
    pub(crate) fn retry<T>(
        &mut self,
        attempt: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let (nodes, depth) = (self.nodes, self.depth);
        let result = attempt(self);
        self.depth = depth;
        if result.is_err() {
            self.nodes = nodes;
        }
        result
    }

    fn too_many_nodes(&self) -> Refusal {
        Refusal::limit(format!(
            "it has more than {} values, the limit",
            self.limits.nodes
        ))
    }

    fn too_deep(&self) -> Refusal {
        Refusal::limit(format!(
            "it nests deeper than {} levels, the limit",
            self.limits.depth
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_stops_with_a_sentence() {
        let limits = Limits {
            bytes: 10,
            depth: 1,
            nodes: 2,
            ..Limits::default()
        };
        let mut budget = Budget::new(&limits);
        assert!(
            budget
                .take_bytes(11)
                .unwrap_err()
                .to_string()
                .contains("more than 10 bytes")
        );
        budget.enter().unwrap();
        assert!(
            budget
                .enter()
                .unwrap_err()
                .to_string()
                .contains("deeper than 1")
        );
        assert!(
            budget
                .can_hold(1 << 41)
                .unwrap_err()
                .to_string()
                .contains("claims 2199023255552 values")
        );
        budget.node().unwrap();
        budget.node().unwrap();
        assert!(
            budget
                .node()
                .unwrap_err()
                .to_string()
                .contains("more than 2 values")
        );
    }

    #[test]
    fn a_refused_attempt_gives_its_values_back() {
        let mut budget = Budget::new(&Limits {
            nodes: 1,
            ..Limits::default()
        });
        let refused: Result<(), _> = budget.retry(|budget| {
            budget.node()?;
            Err(Refusal::new("no"))
        });
        assert!(refused.is_err());
        budget.node().unwrap();
    }
}
