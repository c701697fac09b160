//! The strip at the bottom: long work with progress, rate, time left, pause and cancel.

use dlo_engine::{Ask, event::RunPhase};
use egui::{ProgressBar, RichText, Ui};

use crate::{
    intent::{Cx, Intent},
    state::{Center, Job, JobKind, JobState},
    theme::colours,
    widgets::parts::{Tone, quiet_button},
    words,
};

/// Draws the newest jobs, running ones first.
pub fn jobs_ui(ui: &mut Ui, cx: &mut Cx<'_>) {
    let jobs = cx.state.jobs.iter().rev();
    let (active, over): (Vec<&Job>, Vec<&Job>) = jobs.partition(|job| job.is_active());
    for job in active.iter().take(3) {
        ui.horizontal_wrapped(|ui| job_ui(ui, cx, job));
    }
    if active.len() > 3 {
        ui.weak(format!("and {} more are running", active.len() - 3));
    }
    // Of those that are over the newest is enough: the list of runs has them all.
    if let Some(newest) = over.first() {
        ui.horizontal_wrapped(|ui| {
            job_ui(ui, cx, newest);
            if over.len() > 1 {
                ui.weak(format!("and {} more ended", over.len() - 1));
            }
            if quiet_button(ui, "Clear finished", None).clicked() {
                cx.want(Intent::ClearJobs);
            }
        });
    }
}

fn job_ui(ui: &mut Ui, cx: &mut Cx<'_>, job: &Job) {
    ui.label(RichText::new(&job.title).color(colours(ui).strong));
    let (text, tone) = status(job, cx.state.now);
    if job.is_active() {
        let share = job.share();
        let bar = ProgressBar::new(share.unwrap_or(0.0))
            .desired_width(160.0)
            .desired_height(8.0)
            .corner_radius(3);
        let bar = bar.fill(colours(ui).accent);
        ui.add(bar)
            .accessible_name(format!("Progress of {}", job.title));
    }
    ui.label(RichText::new(text).color(tone.text(colours(ui))));
    let troubles = job.troubles();
    if !troubles.is_empty() {
        ui.label(RichText::new(troubles).color(colours(ui).warning));
    }
    controls(ui, cx, job);
}

fn controls(ui: &mut Ui, cx: &mut Cx<'_>, job: &Job) {
    if job.is_active()
        && job.kind == JobKind::Run
        && let Some(run) = &job.run
    {
        if job.progress.phase == RunPhase::Paused {
            if quiet_button(ui, "Resume", None).clicked() {
                cx.ask(Ask::ResumeRun { run: run.clone() });
            }
        } else if quiet_button(ui, "Pause", None)
            .on_hover_text("Stops between two messages")
            .clicked()
        {
            cx.ask(Ask::PauseRun { run: run.clone() });
        }
    }
    if job.is_active() {
        let stopping =
            (job.state == JobState::Stopping).then_some("It stops after the message it is at");
        if quiet_button(ui, "Cancel", stopping)
            .on_hover_text("Stops between two messages; nothing is lost")
            .clicked()
        {
            cx.want(Intent::CancelTask(job.task));
        }
    } else if let Some(run) = &job.run
        && quiet_button(ui, "Report", None).clicked()
    {
        cx.want(Intent::Show(Center::Run(run.clone())));
    }
}

/// What is said about a job, and how.
fn status(job: &Job, now: dlo_core::Millis) -> (String, Tone) {
    let progress = &job.progress;
    let done = if progress.total > 0 {
        format!(
            "{} / {}",
            words::count(progress.done),
            words::count(progress.total)
        )
    } else {
        words::count(progress.done)
    };
    match &job.state {
        JobState::Stopping => (format!("{done} · stopping"), Tone::Warning),
        JobState::Done => {
            let took = job.ended.unwrap_or(now).since(job.started);
            (format!("{done} done in {}", words::span(took)), Tone::Fine)
        }
        JobState::Cancelled => (format!("{done} · cancelled"), Tone::Warning),
        JobState::Failed(why) => (why.clone(), Tone::Danger),
        JobState::Running => match &progress.phase {
            RunPhase::Running => {
                let rate = if progress.rate >= 0.5 {
                    format!(" · {:.0}/s", progress.rate)
                } else {
                    String::new()
                };
                let left = progress
                    .left
                    .map(|left| format!(" · {} left", words::span(left.as_millis() as i64)))
                    .unwrap_or_default();
                (format!("{done}{rate}{left}"), Tone::Plain)
            }
            RunPhase::Watching { until } => (
                format!(
                    "watching {} for returns, {} to go · {done}",
                    words::count(progress.done),
                    words::countdown(until.since(now))
                ),
                Tone::Accent,
            ),
            RunPhase::Paused => (format!("{done} · paused"), Tone::Warning),
            RunPhase::Stopped(why) => (format!("{done} · stopped: {why}"), Tone::Danger),
        },
    }
}
