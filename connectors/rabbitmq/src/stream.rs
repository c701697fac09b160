//! Looking at a stream: read at an offset, hold nothing.
//!
//! Separate because a stream is another kind of thing behind the same protocol: `nack`, `get` and purge on it close the whole
//! connection, and a consumer needs a prefetch and an `x-stream-offset`. See <https://www.rabbitmq.com/docs/streams#consuming>.

use std::{collections::VecDeque, fmt, time::Duration};

use async_trait::async_trait;
use dlo_core::{
    Delivery, Disposition, Error, ErrorKind, Figure, Follow, Hold, Lock, Look, Page, Position,
    Result, Returned, Scan, Start,
};
use futures::StreamExt;
use lapin::{
    Channel, Connection, Consumer,
    message::Delivery as Raw,
    options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions},
    types::{AMQPValue, FieldTable},
};
use tokio::{sync::Mutex, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{connect::answer, take::to_delivery};

const BROKERS_OWN: &[&str] = &["x-stream-offset"];
const PREFETCH: u16 = 500;
/// A stream sends what it has at once; silence for so long means that the end is reached.
const IDLE: Duration = Duration::from_millis(700);

/// A look at a stream.
pub(crate) struct StreamLook {
    queue: String,
    connection: Connection,
    follow: Follow,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    plan: VecDeque<Piece>,
    reader: Option<Reader>,
    /// Records of a stretch that is read forward and handed out backward.
    piece: Vec<Record>,
    /// Records to hand out.
    buffer: VecDeque<Record>,
    left: u64,
    total: Figure<u64>,
    ended: bool,
}

/// One stretch of the log: from an offset up to (without) another.
#[derive(Clone, Debug, PartialEq)]
struct Piece {
    from: From,
    until: Option<u64>,
    /// Read forward, handed out backward.
    newest_first: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum From {
    First,
    /// The last chunk.
    Last,
    Offset(u64),
    /// Seconds since the epoch; a stream begins with the chunk that holds it.
    Time(u64),
}

/// Reads forward from an offset, on a channel of its own.
struct Reader {
    channel: Channel,
    consumer: Consumer,
    piece: Piece,
    /// The first offset wanted: a stream delivers from the beginning of a chunk.
    floor: u64,
}

/// One message of a stream with its offset.
struct Record {
    offset: u64,
    raw: Raw,
}

impl StreamLook {
    /// A look that reads what `start` says, up to `limit` records. `ready` is the queue's own count.
    pub async fn open(
        queue: &str,
        connection: Connection,
        start: &Start,
        limit: u64,
        follow: Follow,
        ready: u64,
    ) -> Result<Self> {
        let plan = match start {
            Start::Newest => newest(&connection, queue, limit, follow).await?,
            Start::Oldest => vec![forward(From::First)],
            Start::Offsets(offsets) => offsets
                .iter()
                .filter(|(partition, _)| *partition == 0)
                .map(|(_, offset)| {
                    forward(From::Offset(u64::try_from(*offset).unwrap_or_default()))
                })
                .collect(),
            Start::Time(time) => {
                let seconds = u64::try_from(time.0.div_euclid(1000)).unwrap_or_default();
                vec![forward(From::Time(seconds))]
            }
            Start::Positions(positions) => {
                positions.iter().filter_map(offset_of).map(single).collect()
            }
        };
        Ok(Self {
            queue: queue.to_owned(),
            connection,
            follow,
            state: Mutex::new(State {
                plan: plan.into(),
                left: limit,
                total: Figure::about(ready),
                ..State::default()
            }),
        })
    }
}

#[async_trait]
impl Look for StreamLook {
    async fn next(&self, max: usize, cancel: &CancellationToken) -> Result<Page> {
        let mut state = self.state.lock().await;
        let max = usize::try_from(state.left)
            .unwrap_or(usize::MAX)
            .min(max.max(1));
        while state.buffer.len() < max && !state.ended {
            let Some(reader) = state.reader.as_mut() else {
                match state.plan.pop_front() {
                    Some(piece) => {
                        state.reader = Some(
                            open_reader(&self.connection, &self.queue, piece, PREFETCH).await?,
                        );
                    }
                    None => state.ended = true,
                }
                continue;
            };
            let next = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    if state.buffer.is_empty() {
                        return Err(Error::cancelled("look at the stream"));
                    }
                    break;
                }
                next = reader.next() => next?,
            };
            let tail = self.follow == Follow::Tail && reader.piece.until.is_none();
            match next {
                Some(record) => state.take(record).await,
                None if tail && state.buffer.is_empty() => {}
                None if tail => break,
                None => state.finish_piece().await,
            }
        }
        Ok(state.page(max))
    }

    async fn settle(&self, locks: &[Lock], _: Disposition) -> Vec<Result<()>> {
        let error = Error::new(
            ErrorKind::Unsupported,
            "settle the message",
            "a stream keeps its messages until its retention removes them",
        );
        locks.iter().map(|_| Err(error.clone())).collect()
    }

    async fn extend(&self) -> Result<Option<Hold>> {
        Ok(None)
    }

    fn hold(&self) -> Option<Hold> {
        None
    }

    async fn close(&self) -> Result<Returned> {
        let mut state = self.state.lock().await;
        state.ended = true;
        state.reader = None;
        if self.connection.status().connected() {
            let _ = answer(
                "close the connection",
                self.connection.close(200, "OK".into()),
            )
            .await;
        }
        Ok(Returned::default())
    }
}

