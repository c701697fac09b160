//! Reading by offset: any position, newest first, from a time or an offset, with honest gaps.

use std::collections::BTreeMap;

use dlo_core::{Isolation, LookRequest, Message, Position, Start};

use crate::{
    Miss, Scene, Verdict,
    scene::{body, read_to_end, same_messages},
    verdict::{ensure, needs},
};

pub async fn single_positions_can_be_read_again(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(6).await?;
    let capability = scene.capability(&at).await?;
    needs!(capability.fetch, "fetch");
    let seen = scene.look_and_close(&at, 6).await?.deliveries;
    ensure!(seen.len() == 6, "the look showed only {}", seen.len());
    let (first, last) = (&seen[0], &seen[5]);
    let nowhere = match &last.position {
        Position::Offset { partition, offset } => Position::Offset {
            partition: *partition,
            offset: offset + 1_000_000,
        },
        _ => Position::Id {
            id: "no-such-message".to_owned(),
        },
    };
    let asked = [last.position.clone(), nowhere, first.position.clone()];
    let found = scene
        .session
        .fetch(&at, &asked, Isolation::ReadCommitted)
        .await?;
    ensure!(found.len() == 3, "3 positions gave {} answers", found.len());
    ensure!(
        found[1].is_none(),
        "a position that is not there gave a message"
    );
    let found: Vec<Message> = found.into_iter().flatten().map(|d| d.message).collect();
    ensure!(found.len() == 2, "a position that is there gave nothing");
    let expected = [last.message.clone(), first.message.clone()];
    for (found, expected) in found.iter().zip(&expected) {
        same_messages(
            std::slice::from_ref(found),
            std::slice::from_ref(expected),
            &capability,
        )?;
    }
    Ok(())
}

pub async fn newest_comes_first(scene: &Scene<'_>) -> Verdict {
    let at = scene.empty().await?;
    needs!(
        scene.capability(&at).await?.browse_from_offset,
        "browse_from_offset"
    );
    for message in scene.messages(8) {
        scene.fixture.fill(&at, &[message]).await?;
    }
    let request = LookRequest {
        start: Start::Newest,
        ..scene.request(3)
    };
    let seen = scene.look_as(&at, request).await?;
    ensure!(seen.ended, "a look at the newest 3 did not end");
    ensure!(
        seen.deliveries.len() == 3,
        "the newest 3 are {} messages",
        seen.deliveries.len()
    );
    let mut last: BTreeMap<i32, i64> = BTreeMap::new();
    for delivery in &seen.deliveries {
        if let Position::Offset { partition, offset } = delivery.position {
            let before = last.insert(partition, offset);
            ensure!(
                before.is_none_or(|before| offset < before),
                "offset {offset} of partition {partition} comes after {before:?}"
            );
        }
    }
    let times: Vec<_> = seen.deliveries.iter().filter_map(|d| d.time).collect();
    ensure!(
        times.is_sorted_by(|a, b| a >= b),
        "the times are not newest first: {times:?}"
    );
    let newest = body(&scene.fixture.message(scene.flavour, 7));
    ensure!(
        seen.bodies().contains(&newest),
        "the newest message is not among the newest 3: {:?}",
        seen.bodies()
    );
    Ok(())
}

pub async fn a_look_can_start_at_an_offset(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(20).await?;
    needs!(
        scene.capability(&at).await?.browse_from_offset,
        "browse_from_offset"
    );
    let all = scene.look_and_close(&at, 50).await?.deliveries;
    let middle = all
        .iter()
        .find_map(|delivery| match delivery.position {
            Position::Offset { partition, offset } if offset >= 1 => Some((partition, offset)),
            _ => None,
        })
        .ok_or_else(|| Miss::Broken("no partition has two messages".to_owned()))?;
    let request = LookRequest {
        start: Start::Offsets(vec![middle]),
        ..scene.request(50)
    };
    let seen = scene.look_as(&at, request).await?;
    let expected: Vec<_> = all
        .iter()
        .map(|delivery| delivery.position.clone())
        .filter(|position| {
            matches!(position, Position::Offset { partition, offset }
            if *partition == middle.0 && *offset >= middle.1)
        })
        .collect();
    let found: Vec<_> = seen.deliveries.iter().map(|d| d.position.clone()).collect();
    ensure!(found == expected, "from {middle:?} on came {found:?}");
    Ok(())
}

