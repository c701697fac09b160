//! Bodies that lie in S3: one signed GET on demand, with the session's own credentials.
//!
//! Separate from the session, because it is another service with other errors. A whole S3 client would be a heavy dependency for
//! one request, so this signs the request itself
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html>).

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, SystemTime},
};

use aws_config::SdkConfig;
use aws_credential_types::{Credentials, provider::ProvideCredentials};
use aws_sigv4::{
    http_request::{
        PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
        UriPathNormalizationMode, sign,
    },
    sign::v4,
};
use bytes::{Bytes, BytesMut};
use dlo_core::{Delivery, Error, ErrorKind, Message, Position, Result, Value};

use crate::{config::Settings, error::Doing};

/// A body is shown to a person, so no more of it than this is fetched.
pub(crate) const MOST: usize = 16 << 20;

/// The whole size of the object in bytes, a fact of what was fetched.
const SIZE: &str = "size";

const CONNECT: Duration = Duration::from_secs(3);
const WHOLE: Duration = Duration::from_secs(30);

/// Where S3 answers, and as whom it is asked.
pub(crate) struct S3 {
    credentials: Option<aws_credential_types::provider::SharedCredentialsProvider>,
    region: String,
    /// Another server than AWS's own.
    endpoint: Option<String>,
    fips: bool,
    dual_stack: bool,
}

/// Without the credentials.
impl fmt::Debug for S3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3")
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// One object.
#[derive(Clone, Copy, Debug)]
struct Object<'a> {
    bucket: &'a str,
    key: &'a str,
}

/// What S3 said to one request.
enum Answer {
    Found(Box<Delivery>),
    Missing,
    /// The bucket is in this region.
    Elsewhere(String),
}

impl S3 {
    pub fn new(settings: &Settings, config: &SdkConfig) -> Self {
        let own = std::env::var("AWS_ENDPOINT_URL_S3").ok();
        // A server of somebody's own may have S3 beside SQS. AWS's own addresses of SQS (VPC endpoints) never have.
        let beside = settings.endpoint.as_deref().or(config.endpoint_url());
        Self {
            credentials: config.credentials_provider(),
            region: config
                .region()
                .map(|region| region.as_ref().to_owned())
                .unwrap_or_default(),
            endpoint: own.or_else(|| beside.filter(|url| !is_aws(url)).map(str::to_owned)),
            fips: settings.fips,
            dual_stack: settings.dual_stack,
        }
    }

    /// The object's first [`MOST`] bytes as the body of a delivery, with its whole size as a fact; `None` when it is gone.
    ///
    /// # Errors
    /// [`ErrorKind::PermissionDenied`] naming `s3:GetObject`, [`ErrorKind::NotFound`] for a missing bucket.
    pub async fn get(&self, bucket: &str, key: &str) -> Result<Option<Delivery>> {
        let object = Object { bucket, key };
        let credentials = self.credentials(object).await?;
        let mut region = self.region.clone();
        for _ in 0..2 {
            match self.ask(object, &region, &credentials).await? {
                Answer::Found(delivery) => return Ok(Some(*delivery)),
                Answer::Missing => return Ok(None),
                Answer::Elsewhere(other) => region = other,
            }
        }
        Err(object
            .doing()
            .error(
                ErrorKind::ConfigInvalid,
                format!(
                    "the bucket {bucket} is in the region {region}, which does not answer for it"
                ),
            )
            .advise("Connect to the region of the bucket."))
    }

    async fn credentials(&self, object: Object<'_>) -> Result<Credentials> {
        let missing = || {
            object
                .doing()
                .error(ErrorKind::Unauthenticated, "there are no credentials")
        };
        let provider = self.credentials.as_ref().ok_or_else(missing)?;
        provider
            .provide_credentials()
            .await
            .map_err(|error| missing().caused_by(error))
    }

