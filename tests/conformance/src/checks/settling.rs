//! Settling: exactly what was asked, one answer per lock, and a lock that is gone says so.

use dlo_core::{Delivery, Disposition, ErrorKind, Lock, Look, Message};

use crate::{
    Miss, Scene, Verdict,
    scene::{body, read_to_end, same_messages},
    verdict::{ensure, needs},
};

pub async fn ack_removes_exactly_the_acked(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(6).await?;
    let capability = scene.capability(&at).await?;
    needs!(capability.settle_ack, "settle_ack");
    let look = scene.look(&at, 6).await?;
    let seen = read_to_end(look.as_ref()).await?.deliveries;
    ensure!(seen.len() >= 3, "the look showed only {}", seen.len());
    let acked = [&seen[0], &seen[2]];
    all_ok(look.as_ref(), &locks(&acked), Disposition::Ack).await?;
    let returned = look.close().await?;
    ensure!(
        returned.given_back == seen.len() as u64 - 2,
        "2 of {} were acked, but {} were given back",
        seen.len(),
        returned.given_back
    );
    scene.expect_count(&at, 4).await?;
    let rest = without(scene.messages(6), &acked);
    scene.expect_content(&at, &rest).await
}

pub async fn release_gives_back_one(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(5).await?;
    needs!(
        scene.capability(&at).await?.settle_release,
        "settle_release"
    );
    let look = scene.look(&at, 5).await?;
    let seen = read_to_end(look.as_ref()).await?.deliveries;
    let Some(first) = seen.first() else {
        return Err(Miss::Broken("the look showed nothing".to_owned()));
    };
    all_ok(look.as_ref(), &locks(&[first]), Disposition::Release).await?;
    let held = look.hold().map_or(0, |hold| hold.messages);
    ensure!(
        held == seen.len() as u64 - 1,
        "{held} are held after one of {} was released",
        seen.len()
    );
    look.close().await?;
    scene.expect_count(&at, 5).await?;
    // Which place a single released message gets is not promised, only that nothing is lost or doubled.
    let mut found: Vec<_> = scene.fixture.drain(&at).await?.iter().map(body).collect();
    let mut expected: Vec<_> = scene.messages(5).iter().map(body).collect();
    found.sort();
    expected.sort();
    ensure!(found == expected, "{found:?} are there, not {expected:?}");
    Ok(())
}

pub async fn dead_letter_sends_to_the_target(scene: &Scene<'_>) -> Verdict {
    let staged = scene
        .fixture
        .create_linked(scene.flavour, &scene.name())
        .await?;
    let linked = staged.ok_or_else(|| Miss::NotApplicable("no dead-letter target".to_owned()))?;
    scene.keep(&linked.origin);
    scene.keep(&linked.dead_letters);
    needs!(
        scene.capability(&linked.origin).await?.settle_dead_letter,
        "settle_dead_letter"
    );
    scene
        .fixture
        .fill(&linked.origin, &scene.messages(3))
        .await?;
    let look = scene.look(&linked.origin, 3).await?;
    let seen = read_to_end(look.as_ref()).await?.deliveries;
    let chosen: Vec<_> = seen.iter().take(1).collect();
    all_ok(look.as_ref(), &locks(&chosen), Disposition::DeadLetter).await?;
    look.close().await?;
    scene.expect_count(&linked.dead_letters, 1).await?;
    scene.expect_count(&linked.origin, 2).await?;
    let moved = scene.fixture.drain(&linked.dead_letters).await?;
    let expected = chosen.first().map(|delivery| body(&delivery.message));
    ensure!(
        moved.first().map(body) == expected,
        "another message was dead-lettered"
    );
    Ok(())
}

