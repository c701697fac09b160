//! Connecting: right and wrong, and what a person is told within five seconds.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use dlo_brokers::{
    kafka::{Plain, session, unique},
    required,
};
use dlo_core::{Address, ErrorKind, LookRequest};

/// Host and port of a listener, and the folder of the certificates.
fn listener(variable: &str) -> Result<(String, String)> {
    let at = required(variable)?.replace("kafka://", "");
    Ok((at, required("DLO_TEST_KAFKA_CERTIFICATES")?))
}

async fn connects(url: &str) -> Result<()> {
    let session = session(url).await?;
    session.destinations().await?;
    session.close().await?;
    Ok(())
}

async fn fails(url: &str, kind: ErrorKind, part: &str) -> Result<()> {
    let begun = Instant::now();
    let error = match session(url).await {
        Ok(_) => anyhow::bail!("{part}: it connected"),
        Err(error) => error.downcast::<dlo_core::Error>()?,
    };
    let took = begun.elapsed();
    println!("{took:?}: {error}");
    ensure!(
        error.kind() == kind,
        "{part}: {:?} instead of {kind:?}: {error}",
        error.kind()
    );
    ensure!(
        error.to_string().contains(part),
        "{part} is not in: {error}"
    );
    ensure!(error.advice().is_some(), "no advice: {error}");
    ensure!(took < Duration::from_secs(5), "{part}: it took {took:?}");
    ensure!(
        !error.to_string().contains("-secret"),
        "a password in: {error}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_of_login_works() -> Result<()> {
    let (sasl, certificates) = listener("DLO_TEST_KAFKA_SASL")?;
    for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"] {
        connects(&format!(
            "kafka://reader:reader-secret@{sasl}?security=sasl_plaintext&mechanism={mechanism}"
        ))
        .await?;
    }
    let (tls, _) = listener("DLO_TEST_KAFKA_SASL_SSL")?;
    connects(&format!(
        "kafka://admin:admin-secret@{tls}?ca={certificates}/ca.pem"
    ))
    .await?;
    let (mtls, _) = listener("DLO_TEST_KAFKA_SSL")?;
    connects(&format!(
        "kafka://{mtls}?ca={certificates}/ca.pem&cert={certificates}/client.crt&key={certificates}/client.key"
    ))
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_login_is_said_to_be_wrong() -> Result<()> {
    let (sasl, _) = listener("DLO_TEST_KAFKA_SASL")?;
    let at = |login: &str, mechanism: &str| {
        format!("kafka://{login}@{sasl}?security=sasl_plaintext&mechanism={mechanism}")
    };
    let refused = ErrorKind::Unauthenticated;
    fails(
        &at("reader:wrong-secret", "SCRAM-SHA-512"),
        refused,
        "invalid credentials",
    )
    .await?;
    fails(
        &at("nobody:wrong-secret", "SCRAM-SHA-256"),
        refused,
        "invalid credentials",
    )
    .await?;
    fails(
        &at("reader:wrong-secret", "PLAIN"),
        refused,
        "Invalid username or password",
    )
    .await?;
    let no_mechanism =
        format!("kafka://u@{sasl}?security=sasl_plaintext&mechanism=OAUTHBEARER&token=abc");
    fails(&no_mechanism, refused, "SCRAM-SHA-512").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_protocol_is_named() -> Result<()> {
    let plain = required("DLO_TEST_KAFKA")?.replace("kafka://", "");
    let (sasl, certificates) = listener("DLO_TEST_KAFKA_SASL")?;
    let (mtls, _) = listener("DLO_TEST_KAFKA_SSL")?;
    let (tls, _) = listener("DLO_TEST_KAFKA_SASL_SSL")?;
    let config = ErrorKind::ConfigInvalid;
    fails(
        &format!("kafka://{sasl}"),
        ErrorKind::Unauthenticated,
        "without a login",
    )
    .await?;
    fails(&format!("kafka://{mtls}"), config, "speaks TLS").await?;
    let login = "reader:reader-secret";
    fails(
        &format!("kafka://{login}@{tls}?security=sasl_plaintext"),
        config,
        "speaks TLS",
    )
    .await?;
    fails(
        &format!("kafka://{login}@{plain}?security=sasl_plaintext"),
        config,
        "takes no login",
    )
    .await?;
    fails(
        &format!("kafka://{plain}?ca={certificates}/ca.pem"),
        config,
        "does not speak TLS",
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_certificate_is_named() -> Result<()> {
    let (tls, certificates) = listener("DLO_TEST_KAFKA_SASL_SSL")?;
    let (mtls, _) = listener("DLO_TEST_KAFKA_SSL")?;
    let (expired, _) = listener("DLO_TEST_KAFKA_EXPIRED")?;
    let login = "reader:reader-secret";
    let untrusted = ErrorKind::Unauthenticated;
    fails(
        &format!("kafka://{login}@{tls}?ca={certificates}/other-ca.pem"),
        untrusted,
        "authority",
    )
    .await?;
    fails(&format!("kafka://{login}@{tls}"), untrusted, "authority").await?;
    let by_number = tls.replace("localhost", "127.0.0.1");
    fails(
        &format!("kafka://{login}@{by_number}?ca={certificates}/ca.pem"),
        untrusted,
        "another host name",
    )
    .await?;
    fails(
        &format!("kafka://{expired}?ca={certificates}/ca.pem"),
        untrusted,
        "expired",
    )
    .await?;
    fails(
        &format!("kafka://{mtls}?ca={certificates}/ca.pem"),
        untrusted,
        "client certificate",
    )
    .await?;
    let stranger = format!(
        "kafka://{mtls}?ca={certificates}/ca.pem&cert={certificates}/stranger.crt&key={certificates}/stranger.key"
    );
    fails(&stranger, untrusted, "client certificate").await?;
    fails(
        &format!("kafka://{mtls}?ca=/no/such.pem"),
        ErrorKind::ConfigInvalid,
        "ssl.ca.location",
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_where_nobody_is() -> Result<()> {
    fails(
        "kafka://127.0.0.1:1",
        ErrorKind::Unreachable,
        "nothing listens",
    )
    .await?;
    fails(
        "kafka://no-such-host.invalid",
        ErrorKind::Unreachable,
        "not known",
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_allowed_is_denied_and_never_silent() -> Result<()> {
    let plain = Plain::of("DLO_TEST_KAFKA")?;
    let (sasl, _) = listener("DLO_TEST_KAFKA_SASL")?;
    let topic = unique("secret");
    plain.create(&topic, 1, &[]).await?;
    let url = format!("kafka://reader:reader-secret@{sasl}?security=sasl_plaintext");
    let session = session(&url).await?;
    let at = Address::topic(&topic);
    let seen = session.destinations().await?;
    ensure!(
        seen.iter().all(|d| d.address != at),
        "a forbidden topic is listed"
    );
    let denied = |answer: Result<(), dlo_core::Error>, what: &str| match answer {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        other => anyhow::bail!("{what}: {other:?}"),
    };
    denied(session.describe(&at).await.map(drop), "describe")?;
    denied(
        session.look(&at, LookRequest::new(5)).await.map(drop),
        "look",
    )?;
    let out = dlo_core::Outgoing {
        target: dlo_core::Target::new(at.clone()),
        message: dlo_brokers::kafka::keyed("k", "v"),
        time: None,
    };
    for answer in session.publish(vec![out], dlo_core::Atomicity::Each).await {
        denied(answer.map(drop), "publish")?;
    }
    session.close().await?;
    plain.delete(&topic).await
}
