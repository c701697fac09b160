//! Exit codes, as scripts rely on them.

use dlo_core::{Error, ErrorKind};

/// All as asked.
pub const DONE: u8 = 0;
/// Could not start or connect.
pub const NO_START: u8 = 1;
/// Wrong use: arguments, a filter, a URL.
pub const WRONG_USE: u8 = 2;
/// Done in part; the lines say which.
pub const PARTLY: u8 = 3;
/// Refused, because it would do harm or is not allowed.
pub const REFUSED: u8 = 4;

/// The exit code for an error that ended a command.
pub fn of_error(error: &Error) -> u8 {
    match error.kind() {
        ErrorKind::ConfigInvalid => WRONG_USE,
        ErrorKind::Refused | ErrorKind::PermissionDenied | ErrorKind::Unsupported => REFUSED,
        ErrorKind::Cancelled | ErrorKind::LockLost | ErrorKind::OutcomeUnknown => PARTLY,
        _ => NO_START,
    }
}
