//! `dlo restore` and `dlo import`: messages from the journal or from a file back to a broker.

use dlo_core::Result;
use dlo_engine::{
    Ask, News,
    command::{CopiesOf, RestoreWhich},
};

use super::{
    change::{answers, finish, follow_run},
    json, usage,
};
use crate::{
    args::{Import, Restore},
    client::Client,
    exit,
    out::Out,
};

pub async fn run(client: &mut Client, args: Restore) -> Result<u8> {
    if args.list {
        return list(client, &args).await;
    }
    let captures = match (&args.run, &args.destination, args.id.as_slice()) {
        (Some(run), ..) => RestoreWhich::Run(run.clone()),
        (None, _, ids @ [_, ..]) => RestoreWhich::Ids(ids.to_vec()),
        (None, Some(name), []) => RestoreWhich::Destination(name.clone()),
        (None, None, []) => {
            return Err(usage(
                "it is not said what to restore",
                "Name a destination, --run RUN or --id ID; --list shows what there is.",
            ));
        }
    };
    let connected = client.connect_at(&args.at).await?;
    let ask = Ask::Restore {
        connection: connected.connection,
        captures,
        to: args.to.clone(),
        why: args.consent.reason.clone(),
        answers: answers(&args.consent),
    };
    let (report, outcome) = follow_run(client, ask).await;
    finish(Out::new(args.format.json), report, outcome)
}

async fn list(client: &mut Client, args: &Restore) -> Result<u8> {
    let ask = Ask::Captures {
        destination: args.destination.clone(),
        of: CopiesOf::Everything,
    };
    let pick = |news| {
        if let News::Captures(copies) = news {
            Some(copies)
        } else {
            None
        }
    };
    let copies = client.ask_for(ask, pick).await?;
    let mut out = Out::new(args.format.json);
    if out.json {
        copies
            .iter()
            .for_each(|copy| out.object(&json::saved(copy)));
    } else {
        let rows: Vec<_> = copies
            .iter()
            .map(|copy| {
                let restored = copy
                    .restored_by
                    .as_ref()
                    .map_or("no".to_owned(), |run| format!("by {run}"));
                vec![
                    copy.id.to_string(),
                    copy.saved.to_string(),
                    copy.destination.clone(),
                    copy.run.clone(),
                    restored,
                ]
            })
            .collect();
        out.table(&["ID", "SAVED", "DESTINATION", "RUN", "RESTORED"], &rows);
    }
    out.flush();
    Ok(exit::DONE)
}

pub async fn import(client: &mut Client, args: Import) -> Result<u8> {
    let connected = client.connect_at(&args.at).await?;
    let ask = Ask::Import {
        file: args.file.clone(),
        connection: connected.connection,
        to: args.destination.clone(),
        why: args.consent.reason.clone(),
        answers: answers(&args.consent),
    };
    let (report, outcome) = follow_run(client, ask).await;
    finish(Out::new(args.format.json), report, outcome)
}
