//! `dlo runs`.

use dlo_core::Result;
use dlo_engine::{Ask, News, command};

use super::json;
use crate::{
    args::{Decision, Runs},
    client::Client,
    exit,
    out::Out,
};

pub async fn run(client: &mut Client, args: Runs) -> Result<u8> {
    let mut out = Out::new(args.format.json);
    match (&args.run, args.resolve, args.decision) {
        (Some(run), Some(sequence), Some(decision)) => {
            let decision = match decision {
                Decision::Arrived => command::Decision::Arrived,
                Decision::Missing => command::Decision::Missing,
            };
            let ask = Ask::ResolveUnknown {
                run: run.clone(),
                sequence,
                decision,
                why: args.reason.clone(),
            };
            client.ask(ask, |_| ()).await?;
        }
        (Some(run), ..) => messages(client, &mut out, run).await?,
        (None, ..) => all(client, &mut out).await?,
    }
    out.flush();
    Ok(exit::DONE)
}

async fn all(client: &mut Client, out: &mut Out) -> Result<()> {
    let runs = client
        .ask_for(Ask::Runs, |news| {
            if let News::Runs(runs) = news {
                Some(runs)
            } else {
                None
            }
        })
        .await?;
    if out.json {
        runs.iter().for_each(|run| out.object(&json::run(run)));
        return Ok(());
    }
    let rows: Vec<_> = runs
        .iter()
        .map(|run| {
            let outcomes: Vec<_> = run
                .outcomes
                .iter()
                .map(|(outcome, count)| format!("{count} {outcome}"))
                .collect();
            let state = if run.crashed {
                format!("{} (its process ended)", run.state)
            } else {
                run.state.clone()
            };
            vec![
                run.run.clone(),
                run.started.to_string(),
                run.act.clone(),
                run.destination.clone(),
                state,
                outcomes.join(", "),
            ]
        })
        .collect();
    out.table(
        &["RUN", "STARTED", "ACT", "DESTINATION", "STATE", "OUTCOMES"],
        &rows,
    );
    Ok(())
}

async fn messages(client: &mut Client, out: &mut Out, run: &str) -> Result<()> {
    let ask = Ask::RunMessages {
        run: run.to_owned(),
    };
    let pick = |news| {
        if let News::RunMessages { run, messages } = news {
            Some((run, messages))
        } else {
            None
        }
    };
    let (summary, messages) = client.ask_for(ask, pick).await?;
    if out.json {
        messages
            .iter()
            .for_each(|message| out.object(&json::run_message(&summary.run, message)));
        return Ok(());
    }
    let rows: Vec<_> = messages
        .iter()
        .map(|message| {
            vec![
                message.sequence.to_string(),
                message
                    .position
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
                message.target.clone().unwrap_or_default(),
                message.outcome.clone(),
                message.detail.clone().unwrap_or_default(),
            ]
        })
        .collect();
    out.table(
        &["NUMBER", "POSITION", "TARGET", "OUTCOME", "DETAIL"],
        &rows,
    );
    Ok(())
}
