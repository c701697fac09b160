//! What went wrong, from the SDK's and AWS's codes to a sentence and advice: two tables with a test per row.
//!
//! AWS's codes come in several spellings (with `AWS.SimpleQueueService.` before them, from the query protocol, or as the JSON
//! protocol's type names), so they are compared without their prefix.

use std::error::Error as StdError;

use aws_sdk_sqs::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::BatchResultErrorEntry;
use dlo_core::{Error, ErrorKind, Result, Retry};

use ErrorKind::{
    ConfigInvalid, LockLost, NotFound, OutcomeUnknown, PermissionDenied, Refused, Rejected,
    Throttled, TooLarge, Unauthenticated, Unexpected, Unreachable, Unsupported,
};

/// What was being done, for an error to say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doing<'a> {
    /// Continues "could not": `receive messages`.
    pub operation: &'static str,
    /// The permission it needs: `sqs:ReceiveMessage`.
    pub permission: &'static str,
    pub queue: Option<&'a str>,
}

impl<'a> Doing<'a> {
    pub fn new(operation: &'static str, permission: &'static str) -> Self {
        Self {
            operation,
            permission,
            queue: None,
        }
    }

    pub fn at(self, queue: &'a str) -> Self {
        Self {
            queue: Some(queue),
            ..self
        }
    }

    /// The error of a call that only reads, or that can safely be made again.
    pub fn failed<E, R>(self, error: SdkError<E, R>) -> Error
    where
        E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
        R: std::fmt::Debug + Send + Sync + 'static,
    {
        let mapped = match &error {
            SdkError::ServiceError(service) => {
                let meta = service.err().meta();
                self.coded(
                    meta.code().unwrap_or("unknown"),
                    meta.message().unwrap_or_default(),
                )
            }
            _ => self.undelivered(&DisplayErrorContext(&error).to_string()),
        };
        mapped.caused_by(error)
    }

    /// The error of a call that changes something: when it may have been carried out, it says so.
    pub fn failed_write<E, R>(self, error: SdkError<E, R>) -> Error
    where
        E: ProvideErrorMetadata + StdError + Send + Sync + 'static,
        R: std::fmt::Debug + Send + Sync + 'static,
    {
        let text = DisplayErrorContext(&error).to_string();
        let unknown = match &error {
            SdkError::ServiceError(service) => matches!(
                short(service.err().code().unwrap_or_default()),
                "InternalError" | "InternalFailure" | "InternalServerError" | "unknown" | ""
            ),
            SdkError::ConstructionFailure(_) => false,
            _ => !never_sent(&text),
        };
        if !unknown {
            return self.failed(error);
        }
        self.error(
            OutcomeUnknown,
            format!("the answer never came: {}", innermost(&text)),
        )
        .advise("It may have been carried out. Look at the queue before trying again.")
        .caused_by(error)
    }

    /// The error of one entry of a batch. AWS answered for it, so it surely was not carried out.
    pub fn failed_entry(self, entry: &BatchResultErrorEntry) -> Error {
        self.coded(&entry.code, entry.message().unwrap_or_default())
    }

    /// The error for a code of AWS.
    pub fn coded(self, code: &str, message: &str) -> Error {
        let code = short(code);
        let Some(row) = CODES
            .iter()
            .find(|row| row.code == code && message.contains(row.says))
        else {
            return self.error(Unexpected, format!("{code}: {message}"));
        };
        let what = match row.what {
            "" => message.to_owned(),
            what => what.to_owned(),
        };
        let error = self.error(row.kind, what);
        match row.kind {
            PermissionDenied if !code.contains("Kms") => error.advise(format!(
                "Ask for the permission {}.",
                permission_in(message).unwrap_or(self.permission)
            )),
            _ if row.advice.is_empty() => error,
            _ => error.advise(row.advice),
        }
    }

    fn undelivered(self, text: &str) -> Error {
        let Some(row) = TRANSPORT.iter().find(|row| text.contains(row.says)) else {
            return self.error(Unreachable, innermost(text).to_owned());
        };
        let error = self.error(row.kind, row.what);
        if row.advice.is_empty() {
            error
        } else {
            error.advise(row.advice)
        }
    }

    /// An error of our own about the same operation.
    pub fn error(self, kind: ErrorKind, what: impl Into<String>) -> Error {
        let error = Error::new(kind, self.operation, what);
        match self.queue {
            Some(queue) => error.with("queue", queue),
            None => error,
        }
    }

