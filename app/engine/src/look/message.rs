//! One message, whole: its death, its decoded body and key, its history.

use std::sync::Arc;

use dlo_core::{Address, Delivery, Error, ErrorKind, Isolation, Position, Result};

use super::OpenLook;
use crate::{
    audit::{AuditFilter, Choice},
    command::{DecodeAs, LookId},
    dead_letter::{self, Pointer},
    event::{News, Opened},
    records::{self, journal_error},
    shared::{Reporter, Shared, blocking},
};

/// Entries of a message's history that are shown.
const HISTORY: u32 = 50;

/// Decodes a row's message and finds out what was done with it before.
pub async fn open(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    id: LookId,
    row: u32,
    decode: DecodeAs,
) -> Result<()> {
    let look = shared.look(id)?;
    let delivery = delivery(&look, row)?;
    let recipe = recipe(shared, &look, decode).await?;
    let (body, key) = shared
        .schemas
        .decode(&look.connection, &delivery, recipe.as_deref())
        .await?;
    let death = dead_letter::read(&delivery, &look.connection.headers);
    let history = history(shared, &look, &delivery).await;
    let opened = Opened {
        look: id,
        row,
        delivery,
        death,
        body,
        key,
        history,
    };
    reporter.tell(News::Opened(Arc::new(opened))).await;
    Ok(())
}

/// The record behind a dead letter that only says where it is.
pub async fn follow(shared: &Arc<Shared>, reporter: &Reporter, id: LookId, row: u32) -> Result<()> {
    let look = shared.look(id)?;
    let delivery = delivery(&look, row)?;
    let death = dead_letter::read(&delivery, &look.connection.headers);
    let place = death.as_ref().and_then(record_place);
    let Some((topic, partition, offset)) = place else {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "follow the pointer",
            "this dead letter names no record to read",
        )
        .advise("Its Why tab shows what it points to."));
    };
    let (target, note) = fetch(&look, &topic, partition, offset).await?;
    reporter
        .tell(News::Pointed {
            look: id,
            row,
            target: target.map(Arc::new),
            note,
        })
        .await;
    Ok(())
}

/// Where the record is that a death points to, or that it was copied from.
fn record_place(death: &dead_letter::Death) -> Option<(String, i32, i64)> {
    death
        .all()
        .find_map(|death| match (&death.pointer, &death.origin) {
            (
                Some(Pointer::Record {
                    topic,
                    partition,
                    offset,
                }),
                _,
            ) => Some((topic.clone(), *partition, *offset)),
            (_, origin) => Some((origin.topic.clone()?, origin.partition?, origin.offset?)),
        })
}

async fn fetch(
    look: &OpenLook,
    topic: &str,
    partition: i32,
    offset: i64,
) -> Result<(Option<Delivery>, String)> {
    let position = Position::Offset { partition, offset };
    let address = Address::topic(topic);
    let found = look
        .connection
        .session
        .fetch(&address, &[position], Isolation::ReadUncommitted)
        .await?
        .into_iter()
        .next()
        .flatten();
    let note = match &found {
        Some(_) => format!("Record {partition}:{offset} of {topic}, as it is now."),
        None => format!(
            "Record {partition}:{offset} of {topic} is no longer there: retention or compaction has removed it."
        ),
    };
    Ok((found, note))
}

fn delivery(look: &OpenLook, row: u32) -> Result<Delivery> {
    look.view.delivery(row).ok_or_else(|| {
        Error::new(
            ErrorKind::NotFound,
            "open the message",
            "it is no longer loaded",
        )
        .advise("Look again.")
    })
}

/// The recipe to decode by: as asked, or as remembered for the destination.
async fn recipe(shared: &Shared, look: &OpenLook, decode: DecodeAs) -> Result<Option<String>> {
    let (place, destination) = (&look.connection.label, &look.address().name);
    match decode {
        DecodeAs::Recipe(recipe) => Ok(Some(recipe)),
        DecodeAs::Remember(recipe) => {
            let value = (!recipe.is_empty()).then(|| recipe.clone());
            let kept = shared.audit()?.set_choice(
                Choice::Decoding,
                place,
                destination,
                value.map(|v| format!("{v:?}")),
            );
            kept.await.map_err(journal_error)?;
            Ok((!recipe.is_empty()).then_some(recipe))
        }
        DecodeAs::Detected => Ok(remembered_recipe(shared, look).await),
    }
}

/// How a person chose to decode the bodies of the look's destination.
pub(super) async fn remembered_recipe(shared: &Shared, look: &OpenLook) -> Option<String> {
    let (place, destination) = (&look.connection.label, &look.address().name);
    let audit = shared.audit().ok()?;
    let kept = audit
        .choice(Choice::Decoding, place, destination)
        .await
        .unwrap_or_default();
    kept.and_then(|text| serde_json::from_str(&text).ok())
}

async fn history(
    shared: &Shared,
    look: &OpenLook,
    delivery: &Delivery,
) -> Vec<crate::event::AuditLine> {
    let Ok(audit) = shared.audit() else {
        return Vec::new();
    };
    let message = delivery.message.clone();
    let Ok(sha256) = blocking("hash the body", move || Ok(message.sha256())).await else {
        return Vec::new();
    };
    let filter = AuditFilter {
        sha256: Some(sha256),
        profile: Some(look.connection.label.clone()),
        limit: Some(HISTORY),
        ..AuditFilter::default()
    };
    let entries = audit.query(filter).await.unwrap_or_default();
    entries.into_iter().map(records::line).collect()
}
