//! Amazon SQS: finding queues, looking at them, and replaying, over the AWS SDK.
//!
//! SQS has no peek. A look receives messages and gives them back, which raises each one's receive count, so
//! what that means for a queue is worked out before it happens (`cost`). There is no cursor either: a look can
//! never be sure to have seen everything, and says "about".
//!
//! The files, in the order of a message's way: `config` and `session` connect, `queue` holds a queue's facts, `list` finds
//! queues, `cost` and `look` look, `held` remembers what is held, `delivery` and `attributes` translate, `settle` removes and
//! gives back, `check` and `publish` send, `redrive` moves and purges on AWS's side, `s3` fetches bodies that lie
//! there, `error` says what went wrong.
//!
//! AWS's documentation is followed where the test servers differ from it.

mod age;
mod attributes;
mod capability;
mod check;
mod config;
mod cost;
mod delivery;
mod error;
mod held;
mod list;
mod look;
mod memory;
mod publish;
mod queue;
mod redrive;
mod s3;
mod session;
mod settle;

use std::sync::Arc;

use async_trait::async_trait;
use dlo_core::{Connector, ConnectorInfo, Endpoint, Result, Secrets, Session};

/// Amazon SQS, and servers that speak its protocol.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sqs;

#[async_trait]
impl Connector for Sqs {
    fn info(&self) -> ConnectorInfo {
        ConnectorInfo {
            name: "sqs",
            label: "Amazon SQS",
            schemes: &["sqs"],
            example: "sqs://eu-west-1?profile=orders",
        }
    }

    async fn connect(&self, endpoint: &Endpoint, secrets: &Secrets) -> Result<Arc<dyn Session>> {
        Ok(Arc::new(session::connect(endpoint, secrets).await?))
    }
}
