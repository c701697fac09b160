//! The schema registry client against a real Apicurio: Confluent's API and its own.
//!
//! `with registry -- cargo test -p dlo-brokers --test registry` starts one and sets `DLO_TEST_REGISTRY`.

#![allow(
    clippy::expect_used,
    reason = "the whole file is a test that may fail loudly"
)]

use dlo_payload::registry::{RegistryConfig, Resolver};
use dlo_payload::{
    Header, Input, Lookup, SchemaKey, SchemaKind, SchemaSource as _, Settings, compare, validate,
};
use serde_json::{Value, json};

/// A registry with names of its own for one test.
struct Registry {
    root: String,
    client: reqwest::Client,
    prefix: String,
}

impl Registry {
    fn started() -> Self {
        Self {
            root: dlo_brokers::required("DLO_TEST_REGISTRY").expect("a registry"),
            client: reqwest::Client::new(),
            prefix: format!("t{}", uuid::Uuid::now_v7().simple()),
        }
    }

    fn resolver(&self) -> Resolver {
        Resolver::new(&RegistryConfig::new(&self.root)).expect("the settings are right")
    }

    fn subject(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let url = format!("{}{path}", self.root);
        let answer = self
            .client
            .post(&url)
            .json(body)
            .send()
            .await
            .expect("the registry answers");
        assert!(
            answer.status().is_success(),
            "{url}: {}",
            answer.text().await.unwrap_or_default()
        );
        answer.json().await.expect("an answer in JSON")
    }

    /// Registers a schema and gives its id.
    async fn register(&self, name: &str, kind: &str, schema: &str, references: Value) -> u32 {
        let path = format!("/apis/ccompat/v7/subjects/{}/versions", self.subject(name));
        let answer = self
            .post(
                &path,
                &json!({"schemaType": kind, "schema": schema, "references": references}),
            )
            .await;
        u32::try_from(answer["id"].as_u64().expect("an id")).expect("a small id")
    }

    async fn delete(&self, path: &str) {
        let url = format!("{}/apis/ccompat/v7{path}", self.root);
        let answer = self
            .client
            .delete(&url)
            .send()
            .await
            .expect("the registry answers");
        assert!(answer.status().is_success(), "{url}");
    }
}

/// A record that no other test registers, so that its id is its own.
fn record(prefix: &str, fields: Value) -> String {
    json!({"type": "record", "name": format!("R{prefix}"), "fields": fields}).to_string()
}

fn framed(id: u32, payload: &[u8]) -> Vec<u8> {
    [&[0][..], &id.to_be_bytes(), payload].concat()
}

#[tokio::test]
async fn avro_is_fetched_and_decoded() {
    let registry = Registry::started();
    let id = registry
        .register(
            "orders-value",
            "AVRO",
            &record(&registry.prefix, json!([{"name": "a", "type": "string"}])),
            json!([]),
        )
        .await;
    let resolver = registry.resolver();
    let decoded = resolver
        .decode(&Input::value(&framed(id, b"\x04hi")), &Settings::default())
        .await;
    assert_eq!(
        decoded.chips(),
        ["confluent", "avro"],
        "{:?}",
        decoded.report()
    );
    let schema = decoded.schema.expect("a schema");
    assert_eq!(
        (schema.subject.as_deref(), schema.version),
        (Some(registry.subject("orders-value").as_str()), Some(1))
    );
    assert!(
        !resolver.fetch(&SchemaKey::Confluent(id)).await,
        "what is known is not fetched again"
    );
}

