//! Every way in which people have AWS credentials, through the program: which access key signs the requests is seen by a server
//! that remembers it. Roles are assumed at LocalStack's STS. The instance metadata service is asked only when nothing else is left.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use dlo_brokers::{
    required,
    sqs::LOCALSTACK,
    stub::{Answer, Asked, Stub},
};

const ROLE: &str = "arn:aws:iam::000000000000:role/reader";

/// A server in SQS's place, a metadata service, and a home with files of its own.
struct Desk {
    sqs: Stub,
    metadata: Stub,
    home: tempfile::TempDir,
}

impl Desk {
    fn new() -> Result<Self> {
        Self::answering(|_| (200, json(), b"{}".to_vec()))
    }

    fn answering(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Result<Self> {
        Ok(Self {
            sqs: Stub::start(answer)?,
            metadata: Stub::start(metadata)?,
            home: tempfile::tempdir()?,
        })
    }

    fn file(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.home.path().join(name);
        fs::write(&path, text)?;
        Ok(path)
    }

    /// `dlo list` with these options in the URL, and nothing of this machine's own credentials.
    fn list(&self, options: &str, variables: &[(&str, &str)]) -> Result<Output> {
        let url = format!("sqs://eu-west-1?endpoint={}{options}", self.sqs.url);
        let mut command = Command::new(program()?);
        command.args(["list", &url, "--json"]).env_clear();
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("DLO_HOME", self.home.path().join("dlo"))
            .env("AWS_CONFIG_FILE", self.home.path().join("config"))
            .env(
                "AWS_SHARED_CREDENTIALS_FILE",
                self.home.path().join("credentials"),
            )
            .env("AWS_EC2_METADATA_SERVICE_ENDPOINT", &self.metadata.url)
            .envs(variables.iter().copied());
        Ok(command.output()?)
    }

    /// The key that signed, after a listing that went well.
    fn key(&self, options: &str, variables: &[(&str, &str)]) -> Result<String> {
        let output = self.list(options, variables)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{said}");
        let asked = self.sqs.asked();
        let last = asked.last().context("SQS was not asked")?;
        Ok(last.key().context("not signed")?.to_owned())
    }

    fn no_metadata(&self) -> Result<()> {
        let asked = self.metadata.asked();
        ensure!(
            asked.is_empty(),
            "the metadata service was asked: {asked:?}"
        );
        Ok(())
    }
}

fn json() -> Vec<(&'static str, String)> {
    vec![("content-type", "application/x-amz-json-1.0".to_owned())]
}

/// An instance with a role, after <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-security-credentials.html>.
fn metadata(asked: &Asked) -> Answer {
    let line = asked.line.as_str();
    let text = |text: &str| (200, Vec::new(), text.as_bytes().to_vec());
    if line.starts_with("PUT /latest/api/token") {
        let ttl = vec![("x-aws-ec2-metadata-token-ttl-seconds", "21600".to_owned())];
        return (200, ttl, b"token".to_vec());
    }
    if line.contains("/security-credentials/worker") {
        return text(&keys("AKIAINSTANCE"));
    }
    if line.contains("/security-credentials/ ") {
        return text("worker");
    }
    (404, Vec::new(), Vec::new())
}

fn keys(id: &str) -> String {
    format!(
        r#"{{"Code":"Success","Type":"AWS-HMAC","Version":1,"AccessKeyId":"{id}","SecretAccessKey":"s","Token":"t","SessionToken":"t","Expiration":"2099-01-01T00:00:00Z","LastUpdated":"2026-01-01T00:00:00Z"}}"#
    )
}

/// The program beside this test, which `cargo build` made.
fn program() -> Result<PathBuf> {
    let here = std::env::current_exe()?;
    let folder = here.parent().and_then(Path::parent).context("no folder")?;
    let program = folder.join("dlo");
    ensure!(
        program.exists(),
        "{} is missing; run cargo build first",
        program.display()
    );
    Ok(program)
}

fn localstack() -> Result<String> {
    let url = required(LOCALSTACK)?;
    Ok(url
        .split_once("endpoint=")
        .context("no endpoint")?
        .1
        .to_owned())
}

#[test]
fn keys_of_a_profile_come_before_those_of_the_environment() -> Result<()> {
    let desk = Desk::new()?;
    desk.file(
        "credentials",
        "[default]\naws_access_key_id=AKIADEFAULT\naws_secret_access_key=s\n[orders]\naws_access_key_id=AKIAORDERS\naws_secret_access_key=s\n",
    )?;
    let environment = [
        ("AWS_ACCESS_KEY_ID", "AKIAENV"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
    ];
    ensure!(desk.key("", &environment)? == "AKIAENV");
    ensure!(desk.key("", &[])? == "AKIADEFAULT");
    ensure!(desk.key("&profile=orders", &environment)? == "AKIAORDERS");
    desk.no_metadata()
}

#[cfg(unix)]
#[test]
fn a_credential_process_is_run() -> Result<()> {
    let desk = Desk::new()?;
    let answer = desk.file("answer", &keys("AKIAPROCESS"))?;
    let config = format!(
        "[profile own]\ncredential_process = cat {}\n",
        answer.display()
    );
    desk.file("config", &config)?;
    ensure!(desk.key("&profile=own", &[])? == "AKIAPROCESS");
    desk.no_metadata()
}

#[test]
fn roles_are_assumed_from_a_profile_from_the_url_and_by_web_identity() -> Result<()> {
    let desk = Desk::new()?;
    let sts = localstack()?;
    desk.file(
        "config",
        &format!("[profile base]\naws_access_key_id=AKIABASE\naws_secret_access_key=s\n[profile reader]\nrole_arn={ROLE}\nsource_profile=base\n"),
    )?;
    let token = desk.file("token", "a.web.token")?;
    let sts = [("AWS_ENDPOINT_URL_STS", sts.as_str())];
    let assumed = |key: String| !key.starts_with("AKIABASE") && key.len() >= 16;
    ensure!(assumed(desk.key("&profile=reader", &sts)?));
    ensure!(assumed(
        desk.key(&format!("&profile=base&role={ROLE}"), &sts)?
    ));
    let web = [
        sts[0],
        ("AWS_ROLE_ARN", ROLE),
        (
            "AWS_WEB_IDENTITY_TOKEN_FILE",
            token.to_str().context("a path")?,
        ),
    ];
    ensure!(assumed(desk.key("", &web)?));
    ensure!(
        desk.sqs
            .asked()
            .iter()
            .all(|asked| asked.header("x-amz-security-token").is_some())
    );
    desk.no_metadata()
}

#[test]
fn a_container_gives_its_role_with_its_token() -> Result<()> {
    let desk = Desk::new()?;
    let container = Stub::start(|_| (200, json(), keys("AKIACONTAINER").into_bytes()))?;
    let address = format!("{}/role", container.url);
    let variables = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", address.as_str()),
        (
            "AWS_CONTAINER_AUTHORIZATION_TOKEN",
            "Bearer of-the-container",
        ),
    ];
    ensure!(desk.key("", &variables)? == "AKIACONTAINER");
    let asked = container.asked();
    ensure!(
        asked[0].header("authorization") == Some("Bearer of-the-container"),
        "{asked:?}"
    );
    desk.no_metadata()
}

#[test]
fn the_instance_is_asked_when_nothing_else_is_left() -> Result<()> {
    let desk = Desk::new()?;
    ensure!(desk.key("", &[])? == "AKIAINSTANCE");
    ensure!(!desk.metadata.asked().is_empty());
    Ok(())
}

/// What a person reads, and that it names what to do.
#[test]
fn refusals_are_said_in_a_persons_words() -> Result<()> {
    let cases = [
        (
            "ExpiredTokenException",
            "The security token included in the request is expired",
            "expired",
            "aws sso login",
        ),
        (
            "SignatureDoesNotMatch",
            "Credential should be scoped to a valid region.",
            "another region",
            "region that the endpoint belongs to",
        ),
        (
            "InvalidClientTokenId",
            "The security token included in the request is invalid.",
            "does not accept the access key",
            "clock",
        ),
        (
            "AccessDeniedException",
            "User: arn:aws:iam::1:user/u is not authorized to perform: sqs:ListQueues on resource: *",
            "not authorized",
            "sqs:ListQueues",
        ),
    ];
    for (code, message, says, advises) in cases {
        let desk = Desk::answering(move |_| {
            let mut headers = json();
            headers.push(("x-amzn-errortype", code.to_owned()));
            let body =
                format!(r#"{{"__type":"com.amazon.coral.service#{code}","message":"{message}"}}"#);
            (400, headers, body.into_bytes())
        })?;
        let variables = [
            ("AWS_ACCESS_KEY_ID", "AKIAENV"),
            ("AWS_SECRET_ACCESS_KEY", "hunter2"),
        ];
        let output = desk.list("", &variables)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(!output.status.success(), "{code} was taken for success");
        ensure!(
            said.contains(says) && said.contains(advises),
            "{code}: {said}"
        );
        ensure!(!said.contains("hunter2"));
    }
    Ok(())
}

/// Without any credentials the answer comes soon and says where they could come from.
#[test]
fn no_credentials_at_all_is_said() -> Result<()> {
    let desk = Desk::new()?;
    let output = desk.list("", &[("AWS_EC2_METADATA_DISABLED", "true")])?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        !output.status.success() && said.contains("credentials"),
        "{said}"
    );
    desk.no_metadata()
}
