//! What a message only points to, printed after it: a body in S3, a Kafka record. Separate from the look, which is made of
//! messages that the queue itself holds.

use std::sync::Arc;

use dlo_core::{Delivery, ErrorKind, Result};
use dlo_engine::{Ask, News};
use serde_json::json;

use crate::{
    client::{Client, Looked},
    out::{Out, printable, remark},
};

/// Characters of a body that are printed for a person; `--json` prints all that was fetched.
const SHOWN: usize = 2000;

/// Follows the row's pointer. A message without one prints nothing; a pointer that cannot be followed is said and is no failure.
pub async fn print(client: &mut Client, out: &mut Out, looked: &Looked, row: u32) -> Result<()> {
    let ask = Ask::Follow {
        look: looked.opened.look,
        row,
    };
    let pick = |news| {
        if let News::Pointed { target, note, .. } = news {
            Some((target, note))
        } else {
            None
        }
    };
    match client.ask_for(ask, pick).await {
        Ok((target, note)) => show(out, target.as_ref(), &note),
        Err(error) if error.kind() == ErrorKind::Unsupported => {}
        Err(error) if error.kind() == ErrorKind::Cancelled => return Err(error),
        Err(error) => remark(&error.to_string()),
    }
    Ok(())
}

fn show(out: &mut Out, target: Option<&Arc<Delivery>>, note: &str) {
    let body = target.and_then(|target| target.message.body.as_deref());
    if out.json {
        let text = body.and_then(|body| std::str::from_utf8(body).ok());
        out.object(&json!({"pointed": {
            "note": note,
            "text": text,
            "bytes": body.map(<[u8]>::len),
            "sha256": target.map(|target| target.message.sha256()),
        }}));
        return;
    }
    out.line(&format!("    {}", printable(note)));
    if let Some(body) = body {
        let text: String = String::from_utf8_lossy(body).chars().take(SHOWN).collect();
        out.line(&format!("    {}", printable(&text)));
    }
}
