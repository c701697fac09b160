//! The management API, as far as AMQP cannot tell the same: queue types, arguments, policies, bindings.
//!
//! Separate because it is HTTP, optional, and late: a new queue's counts are missing for up to ten seconds, so every
//! field is optional and nothing else in the crate reads JSON. Reference:
//! <https://www.rabbitmq.com/docs/http-api-reference>.

use std::time::Duration;

use dlo_core::{Error, ErrorKind, Result, Secret};
use reqwest::{Certificate, Client, StatusCode};
use serde_json::Value;

use crate::{
    config::{Config, Management},
    take::LOOK_TAG,
};

const CONNECT: Duration = Duration::from_secs(2);
/// A list of thousands of queues takes the broker a while.
const ANSWER: Duration = Duration::from_secs(10);
const PAGE: usize = 500;
const COLUMNS: &str = "name,type,durable,exclusive,arguments,policy,operator_policy,effective_policy_definition,\
    messages_ready,messages_unacknowledged,messages,message_bytes,consumers,delivery_limit,head_message_timestamp,\
    messages_dlx,messages_ready_returned,state,leader,node";

/// A client of one broker's management API.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    client: Client,
    base: String,
    user: String,
    password: Secret,
}

/// A queue as the management API describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct QueueInfo {
    pub name: String,
    pub kind: Option<String>,
    pub exclusive: bool,
    pub ready: Option<u64>,
    pub unacknowledged: Option<u64>,
    pub messages: Option<u64>,
    pub bytes: Option<u64>,
    pub consumers: Option<u64>,
    /// Live consumers that are no looks of ours; only where one queue is asked for.
    pub other_consumers: Option<u64>,
    pub state: Option<String>,
    pub policy: Option<String>,
    pub operator_policy: Option<String>,
    /// Seconds; classic queues only.
    pub head_timestamp: Option<i64>,
    pub dead_lettering: Option<u64>,
    /// Quorum queues: messages that were taken and given back.
    pub ready_returned: Option<u64>,
    /// What the broker says of the limit in force (4.x): `Some(None)` is unlimited.
    pub delivery_limit: Option<Option<u64>>,
    arguments: Value,
    effective_policy: Value,
}

/// One binding of an exchange.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Binding {
    pub destination: String,
    pub to_queue: bool,
    pub routing_key: String,
}

impl Api {
    /// A client for the place the configuration names or guesses; `None` when it is switched off or cannot work.
    pub fn new(config: &Config) -> Option<Self> {
        let base = match &config.management {
            Management::Named(url) | Management::Guessed(url) => url.clone(),
            Management::Off => return None,
        };
        let mut builder = Client::builder()
            .connect_timeout(CONNECT)
            .timeout(ANSWER)
            .no_proxy();
        for certificate in authorities(config) {
            builder = builder.add_root_certificate(certificate);
        }
        Some(Self {
            client: builder.build().ok()?,
            base,
            user: config.user.clone(),
            password: config.password.clone(),
        })
    }

    pub fn address(&self) -> &str {
        &self.base
    }

    /// The broker's version.
    pub async fn version(&self) -> Result<String> {
        let overview = self.get("overview").await?;
        text(&overview, "rabbitmq_version").ok_or_else(|| {
            Error::new(
                ErrorKind::Unreachable,
                "ask the management API",
                "what answers there is not RabbitMQ's management API",
            )
        })
    }

    /// The tags of the user, for example `impersonator`.
    pub async fn tags(&self) -> Result<Vec<String>> {
        let user = self.get("whoami").await?;
        Ok(match user.get("tags") {
            Some(Value::Array(tags)) => tags
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            Some(Value::String(tags)) => tags.split(',').map(|tag| tag.trim().to_owned()).collect(),
            _ => Vec::new(),
        })
    }

