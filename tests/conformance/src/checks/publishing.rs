//! Publishing: byte for byte, one true answer per message, and nothing is created on the way.

use bytes::Bytes;
use dlo_core::{
    Atomicity, ErrorKind, Header, Isolation, Message, Millis, Outgoing, Partitioning, Position,
    Value,
};

use crate::{
    Miss, Scene, Verdict,
    scene::{outgoing, same_messages},
    verdict::{ensure, needs},
};

pub async fn published_messages_come_out_the_same(scene: &Scene<'_>) -> Verdict {
    let at = scene.empty().await?;
    needs!(scene.capability(&at).await?.publish, "publish");
    let rich = scene.fixture.rich(scene.flavour);
    scene.publish_surely(&at, &rich).await?;
    scene.expect_count(&at, rich.len() as u64).await?;
    scene.expect_content(&at, &rich).await
}

pub async fn all_byte_values_survive(scene: &Scene<'_>) -> Verdict {
    let at = scene.empty().await?;
    needs!(scene.capability(&at).await?.publish, "publish");
    needs!(
        scene.fixture.takes_any_bytes(scene.flavour),
        "bodies are text"
    );
    let message = Message {
        body: Some((0..=255).collect::<Vec<u8>>().into()),
        ..scene.fixture.message(scene.flavour, 0)
    };
    round_trip(scene, &at, &[message]).await
}

pub async fn null_and_empty_bodies_stay_apart(scene: &Scene<'_>) -> Verdict {
    let at = scene.empty().await?;
    let capability = scene.capability(&at).await?;
    needs!(capability.publish, "publish");
    let plain = scene.fixture.message(scene.flavour, 0);
    let with = |body: Option<Bytes>, key: &'static str| Message {
        key: capability
            .publish_with_key
            .then(|| Bytes::from_static(key.as_bytes())),
        body,
        ..plain.clone()
    };
    let (null, empty) = (with(None, "null"), with(Some(Bytes::new()), "empty"));
    let cases = [
        (null, capability.publish_with_null_body, "null"),
        (empty, capability.publish_with_empty_body, "empty"),
    ];
    let mut sent = Vec::new();
    for (message, can, word) in cases {
        let answer = scene.publish(&at, std::slice::from_ref(&message)).await;
        let stored = answer.first().is_some_and(Result::is_ok);
        ensure!(
            stored == can,
            "a body that is {word} answered {answer:?}, while the capability says {can}"
        );
        sent.extend(can.then_some(message));
    }
    let found = scene.fixture.drain(&at).await?;
    same_messages(&found, &sent, &capability)
}

pub async fn null_and_empty_keys_stay_apart(scene: &Scene<'_>) -> Verdict {
    let at = scene.empty().await?;
    let capability = scene.capability(&at).await?;
    needs!(
        capability.publish && capability.publish_with_key,
        "publish_with_key"
    );
    let keys = [
        None,
        Some(Bytes::new()),
        Some(Bytes::from_static(b"null")),
        Some(Bytes::from_static(&[0, 255, 1])),
    ];
    let messages: Vec<_> = keys
        .into_iter()
        .enumerate()
        .map(|(number, key)| Message {
            key,
            ..scene.fixture.message(scene.flavour, number)
        })
        .collect();
    round_trip(scene, &at, &messages).await
}

pub async fn duplicate_headers_keep_their_order(scene: &Scene<'_>) -> Verdict {
    let at = scene.empty().await?;
    let capability = scene.capability(&at).await?;
    needs!(
        capability.publish_with_duplicate_headers,
        "publish_with_duplicate_headers"
    );
    let header = |value: Value| Header::new("twice", "bytes", value);
    let message = Message {
        headers: vec![
            header(Value::text("second letter")),
            Header::new("between", "bytes", Value::Null),
            header(Value::text("a")),
            header(Value::text("")),
            header(Value::Null),
        ],
        ..scene.fixture.message(scene.flavour, 0)
    };
    round_trip(scene, &at, &[message]).await
}

