//! Removing and moving in bulk: wholly, only where it is asked for, and refused where the broker cannot.

use std::time::Duration;

use dlo_core::{Certainty, ErrorKind, Position, RedriveRequest, RedriveState};

use crate::{
    Miss, Scene, Verdict,
    verdict::{ensure, needs},
};

pub async fn purge_removes_everything(scene: &Scene<'_>) -> Verdict {
    let (at, other) = (scene.filled(9).await?, scene.filled(2).await?);
    needs!(scene.capability(&at).await?.purge, "purge");
    let removed = scene.session.purge(&at).await?;
    if removed.certainty == Certainty::Exact {
        ensure!(
            removed.value == Some(9),
            "purge says that it removed {:?} of 9",
            removed.value
        );
    }
    scene.expect_count(&at, 0).await?;
    scene.expect_count(&other, 2).await
}

pub async fn truncate_deletes_only_what_is_before(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(20).await?;
    needs!(scene.capability(&at).await?.truncate, "truncate");
    let all = scene.look_and_close(&at, 50).await?.deliveries;
    let (partition, before) = all
        .iter()
        .find_map(|delivery| match delivery.position {
            Position::Offset { partition, offset } if offset >= 1 => Some((partition, offset)),
            _ => None,
        })
        .ok_or_else(|| Miss::Broken("no partition has two messages".to_owned()))?;
    scene.session.truncate(&at, &[(partition, before)]).await?;
    let stays = |position: &Position| !matches!(position, Position::Offset { partition: p, offset } if *p == partition && *offset < before);
    let left = scene.look_and_close(&at, 50).await?.deliveries;
    let expected = all.iter().filter(|d| stays(&d.position)).count();
    ensure!(
        left.len() == expected && left.iter().all(|d| stays(&d.position)),
        "{} messages are left of {}, not {expected}",
        left.len(),
        all.len()
    );
    Ok(())
}

pub async fn what_cannot_be_removed_is_unsupported(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(2).await?;
    let capability = scene.capability(&at).await?;
    needs!(
        !(capability.purge && capability.truncate),
        "everything can be removed"
    );
    if !capability.purge {
        let kind = scene.session.purge(&at).await.map_err(|e| e.kind());
        ensure!(
            kind.is_err_and(|kind| kind == ErrorKind::Unsupported),
            "purge is no capability, but did not answer Unsupported"
        );
    }
    if !capability.truncate {
        let kind = scene.session.truncate(&at, &[(0, 1)]).await;
        let kind = kind.map_err(|e| e.kind());
        ensure!(
            kind == Err(ErrorKind::Unsupported),
            "truncate is no capability, but answered {kind:?}"
        );
    }
    scene.expect_count(&at, 2).await
}

pub async fn redrive_moves_back_or_is_unsupported(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(2).await?;
    let request = RedriveRequest {
        from: at.clone(),
        to: None,
        rate: None,
    };
    if !scene.capability(&at).await?.redrive {
        let kind = scene.session.redrive(&request).await.map_err(|e| e.kind());
        ensure!(
            kind.is_err(),
            "redrive is no capability here, but it was started"
        );
        scene.expect_count(&at, 2).await?;
    }
    moves_to_the_origin(scene).await
}

async fn moves_to_the_origin(scene: &Scene<'_>) -> Verdict {
    let staged = scene
        .fixture
        .create_linked(scene.flavour, &scene.name())
        .await?;
    let Some(linked) = staged else { return Ok(()) };
    scene.keep(&linked.origin);
    scene.keep(&linked.dead_letters);
    if !scene.capability(&linked.dead_letters).await?.redrive {
        return Ok(());
    }
    let messages = scene.messages(4);
    scene.fixture.fill(&linked.dead_letters, &messages).await?;
    let request = RedriveRequest {
        from: linked.dead_letters.clone(),
        to: Some(linked.origin.clone()),
        rate: None,
    };
    let task = scene.session.redrive(&request).await?;
    for _ in 0..150 {
        let tasks = scene.session.redrives(&linked.dead_letters).await?;
        let state = tasks.iter().find(|known| known.id == task.id);
        // Some servers forget a task as soon as it is done.
        if state.is_none_or(|known| known.state == RedriveState::Completed) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    scene.expect_count(&linked.origin, 4).await?;
    scene.expect_count(&linked.dead_letters, 0).await
}
