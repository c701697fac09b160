//! The arguments. Their doc comments are the manual that `--help` prints.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Dead letters of RabbitMQ, Kafka and Amazon SQS: look without harm, replay, discard, restore, with an audit trail.
///
/// Without a subcommand the window opens.
#[derive(Clone, Debug, Parser)]
#[command(name = "dlo", version, arg_required_else_help = false)]
pub struct Arguments {
    /// Open the window on the built-in demo broker.
    #[arg(long)]
    pub demo: bool,
    /// A profile or URL to open in the window.
    #[arg(long, value_name = "WHERE")]
    pub open: Option<String>,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Destinations with depth, oldest message and what looking costs.
    List(List),
    /// Messages of a destination, without removing them.
    Look(Look),
    /// Publish messages again, then remove the originals.
    Replay(Box<Replay>),
    /// Save messages, then remove them. Where the broker cannot remove: mark them as resolved.
    Discard(Change),
    /// Write messages to a capture file (lossless) or CSV.
    Export(Export),
    /// Publish the messages of a capture file.
    Import(Import),
    /// Put discarded or rescued messages back.
    Restore(Restore),
    /// Let the broker move a whole dead-letter queue by itself (SQS).
    Redrive(Redrive),
    /// Discard everything in a destination, saved first.
    Purge(Change),
    /// Show resolved messages again (brokers that cannot remove).
    Unresolve(Change),
    /// Publish null values for the keys of messages (compacted topics).
    Tombstone(Change),
    /// Delete the resolved beginning of each partition (Kafka DeleteRecords).
    Truncate(Change),
    /// The audit trail: who did what, when, why, to which message, and what the broker answered.
    Audit(Audit),
    /// Runs, or the messages of one run.
    Runs(Runs),
    /// Saved connections.
    Profile {
        #[command(subcommand)]
        command: ProfileCommand,
    },
    /// Longer help on a topic: `query`, `classes`.
    Explain { topic: Topic },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Topic {
    /// The filter language of `--match`.
    Query,
    /// The rules that class failures as transient, throttled, contract, business or bug, and where your own go.
    Classes,
}

#[derive(Clone, Debug, Args)]
pub struct Format {
    /// One JSON object a line.
    #[arg(long)]
    pub json: bool,
}

/// Where: connection and its options.
#[derive(Clone, Debug, Args)]
pub struct Where {
    /// A profile's name or a URL.
    #[arg(value_name = "WHERE")]
    pub place: String,
    /// A schema registry's URL, for decoding.
    #[arg(long, value_name = "URL")]
    pub registry: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub struct List {
    #[command(flatten)]
    pub at: Where,
    /// Only dead-letter destinations.
    #[arg(long)]
    pub dead: bool,
    #[command(flatten)]
    pub format: Format,
}

/// How to look.
#[derive(Clone, Debug, Args)]
pub struct Looking {
    /// Messages at most.
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Where to begin: `newest`, `oldest`, a time (2026-11-30T03:00:00Z), an age (2h), or PARTITION:OFFSET (repeatable with
    /// commas). Queues always begin at their head.
    #[arg(long, value_name = "START")]
    pub from: Option<String>,
    /// Only these partitions.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub partitions: Option<Vec<i32>>,
    /// Which records of transactions to show.
    #[arg(long, value_enum, default_value = "read_committed")]
    pub isolation: Isolation,
    /// Seconds that messages are held at a time; extended while in use.
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub hold: u64,
    /// Accept a look that can harm somebody (read what it says without this first).
    #[arg(long)]
    pub accept_cost: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Isolation {
    ReadCommitted,
    ReadUncommitted,
}

/// Which messages.
#[derive(Clone, Debug, Args)]
#[group(multiple = false)]
pub struct Selecting {
    /// All messages.
    #[arg(long)]
    pub all: bool,
    /// The first so many.
    #[arg(long, value_name = "N")]
    pub first: Option<u64>,
    /// Those that match; see `dlo explain query`.
    #[arg(long = "match", value_name = "QUERY")]
    pub matching: Option<String>,
    /// The one at this position, as `look` prints it. Repeatable.
    #[arg(long = "position", value_name = "P")]
    pub positions: Vec<String>,
}

#[derive(Clone, Debug, Args)]
pub struct Look {
    #[command(flatten)]
    pub at: Where,
    pub destination: String,
    #[command(flatten)]
    pub looking: Looking,
    #[command(flatten)]
    pub selecting: Selecting,
    /// Decode bodies and keys.
    #[arg(long)]
    pub decode: bool,
    /// Decode by this recipe, for example gzip+json.
    #[arg(long, value_name = "RECIPE")]
    pub decode_as: Option<String>,
    /// Also fetch what a message only points to: a body in S3, a Kafka record.
    #[arg(long)]
    pub pointed: bool,
    /// Also messages that are resolved.
    #[arg(long)]
    pub resolved: bool,
    /// Keep waiting for new messages (brokers that read by offset). Ctrl-C ends it.
    #[arg(long)]
    pub follow: bool,
    /// Group by failure instead of listing.
    #[arg(long)]
    pub groups: bool,
    #[command(flatten)]
    pub format: Format,
}

/// Consent to a change.
#[derive(Clone, Debug, Args)]
pub struct Consent {
    /// Why, for the audit trail.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub reason: String,
    /// Yes to everything that must be answered; needed on production profiles.
    #[arg(long)]
    pub yes: bool,
    /// Accept one finding of the plan by its code. Repeatable.
    #[arg(long, value_name = "CODE")]
    pub accept: Vec<String>,
    /// Print the plan and change nothing.
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Clone, Debug, Args)]
pub struct Change {
    #[command(flatten)]
    pub at: Where,
    pub destination: String,
    #[command(flatten)]
    pub selecting: Selecting,
    #[command(flatten)]
    pub looking: Looking,
    #[command(flatten)]
    pub consent: Consent,
    #[command(flatten)]
    pub format: Format,
}

#[derive(Clone, Debug, Args)]
pub struct Replay {
    #[command(flatten)]
    pub change: Change,
    /// Another destination: NAME, queue:NAME, topic:NAME or exchange:NAME/KEY.
    #[arg(long, value_name = "DESTINATION")]
    pub to: Option<String>,
    /// Another broker to publish to: a profile's name or a URL.
    #[arg(long, value_name = "WHERE")]
    pub to_broker: Option<String>,
    /// Between the queue that failed, the exchange it was published to, and the topic it came from.
    #[arg(long, value_enum, conflicts_with = "to")]
    pub via: Option<Via>,
    /// Messages a second at most.
    #[arg(long, value_name = "N")]
    pub rate: Option<u32>,
    /// Send so many first and watch for returns.
    #[arg(long, value_name = "N")]
    pub canary: Option<u64>,
    /// Seconds to watch for returns.
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        requires = "canary"
    )]
    pub watch: u64,
    /// Stop when more than this share comes back, in percent.
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 5.0,
        requires = "canary"
    )]
    pub stop_percent: f64,
    /// Set a value in the body: /json/pointer=JSON. Repeatable, like all edits, which are made in the order set, remove, patch,
    /// replace, jq, headers.
    #[arg(long, value_name = "POINTER=JSON")]
    pub set: Vec<String>,
    /// Remove a value from the body.
    #[arg(long, value_name = "POINTER")]
    pub remove: Vec<String>,
    /// Apply a JSON Patch (RFC 6902) given as JSON.
    #[arg(long, value_name = "JSON")]
    pub patch: Vec<String>,
    /// Replace text in the body: FIND=WITH.
    #[arg(long, value_name = "FIND=WITH")]
    pub replace: Vec<String>,
    /// Change the body with a jq program.
    #[arg(long, value_name = "PROGRAM")]
    pub jq: Vec<String>,
    /// Set a header: NAME=TEXT.
    #[arg(long, value_name = "NAME=TEXT")]
    pub set_header: Vec<String>,
    /// Rename a header: FROM=TO.
    #[arg(long, value_name = "FROM=TO")]
    pub rename_header: Vec<String>,
    /// Remove a header.
    #[arg(long, value_name = "NAME")]
    pub remove_header: Vec<String>,
    /// Keep a header that a replay would strip.
    #[arg(long, value_name = "NAME")]
    pub keep_header: Vec<String>,
    /// Do not add our replay-id and run-id headers.
    #[arg(long)]
    pub no_mark: bool,
    /// Keep the record's timestamp instead of now.
    #[arg(long)]
    pub keep_time: bool,
    /// `key` (by Java's murmur2), `original`, or a partition's number.
    #[arg(long, value_name = "PARTITION", default_value = "key")]
    pub partition: String,
    /// Publish each batch wholly or not at all, in a transaction.
    #[arg(long)]
    pub atomic: bool,
    /// Publish the original inside a wrapper (Lambda destination, EasyNetQ, SNS) instead of the wrapper.
    #[arg(long)]
    pub unwrap: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Via {
    Queue,
    Exchange,
    Topic,
}

