//! `dlo audit`.

use dlo_core::Result;
use dlo_engine::{
    Ask, News,
    command::{AuditAsk, AuditView},
};

use super::{json, time};
use crate::{
    args::Audit,
    client::Client,
    exit,
    out::{Out, remark},
};

pub async fn run(client: &mut Client, args: Audit) -> Result<u8> {
    if args.verify {
        return verify(client, args.format.json).await;
    }
    let at = |text: &Option<String>| text.as_deref().map(time).transpose();
    let query = AuditAsk {
        view: AuditView::Messages,
        act: args.act.clone(),
        who: args.who.clone(),
        destination: args.destination.clone(),
        outcome: args.outcome.clone(),
        run: args.run.clone(),
        sha256: args.sha256.clone(),
        text: args.text.clone(),
        from: at(&args.since)?,
        until: at(&args.until)?,
        limit: args.limit,
        offset: 0,
    };
    if let Some(file) = args.out {
        let pick = |news| {
            if let News::Exported { messages, .. } = news {
                Some(messages)
            } else {
                None
            }
        };
        let entries = client
            .ask_for(
                Ask::ExportAudit {
                    query,
                    file: file.clone(),
                },
                pick,
            )
            .await?;
        remark(&format!("{entries} entries written to {}", file.display()));
        return Ok(exit::DONE);
    }
    let pick = |news| {
        if let News::Audit { entries, total } = news {
            Some((entries, total))
        } else {
            None
        }
    };
    let (entries, total) = client.ask_for(Ask::Audit { query }, pick).await?;
    let mut out = Out::new(args.format.json);
    if out.json {
        entries
            .iter()
            .for_each(|line| out.object(&json::audit(line)));
    } else {
        let rows: Vec<_> = entries
            .iter()
            .map(|line| {
                vec![
                    line.time.to_string(),
                    line.who.clone(),
                    line.act.clone(),
                    line.outcome.clone(),
                    line.destination.clone(),
                    line.position
                        .as_ref()
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                    line.target.clone().unwrap_or_default(),
                    line.why.clone(),
                    line.detail.clone().unwrap_or_default(),
                ]
            })
            .collect();
        out.table(
            &[
                "TIME",
                "WHO",
                "ACT",
                "OUTCOME",
                "DESTINATION",
                "POSITION",
                "TARGET",
                "WHY",
                "DETAIL",
            ],
            &rows,
        );
    }
    out.flush();
    if (entries.len() as u64) < total {
        remark(&format!(
            "{} of {total} entries; --limit 0 shows all.",
            entries.len()
        ));
    }
    Ok(exit::DONE)
}

async fn verify(client: &mut Client, json: bool) -> Result<u8> {
    let pick = |news| {
        if let News::Verified { entries, broken_at } = news {
            Some((entries, broken_at))
        } else {
            None
        }
    };
    let (entries, broken_at) = client.ask_for(Ask::VerifyAudit, pick).await?;
    let mut out = Out::new(json);
    match (broken_at, json) {
        (None, true) => out.object(&serde_json::json!({"verified": true, "entries": entries})),
        (None, false) => out.line(&format!("{entries} entries, the chain is whole")),
        (Some(at), true) => out.object(&serde_json::json!({"verified": false, "broken_at": at})),
        (Some(at), false) => out.line(&format!(
            "the chain is broken at entry {at}: from there on it is not as it was written"
        )),
    }
    out.flush();
    Ok(if broken_at.is_some() {
        exit::PARTLY
    } else {
        exit::DONE
    })
}