    /// Waits are over: turns a throttled answer that was tried again into an exhausted one.
    pub fn exhausted<T>(result: Result<T>) -> Result<T> {
        result.map_err(|error| match error.kind() {
            Throttled => error.retry(Retry::Exhausted),
            _ => error,
        })
    }
}

struct Code {
    code: &'static str,
    /// Words of the message by which rows of the same code differ.
    says: &'static str,
    kind: ErrorKind,
    /// Empty keeps AWS's own words.
    what: &'static str,
    advice: &'static str,
}

const fn code(
    code: &'static str,
    kind: ErrorKind,
    what: &'static str,
    advice: &'static str,
) -> Code {
    Code {
        code,
        says: "",
        kind,
        what,
        advice,
    }
}

const fn saying(says: &'static str, row: Code) -> Code {
    Code { says, ..row }
}

const NO_QUEUE: &str = "there is no such queue in this account and region";
const CHECK_QUEUE: &str = "Check the name, the region and the account.";
const SLOW: &str = "AWS asks to slow down";
const LATER: &str = "Try again in a moment.";
const EXPIRED: &str = "the session token has expired";
const LOG_IN: &str = "Log in again, for example with aws sso login, and reconnect.";
const WRONG_KEY: &str = "AWS does not accept the access key";
const CHECK_KEY: &str =
    "Check the profile, the access key and its secret, and this machine's clock.";
const LOST: &str = "the message is no longer held by this look";
const LOOK_AGAIN: &str = "Look again to get hold of it.";

/// Sources: the errors of each action in the SQS API reference, "Common error types" of the same, and IAM's.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html>
const CODES: &[Code] = &[
    code("NonExistentQueue", NotFound, NO_QUEUE, CHECK_QUEUE),
    code("QueueDoesNotExist", NotFound, NO_QUEUE, CHECK_QUEUE),
    code("ResourceNotFoundException", NotFound, "", CHECK_QUEUE),
    code(
        "QueueDeletedRecently",
        Refused,
        "a queue of this name was deleted a moment ago",
        "Wait 60 seconds.",
    ),
    code("AccessDenied", PermissionDenied, "", ""),
    code("AccessDeniedException", PermissionDenied, "", ""),
    code("AuthorizationError", PermissionDenied, "", ""),
    code(
        "KmsAccessDenied",
        PermissionDenied,
        "",
        "Ask for kms:Decrypt and kms:GenerateDataKey on the queue's key.",
    ),
    code(
        "KmsDisabled",
        ConfigInvalid,
        "the queue's encryption key is disabled",
        "Enable the key in AWS KMS.",
    ),
    code(
        "KmsInvalidState",
        ConfigInvalid,
        "",
        "Check the state of the queue's key in AWS KMS.",
    ),
    code(
        "KmsInvalidKeyUsage",
        ConfigInvalid,
        "",
        "Check the usage of the queue's key in AWS KMS.",
    ),
    code(
        "KmsNotFound",
        ConfigInvalid,
        "the queue's encryption key does not exist",
        "Check the queue's key in AWS KMS.",
    ),
    code(
        "KmsOptInRequired",
        ConfigInvalid,
        "",
        "Subscribe the account to AWS KMS.",
    ),
    code(
        "KmsThrottled",
        Throttled,
        "AWS KMS asks to slow down",
        LATER,
    ),
    code("ExpiredToken", Unauthenticated, EXPIRED, LOG_IN),
    code("ExpiredTokenException", Unauthenticated, EXPIRED, LOG_IN),
    code(
        "RequestExpired",
        Unauthenticated,
        "the request was too old when it arrived",
        "Check this machine's clock.",
    ),
    saying(
        "valid region",
        code(
            "SignatureDoesNotMatch",
            ConfigInvalid,
            "this server belongs to another region",
            "Write the region that the endpoint belongs to.",
        ),
    ),
    code(
        "SignatureDoesNotMatch",
        Unauthenticated,
        WRONG_KEY,
        CHECK_KEY,
    ),
    code(
        "InvalidClientTokenId",
        Unauthenticated,
        WRONG_KEY,
        CHECK_KEY,
    ),
    code(
        "UnrecognizedClientException",
        Unauthenticated,
        WRONG_KEY,
        CHECK_KEY,
    ),
    code("InvalidAccessKeyId", Unauthenticated, WRONG_KEY, CHECK_KEY),
    code("IncompleteSignature", Unauthenticated, WRONG_KEY, CHECK_KEY),
    code("InvalidSecurity", Unauthenticated, "", CHECK_KEY),
    code(
        "MissingAuthenticationToken",
        Unauthenticated,
        "the request carried no credentials",
        CHECK_KEY,
    ),
    code("NotAuthorized", PermissionDenied, "", ""),
    code(
        "OptInRequired",
        Unauthenticated,
        "",
        "Enable the region or service for this account.",
    ),
    code(
        "InvalidAddress",
        ConfigInvalid,
        "the queue does not belong to this region",
        "Connect to the region in the queue's URL.",
    ),
    code("RequestThrottled", Throttled, SLOW, LATER),
    code("Throttling", Throttled, SLOW, LATER),
    code("ThrottlingException", Throttled, SLOW, LATER),
    code("ThrottledException", Throttled, SLOW, LATER),
    code("RequestLimitExceeded", Throttled, SLOW, LATER),
    code("TooManyRequestsException", Throttled, SLOW, LATER),
    code(
        "ServiceUnavailable",
        Throttled,
        "SQS is not available for the moment",
        LATER,
    ),
    code(
        "OverLimit",
        Throttled,
        "",
        "Give back held messages first: a queue has at most 120,000 in flight.",
    ),
    code(
        "PurgeQueueInProgress",
        Throttled,
        "the queue was purged less than 60 seconds ago",
        "Wait a minute.",
    ),
    code("ReceiptHandleIsInvalid", LockLost, LOST, LOOK_AGAIN),
    code("MessageNotInflight", LockLost, LOST, LOOK_AGAIN),
    saying(
        "eceipt",
        code("InvalidParameterValue", LockLost, LOST, LOOK_AGAIN),
    ),
    saying(
        "eceipt",
        code("InvalidAttributeValue", LockLost, LOST, LOOK_AGAIN),
    ),
    code(
        "InvalidMessageContents",
        Rejected,
        "the body holds characters that SQS does not take",
        "SQS takes tab, line feed, carriage return, and U+0020 to U+D7FF, U+E000 to U+FFFD, U+10000 to U+10FFFF.",
    ),
    saying(
        "shorter than",
        code("InvalidParameterValue", TooLarge, "", ""),
    ),
    saying("bytes", code("InvalidParameterValue", TooLarge, "", "")),
    code("InvalidParameterValue", Rejected, "", ""),
    code("InvalidParameterCombination", Rejected, "", ""),
    code("InvalidAttributeValue", Rejected, "", ""),
    code("InvalidAttributeName", Rejected, "", ""),
    code("MissingParameter", Rejected, "", ""),
    code(
        "BatchRequestTooLong",
        TooLarge,
        "the batch is larger than 1 MiB",
        "",
    ),
    code("UnsupportedOperation", Unsupported, "", ""),
    code("InternalError", Unexpected, "SQS failed inside", LATER),
    code("InternalFailure", Unexpected, "SQS failed inside", LATER),
];

