//! Acts on messages: plan, run, report.

pub mod plan;
