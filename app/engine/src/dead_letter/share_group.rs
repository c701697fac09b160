//! Dead letters of Kafka's share groups (KIP-1191). Unless the group copies records, they are only pointers.

use super::{
    Confidence, Death, Pointer,
    field::Field,
    marks::{Marks, Newest, Plain},
};

const SHARE_GROUP: Plain = Plain {
    dialect: "Kafka share group",
    marks: &["__dlq.errors.topic", "__dlq.errors.group"],
    confidence: Confidence::Sure,
    newest: Newest::Last,
    fields: &[
        (Field::Message, "__dlq.errors.message"),
        (Field::Topic, "__dlq.errors.topic"),
        (Field::Partition, "__dlq.errors.partition"),
        (Field::Offset, "__dlq.errors.offset"),
        (Field::Group, "__dlq.errors.group"),
        (Field::Attempts, "__dlq.errors.delivery.count"),
    ],
    scope: "deliveries by the share group",
};

pub(super) fn read(marks: &Marks<'_>) -> Vec<Death> {
    let mut deaths = SHARE_GROUP.read(marks);
    if let Some(death) = deaths.first_mut() {
        // The broker writes the time of dead-lettering as the record's own.
        death.last = marks.delivery.time;
        if death.last.is_some() {
            death.note_source(Field::Last.path(), "the record's timestamp");
        }
        mark_pointer(marks, death);
    }
    deaths
}

/// Without `errors.deadletterqueue.copy.record.enable` neither key nor value is copied. A copied tombstone has its key.
fn mark_pointer(marks: &Marks<'_>, death: &mut Death) {
    let message = &marks.delivery.message;
    if message.key.is_some() || message.body.is_some() {
        death.notes.push(
            "Share groups do not copy the record's own headers: those of this dead letter are not the original's.".to_owned(),
        );
        return;
    }
    let origin = &death.origin;
    if let (Some(topic), Some(partition), Some(offset)) =
        (&origin.topic, origin.partition, origin.offset)
    {
        death.pointer = Some(Pointer::Record {
            topic: topic.clone(),
            partition,
            offset,
        });
        death.notes.push(
            "This dead letter does not hold the record, because the share group does not copy it. Replayed as it is, it would be a tombstone.".to_owned(),
        );
    }
}
