//! How questions and answers change what the window knows.

use std::sync::Arc;

use dlo_core::{Error, ErrorKind};
use dlo_engine::{
    Ask, Event, News, TaskId,
    command::{ConnectionId, LookId},
    event::{Connected, LookOpened, LookProgress, RunReport},
};

use super::{
    AppState, Attempt, AuditPage, Center, Connection, Job, JobKind, JobState, LookPhase, LookState,
    Purpose, RunDetail, Verified, Weight, look::Pointed,
};
use crate::{remote::Remote, words};

/// What has to be asked because of an answer.
pub type FollowUp = Vec<Ask>;

impl AppState {
    /// A question went out.
    pub fn asked(&mut self, task: TaskId, purpose: Purpose) {
        let now = self.now;
        match &purpose {
            Purpose::Profiles => self.profiles.load(),
            Purpose::Connect(place) => {
                self.attempts.insert(place.clone(), Attempt::Running(task));
            }
            Purpose::Test => self.test.load(),
            Purpose::List(id) => {
                if let Some(connection) = self.connection_mut(*id) {
                    connection.list.load();
                    connection.listed_at = now;
                }
            }
            Purpose::Cost(id, address) => {
                if let Some(connection) = self.connection_mut(*id) {
                    connection.costs.entry(address.clone()).or_default().load();
                }
            }
            Purpose::Further(look) => self.change(*look, |look| {
                look.phase = LookPhase::Running;
                look.progress.running = true;
                look.task = Some(task);
            }),
            Purpose::Close(look) => self.change(*look, |look| look.phase = LookPhase::Closing),
            Purpose::Filter(look) => self.change(*look, |look| {
                look.filter.asked = Some(task);
                look.filter.error = None;
                look.filter.of = look.view.len();
            }),
            Purpose::Open(look, row) => self.change(*look, |look| {
                look.wanted = Some(*row);
                look.opened.load();
            }),
            Purpose::Plan => {
                self.plan = Remote::NotAsked;
                self.plan.load();
            }
            Purpose::Run(title) => {
                let job = Job::new(task, JobKind::Run, title.clone(), 0, now);
                self.jobs.push(job);
            }
            Purpose::Export(title) => {
                let job = Job::new(task, JobKind::Export, title.clone(), 0, now);
                self.jobs.push(job);
            }
            Purpose::Audit => self.audit.load(),
            Purpose::Verify => self.verified.load(),
            Purpose::Runs => self.runs.load(),
            Purpose::RunMessages(_) => self.run.load(),
            Purpose::AuditRun(run) => self.audit_runs.entry(run.clone()).or_default().load(),
            Purpose::Captures(of) => {
                self.copies_of = *of;
                self.captures.load();
            }
            _ => {}
        }
        self.tasks.insert(task, purpose);
    }

