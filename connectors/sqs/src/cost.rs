//! What a look at a queue costs, worked out from its settings and from what this session has seen, before anything is received.
//!
//! The rule behind it: each receive adds one to a message's count, and giving it back does not take that away. A queue with a
//! redrive policy moves a message to its dead-letter queue when it would be received more than `maxReceiveCount` times. So on a
//! dead-letter queue without a policy the count is only a number; on a source queue a look uses up somebody's tries.
//! <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html>

use dlo_core::{LookCost, LookRequest, Verdict};

use crate::queue::{MAX_IN_FLIGHT, Queue};

/// `highest_seen`: the highest receive count of a message that this session saw in the queue.
pub(crate) fn cost(queue: &Queue, request: &LookRequest, highest_seen: Option<u64>) -> LookCost {
    let mut reasons = Vec::new();
    let mut verdict = Verdict::Fine;
    let mut looks_left = None;
    if let Some(policy) = &queue.redrive {
        let left = policy
            .max_receives
            .saturating_sub(1)
            .saturating_sub(highest_seen.unwrap_or(0));
        looks_left = Some(left);
        let (harm, reason) = source_queue(queue, policy.max_receives, left, highest_seen);
        verdict = harm;
        reasons.push(reason);
    }
    if queue.is_fifo() {
        verdict = verdict.max(Verdict::Warn);
        reasons.push(
            "Only the first messages of each group can be held, and nobody receives the rest of such a group until they are \
             given back."
                .to_owned(),
        );
    }
    if let Some(in_flight) = queue.in_flight.filter(|count| *count > 0) {
        verdict = verdict.max(Verdict::Warn);
        reasons.push(format!(
            "About {in_flight} messages are held by somebody else just now and will not be seen."
        ));
    }
    LookCost {
        verdict,
        line: line(queue, request),
        reasons,
        looks_left,
    }
}

/// The cost at a queue whose settings may not be read: nobody can say what a look would do there.
pub(crate) fn unknown(request: &LookRequest) -> LookCost {
    let limit = grouped(request.limit.min(MAX_IN_FLIGHT));
    LookCost {
        verdict: Verdict::Ask,
        line: format!(
            "holds up to {limit} messages for this session and returns them; raises each receive count by 1, and whether that has a \
             limit here is not known"
        ),
        reasons: vec![
            "The queue's settings cannot be read, so it is not known whether a look would dead-letter messages. Ask for the \
             permission sqs:GetQueueAttributes."
                .to_owned(),
        ],
        looks_left: None,
    }
}

fn source_queue(queue: &Queue, limit: u64, left: u64, seen: Option<u64>) -> (Verdict, String) {
    let target = queue.redrive.as_ref().map_or("", |policy| policy.target());
    match (left, seen) {
        (0, Some(seen)) => (
            Verdict::Refuse,
            format!(
                "A message here was received {seen} times of {limit}: after one more look its next receive moves it to {target}. \
                 Raise maxReceiveCount of {} to look at it.",
                queue.name
            ),
        ),
        (0, None) => (
            Verdict::Refuse,
            format!(
                "maxReceiveCount is {limit}: a look would use up the only try of every message, and the next receive would move it \
                 to {target}. Raise maxReceiveCount of {} to look at it.",
                queue.name
            ),
        ),
        _ => (
            Verdict::Ask,
            format!(
                "This queue moves a message to {target} after {limit} receives, and a look is one of them. Messages that were \
                 received {limit} times already are moved by the look itself; the look stops at the first one that comes near."
            ),
        ),
    }
}

fn line(queue: &Queue, request: &LookRequest) -> String {
    let limit = grouped(request.limit.min(MAX_IN_FLIGHT));
    let counts = match &queue.redrive {
        Some(policy) => format!("counts as one receive of {}", policy.max_receives),
        None => "raises each receive count by 1, which has no limit here".to_owned(),
    };
    format!("holds up to {limit} messages for this session and returns them; {counts}")
}

/// The number with commas between thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::types::QueueAttributeName as Name;

    use super::*;
    use crate::queue::tests::queue;

    fn source(limit: u64) -> Queue {
        let json = format!(
            r#"{{"deadLetterTargetArn":"arn:aws:sqs:r:1:orders-dlq","maxReceiveCount":{limit}}}"#
        );
        queue("orders", &[(Name::RedrivePolicy, &json)])
    }

    fn verdict(queue: &Queue, seen: Option<u64>) -> (Verdict, Option<u64>) {
        let cost = cost(queue, &LookRequest::new(10_000), seen);
        (cost.verdict, cost.looks_left)
    }

    #[test]
    fn a_dead_letter_queue_costs_only_its_count() {
        let cost = cost(
            &queue("orders-dlq", &[]),
            &LookRequest::new(10_000),
            Some(40),
        );
        assert_eq!((cost.verdict, cost.looks_left), (Verdict::Fine, None));
        assert_eq!(
            cost.line,
            "holds up to 10,000 messages for this session and returns them; raises each receive count by 1, which has no limit here"
        );
    }

    #[test]
    fn a_source_queue_is_asked_for_and_at_the_edge_refused() {
        assert_eq!(verdict(&source(5), None), (Verdict::Ask, Some(4)));
        assert_eq!(verdict(&source(5), Some(3)), (Verdict::Ask, Some(1)));
        assert_eq!(verdict(&source(5), Some(4)), (Verdict::Refuse, Some(0)));
        assert_eq!(verdict(&source(1), None), (Verdict::Refuse, Some(0)));
    }

    #[test]
    fn fifo_and_messages_in_flight_warn() {
        assert_eq!(verdict(&queue("q.fifo", &[]), None).0, Verdict::Warn);
        let busy = queue("q", &[(Name::ApproximateNumberOfMessagesNotVisible, "3")]);
        assert_eq!(verdict(&busy, None).0, Verdict::Warn);
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(
            (grouped(7), grouped(1243), grouped(120_000)),
            ("7".to_owned(), "1,243".to_owned(), "120,000".to_owned())
        );
    }
}
