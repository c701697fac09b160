//! What a check can find, and the words to say it with.

use std::error::Error as StdError;

/// Why a check did not simply succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The promise is not made for this destination; the text names the missing capability or situation.
    NotApplicable(String),
    /// The promise is broken; the text says how.
    Broken(String),
}

pub type Verdict = Result<(), Miss>;

impl From<dlo_core::Error> for Miss {
    fn from(error: dlo_core::Error) -> Self {
        Self::Broken(format!("unexpected error: {error}"))
    }
}

impl From<Box<dyn StdError + Send + Sync>> for Miss {
    fn from(error: Box<dyn StdError + Send + Sync>) -> Self {
        Self::Broken(format!("the fixture failed: {error}"))
    }
}

/// Ends the check as broken unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($words:tt)+) => {
        if !$condition {
            return Err($crate::Miss::Broken(format!($($words)+)));
        }
    };
}

/// Ends the check as not applicable unless the condition holds.
macro_rules! needs {
    ($condition:expr, $($words:tt)+) => {
        if !$condition {
            return Err($crate::Miss::NotApplicable(format!($($words)+)));
        }
    };
}

pub(crate) use {ensure, needs};