    /// An answer came in. Answers to tasks that were replaced by newer ones are ignored where that matters.
    pub fn apply(&mut self, event: Event) -> FollowUp {
        let Event { task, news } = event;
        let mut follow_up = FollowUp::new();
        match news {
            News::Profiles(profiles) => self.profiles.ready(profiles),
            News::Connected(connected) => follow_up = self.connected(task, &connected),
            News::Disconnected { connection } => self.disconnected(connection),
            News::Destinations { connection, list } => {
                if let Some(connection) = self.connection_mut(connection) {
                    connection.list.ready(list);
                }
            }
            News::Destination { connection, listed } => {
                self.replace_listed(connection, &listed);
                if self
                    .tasks
                    .get(&task)
                    .is_some_and(|purpose| matches!(purpose, Purpose::SaveNotes(..)))
                {
                    self.notify(Weight::Success, "Notes saved");
                }
            }
            News::Cost {
                connection,
                address,
                cost,
            } => {
                if let Some(connection) = self.connection_mut(connection) {
                    connection.costs.entry(address).or_default().ready(cost);
                }
            }
            News::LookOpened(opened) => self.look_opened(task, &opened),
            News::LookProgress { look, progress } => self.progress(look, progress, None),
            News::LookPaused {
                look,
                progress,
                why,
            } => {
                self.progress(look, progress, Some(LookPhase::Paused(why)));
                follow_up = self.hide_settled(look);
            }
            News::LookEnded { look, progress } => {
                self.progress(look, progress, Some(LookPhase::Ended));
                follow_up = self.hide_settled(look);
            }
            News::HoldLost { look, why } => self.hold_lost(look, why),
            News::LookClosed { look, returned } => {
                for note in &returned.notes {
                    self.notify(Weight::Information, note.clone());
                }
                self.change(look, |look| {
                    look.phase = LookPhase::Closed(returned);
                    look.progress.hold = None;
                    look.progress.running = false;
                });
            }
            News::Filtered { look, query, rows } => self.change(look, |look| {
                if look.filter.query == query {
                    let hides = look.filter.is_active()
                        || rows.len() as u32 != look.view.len() - look.view.first();
                    look.filter.rows = hides.then_some(rows);
                    look.filter.error = None;
                }
            }),
            News::Opened(opened) => self.change(opened.look, |look| {
                if look.wanted == Some(opened.row) {
                    look.opened.ready(opened.clone());
                }
            }),
            News::Pointed {
                look,
                row,
                target,
                note,
            } => self.change(look, |look| {
                look.pointed = Some(Pointed { row, target, note });
            }),
            News::Planned(plan) => {
                if self.newest(task, &Purpose::Plan) {
                    self.plan.ready(plan);
                }
            }
            News::RunStarted { run, total } => self.job(task, |job| {
                job.run = Some(run);
                job.progress.total = total;
            }),
            News::RunProgress(progress) => self.job(task, |job| job.progress = progress),
            News::RunFinished(report) => follow_up = self.finished(task, report),
            News::Exported {
                file,
                messages,
                bytes,
            } => {
                self.job(task, |job| {
                    job.progress.total = messages;
                    job.progress.done = messages;
                });
                let what = words::counted(messages, "message");
                let size = words::size(bytes);
                self.notify(
                    Weight::Success,
                    format!("{what} written to {} ({size})", file.display()),
                );
            }
            News::Audit { entries, total } => {
                if let Some(Purpose::AuditRun(run)) = self.tasks.get(&task) {
                    let run = run.clone();
                    let page = AuditPage { entries, total };
                    self.audit_runs.entry(run).or_default().ready(page);
                } else if self.newest(task, &Purpose::Audit) {
                    self.audit.ready(AuditPage { entries, total });
                }
            }
            News::Verified { entries, broken_at } => {
                self.verified.ready(Verified { entries, broken_at });
            }
            News::Runs(runs) => self.runs.ready(runs),
            News::RunMessages { run, messages } => {
                let notes = self
                    .reports
                    .iter()
                    .find(|report| report.run.run == run.run)
                    .map(|report| report.notes.clone())
                    .unwrap_or_default();
                self.run.ready(RunDetail {
                    run,
                    messages,
                    notes,
                });
            }
            News::Captures(captures) => {
                if self.newest(task, &Purpose::Captures(self.copies_of)) {
                    self.captures.ready(captures);
                }
            }
            News::Redrives { .. } => {}
            News::Notice(text) => self.notify(Weight::Information, text),
            News::Done => follow_up = self.ended(task, Ending::Done),
            News::Cancelled => follow_up = self.ended(task, Ending::Cancelled),
            News::Failed(error) => follow_up = self.ended(task, Ending::Failed(error)),
        }
        follow_up
    }

    fn change(&mut self, id: LookId, change: impl FnOnce(&mut LookState)) {
        if let Some(look) = self.look_mut(id) {
            change(look);
        }
    }

    fn job(&mut self, task: TaskId, change: impl FnOnce(&mut Job)) {
        if let Some(job) = self.jobs.iter_mut().find(|job| job.task == task) {
            change(job);
        }
    }

    /// True when no later task has the same purpose.
    fn newest(&self, task: TaskId, purpose: &Purpose) -> bool {
        !self
            .tasks
            .iter()
            .any(|(other, known)| *other > task && known == purpose)
    }

