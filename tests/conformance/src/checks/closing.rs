//! The end of a look: everything that is held goes back, once, whichever way the end comes.

use dlo_core::Browse;
use tokio_util::sync::CancellationToken;

use crate::{
    Scene, Verdict,
    scene::read_to_end,
    verdict::{ensure, needs},
};

pub async fn closing_gives_everything_back_once_and_in_order(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(40).await?;
    let by_lock = scene.capability(&at).await?.browse == Browse::ByLock;
    let look = scene.look(&at, 40).await?;
    let shown = read_to_end(look.as_ref()).await?.deliveries.len() as u64;
    let returned = look.close().await?;
    let accounted = returned.given_back + returned.rescued;
    let expected = if by_lock { shown } else { 0 };
    ensure!(
        accounted == expected && returned.lost_hold == 0,
        "{shown} messages were held, but close says {returned:?}"
    );
    let again = look.close().await?;
    ensure!(
        again.given_back == 0,
        "a second close gave back {} messages",
        again.given_back
    );
    scene.expect_count(&at, 40).await?;
    scene.expect_content(&at, &scene.messages(40)).await
}

pub async fn a_dropped_look_gives_back(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(9).await?;
    needs!(
        scene.capability(&at).await?.browse == Browse::ByLock,
        "browse is not ByLock"
    );
    let look = scene.look(&at, 9).await?;
    let page = look.next(5, &CancellationToken::new()).await?;
    ensure!(!page.deliveries.is_empty(), "the look showed nothing");
    drop(look);
    scene.expect_count(&at, 9).await?;
    scene.expect_content(&at, &scene.messages(9)).await
}

pub async fn closing_the_session_closes_its_looks(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(9).await?;
    needs!(
        scene.capability(&at).await?.browse == Browse::ByLock,
        "browse is not ByLock"
    );
    let session = scene.fixture.connect().await?;
    let look = session.look(&at, scene.request(9)).await?;
    look.next(5, &CancellationToken::new()).await?;
    session.close().await?;
    // The handle is still alive: only the end of its session can have given the messages back.
    scene.expect_count(&at, 9).await?;
    drop(look);
    scene.expect_content(&at, &scene.messages(9)).await
}
