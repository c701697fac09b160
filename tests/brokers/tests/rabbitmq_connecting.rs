//! What goes wrong when connecting: each cause is told apart, within 5 seconds, with what to do next; and what a user with few
//! rights, or without the management API, can still do.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dlo_brokers::{
    on_every_version,
    rabbit::{Stage, dying_into, number, session, variable},
    required,
};
use dlo_core::{
    Address, Atomicity, DeadLetters, Disposition, ErrorKind, Evidence, LookRequest, Message,
    Outgoing, Target, Verdict,
};
use lapin::{
    ExchangeKind,
    options::{ExchangeDeclareOptions, QueueBindOptions},
    types::FieldTable,
};
use tokio_util::sync::CancellationToken;

on_every_version! {
    every_cause_is_told_apart_within_five_seconds,
    tls_and_certificates_work,
    amqp_alone_is_enough_to_look_and_publish,
    few_rights_are_named_when_they_are_missing,
    dead_letters_are_found_through_policies_and_bindings,
    an_exclusive_consumer_is_no_empty_queue,
    somebody_elses_user_id_stops_one_message_only,
}

async fn every_cause_is_told_apart_within_five_seconds(stage: &Stage) -> Result<()> {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await?
        .local_addr()?;
    let plain = stage.url.split('?').next().unwrap_or_default().to_owned();
    let tls = required(&variable(&stage.version, "_TLS"))?;
    let (tls_place, _) = tls.split_once("/%2f").context("a TLS URL")?;
    let management = stage
        .url
        .split_once("management=http://")
        .context("a URL with management")?
        .1;
    let place = plain
        .split_once('@')
        .context("a URL with a user")?
        .1
        .replace("/%2f", "");
    for (url, kind, expected) in [
        (
            format!("amqp://guest:guest@{closed}"),
            ErrorKind::Unreachable,
            "nothing listens",
        ),
        (
            "amqp://guest:guest@no-such-host.invalid".to_owned(),
            ErrorKind::Unreachable,
            "no host of that name",
        ),
        (
            format!("amqp://guest:guest@{}", silent.local_addr()?),
            ErrorKind::Unreachable,
            "speaks AMQP",
        ),
        (
            format!("amqp://guest:guest@{management}"),
            ErrorKind::Unreachable,
            "AMQP",
        ),
        (
            format!("amqp://guest:wrong-one@{place}"),
            ErrorKind::Unauthenticated,
            "PLAIN",
        ),
        (
            format!("amqp://guest:guest@{place}/no-such-vhost"),
            ErrorKind::NotFound,
            "no-such-vhost",
        ),
        (
            format!("amqps://guest:guest@{place}"),
            ErrorKind::Unreachable,
            "no TLS",
        ),
        (
            format!("{}/%2f", tls_place.replace("amqps:", "amqp:")),
            ErrorKind::Unreachable,
            "TLS",
        ),
        (
            format!("{tls_place}/%2f"),
            ErrorKind::Unauthenticated,
            "authority",
        ),
    ] {
        let started = Instant::now();
        let error = session(&url)
            .await
            .err()
            .with_context(|| format!("{url} worked"))?;
        let error = error.downcast::<dlo_core::Error>()?;
        println!("{:>5} ms  {error}", started.elapsed().as_millis());
        ensure!(error.kind() == kind, "{url}: {error:?}");
        ensure!(error.to_string().contains(expected), "{url}: {error}");
        ensure!(error.advice().is_some(), "{url}: {error}");
        ensure!(
            started.elapsed() < Duration::from_secs(5),
            "{url} took {:?}",
            started.elapsed()
        );
        ensure!(
            !format!("{error} {error:?}").contains("wrong-one"),
            "the password is told"
        );
    }
    Ok(())
}

async fn tls_and_certificates_work(stage: &Stage) -> Result<()> {
    let over_tls = session(&required(&variable(&stage.version, "_TLS"))?).await?;
    ensure!(
        over_tls
            .server()
            .version
            .is_some_and(|version| version.starts_with(&stage.version))
    );
    let external = session(&required(&variable(&stage.version, "_EXTERNAL"))?).await?;
    let queue = "connect.external";
    stage.queue(queue, "classic", &[]).await?;
    publish(
        external.as_ref(),
        queue,
        Message {
            body: Some("x".into()),
            ..Message::default()
        },
    )
    .await?;
    ensure!(external.describe(&Address::queue(queue)).await?.depth.value == Some(1));
    Ok(())
}