pub async fn settle_answers_once_per_lock_in_order(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(4).await?;
    needs!(scene.capability(&at).await?.settle_ack, "settle_ack");
    let look = scene.look(&at, 4).await?;
    let seen = read_to_end(look.as_ref()).await?.deliveries;
    ensure!(seen.len() >= 2, "the look showed only {}", seen.len());
    let good = locks(&[&seen[0], &seen[1]]);
    let mixed = [
        good[0].clone(),
        Lock::new("no lock of ours"),
        good[1].clone(),
    ];
    let answers = look.settle(&mixed, Disposition::Ack).await;
    ensure!(answers.len() == 3, "3 locks got {} answers", answers.len());
    ensure!(
        answers[0].is_ok() && answers[2].is_ok(),
        "a good lock was refused beside a bad one: {answers:?}"
    );
    must_be_lost(&answers[1])?;
    let none = look.settle(&[], Disposition::Ack).await;
    ensure!(none.is_empty(), "no lock got {} answers", none.len());
    look.close().await?;
    scene.expect_count(&at, 2).await
}

pub async fn a_stale_lock_is_lost(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(4).await?;
    needs!(scene.capability(&at).await?.settle_ack, "settle_ack");
    let look = scene.look(&at, 4).await?;
    let seen = read_to_end(look.as_ref()).await?.deliveries;
    ensure!(seen.len() >= 2, "the look showed only {}", seen.len());
    let used = locks(&[&seen[0]]);
    all_ok(look.as_ref(), &used, Disposition::Ack).await?;
    for answer in look.settle(&used, Disposition::Ack).await {
        must_be_lost(&answer)?;
    }
    look.close().await?;
    let given_back = locks(&[&seen[1]]);
    let answers = look.settle(&given_back, Disposition::Ack).await;
    ensure!(
        answers.len() == 1,
        "1 lock got {} answers after close",
        answers.len()
    );
    must_be_lost(&answers[0])?;
    scene.expect_count(&at, 3).await
}

pub async fn what_cannot_be_settled_is_unsupported(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(2).await?;
    let capability = scene.capability(&at).await?;
    let missing = [
        (Disposition::Ack, capability.settle_ack),
        (Disposition::Release, capability.settle_release),
        (Disposition::DeadLetter, capability.settle_dead_letter),
    ];
    let missing: Vec<_> = missing.into_iter().filter(|(_, can)| !can).collect();
    needs!(!missing.is_empty(), "everything can be settled");
    let look = scene.look(&at, 2).await?;
    let seen = read_to_end(look.as_ref()).await?.deliveries;
    let lock = seen
        .first()
        .and_then(|delivery| delivery.lock.clone())
        .unwrap_or_else(|| Lock::new("none"));
    for (how, _) in missing {
        for answer in look.settle(std::slice::from_ref(&lock), how).await {
            let kind = answer.map_err(|error| error.kind());
            ensure!(
                kind == Err(ErrorKind::Unsupported),
                "{how:?} is no capability, but answered {kind:?}"
            );
        }
    }
    look.close().await?;
    let found = scene.fixture.drain(&at).await?;
    same_messages(&found, &scene.messages(2), &capability)
}

fn locks(deliveries: &[&Delivery]) -> Vec<Lock> {
    deliveries
        .iter()
        .filter_map(|delivery| delivery.lock.clone())
        .collect()
}

async fn all_ok(look: &dyn Look, locks: &[Lock], how: Disposition) -> Verdict {
    let answers = look.settle(locks, how).await;
    ensure!(
        answers.len() == locks.len() && !answers.is_empty(),
        "{} locks got {} answers",
        locks.len(),
        answers.len()
    );
    for answer in answers {
        answer?;
    }
    Ok(())
}

fn must_be_lost(answer: &dlo_core::Result<()>) -> Verdict {
    let kind = answer.as_ref().map_err(dlo_core::Error::kind);
    ensure!(
        kind == Err(ErrorKind::LockLost),
        "a lock that is not held answered {kind:?}, not LockLost"
    );
    Ok(())
}

fn without(messages: Vec<Message>, removed: &[&Delivery]) -> Vec<Message> {
    let gone: Vec<_> = removed.iter().map(|d| &d.message.body).collect();
    messages
        .into_iter()
        .filter(|message| !gone.contains(&&message.body))
        .collect()
}
