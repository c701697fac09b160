//! The promises, one function each, by subject.

pub mod closing;
pub mod cost;
pub mod facts;
pub mod looking;
pub mod offsets;
pub mod publishing;
pub mod removing;
pub mod settling;

use std::fmt;

use futures::future::BoxFuture;

use crate::{Scene, Verdict};

/// One promise. The name is that of the function, which says the promise.
#[derive(Clone, Copy)]
pub struct Check {
    pub name: &'static str,
    pub run: for<'a> fn(&'a Scene<'a>) -> BoxFuture<'a, Verdict>,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! list {
    ($($module:ident::$name:ident,)+) => {
        &[$(Check {
            name: stringify!($name),
            run: |scene| Box::pin($module::$name(scene)),
        }),+]
    };
}

/// All checks in the order in which they run.
pub fn all() -> &'static [Check] {
    list![
        looking::a_look_shows_every_message_in_order,
        looking::a_look_is_repeatable,
        looking::a_look_respects_its_limit,
        looking::an_ended_look_stays_ended,
        looking::an_empty_destination_ends_at_once,
        looking::a_look_shows_what_the_ordinary_client_wrote,
        looking::a_look_at_a_missing_destination_is_not_found,
        looking::deliveries_have_locks_and_places_of_their_own,
        looking::a_cancelled_look_keeps_what_it_holds_until_it_is_closed,
        looking::publishing_during_a_look_disturbs_neither,
        looking::holds_are_told_and_extended,
        looking::a_tail_shows_what_arrives,
        closing::closing_gives_everything_back_once_and_in_order,
        closing::a_dropped_look_gives_back,
        closing::closing_the_session_closes_its_looks,
        cost::asking_for_the_cost_is_harmless,
        cost::the_announced_cost_is_what_happens,
        cost::a_harmful_look_is_refused_without_harm,
        cost::the_list_announces_the_same_cost,
        settling::ack_removes_exactly_the_acked,
        settling::release_gives_back_one,
        settling::dead_letter_sends_to_the_target,
        settling::settle_answers_once_per_lock_in_order,
        settling::a_stale_lock_is_lost,
        settling::what_cannot_be_settled_is_unsupported,
        publishing::published_messages_come_out_the_same,
        publishing::all_byte_values_survive,
        publishing::null_and_empty_bodies_stay_apart,
        publishing::null_and_empty_keys_stay_apart,
        publishing::duplicate_headers_keep_their_order,
        publishing::a_batch_is_answered_in_order,
        publishing::publishing_to_a_missing_destination_creates_nothing,
        publishing::an_unroutable_message_is_an_error,
        publishing::too_large_is_refused,
        publishing::a_receipts_position_can_be_read,
        publishing::an_atomic_batch_is_all_or_nothing,
        publishing::an_exact_partition_is_kept,
        publishing::a_given_time_is_kept,
        offsets::single_positions_can_be_read_again,
        offsets::newest_comes_first,
        offsets::a_look_can_start_at_an_offset,
        offsets::a_look_can_start_at_a_time,
        offsets::a_look_can_be_confined_to_partitions,
        offsets::a_look_can_be_confined_to_positions,
        offsets::gaps_are_counted,
        facts::depth_is_what_is_there,
        facts::a_missing_destination_is_not_found,
        facts::the_list_holds_what_describe_tells,
        facts::dead_letter_links_are_known,
        facts::routes_say_what_exists,
        facts::awkward_names_work,
        removing::purge_removes_everything,
        removing::truncate_deletes_only_what_is_before,
        removing::what_cannot_be_removed_is_unsupported,
        removing::redrive_moves_back_or_is_unsupported,
    ]
}