pub async fn a_batch_is_answered_in_order(scene: &Scene<'_>) -> Verdict {
    let at = scene.empty().await?;
    needs!(scene.capability(&at).await?.publish, "publish");
    let mut missing = at.clone();
    missing.name = scene.name();
    let messages = scene.messages(4);
    let batch = vec![
        outgoing(&at, messages[0].clone()),
        outgoing(&missing, messages[1].clone()),
        outgoing(&at, messages[2].clone()),
        outgoing(&at, messages[3].clone()),
    ];
    let answers = scene.session.publish(batch, Atomicity::Each).await;
    ensure!(
        answers.len() == 4,
        "4 messages got {} answers",
        answers.len()
    );
    ensure!(
        [0, 2, 3].iter().all(|place| answers[*place].is_ok()),
        "a message failed because of another one: {answers:?}"
    );
    ensure!(
        answers[1].is_err(),
        "publishing to a missing destination worked"
    );
    let none = scene.session.publish(Vec::new(), Atomicity::Each).await;
    ensure!(none.is_empty(), "no message got {} answers", none.len());
    let stored = [0, 2, 3].map(|place: usize| messages[place].clone());
    scene.expect_content(&at, &stored).await
}

pub async fn publishing_to_a_missing_destination_creates_nothing(scene: &Scene<'_>) -> Verdict {
    let at = scene.empty().await?;
    needs!(scene.capability(&at).await?.publish, "publish");
    let mut missing = at.clone();
    missing.name = scene.name();
    let answers = scene.publish(&missing, &scene.messages(1)).await;
    let kind = answers
        .first()
        .and_then(|answer| answer.as_ref().err())
        .map(dlo_core::Error::kind);
    let surely_not = [
        ErrorKind::NotFound,
        ErrorKind::Unroutable,
        ErrorKind::PermissionDenied,
    ];
    ensure!(
        kind.is_some_and(|kind| surely_not.contains(&kind)),
        "publishing to a missing destination answered {answers:?}"
    );
    let list = scene.session.destinations().await?;
    ensure!(
        list.iter().all(|known| known.address != missing),
        "publishing created the destination"
    );
    Ok(())
}

pub async fn an_unroutable_message_is_an_error(scene: &Scene<'_>) -> Verdict {
    let staged = scene.fixture.create_unroutable(&scene.name()).await?;
    let target =
        staged.ok_or_else(|| Miss::NotApplicable("every address that exists stores".to_owned()))?;
    scene.keep(&target.address);
    let batch = vec![Outgoing {
        target,
        message: Message {
            // A plain one: the address need not be of the flavour's kind.
            body: scene.fixture.message(scene.flavour, 0).body,
            ..Message::default()
        },
        time: None,
    }];
    let answers = scene.session.publish(batch, Atomicity::Each).await;
    let kind = answers
        .first()
        .and_then(|answer| answer.as_ref().err())
        .map(dlo_core::Error::kind);
    ensure!(
        kind == Some(ErrorKind::Unroutable),
        "a message that no queue gets answered {answers:?}"
    );
    Ok(())
}

pub async fn too_large_is_refused(scene: &Scene<'_>) -> Verdict {
    let at = scene.empty().await?;
    let capability = scene.capability(&at).await?;
    let limit = capability
        .publish_max_bytes
        .and_then(|limit| usize::try_from(limit).ok())
        .filter(|limit| capability.publish && *limit <= 16 << 20);
    let limit =
        limit.ok_or_else(|| Miss::NotApplicable("publish_max_bytes up to 16 MiB".to_owned()))?;
    let large = Message {
        body: Some(vec![b'a'; limit + 1].into()),
        ..scene.fixture.message(scene.flavour, 0)
    };
    let answers = scene.publish(&at, &[large]).await;
    let kind = answers
        .first()
        .and_then(|answer| answer.as_ref().err())
        .map(dlo_core::Error::kind);
    ensure!(
        kind == Some(ErrorKind::TooLarge),
        "{} bytes over a limit of {limit} answered {kind:?}, not TooLarge",
        limit + 1
    );
    // The session must go on: a broker that closes the channel is the connector's business.
    let small = scene.fixture.message(scene.flavour, 1);
    scene
        .publish_surely(&at, std::slice::from_ref(&small))
        .await?;
    scene.expect_content(&at, &[small]).await
}

