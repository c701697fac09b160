//! The Kafka connector on a real Apache Kafka. One program for all, as each one more would link everything once more.

mod conformance;
mod connecting;
mod looking;
mod program;
mod publishing;
mod real_dead_letters;
