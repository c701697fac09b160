//! `dlo redrive`: the broker's own move.

use dlo_core::{RedriveState, Result};
use dlo_engine::{
    Ask, News,
    command::{Act, LookAsk, Selection},
};
use serde_json::json;

use super::change::{Task, act_on};
use crate::{args::Redrive, client::Client, exit, out::Out};

pub async fn run(client: &mut Client, args: Redrive) -> Result<u8> {
    let connected = client.connect_at(&args.at).await?;
    let found = client.find(&connected, &args.destination).await?;
    let address = found.destination.address.clone();
    if let Some(id) = &args.cancel {
        let ask = Ask::CancelRedrive {
            connection: connected.connection,
            address,
            id: id.clone(),
        };
        client.ask(ask, |_| ()).await?;
        return Ok(exit::DONE);
    }
    if args.list {
        let ask = Ask::Redrives {
            connection: connected.connection,
            address,
        };
        let pick = |news| {
            if let News::Redrives { tasks, .. } = news {
                Some(tasks)
            } else {
                None
            }
        };
        let tasks = client.ask_for(ask, pick).await?;
        let mut out = Out::new(args.format.json);
        for task in tasks.iter() {
            let state = state(task.state);
            match out.json {
                true => out.object(&json!({
                    "id": task.id, "state": state, "moved": task.moved.value, "to_move": task.to_move.value, "failure": task.failure,
                })),
                false => out.line(&format!("{state}  {} moved  {}", task.moved.value.unwrap_or(0), task.id)),
            }
        }
        out.flush();
        return Ok(exit::DONE);
    }
    // The move takes no look; a look of one message is what a plan hangs on, and it is given back before the move begins.
    let look = LookAsk {
        limit: 1,
        ..LookAsk::default()
    };
    let act = Act::Redrive {
        to: args.to.clone(),
        rate: args.rate,
    };
    let task = Task {
        selection: Selection::All,
        act,
        look,
    };
    act_on(
        client,
        &connected,
        &address,
        task,
        &args.consent,
        args.format.json,
    )
    .await
}

fn state(state: RedriveState) -> &'static str {
    match state {
        RedriveState::Running => "running",
        RedriveState::Completed => "completed",
        RedriveState::Cancelling => "cancelling",
        RedriveState::Cancelled => "cancelled",
        RedriveState::Failed => "failed",
    }
}
