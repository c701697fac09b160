//! `dlo discard`, `purge`, `unresolve`, `tombstone` and `truncate`: look, plan, show the plan, run it.

use std::sync::Arc;

use dlo_core::{ErrorKind, Result};
use dlo_engine::{
    Ask, News,
    command::{Act, Answers, LookAsk, PlanAsk, RunAsk, Selection},
    event::{Connected, RunReport},
    replay::plan::{ChangeKind, Plan, Severity},
};
use serde_json::{Map, json};

use super::{
    json, rounds,
    selection::{Default, look_ask, selection},
};
use crate::{
    args::{Change, Consent},
    client::Client,
    exit,
    out::{Out, remark},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Discard,
    Purge,
    Unresolve,
    Tombstone,
    Truncate,
}

pub async fn run(client: &mut Client, args: Change, kind: Kind) -> Result<u8> {
    let chosen = match kind {
        Kind::Discard | Kind::Tombstone => selection(&args.selecting, Default::MustSay)?,
        _ => Selection::All,
    };
    let connected = client.connect_at(&args.at).await?;
    let found = client.find(&connected, &args.destination).await?;
    let ask = look_ask(&args.looking, &chosen, &found.destination, Default::MustSay)?;
    let act = match kind {
        Kind::Discard => Act::Discard,
        Kind::Purge => Act::Purge,
        Kind::Unresolve => Act::Unresolve,
        Kind::Tombstone => Act::Tombstone,
        Kind::Truncate => Act::Truncate,
    };
    let task = Task {
        selection: chosen,
        act,
        look: ask,
    };
    act_on(
        client,
        &connected,
        &found.destination.address,
        task,
        &args.consent,
        args.format.json,
    )
    .await
}

/// An act on the messages of one look.
pub struct Task {
    pub selection: Selection,
    pub act: Act,
    pub look: LookAsk,
}

/// Looks, plans, shows the plan, runs it unless it is a dry run, and gives the rest back.
pub async fn act_on(
    client: &mut Client,
    connected: &Connected,
    address: &dlo_core::Address,
    task: Task,
    consent: &Consent,
    json: bool,
) -> Result<u8> {
    if rounds::needed(connected, address, &task) {
        return rounds::act(client, connected, address, task, consent, json).await;
    }
    let looked = client.look(connected, address, task.look, |_| ()).await?;
    looked.progress.notes.iter().for_each(|note| remark(note));
    // A move by the broker gives the look back before it begins, so that what was held is moved too.
    let gives_back = matches!(task.act, Act::Redrive { .. });
    let plan = PlanAsk {
        look: looked.opened.look,
        selection: task.selection,
        act: task.act,
    };
    let outcome = once(client, plan, consent, json).await;
    let closed = client.close(&looked).await;
    let code = outcome?;
    match closed {
        Err(error) if gives_back && error.kind() == ErrorKind::NotFound => Ok(code),
        closed => closed.map(|_| code),
    }
}

async fn once(client: &mut Client, ask: PlanAsk, consent: &Consent, json: bool) -> Result<u8> {
    let (plan, ran) = plan_and_run(client, ask, consent).await?;
    let mut out = Out::new(json);
    let Some((report, outcome)) = ran else {
        print_plan(&mut out, &plan, None);
        out.flush();
        return Ok(exit::DONE);
    };
    finish(out, report, outcome)
}

/// The report of a run, and how its task ended.
pub type Ran = (Option<Arc<RunReport>>, Result<()>);

/// Plans, and runs the plan unless it is a dry run.
pub async fn plan_and_run(
    client: &mut Client,
    ask: PlanAsk,
    consent: &Consent,
) -> Result<(Arc<Plan>, Option<Ran>)> {
    let pick = |news| {
        if let News::Planned(plan) = news {
            Some(plan)
        } else {
            None
        }
    };
    let plan = client.ask_for(Ask::Plan(ask), pick).await?;
    if consent.dry_run {
        return Ok((plan, None));
    }
    for finding in plan
        .findings
        .iter()
        .filter(|finding| finding.severity > Severity::Fine)
    {
        remark(&format!("{} [{}]", finding.text, finding.code));
    }
    let run = RunAsk {
        plan: plan.id,
        why: consent.reason.clone(),
        answers: answers(consent),
    };
    let ran = follow_run(client, Ask::Run(run)).await;
    Ok((plan, Some(ran)))
}

pub fn answers(consent: &Consent) -> Answers {
    Answers {
        accepted: consent.accept.clone(),
        all: consent.yes,
        typed: None,
    }
}

/// Carries out something that ends with a report.
pub async fn follow_run(client: &mut Client, ask: Ask) -> Ran {
    let mut report = None;
    let bar = crate::progress::Progress::new();
    let outcome = client
        .ask(ask, |news| match news {
            News::RunProgress(progress) => bar.run(&progress),
            News::RunFinished(finished) => report = Some(finished),
            _ => {}
        })
        .await;
    bar.clear();
    (report, outcome)
}

