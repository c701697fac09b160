//! `dlo replay`.

use std::time::Duration;

use dlo_core::{Atomicity, Result};
use dlo_engine::command::{
    Act, Canary, Edit, Mark, ReplayAsk, ReplayPartition, ReplayTime, Route, Unwrap,
};

use super::{
    change::{Task, act_on},
    selection::{Default, look_ask, selection},
    usage,
};
use crate::{
    args::{Replay, Via},
    client::Client,
};

pub async fn run(client: &mut Client, args: Replay) -> Result<u8> {
    let chosen = selection(&args.change.selecting, Default::MustSay)?;
    let mut ask = replay_ask(&args)?;
    let connected = client.connect_at(&args.change.at).await?;
    if let Some(other) = &args.to_broker {
        ask.to_connection = Some(client.connect(other).await?.connection);
    }
    let found = client.find(&connected, &args.change.destination).await?;
    let look = look_ask(
        &args.change.looking,
        &chosen,
        &found.destination,
        Default::MustSay,
    )?;
    let task = Task {
        selection: chosen,
        act: Act::Replay(Box::new(ask)),
        look,
    };
    let address = &found.destination.address;
    act_on(
        client,
        &connected,
        address,
        task,
        &args.change.consent,
        args.change.format.json,
    )
    .await
}

fn replay_ask(args: &Replay) -> Result<ReplayAsk> {
    let route = match (&args.to, args.via) {
        (Some(name), _) => Route::To(name.clone()),
        (None, Some(Via::Queue)) => Route::Queue,
        (None, Some(Via::Exchange)) => Route::Exchange,
        (None, Some(Via::Topic)) => Route::Topic,
        (None, None) => Route::Auto,
    };
    let canary = args.canary.map(|messages| Canary {
        messages,
        watch: Duration::from_secs(args.watch),
        stop_percent: args.stop_percent,
    });
    if args.rate == Some(0) {
        return Err(usage(
            "a rate of 0 never sends",
            "Leave --rate out for no limit.",
        ));
    }
    Ok(ReplayAsk {
        route,
        edits: edits(args)?,
        keep_headers: args.keep_header.clone(),
        rate: args.rate,
        canary,
        mark: if args.no_mark {
            Mark::Never
        } else {
            Mark::WhereAllowed
        },
        time: if args.keep_time {
            ReplayTime::Kept
        } else {
            ReplayTime::Now
        },
        partitioning: partition(&args.partition)?,
        atomicity: if args.atomic {
            Atomicity::All
        } else {
            Atomicity::Each
        },
        unwrap: if args.unwrap { Unwrap::Yes } else { Unwrap::No },
        ..ReplayAsk::default()
    })
}

fn partition(text: &str) -> Result<ReplayPartition> {
    match text {
        "key" => Ok(ReplayPartition::ByKey),
        "original" => Ok(ReplayPartition::Original),
        number => number.parse().map(ReplayPartition::Exact).map_err(|_| {
            usage(
                format!("{number} is no partition"),
                "Write key, original, or a number.",
            )
        }),
    }
}

fn edits(args: &Replay) -> Result<Vec<Edit>> {
    let mut edits = Vec::new();
    for text in &args.set {
        let (pointer, json) = pair(text, "--set /pointer=JSON")?;
        edits.push(Edit::Set { pointer, json });
    }
    edits.extend(args.remove.iter().map(|pointer| Edit::Remove {
        pointer: pointer.clone(),
    }));
    edits.extend(
        args.patch
            .iter()
            .map(|json| Edit::Patch { json: json.clone() }),
    );
    for text in &args.replace {
        let (find, with) = pair(text, "--replace FIND=WITH")?;
        edits.push(Edit::Replace { find, with });
    }
    edits.extend(args.jq.iter().map(|program| Edit::Jq {
        program: program.clone(),
    }));
    for text in &args.set_header {
        let (name, text) = pair(text, "--set-header NAME=TEXT")?;
        edits.push(Edit::SetHeader { name, text });
    }
    for text in &args.rename_header {
        let (from, to) = pair(text, "--rename-header FROM=TO")?;
        edits.push(Edit::RenameHeader { from, to });
    }
    edits.extend(
        args.remove_header
            .iter()
            .map(|name| Edit::RemoveHeader { name: name.clone() }),
    );
    Ok(edits)
}

fn pair(text: &str, form: &str) -> Result<(String, String)> {
    text.split_once('=')
        .map(|(left, right)| (left.to_owned(), right.to_owned()))
        .ok_or_else(|| usage(format!("{text} has no ="), format!("Write {form}.")))
}
