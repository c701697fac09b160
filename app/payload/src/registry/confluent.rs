//! Confluent's API, which Karapace, Redpanda and Apicurio answer too.
//! <https://docs.confluent.io/platform/current/schema-registry/develop/api.html>

use serde_json::Value;
use uuid::Uuid;

use crate::schemas::{Reference, Schema, SchemaKey, SchemaKind};

use super::http::{Http, segment};
use super::{Gathered, RegistryError, SubjectVersion, kind};

/// A schema by its id, with the subject and version it is registered as.
pub(super) async fn by_id(http: &Http, id: u32) -> Result<Schema, RegistryError> {
    let base = http.confluent().await?;
    let answer = http.get_json(&format!("{base}/schemas/ids/{id}")).await?;
    let schema = read(http, &answer, SchemaKey::Confluent(id)).await?;
    Ok(match place(http, id).await {
        Some((subject, version)) => schema.in_subject(subject, version),
        None => schema,
    })
}

/// A schema by its GUID, which only Confluent's own registry has, from version 8.0 on.
pub(super) async fn by_guid(http: &Http, id: Uuid) -> Result<Schema, RegistryError> {
    let base = http.confluent().await?;
    let answer = http.get_json(&format!("{base}/schemas/guids/{id}")).await?;
    let schema = read(http, &answer, SchemaKey::ConfluentGuid(id)).await?;
    let ids = http
        .get_json(&format!("{base}/schemas/guids/{id}/ids"))
        .await
        .ok();
    let number = ids
        .as_ref()
        .and_then(|ids| ids.get(0)?.get("id")?.as_u64())
        .and_then(|id| u32::try_from(id).ok());
    Ok(match number {
        Some(number) => match place(http, number).await {
            Some((subject, version)) => schema.in_subject(subject, version),
            None => schema,
        },
        None => schema,
    })
}

/// An Avro schema by its fingerprint: the registry cannot be asked for one, so all are read.
pub(super) async fn by_fingerprint(http: &Http, print: u64) -> Result<Schema, RegistryError> {
    let base = http.confluent().await?;
    let answer = http
        .get_json(&format!("{base}/schemas?deleted=true"))
        .await?;
    for entry in answer.as_array().into_iter().flatten() {
        if entry
            .get("schemaType")
            .and_then(Value::as_str)
            .is_some_and(|kind| kind != "AVRO")
        {
            continue;
        }
        let Ok(schema) = read(http, entry, SchemaKey::Fingerprint(print)).await else {
            continue;
        };
        if schema.fingerprint() == Some(print) {
            return Ok(schema);
        }
    }
    Err(RegistryError::Absent(
        "no Avro schema of the registry has it".into(),
    ))
}

/// A schema of Azure's registry.
/// <https://learn.microsoft.com/en-us/rest/api/schemaregistry/schema/get-schema-by-id>
pub(super) async fn azure(http: &Http, id: &str) -> Result<Schema, RegistryError> {
    let url = format!(
        "{}/$schemaGroups/$schemas/{}?api-version=2022-10",
        http.name(),
        segment(id)
    );
    let (text, content_type) = http.get(&url).await?;
    let named = content_type
        .as_deref()
        .and_then(|value| value.split("serialization=").nth(1))
        .map(|name| name.trim().to_ascii_uppercase());
    let kind = kind(named.as_deref())?;
    Ok(Schema::new(kind, text, SchemaKey::Azure(id.to_owned())).from_origin(http.name()))
}

/// One version of a subject. A softly deleted one is asked for too.
pub(super) async fn version(
    http: &Http,
    subject: &str,
    version: i64,
) -> Result<Schema, RegistryError> {
    let answer = version_answer(http, subject, version).await?;
    registered(http, &answer).await
}

/// The newest version of a subject.
pub(super) async fn latest(http: &Http, subject: &str) -> Result<Schema, RegistryError> {
    let base = http.confluent().await?;
    let answer = http
        .get_json(&format!(
            "{base}/subjects/{}/versions/latest",
            segment(subject)
        ))
        .await?;
    registered(http, &answer).await
}

/// All subjects, each with its version 0: versions are asked for when a subject is opened.
pub(super) async fn subjects(http: &Http) -> Result<Vec<SubjectVersion>, RegistryError> {
    let base = http.confluent().await?;
    let all = names(
        &http
            .get_json(&format!("{base}/subjects?deleted=true"))
            .await?,
    );
    let live = names(&http.get_json(&format!("{base}/subjects")).await?);
    let mut subjects: Vec<_> = all
        .into_iter()
        .map(|subject| SubjectVersion {
            version: 0,
            deleted: !live.contains(&subject),
            subject,
        })
        .collect();
    subjects.sort_by(|one, two| one.subject.cmp(&two.subject));
    Ok(subjects)
}

