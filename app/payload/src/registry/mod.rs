//! Schema registries: the one place in this crate that does I/O.
//!
//! It is separate from decoding, which only looks into [`Schemas`]: a [`Resolver`] fetches what a
//! decoding says it needs, keeps it (in memory, on disk, failures for a short while), and decodes
//! again.

mod apicurio;
mod cache;
mod confluent;
mod files;
mod glue;
mod http;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use files::{load_file, load_folder};
pub use http::{Auth, RegistryConfig};

use crate::input::{Input, Settings};
use crate::report::Decoded;
use crate::schemas::{Lookup, Reference, Schema, SchemaKey, SchemaKind, Schemas};
use cache::Cache;
use http::Http;

/// A failed answer is asked for again after this time.
const FAILURES_LAST: Duration = Duration::from_secs(60);
/// The most schemas one schema may refer to, directly or not.
const MOST_REFERENCES: usize = 200;

/// Why a registry did not give what was asked. The text says what to do.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RegistryError {
    /// It answered that there is no such thing.
    #[error("{0}")]
    Absent(String),
    /// It could not be reached, refused us, or answered something else than schemas.
    #[error("{0}")]
    Failed(String),
}

/// A version of a subject, as a list shows it.
#[derive(Clone, Debug, Eq, PartialEq, serde::Serialize)]
pub struct SubjectVersion {
    pub subject: String,
    pub version: i64,
    /// Deleted softly: no new message may use it, old ones still do.
    pub deleted: bool,
}

/// Fetches schemas for one profile. Cheap to clone; clones share what was fetched.
#[derive(Clone, Debug)]
pub struct Resolver {
    schemas: Schemas,
    http: Option<Http>,
    cache: Option<Cache>,
    failures: Arc<Mutex<HashMap<SchemaKey, Instant>>>,
}

impl Resolver {
    /// A resolver for a registry. The error says what is wrong with the settings; nothing is asked
    /// yet.
    pub fn new(config: &RegistryConfig) -> Result<Self, RegistryError> {
        Ok(Self {
            http: Some(Http::new(config)?),
            ..Self::offline()
        })
    }

    /// A resolver without a registry: local files and what is in the cache.
    pub fn offline() -> Self {
        Self {
            schemas: Schemas::default(),
            http: None,
            cache: None,
            failures: Arc::default(),
        }
    }

    /// The same with a folder in which fetched schemas are kept, for the next start and for working
    /// offline. Ids never change their schema, so what is there is good for ever.
    pub fn with_cache(mut self, folder: PathBuf) -> Self {
        let registry = self.name();
        self.cache = Some(Cache::new(folder, &registry));
        self
    }

    /// The registry's address without secrets; `files` where there is none.
    pub fn name(&self) -> String {
        self.http
            .as_ref()
            .map_or_else(|| "files".to_owned(), Http::name)
    }

    /// What was fetched so far; give it to [`crate::decode`].
    pub fn schemas(&self) -> &Schemas {
        &self.schemas
    }

    /// Decodes a payload and fetches the schemas it needs, until nothing more can be had.
    pub async fn decode(&self, input: &Input<'_>, settings: &Settings) -> Decoded {
        let mut decoded = crate::decode(input, settings, self);
        for _ in 0..4 {
            if decoded.needs.is_empty() || !self.fetch_all(&decoded.needs).await {
                break;
            }
            decoded = crate::decode(input, settings, self);
        }
        decoded
    }

    /// Fetches schemas; whether anything new is known afterwards.
    pub async fn fetch_all(&self, keys: &[SchemaKey]) -> bool {
        let mut news = false;
        for key in keys {
            news |= self.fetch(key).await;
        }
        news
    }

    /// Fetches one schema unless it is known or failed just now; whether the answer is new.
    pub async fn fetch(&self, key: &SchemaKey) -> bool {
        use crate::schemas::SchemaSource as _;
        match self.schemas.find(key) {
            Lookup::Found(_) => return false,
            Lookup::Absent(_) | Lookup::Failed(_) if self.failed_just_now(key) => return false,
            _ => {}
        }
        let answer = self.ask(key).await;
        match &answer {
            Lookup::Found(schema) => self.keep(schema),
            _ => {
                self.failures
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(key.clone(), Instant::now());
            }
        }
        self.schemas.answer(key.clone(), answer);
        true
    }

    /// All subjects, softly deleted ones included and marked.
    pub async fn subjects(&self) -> Result<Vec<SubjectVersion>, RegistryError> {
        let http = self.http()?;
        confluent::subjects(http).await
    }

    /// The versions of a subject, oldest first, softly deleted ones included and marked.
    pub async fn versions(&self, subject: &str) -> Result<Vec<SubjectVersion>, RegistryError> {
        confluent::versions(self.http()?, subject).await
    }