struct Transport {
    says: &'static str,
    kind: ErrorKind,
    what: &'static str,
    advice: &'static str,
}

const fn when(
    says: &'static str,
    kind: ErrorKind,
    what: &'static str,
    advice: &'static str,
) -> Transport {
    Transport {
        says,
        kind,
        what,
        advice,
    }
}

/// How the SDK says that a request got no answer, most telling first.
const TRANSPORT: &[Transport] = &[
    when(
        "no providers in chain provided credentials",
        Unauthenticated,
        NO_CREDENTIALS,
        FIND_CREDENTIALS,
    ),
    when(
        "no credentials",
        Unauthenticated,
        NO_CREDENTIALS,
        FIND_CREDENTIALS,
    ),
    when(
        "credential provider was not enabled",
        Unauthenticated,
        NO_CREDENTIALS,
        FIND_CREDENTIALS,
    ),
    when("token has expired", Unauthenticated, EXPIRED, LOG_IN),
    when("token is expired", Unauthenticated, EXPIRED, LOG_IN),
    when("ExpiredToken", Unauthenticated, EXPIRED, LOG_IN),
    when(
        "could not find profile",
        Unauthenticated,
        "there is no such profile in the AWS configuration",
        "Check the profile's name in ~/.aws/config.",
    ),
    when(
        "could not read token",
        Unauthenticated,
        "there is no session of AWS SSO for this profile",
        LOG_IN,
    ),
    when(
        "loading credentials",
        Unauthenticated,
        "the credentials could not be loaded",
        "Check the profile: aws sts get-caller-identity says more.",
    ),
    when(
        "Connection refused",
        Unreachable,
        "nothing listens at that address",
        "Check host and port of the endpoint, and whether the server runs.",
    ),
    when(
        "dns error",
        Unreachable,
        "the host name is not known",
        "Check the region, the endpoint and the network.",
    ),
    when(
        "connect timeout",
        Unreachable,
        "the address does not answer; the network may filter it",
        "Check host, port, VPN and firewall.",
    ),
    when(
        "Network is unreachable",
        Unreachable,
        "there is no network route to that address",
        "Check the network or VPN.",
    ),
    when(
        "No route to host",
        Unreachable,
        "there is no network route to that address",
        "Check the network or VPN.",
    ),
    when(
        "received corrupt message",
        Unreachable,
        "the server speaks plain HTTP there",
        "Write http:// instead of https:// in the endpoint.",
    ),
    when(
        "invalid peer certificate",
        Unreachable,
        "the server's certificate is not trusted by this machine",
        "Add its authority to this machine's certificates.",
    ),
    when(
        "connection closed before message completed",
        Unreachable,
        "the server closed the connection without an answer",
        "If it speaks TLS there, write https:// in the endpoint.",
    ),
    when(
        "timeout",
        Unreachable,
        "the server accepted the connection and did not answer",
        "Check that it is an SQS server, and its load.",
    ),
];

