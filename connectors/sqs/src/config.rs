//! The URL of a profile as settings, and the settings as the SDK's configuration.
//!
//! Credentials come from where the AWS command line finds them: environment, profiles with SSO and assumed roles,
//! web identity, containers, and last the instance metadata service, which is asked only when nothing else gave any.

use std::{fmt, time::Duration};

use aws_config::{
    BehaviorVersion, SdkConfig, default_provider::region::DefaultRegionChain,
    profile::ProfileFileCredentialsProvider, provider_config::ProviderConfig, retry::RetryConfig,
    sts::AssumeRoleProvider, timeout::TimeoutConfig,
};
use aws_sdk_sqs::config::{Credentials, Region};
use dlo_core::{Endpoint, Error, ErrorKind, Result, Secret, Secrets};

/// What a `sqs:` URL says.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `None` asks the environment and the profile.
    pub region: Option<String>,
    /// Another server than AWS's own.
    pub endpoint: Option<String>,
    pub profile: Option<String>,
    /// The ARN of a role to assume with the credentials found.
    pub role: Option<String>,
    pub external_id: Option<String>,
    pub fips: bool,
    pub dual_stack: bool,
    keys: Option<Keys>,
}

#[derive(Clone, PartialEq, Eq)]
struct Keys {
    id: String,
    secret: Secret,
    session_token: Option<Secret>,
}

/// Without the keys.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .field("profile", &self.profile)
            .field("role", &self.role)
            .field("fips", &self.fips)
            .field("dual_stack", &self.dual_stack)
            .field("keys", &self.keys.as_ref().map(|_| "***"))
            .finish_non_exhaustive()
    }
}

const OPTIONS: [&str; 7] = [
    "endpoint",
    "profile",
    "role",
    "external_id",
    "fips",
    "dualstack",
    "access_key_id",
];

impl Settings {
    /// Reads `sqs://REGION?endpoint=…&profile=…&role=…&external_id=…&fips&dualstack`. An access key can stand before the region
    /// (`sqs://KEY:SECRET@REGION`), with `session_token` among the secrets.
    ///
    /// # Errors
    /// [`ErrorKind::ConfigInvalid`], naming the part.
    pub fn parse(endpoint: &Endpoint, secrets: &Secrets) -> Result<Self> {
        if let Some(unknown) = endpoint
            .options
            .keys()
            .find(|name| !OPTIONS.contains(&name.as_str()))
        {
            return Err(invalid(format!("there is no option {unknown}"))
                .advise(format!("The options are {}.", OPTIONS.join(", "))));
        }
        let option = |name: &str| {
            endpoint
                .option(name)
                .map(str::to_owned)
                .filter(|value| !value.is_empty())
        };
        Ok(Self {
            region: region(&endpoint.hosts)?,
            endpoint: option("endpoint").map(server).transpose()?,
            profile: option("profile"),
            role: option("role").map(role).transpose()?,
            external_id: option("external_id"),
            fips: flag(endpoint, "fips")?,
            dual_stack: flag(endpoint, "dualstack")?,
            keys: keys(endpoint, secrets)?,
        })
    }

    /// The SDK's configuration. Reads files and the environment; asks the network only for credentials that need it.
    pub async fn load(&self) -> Result<SdkConfig> {
        let region = self.resolve_region().await?;
        let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .region(region.clone())
            .retry_config(RetryConfig::standard().with_max_attempts(3))
            .timeout_config(timeouts())
            .use_fips(self.fips)
            .use_dual_stack(self.dual_stack);
        if let Some(profile) = &self.profile {
            // Named on purpose, the profile comes before keys in the environment, as with the command line's --profile;
            // the SDK's own chain would take the environment's.
            let provider = ProfileFileCredentialsProvider::builder()
                .profile_name(profile)
                .configure(&ProviderConfig::default().with_region(Some(region)));
            loader = loader
                .profile_name(profile)
                .credentials_provider(provider.build());
        }
        if let Some(keys) = &self.keys {
            loader = loader.credentials_provider(keys.credentials());
        }
        Ok(self.with_role(loader.load().await).await)
    }