#[tokio::test]
async fn references_of_avro_and_protobuf_are_fetched_too() {
    let registry = Registry::started();
    let money = format!("Money{}", registry.prefix);
    registry.register("money", "AVRO", &json!({"type": "record", "name": money, "fields": [{"name": "cents", "type": "long"}]}).to_string(), json!([])).await;
    let references = json!([{"name": money, "subject": registry.subject("money"), "version": 1}]);
    let pay = registry
        .register(
            "pay-value",
            "AVRO",
            &record(&registry.prefix, json!([{"name": "m", "type": money}])),
            references,
        )
        .await;
    let resolver = registry.resolver();
    let decoded = resolver
        .decode(&Input::value(&framed(pay, b"\x04")), &Settings::default())
        .await;
    assert_eq!(
        decoded.document.to_json().to_string(),
        r#"{"m":{"cents":2}}"#,
        "{:?}",
        decoded.report()
    );

    let package = &registry.prefix;
    registry
        .register(
            "common.proto",
            "PROTOBUF",
            &format!(
                "syntax = \"proto3\"; package {package}c; message Money {{ string cur = 1; }}"
            ),
            json!([]),
        )
        .await;
    let references = json!([{"name": "common.proto", "subject": registry.subject("common.proto"), "version": 1}]);
    let text = format!(
        "syntax = \"proto3\"; package {package}; import \"common.proto\"; message Pay {{ string id = 1; {package}c.Money m = 2; message Inner {{ int32 a = 1; }} }}"
    );
    let id = registry
        .register("proto-value", "PROTOBUF", &text, references)
        .await;
    let decoded = resolver
        .decode(
            &Input::value(&framed(id, b"\x00\x0a\x01x\x12\x05\x0a\x03EUR")),
            &Settings::default(),
        )
        .await;
    assert_eq!(
        decoded.document.to_json().to_string(),
        r#"{"id":"x","m":{"cur":"EUR"}}"#,
        "{:?}",
        decoded.report()
    );
    let nested = resolver
        .decode(
            &Input::value(&framed(id, b"\x04\x00\x00\x08\x07")),
            &Settings::default(),
        )
        .await;
    assert_eq!(nested.message_type, Some(format!("{package}.Pay.Inner")));
}

#[tokio::test]
async fn json_schema_validates_against_another_version() {
    let registry = Registry::started();
    let one = json!({"$schema": "http://json-schema.org/draft-07/schema#", "title": registry.prefix, "type": "object"}).to_string();
    let two =
        json!({"$schema": "http://json-schema.org/draft-07/schema#", "title": registry.prefix, "type": "object", "required": ["currency"]}).to_string();
    let id = registry.register("js-value", "JSON", &one, json!([])).await;
    registry.register("js-value", "JSON", &two, json!([])).await;
    let resolver = registry.resolver();
    let decoded = resolver
        .decode(
            &Input::value(&framed(id, b"{\"a\":1}")),
            &Settings::default(),
        )
        .await;
    let newer = resolver
        .version(&registry.subject("js-value"), 2)
        .await
        .expect("version 2");
    let problems = validate::validate(&decoded.document, &newer, None).expect("a usable schema");
    assert_eq!(
        problems[0].to_string(),
        "(whole value): \"currency\" is a required property"
    );
    let older = decoded.schema.expect("a schema");
    assert!(!compare(&older, &newer).is_same());
    assert_eq!(newer.version, Some(2));
}

