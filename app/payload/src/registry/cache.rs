//! Fetched schemas on disk, one file each, so that the next start and a plane need no registry.

use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::schemas::{Schema, SchemaKey};

#[derive(Clone, Debug)]
pub(super) struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// A part of the folder for one registry: ids of different registries mean different schemas.
    pub fn new(folder: PathBuf, registry: &str) -> Self {
        Self {
            folder: folder.join(&digest(registry)[..16]),
        }
    }

    /// What is there; a file that cannot be read is as if it were not.
    pub fn read(&self, key: &SchemaKey) -> Option<Schema> {
        let text = std::fs::read_to_string(self.file(key)).ok()?;
        let schema: Schema = serde_json::from_str(&text).ok()?;
        (schema.key == *key).then_some(schema)
    }

    /// Keeps a schema. The cache is a convenience: not being able to write is only logged.
    pub fn write(&self, schema: &Schema) {
        if let Err(error) = self.try_write(schema) {
            tracing::debug!(%error, "the schema cache cannot be written");
        }
    }

    fn try_write(&self, schema: &Schema) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let file = self.file(&schema.key);
        let new = file.with_extension(format!("{}.new", std::process::id()));
        std::fs::write(&new, serde_json::to_string(schema)?)?;
        std::fs::rename(new, file)
    }

    fn file(&self, key: &SchemaKey) -> PathBuf {
        self.folder
            .join(format!("{}.json", &digest(&key.to_string())[..32]))
    }
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemas::SchemaKind;

    #[test]
    fn there_and_back() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().into(), "http://one");
        let schema =
            Schema::new(SchemaKind::Avro, "\"int\"", SchemaKey::Confluent(7)).in_subject("s", 2);
        cache.write(&schema);
        let again = cache.read(&SchemaKey::Confluent(7)).unwrap();
        assert_eq!(
            (again.text.as_str(), again.label().as_str()),
            ("\"int\"", "s v2")
        );
        assert!(cache.read(&SchemaKey::Confluent(8)).is_none());
        let other = Cache::new(folder.path().into(), "http://two");
        assert!(
            other.read(&SchemaKey::Confluent(7)).is_none(),
            "another registry has other ids"
        );
    }
}
