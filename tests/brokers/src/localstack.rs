//! What LocalStack offers beside SQS: objects in S3, and services with a query protocol (SNS, CloudWatch).
//!
//! Separate from `sqs`, which speaks through the SDK alone. These are plain requests, so that the tests need no further SDK.

use anyhow::{Context, Result};

use crate::sqs::Stage;

const REGION: &str = "eu-west-1";

impl Stage {
    /// The server's address.
    pub fn endpoint(&self) -> Result<&str> {
        Ok(self.url.split_once("endpoint=").context("no endpoint")?.1)
    }

    /// Calls an action of a service, and gives the answer's text.
    pub async fn query(&self, service: &str, form: &[(&str, &str)]) -> Result<String> {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(form);
        let request = reqwest::Client::builder()
            .no_proxy()
            .build()?
            .post(self.endpoint()?);
        let answer = request
            .header("authorization", signed(service, REGION))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body.finish())
            .send()
            .await?;
        Ok(answer.error_for_status()?.text().await?)
    }

    /// Stores an object, given by its key and bytes, or creates the bucket.
    pub async fn put_object(&self, bucket: &str, object: Option<(&str, &[u8])>) -> Result<()> {
        let (key, bytes) = object.unwrap_or_default();
        let request = reqwest::Client::builder()
            .no_proxy()
            .build()?
            .put(format!("{}/{bucket}/{key}", self.endpoint()?));
        // S3 wants a bucket's region named in its creation unless it is us-east-1.
        let answer = request
            .header("authorization", signed("s3", "us-east-1"))
            .body(bytes.to_vec())
            .send()
            .await?;
        answer.error_for_status()?;
        Ok(())
    }
}

/// LocalStack reads from it which service and region are meant, and checks no signature.
fn signed(service: &str, region: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential=test/20260101/{region}/{service}/aws4_request, SignedHeaders=host, Signature=0"
    )
}