pub(super) async fn versions(
    http: &Http,
    subject: &str,
) -> Result<Vec<SubjectVersion>, RegistryError> {
    let base = http.confluent().await?;
    let url = format!("{base}/subjects/{}/versions", segment(subject));
    let all = numbers(&http.get_json(&format!("{url}?deleted=true")).await?);
    // A subject that is deleted altogether is not found without asking for deleted ones.
    let live = http
        .get_json(&url)
        .await
        .map(|answer| numbers(&answer))
        .unwrap_or_default();
    let mut versions: Vec<_> = all
        .into_iter()
        .map(|version| SubjectVersion {
            subject: subject.to_owned(),
            version,
            deleted: !live.contains(&version),
        })
        .collect();
    versions.sort_by_key(|version| version.version);
    Ok(versions)
}

async fn version_answer(http: &Http, subject: &str, version: i64) -> Result<Value, RegistryError> {
    let base = http.confluent().await?;
    let url = format!("{base}/subjects/{}/versions/{version}", segment(subject));
    match http.get_json(&format!("{url}?deleted=true")).await {
        Err(RegistryError::Absent(_)) => http.get_json(&url).await,
        answer => answer,
    }
}

async fn registered(http: &Http, answer: &Value) -> Result<Schema, RegistryError> {
    let id = answer
        .get("id")
        .and_then(Value::as_u64)
        .and_then(|id| u32::try_from(id).ok())
        .unwrap_or(0);
    let schema = read(http, answer, SchemaKey::Confluent(id)).await?;
    let place = answer
        .get("subject")
        .and_then(Value::as_str)
        .zip(answer.get("version").and_then(Value::as_i64));
    Ok(match place {
        Some((subject, version)) => schema.in_subject(subject, version),
        None => schema,
    })
}

/// Where an id is registered. One id may be in several subjects: the first is as good as any, a
/// live one better than a deleted one. Old registries do not answer this.
async fn place(http: &Http, id: u32) -> Option<(String, i64)> {
    let base = http.confluent().await.ok()?;
    let url = format!("{base}/schemas/ids/{id}/versions");
    for url in [url.clone(), format!("{url}?deleted=true")] {
        let answer = http.get_json(&url).await.ok();
        let first = answer
            .as_ref()
            .and_then(|answer| answer.as_array()?.last().cloned());
        if let Some(first) = first {
            return Some((
                first.get("subject")?.as_str()?.to_owned(),
                first.get("version")?.as_i64()?,
            ));
        }
    }
    None
}

/// Reads an answer that holds a schema, and fetches what it refers to.
async fn read(http: &Http, answer: &Value, key: SchemaKey) -> Result<Schema, RegistryError> {
    let text = answer
        .get("schema")
        .and_then(Value::as_str)
        .ok_or_else(|| {
            RegistryError::Failed(format!(
                "the registry at {} answered without a schema",
                http.name()
            ))
        })?;
    let kind: SchemaKind = kind(answer.get("schemaType").and_then(Value::as_str))?;
    let mut gathered = Gathered::default();
    references(http, answer, &mut gathered).await?;
    Ok(Schema::new(kind, text, key)
        .with_references(gathered.all)
        .from_origin(http.name()))
}

async fn references(
    http: &Http,
    answer: &Value,
    gathered: &mut Gathered,
) -> Result<(), RegistryError> {
    for reference in answer
        .get("references")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let part = |name: &str| reference.get(name).and_then(Value::as_str);
        let (Some(name), Some(subject), Some(version)) = (
            part("name"),
            part("subject"),
            reference.get("version").and_then(Value::as_i64),
        ) else {
            continue;
        };
        if !gathered.is_new(format!("{name}\n{subject}\n{version}"))? {
            continue;
        }
        let inside = version_answer(http, subject, version)
            .await
            .map_err(|error| {
                RegistryError::Failed(format!(
                    "the reference {name} ({subject} v{version}) cannot be had: {error}"
                ))
            })?;
        Box::pin(references(http, &inside, gathered)).await?;
        if let Some(text) = inside.get("schema").and_then(Value::as_str) {
            gathered.all.push(Reference {
                name: name.to_owned(),
                text: text.to_owned(),
            });
        }
    }
    Ok(())
}

fn names(answer: &Value) -> Vec<String> {
    answer
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn numbers(answer: &Value) -> Vec<i64> {
    answer
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_i64)
        .collect()
}
