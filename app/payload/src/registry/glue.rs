//! AWS Glue's schema registry, asked with a signed request (AWS Signature Version 4).
//! <https://docs.aws.amazon.com/glue/latest/webapi/API_GetSchemaVersion.html>
//!
//! The credentials are those of the environment; the AWS SDK would be a large dependency for one
//! request. The address is `glue:REGION`, or `glue:REGION?endpoint=http://…` for an emulator.

use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::schemas::{Schema, SchemaKey};

use super::http::Http;
use super::{RegistryError, kind};

const TARGET: &str = "AWSGlue.GetSchemaVersion";

/// A schema by its version id.
pub(super) async fn fetch(http: &Http, id: Uuid) -> Result<Schema, RegistryError> {
    let root = http.root();
    if root.scheme() != "glue" {
        return Err(RegistryError::Failed(
            "its schema is in AWS Glue; give the registry as glue:REGION".into(),
        ));
    }
    let region = root.path().trim_matches('/').to_owned();
    let endpoint = root
        .query_pairs()
        .find(|(name, _)| name == "endpoint")
        .map(|(_, value)| value.into_owned());
    let url = endpoint.unwrap_or_else(|| format!("https://glue.{region}.amazonaws.com/"));
    let body = json!({ "SchemaVersionId": id.to_string() }).to_string();
    let answer = post(http, &url, &region, &body).await?;
    let text = answer
        .get("SchemaDefinition")
        .and_then(Value::as_str)
        .ok_or_else(|| RegistryError::Failed("AWS Glue answered without a schema".into()))?;
    let schema = Schema::new(
        kind(answer.get("DataFormat").and_then(Value::as_str))?,
        text,
        SchemaKey::Glue(id),
    )
    .from_origin(format!("AWS Glue, {region}"));
    let name = answer
        .get("SchemaArn")
        .and_then(Value::as_str)
        .and_then(|arn| arn.rsplit('/').next());
    Ok(
        match (name, answer.get("VersionNumber").and_then(Value::as_i64)) {
            (Some(name), Some(version)) => schema.in_subject(name, version),
            _ => schema,
        },
    )
}

async fn post(http: &Http, url: &str, region: &str, body: &str) -> Result<Value, RegistryError> {
    let failed = |text: String| RegistryError::Failed(text);
    let host = url.parse::<url::Url>().ok().and_then(|url| {
        Some(
            url.host_str()?.to_owned()
                + &url
                    .port()
                    .map_or_else(String::new, |port| format!(":{port}")),
        )
    });
    let host = host.ok_or_else(|| failed(format!("the address {url} has no host")))?;
    let signed = Signer::from_environment()?.sign(&host, region, body, Timestamp::now());
    let mut request = http
        .client()
        .post(url)
        .header("Content-Type", "application/x-amz-json-1.1")
        .body(body.to_owned());
    for (name, value) in signed {
        request = request.header(name, value);
    }
    let response = request
        .send()
        .await
        .map_err(|error| failed(format!("cannot reach AWS Glue: {error}")))?;
    let good = response.status().is_success();
    let answer: Value = response
        .json()
        .await
        .map_err(|error| failed(format!("AWS Glue did not answer with JSON: {error}")))?;
    let kind = answer
        .get("__type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let said = answer
        .get("message")
        .or_else(|| answer.get("Message"))
        .and_then(Value::as_str)
        .unwrap_or(kind);
    match good {
        true => Ok(answer),
        false if kind.ends_with("EntityNotFoundException") => {
            Err(RegistryError::Absent(said.to_owned()))
        }
        false => Err(failed(format!("AWS Glue refused: {said}"))),
    }
}

struct Signer {
    key: String,
    secret: String,
    token: Option<String>,
}

impl Signer {
    fn from_environment() -> Result<Self, RegistryError> {
        let read = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let missing = || {
            RegistryError::Failed(
                "AWS Glue needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"
                    .into(),
            )
        };
        Ok(Self {
            key: read("AWS_ACCESS_KEY_ID").ok_or_else(missing)?,
            secret: read("AWS_SECRET_ACCESS_KEY").ok_or_else(missing)?,
            token: read("AWS_SESSION_TOKEN"),
        })
    }

    /// The headers of a signed request.
    /// <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>
    fn sign(
        &self,
        host: &str,
        region: &str,
        body: &str,
        now: Timestamp,
    ) -> Vec<(&'static str, String)> {
        let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
        let scope = format!("{}/{region}/glue/aws4_request", &time[..8]);
        let mut headers = vec![
            ("content-type", "application/x-amz-json-1.1".to_owned()),
            ("host", host.to_owned()),
            ("x-amz-date", time.clone()),
        ];
        if let Some(token) = &self.token {
            headers.push(("x-amz-security-token", token.clone()));
        }
        headers.push(("x-amz-target", TARGET.to_owned()));
        let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let lines: String = headers
            .iter()
            .map(|(name, value)| format!("{name}:{value}\n"))
            .collect();
        let request = format!(
            "POST\n/\n\n{lines}\n{names}\n{}",
            hex(&Sha256::digest(body.as_bytes()))
        );
        let to_sign = format!(
            "AWS4-HMAC-SHA256\n{time}\n{scope}\n{}",
            hex(&Sha256::digest(request.as_bytes()))
        );
        let key = [&time[..8], region, "glue", "aws4_request"]
            .iter()
            .fold(format!("AWS4{}", self.secret).into_bytes(), |key, part| {
                hmac(&key, part.as_bytes())
            });
        let signature = hex(&hmac(&key, to_sign.as_bytes()));
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
            self.key
        );
        let mut sent: Vec<(&'static str, String)> = headers
            .into_iter()
            .filter(|(name, _)| !matches!(*name, "host" | "content-type"))
            .collect();
        sent.push(("authorization", authorization));
        sent
    }
}

/// HMAC with SHA-256 (RFC 2104).
fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = [0u8; 64];
    if key.len() > block.len() {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = Sha256::new()
        .chain_update(block.map(|byte| byte ^ 0x36))
        .chain_update(message)
        .finalize();
    Sha256::new()
        .chain_update(block.map(|byte| byte ^ 0x5c))
        .chain_update(inner)
        .finalize()
        .to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2.
    #[test]
    fn hmac_of_the_rfc() {
        assert_eq!(
            hex(&hmac(b"Jefe", b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn a_request_is_signed_with_all_its_headers() {
        let signer = Signer {
            key: "AKID".into(),
            secret: "secret".into(),
            token: Some("t".into()),
        };
        let headers = signer.sign(
            "glue.eu-west-1.amazonaws.com",
            "eu-west-1",
            "{}",
            "2026-11-30T03:10:00Z".parse().unwrap(),
        );
        let authorization = &headers.last().unwrap().1;
        assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=AKID/20261130/eu-west-1/glue/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target, Signature="), "{authorization}");
        assert!(!headers.iter().any(|(_, value)| value.contains("secret")));
    }
}
