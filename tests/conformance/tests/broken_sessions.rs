//! Every check fails when the behaviour it is named after breaks: for each there is a session that breaks just that.

#![expect(clippy::panic, reason = "a test may fail loudly, also in its helpers")]

mod memory;
mod sabotage;

use std::{collections::BTreeSet, sync::Arc};

use dlo_conformance::{Outcome, run_matching};
use memory::MemoryFixture;
use sabotage::{BrokenSession, Sabotage};

/// Which flavour shows it, what is broken, and the check that has to notice.
const CASES: &[(&str, Sabotage, &str)] = &[
    (
        "classic",
        Sabotage::DropsOne,
        "a_look_shows_every_message_in_order",
    ),
    (
        "classic",
        Sabotage::Reverses,
        "a_look_shows_every_message_in_order",
    ),
    ("standard", Sabotage::GivesBackTwice, "a_look_is_repeatable"),
    ("classic", Sabotage::LosesOneOnClose, "a_look_is_repeatable"),
    (
        "classic",
        Sabotage::IgnoresLimit,
        "a_look_respects_its_limit",
    ),
    ("topic", Sabotage::IgnoresLimit, "a_look_respects_its_limit"),
    (
        "classic",
        Sabotage::ForgetsItsEnd,
        "an_ended_look_stays_ended",
    ),
    (
        "topic",
        Sabotage::HangsWhenEmpty,
        "an_empty_destination_ends_at_once",
    ),
    (
        "classic",
        Sabotage::DropsHeaders,
        "a_look_shows_what_the_ordinary_client_wrote",
    ),
    (
        "classic",
        Sabotage::LookCreates,
        "a_look_at_a_missing_destination_is_not_found",
    ),
    (
        "classic",
        Sabotage::OneLockForAll,
        "deliveries_have_locks_and_places_of_their_own",
    ),
    (
        "topic",
        Sabotage::OneLockForAll,
        "deliveries_have_locks_and_places_of_their_own",
    ),
    (
        "topic",
        Sabotage::OnePlaceForAll,
        "deliveries_have_locks_and_places_of_their_own",
    ),
    (
        "classic",
        Sabotage::CancelGivesBack,
        "a_cancelled_look_keeps_what_it_holds_until_it_is_closed",
    ),
    (
        "classic",
        Sabotage::PublishLosesOne,
        "publishing_during_a_look_disturbs_neither",
    ),
    (
        "classic",
        Sabotage::HidesItsHold,
        "holds_are_told_and_extended",
    ),
    ("topic", Sabotage::DeafTail, "a_tail_shows_what_arrives"),
    (
        "classic",
        Sabotage::LosesOneOnClose,
        "closing_gives_everything_back_once_and_in_order",
    ),
    (
        "quorum",
        Sabotage::GivesBackTwice,
        "closing_gives_everything_back_once_and_in_order",
    ),
    (
        "quorum",
        Sabotage::ReportsTooFewReturned,
        "closing_gives_everything_back_once_and_in_order",
    ),
    (
        "classic",
        Sabotage::LeaksWhenDropped,
        "a_dropped_look_gives_back",
    ),
    (
        "classic",
        Sabotage::SessionLeaksLooks,
        "closing_the_session_closes_its_looks",
    ),
    (
        "classic",
        Sabotage::CostTakesOne,
        "asking_for_the_cost_is_harmless",
    ),
    (
        "quorum",
        Sabotage::LooksTwice,
        "the_announced_cost_is_what_happens",
    ),
    (
        "quorum",
        Sabotage::CostHidesHarm,
        "a_harmful_look_is_refused_without_harm",
    ),
    (
        "classic",
        Sabotage::ConsentIsAssumed,
        "a_harmful_look_is_refused_without_harm",
    ),
    (
        "classic",
        Sabotage::ListIsSilentAboutCost,
        "the_list_announces_the_same_cost",
    ),
    (
        "classic",
        Sabotage::AckDoesNothing,
        "ack_removes_exactly_the_acked",
    ),
    ("classic", Sabotage::ReleaseAcks, "release_gives_back_one"),
    (
        "classic",
        Sabotage::DeadLetterAcks,
        "dead_letter_sends_to_the_target",
    ),
    (
        "classic",
        Sabotage::AnswersTooFew,
        "settle_answers_once_per_lock_in_order",
    ),
    (
        "classic",
        Sabotage::SettlesAnything,
        "settle_answers_once_per_lock_in_order",
    ),
    ("classic", Sabotage::SettlesAnything, "a_stale_lock_is_lost"),
    (
        "topic",
        Sabotage::SettlesAnything,
        "what_cannot_be_settled_is_unsupported",
    ),
    (
        "classic",
        Sabotage::PublishDropsHeaders,
        "published_messages_come_out_the_same",
    ),
    (
        "classic",
        Sabotage::PublishesText,
        "all_byte_values_survive",
    ),
    (
        "topic",
        Sabotage::NullBecomesEmpty,
        "null_and_empty_bodies_stay_apart",
    ),
    (
        "topic",
        Sabotage::EmptyBecomesNull,
        "null_and_empty_bodies_stay_apart",
    ),
    (
        "topic",
        Sabotage::NullBecomesEmpty,
        "null_and_empty_keys_stay_apart",
    ),
    (
        "topic",
        Sabotage::EmptyBecomesNull,
        "null_and_empty_keys_stay_apart",
    ),
    (
        "topic",
        Sabotage::KeepsOneOfEachHeader,
        "duplicate_headers_keep_their_order",
    ),
    (
        "classic",
        Sabotage::ReversesAnswers,
        "a_batch_is_answered_in_order",
    ),
    (
        "classic",
        Sabotage::PublishCreates,
        "publishing_to_a_missing_destination_creates_nothing",
    ),
    (
        "classic",
        Sabotage::SwallowsErrors,
        "an_unroutable_message_is_an_error",
    ),
    ("classic", Sabotage::SwallowsErrors, "too_large_is_refused"),
    (
        "topic",
        Sabotage::WrongReceipts,
        "a_receipts_position_can_be_read",
    ),
    (
        "topic",
        Sabotage::IgnoresAtomicity,
        "an_atomic_batch_is_all_or_nothing",
    ),
    (
        "classic",
        Sabotage::IgnoresAtomicity,
        "an_atomic_batch_is_all_or_nothing",
    ),
    (
        "topic",
        Sabotage::IgnoresPartition,
        "an_exact_partition_is_kept",
    ),
    ("topic", Sabotage::IgnoresTime, "a_given_time_is_kept"),
    (
        "topic",
        Sabotage::FetchInvents,
        "single_positions_can_be_read_again",
    ),
    ("topic", Sabotage::IgnoresStart, "newest_comes_first"),
    (
        "topic",
        Sabotage::IgnoresStart,
        "a_look_can_start_at_an_offset",
    ),
    (
        "topic",
        Sabotage::IgnoresStart,
        "a_look_can_start_at_a_time",
    ),
    (
        "topic",
        Sabotage::IgnoresPartitions,
        "a_look_can_be_confined_to_partitions",
    ),
    (
        "classic",
        Sabotage::IgnoresStart,
        "a_look_can_be_confined_to_positions",
    ),
    ("topic", Sabotage::HidesGaps, "gaps_are_counted"),
    ("classic", Sabotage::WrongDepth, "depth_is_what_is_there"),
    (
        "classic",
        Sabotage::DescribesAnything,
        "a_missing_destination_is_not_found",
    ),
    (
        "classic",
        Sabotage::ListsNothing,
        "the_list_holds_what_describe_tells",
    ),
    (
        "classic",
        Sabotage::HidesLinks,
        "dead_letter_links_are_known",
    ),
    (
        "classic",
        Sabotage::RoutesAnywhere,
        "routes_say_what_exists",
    ),
    ("classic", Sabotage::MangledNames, "awkward_names_work"),
    (
        "classic",
        Sabotage::PurgesNothing,
        "purge_removes_everything",
    ),
    (
        "topic",
        Sabotage::TruncatesOneMore,
        "truncate_deletes_only_what_is_before",
    ),
    (
        "topic",
        Sabotage::PurgesNothing,
        "what_cannot_be_removed_is_unsupported",
    ),
    (
        "standard",
        Sabotage::RedrivesNothing,
        "redrive_moves_back_or_is_unsupported",
    ),
    (
        "classic",
        Sabotage::RedrivesNothing,
        "redrive_moves_back_or_is_unsupported",
    ),
];

async fn must_notice(flavour: &'static str, sabotage: Sabotage, check: &str) {
    let wrap = move |inner, broker| -> Arc<dyn dlo_core::Session> {
        Arc::new(BrokenSession {
            inner,
            broker,
            sabotage,
        })
    };
    let fixture = MemoryFixture {
        flavours: vec![flavour],
        ..MemoryFixture::new(Box::new(wrap))
    };
    let report = run_matching(&fixture, check).await;
    let run = report.runs.iter().find(|run| run.check == check);
    match run.map(|run| &run.outcome) {
        Some(Outcome::Broken(_)) => {}
        other => panic!("{check} did not notice {sabotage:?} on {flavour}: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn every_check_notices_what_it_is_there_for() {
    for (flavour, sabotage, check) in CASES {
        must_notice(flavour, *sabotage, check).await;
    }
}

#[test]
fn every_check_has_a_session_that_breaks_it() {
    let covered: BTreeSet<_> = CASES.iter().map(|(_, _, check)| *check).collect();
    let all: BTreeSet<_> = dlo_conformance::checks::all()
        .iter()
        .map(|check| check.name)
        .collect();
    assert_eq!(covered, all);
}
