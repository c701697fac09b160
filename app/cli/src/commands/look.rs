//! `dlo look`.

use std::collections::HashMap;

use dlo_core::{Follow, Position, Result};
use dlo_engine::{
    Ask, News, capture,
    command::{DecodeAs, Selection, ShowResolved},
    event::Opened,
    store::{LookView, RowState},
};
use serde_json::json;

use super::selection::{Default, look_ask, selection};
use crate::{
    args::Look,
    client::{Client, Looked},
    exit,
    out::{Out, printable},
};

pub async fn run(client: &mut Client, args: Look) -> Result<u8> {
    let connected = client.connect_at(&args.at).await?;
    let found = client.find(&connected, &args.destination).await?;
    let chosen = selection(&args.selecting, Default::All)?;
    let mut ask = look_ask(&args.looking, &chosen, &found.destination, Default::All)?;
    if args.follow {
        ask.follow = Follow::Tail;
    }
    let mut out = Out::new(args.format.json);
    if !out.json && !args.groups {
        out.line("POSITION  TIME                      ATTEMPTS  KEY  REASON  PAYLOAD");
    }
    // While messages arrive they are printed as they are; what needs the whole look comes after it.
    let at_once = matches!(chosen, Selection::All | Selection::First(_))
        && !args.decode
        && args.decode_as.is_none()
        && !args.pointed
        && !args.groups;
    let context = Context {
        broker: &connected.broker,
        destination: &found.destination.address.name,
        resolved: if args.resolved {
            ShowResolved::Show
        } else {
            ShowResolved::Hide
        },
    };
    let mut printed = 0;
    let mut shown = 0;
    let address = found.destination.address.clone();
    let step = |looked: &Looked| {
        if at_once {
            shown += print_new(&mut out, &looked.opened.view, &mut printed, &context);
            out.flush();
        }
    };
    let looked = client.look(&connected, &address, ask, step).await?;
    let outcome = if at_once {
        Ok(shown)
    } else {
        print_selected(client, &mut out, &looked, &chosen, &args, &context).await
    };
    let returned = client.close(&looked).await;
    let shown = outcome?;
    let returned = returned?;
    let progress = &looked.progress;
    let summary = json!({"summary": {
        "seen": progress.scanned.max(progress.shown),
        "shown": shown,
        "gaps": progress.gaps,
        "errors": progress.errors,
        "total": progress.total.value,
        "notes": progress.notes,
        "given_back": returned.given_back,
        "lost_hold": returned.lost_hold,
        "rescued": returned.rescued,
    }});
    match out.json {
        true => out.object(&summary),
        false => out.line(&format!(
            "{shown} shown of {} seen; {} gaps, {} errors; {} given back",
            progress.scanned.max(progress.shown),
            progress.gaps,
            progress.errors,
            returned.given_back
        )),
    }
    progress
        .notes
        .iter()
        .for_each(|note| crate::out::remark(note));
    out.flush();
    Ok(exit::DONE)
}

struct Context<'a> {
    broker: &'a str,
    destination: &'a str,
    resolved: ShowResolved,
}

fn print_new(out: &mut Out, view: &LookView, printed: &mut u32, context: &Context<'_>) -> u64 {
    let mut shown = 0;
    while *printed < view.len() && !out.is_closed() {
        let resolved = view.state(*printed) == Some(RowState::Resolved);
        if !resolved || context.resolved == ShowResolved::Show {
            print_row(out, view, *printed, context, None);
            shown += 1;
        }
        *printed += 1;
    }
    shown
}

