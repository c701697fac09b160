//! Schemas in local files, bound to destinations by name.

use std::path::{Path, PathBuf};

use base64::Engine as _;

use crate::schemas::{Reference, Schema, SchemaKey, SchemaKind};

/// Reads a schema from a file by the end of its name: `.avsc`, `.proto` (imports are looked for
/// beside it and above), `.desc`, `.pb`, `.fds` or `.protoset` (a descriptor set), `.json` (JSON
/// Schema, or Avro if it looks so). The error says what is wrong.
pub fn load_file(path: &Path) -> Result<Schema, String> {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| format!("{} has no name", path.display()))?;
    let wrong = |error: std::io::Error| format!("{} cannot be read: {error}", path.display());
    let key = SchemaKey::Local(name.to_owned());
    let end = path
        .extension()
        .and_then(|end| end.to_str())
        .unwrap_or_default()
        .to_ascii_lowercase();
    let text = || std::fs::read_to_string(path).map_err(wrong);
    let schema = match end.as_str() {
        "avsc" => Schema::new(SchemaKind::Avro, text()?, key),
        "proto" => {
            let text = text()?;
            let imports = imports(&text, path.parent().unwrap_or(Path::new(".")));
            Schema::new(SchemaKind::Protobuf, text, key).with_references(imports)
        }
        "desc" | "pb" | "fds" | "protoset" | "binpb" => {
            let bytes = std::fs::read(path).map_err(wrong)?;
            Schema::new(
                SchemaKind::Protobuf,
                base64::engine::general_purpose::STANDARD.encode(bytes),
                key,
            )
        }
        "json" => {
            let text = text()?;
            let kind = if looks_avro(&text) {
                SchemaKind::Avro
            } else {
                SchemaKind::Json
            };
            Schema::new(kind, text, key)
        }
        _ => {
            return Err(format!(
                "{name} is no schema file; there are .avsc, .proto, .desc and .json"
            ));
        }
    };
    let schema = schema.from_origin(path.display().to_string());
    schema.check()?;
    Ok(schema)
}

/// Reads all schema files of a folder; those that cannot be read come as sentences.
pub fn load_folder(folder: &Path) -> (Vec<Schema>, Vec<String>) {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    let (mut schemas, mut wrong) = (Vec::new(), Vec::new());
    for file in files {
        match load_file(&file) {
            Ok(schema) => schemas.push(schema),
            Err(text) => wrong.push(text),
        }
    }
    (schemas, wrong)
}

fn looks_avro(text: &str) -> bool {
    let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
    value.is_some_and(|value| {
        matches!(
            value.get("type").and_then(serde_json::Value::as_str),
            Some("record" | "enum" | "fixed" | "map")
        )
    })
}

/// All files that a Protobuf source imports, directly or not, as far as they are found.
fn imports(text: &str, folder: &Path) -> Vec<Reference> {
    let mut found: Vec<Reference> = Vec::new();
    let mut open: Vec<String> = imported(text);
    while let Some(name) = open.pop() {
        if found.len() > 200 || found.iter().any(|known| known.name == name) {
            continue;
        }
        // An import is named from a root that may be any folder above the file.
        let place = folder
            .ancestors()
            .map(|above| above.join(&name))
            .find(|path| path.is_file());
        if let Some(text) = place.and_then(|path| std::fs::read_to_string(path).ok()) {
            open.extend(imported(&text));
            found.push(Reference { name, text });
        }
    }
    found
}

fn imported(text: &str) -> Vec<String> {
    let lines = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("import"));
    lines
        .filter_map(|rest| rest.split('"').nth(1))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_by_their_ends() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        };
        write(
            "common/money.proto",
            "syntax = \"proto3\"; message Money { int64 cents = 1; }",
        );
        write("a.avsc", "\"int\"");
        write(
            "b.proto",
            "syntax = \"proto3\";\nimport \"common/money.proto\";\nmessage Pay { Money m = 1; }",
        );
        write("c.json", "{\"type\":\"object\"}");
        write("d.avsc", "{\"type\":\"nope\"}");
        let (schemas, wrong) = load_folder(folder.path());
        let kinds: Vec<SchemaKind> = schemas.iter().map(|schema| schema.kind).collect();
        assert_eq!(
            kinds,
            [SchemaKind::Avro, SchemaKind::Protobuf, SchemaKind::Json]
        );
        assert_eq!(schemas[1].references.len(), 1);
        assert!(
            wrong.len() == 1 && wrong[0].contains("nope is not defined"),
            "{wrong:?}"
        );
        assert_eq!(schemas[0].key, SchemaKey::Local("a.avsc".into()));
    }
}