pub async fn a_receipts_position_can_be_read(scene: &Scene<'_>) -> Verdict {
    let at = scene.filled(3).await?;
    let capability = scene.capability(&at).await?;
    needs!(capability.publish && capability.fetch, "fetch and publish");
    let message = scene.fixture.message(scene.flavour, 7);
    let answers = scene.publish(&at, std::slice::from_ref(&message)).await;
    for answer in answers {
        let Some(position) = answer?.position else {
            return Err(Miss::NotApplicable(
                "the broker does not tell the position".to_owned(),
            ));
        };
        let found = scene
            .session
            .fetch(&at, &[position], Isolation::ReadCommitted)
            .await?;
        let found = found.into_iter().flatten().map(|delivery| delivery.message);
        same_messages(
            &found.collect::<Vec<_>>(),
            std::slice::from_ref(&message),
            &capability,
        )?;
    }
    Ok(())
}

pub async fn an_atomic_batch_is_all_or_nothing(scene: &Scene<'_>) -> Verdict {
    let at = scene.empty().await?;
    let capability = scene.capability(&at).await?;
    needs!(capability.publish, "publish");
    let mut missing = at.clone();
    missing.name = scene.name();
    let messages = scene.messages(2);
    let batch = vec![
        outgoing(&at, messages[0].clone()),
        outgoing(&missing, messages[1].clone()),
    ];
    let answers = scene.session.publish(batch, Atomicity::All).await;
    ensure!(
        answers.len() == 2 && answers.iter().all(Result::is_err),
        "a batch that cannot be wholly stored answered {answers:?}"
    );
    scene.expect_content(&at, &[]).await?;
    if capability.publish_atomically {
        let batch = messages
            .iter()
            .map(|message| outgoing(&at, message.clone()));
        for answer in scene.session.publish(batch.collect(), Atomicity::All).await {
            answer?;
        }
        scene.expect_content(&at, &messages).await?;
    } else {
        let kinds: Vec<_> = answers
            .iter()
            .filter_map(|answer| answer.as_ref().err().map(dlo_core::Error::kind))
            .collect();
        ensure!(
            kinds.iter().all(|kind| *kind == ErrorKind::Unsupported),
            "atomic batches are no capability, but answered {kinds:?}"
        );
    }
    Ok(())
}

pub async fn an_exact_partition_is_kept(scene: &Scene<'_>) -> Verdict {
    let at = scene.empty().await?;
    let described = scene.session.describe(&at).await?;
    needs!(
        described.capability.publish_to_partition,
        "publish_to_partition"
    );
    let ids = described.partitions.iter().map(|partition| partition.id);
    // Twice each, so that taking the partitions in turn is no excuse.
    for partition in ids.flat_map(|id| [id, id]) {
        let mut out = outgoing(&at, scene.fixture.message(scene.flavour, 0));
        out.target.partitioning = Partitioning::Exact(partition);
        for answer in scene.session.publish(vec![out], Atomicity::Each).await {
            let position = answer?.position;
            let kept =
                matches!(position, Some(Position::Offset { partition: p, .. }) if p == partition);
            ensure!(
                kept,
                "a message for partition {partition} is at {position:?}"
            );
        }
    }
    Ok(())
}

pub async fn a_given_time_is_kept(scene: &Scene<'_>) -> Verdict {
    let at = scene.empty().await?;
    let capability = scene.capability(&at).await?;
    needs!(
        capability.publish && capability.publish_with_time,
        "publish_with_time"
    );
    // An hour ago: old enough to be told from now, young enough for every broker's limits.
    let time = Millis::now().plus(-3_600_000);
    let out = Outgoing {
        time: Some(time),
        ..outgoing(&at, scene.fixture.message(scene.flavour, 0))
    };
    for answer in scene.session.publish(vec![out], Atomicity::Each).await {
        answer?;
    }
    let seen = scene.look_and_close(&at, 5).await?;
    let times: Vec<_> = seen.deliveries.iter().map(|d| d.time).collect();
    ensure!(
        times == [Some(time)],
        "the time {time} came back as {times:?}"
    );
    Ok(())
}

async fn round_trip(scene: &Scene<'_>, at: &dlo_core::Address, messages: &[Message]) -> Verdict {
    scene.publish_surely(at, messages).await?;
    let seen = scene.look_and_close(at, 100).await?;
    let capability = scene.capability(at).await?;
    let shown: Vec<_> = seen.deliveries.into_iter().map(|d| d.message).collect();
    same_messages(&shown, messages, &capability)?;
    scene.expect_content(at, messages).await
}
