//! The cost of looking: announced before, true afterwards, and a look that would do harm does not happen.

use dlo_core::{Browse, Consent, ErrorKind, LookRequest, Verdict as Judgement};

use crate::{
    Miss, Scene, Verdict,
    verdict::{ensure, needs},
};

pub async fn asking_for_the_cost_is_harmless(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(5).await?;
    needs!(
        scene.capability(&at).await?.browse != Browse::None,
        "browse is None"
    );
    let first = scene.session.cost(&at, &scene.request(5)).await?;
    for _ in 0..30 {
        let again = scene.session.cost(&at, &scene.request(5)).await?;
        ensure!(
            again.looks_left == first.looks_left,
            "asking changed the cost from {first:?} to {again:?}"
        );
    }
    ensure!(!first.line.is_empty(), "the cost has no line for a person");
    scene.expect_count(&at, 5).await?;
    scene.expect_content(&at, &scene.messages(5)).await
}

pub async fn the_announced_cost_is_what_happens(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(5).await?;
    let capability = scene.capability(&at).await?;
    needs!(capability.browse != Browse::None, "browse is None");
    let before = scene.session.cost(&at, &scene.request(5)).await?;
    let first = scene.look_and_close(&at, 5).await?;
    scene.expect_count(&at, 5).await?;
    let second = scene.look_and_close(&at, 5).await?;
    let counted = |seen: &crate::scene::Seen| {
        let counts = seen.deliveries.iter().filter_map(|d| d.delivery_count);
        counts.max().unwrap_or_default()
    };
    let rise = counted(&second).saturating_sub(counted(&first));
    if capability.browse_counts_as_delivery {
        ensure!(rise <= 1, "one look raised a delivery count by {rise}");
    }
    let after = scene.session.cost(&at, &scene.request(5)).await?;
    match (before.looks_left, after.looks_left) {
        (Some(before), Some(after)) => ensure!(
            before.saturating_sub(after) <= 2,
            "two looks used {} of the looks that were left",
            before.saturating_sub(after)
        ),
        (None, Some(after)) => {
            return Err(Miss::Broken(format!(
                "looks were unlimited, and {after} are left after two"
            )));
        }
        _ => {}
    }
    Ok(())
}

pub async fn a_harmful_look_is_refused_without_harm(scene: &Scene<'_>) -> Verdict {
    let staged = scene
        .fixture
        .create_harmful(scene.flavour, &scene.name())
        .await?;
    let at = staged.ok_or_else(|| {
        Miss::NotApplicable("the fixture has no destination that a look would harm".to_owned())
    })?;
    scene.keep(&at);
    let count = scene.fixture.count(&at).await?;
    let unasked = LookRequest {
        consent: Consent::Unasked,
        ..scene.request(10)
    };
    let cost = scene.session.cost(&at, &unasked).await?;
    ensure!(
        cost.verdict >= Judgement::Ask,
        "the harm is not announced: {cost:?}"
    );
    ensure!(
        !cost.reasons.is_empty(),
        "no reason is given for {:?}",
        cost.verdict
    );
    must_be_refused(scene, &at, unasked).await?;
    if cost.verdict == Judgement::Refuse {
        must_be_refused(scene, &at, scene.request(10)).await?;
    }
    scene.expect_count(&at, count).await
}

async fn must_be_refused(
    scene: &Scene<'_>,
    at: &dlo_core::Address,
    request: LookRequest,
) -> Verdict {
    match scene.session.look(at, request).await {
        Ok(_) => Err(Miss::Broken("a harmful look was opened".to_owned())),
        Err(error) => {
            ensure!(
                error.kind() == ErrorKind::Refused,
                "{:?} instead of Refused: {error}",
                error.kind()
            );
            Ok(())
        }
    }
}

pub async fn the_list_announces_the_same_cost(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(3).await?;
    let described = scene.session.describe(&at).await?;
    needs!(
        described.capability.browse != Browse::None,
        "browse is None"
    );
    let asked = scene.session.cost(&at, &LookRequest::new(10_000)).await?;
    ensure!(
        described.look.verdict == asked.verdict,
        "describe announces {:?}, cost {:?}",
        described.look,
        asked
    );
    ensure!(
        !described.look.line.is_empty(),
        "describe does not say what looking costs"
    );
    Ok(())
}