    async fn ask(
        &self,
        object: Object<'_>,
        region: &str,
        credentials: &Credentials,
    ) -> Result<Answer> {
        let url = self.url(object, region)?;
        let headers = signed(&url, region, credentials)
            .map_err(|error| object.unexpected(error.to_string()))?;
        let client = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .timeout(WHOLE)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| object.unexpected(error.to_string()))?;
        let mut request = client.get(&url);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let answer = request
            .send()
            .await
            .map_err(|error| object.unreachable(error))?;
        if answer.status().is_success() {
            return read(object, answer)
                .await
                .map(|delivery| Answer::Found(Box::new(delivery)));
        }
        self.refused(object, region, answer).await
    }

    /// Virtual-hosted as AWS wants it; in the path for other servers, and for buckets with dots, which TLS names cannot hold.
    /// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/VirtualHosting.html>
    fn url(&self, object: Object<'_>, region: &str) -> Result<String> {
        let Object { bucket, key } = object;
        if key.split('/').any(|part| matches!(part, "." | ".."))
            || bucket.contains(['/', '?', '#', '@', ':', '%'])
        {
            return Err(object
                .doing()
                .error(ErrorKind::Unsupported, "no URL can hold its name")
                .advise("Fetch it with `aws s3api get-object`."));
        }
        let key = encoded(key);
        if let Some(endpoint) = &self.endpoint {
            return Ok(format!("{}/{bucket}/{key}", endpoint.trim_end_matches('/')));
        }
        let fips = if self.fips { "-fips" } else { "" };
        let dual = if self.dual_stack { ".dualstack" } else { "" };
        let suffix = if region.starts_with("cn-") {
            "amazonaws.com.cn"
        } else {
            "amazonaws.com"
        };
        let host = format!("s3{fips}{dual}.{region}.{suffix}");
        Ok(if bucket.contains('.') {
            format!("https://{host}/{bucket}/{key}")
        } else {
            format!("https://{bucket}.{host}/{key}")
        })
    }

    async fn refused(
        &self,
        object: Object<'_>,
        region: &str,
        answer: reqwest::Response,
    ) -> Result<Answer> {
        let status = answer.status();
        let named = answer
            .headers()
            .get("x-amz-bucket-region")
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let text = answer.text().await.unwrap_or_default();
        let code = element(&text, "Code").unwrap_or_default();
        let message = element(&text, "Message").unwrap_or_default();
        let elsewhere = named.or_else(|| element(&text, "Region").map(str::to_owned));
        if let Some(other) = elsewhere
            && matches!(status.as_u16(), 301 | 307 | 400)
            && other != region
        {
            return Ok(Answer::Elsewhere(other));
        }
        match code {
            "NoSuchKey" => Ok(Answer::Missing),
            "NoSuchBucket" => Err(object.doing().error(
                ErrorKind::NotFound,
                format!("there is no bucket {}", object.bucket),
            )),
            "AccessDenied" => Err(object.denied(message)),
            "" => Err(object.no_s3(status.as_u16(), self.endpoint.as_deref())),
            _ => Err(object.doing().coded(code, message)),
        }
    }
}

impl Object<'_> {
    fn doing(self) -> Doing<'static> {
        Doing::new("fetch the body from S3", "s3:GetObject")
    }

    /// Of a missing object S3 says so only to those who may list the bucket.
    fn denied(self, message: &str) -> Error {
        let place = format!("s3://{}/{}", self.bucket, self.key);
        self.doing()
            .error(
                ErrorKind::PermissionDenied,
                format!("not readable: missing s3:GetObject on {place} ({message})"),
            )
            .advise(
                "Ask for s3:GetObject, and for kms:Decrypt where the bucket is encrypted with a key of its own. Without \
                 s3:ListBucket S3 says the same of an object that is gone.",
            )
    }

    fn no_s3(self, status: u16, endpoint: Option<&str>) -> Error {
        let who = endpoint.unwrap_or("S3");
        self.doing()
            .error(
                ErrorKind::Unsupported,
                format!("{who} answered {status} and nothing that S3 would say"),
            )
            .advise("Set AWS_ENDPOINT_URL_S3 when S3 is at another address than SQS.")
    }

    fn unreachable(self, error: reqwest::Error) -> Error {
        self.doing()
            .error(ErrorKind::Unreachable, "S3 does not answer")
            .caused_by(error)
    }

    fn unexpected(self, what: String) -> Error {
        self.doing().error(ErrorKind::Unexpected, what)
    }
}

/// Reads up to [`MOST`] bytes and lets the rest go.
async fn read(object: Object<'_>, mut answer: reqwest::Response) -> Result<Delivery> {
    let header = |name: &str| {
        let value = answer.headers().get(name)?.to_str().ok()?;
        Some(Value::text(value))
    };
    let mut facts: BTreeMap<String, Value> = [
        "content-type",
        "last-modified",
        "x-amz-server-side-encryption",
    ]
    .into_iter()
    .filter_map(|name| Some((name.to_owned(), header(name)?)))
    .collect();
    let size = answer.content_length();
    let mut body = BytesMut::new();
    while let Some(chunk) = answer
        .chunk()
        .await
        .map_err(|error| object.unreachable(error))?
    {
        let room = MOST - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if body.len() == MOST {
            break;
        }
    }
    let size = size.unwrap_or(body.len() as u64);
    facts.insert(SIZE.to_owned(), Value::text(size.to_string()));
    Ok(delivery(object, body.freeze(), facts))
}

