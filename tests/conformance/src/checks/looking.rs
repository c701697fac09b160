//! Looking: everything is shown, nothing is lost or reordered, and the person stays in control.

use std::{collections::BTreeSet, time::Duration};

use dlo_core::{Browse, Delivery, ErrorKind, Follow, LookRequest, Message, Start};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    Miss, Scene, Verdict,
    scene::{read_to_end, same_messages},
    verdict::{ensure, needs},
};

pub async fn a_look_shows_every_message_in_order(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(30).await?;
    let capability = scene.capability(&at).await?;
    let seen = scene.look_and_close(&at, 100).await?;
    ensure!(seen.ended, "the look never said that it ended");
    let found = messages(&seen.deliveries);
    if capability.browse_is_complete {
        return same_messages(&found, &scene.messages(30), &capability);
    }
    // An incomplete look may miss messages, but it must show some, and none twice.
    let distinct: BTreeSet<_> = seen.bodies().into_iter().collect();
    ensure!(
        !found.is_empty(),
        "nothing was shown of a destination with 30 messages"
    );
    ensure!(distinct.len() == found.len(), "a message was shown twice");
    Ok(())
}

pub async fn a_look_is_repeatable(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(12).await?;
    let capability = scene.capability(&at).await?;
    for round in 0..3 {
        let seen = scene.look_and_close(&at, 50).await?;
        scene.expect_count(&at, 12).await?;
        if capability.browse_is_complete {
            same_messages(
                &messages(&seen.deliveries),
                &scene.messages(12),
                &capability,
            )
            .map_err(|miss| in_round(round, miss))?;
        }
    }
    scene.expect_content(&at, &scene.messages(12)).await
}

pub async fn a_look_respects_its_limit(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(10).await?;
    let by_lock = scene.capability(&at).await?.browse == Browse::ByLock;
    let look = scene.look(&at, 3).await?;
    let seen = read_to_end(look.as_ref()).await?;
    let shown = seen.deliveries.len();
    ensure!(
        shown <= 3 && shown > 0,
        "a look at 3 messages showed {shown}"
    );
    ensure!(
        seen.ended,
        "the look did not say that its limit was reached"
    );
    if by_lock {
        // Taking more than the limit, even without showing it, would starve the consumers.
        scene.expect_count(&at, 10 - shown as u64).await?;
    }
    look.close().await?;
    scene.expect_count(&at, 10).await
}

pub async fn an_ended_look_stays_ended(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(2).await?;
    let look = scene.look(&at, 10).await?;
    read_to_end(look.as_ref()).await?;
    for _ in 0..3 {
        let page = look.next(5, &CancellationToken::new()).await?;
        ensure!(
            page.end && page.deliveries.is_empty(),
            "after the end came {} messages, end {}",
            page.deliveries.len(),
            page.end
        );
    }
    look.close().await?;
    Ok(())
}

pub async fn an_empty_destination_ends_at_once(scene: &Scene<'_>) -> Verdict {
    let at = scene.empty().await?;
    let look = scene.look(&at, 10).await?;
    // 30 s is far below the time-outs that other tools wait for, and above three empty long polls of SQS.
    let cancel = CancellationToken::new();
    let page = timeout(Duration::from_secs(30), look.next(5, &cancel))
        .await
        .map_err(|_| Miss::Broken("the look of an empty destination hung".to_owned()))??;
    ensure!(
        page.end && page.deliveries.is_empty(),
        "an empty destination did not end"
    );
    look.close().await?;
    Ok(())
}

pub async fn a_look_shows_what_the_ordinary_client_wrote(scene: &Scene<'_>) -> Verdict {
    let at = scene.empty().await?;
    let capability = scene.capability(&at).await?;
    let rich = scene.fixture.rich(scene.flavour);
    scene.fixture.fill(&at, &rich).await?;
    let seen = scene.look_and_close(&at, 100).await?;
    same_messages(&messages(&seen.deliveries), &rich, &capability)
}

pub async fn a_look_at_a_missing_destination_is_not_found(scene: &Scene<'_>) -> Verdict {
    let mut at = scene.empty().await?;
    at.name = scene.name();
    let error = match scene.session.look(&at, scene.request(10)).await {
        Err(error) => error,
        // A lazy connector may find out when it first reads.
        Ok(look) => match look.next(1, &CancellationToken::new()).await {
            Err(error) => error,
            Ok(_) => {
                return Err(Miss::Broken(
                    "a look at a missing destination worked".to_owned(),
                ));
            }
        },
    };
    ensure!(
        error.kind() == ErrorKind::NotFound,
        "{:?} instead of NotFound: {error}",
        error.kind()
    );
    let list = scene.session.destinations().await?;
    ensure!(
        list.iter().all(|known| known.address != at),
        "the look created the destination"
    );
    Ok(())
}