/// Prints the report and turns it into an exit code.
pub fn finish(mut out: Out, report: Option<Arc<RunReport>>, outcome: Result<()>) -> Result<u8> {
    let Some(report) = report else {
        return outcome.map(|()| exit::DONE);
    };
    print_report(&mut out, &report);
    out.flush();
    match outcome {
        Err(error) => {
            crate::out::complain(&error);
            Ok(exit::PARTLY)
        }
        Ok(()) if is_complete(&report) => Ok(exit::DONE),
        Ok(()) => Ok(exit::PARTLY),
    }
}

/// Whether every message of the run came to a good end.
pub fn is_complete(report: &RunReport) -> bool {
    let good = ["settled", "restored", "resolved"];
    let all = report
        .messages
        .iter()
        .all(|message| good.contains(&message.outcome.as_str()));
    all && report.messages.len() as u64 >= report.run.total
}

/// One JSON object for each message of a run.
pub fn print_messages(out: &mut Out, report: &RunReport) {
    report
        .messages
        .iter()
        .for_each(|message| out.object(&json::run_message(&report.run.run, message)));
}

pub fn print_report(out: &mut Out, report: &RunReport) {
    if out.json {
        print_messages(out, report);
        let mut summary: Map<_, _> = report
            .run
            .outcomes
            .iter()
            .map(|(outcome, count)| (outcome.clone(), json!(count)))
            .collect();
        summary.insert("run".to_owned(), json!(report.run.run));
        summary.insert("state".to_owned(), json!(report.run.state));
        summary.insert("total".to_owned(), json!(report.run.total));
        summary.insert("notes".to_owned(), json!(report.notes));
        out.object(&json!({"summary": summary}));
        return;
    }
    for message in report
        .messages
        .iter()
        .filter(|message| message.outcome != "settled" && message.outcome != "restored")
    {
        let place = message
            .position
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        out.line(&format!(
            "{place}  {}  {}",
            message.outcome,
            crate::out::printable(message.detail.as_deref().unwrap_or(""))
        ));
    }
    let counts: Vec<_> = report
        .run
        .outcomes
        .iter()
        .map(|(outcome, count)| format!("{count} {outcome}"))
        .collect();
    out.line(&format!(
        "{} of {}: {} (run {})",
        report.run.act,
        report.run.destination,
        counts.join(", "),
        report.run.run
    ));
    report.notes.iter().for_each(|note| out.line(note));
}

/// Prints a plan. `goes_on` says what follows after it.
pub fn print_plan(out: &mut Out, plan: &Plan, goes_on: Option<&str>) {
    if out.json {
        for message in plan.messages.iter() {
            out.object(&json!({
                "position": message.position,
                "sha256": message.sha256,
                "target": message.target,
                "evidence": message.evidence,
                "outcome": "planned",
                "refused": message.refused,
                "changes": message.changes.iter().map(change_json).collect::<Vec<_>>(),
            }));
        }
        let findings: Vec<_> = plan
            .findings
            .iter()
            .map(|finding| {
                json!({"code": finding.code, "severity": severity(finding.severity), "text": finding.text, "messages": finding.messages})
            })
            .collect();
        out.object(&json!({"summary": {
            "planned": plan.messages.len(), "targets": plan.targets, "findings": findings, "steps": plan.steps, "engine": plan.engine, "goes_on": goes_on,
        }}));
        return;
    }
    out.line(&format!(
        "Plan: {} {} messages of {}",
        plan.act.word(),
        plan.messages.len(),
        plan.from
    ));
    plan.steps
        .iter()
        .for_each(|step| out.line(&format!("  - {step}")));
    if let Some(goes_on) = goes_on {
        out.line(&format!("  - {goes_on}"));
    }
    plan.targets
        .iter()
        .for_each(|(target, count)| out.line(&format!("  {count} to {target}")));
    if let Some(first) = plan
        .messages
        .iter()
        .find(|message| !message.changes.is_empty())
    {
        out.line(&format!(
            "Differences of the message at {} (target from {}):",
            first.position, first.evidence
        ));
        for change in &first.changes {
            let sign = sign(change.kind);
            let value = change
                .after
                .as_deref()
                .or(change.before.as_deref())
                .unwrap_or("");
            out.line(&format!(
                "  {sign} {}  {}  ({})",
                change.what,
                crate::out::printable(value),
                change.why
            ));
        }
    }
    for finding in &plan.findings {
        out.line(&format!(
            "{}: {} [{}]",
            severity(finding.severity),
            finding.text,
            finding.code
        ));
    }
}

fn change_json(change: &dlo_engine::replay::plan::Change) -> serde_json::Value {
    let kind = match change.kind {
        ChangeKind::Stripped => "stripped",
        ChangeKind::Added => "added",
        ChangeKind::Edited => "edited",
    };
    json!({"kind": kind, "what": change.what, "before": change.before, "after": change.after, "why": change.why})
}

fn sign(kind: ChangeKind) -> char {
    match kind {
        ChangeKind::Stripped => '-',
        ChangeKind::Added => '+',
        ChangeKind::Edited => '~',
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Fine => "fine",
        Severity::Warning => "warning",
        Severity::MustAnswer => "must be answered",
        Severity::Blocks => "blocks",
    }
}
