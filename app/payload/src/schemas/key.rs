//! How a payload names its schema, in each registry's own terms.

use std::fmt;

use serde_json::Value;
use uuid::Uuid;

/// What a payload says about its schema.
#[derive(Clone, Debug, Eq, Hash, PartialEq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchemaKey {
    /// The id of Confluent's API, four bytes in the payload.
    Confluent(u32),
    /// The GUID of Confluent's API, in a header since 8.0.
    ConfluentGuid(Uuid),
    ApicurioGlobal(i64),
    ApicurioContent(i64),
    /// An artifact's version, as Apicurio's headers may name it.
    ApicurioArtifact {
        group: Option<String>,
        artifact: String,
        version: Option<String>,
    },
    /// The version id of AWS Glue.
    Glue(Uuid),
    /// The CRC-64-AVRO fingerprint of a schema's canonical form.
    Fingerprint(u64),
    /// The id of Azure's registry, 32 hexadecimal digits.
    Azure(String),
    /// A file bound by hand, under the name given to it.
    Local(String),
}

impl SchemaKey {
    /// The id as JSON: a number where the registry counts, else text.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Confluent(id) => (*id).into(),
            Self::ApicurioGlobal(id) | Self::ApicurioContent(id) => (*id).into(),
            Self::ConfluentGuid(id) | Self::Glue(id) => id.to_string().into(),
            Self::ApicurioArtifact { artifact, .. } => artifact.clone().into(),
            Self::Fingerprint(print) => format!("{print:016x}").into(),
            Self::Azure(id) | Self::Local(id) => id.clone().into(),
        }
    }
}

impl fmt::Display for SchemaKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Confluent(id) => write!(out, "Confluent id {id}"),
            Self::ConfluentGuid(id) => write!(out, "Confluent GUID {id}"),
            Self::ApicurioGlobal(id) => write!(out, "Apicurio global id {id}"),
            Self::ApicurioContent(id) => write!(out, "Apicurio content id {id}"),
            Self::ApicurioArtifact {
                group,
                artifact,
                version,
            } => {
                write!(
                    out,
                    "Apicurio artifact {}/{artifact}",
                    group.as_deref().unwrap_or("default")
                )?;
                version
                    .as_ref()
                    .map_or(Ok(()), |version| write!(out, " version {version}"))
            }
            Self::Glue(id) => write!(out, "Glue version {id}"),
            Self::Fingerprint(print) => write!(out, "Avro fingerprint {print:016x}"),
            Self::Azure(id) => write!(out, "Azure schema {id}"),
            Self::Local(name) => write!(out, "the local schema \"{name}\""),
        }
    }
}