pub async fn deliveries_have_locks_and_places_of_their_own(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(8).await?;
    let by_lock = scene.capability(&at).await?.browse == Browse::ByLock;
    let look = scene.look(&at, 20).await?;
    let seen = read_to_end(look.as_ref()).await?;
    let places: BTreeSet<_> = seen.deliveries.iter().map(|d| &d.position).collect();
    let locks: BTreeSet<_> = seen
        .deliveries
        .iter()
        .filter_map(|d| d.lock.as_ref())
        .collect();
    let shown = seen.deliveries.len();
    ensure!(places.len() == shown, "two messages have one position");
    let expected = if by_lock { shown } else { 0 };
    ensure!(
        locks.len() == expected,
        "{shown} messages have {} different locks",
        locks.len()
    );
    look.close().await?;
    Ok(())
}

pub async fn a_cancelled_look_keeps_what_it_holds_until_it_is_closed(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(10).await?;
    let by_lock = scene.capability(&at).await?.browse == Browse::ByLock;
    let look = scene.look(&at, 10).await?;
    let first = look.next(3, &CancellationToken::new()).await?;
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    match look.next(3, &cancelled).await {
        Ok(_) => {}
        Err(error) => ensure!(
            error.kind() == ErrorKind::Cancelled,
            "cancelling gave {error}"
        ),
    }
    if by_lock {
        let held = look.hold().map_or(0, |hold| hold.messages);
        ensure!(
            held >= first.deliveries.len() as u64,
            "{held} messages are held after the cancel, {} were shown before",
            first.deliveries.len()
        );
        let left = scene.fixture.count(&at).await?;
        ensure!(
            left <= 10 - first.deliveries.len() as u64,
            "cancelling gave messages back before close"
        );
    }
    look.close().await?;
    scene.expect_count(&at, 10).await?;
    scene.expect_content(&at, &scene.messages(10)).await
}

pub async fn publishing_during_a_look_disturbs_neither(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(6).await?;
    let capability = scene.capability(&at).await?;
    needs!(capability.publish, "publish");
    let look = scene.look(&at, 6).await?;
    let all = scene.messages(12);
    let (seen, published) = tokio::join!(
        read_to_end(look.as_ref()),
        scene.publish_surely(&at, &all[6..])
    );
    published?;
    ensure!(seen?.deliveries.len() <= 6, "the look went over its limit");
    look.close().await?;
    scene.expect_count(&at, 12).await?;
    let found = scene.fixture.drain(&at).await?;
    same_messages(&found, &all, &capability)
}

pub async fn holds_are_told_and_extended(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(4).await?;
    let by_lock = scene.capability(&at).await?.browse == Browse::ByLock;
    let look = scene.look(&at, 4).await?;
    let shown = read_to_end(look.as_ref()).await?.deliveries.len() as u64;
    let (told, extended) = (look.hold(), look.extend().await?);
    if by_lock {
        let told = told.ok_or_else(|| Miss::Broken("nothing is said to be held".to_owned()))?;
        let extended = extended.ok_or_else(|| Miss::Broken("extend gave no hold".to_owned()))?;
        ensure!(
            told.messages == shown,
            "{} messages are said to be held, not {shown}",
            told.messages
        );
        ensure!(
            extended.until >= told.until,
            "extending made the hold shorter"
        );
    } else {
        ensure!(
            told.is_none() && extended.is_none(),
            "an offset look says that it holds messages"
        );
    }
    look.close().await?;
    let after = look.hold().map_or(0, |hold| hold.messages);
    ensure!(
        after == 0,
        "{after} messages are said to be held after close"
    );
    Ok(())
}

pub async fn a_tail_shows_what_arrives(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(2).await?;
    needs!(scene.capability(&at).await?.browse_tail, "browse_tail");
    let request = LookRequest {
        start: Start::Newest,
        follow: Follow::Tail,
        ..scene.request(50)
    };
    let look = scene.session.look(&at, request).await?;
    let later = scene.messages(5).split_off(2);
    let (filled, arrived) = tokio::join!(
        scene.fixture.fill(&at, &later),
        wait_for(look.as_ref(), &later)
    );
    filled?;
    look.close().await?;
    arrived
}

/// Reads the tail until all of these messages have arrived.
async fn wait_for(look: &dyn dlo_core::Look, wanted: &[Message]) -> Verdict {
    let cancel = CancellationToken::new();
    let mut missing: Vec<_> = wanted.iter().map(|message| message.body.clone()).collect();
    while !missing.is_empty() {
        let page = timeout(Duration::from_secs(20), look.next(10, &cancel)).await;
        let page = page.map_err(|_| {
            Miss::Broken(format!("the tail never showed {} messages", missing.len()))
        })??;
        let has_ended = page.end;
        missing.retain(|body| {
            !page
                .deliveries
                .iter()
                .any(|delivery| delivery.message.body == *body)
        });
        ensure!(
            missing.is_empty() || !has_ended,
            "the tail ended before it showed {} messages",
            missing.len()
        );
    }
    Ok(())
}

fn messages(deliveries: &[Delivery]) -> Vec<Message> {
    deliveries
        .iter()
        .map(|delivery| delivery.message.clone())
        .collect()
}

fn in_round(round: usize, miss: Miss) -> Miss {
    match miss {
        Miss::Broken(how) => Miss::Broken(format!("look {}: {how}", round + 1)),
        other => other,
    }
}