async fn amqp_alone_is_enough_to_look_and_publish(stage: &Stage) -> Result<()> {
    let session = session(&stage.amqp_alone()).await?;
    let version = session.server().version.context("the greeting's version")?;
    ensure!(version.starts_with(&stage.version), "{version}");
    let error = session
        .destinations()
        .await
        .err()
        .context("a list without management")?;
    ensure!(
        error.kind() == ErrorKind::Unsupported && error.advice().is_some(),
        "{error}"
    );
    for kind in ["classic", "quorum"] {
        let queue = "connect.alone.dlq";
        stage.queue(queue, kind, &[]).await?;
        stage.number(queue, 30).await?;
        let at = Address::queue(queue);
        let cost = session.cost(&at, &LookRequest::new(100)).await?;
        println!("{cost:?}");
        ensure!(cost.verdict <= Verdict::Warn, "{cost:?}");
        let look = session.look(&at, LookRequest::new(100)).await?;
        let cancel = CancellationToken::new();
        let mut locks = Vec::new();
        loop {
            let page = look.next(10, &cancel).await?;
            locks.extend(
                page.deliveries
                    .into_iter()
                    .filter_map(|delivery| delivery.lock),
            );
            if page.end {
                break;
            }
        }
        ensure!(locks.len() == 30);
        for answer in look.settle(&locks[..1], Disposition::Ack).await {
            answer?;
        }
        look.close().await?;
        stage.await_count(queue, 29).await?;
        ensure!(
            stage.drain_numbers(queue).await? == (1..30).collect::<Vec<_>>(),
            "{kind}"
        );
    }
    Ok(())
}

async fn few_rights_are_named_when_they_are_missing(stage: &Stage) -> Result<()> {
    stage
        .user("few-rights", "^$", "^allowed$", "^rights[.]dlq$")
        .await?;
    for queue in ["rights.dlq", "rights.other"] {
        stage.queue(queue, "classic", &[]).await?;
        stage.number(queue, 3).await?;
    }
    let session = session(&stage.url_for("few-rights", "few-rights")).await?;
    // Nobody tells this user what kind of queue it is. On 4.3 messages may be in it that only a copy would save, and this user
    // may not publish one, so the look asks first.
    let cost = session
        .cost(&Address::queue("rights.dlq"), &LookRequest::new(10))
        .await?;
    println!("{cost:?}");
    ensure!(
        (cost.verdict == Verdict::Ask) == stage.is_at_least(4, 3),
        "{cost:?}"
    );
    let request = || LookRequest {
        consent: dlo_core::Consent::Given,
        ..LookRequest::new(10)
    };
    let look = session
        .look(&Address::queue("rights.dlq"), request())
        .await?;
    let page = look.next(10, &CancellationToken::new()).await?;
    ensure!(page.deliveries.len() == 3);
    look.close().await?;
    stage.await_count("rights.dlq", 3).await?;

    let other = Address::queue("rights.other");
    let refused = match session.look(&other, request()).await {
        Err(error) => error,
        Ok(look) => look
            .next(10, &CancellationToken::new())
            .await
            .err()
            .context("it was shown")?,
    };
    println!("{refused}");
    ensure!(refused.kind() == ErrorKind::PermissionDenied, "{refused}");
    ensure!(stage.count("rights.other").await? == 3);

    // The default exchange is amq.default when rights are checked; the answer is certain, and the session goes on.
    for _ in 0..2 {
        let message = Message {
            body: Some("x".into()),
            ..Message::default()
        };
        let batch = (0..3)
            .map(|_| outgoing("rights.dlq", message.clone()))
            .collect();
        for answer in session.publish(batch, Atomicity::Each).await {
            let error = answer.err().context("it was published")?;
            ensure!(error.kind() == ErrorKind::PermissionDenied, "{error}");
        }
    }
    ensure!(
        session
            .describe(&Address::queue("rights.dlq"))
            .await?
            .depth
            .value
            == Some(3)
    );
    Ok(())
}