    /// All queues of the virtual host that the user may see.
    pub async fn queues(&self, vhost: &str) -> Result<Vec<QueueInfo>> {
        let mut queues = Vec::new();
        for page in 1.. {
            let path = format!(
                "queues/{}?page={page}&page_size={PAGE}&columns={COLUMNS}",
                encode(vhost)
            );
            let answer = self.get(&path).await?;
            let items = answer.get("items").and_then(Value::as_array);
            queues.extend(items.into_iter().flatten().map(QueueInfo::read));
            if number(&answer, "page_count").is_none_or(|pages| page >= pages) {
                break;
            }
        }
        Ok(queues)
    }

    /// One queue.
    pub async fn queue(&self, vhost: &str, name: &str) -> Result<QueueInfo> {
        let path = format!("queues/{}/{}", encode(vhost), encode(name));
        self.get(&path).await.map(|answer| QueueInfo::read(&answer))
    }

    /// The exchange's type: `direct`, `topic`, `fanout`, `headers`, or a plug-in's.
    pub async fn exchange_type(&self, vhost: &str, name: &str) -> Result<String> {
        let path = format!("exchanges/{}/{}", encode(vhost), encode(name));
        let exchange = self.get(&path).await?;
        Ok(text(&exchange, "type").unwrap_or_default())
    }

    /// What is bound to the exchange.
    pub async fn bindings_from(&self, vhost: &str, exchange: &str) -> Result<Vec<Binding>> {
        let path = format!(
            "exchanges/{}/{}/bindings/source",
            encode(vhost),
            encode(exchange)
        );
        let answer = self.get(&path).await?;
        Ok(answer
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|binding| {
                Some(Binding {
                    destination: text(binding, "destination")?,
                    to_queue: text(binding, "destination_type")? == "queue",
                    routing_key: text(binding, "routing_key").unwrap_or_default(),
                })
            })
            .collect())
    }

    async fn get(&self, path: &str) -> Result<Value> {
        let operation = "ask the management API";
        let failed = |error: &reqwest::Error| {
            let what = if error.is_timeout() {
                "it did not answer in time"
            } else if error.is_connect() {
                "nothing answers there"
            } else {
                "its answer could not be read"
            };
            Error::new(ErrorKind::Unreachable, operation, what)
                .with("address", self.base.clone())
                .advise("Name its address with ?management=http://host:15672 in the URL.")
        };
        let answer = self
            .client
            .get(format!("{}/api/{path}", self.base))
            .basic_auth(&self.user, Some(self.password.expose()))
            .send()
            .await
            .map_err(|error| failed(&error))?;
        match answer.status() {
            StatusCode::OK => answer.json().await.map_err(|error| failed(&error)),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Error::new(
                ErrorKind::PermissionDenied,
                operation,
                "the user may not use it",
            )
            .advise("Ask an administrator for the tag management or monitoring (rabbitmqctl set_user_tags).")),
            StatusCode::NOT_FOUND => Err(Error::new(
                ErrorKind::NotFound,
                operation,
                "there is no such queue or exchange",
            )),
            status => Err(Error::new(
                ErrorKind::Unreachable,
                operation,
                format!("it answered {status}"),
            )
            .with("address", self.base.clone())),
        }
    }
}

impl QueueInfo {
    pub(crate) fn read(answer: &Value) -> Self {
        Self {
            name: text(answer, "name").unwrap_or_default(),
            kind: text(answer, "type"),
            exclusive: answer
                .get("exclusive")
                .and_then(Value::as_bool)
                .unwrap_or_default(),
            ready: number(answer, "messages_ready"),
            unacknowledged: number(answer, "messages_unacknowledged"),
            messages: number(answer, "messages"),
            bytes: number(answer, "message_bytes"),
            consumers: number(answer, "consumers"),
            other_consumers: other_consumers(answer),
            state: text(answer, "state"),
            policy: text(answer, "policy"),
            operator_policy: text(answer, "operator_policy"),
            head_timestamp: answer.get("head_message_timestamp").and_then(Value::as_i64),
            dead_lettering: number(answer, "messages_dlx"),
            ready_returned: number(answer, "messages_ready_returned"),
            delivery_limit: delivery_limit(answer.get("delivery_limit")),
            arguments: answer.get("arguments").cloned().unwrap_or_default(),
            effective_policy: answer
                .get("effective_policy_definition")
                .cloned()
                .unwrap_or_default(),
        }
    }