#[tokio::test]
async fn softly_deleted_versions_still_decode_and_are_marked() {
    let registry = Registry::started();
    let id = registry
        .register(
            "gone-value",
            "AVRO",
            &record(&registry.prefix, json!([{"name": "a", "type": "int"}])),
            json!([]),
        )
        .await;
    registry
        .register(
            "gone-value",
            "AVRO",
            &record(
                &registry.prefix,
                json!([{"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 0}]),
            ),
            json!([]),
        )
        .await;
    registry
        .delete(&format!(
            "/subjects/{}/versions/1",
            registry.subject("gone-value")
        ))
        .await;
    let resolver = registry.resolver();
    let decoded = resolver
        .decode(&Input::value(&framed(id, b"\x02")), &Settings::default())
        .await;
    assert_eq!(
        decoded.document.to_json().to_string(),
        r#"{"a":1}"#,
        "{:?}",
        decoded.report()
    );
    let versions = resolver
        .versions(&registry.subject("gone-value"))
        .await
        .expect("versions");
    let marks: Vec<(i64, bool)> = versions
        .iter()
        .map(|version| (version.version, version.deleted))
        .collect();
    assert_eq!(marks, [(1, true), (2, false)]);
}

#[tokio::test]
async fn what_is_not_there_is_said_once() {
    let registry = Registry::started();
    let resolver = registry.resolver();
    let payload = framed(7_654_321, b"\x04hi");
    let decoded = resolver
        .decode(&Input::value(&payload), &Settings::default())
        .await;
    assert!(decoded.needs.is_empty(), "asking again would not help");
    assert!(
        decoded
            .report()
            .iter()
            .any(|line| line.starts_with("there is no Confluent id 7654321: ")),
        "{:?}",
        decoded.report()
    );
    assert!(matches!(
        resolver.schemas().find(&SchemaKey::Confluent(7_654_321)),
        Lookup::Absent(_)
    ));
    assert!(
        !resolver.fetch(&SchemaKey::Confluent(7_654_321)).await,
        "a failure is remembered for a while"
    );
    let long = resolver
        .decode(
            &Input::key(&0x0000_0001_7fff_ffffi64.to_be_bytes()),
            &Settings::default(),
        )
        .await;
    assert_eq!(long.chips(), ["int64"], "{:?}", long.report());
}

#[tokio::test]
async fn apicurio_by_its_own_ids_and_names() {
    let registry = Registry::started();
    let group = &registry.prefix;
    let text = record(group, json!([{"name": "a", "type": "string"}]));
    let body = json!({"artifactId": "own", "artifactType": "AVRO", "firstVersion": {"version": "1", "content": {"content": text, "contentType": "application/json"}}});
    let made = registry
        .post(
            &format!("/apis/registry/v3/groups/{group}/artifacts"),
            &body,
        )
        .await;
    let global = made["version"]["globalId"].as_i64().expect("a global id");
    let content = made["version"]["contentId"].as_i64().expect("a content id");
    let resolver = registry.resolver();

    let eight = [&[0][..], &global.to_be_bytes(), b"\x04hi"].concat();
    let decoded = resolver
        .decode(&Input::value(&eight), &Settings::default())
        .await;
    assert_eq!(
        decoded.chips(),
        ["apicurio", "avro"],
        "{:?}",
        decoded.report()
    );
    assert_eq!(
        decoded
            .schema
            .and_then(|schema| schema.subject.clone())
            .as_deref(),
        Some("own")
    );

    let id = content.to_be_bytes();
    let headers = [Header {
        name: "apicurio.value.contentId",
        value: Some(&id),
    }];
    let decoded = resolver
        .decode(
            &Input {
                headers: &headers,
                ..Input::value(b"\x04hi")
            },
            &Settings::default(),
        )
        .await;
    assert_eq!(
        decoded.chips(),
        ["apicurio-headers", "avro"],
        "{:?}",
        decoded.report()
    );

    let headers = [
        Header::text("apicurio.value.groupId", group),
        Header::text("apicurio.value.artifactId", "own"),
        Header::text("apicurio.value.version", "1"),
    ];
    let decoded = resolver
        .decode(
            &Input {
                headers: &headers,
                ..Input::value(b"\x04hi")
            },
            &Settings::default(),
        )
        .await;
    assert_eq!(
        decoded.document.to_json().to_string(),
        r#"{"a":"hi"}"#,
        "{:?}",
        decoded.report()
    );
}

#[tokio::test]
async fn single_objects_find_their_schema_by_fingerprint() {
    let registry = Registry::started();
    let text = record(&registry.prefix, json!([{"name": "a", "type": "string"}]));
    registry
        .register("single-value", "AVRO", &text, json!([]))
        .await;
    let print = dlo_payload::Schema::new(SchemaKind::Avro, text, SchemaKey::Confluent(0))
        .fingerprint()
        .expect("a fingerprint");
    let payload = [&[0xc3, 0x01][..], &print.to_le_bytes(), b"\x04hi"].concat();
    let decoded = registry
        .resolver()
        .decode(&Input::value(&payload), &Settings::default())
        .await;
    assert_eq!(
        decoded.chips(),
        ["avro-single-object", "avro"],
        "{:?}",
        decoded.report()
    );
}

#[tokio::test]
async fn hundreds_of_subjects_are_listed_and_the_cache_works_offline() {
    let registry = Registry::started();
    let text = record(&registry.prefix, json!([{"name": "a", "type": "string"}]));
    let mut id = 0;
    for number in 0..300 {
        id = registry
            .register(&format!("many-{number:03}"), "AVRO", &text, json!([]))
            .await;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let resolver = registry.resolver().with_cache(folder.path().into());
    let subjects = resolver.subjects().await.expect("subjects");
    let own = subjects
        .iter()
        .filter(|subject| subject.subject.starts_with(&registry.prefix))
        .count();
    assert_eq!(own, 300);
    let payload = framed(id, b"\x04hi");
    let first = resolver
        .decode(&Input::value(&payload), &Settings::default())
        .await;
    assert_eq!(first.chips(), ["confluent", "avro"]);

    // The same address, but nobody is asked: the cache answers before the network.
    let again = registry.resolver().with_cache(folder.path().into());
    let second = again
        .decode(&Input::value(&payload), &Settings::default())
        .await;
    assert_eq!(second.document, first.document);
    assert_eq!(
        std::fs::read_dir(folder.path())
            .expect("the folder")
            .count(),
        1
    );
}
