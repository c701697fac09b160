//! Decoding with schemas: bytes go to `dlo_payload`, and what schemas it asks for is fetched once and kept.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use dlo_core::{Delivery, Error, ErrorKind, Header as CoreHeader, Message, Result, Value};
use dlo_payload::{
    Decoded, Header, Input, Part, Schema, SchemaKey, SchemaSource, Settings,
    bulk::{self, BulkEdit},
    edit::Edited,
    registry::{Auth, RegistryConfig, Resolver},
};

use crate::{
    audit::AuditLog,
    demo,
    shared::{Connection, blocking},
};

/// A schema may need others, so decoding and fetching alternate at most this often.
const ROUNDS: usize = 4;

/// Schemas known to this process, per registry: ids of different registries mean different schemas.
#[derive(Debug)]
pub struct SchemaStore {
    resolvers: Mutex<HashMap<String, Resolver>>,
    cache: Option<AuditLog>,
}

type BodyAndKey = (Arc<Decoded>, Option<Arc<Decoded>>);

impl SchemaStore {
    pub fn new(cache: Option<AuditLog>) -> Self {
        Self {
            resolvers: Mutex::default(),
            cache,
        }
    }

    /// Decodes a message's body and key, by a recipe such as `gzip+json` or as detected. Never fails for the bytes' sake.
    ///
    /// # Errors
    /// [`ErrorKind::ConfigInvalid`] when the recipe, or the address of the schema registry, cannot be read.
    pub async fn decode(
        &self,
        connection: &Connection,
        delivery: &Delivery,
        recipe: Option<&str>,
    ) -> Result<BodyAndKey> {
        let recipe =
            recipe
                .map(str::parse)
                .transpose()
                .map_err(|error: dlo_payload::RecipeError| {
                    Error::new(
                        ErrorKind::ConfigInvalid,
                        "read the decoding recipe",
                        error.to_string(),
                    )
                })?;
        let settings = Settings {
            recipe,
            ..Settings::default()
        };
        let resolver = self.resolver(connection)?;
        self.decode_with(&resolver, &delivery.message, &settings)
            .await
    }

    /// Fetches the schemas that a message needs, so that it can be changed without waiting.
    pub async fn prepare(&self, connection: &Connection, message: &Message) -> Result<()> {
        let resolver = self.resolver(connection)?;
        self.decode_with(&resolver, message, &Settings::default())
            .await
            .map(drop)
    }

    async fn decode_with(
        &self,
        resolver: &Resolver,
        message: &Message,
        settings: &Settings,
    ) -> Result<BodyAndKey> {
        let mut rounds = 0;
        loop {
            let (source, message, settings) = (resolver.clone(), message.clone(), settings.clone());
            let decoded = blocking("decode the message", move || {
                Ok(decode_message(&message, &settings, &source))
            })
            .await?;
            rounds += 1;
            let needs = needs(&decoded);
            if needs.is_empty() || rounds > ROUNDS || !self.fetch(resolver, &needs).await {
                return Ok(decoded);
            }
        }
    }

    /// Fetches schemas, from what earlier sessions kept or from the registry; whether anything is new.
    async fn fetch(&self, resolver: &Resolver, keys: &[SchemaKey]) -> bool {
        let mut news = false;
        for key in keys {
            let kept = format!("{} {key}", resolver.name());
            if let Some(schema) = self.kept(&kept, key).await {
                resolver.schemas().insert(schema);
                news = true;
                continue;
            }
            news |= resolver.fetch(key).await;
            if let dlo_payload::Lookup::Found(schema) = resolver.schemas().find(key) {
                self.keep(&kept, &schema).await;
            }
        }
        news
    }

    async fn kept(&self, name: &str, key: &SchemaKey) -> Option<Schema> {
        let bytes = self.cache.as_ref()?.cached_schema(name).await.ok()??;
        let schema: Schema = serde_json::from_slice(&bytes).ok()?;
        (schema.key == *key).then_some(schema)
    }

