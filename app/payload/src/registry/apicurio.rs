//! Apicurio's own API, version 3 and before it 2: global ids, content ids and artifacts.
//! <https://www.apicur.io/registry/docs/apicurio-registry/3.0.x/assets-attachments/registry-rest-api.htm>

use serde_json::Value;

use crate::schemas::{Reference, Schema, SchemaKey, SchemaKind};

use super::http::{Http, segment};
use super::{Gathered, RegistryError, kind};

/// A schema by one of Apicurio's keys. An old server answers only version 2 of the API.
pub(super) async fn fetch(http: &Http, key: &SchemaKey) -> Result<Schema, RegistryError> {
    match by_version(http, key, 3).await {
        Err(RegistryError::Absent(text)) => match by_version(http, key, 2).await {
            Err(RegistryError::Absent(_)) => Err(RegistryError::Absent(text)),
            answer => answer,
        },
        answer => answer,
    }
}

async fn by_version(http: &Http, key: &SchemaKey, version: u8) -> Result<Schema, RegistryError> {
    let base = http.apicurio(version);
    let (content, references) = match key {
        SchemaKey::ApicurioGlobal(id) => (
            format!("{base}/ids/globalIds/{id}"),
            format!("{base}/ids/globalIds/{id}/references"),
        ),
        SchemaKey::ApicurioContent(id) => (
            format!("{base}/ids/contentIds/{id}"),
            format!("{base}/ids/contentIds/{id}/references"),
        ),
        SchemaKey::ApicurioArtifact {
            group,
            artifact,
            version: number,
        } => {
            let place = artifact_place(
                &base,
                version,
                group.as_deref(),
                artifact,
                number.as_deref(),
            );
            let content = if version == 3 {
                format!("{place}/content")
            } else {
                place.clone()
            };
            (content, format!("{place}/references"))
        }
        other => {
            return Err(RegistryError::Failed(format!(
                "{other} is nothing of Apicurio's"
            )));
        }
    };
    let (text, type_header) = http.get(&content).await?;
    let mut gathered = Gathered::default();
    let listed = http.get_json(&references).await.unwrap_or(Value::Null);
    gather(http, &base, version, &listed, &mut gathered).await?;
    let found = metadata(http, &base, version, key).await;
    let kind = kind_of(type_header.or(found.kind).as_deref(), &text)?;
    let schema = Schema::new(kind, text, key.clone())
        .with_references(gathered.all)
        .from_origin(http.name());
    Ok(match found.place {
        Some((subject, version)) => schema.in_subject(subject, version),
        None => schema,
    })
}

/// The address of a version of an artifact; none named is the newest one.
fn artifact_place(
    base: &str,
    api: u8,
    group: Option<&str>,
    artifact: &str,
    version: Option<&str>,
) -> String {
    let latest = if api == 3 { "branch=latest" } else { "latest" };
    let place = format!(
        "{base}/groups/{}/artifacts/{}",
        segment(group.unwrap_or("default")),
        segment(artifact)
    );
    match version {
        Some(version) => format!("{place}/versions/{}", segment(version)),
        None if api == 2 => place,
        None => format!("{place}/versions/{latest}"),
    }
}

#[derive(Default)]
struct Metadata {
    kind: Option<String>,
    place: Option<(String, i64)>,
}

/// The artifact that an id belongs to; the answers by id do not say.
async fn metadata(http: &Http, base: &str, version: u8, key: &SchemaKey) -> Metadata {
    let url = match (key, version) {
        (SchemaKey::ApicurioGlobal(id), 3) => {
            format!("{base}/search/versions?globalId={id}&limit=1")
        }
        (SchemaKey::ApicurioContent(id), 3) => {
            format!("{base}/search/versions?contentId={id}&limit=1")
        }
        (
            SchemaKey::ApicurioArtifact {
                group,
                artifact,
                version: Some(number),
            },
            _,
        ) => {
            let place = artifact_place(base, version, group.as_deref(), artifact, Some(number));
            if version == 3 {
                place
            } else {
                format!("{place}/meta")
            }
        }
        _ => return Metadata::default(),
    };
    let Ok(answer) = http.get_json(&url).await else {
        return Metadata::default();
    };
    let first = answer
        .get("versions")
        .and_then(|versions| versions.get(0))
        .unwrap_or(&answer);
    let text = |name: &str| first.get(name).and_then(Value::as_str).map(str::to_owned);
    let place = text("artifactId")
        .or_else(|| text("id"))
        .zip(text("version").and_then(|version| version.parse().ok()));
    Metadata {
        kind: text("artifactType").or_else(|| text("type")),
        place,
    }
}

async fn gather(
    http: &Http,
    base: &str,
    version: u8,
    listed: &Value,
    gathered: &mut Gathered,
) -> Result<(), RegistryError> {
    for reference in listed.as_array().into_iter().flatten() {
        let part = |name: &str| reference.get(name).and_then(Value::as_str);
        let (Some(name), Some(artifact)) = (part("name"), part("artifactId")) else {
            continue;
        };
        let place = artifact_place(base, version, part("groupId"), artifact, part("version"));
        if !gathered.is_new(format!("{name}\n{place}"))? {
            continue;
        }
        let inside = http
            .get_json(&format!("{place}/references"))
            .await
            .unwrap_or(Value::Null);
        Box::pin(gather(http, base, version, &inside, gathered)).await?;
        let content = if version == 3 {
            format!("{place}/content")
        } else {
            place
        };
        let (text, _) = http.get(&content).await.map_err(|error| {
            RegistryError::Failed(format!("the reference {name} cannot be had: {error}"))
        })?;
        gathered.all.push(Reference {
            name: name.to_owned(),
            text,
        });
    }
    Ok(())
}

/// The language of a schema: as the registry says, else as the text looks.
fn kind_of(named: Option<&str>, text: &str) -> Result<SchemaKind, RegistryError> {
    if let Some(name) = named {
        return kind(Some(name));
    }
    let json: Option<Value> = serde_json::from_str(text).ok();
    let is_avro = json.as_ref().is_some_and(|value| {
        value.is_string()
            || value.is_array()
            || ["fields", "symbols", "items", "values", "size"]
                .iter()
                .any(|part| value.get(part).is_some())
            || value.get("logicalType").is_some()
    });
    Ok(match (json, is_avro) {
        (None, _) => SchemaKind::Protobuf,
        (Some(_), true) => SchemaKind::Avro,
        (Some(_), false) => SchemaKind::Json,
    })
}