    fn connected(&mut self, task: TaskId, connected: &Connected) -> FollowUp {
        let connection = connected.connection;
        if self.tasks.get(&task) == Some(&Purpose::Test) {
            self.test.ready(connected.server.clone());
            return vec![Ask::Disconnect { connection }];
        }
        if let Some(Purpose::Connect(place)) = self.tasks.get(&task) {
            self.attempts.remove(&place.clone());
        }
        self.connections.push(Connection {
            id: connection,
            label: connected.label.clone(),
            broker: connected.broker.clone(),
            mode: connected.mode,
            server: connected.server.clone(),
            list: Remote::NotAsked,
            costs: std::collections::BTreeMap::new(),
            listed_at: self.now,
        });
        vec![Ask::List { connection }]
    }

    fn disconnected(&mut self, id: ConnectionId) {
        self.connections.retain(|connection| connection.id != id);
        self.looks.retain(|look| look.connection != id);
        let gone = match &self.center {
            Center::Destination(connection, _) => *connection == id,
            Center::Look(look) => self.look(*look).is_none(),
            _ => false,
        };
        if gone {
            self.center = Center::Welcome;
        }
    }

    fn replace_listed(&mut self, id: ConnectionId, new: &Arc<dlo_engine::event::Listed>) {
        let Some(connection) = self.connection_mut(id) else {
            return;
        };
        let Some(list) = connection.list.value() else {
            return;
        };
        let address = &new.destination.address;
        let mut list: Vec<_> = list.to_vec();
        match list
            .iter_mut()
            .find(|listed| &listed.destination.address == address)
        {
            Some(listed) => *listed = (**new).clone(),
            None => list.push((**new).clone()),
        }
        // A list that is on its way will replace it anyway.
        let loading = connection.list.is_loading();
        connection.list.ready(list.into());
        if loading {
            connection.list.load();
        }
    }

    fn look_opened(&mut self, task: TaskId, opened: &LookOpened) {
        self.looks.retain(|look| {
            look.phase.is_open()
                || look.connection != opened.connection
                || look.address != opened.address
        });
        let mut look = LookState::new(opened, task, self.now);
        look.before = self
            .connection(opened.connection)
            .and_then(|connection| connection.listed(&opened.address))
            .cloned();
        self.looks.push(look);
        self.center = Center::Look(opened.look);
    }

    fn progress(&mut self, id: LookId, progress: LookProgress, phase: Option<LookPhase>) {
        self.change(id, |look| {
            look.progress = progress;
            if let Some(phase) = phase
                && look.phase.is_open()
            {
                look.phase = phase;
                look.progress.running = false;
            }
        });
    }

    /// Messages that were resolved before are hidden unless a person wants to see them.
    fn hide_settled(&self, id: LookId) -> FollowUp {
        match self.look(id) {
            Some(look) if look.shows_settled() => vec![Ask::Filter {
                look: id,
                query: look.filter.query.clone(),
                resolved: look.filter.resolved,
            }],
            _ => FollowUp::new(),
        }
    }

    fn hold_lost(&mut self, id: LookId, why: String) {
        if let Some(look) = self.look_mut(id) {
            look.phase = LookPhase::Lost(why.clone());
            look.progress.hold = None;
            let name = look.address.to_string();
            self.notify(
                Weight::Failure,
                format!("The messages of {name} are no longer held: {why}. They are in their queue again."),
            );
        }
    }

    fn finished(&mut self, task: TaskId, report: Arc<RunReport>) -> FollowUp {
        let run = report.run.run.clone();
        self.job(task, |job| {
            job.run = Some(run.clone());
            job.progress.total = report.run.total;
            job.progress.outcomes = report.run.outcomes.clone();
            job.progress.done = report.messages.len() as u64;
        });
        let detail = RunDetail {
            run: Arc::new(report.run.clone()),
            messages: report.messages.clone(),
            notes: report.notes.clone(),
        };
        self.run.ready(detail);
        for look in &mut self.looks {
            look.drop_settled_drafts(&report.messages);
        }
        self.reports.push(report);
        self.refresh()
    }