    /// Not being able to keep a schema only means that it is fetched again next time.
    async fn keep(&self, name: &str, schema: &Schema) {
        let Some(cache) = &self.cache else { return };
        let Ok(bytes) = serde_json::to_vec(schema) else {
            return;
        };
        if let Err(error) = cache.cache_schema(name, bytes).await {
            tracing::warn!(%error, "the schema could not be kept for the next time");
        }
    }

    /// What finds schemas for a connection.
    ///
    /// # Errors
    /// [`ErrorKind::ConfigInvalid`] when the address of the schema registry cannot be read.
    pub fn resolver(&self, connection: &Connection) -> Result<Resolver> {
        let mut resolvers = self
            .resolvers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let url = connection.registry.as_deref().unwrap_or_default();
        let name = format!("{} {url}", connection.id.0);
        if let Some(known) = resolvers.get(&name) {
            return Ok(known.clone());
        }
        let resolver = match &connection.registry {
            None => demo::resolver(connection).unwrap_or_else(Resolver::offline),
            Some(url) => Resolver::new(&config(url, connection)).map_err(|error| {
                Error::new(
                    ErrorKind::ConfigInvalid,
                    "use the schema registry",
                    error.to_string(),
                )
            })?,
        };
        resolvers.insert(name, resolver.clone());
        Ok(resolver)
    }
}

/// The registry's user stands in its address, the password or token among the connection's secrets.
fn config(url: &str, connection: &Connection) -> RegistryConfig {
    let mut config = RegistryConfig::new(url);
    let secret = |name: &str| {
        connection
            .secrets
            .get(name)
            .map(|secret| secret.expose().to_owned())
    };
    if let (Auth::Basic { password, .. }, Some(secret)) =
        (&mut config.auth, secret("registry.password"))
    {
        *password = secret;
    }
    if let Some(token) = secret("registry.token") {
        config.auth = Auth::Bearer(token);
    }
    config
}

fn needs((body, key): &BodyAndKey) -> Vec<SchemaKey> {
    let mut needs = body.needs.clone();
    needs.extend(key.iter().flat_map(|key| key.needs.clone()));
    needs
}

/// A message's body after a change inside its layers, and what is not byte for byte the same although nobody edited it.
///
/// Works with the schemas that are known by now, see [`SchemaStore::prepare`].
///
/// # Errors
/// A sentence that says why the change does not apply to this message.
pub fn edit_body(
    resolver: &Resolver,
    message: &Message,
    change: &BulkEdit,
) -> Result<Edited, String> {
    let (decoded, _) = decode_message(message, &Settings::default(), resolver);
    bulk::edit(&decoded, change).map(|preview| preview.edited)
}

fn decode_message(
    message: &Message,
    settings: &Settings,
    schemas: &dyn SchemaSource,
) -> BodyAndKey {
    let headers = payload_headers(&message.headers);
    let decode = |part, bytes: Option<&[u8]>| {
        let input = Input {
            part,
            bytes,
            headers: &headers,
            content_type: property(message, "content_type"),
            content_encoding: property(message, "content_encoding"),
        };
        Arc::new(dlo_payload::decode(&input, settings, schemas))
    };
    let key = message
        .key
        .as_deref()
        .map(|key| decode(Part::Key, Some(key)));
    (decode(Part::Value, message.body.as_deref()), key)
}

fn payload_headers(headers: &[CoreHeader]) -> Vec<Header<'_>> {
    headers
        .iter()
        .map(|header| Header {
            name: &header.name,
            value: header.value().as_bytes().map(AsRef::as_ref),
        })
        .collect()
}

/// A content property: AMQP has it beside the headers, other brokers as a header.
fn property<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
    let header = || {
        let dashed = name.replace('_', "-");
        message
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(&dashed))
            .map(CoreHeader::value)
    };
    message
        .properties
        .get(name)
        .or_else(header)
        .and_then(Value::as_text)
}
