//! `dlo export`.

use dlo_core::Result;
use dlo_engine::{Ask, News, command::ExportFormat};
use serde_json::json;

use super::selection::{Default, look_ask, selection};
use crate::{args::Export, client::Client, exit, out::Out};

pub async fn run(client: &mut Client, args: Export) -> Result<u8> {
    let chosen = selection(&args.selecting, Default::All)?;
    let connected = client.connect_at(&args.at).await?;
    let found = client.find(&connected, &args.destination).await?;
    // Everything unless told otherwise, oldest first: an export is a copy.
    let look = look_ask(&args.looking, &chosen, &found.destination, Default::MustSay)?;
    let looked = client
        .look(&connected, &found.destination.address, look, |_| ())
        .await?;
    let format = if args.csv {
        ExportFormat::Csv
    } else {
        ExportFormat::Capture
    };
    let ask = Ask::Export {
        look: looked.opened.look,
        selection: chosen,
        file: args.out.clone(),
        format,
        why: args.reason.clone(),
    };
    let pick = |news| {
        if let News::Exported {
            messages, bytes, ..
        } = news
        {
            Some((messages, bytes))
        } else {
            None
        }
    };
    let exported = client.ask_for(ask, pick).await;
    let closed = client.close(&looked).await;
    let (messages, bytes) = exported?;
    let returned = closed?;
    let mut out = Out::new(args.format.json);
    let progress = &looked.progress;
    if out.json {
        out.object(&json!({"summary": {
            "seen": progress.scanned.max(progress.shown),
            "shown": messages,
            "exported": messages,
            "bytes": bytes,
            "gaps": progress.gaps,
            "errors": progress.errors,
            "given_back": returned.given_back,
            "file": args.out,
        }}));
    } else {
        out.line(&format!(
            "{messages} messages ({bytes} bytes) written to {}",
            args.out.display()
        ));
    }
    if args.csv {
        crate::out::remark("CSV is for people: it loses types and bytes and cannot be imported.");
    }
    out.flush();
    Ok(exit::DONE)
}
