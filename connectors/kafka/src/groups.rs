//! Consumer groups and how far they have come, without joining them.
//!
//! rdkafka has no call for a group's offsets but a consumer of that group, so these go through librdkafka's C interface,
//! which asks as an administrator does and knows both the classic and the new consumer protocol.

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_char},
    ptr, slice,
    time::{Duration, Instant},
};

use dlo_core::{ConsumerGroup, Error, ErrorKind, GroupLag, Result};
use rdkafka::{bindings as c, error::RDKafkaErrorCode};

use crate::{broker::Broker, certificate::c_string, error::from_code};

const PATIENCE: Duration = Duration::from_secs(8);
/// Beyond so many groups only the first are asked for their offsets: each costs a request.
const MOST_GROUPS: usize = 300;

/// The groups that have committed offsets of a topic.
pub(crate) struct Found {
    pub groups: Vec<ConsumerGroup>,
    /// All groups were looked at, and the brokers answered for each.
    pub complete: bool,
}

/// Groups that have committed offsets of the topic, with their lag to these ends.
///
/// # Errors
/// When the groups cannot be listed. A group that may not be seen is left out.
pub(crate) fn of_topic(broker: &Broker, topic: &str, ends: &BTreeMap<i32, i64>) -> Result<Found> {
    let client = broker.admin().inner().native_ptr();
    let mut listed = list(client)?;
    let mut complete = listed.len() <= MOST_GROUPS;
    listed.truncate(MOST_GROUPS);
    let names: Vec<String> = listed.iter().map(|group| group.name.clone()).collect();
    let mut committed = committed(client, &names, topic);
    complete &= committed.len() == names.len();
    let mut groups = Vec::new();
    for mut group in listed {
        let offsets = committed.remove(&group.name).unwrap_or_default();
        if offsets.is_empty() {
            continue;
        }
        group.lags = lags(&offsets, ends);
        groups.push(group);
    }
    let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
    let members = members(client, &names);
    for group in &mut groups {
        group.members = members.get(&group.name).copied();
    }
    Ok(Found { groups, complete })
}

fn lags(offsets: &BTreeMap<i32, i64>, ends: &BTreeMap<i32, i64>) -> Vec<GroupLag> {
    ends.iter()
        .map(|(partition, end)| {
            let committed = offsets.get(partition).copied();
            GroupLag {
                partition: *partition,
                committed,
                lag: committed.map(|offset| (end - offset).max(0)),
            }
        })
        .collect()
}

fn list(client: *mut c::rd_kafka_t) -> Result<Vec<ConsumerGroup>> {
    let queue = Queue::new(client);
    let options = Options::new(
        client,
        c::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPS,
    );
    // SAFETY: client, options and queue are alive during the call; the library copies the options.
    unsafe { c::rd_kafka_ListConsumerGroups(client, options.0, queue.0) };
    let event = queue
        .next(Instant::now() + PATIENCE)
        .ok_or_else(timed_out)?;
    event.check("list the consumer groups")?;
    let mut groups = Vec::new();
    // SAFETY: the event is of this kind and alive; its groups live as long as it does, and are copied.
    unsafe {
        let result = c::rd_kafka_event_ListConsumerGroups_result(event.0);
        if result.is_null() {
            return Ok(groups);
        }
        let mut count = 0;
        let listed = c::rd_kafka_ListConsumerGroups_result_valid(result, &mut count);
        for group in array(listed, count) {
            groups.push(ConsumerGroup {
                name: text(c::rd_kafka_ConsumerGroupListing_group_id(*group)),
                state: text(c::rd_kafka_consumer_group_state_name(
                    c::rd_kafka_ConsumerGroupListing_state(*group),
                )),
                members: None,
                lags: Vec::new(),
            });
        }
    }
    Ok(groups)
}

/// Committed offsets of the topic by group; a group that did not answer is missing.
fn committed(
    client: *mut c::rd_kafka_t,
    groups: &[String],
    topic: &str,
) -> BTreeMap<String, BTreeMap<i32, i64>> {
    let queue = Queue::new(client);
    let op = c::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS;
    let options = Options::new(client, op);
    let mut asked = 0;
    for name in groups.iter().filter_map(|group| c_string(group)) {
        // SAFETY: the request is made, used and destroyed here; the library copies what it needs. No partitions means all.
        unsafe {
            let mut request = c::rd_kafka_ListConsumerGroupOffsets_new(name.as_ptr(), ptr::null());
            c::rd_kafka_ListConsumerGroupOffsets(client, &mut request, 1, options.0, queue.0);
            c::rd_kafka_ListConsumerGroupOffsets_destroy(request);
        }
        asked += 1;
    }
    let until = Instant::now() + PATIENCE;
    let mut found = BTreeMap::new();
    for _ in 0..asked {
        let Some(event) = queue.next(until) else {
            break;
        };
        if event.check("read a group's offsets").is_err() {
            continue;
        }
        // SAFETY: the event is of this kind and alive; everything below it is copied before it ends.
        unsafe {
            let result = c::rd_kafka_event_ListConsumerGroupOffsets_result(event.0);
            if result.is_null() {
                continue;
            }
            let mut count = 0;
            let groups = c::rd_kafka_ListConsumerGroupOffsets_result_groups(result, &mut count);
            for group in array(groups, count) {
                if c::rd_kafka_group_result_error(*group).is_null() {
                    let offsets = offsets(c::rd_kafka_group_result_partitions(*group), topic);
                    found.insert(text(c::rd_kafka_group_result_name(*group)), offsets);
                }
            }
        }
    }
    found
}