    /// One version of a subject, to show it or to compare or validate against it.
    pub async fn version(&self, subject: &str, version: i64) -> Result<Arc<Schema>, RegistryError> {
        let schema = confluent::version(self.http()?, subject, version).await?;
        Ok(Arc::new(schema))
    }

    /// The newest version of a subject.
    pub async fn latest(&self, subject: &str) -> Result<Arc<Schema>, RegistryError> {
        let schema = confluent::latest(self.http()?, subject).await?;
        Ok(Arc::new(schema))
    }

    fn http(&self) -> Result<&Http, RegistryError> {
        self.http.as_ref().ok_or_else(|| {
            RegistryError::Failed(
                "no schema registry is set up; give its address with --registry".into(),
            )
        })
    }

    fn failed_just_now(&self, key: &SchemaKey) -> bool {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures
            .get(key)
            .is_some_and(|when| when.elapsed() < FAILURES_LAST)
    }

    fn keep(&self, schema: &Schema) {
        if let Some(cache) = &self.cache {
            cache.write(schema);
        }
    }

    async fn ask(&self, key: &SchemaKey) -> Lookup {
        if let Some(schema) = self.cache.as_ref().and_then(|cache| cache.read(key)) {
            return Lookup::Found(Arc::new(schema));
        }
        let Some(http) = &self.http else {
            return Lookup::NoRegistry;
        };
        let answer = match key {
            SchemaKey::Confluent(id) => confluent::by_id(http, *id).await,
            SchemaKey::ConfluentGuid(id) => confluent::by_guid(http, *id).await,
            SchemaKey::ApicurioGlobal(_)
            | SchemaKey::ApicurioContent(_)
            | SchemaKey::ApicurioArtifact { .. } => apicurio::fetch(http, key).await,
            SchemaKey::Fingerprint(print) => confluent::by_fingerprint(http, *print).await,
            SchemaKey::Azure(id) => confluent::azure(http, id).await,
            SchemaKey::Glue(id) => glue::fetch(http, *id).await,
            SchemaKey::Local(name) => Err(RegistryError::Absent(format!(
                "no local schema is called \"{name}\""
            ))),
        };
        match answer {
            Ok(schema) => Lookup::Found(Arc::new(schema)),
            Err(RegistryError::Absent(text)) => Lookup::Absent(text),
            Err(RegistryError::Failed(text)) => Lookup::Failed(text),
        }
    }
}

/// Looks into what was fetched; without a registry a missing schema is nobody's to fetch.
impl crate::schemas::SchemaSource for Resolver {
    fn find(&self, key: &SchemaKey) -> Lookup {
        match self.schemas.find(key) {
            Lookup::NotAsked if self.http.is_none() && self.cache.is_none() => Lookup::NoRegistry,
            // A fingerprint may belong to a schema that came by another key.
            Lookup::NotAsked | Lookup::Absent(_) | Lookup::Failed(_)
                if matches!(key, SchemaKey::Fingerprint(_)) =>
            {
                self.by_fingerprint(key)
            }
            answer => answer,
        }
    }
}

impl Resolver {
    fn by_fingerprint(&self, key: &SchemaKey) -> Lookup {
        use crate::schemas::SchemaSource as _;
        let SchemaKey::Fingerprint(print) = key else {
            return Lookup::NotAsked;
        };
        let known = self.schemas.all_unsorted();
        match known
            .into_iter()
            .find(|schema| schema.fingerprint() == Some(*print))
        {
            Some(schema) => {
                self.schemas
                    .answer(key.clone(), Lookup::Found(Arc::clone(&schema)));
                Lookup::Found(schema)
            }
            None => self.schemas.find(key),
        }
    }
}

/// What a registry calls the language of a schema; none named is Avro in Confluent's API.
fn kind(name: Option<&str>) -> Result<SchemaKind, RegistryError> {
    match name.unwrap_or("AVRO").to_ascii_uppercase().as_str() {
        "AVRO" => Ok(SchemaKind::Avro),
        "PROTOBUF" => Ok(SchemaKind::Protobuf),
        "JSON" => Ok(SchemaKind::Json),
        other => Err(RegistryError::Failed(format!(
            "schemas of type {other} are not read here"
        ))),
    }
}

/// References gathered so far, each after those it needs itself.
#[derive(Debug, Default)]
struct Gathered {
    all: Vec<Reference>,
    seen: std::collections::HashSet<String>,
}

impl Gathered {
    /// Whether a reference is new; too many are an error, as a cycle or a mistake would make them.
    fn is_new(&mut self, place: String) -> Result<bool, RegistryError> {
        if self.seen.len() > MOST_REFERENCES {
            return Err(RegistryError::Failed(format!(
                "the schema refers to more than {MOST_REFERENCES} others"
            )));
        }
        Ok(self.seen.insert(place))
    }
}