    /// What may have changed after an act.
    fn refresh(&self) -> FollowUp {
        let mut asks: FollowUp = self
            .connections
            .iter()
            .map(|connection| Ask::List {
                connection: connection.id,
            })
            .collect();
        asks.push(Ask::Runs);
        asks.extend(self.looks.iter().flat_map(LookState::ask_again));
        if self.captures.value().is_some() {
            asks.push(Ask::Captures {
                destination: None,
                of: self.copies_of,
            });
        }
        asks
    }

    fn ended(&mut self, task: TaskId, ending: Ending) -> FollowUp {
        let Some(purpose) = self.tasks.remove(&task) else {
            return FollowUp::new();
        };
        self.end_job(task, &ending);
        self.end_look_task(task, &purpose, &ending);
        match ending {
            Ending::Done => self.done(&purpose),
            // A run that was stopped has done something too.
            Ending::Cancelled => {
                self.settle(&purpose);
                self.after(&purpose)
            }
            Ending::Failed(error) => {
                let follow_up = self.after(&purpose);
                self.failed(purpose, error);
                follow_up
            }
        }
    }

    fn end_job(&mut self, task: TaskId, ending: &Ending) {
        let now = self.now;
        self.job(task, |job| {
            job.ended = Some(now);
            job.state = match ending {
                Ending::Done => JobState::Done,
                Ending::Cancelled => JobState::Cancelled,
                Ending::Failed(error) => JobState::Failed(words::error(error)),
            };
        });
    }

    /// A look that stops bringing messages without saying why was cancelled or failed.
    fn end_look_task(&mut self, task: TaskId, purpose: &Purpose, ending: &Ending) {
        if !matches!(purpose, Purpose::Look(..) | Purpose::Further(_)) {
            return;
        }
        let Some(look) = self.looks.iter_mut().find(|look| look.task == Some(task)) else {
            return;
        };
        look.task = None;
        look.progress.running = false;
        if look.phase == LookPhase::Running {
            look.phase = match ending {
                Ending::Done => LookPhase::Ended,
                Ending::Cancelled => LookPhase::Paused("You stopped it.".to_owned()),
                Ending::Failed(error) => LookPhase::Failed(error.clone()),
            };
        }
    }

    /// What has to be asked after an act that ended without a report.
    fn after(&self, purpose: &Purpose) -> FollowUp {
        match purpose {
            Purpose::Run(_) => self.refresh(),
            _ => FollowUp::new(),
        }
    }

    fn done(&mut self, purpose: &Purpose) -> FollowUp {
        self.settle(purpose);
        match purpose {
            Purpose::SaveProfile(name) => {
                self.notify(Weight::Success, format!("Profile {name} saved"));
                vec![Ask::Profiles]
            }
            Purpose::RemoveProfile => vec![Ask::Profiles],
            Purpose::Close(look) => {
                let connection = self.look(*look).map(|look| look.connection);
                connection
                    .map(|connection| Ask::List { connection })
                    .into_iter()
                    .collect()
            }
            Purpose::Export(_) => {
                let mut asks = vec![Ask::Runs];
                asks.extend(self.looks.iter().flat_map(LookState::ask_again));
                asks
            }
            Purpose::Resolve(run) => vec![Ask::RunMessages { run: run.clone() }, Ask::Runs],
            _ => FollowUp::new(),
        }
    }