unsafe fn offsets(
    list: *const c::rd_kafka_topic_partition_list_t,
    topic: &str,
) -> BTreeMap<i32, i64> {
    if list.is_null() {
        return BTreeMap::new();
    }
    // SAFETY: the caller's list is alive and says how many elements it has.
    let elements = unsafe {
        array(
            (*list).elems,
            usize::try_from((*list).cnt).unwrap_or_default(),
        )
    };
    elements
        .iter()
        .filter(|element| unsafe { text(element.topic) } == topic && element.offset >= 0)
        .map(|element| (element.partition, element.offset))
        .collect()
}

fn members(client: *mut c::rd_kafka_t, groups: &[String]) -> BTreeMap<String, u32> {
    let names: Vec<_> = groups.iter().filter_map(|group| c_string(group)).collect();
    if names.is_empty() {
        return BTreeMap::new();
    }
    let queue = Queue::new(client);
    let op = c::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS;
    let options = Options::new(client, op);
    let mut pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    // SAFETY: the names live until after the call, which copies them.
    unsafe {
        c::rd_kafka_DescribeConsumerGroups(
            client,
            pointers.as_mut_ptr(),
            pointers.len(),
            options.0,
            queue.0,
        );
    }
    let Some(event) = queue.next(Instant::now() + PATIENCE) else {
        return BTreeMap::new();
    };
    let mut found = BTreeMap::new();
    // SAFETY: as in `list`.
    unsafe {
        let result = c::rd_kafka_event_DescribeConsumerGroups_result(event.0);
        if result.is_null() {
            return found;
        }
        let mut count = 0;
        let described = c::rd_kafka_DescribeConsumerGroups_result_groups(result, &mut count);
        for group in array(described, count) {
            if c::rd_kafka_ConsumerGroupDescription_error(*group).is_null() {
                let members = c::rd_kafka_ConsumerGroupDescription_member_count(*group);
                let name = text(c::rd_kafka_ConsumerGroupDescription_group_id(*group));
                found.insert(name, u32::try_from(members).unwrap_or(u32::MAX));
            }
        }
    }
    found
}

fn timed_out() -> Error {
    Error::new(
        ErrorKind::Unreachable,
        "list the consumer groups",
        "the brokers did not answer in time",
    )
    .advise("Try again.")
}

/// An array of the library's; an empty one may have no address.
unsafe fn array<'a, T>(pointer: *const T, count: usize) -> &'a [T] {
    if pointer.is_null() {
        return &[];
    }
    // SAFETY: the library gave the address of `count` elements.
    unsafe { slice::from_raw_parts(pointer, count) }
}

unsafe fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: names of the library end with NUL.
    unsafe { CStr::from_ptr(pointer) }
        .to_string_lossy()
        .into_owned()
}

/// A queue of answers.
struct Queue(*mut c::rd_kafka_queue_t);

impl Queue {
    fn new(client: *mut c::rd_kafka_t) -> Self {
        // SAFETY: the client is alive.
        Self(unsafe { c::rd_kafka_queue_new(client) })
    }

    fn next(&self, until: Instant) -> Option<Event> {
        let left = until.saturating_duration_since(Instant::now());
        let millis = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: the queue is alive; the event is ours and is destroyed by `Event`.
        let event = unsafe { c::rd_kafka_queue_poll(self.0, millis) };
        (!event.is_null()).then_some(Event(event))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: made in `new`, destroyed once.
        unsafe { c::rd_kafka_queue_destroy(self.0) };
    }
}

struct Event(*mut c::rd_kafka_event_t);

impl Event {
    fn check(&self, operation: &str) -> Result<()> {
        // SAFETY: the event is alive.
        let code: RDKafkaErrorCode = unsafe { c::rd_kafka_event_error(self.0) }.into();
        if code == RDKafkaErrorCode::NoError {
            Ok(())
        } else {
            Err(from_code(code, operation, ""))
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: given by the queue, destroyed once.
        unsafe { c::rd_kafka_event_destroy(self.0) };
    }
}

struct Options(*mut c::rd_kafka_AdminOptions_t);

impl Options {
    fn new(client: *mut c::rd_kafka_t, operation: c::rd_kafka_admin_op_t) -> Self {
        // SAFETY: the client is alive; the text for an error is ours, and a refused time-out leaves the default.
        unsafe {
            let options = c::rd_kafka_AdminOptions_new(client, operation);
            let mut text = [0 as c_char; 128];
            let millis = i32::try_from(PATIENCE.as_millis()).unwrap_or(i32::MAX);
            c::rd_kafka_AdminOptions_set_request_timeout(
                options,
                millis,
                text.as_mut_ptr(),
                text.len(),
            );
            Self(options)
        }
    }
}

impl Drop for Options {
    fn drop(&mut self) {
        // SAFETY: made in `new`, destroyed once.
        unsafe { c::rd_kafka_AdminOptions_destroy(self.0) };
    }
}