const NO_CREDENTIALS: &str = "no AWS credentials were found";
const FIND_CREDENTIALS: &str =
    "Set a profile, log in with aws sso login, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.";

/// True when the text shows that no byte of the request left this machine.
fn never_sent(text: &str) -> bool {
    [
        "Connection refused",
        "dns error",
        "connect timeout",
        "unreachable",
        "No route to host",
        "redentials",
        "invalid peer certificate",
        "corrupt message",
    ]
    .iter()
    .any(|says| text.contains(says))
}

/// The code without what protocols put around it: `AWS.SimpleQueueService.NonExistentQueue`, `com.amazonaws.sqs#QueueDoesNotExist`.
pub(crate) fn short(code: &str) -> &str {
    let code = code.rsplit('#').next().unwrap_or(code);
    code.rsplit('.').next().unwrap_or(code)
}

/// The innermost cause of the SDK's one-line chain, without its debug text.
fn innermost(text: &str) -> &str {
    let text = text.split(" (").next().unwrap_or(text);
    text.rsplit(": ").next().unwrap_or(text)
}

/// The action that IAM names: "… is not authorized to perform: sqs:listqueues on resource: …".
fn permission_in(message: &str) -> Option<&str> {
    let (_, rest) = message.split_once("to perform: ")?;
    rest.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOING: Doing<'_> = Doing {
        operation: "receive messages",
        permission: "sqs:ReceiveMessage",
        queue: Some("orders"),
    };

    #[test]
    fn every_row_of_the_codes_can_be_reached() {
        for row in CODES {
            let error = DOING.coded(row.code, row.says);
            assert_eq!(error.kind(), row.kind, "{} {}", row.code, row.says);
            assert!(error.to_string().contains("queue orders"), "{error}");
        }
    }

    #[test]
    fn every_row_of_the_transport_can_be_reached() {
        for row in TRANSPORT {
            let error =
                DOING.undelivered(&format!("dispatch failure: other: {} (Debug)", row.says));
            assert_eq!(
                (error.kind(), error.what()),
                (row.kind, row.what),
                "{}",
                row.says
            );
        }
    }

    #[test]
    fn both_spellings_of_a_missing_queue_are_one() {
        for code in [
            "AWS.SimpleQueueService.NonExistentQueue",
            "QueueDoesNotExist",
            "com.amazonaws.sqs#QueueDoesNotExist",
        ] {
            assert_eq!(DOING.coded(code, "").kind(), NotFound);
        }
    }

    #[test]
    fn a_missing_permission_is_named_by_aws_or_by_the_call() {
        let named = DOING.coded(
            "AccessDenied",
            "User: arn:aws:iam::1:user/u is not authorized to perform: kms:decrypt on resource: x",
        );
        assert_eq!(named.advice(), Some("Ask for the permission kms:decrypt."));
        let unnamed = DOING.coded("AccessDeniedException", "Access to the resource is denied.");
        assert_eq!(
            unnamed.advice(),
            Some("Ask for the permission sqs:ReceiveMessage.")
        );
    }

    #[test]
    fn what_never_left_this_machine_is_not_an_unknown_outcome() {
        assert!(never_sent(
            "dispatch failure: io error: tcp connect error: Connection refused (os error 111)"
        ));
        assert!(!never_sent(
            "dispatch failure: io error: connection closed before message completed"
        ));
        assert!(!never_sent("operation attempt timeout occurred after 4s"));
    }
}