    /// What was loading and got no answer stops to load.
    fn settle(&mut self, purpose: &Purpose) {
        match purpose {
            Purpose::Profiles => self.profiles.settle(),
            Purpose::Test => self.test.settle(),
            Purpose::Connect(place) => {
                self.attempts.remove(place);
            }
            Purpose::List(id) => {
                if let Some(connection) = self.connection_mut(*id) {
                    connection.list.settle();
                }
            }
            Purpose::Filter(look) => self.change(*look, |look| look.filter.asked = None),
            Purpose::Open(look, _) => self.change(*look, |look| look.opened.settle()),
            Purpose::Audit => self.audit.settle(),
            Purpose::Verify => self.verified.settle(),
            Purpose::Runs => self.runs.settle(),
            Purpose::RunMessages(_) => self.run.settle(),
            Purpose::AuditRun(run) => self.audit_runs.entry(run.clone()).or_default().settle(),
            Purpose::Captures(_) => self.captures.settle(),
            Purpose::Plan => self.plan.settle(),
            _ => {}
        }
    }

    /// Puts a failure where the person looks: beside what failed, else in a notice.
    fn failed(&mut self, purpose: Purpose, error: Error) {
        if error.kind() == ErrorKind::Cancelled {
            self.settle(&purpose);
            return;
        }
        match &purpose {
            Purpose::Profiles => self.profiles.fail(error),
            Purpose::Test => self.test.fail(error),
            Purpose::Connect(place) => {
                self.attempts.insert(place.clone(), Attempt::Failed(error));
            }
            Purpose::List(id) => {
                if let Some(connection) = self.connection_mut(*id) {
                    connection.list.fail(error);
                }
            }
            Purpose::Cost(id, address) => {
                if let Some(connection) = self.connection_mut(*id) {
                    connection
                        .costs
                        .entry(address.clone())
                        .or_default()
                        .fail(error);
                }
            }
            Purpose::Filter(look) => self.change(*look, |look| {
                look.filter.asked = None;
                look.filter.error = Some(error);
            }),
            Purpose::Open(look, _) => self.change(*look, |look| look.opened.fail(error)),
            Purpose::Plan => self.plan.fail(error),
            Purpose::Audit => self.audit.fail(error),
            Purpose::Verify => self.verified.fail(error),
            Purpose::Runs => self.runs.fail(error),
            Purpose::RunMessages(_) => self.run.fail(error),
            Purpose::AuditRun(run) => self.audit_runs.entry(run.clone()).or_default().fail(error),
            Purpose::Captures(_) => self.captures.fail(error),
            Purpose::Close(look) => {
                self.notify(Weight::Failure, words::error(&error));
                self.change(*look, |look| look.phase = LookPhase::Failed(error));
            }
            _ => self.notify(Weight::Failure, words::error(&error)),
        }
    }
}

/// How a task ended.
enum Ending {
    Done,
    Cancelled,
    Failed(Error),
}

#[cfg(test)]
mod tests {
    use dlo_core::{Address, ServerInfo};
    use dlo_engine::{
        profile::Mode,
        store::{Budget, LookView},
    };

    use super::*;

    fn event(task: u64, news: News) -> Event {
        Event {
            task: TaskId(task),
            news,
        }
    }

    fn connected() -> AppState {
        let mut state = AppState::default();
        state.asked(TaskId(1), Purpose::Connect("demo:".to_owned()));
        let asks = state.apply(event(
            1,
            News::Connected(Arc::new(Connected {
                connection: ConnectionId(1),
                label: "demo:".to_owned(),
                broker: "memory".to_owned(),
                mode: Mode::Normal,
                server: ServerInfo::default(),
            })),
        ));
        assert!(matches!(asks[..], [Ask::List { .. }]));
        state.apply(event(1, News::Done));
        state
    }

    fn looking() -> AppState {
        let mut state = connected();
        let address = Address::queue("orders.dlq");
        state.asked(TaskId(2), Purpose::Look(ConnectionId(1), address.clone()));
        state.apply(event(
            2,
            News::LookOpened(LookOpened {
                look: LookId(1),
                connection: ConnectionId(1),
                address,
                cost: dlo_core::LookCost::default(),
                view: LookView::new(Budget::default()),
            }),
        ));
        state
    }

    #[test]
    fn a_connection_is_listed_at_once_and_the_attempt_is_gone() {
        let state = connected();
        assert_eq!(state.connections.len(), 1);
        assert!(state.attempts.is_empty() && state.tasks.is_empty());
    }

