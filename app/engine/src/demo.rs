//! The schemas of the demo. Its messages are framed with the ids of a registry that is nowhere, so what that registry would
//! answer is built in.

use dlo_payload::{Schema, SchemaKey, SchemaKind, registry::Resolver};

use crate::shared::Connection;

/// What the demo's session calls itself; the engine knows no connector by its type.
const PRODUCT: &str = "Demo broker";
const SUBJECT: &str = "orders.events-value";

/// A resolver that knows the demo's schemas, if this is a connection to the demo.
pub fn resolver(connection: &Connection) -> Option<Resolver> {
    if connection.session.server().product != PRODUCT {
        return None;
    }
    let resolver = Resolver::offline();
    for (id, version, text) in [
        (
            12,
            7,
            include_str!("../../../assets/demo/order-placed-v7.avsc"),
        ),
        (
            14,
            8,
            include_str!("../../../assets/demo/order-placed-v8.avsc"),
        ),
    ] {
        let schema = Schema::new(SchemaKind::Avro, text, SchemaKey::Confluent(id));
        let schema = schema.in_subject(SUBJECT, version).from_origin("the demo");
        resolver.schemas().insert(schema);
    }
    Some(resolver)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dlo_core::{Address, Delivery, LookRequest, Session};
    use dlo_memory::{
        Broker,
        demo::{self, Traffic},
    };
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{command::ConnectionId, profile::Mode, schemas::SchemaStore};

    fn connection(session: Arc<dyn Session>) -> Connection {
        Connection {
            id: ConnectionId(1),
            label: "demo:".to_owned(),
            broker: "memory",
            mode: Mode::default(),
            headers: crate::dead_letter::Mapping::default(),
            registry: None,
            secrets: dlo_core::Secrets::default(),
            session,
            oldest_seen: Default::default(),
            cancel: CancellationToken::new(),
        }
    }

    async fn dead_events(session: &Arc<dyn Session>) -> Vec<Delivery> {
        let at = Address::topic("orders.events-dlt");
        let look = session.look(&at, LookRequest::new(200)).await.unwrap();
        let page = look.next(200, &CancellationToken::new()).await.unwrap();
        page.deliveries
    }

    #[tokio::test]
    async fn most_of_the_demos_events_decode_with_version_7() {
        let session = demo::broker(Traffic::Off).connect();
        let connection = connection(session.clone());
        let store = SchemaStore::new(None);
        let mut decoded = 0;
        for delivery in dead_events(&session).await {
            let (body, _) = store.decode(&connection, &delivery, None).await.unwrap();
            let is_version_7 = body.schema.as_ref().is_some_and(|s| s.version == Some(7));
            decoded += usize::from(is_version_7 && body.format.name() == "avro");
        }
        // Of 120 twelve are cut, three are tombstones, and three compressed JSON.
        assert_eq!(decoded, 102);
    }

    #[test]
    fn other_brokers_in_memory_do_not_know_the_demos_schemas() {
        assert!(resolver(&connection(Broker::new().connect())).is_none());
    }
}
