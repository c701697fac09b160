//! One error for all connectors, which says what a person can do next.

use std::{error::Error as StdError, fmt, sync::Arc};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, named by what the person should do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The profile or URL cannot work as it is: mend it.
    ConfigInvalid,
    /// Nothing answers there, or what answers speaks something else: check address, port, TLS and network.
    Unreachable,
    /// The broker does not accept the credentials: check user, password, certificate or token.
    Unauthenticated,
    /// The credentials are accepted but may not do this: ask for the named permission.
    PermissionDenied,
    /// The queue, topic or exchange is not there.
    NotFound,
    /// This broker or destination cannot do it.
    Unsupported,
    /// It could do harm or is not allowed here, so it was not tried.
    Refused,
    /// The broker asks to slow down: try again later.
    Throttled,
    /// The message is larger than the broker takes.
    TooLarge,
    /// The message holds something that the broker does not take (characters, attributes, headers).
    Rejected,
    /// The broker took it but no queue would get it; nothing was stored.
    Unroutable,
    /// The lock ran out or was lost: the message is back in its queue.
    LockLost,
    /// It may or may not have happened, for example a publish whose confirmation never came. Never retried by itself.
    OutcomeUnknown,
    Cancelled,
    /// Something this code does not know.
    Unexpected,
}

/// Whether trying the same again can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    Never,
    Later,
    /// It was tried again until the limit.
    Exhausted,
}

/// An error of a connector: kind, advice, what was being done, and the cause.
///
/// `Display` is one line: operation, what happened, context. No secret may be in any part of it.
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    retry: Retry,
    operation: String,
    what: String,
    advice: Option<String>,
    context: Vec<(&'static str, String)>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of that kind; `operation` continues the words "could not", for example `open the queue`.
    pub fn new(kind: ErrorKind, operation: impl Into<String>, what: impl Into<String>) -> Self {
        let retry = match kind {
            ErrorKind::Unreachable | ErrorKind::Throttled => Retry::Later,
            _ => Retry::Never,
        };
        let (operation, what) = (operation.into(), what.into());
        Self(Box::new(Inner {
            kind,
            retry,
            operation,
            what,
            advice: None,
            context: Vec::new(),
            source: None,
        }))
    }

    /// The error of a task that was asked to stop.
    pub fn cancelled(operation: impl Into<String>) -> Self {
        Self::new(ErrorKind::Cancelled, operation, "it was cancelled")
    }

    /// Says in a sentence what the person can do next.
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.0.advice = Some(advice.into());
        self
    }

    /// Adds a fact such as `("queue", "orders.dlq")`.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.context.push((name, value.into()));
        self
    }

    pub fn retry(mut self, retry: Retry) -> Self {
        self.0.retry = retry;
        self
    }

    pub fn caused_by(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    pub fn retry_advice(&self) -> Retry {
        self.0.retry
    }

    pub fn operation(&self) -> &str {
        &self.0.operation
    }

    /// What happened, without the operation.
    pub fn what(&self) -> &str {
        &self.0.what
    }

    /// What the person can do next, where the connector knows it.
    pub fn advice(&self) -> Option<&str> {
        self.0.advice.as_deref()
    }

    pub fn context(&self) -> &[(&'static str, String)] {
        &self.0.context
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not {}: {}", self.0.operation, self.0.what)?;
        for (index, (name, value)) in self.0.context.iter().enumerate() {
            let separator = if index == 0 { " (" } else { ", " };
            write!(f, "{separator}{name} {value}")?;
        }
        if !self.0.context.is_empty() {
            f.write_str(")")?;
        }
        if let Some(advice) = &self.0.advice {
            write!(f, ". {advice}")?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|source| source.as_ref() as _)
    }
}

/// Two errors are equal when a person would do the same about them.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        (self.0.kind, &self.0.operation, &self.0.what)
            == (other.0.kind, &other.0.operation, &other.0.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_one_line_with_advice_last() {
        let error = Error::new(
            ErrorKind::NotFound,
            "open the queue",
            "there is no such queue",
        )
        .with("queue", "orders.dlq")
        .with("vhost", "/")
        .advise("Check the name and the virtual host.");
        let expected = "could not open the queue: there is no such queue (queue orders.dlq, vhost /). Check the name and the virtual host.";
        assert_eq!(error.to_string(), expected);
    }
}
