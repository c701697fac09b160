//! Rounds: a whole SQS FIFO queue takes more than one look, so one command looks, plans and runs again until nothing is left.
//!
//! SQS hands out about the first ten messages of a group and no more of it until these are removed
//! (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/FIFO-queues-understanding-logic.html>). Each round
//! is a run of its own in the journal. Separate from the acts, which know one look and one run.

use std::{collections::BTreeMap, sync::Arc};

use dlo_core::{Address, Millis, Result};
use dlo_engine::{
    command::{Act, LookAsk, PlanAsk, Selection},
    event::{Connected, RunReport},
    replay::plan::Plan,
};
use serde_json::{Map, json};

use super::change::{Task, plan_and_run, print_messages, print_plan, print_report};
use crate::{
    args::Consent,
    client::{Client, Looked},
    exit,
    out::{Out, remark},
};

/// What a person reads before the first round.
const WHY: &str = "SQS hands out only the first messages of each FIFO group until these are removed. This goes on in rounds, each \
    with a look, a plan and a run of its own, until nothing is left that was sent before now. It stops at the first message that fails.";

/// Whether a task needs more than one look to reach what it says.
pub fn needed(connected: &Connected, address: &Address, task: &Task) -> bool {
    // The name of a FIFO queue must end so, and no other may.
    let is_fifo = connected.broker == "sqs" && address.name.ends_with(".fifo");
    let whole = matches!(task.selection, Selection::All | Selection::First(_));
    is_fifo && whole && matches!(task.act, Act::Replay(_) | Act::Discard | Act::Purge)
}

/// Carries a task out in rounds; a dry run plans the first.
pub async fn act(
    client: &mut Client,
    connected: &Connected,
    address: &Address,
    task: Task,
    consent: &Consent,
    json: bool,
) -> Result<u8> {
    let mut rounds = Rounds {
        began: Millis::now(),
        out: Out::new(json),
        left: wanted(&task),
        done: Vec::new(),
    };
    remark(WHY);
    let outcome = rounds.go(client, connected, address, task, consent).await;
    rounds.conclude();
    outcome
}

/// How many messages the task may take in all.
fn wanted(task: &Task) -> u64 {
    match task.selection {
        Selection::First(count) => count.min(task.look.limit),
        _ => task.look.limit,
    }
}

/// The rounds of one command.
struct Rounds {
    /// What was sent later is left alone: it may be what an earlier round sent and a consumer refused again.
    began: Millis,
    out: Out,
    left: u64,
    done: Vec<Arc<RunReport>>,
}

/// What a round found out.
enum Next {
    /// There may be more.
    Again,
    End(u8),
}

impl Rounds {
    async fn go(
        &mut self,
        client: &mut Client,
        connected: &Connected,
        address: &Address,
        mut task: Task,
        consent: &Consent,
    ) -> Result<u8> {
        loop {
            let look = LookAsk {
                limit: self.left,
                ..task.look.clone()
            };
            let looked = client.look(connected, address, look, |_| ()).await?;
            let next = self.round(client, &looked, &task, consent).await;
            let closed = client.close(&looked).await;
            match next? {
                Next::End(code) => return closed.map(|_| code),
                Next::Again => closed.map(|_| ())?,
            }
            // The canary has told what it can; the messages behind it follow in order.
            if let Act::Replay(ask) = &mut task.act {
                ask.canary = None;
            }
        }
    }

    async fn round(
        &mut self,
        client: &mut Client,
        looked: &Looked,
        task: &Task,
        consent: &Consent,
    ) -> Result<Next> {
        let Some(selection) = self.selection(looked) else {
            return Ok(Next::End(exit::DONE));
        };
        let ask = PlanAsk {
            look: looked.opened.look,
            selection,
            act: task.act.clone(),
        };
        let (plan, ran) = plan_and_run(client, ask, consent).await?;
        let Some((report, outcome)) = ran else {
            print_plan(&mut self.out, &plan, Some(WHY));
            return Ok(Next::End(exit::DONE));
        };
        let Some(report) = report else {
            return outcome.map(|()| Next::End(exit::DONE));
        };
        self.print(&report);
        self.left = self.left.saturating_sub(report.messages.len() as u64);
        let complete = super::change::is_complete(&report);
        self.done.push(report);
        if let Err(error) = outcome {
            crate::out::complain(&error);
            return Ok(Next::End(exit::PARTLY));
        }
        Ok(match (complete, self.left) {
            (false, _) => Next::End(exit::PARTLY),
            (true, 0) => Next::End(exit::DONE),
            (true, _) if goes_back(&plan) => {
                remark(
                    "The messages go back to the queue they are in, so there is only this round.",
                );
                Next::End(exit::DONE)
            }
            (true, _) => Next::Again,
        })
    }

    /// What this round works on; `None` when an earlier round has done everything.
    fn selection(&self, looked: &Looked) -> Option<Selection> {
        if self.done.is_empty() {
            return Some(Selection::All);
        }
        let view = &looked.opened.view;
        let rows = view.open_rows();
        let found = rows.len();
        let earlier = |row: &u32| view.time_of(*row).is_none_or(|time| time < self.began);
        let rows: Vec<_> = rows.into_iter().filter(earlier).collect();
        if rows.len() < found {
            remark(&format!(
                "{} messages were sent after this command began, and are left where they are.",
                found - rows.len()
            ));
        }
        (!rows.is_empty()).then_some(Selection::Rows(rows))
    }

    fn print(&mut self, report: &RunReport) {
        if self.out.json {
            print_messages(&mut self.out, report);
        } else {
            self.out.line(&format!("Round {}", self.done.len() + 1));
            print_report(&mut self.out, report);
        }
        self.out.flush();
    }

    /// All rounds together.
    fn conclude(&mut self) {
        let Some(last) = self.done.last() else {
            self.out.flush();
            return;
        };
        let mut outcomes: BTreeMap<&str, u64> = BTreeMap::new();
        for (outcome, count) in self.done.iter().flat_map(|report| &report.run.outcomes) {
            *outcomes.entry(outcome).or_default() += count;
        }
        let total: u64 = self.done.iter().map(|report| report.run.total).sum();
        let runs: Vec<_> = self.done.iter().map(|report| &report.run.run).collect();
        if self.out.json {
            let mut summary: Map<_, _> = outcomes
                .iter()
                .map(|(outcome, count)| ((*outcome).to_owned(), json!(count)))
                .collect();
            summary.insert("run".to_owned(), json!(last.run.run));
            summary.insert("runs".to_owned(), json!(runs));
            summary.insert("state".to_owned(), json!(last.run.state));
            summary.insert("total".to_owned(), json!(total));
            summary.insert("notes".to_owned(), json!(last.notes));
            self.out.object(&json!({"summary": summary}));
        } else {
            let counts: Vec<_> = outcomes
                .iter()
                .map(|(outcome, count)| format!("{count} {outcome}"))
                .collect();
            let line = format!(
                "{} of {} in {} rounds: {}",
                last.run.act,
                last.run.destination,
                runs.len(),
                counts.join(", ")
            );
            self.out.line(&line);
        }
        self.out.flush();
    }
}

/// Whether the replay publishes into the queue that it takes from.
fn goes_back(plan: &Plan) -> bool {
    let from = &plan.from.name;
    plan.targets
        .keys()
        .any(|target| target == from || target.strip_prefix("queue:") == Some(from))
}
