//! Loads what a look delivers into its view: reading and understanding run side by side.

use std::{collections::HashSet, sync::Arc, time::Duration};

use dlo_core::{Delivery, Error, Follow, Page, Result};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use super::OpenLook;
use crate::{
    age, dead_letter,
    event::News,
    group::Grouping,
    records::position_text,
    shared::{Reporter, Shared, lock},
    store::{NewRow, RowState},
};

/// Messages asked of a connector at a time.
const PAGE: usize = 1000;
/// Pages that may wait to be understood, so that the broker is read meanwhile.
const AHEAD: usize = 4;
/// The screen learns of progress this often at most.
const PROGRESS: Duration = Duration::from_millis(100);

/// Loads until the end, the limit, the memory budget or a cancellation.
pub async fn load(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    look: &Arc<OpenLook>,
    cancel: &CancellationToken,
) -> Result<()> {
    let _one_at_a_time = look.loading.lock().await;
    let resolved = resolved_positions(shared, look).await;
    lock(&look.progress).running = true;
    let stop = look.cancel.child_token();
    let (sender, mut pages) = mpsc::channel::<Result<Page>>(AHEAD);
    let reader = tokio::spawn(read_pages(look.clone(), sender, stop.clone()));
    let mut reported = Instant::now();
    let outcome = loop {
        let page = tokio::select! {
            () = cancel.cancelled() => break Err(Error::cancelled("look")),
            page = pages.recv() => page,
        };
        match page {
            None => {
                break Ok(News::LookEnded {
                    look: look.id,
                    progress: Default::default(),
                });
            }
            Some(Err(error)) => break Err(error),
            Some(Ok(page)) => {
                let end = page.end;
                take_in(look, page, &resolved);
                if let Some(why) = pause_reason(look, end) {
                    break Ok(News::LookPaused {
                        look: look.id,
                        progress: Default::default(),
                        why,
                    });
                }
            }
        }
        if reported.elapsed() >= PROGRESS {
            reported = Instant::now();
            reporter
                .tell(News::LookProgress {
                    look: look.id,
                    progress: look.progress(),
                })
                .await;
        }
    };
    stop.cancel();
    // What was read ahead is held already, so it is shown too.
    while let Some(page) = pages.recv().await {
        if let Ok(page) = page {
            take_in(look, page, &resolved);
        }
    }
    let _ = reader.await;
    lock(&look.progress).running = false;
    age::remember(look);
    tell_end(reporter, look, outcome).await
}

async fn tell_end(reporter: &Reporter, look: &OpenLook, outcome: Result<News>) -> Result<()> {
    let now = look.progress();
    match outcome {
        Ok(News::LookPaused { look, why, .. }) => {
            reporter
                .tell(News::LookPaused {
                    look,
                    progress: now,
                    why,
                })
                .await;
            Ok(())
        }
        Ok(_) => {
            reporter
                .tell(News::LookEnded {
                    look: look.id,
                    progress: now,
                })
                .await;
            Ok(())
        }
        Err(error) => {
            reporter
                .tell(News::LookProgress {
                    look: look.id,
                    progress: now,
                })
                .await;
            Err(error)
        }
    }
}

async fn read_pages(
    look: Arc<OpenLook>,
    sender: mpsc::Sender<Result<Page>>,
    stop: CancellationToken,
) {
    loop {
        let page = look.look.next(PAGE, &stop).await;
        let last = page.as_ref().map_or(true, |page| page.end);
        let cancelled = page
            .as_ref()
            .is_err_and(|error| error.kind() == dlo_core::ErrorKind::Cancelled);
        if cancelled || sender.send(page).await.is_err() || last || stop.is_cancelled() {
            return;
        }
    }
}

/// Why loading pauses here although there may be more.
fn pause_reason(look: &OpenLook, end: bool) -> Option<String> {
    if look.ask.follow == Follow::Tail {
        let dropped = if look.view.is_full() {
            look.view.drop_oldest()
        } else {
            0
        };
        lock(&look.progress).dropped += u64::from(dropped);
        return None;
    }
    if look.view.is_full() {
        return Some("The memory set aside for one look is used up.".to_owned());
    }
    let shown = u64::from(look.view.len());
    let more = lock(&look.progress)
        .total
        .value
        .is_some_and(|total| total > shown);
    (end && shown >= look.ask.limit && more).then(|| {
        format!(
            "The limit of {} messages for one look is reached.",
            look.ask.limit
        )
    })
}

/// Appends a page: deaths are read, groups found, resolved ones marked.
fn take_in(look: &OpenLook, page: Page, resolved: &HashSet<String>) {
    let mut rows = Vec::with_capacity(page.deliveries.len());
    {
        let mut grouping = lock(&look.grouping);
        for delivery in &page.deliveries {
            rows.push(understand(look, &mut grouping, delivery, resolved));
        }
        if !rows.is_empty() {
            look.view.append(page.deliveries.iter().zip(rows));
            look.view.set_groups(labels(&grouping));
        }
    }
    let mut progress = lock(&look.progress);
    progress.shown = u64::from(look.view.len());
    progress.scanned += page.scan.scanned;
    progress.gaps += page.scan.gaps;
    progress.errors += page.scan.errors;
    progress.total = page.scan.total;
    for note in page.scan.notes {
        if !progress.notes.contains(&note) {
            progress.notes.push(note);
        }
    }
}

fn labels(grouping: &Grouping) -> Vec<(String, String)> {
    let class = |group: &crate::group::Group| {
        group
            .hint
            .as_ref()
            .map(|hint| hint.class.word().to_owned())
            .unwrap_or_default()
    };
    grouping
        .groups()
        .iter()
        .map(|group| (group.label.clone(), class(group)))
        .collect()
}

fn understand(
    look: &OpenLook,
    grouping: &mut Grouping,
    delivery: &Delivery,
    resolved: &HashSet<String>,
) -> NewRow {
    let death = dead_letter::read(delivery, &look.connection.headers);
    let attempts = death
        .as_ref()
        .and_then(dead_letter::Death::attempt_count)
        .or(delivery.delivery_count);
    let is_resolved = !resolved.is_empty() && resolved.contains(&position_text(&delivery.position));
    NewRow {
        group: grouping.add(death.as_ref()),
        attempts: attempts.and_then(|count| u32::try_from(count).ok()),
        time: death
            .as_ref()
            .and_then(dead_letter::Death::failed_at)
            .or(delivery.time),
        state: if is_resolved {
            RowState::Resolved
        } else {
            RowState::Here
        },
    }
}

/// Positions that are resolved in the journal. Only brokers that cannot delete need them.
async fn resolved_positions(shared: &Shared, look: &OpenLook) -> HashSet<String> {
    if look.destination.capability.settle_ack {
        return HashSet::new();
    }
    let Ok(audit) = shared.audit() else {
        return HashSet::new();
    };
    audit
        .resolved_positions(&look.connection.label, &look.address().name)
        .await
        .unwrap_or_default()
}