#[derive(Clone, Debug, Args)]
pub struct Export {
    #[command(flatten)]
    pub at: Where,
    pub destination: String,
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// For people: a table that loses types and bytes.
    #[arg(long)]
    pub csv: bool,
    #[command(flatten)]
    pub selecting: Selecting,
    #[command(flatten)]
    pub looking: Looking,
    /// Why, for the audit trail.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub reason: String,
    #[command(flatten)]
    pub format: Format,
}

#[derive(Clone, Debug, Args)]
pub struct Import {
    /// The capture file.
    pub file: PathBuf,
    #[command(flatten)]
    pub at: Where,
    /// Where all messages go; without it each goes to the destination it was captured from.
    pub destination: Option<String>,
    #[command(flatten)]
    pub consent: Consent,
    #[command(flatten)]
    pub format: Format,
}

#[derive(Clone, Debug, Args)]
pub struct Restore {
    #[command(flatten)]
    pub at: Where,
    /// Everything discarded from this destination that was not restored yet.
    pub destination: Option<String>,
    /// Everything saved by this run.
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// One saved copy. Repeatable.
    #[arg(long, value_name = "ID")]
    pub id: Vec<i64>,
    /// Put all of it there instead of where it was.
    #[arg(long, value_name = "DESTINATION")]
    pub to: Option<String>,
    /// Only list what could be restored.
    #[arg(long)]
    pub list: bool,
    #[command(flatten)]
    pub consent: Consent,
    #[command(flatten)]
    pub format: Format,
}