    async fn resolve_region(&self) -> Result<Region> {
        if let Some(region) = &self.region {
            return Ok(Region::new(region.clone()));
        }
        let mut chain = DefaultRegionChain::builder();
        if let Some(profile) = &self.profile {
            chain = chain.profile_name(profile);
        }
        chain.build().region().await.ok_or_else(|| {
            invalid("no region is given")
                .advise("Write it in the URL, for example sqs://eu-west-1, or set AWS_REGION or a region in the profile.")
        })
    }

    async fn with_role(&self, config: SdkConfig) -> SdkConfig {
        let Some(role) = &self.role else {
            return config;
        };
        let mut provider = AssumeRoleProvider::builder(role)
            .session_name("dead-letter-office")
            .configure(&config);
        if let Some(id) = &self.external_id {
            provider = provider.external_id(id);
        }
        let provider = provider.build().await;
        config
            .into_builder()
            .credentials_provider(aws_sdk_sqs::config::SharedCredentialsProvider::new(
                provider,
            ))
            .build()
    }
}

impl Keys {
    fn credentials(&self) -> Credentials {
        let token = self
            .session_token
            .as_ref()
            .map(|token| token.expose().to_owned());
        Credentials::new(
            self.id.clone(),
            self.secret.expose(),
            token,
            None,
            "profile",
        )
    }
}

/// Limits of a call in ordinary use: long polls wait [`crate::look::WAIT`], and a batch may carry 1 MiB.
fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(2))
        .operation_attempt_timeout(Duration::from_secs(20))
        .operation_timeout(Duration::from_secs(50))
        .build()
}

/// Limits of the call that tests the connection, so that a person learns within 5 seconds what is wrong.
pub(crate) fn test_config() -> aws_sdk_sqs::config::Builder {
    aws_sdk_sqs::config::Builder::new()
        .retry_config(RetryConfig::disabled())
        .timeout_config(
            TimeoutConfig::builder()
                .connect_timeout(Duration::from_secs(2))
                .operation_attempt_timeout(Duration::from_secs(4))
                .operation_timeout(Duration::from_millis(4500))
                .build(),
        )
}

/// One attempt: a send that was not answered may have been stored, so only a person can decide to send again.
pub(crate) fn once() -> aws_sdk_sqs::config::Builder {
    aws_sdk_sqs::config::Builder::new().retry_config(RetryConfig::disabled())
}

fn region(text: &str) -> Result<Option<String>> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    match text {
        "" => Ok(None),
        text if text.chars().all(good) => Ok(Some(text.to_owned())),
        text => Err(invalid(format!("{text} is not a region's name"))
            .advise("Write a region such as eu-west-1; another server goes into ?endpoint=http://host:port.")),
    }
}

fn server(text: String) -> Result<String> {
    let good = url::Url::parse(&text)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.host().is_some());
    if good {
        Ok(text)
    } else {
        Err(invalid(format!(
            "the endpoint {text} is not an http:// or https:// address"
        )))
    }
}

fn role(text: String) -> Result<String> {
    if text.starts_with("arn:") && text.contains(":role/") {
        Ok(text)
    } else {
        Err(invalid(format!("{text} is not the ARN of a role"))
            .advise("Write arn:aws:iam::ACCOUNT:role/NAME."))
    }
}

fn flag(endpoint: &Endpoint, name: &str) -> Result<bool> {
    match endpoint.option(name) {
        None | Some("false") => Ok(false),
        Some("" | "true") => Ok(true),
        Some(other) => Err(invalid(format!("{name} is true or false, not {other}"))),
    }
}

