//! Facts about destinations: true where they claim to be, and missing is said as missing.

use std::time::Duration;

use dlo_core::{Certainty, Destination, ErrorKind, Figure, Target};

use crate::{
    Miss, Scene, Verdict,
    verdict::{ensure, needs},
};

pub async fn depth_is_what_is_there(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(7).await?;
    // Estimates and management databases lag; a figure that is exact may be polled just as well.
    for _ in 0..75 {
        if fits(scene.session.describe(&at).await?.depth, 7) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let depth = scene.session.describe(&at).await?.depth;
    Err(Miss::Broken(format!(
        "7 messages are there, the depth says {depth:?}"
    )))
}

fn fits(depth: Figure<u64>, there: u64) -> bool {
    match (depth.certainty, depth.value) {
        (Certainty::Unknown, None) => true,
        (Certainty::Exact | Certainty::About, Some(value)) => value == there,
        (Certainty::AtLeast, Some(value)) => value <= there,
        (Certainty::AtMost, Some(value)) => value >= there,
        _ => false,
    }
}

pub async fn a_missing_destination_is_not_found(scene: &Scene<'_>) -> Verdict {
    let mut at = scene.empty().await?;
    at.name = scene.name();
    match scene.session.describe(&at).await {
        Ok(_) => Err(Miss::Broken(
            "a missing destination was described".to_owned(),
        )),
        Err(error) => {
            ensure!(
                error.kind() == ErrorKind::NotFound,
                "{:?} instead of NotFound: {error}",
                error.kind()
            );
            Ok(())
        }
    }
}

pub async fn the_list_holds_what_describe_tells(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(1).await?;
    let described = scene.session.describe(&at).await?;
    let mut listed: Option<Destination> = None;
    for _ in 0..75 {
        let list = scene.session.destinations().await?;
        listed = list.into_iter().find(|known| known.address == at);
        if listed.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let listed =
        listed.ok_or_else(|| Miss::Broken("the destination is not in the list".to_owned()))?;
    ensure!(
        listed.label == described.label && !listed.label.is_empty(),
        "the list calls it {:?}, describe {:?}",
        listed.label,
        described.label
    );
    ensure!(
        listed.capability.browse == described.capability.browse,
        "the list and describe differ about browsing"
    );
    Ok(())
}

pub async fn dead_letter_links_are_known(scene: &Scene<'_>) -> Verdict {
    let staged = scene
        .fixture
        .create_linked(scene.flavour, &scene.name())
        .await?;
    let linked = staged.ok_or_else(|| Miss::NotApplicable("no dead-letter target".to_owned()))?;
    scene.keep(&linked.origin);
    scene.keep(&linked.dead_letters);
    // Management shows a new queue only after some seconds.
    for _ in 0..75 {
        let origin = scene.session.describe(&linked.origin).await?;
        let dead = scene.session.describe(&linked.dead_letters).await?;
        let forward = origin.dead_letters_to.is_some();
        let backward = dead.sources.contains(&linked.origin.name) && dead.holds_dead_letters();
        if forward && backward {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let origin = scene.session.describe(&linked.origin).await?;
    let dead = scene.session.describe(&linked.dead_letters).await?;
    Err(Miss::Broken(format!(
        "the origin's dead letters go to {:?}; the dead-letter destination names the sources {:?} and is {:?}",
        origin.dead_letters_to, dead.sources, dead.dead_letters
    )))
}

pub async fn routes_say_what_exists(scene: &Scene<'_>) -> Verdict {
    let at = scene.empty().await?;
    let capability = scene.capability(&at).await?;
    needs!(capability.publish, "publish");
    let routes = scene.session.routes(&Target::new(at.clone())).await?;
    ensure!(
        routes.exists,
        "an existing destination is said not to exist"
    );
    scene.expect_count(&at, 0).await?;
    let mut missing = Target::new(at);
    missing.address.name = scene.name();
    match scene.session.routes(&missing).await {
        Ok(routes) => ensure!(
            !routes.exists && routes.reaches.is_empty(),
            "a missing destination is said to exist: {routes:?}"
        ),
        Err(error) => ensure!(
            error.kind() == ErrorKind::NotFound,
            "routes to a missing destination gave {error}"
        ),
    }
    Ok(())
}

pub async fn awkward_names_work(scene: &Scene<'_>) -> Verdict {
    let name = scene.fixture.awkward_name(scene.flavour, &scene.name());
    let name =
        name.ok_or_else(|| Miss::NotApplicable("the broker allows only plain names".to_owned()))?;
    let at = scene.fixture.create(scene.flavour, &name).await?;
    scene.keep(&at);
    let messages = scene.messages(3);
    scene.fixture.fill(&at, &messages[..2]).await?;
    let described = scene.session.describe(&at).await?;
    ensure!(
        described.address == at,
        "the name came back as {:?}",
        described.address
    );
    scene.publish_surely(&at, &messages[2..]).await?;
    let shown = scene.look_and_close(&at, 10).await?.deliveries.len();
    ensure!(shown == 3, "{shown} messages were shown, not 3");
    scene.expect_count(&at, 3).await
}
