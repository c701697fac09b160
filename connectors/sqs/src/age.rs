//! How old the oldest message is, which SQS tells only through CloudWatch, and when the first message expires.

use std::time::{Duration, SystemTime};

use aws_sdk_cloudwatch::{
    Client,
    types::{Dimension, Statistic},
};
use dlo_core::{Figure, Millis, Result};

use crate::{error::Doing, queue::Queue};

/// CloudWatch gets the metric once a minute, some minutes late.
const WINDOW: Duration = Duration::from_secs(10 * 60);

/// The age of the oldest message, as CloudWatch knows it; `None` when it has no recent value.
///
/// In a dead-letter queue it counts from the move, not from the original send.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html>
pub(crate) async fn oldest(client: &Client, queue: &str) -> Result<Option<Duration>> {
    let doing = Doing::new(
        "read the age of the oldest message",
        "cloudwatch:GetMetricStatistics",
    )
    .at(queue);
    let now = SystemTime::now();
    let answer = client
        .get_metric_statistics()
        .namespace("AWS/SQS")
        .metric_name("ApproximateAgeOfOldestMessage")
        .dimensions(Dimension::builder().name("QueueName").value(queue).build())
        .start_time((now - WINDOW).into())
        .end_time(now.into())
        .period(60)
        .statistics(Statistic::Maximum)
        .send()
        .await
        .map_err(|error| doing.failed(error))?;
    let points = answer.datapoints.unwrap_or_default();
    let newest = points
        .iter()
        .filter_map(|point| Some((point.timestamp?.secs(), point.maximum?)))
        .max_by_key(|(time, _)| *time);
    Ok(newest.and_then(|(_, age)| Duration::try_from_secs_f64(age).ok()))
}

/// What the ages known so far say about a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ages {
    /// From CloudWatch.
    pub metric: Option<Duration>,
    /// The earliest send time among the messages that this session saw.
    pub seen: Option<Millis>,
}

/// The time of the oldest message. What was only seen says "at least": there may be older ones.
pub(crate) fn oldest_figure(ages: Ages, now: Millis) -> Figure<Millis> {
    match (ages.metric.map(|age| before(now, age)), ages.seen) {
        (Some(metric), Some(seen)) if seen < metric => Figure::at_least(seen),
        (Some(metric), _) => Figure::about(metric),
        (None, Some(seen)) => Figure::at_least(seen),
        (None, None) => Figure::unknown(),
    }
}

/// When the first message expires. For a standard dead-letter queue CloudWatch's age counts from the move while expiry counts
/// from the original send, so the real time is at most what follows from it. For FIFO both count from the move.
pub(crate) fn expires_figure(
    queue: &Queue,
    ages: Ages,
    dead_letter_queue: DeadLetterQueue,
    now: Millis,
) -> Figure<Millis> {
    let keep = i64::try_from(queue.retention.as_millis()).unwrap_or(i64::MAX);
    let by_metric = ages.metric.map(|age| before(now, age).plus(keep));
    let by_seen = ages
        .seen
        .filter(|_| !queue.is_fifo())
        .map(|sent| sent.plus(keep));
    let counts_from_send = queue.is_fifo() || dead_letter_queue == DeadLetterQueue::No;
    match (by_metric, by_seen) {
        (Some(metric), None) if counts_from_send => Figure::about(metric),
        (Some(metric), Some(seen)) => Figure::at_most(metric.min(seen)),
        (Some(time), None) | (None, Some(time)) => Figure::at_most(time),
        (None, None) => Figure::unknown(),
    }
}

/// Whether messages are moved into the queue by SQS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeadLetterQueue {
    Yes,
    No,
}

fn before(now: Millis, age: Duration) -> Millis {
    now.plus(-i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::types::QueueAttributeName as Name;

    use super::*;
    use crate::queue::tests::queue;

    const NOW: Millis = Millis(1_000_000);

    fn ages(metric: Option<u64>, seen: Option<i64>) -> Ages {
        Ages {
            metric: metric.map(Duration::from_secs),
            seen: seen.map(Millis),
        }
    }

    #[test]
    fn the_metric_is_about_and_what_was_seen_is_at_least() {
        assert_eq!(
            oldest_figure(ages(Some(100), None), NOW),
            Figure::about(Millis(900_000))
        );
        assert_eq!(
            oldest_figure(ages(None, Some(5)), NOW),
            Figure::at_least(Millis(5))
        );
        assert_eq!(
            oldest_figure(ages(Some(100), Some(5)), NOW),
            Figure::at_least(Millis(5))
        );
        assert_eq!(oldest_figure(Ages::default(), NOW), Figure::unknown());
    }

    #[test]
    fn expiry_counts_from_the_send_in_standard_and_from_the_move_in_fifo_queues() {
        let retention = [(Name::MessageRetentionPeriod, "1000")];
        let (standard, fifo) = (queue("q", &retention), queue("q.fifo", &retention));
        let metric = ages(Some(100), None);
        use DeadLetterQueue::{No, Yes};
        assert_eq!(
            expires_figure(&standard, metric, No, NOW),
            Figure::about(Millis(1_900_000))
        );
        assert_eq!(
            expires_figure(&standard, metric, Yes, NOW),
            Figure::at_most(Millis(1_900_000))
        );
        assert_eq!(
            expires_figure(&fifo, metric, Yes, NOW),
            Figure::about(Millis(1_900_000))
        );
        assert_eq!(
            expires_figure(&standard, ages(None, Some(500_000)), Yes, NOW),
            Figure::at_most(Millis(1_500_000))
        );
        assert_eq!(
            expires_figure(&fifo, ages(None, Some(500_000)), Yes, NOW),
            Figure::unknown()
        );
    }
}