impl fmt::Debug for StreamLook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamLook")
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}

impl State {
    async fn take(&mut self, record: Record) {
        let Some(reader) = &self.reader else { return };
        let last = reader
            .piece
            .until
            .is_some_and(|until| record.offset + 1 >= until);
        if reader.piece.newest_first {
            self.piece.push(record);
        } else {
            self.buffer.push_back(record);
        }
        if last {
            self.finish_piece().await;
        }
    }

    async fn finish_piece(&mut self) {
        let records = std::mem::take(&mut self.piece);
        self.buffer.extend(records.into_iter().rev());
        if let Some(reader) = self.reader.take() {
            let _ = reader.channel.close(200, "OK".into()).await;
        }
    }

    fn page(&mut self, max: usize) -> Page {
        let count = self.buffer.len().min(max);
        self.left -= count as u64;
        let deliveries: Vec<Delivery> = self
            .buffer
            .drain(..count)
            .map(Record::into_delivery)
            .collect();
        let read = self.ended || (self.reader.is_none() && self.plan.is_empty());
        Page {
            scan: Scan {
                scanned: deliveries.len() as u64,
                total: self.total,
                ..Scan::default()
            },
            end: self.left == 0 || (read && self.buffer.is_empty()),
            deliveries,
        }
    }
}

impl Reader {
    /// The next record at or after the floor; `None` when the stream is silent.
    async fn next(&mut self) -> Result<Option<Record>> {
        loop {
            let delivery = match timeout(IDLE, self.consumer.next()).await {
                Ok(Some(delivery)) => {
                    delivery.map_err(|error| crate::error::of("look at the stream", &error))?
                }
                Ok(None) | Err(_) => return Ok(None),
            };
            let offset = stream_offset(&delivery);
            // An ack on a stream only asks for more.
            answer(
                "read on",
                self.channel
                    .basic_ack(delivery.delivery_tag, BasicAckOptions::default()),
            )
            .await?;
            let past_end = self.piece.until.is_some_and(|until| offset >= until);
            if past_end {
                return Ok(None);
            }
            if offset >= self.floor {
                return Ok(Some(Record {
                    offset,
                    raw: delivery,
                }));
            }
        }
    }
}

impl Record {
    fn into_delivery(self) -> Delivery {
        let offset = i64::try_from(self.offset).unwrap_or(i64::MAX);
        to_delivery(
            self.raw,
            Position::Offset {
                partition: 0,
                offset,
            },
            None,
            BROKERS_OWN,
        )
    }
}