    #[test]
    fn a_failed_connection_stays_beside_its_name() {
        let mut state = AppState::default();
        state.asked(TaskId(1), Purpose::Connect("prod".to_owned()));
        let error = Error::new(ErrorKind::Unreachable, "connect", "nothing answers");
        state.apply(event(1, News::Failed(error)));
        assert!(matches!(
            state.attempts.get("prod"),
            Some(Attempt::Failed(_))
        ));
        assert!(state.notices.is_empty());
    }

    #[test]
    fn a_look_runs_ends_and_loses_its_hold() {
        let mut state = looking();
        assert_eq!(state.center, Center::Look(LookId(1)));
        state.apply(event(
            2,
            News::LookEnded {
                look: LookId(1),
                progress: LookProgress::default(),
            },
        ));
        state.apply(event(2, News::Done));
        let look = state.look(LookId(1)).expect("a look");
        assert_eq!((&look.phase, look.blocked()), (&LookPhase::Ended, None));
        state.apply(event(
            2,
            News::HoldLost {
                look: LookId(1),
                why: "the connection broke".to_owned(),
            },
        ));
        let look = state.look(LookId(1)).expect("a look");
        assert!(look.blocked().is_some_and(|why| why.contains("Look again")));
        assert_eq!(state.notices.len(), 1);
    }

    #[test]
    fn answers_about_a_message_nobody_wants_any_more_are_ignored() {
        let mut state = looking();
        state.asked(TaskId(3), Purpose::Open(LookId(1), 4));
        state.asked(TaskId(4), Purpose::Open(LookId(1), 5));
        let error = Error::new(ErrorKind::NotFound, "open the message", "it is gone");
        state.apply(event(3, News::Done));
        assert!(
            state
                .look(LookId(1))
                .is_some_and(|look| look.wanted == Some(5))
        );
        state.apply(event(4, News::Failed(error)));
        let look = state.look(LookId(1)).expect("a look");
        assert!(look.opened.error().is_some() && look.message().is_none());
    }

    #[test]
    fn a_run_is_a_job_with_its_outcomes_and_everything_is_listed_again() {
        let mut state = looking();
        state.asked(TaskId(5), Purpose::Run("Replay 3 messages".to_owned()));
        state.apply(event(
            5,
            News::RunStarted {
                run: "r1".to_owned(),
                total: 3,
            },
        ));
        let report = RunReport {
            run: dlo_engine::event::RunSummary {
                run: "r1".to_owned(),
                act: "replay".to_owned(),
                place: "demo:".to_owned(),
                destination: "orders.dlq".to_owned(),
                who: "me".to_owned(),
                why: "fixed".to_owned(),
                started: dlo_core::Millis(0),
                ended: None,
                state: "done".to_owned(),
                crashed: false,
                total: 3,
                outcomes: [("settled".to_owned(), 2), ("unroutable".to_owned(), 1)].into(),
            },
            messages: Arc::from([]),
            notes: Vec::new(),
        };
        let asks = state.apply(event(5, News::RunFinished(Arc::new(report))));
        assert!(asks.iter().any(|ask| matches!(ask, Ask::List { .. })));
        state.apply(event(5, News::Done));
        assert_eq!(state.jobs[0].state, JobState::Done);
        assert_eq!(state.jobs[0].troubles(), "1 unroutable");
    }

    #[test]
    fn only_the_newest_plan_counts() {
        let mut state = looking();
        state.asked(TaskId(6), Purpose::Plan);
        state.asked(TaskId(7), Purpose::Plan);
        let error = Error::new(ErrorKind::Refused, "plan", "no");
        state.apply(event(7, News::Failed(error)));
        assert!(state.plan.error().is_some());
    }

    #[test]
    fn a_disconnected_broker_takes_its_looks_along() {
        let mut state = looking();
        state.apply(event(
            8,
            News::Disconnected {
                connection: ConnectionId(1),
            },
        ));
        assert!(state.connections.is_empty() && state.looks.is_empty());
        assert_eq!(state.center, Center::Welcome);
    }
}