pub async fn a_look_can_start_at_a_time(scene: &Scene<'_>) -> Verdict {
    let at = scene.empty().await?;
    needs!(
        scene.capability(&at).await?.browse_from_time,
        "browse_from_time"
    );
    scene.fixture.fill(&at, &scene.messages(3)).await?;
    // The broker's own times decide, so the clocks need not agree; they have to differ, though.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    scene
        .fixture
        .fill(&at, &scene.messages(6).split_off(3))
        .await?;
    let all = scene.look_and_close(&at, 10).await?.deliveries;
    let later = body(&scene.fixture.message(scene.flavour, 3));
    let start = all
        .iter()
        .find(|delivery| body(&delivery.message) == later)
        .and_then(|delivery| delivery.time)
        .ok_or_else(|| Miss::Broken("a message has no time".to_owned()))?;
    let request = LookRequest {
        start: Start::Time(start),
        ..scene.request(10)
    };
    let seen = scene.look_as(&at, request).await?;
    // A stream finds the chunk that holds the time, so earlier messages of that chunk may come too, but none may miss.
    let bodies = seen.bodies();
    for number in 3..6 {
        let wanted = body(&scene.fixture.message(scene.flavour, number));
        ensure!(
            bodies.contains(&wanted),
            "{wanted} is not shown from its own time on"
        );
    }
    ensure!(
        bodies.len() == 3,
        "{} messages are shown from a time on, not 3",
        bodies.len()
    );
    Ok(())
}

pub async fn a_look_can_be_confined_to_partitions(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(20).await?;
    let described = scene.session.describe(&at).await?;
    needs!(
        described.capability.browse_by_partition,
        "browse_by_partition"
    );
    let all = scene.look_and_close(&at, 50).await?.deliveries;
    let chosen = all
        .iter()
        .find_map(|delivery| match delivery.position {
            Position::Offset { partition, .. } => Some(partition),
            _ => None,
        })
        .ok_or_else(|| Miss::Broken("nothing was shown".to_owned()))?;
    let of_chosen = |position: &Position| matches!(position, Position::Offset { partition, .. } if *partition == chosen);
    let expected = all.iter().filter(|d| of_chosen(&d.position)).count();
    let request = LookRequest {
        partitions: Some(vec![chosen]),
        ..scene.request(50)
    };
    let seen = scene.look_as(&at, request).await?.deliveries;
    ensure!(
        seen.len() == expected && seen.iter().all(|d| of_chosen(&d.position)),
        "partition {chosen} has {expected} messages, {} were shown",
        seen.len()
    );
    Ok(())
}

pub async fn a_look_can_be_confined_to_positions(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(9).await?;
    let capability = scene.capability(&at).await?;
    needs!(capability.browse_is_complete, "browse_is_complete");
    let all = scene.look_and_close(&at, 20).await?.deliveries;
    scene.expect_count(&at, 9).await?;
    ensure!(all.len() == 9, "the look showed {} of 9", all.len());
    let chosen = [all[1].position.clone(), all[4].position.clone()];
    let request = LookRequest {
        start: Start::Positions(chosen.to_vec()),
        ..scene.request(20)
    };
    let seen = scene.look_as(&at, request).await?;
    ensure!(seen.ended, "the look did not end");
    let mut found = seen.bodies();
    let mut expected = vec![body(&all[1].message), body(&all[4].message)];
    found.sort();
    expected.sort();
    ensure!(found == expected, "{found:?} were shown, not {expected:?}");
    scene.expect_count(&at, 9).await?;
    scene.expect_content(&at, &scene.messages(9)).await
}

pub async fn gaps_are_counted(scene: &Scene<'_>) -> Verdict {
    let staged = scene
        .fixture
        .create_with_gaps(scene.flavour, &scene.name())
        .await?;
    let staged = staged.ok_or_else(|| Miss::NotApplicable("no log with gaps".to_owned()))?;
    scene.keep(&staged.at);
    let look = scene.look(&staged.at, staged.records + 100).await?;
    let seen = read_to_end(look.as_ref()).await?;
    look.close().await?;
    let shown = seen.deliveries.len() as u64;
    ensure!(
        shown == staged.records,
        "{shown} records were shown, not {}",
        staged.records
    );
    ensure!(seen.scan.gaps > 0, "no gap was counted");
    if let Some(gaps) = staged.gaps {
        ensure!(
            seen.scan.gaps == gaps,
            "{} gaps were counted, not {gaps}",
            seen.scan.gaps
        );
    }
    ensure!(
        seen.scan.scanned == shown + seen.scan.gaps + seen.scan.errors,
        "{} positions were scanned, but {shown} records and {} gaps found",
        seen.scan.scanned,
        seen.scan.gaps
    );
    newest_over_gaps(scene, &staged).await
}

/// "The newest N" must go back until there are N records, not N offsets.
async fn newest_over_gaps(scene: &Scene<'_>, staged: &crate::Gaps) -> Verdict {
    let request = LookRequest {
        start: Start::Newest,
        ..scene.request(staged.records)
    };
    let newest = scene.look_as(&staged.at, request).await?;
    ensure!(
        newest.deliveries.len() as u64 == staged.records,
        "the newest {} are only {} records",
        staged.records,
        newest.deliveries.len()
    );
    Ok(())
}
