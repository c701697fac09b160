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

/// The record or the object behind a dead letter that only says where it is.
pub async fn follow(shared: &Arc<Shared>, reporter: &Reporter, id: LookId, row: u32) -> Result<()> {
    let look = shared.look(id)?;
    let delivery = delivery(&look, row)?;
    let death = dead_letter::read(&delivery, &look.connection.headers);
    let (target, note) = match s3_place(&delivery, death.as_ref()) {
        Some((bucket, key)) => fetch_object(&look, bucket.as_deref(), &key).await?,
        None => {
            let (topic, partition, offset) = death
                .as_ref()
                .and_then(record_place)
                .ok_or_else(names_no_record)?;
            fetch(&look, &topic, partition, offset).await?
        }
    };
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

fn names_no_record() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "follow the pointer",
        "this dead letter names no record to read",
    )
    .advise("Its Why tab shows what it points to.")
}

/// Bucket and key of the body that lies in S3.
fn s3_place(
    delivery: &Delivery,
    death: Option<&dead_letter::Death>,
) -> Option<(Option<String>, String)> {
    let pointer = death
        .and_then(|death| death.pointer.clone())
        .or_else(|| dead_letter::pointer(delivery));
    match pointer {
        Some(Pointer::S3 { bucket, key, .. }) => Some((bucket, key)),
        _ => None,
    }
}

/// The body in S3, by the connection's own credentials. What may not be read is said, and is no failure.
async fn fetch_object(
    look: &OpenLook,
    bucket: Option<&str>,
    key: &str,
) -> Result<(Option<Delivery>, String)> {
    let Some(bucket) = bucket else {
        let note = format!(
            "The message names the S3 key {key} but no bucket; the sender's configuration knows it."
        );
        return Ok((None, note));
    };
    let place = format!("s3://{bucket}");
    let position = Position::Id { id: key.to_owned() };
    let session = &look.connection.session;
    let found = session
        .fetch(
            &Address::queue(&place),
            &[position],
            Isolation::ReadUncommitted,
        )
        .await;
    let found = match found {
        Ok(found) => found.into_iter().next().flatten(),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            return Ok((None, error.to_string()));
        }
        Err(error) => return Err(error),
    };
    let note = match &found {
        Some(found) => object_note(&place, key, found),
        None => format!(
            "{place}/{key} is no longer there: it was deleted, or its bucket's lifecycle took it."
        ),
    };
    Ok((found, note))
}

/// What was fetched, and how much of it.
fn object_note(place: &str, key: &str, found: &Delivery) -> String {
    let read = found
        .message
        .body
        .as_ref()
        .map_or(0, |body| body.len() as u64);
    let size = found
        .fact("size")
        .and_then(|size| size.parse().ok())
        .unwrap_or(read);
    if read < size {
        format!("The first {read} of {size} bytes of {place}/{key}, as it is now.")
    } else {
        format!("{place}/{key}, {size} bytes, as it is now.")
    }
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