fn print_row(
    out: &mut Out,
    view: &LookView,
    row: u32,
    context: &Context<'_>,
    opened: Option<&Opened>,
) {
    let Some(delivery) = view.delivery(row) else {
        return;
    };
    let death = match opened {
        Some(opened) => opened.death.clone(),
        None => {
            dlo_engine::dead_letter::read(&delivery, &dlo_engine::dead_letter::Mapping::default())
        }
    };
    if out.json {
        let mut line = capture::to_line(
            &delivery,
            context.broker,
            context.destination,
            death.as_ref(),
        );
        if let Some(opened) = opened {
            line.pop();
            line.push_str(&format!(",\"decoded\":{}", opened.body.to_json()));
            if let Some(key) = &opened.key {
                line.push_str(&format!(",\"decoded_key\":{}", key.to_json()));
            }
            line.push('}');
        }
        out.line(&line);
        return;
    }
    let Some(summary) = view.row(row) else { return };
    let reason = death
        .as_ref()
        .and_then(|death| death.class().or(death.message()))
        .unwrap_or("");
    let payload = match opened {
        Some(opened) => opened.body.to_json().to_string(),
        None => summary.preview,
    };
    out.line(&format!(
        "{:<8}  {:<24}  {:>8}  {}  {}  {}",
        position(&summary.position),
        summary
            .time
            .map(|time| time.to_string())
            .unwrap_or_default(),
        summary
            .attempts
            .map(|attempts| attempts.to_string())
            .unwrap_or_default(),
        printable(summary.key.as_deref().unwrap_or("∅")),
        printable(reason),
        printable(&payload)
    ));
}

fn position(position: &Position) -> String {
    position.to_string()
}

/// The groups of the chosen rows only, the largest first.
fn print_groups(out: &mut Out, view: &LookView, rows: &[u32]) {
    let mut counts: HashMap<u32, (u64, u64)> = HashMap::new();
    for row in rows {
        let Some(group) = view.group_of(*row) else {
            continue;
        };
        let (count, open) = counts.entry(group).or_default();
        *count += 1;
        *open += u64::from(view.state(*row).is_some_and(RowState::is_open));
    }
    let mut groups = view.groups();
    groups.retain(|group| counts.contains_key(&group.id));
    groups.sort_by_key(|group| std::cmp::Reverse(counts[&group.id].0));
    for group in groups {
        let (count, open) = counts[&group.id];
        if out.json {
            out.object(
                &json!({"group": group.label, "class": group.class, "count": count, "open": open}),
            );
        } else {
            let label = printable(&group.label);
            out.line(&format!("{count:>8}  {:<10}  {label}", group.class));
        }
    }
}

async fn print_selected(
    client: &mut Client,
    out: &mut Out,
    looked: &Looked,
    chosen: &Selection,
    args: &Look,
    context: &Context<'_>,
) -> Result<u64> {
    let view = &looked.opened.view;
    let rows = selected(client, looked, chosen, context).await?;
    if args.groups {
        print_groups(out, view, &rows);
        return Ok(rows.len() as u64);
    }
    for row in &rows {
        if out.is_closed() {
            break;
        }
        let opened = if args.decode || args.decode_as.is_some() {
            let decode = args
                .decode_as
                .clone()
                .map_or(DecodeAs::Detected, DecodeAs::Recipe);
            let ask = Ask::Open {
                look: looked.opened.look,
                row: *row,
                decode,
            };
            Some(
                client
                    .ask_for(ask, |news| {
                        if let News::Opened(opened) = news {
                            Some(opened)
                        } else {
                            None
                        }
                    })
                    .await?,
            )
        } else {
            None
        };
        print_row(out, view, *row, context, opened.as_deref());
        if args.pointed {
            super::pointed::print(client, out, looked, *row).await?;
        }
    }
    Ok(rows.len() as u64)
}

async fn selected(
    client: &mut Client,
    looked: &Looked,
    chosen: &Selection,
    context: &Context<'_>,
) -> Result<Vec<u32>> {
    match chosen {
        Selection::Match(query) => matching(client, looked, query, context.resolved).await,
        Selection::Positions(positions) => Ok(at(&looked.opened.view, positions)),
        _ => matching(client, looked, "", context.resolved).await,
    }
}

async fn matching(
    client: &mut Client,
    looked: &Looked,
    query: &str,
    resolved: ShowResolved,
) -> Result<Vec<u32>> {
    let ask = Ask::Filter {
        look: looked.opened.look,
        query: query.to_owned(),
        resolved,
    };
    let rows = client
        .ask_for(ask, |news| {
            if let News::Filtered { rows, .. } = news {
                Some(rows)
            } else {
                None
            }
        })
        .await?;
    Ok(rows.to_vec())
}

fn at(view: &LookView, positions: &[Position]) -> Vec<u32> {
    (view.first()..view.len())
        .filter(|row| {
            view.delivery(*row)
                .is_some_and(|delivery| positions.contains(&delivery.position))
        })
        .collect()
}