fn delivery(object: Object<'_>, body: Bytes, facts: BTreeMap<String, Value>) -> Delivery {
    Delivery {
        message: Message {
            body: Some(body),
            ..Message::default()
        },
        position: Position::Id {
            id: object.key.to_owned(),
        },
        lock: None,
        time: None,
        delivery_count: None,
        facts,
    }
}

/// The headers that sign a GET of this URL. S3 wants the path encoded once and not normalised.
/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>
fn signed(
    url: &str,
    region: &str,
    credentials: &Credentials,
) -> std::result::Result<Vec<(String, String)>, Box<dyn std::error::Error + Send + Sync>> {
    let mut settings = SigningSettings::default();
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    let identity = credentials.clone().into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("s3")
        .time(SystemTime::now())
        .settings(settings)
        .build()?
        .into();
    let request = SignableRequest::new("GET", url, std::iter::empty(), SignableBody::Bytes(&[]))?;
    let (instructions, _) = sign(request, &params)?.into_parts();
    let headers = instructions.headers();
    Ok(headers
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect())
}

/// Everything but unreserved characters and the slashes between parts.
fn encoded(key: &str) -> String {
    let mut text = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// The text of the first element of that name. S3's errors are flat.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

/// Whether an address is one of AWS's own.
pub(crate) fn is_aws(endpoint: &str) -> bool {
    let host = url::Url::parse(endpoint)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned));
    let own = [".amazonaws.com", ".amazonaws.com.cn", ".api.aws"];
    host.is_some_and(|host| own.iter().any(|suffix| host.ends_with(suffix)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s3(endpoint: Option<&str>) -> S3 {
        S3 {
            credentials: None,
            region: "eu-west-1".to_owned(),
            endpoint: endpoint.map(str::to_owned),
            fips: false,
            dual_stack: false,
        }
    }

    fn url(s3: &S3, bucket: &str, key: &str) -> Result<String> {
        s3.url(Object { bucket, key }, "eu-west-1")
    }

    #[test]
    fn an_object_has_the_address_that_aws_documents() {
        let aws = s3(None);
        for (bucket, key, expected) in [
            (
                "b",
                "a/ü +1",
                "https://b.s3.eu-west-1.amazonaws.com/a/%C3%BC%20%2B1",
            ),
            ("b.c", "k", "https://s3.eu-west-1.amazonaws.com/b.c/k"),
        ] {
            assert_eq!(url(&aws, bucket, key).as_deref(), Ok(expected));
        }
        let both = S3 {
            fips: true,
            dual_stack: true,
            ..s3(None)
        };
        assert_eq!(
            url(&both, "b", "k").as_deref(),
            Ok("https://b.s3-fips.dualstack.eu-west-1.amazonaws.com/k")
        );
        let local = s3(Some("http://127.0.0.1:4566/"));
        assert_eq!(
            url(&local, "b", "k").as_deref(),
            Ok("http://127.0.0.1:4566/b/k")
        );
    }

    #[test]
    fn a_name_that_a_url_would_turn_into_another_is_refused() {
        for (bucket, key) in [
            ("b", "a/../secret"),
            ("b", "./k"),
            ("evil.example/b", "k"),
            ("b@evil", "k"),
        ] {
            let error = url(&s3(None), bucket, key).expect_err(key);
            assert_eq!(error.kind(), ErrorKind::Unsupported);
        }
    }

    #[test]
    fn only_addresses_of_somebodys_own_may_have_s3_beside_sqs() {
        assert!(is_aws("https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com"));
        assert!(is_aws("https://sqs.eu-west-1.api.aws"));
        assert!(!is_aws("http://127.0.0.1:4566") && !is_aws("http://amazonaws.com.example"));
    }

    #[test]
    fn a_request_is_signed_for_s3_and_its_token_goes_along() {
        let credentials =
            Credentials::new("AKIA", "secret", Some("token".to_owned()), None, "test");
        let headers = signed(
            "https://b.s3.eu-west-1.amazonaws.com/k",
            "eu-west-1",
            &credentials,
        )
        .expect("signed");
        let header = |name: &str| {
            headers
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.as_str())
        };
        assert!(
            header("authorization")
                .is_some_and(|value| value.contains("/eu-west-1/s3/aws4_request"))
        );
        assert_eq!(header("x-amz-security-token"), Some("token"));
        assert_eq!(
            header("x-amz-content-sha256"),
            Some("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        );
    }

    #[test]
    fn s3_says_its_errors_flat() {
        let xml = "<Error><Code>NoSuchKey</Code><Message>gone</Message></Error>";
        assert_eq!(element(xml, "Code"), Some("NoSuchKey"));
        assert_eq!(element(xml, "Region"), None);
    }
}