#[derive(Clone, Debug, Args)]
pub struct Redrive {
    #[command(flatten)]
    pub at: Where,
    pub destination: String,
    /// Where to; without it each message goes to the queue it came from.
    #[arg(long, value_name = "DESTINATION")]
    pub to: Option<String>,
    /// Messages a second at most.
    #[arg(long, value_name = "N")]
    pub rate: Option<u32>,
    /// List the broker's moves from there.
    #[arg(long)]
    pub list: bool,
    /// Cancel a move.
    #[arg(long, value_name = "ID")]
    pub cancel: Option<String>,
    #[command(flatten)]
    pub consent: Consent,
    #[command(flatten)]
    pub format: Format,
}

#[derive(Clone, Debug, Args)]
pub struct Audit {
    /// What was done, for example replay.
    #[arg(long)]
    pub act: Option<String>,
    #[arg(long)]
    pub who: Option<String>,
    #[arg(long)]
    pub destination: Option<String>,
    #[arg(long)]
    pub outcome: Option<String>,
    #[arg(long)]
    pub run: Option<String>,
    /// Hash of a message's body.
    #[arg(long)]
    pub sha256: Option<String>,
    /// Text anywhere in an entry.
    #[arg(long)]
    pub text: Option<String>,
    /// Since a time or an age (2h, 7d).
    #[arg(long)]
    pub since: Option<String>,
    /// Until a time or an age.
    #[arg(long)]
    pub until: Option<String>,
    /// Entries at most; 0 is all.
    #[arg(long, default_value_t = 1000)]
    pub limit: u64,
    /// Check the hash chain.
    #[arg(long)]
    pub verify: bool,
    /// Write all matching entries to a file.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub format: Format,
}

#[derive(Clone, Debug, Args)]
pub struct Runs {
    /// One run, with its messages.
    pub run: Option<String>,
    /// Say what became of a message whose outcome is unknown: its number.
    #[arg(long, value_name = "NUMBER", requires = "run", requires = "decision")]
    pub resolve: Option<u64>,
    #[arg(long, value_enum)]
    pub decision: Option<Decision>,
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub reason: String,
    #[command(flatten)]
    pub format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Decision {
    /// It arrived at the target.
    Arrived,
    /// It did not arrive.
    Missing,
}

#[derive(Clone, Debug, Subcommand)]
pub enum ProfileCommand {
    /// The saved profiles.
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Save a profile. A password in the URL is kept apart from it.
    Add {
        name: String,
        /// The broker's URL.
        url: String,
        #[arg(long, value_enum, default_value = "normal")]
        mode: Mode,
        #[arg(long, value_name = "URL")]
        registry: Option<String>,
        /// Where secrets are kept: `nowhere` asks the environment at each start.
        #[arg(long, value_enum, default_value = "keychain")]
        keep: Keep,
        /// Map a header of your own to a field of the death: x-error=reason.message. Repeatable.
        #[arg(long, value_name = "HEADER=FIELD")]
        header: Vec<String>,
    },
    /// Save a profile from a Java client.properties or a librdkafka configuration.
    Import {
        name: String,
        file: PathBuf,
        #[arg(long, value_enum, default_value = "normal")]
        mode: Mode,
        #[arg(long, value_enum, default_value = "keychain")]
        keep: Keep,
    },
    /// Forget a profile and its secrets.
    Remove { name: String },
    /// Connect and say who answers.
    Test { name: String },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Mode {
    Normal,
    Production,
    ReadOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Keep {
    Nowhere,
    Keychain,
    /// In a file encrypted with the passphrase in DLO_PASSPHRASE.
    Encrypted,
    PlainText,
}