async fn dead_letters_are_found_through_policies_and_bindings(stage: &Stage) -> Result<()> {
    let exchange = "found.failures";
    let channel = stage.channel().await?;
    let options = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    channel
        .exchange_declare(
            exchange.into(),
            ExchangeKind::Topic,
            options,
            FieldTable::default(),
        )
        .await?;
    stage.queue("found.graveyard", "classic", &[]).await?;
    stage.queue("found.unrelated", "classic", &[]).await?;
    for (queue, pattern) in [
        ("found.graveyard", "orders.#"),
        ("found.unrelated", "invoices.*"),
    ] {
        channel
            .queue_bind(
                queue.into(),
                exchange.into(),
                pattern.into(),
                QueueBindOptions::default(),
                FieldTable::default(),
            )
            .await?;
    }
    stage.queue("found.orders", "quorum", &[]).await?;
    stage
        .queue("found.retry", "quorum", &dying_into("found.orders"))
        .await?;
    let policy = serde_json::json!({"pattern": "^found[.]orders$", "definition": {"dead-letter-exchange": exchange, "dead-letter-routing-key": "orders.eu.failed"}, "apply-to": "queues"});
    stage
        .api(reqwest::Method::PUT, "policies/%2F/found", policy)
        .await?;

    let session = stage.session().await?;
    let end = Instant::now() + Duration::from_secs(30);
    let list = loop {
        let list = session.destinations().await?;
        let found = list
            .iter()
            .any(|found| found.address.name == "found.graveyard" && found.holds_dead_letters());
        if found || Instant::now() > end {
            break list;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    };
    let get = |name: &str| {
        list.iter()
            .find(|found| found.address.name == name)
            .context(name.to_owned())
    };
    let graveyard = get("found.graveyard")?;
    ensure!(
        matches!(&graveyard.dead_letters, DeadLetters::Yes(Evidence::Configuration(what)) if what.contains("found.orders")),
        "{graveyard:?}"
    );
    ensure!(
        graveyard.sources == ["found.orders"],
        "{:?}",
        graveyard.sources
    );
    ensure!(get("found.unrelated")?.dead_letters == DeadLetters::No);
    ensure!(get("found.orders")?.dead_letters_to.as_deref() == Some("found.graveyard"));
    stage
        .api(
            reqwest::Method::DELETE,
            "policies/%2F/found",
            serde_json::Value::Null,
        )
        .await?;

    let mut target = Target::new(Address::exchange(exchange));
    target.routing_key = Some("orders.us".to_owned());
    let routes = session.routes(&target).await?;
    ensure!(
        routes.reaches == ["found.graveyard"] && routes.complete,
        "{routes:?}"
    );
    Ok(())
}

/// `basic.get` would answer "empty" there.
async fn an_exclusive_consumer_is_no_empty_queue(stage: &Stage) -> Result<()> {
    let queue = "exclusive.dlq";
    stage.queue(queue, "classic", &[]).await?;
    let channel = stage.channel().await?;
    let options = lapin::options::BasicConsumeOptions {
        exclusive: true,
        ..Default::default()
    };
    let _consumer = channel
        .basic_consume(queue.into(), "alone".into(), options, FieldTable::default())
        .await?;
    channel.basic_qos(1, Default::default()).await?;
    stage.number(queue, 3).await?;
    let session = stage.session().await?;
    let request = LookRequest {
        consent: dlo_core::Consent::Given,
        ..LookRequest::new(10)
    };
    let look = session.look(&Address::queue(queue), request).await?;
    match look.next(10, &CancellationToken::new()).await {
        Err(error) => ensure!(error.kind() == ErrorKind::Refused, "{error}"),
        // The consumer may have taken everything before the look began: then there was nothing to show.
        Ok(page) => ensure!(
            page.deliveries.is_empty() && stage.count(queue).await? == 0,
            "{page:?}"
        ),
    }
    Ok(())
}

async fn somebody_elses_user_id_stops_one_message_only(stage: &Stage) -> Result<()> {
    let queue = "user.id";
    stage
        .queue(queue, "quorum", &[("x-delivery-limit", number(5))])
        .await?;
    let session = stage.session().await?;
    let plain = Message {
        body: Some("x".into()),
        ..Message::default()
    };
    let mut foreign = plain.clone();
    foreign
        .properties
        .insert("user_id".to_owned(), dlo_core::Value::text("somebody"));
    let batch = vec![
        outgoing(queue, plain.clone()),
        outgoing(queue, foreign),
        outgoing(queue, plain),
    ];
    let answers = session.publish(batch, Atomicity::Each).await;
    ensure!(answers[0].is_ok() && answers[2].is_ok(), "{answers:?}");
    let kind = answers[1].as_ref().err().map(dlo_core::Error::kind);
    ensure!(kind == Some(ErrorKind::Rejected), "{answers:?}");
    ensure!(stage.count(queue).await? == 2);
    Ok(())
}

async fn publish(session: &dyn dlo_core::Session, queue: &str, message: Message) -> Result<()> {
    for answer in session
        .publish(vec![outgoing(queue, message)], Atomicity::Each)
        .await
    {
        answer?;
    }
    Ok(())
}

fn outgoing(queue: &str, message: Message) -> Outgoing {
    Outgoing {
        target: Target::new(Address::queue(queue)),
        message,
        time: None,
    }
}
