//! The conformance suite on both SQS servers. Where a server differs from AWS's documentation the documentation wins: the
//! promise is listed here as broken by that server, and the test fails as soon as it no longer is.

use anyhow::Result;
use dlo_brokers::sqs::{ELASTICMQ, LOCALSTACK, Stage};

/// `known`: flavour and check that the server itself cannot fulfil.
async fn conforms(variable: &str, known: &[(&str, &str)]) -> Result<()> {
    let stage = Stage::on(variable)?;
    let report = dlo_conformance::run_all(&stage).await;
    println!("{report}");
    let broken: Vec<_> = report
        .broken()
        .map(|run| (run.flavour, run.check))
        .collect();
    assert_eq!(broken, known, "{report}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn localstack_conforms() -> Result<()> {
    conforms(LOCALSTACK, &[]).await
}

/// AWS moves messages of FIFO queues too; ElasticMQ answers that it began and moves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn elasticmq_conforms() -> Result<()> {
    let known = [("fifo", "redrive_moves_back_or_is_unsupported")];
    conforms(ELASTICMQ, &known).await
}