    /// A setting from the queue's arguments (`x-NAME`), else from the policies in force (`NAME`).
    pub fn setting(&self, name: &str) -> Option<&Value> {
        self.argument(name)
            .or_else(|| self.effective_policy.get(name))
    }

    /// The delivery limit that arguments and policies set: the lowest number wins, a negative one means unlimited
    /// (`Some(None)`), `None` means that nothing is set.
    pub fn lowest_limit(&self) -> Option<Option<u64>> {
        let values = [
            self.argument("delivery-limit"),
            self.effective_policy.get("delivery-limit"),
        ];
        let set: Vec<i64> = values
            .into_iter()
            .flatten()
            .filter_map(Value::as_i64)
            .collect();
        let lowest = set
            .iter()
            .filter_map(|limit| u64::try_from(*limit).ok())
            .min();
        (!set.is_empty()).then_some(lowest)
    }

    /// A setting that is a number, from arguments or policies.
    pub fn number_setting(&self, name: &str) -> Option<u64> {
        self.setting(name).and_then(Value::as_u64)
    }

    pub fn text_setting(&self, name: &str) -> Option<String> {
        self.setting(name)
            .and_then(Value::as_str)
            .map(str::to_owned)
    }

    fn argument(&self, name: &str) -> Option<&Value> {
        self.arguments.get(format!("x-{name}"))
    }
}

fn authorities(config: &Config) -> Vec<Certificate> {
    config
        .certificates
        .cert_chain
        .as_deref()
        .and_then(|pem| Certificate::from_pem_bundle(pem.as_bytes()).ok())
        .unwrap_or_default()
}

/// The count among the queue's figures lags by seconds and so may count a look that is over; the list of consumers does not.
fn other_consumers(answer: &Value) -> Option<u64> {
    let consumers = answer.get("consumer_details")?.as_array()?;
    let others = consumers.iter().filter(|consumer| {
        text(consumer, "consumer_tag").is_none_or(|tag| !tag.starts_with(LOOK_TAG))
    });
    Some(others.count() as u64)
}

/// The broker writes a number, `"unlimited"`, or leaves it out.
fn delivery_limit(value: Option<&Value>) -> Option<Option<u64>> {
    match value? {
        Value::Number(number) => Some(number.as_u64()),
        Value::String(text) if text == "unlimited" => Some(None),
        _ => None,
    }
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn number(value: &Value, name: &str) -> Option<u64> {
    value.get(name).and_then(Value::as_u64)
}

/// Percent-encodes one part of a path.
fn encode(part: &str) -> String {
    part.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_young_queue_has_no_counts_and_an_empty_policy_is_a_list() {
        let queue = QueueInfo::read(&serde_json::json!({
            "name": "q", "type": "quorum", "arguments": {"x-delivery-limit": 3, "x-dead-letter-exchange": ""},
            "effective_policy_definition": []
        }));
        assert_eq!((queue.ready, queue.delivery_limit), (None, None));
        assert_eq!(queue.lowest_limit(), Some(Some(3)));
        assert_eq!(
            queue.text_setting("dead-letter-exchange").as_deref(),
            Some("")
        );
    }

    #[test]
    fn the_lower_limit_wins() {
        let queue = QueueInfo::read(&serde_json::json!({
            "name": "q", "arguments": {"x-delivery-limit": 30},
            "effective_policy_definition": {"delivery-limit": 10}, "delivery_limit": "unlimited"
        }));
        let negative = QueueInfo::read(&serde_json::json!({"arguments": {"x-delivery-limit": -1}}));
        assert_eq!(negative.lowest_limit(), Some(None));
        assert_eq!(QueueInfo::default().lowest_limit(), None);
        assert_eq!(queue.lowest_limit(), Some(Some(10)));
        assert_eq!(queue.delivery_limit, Some(None));
    }

    #[test]
    fn parts_of_a_path_are_encoded() {
        assert_eq!(encode("/"), "%2F");
        assert_eq!(encode("a b?ü"), "a%20b%3F%C3%BC");
    }
}
