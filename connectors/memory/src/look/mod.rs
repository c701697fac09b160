//! Looking: by lock at queues, by offset at logs.

mod by_lock;
mod by_offset;

pub(crate) use by_lock::LockLook;
pub(crate) use by_offset::{OffsetLook, read_at};