/// Reads single offsets again.
pub(crate) async fn fetch(
    connection: &Connection,
    queue: &str,
    positions: &[Position],
) -> Result<Vec<Option<Delivery>>> {
    let mut found = Vec::with_capacity(positions.len());
    for position in positions {
        let Some(offset) = offset_of(position) else {
            found.push(None);
            continue;
        };
        let mut reader = open_reader(connection, queue, single(offset), 50).await?;
        let record = reader
            .next()
            .await?
            .filter(|record| record.offset == offset);
        found.push(record.map(Record::into_delivery));
        let _ = reader.channel.close(200, "OK".into()).await;
    }
    Ok(found)
}

/// The newest records, newest first, as pieces that are read forward and handed out backward.
async fn newest(
    connection: &Connection,
    queue: &str,
    limit: u64,
    follow: Follow,
) -> Result<Vec<Piece>> {
    const PIECE: u64 = 100;
    if follow == Follow::Tail {
        // A tail reads forward: the last `limit` records first, then what arrives.
        let end = end_offset(connection, queue).await?;
        return Ok(vec![forward(From::Offset(end.saturating_sub(limit)))]);
    }
    let (end, mut pieces) = (end_offset(connection, queue).await?, Vec::new());
    let (mut until, floor) = (end, end.saturating_sub(limit));
    while until > floor {
        let from = until.saturating_sub(PIECE).max(floor);
        pieces.push(Piece {
            from: From::Offset(from),
            until: Some(until),
            newest_first: true,
        });
        until = from;
    }
    Ok(pieces)
}

/// The offset after the last record: the last chunk is read until the stream is silent. The queue's own count lags, so it
/// cannot tell.
async fn end_offset(connection: &Connection, queue: &str) -> Result<u64> {
    let mut reader = open_reader(connection, queue, forward(From::Last), PREFETCH).await?;
    let mut end = 0;
    while let Some(record) = reader.next().await? {
        end = record.offset + 1;
    }
    let _ = reader.channel.close(200, "OK".into()).await;
    Ok(end)
}

async fn open_reader(
    connection: &Connection,
    queue: &str,
    piece: Piece,
    prefetch: u16,
) -> Result<Reader> {
    let operation = "look at the stream";
    let channel = answer(operation, connection.create_channel()).await?;
    answer(
        operation,
        channel.basic_qos(prefetch, BasicQosOptions::default()),
    )
    .await?;
    let (offset, floor) = match piece.from {
        From::First => (AMQPValue::LongString("first".into()), 0),
        From::Last => (AMQPValue::LongString("last".into()), 0),
        From::Offset(offset) => (
            AMQPValue::LongLongInt(i64::try_from(offset).unwrap_or(i64::MAX)),
            offset,
        ),
        From::Time(seconds) => (AMQPValue::Timestamp(seconds), 0),
    };
    let mut arguments = FieldTable::default();
    arguments.insert("x-stream-offset".into(), offset);
    let consuming = channel.basic_consume(
        queue.into(),
        "".into(),
        BasicConsumeOptions::default(),
        arguments,
    );
    let consumer = answer(operation, consuming).await?;
    Ok(Reader {
        channel,
        consumer,
        piece,
        floor,
    })
}

fn forward(from: From) -> Piece {
    Piece {
        from,
        until: None,
        newest_first: false,
    }
}

fn single(offset: u64) -> Piece {
    Piece {
        from: From::Offset(offset),
        until: Some(offset + 1),
        newest_first: false,
    }
}

fn offset_of(position: &Position) -> Option<u64> {
    match position {
        Position::Offset {
            partition: 0,
            offset,
        } => u64::try_from(*offset).ok(),
        _ => None,
    }
}

fn stream_offset(raw: &Raw) -> u64 {
    let headers = raw.properties.headers().as_ref();
    match headers.and_then(|headers| headers.inner().get("x-stream-offset")) {
        Some(AMQPValue::LongLongInt(offset)) => u64::try_from(*offset).unwrap_or_default(),
        _ => 0,
    }
}