fn keys(endpoint: &Endpoint, secrets: &Secrets) -> Result<Option<Keys>> {
    let id = endpoint
        .user
        .as_deref()
        .or(endpoint.option("access_key_id"));
    let secret = ["secret_access_key", "secret_key", "password"]
        .iter()
        .find_map(|name| secrets.get(name));
    match (id, secret) {
        (None, _) => Ok(None),
        (Some(id), Some(secret)) => Ok(Some(Keys {
            id: id.to_owned(),
            secret: secret.clone(),
            session_token: secrets.get("session_token").cloned(),
        })),
        (Some(_), None) => Err(invalid("an access key is given without its secret")
            .advise("Give the secret access key, or leave both out to use the credentials of the environment or a profile.")),
    }
}

fn invalid(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::ConfigInvalid, "read the SQS settings", what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Settings> {
        let (endpoint, secrets) = Endpoint::parse(url)?;
        Settings::parse(&endpoint, &secrets)
    }

    #[test]
    fn every_option_is_read() {
        let settings = parse(
            "sqs://eu-west-1?endpoint=http://[::1]:4566&profile=orders&role=arn:aws:iam::1:role/r&external_id=x&fips&dualstack=true",
        )
        .expect("a good URL");
        assert_eq!(settings.region.as_deref(), Some("eu-west-1"));
        assert_eq!(settings.endpoint.as_deref(), Some("http://[::1]:4566"));
        assert_eq!(settings.profile.as_deref(), Some("orders"));
        assert_eq!(settings.role.as_deref(), Some("arn:aws:iam::1:role/r"));
        assert!(settings.fips && settings.dual_stack);
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_name() {
        for (url, part) in [
            ("sqs://localhost:4566", "localhost:4566"),
            ("sqs://eu-west-1?endpont=http://h", "endpont"),
            ("sqs://eu-west-1?endpoint=h:4566", "h:4566"),
            ("sqs://eu-west-1?fips=perhaps", "perhaps"),
            ("sqs://eu-west-1?role=admin", "admin"),
            ("sqs://AKIA@eu-west-1", "without its secret"),
        ] {
            let error = parse(url).expect_err(url);
            assert_eq!(error.kind(), ErrorKind::ConfigInvalid);
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    /// FIPS and dual stack change the server's name, as AWS's endpoint rules say.
    #[tokio::test]
    async fn fips_and_dual_stack_lead_to_servers_of_their_own() {
        use aws_sdk_sqs::config::endpoint::{DefaultResolver, Params, ResolveEndpoint};
        for (url, host) in [
            ("sqs://k:s@us-east-1", "https://sqs.us-east-1.amazonaws.com"),
            (
                "sqs://k:s@us-east-1?fips",
                "https://sqs-fips.us-east-1.amazonaws.com",
            ),
            (
                "sqs://k:s@us-east-1?dualstack",
                "https://sqs.us-east-1.api.aws",
            ),
            (
                "sqs://k:s@us-east-1?fips&dualstack",
                "https://sqs-fips.us-east-1.api.aws",
            ),
        ] {
            let config = parse(url)
                .expect("a good URL")
                .load()
                .await
                .expect("loaded");
            let params = Params::builder()
                .region(config.region().expect("a region").to_string())
                .use_fips(config.use_fips().unwrap_or_default())
                .use_dual_stack(config.use_dual_stack().unwrap_or_default())
                .build()
                .expect("parameters");
            let resolved = DefaultResolver::new().resolve_endpoint(&params).await;
            assert_eq!(resolved.expect("resolved").url(), host, "{url}");
        }
    }

    #[test]
    fn keys_are_used_and_never_printed() {
        let settings =
            parse("sqs://AKIAX:hunter2@eu-west-1?session_token=tok3n").expect("a good URL");
        let printed = format!("{settings:?}");
        assert!(
            settings.keys.is_some() && !printed.contains("hunter2") && !printed.contains("tok3n")
        );
    }
}
