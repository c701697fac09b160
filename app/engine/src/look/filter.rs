//! Which rows match a query, and which rows a selection means.

use std::{collections::HashSet, sync::Arc};

use dlo_core::{Error, ErrorKind, Position, Result};
use tokio_util::sync::CancellationToken;

use super::OpenLook;
use crate::{
    command::{LookId, Selection, ShowResolved},
    dead_letter,
    event::News,
    query::Query,
    shared::{Reporter, Shared},
    store::RowState,
};

/// Rows looked at between two chances for others to run.
const STRIDE: usize = 512;

pub async fn filter(
    shared: &Arc<Shared>,
    reporter: &Reporter,
    id: LookId,
    text: String,
    resolved: ShowResolved,
    cancel: &CancellationToken,
) -> Result<()> {
    let look = shared.look(id)?;
    let shown = look
        .view
        .rows_where(|state| resolved == ShowResolved::Show || state != RowState::Resolved);
    let rows = matching(&look, shown, &text, cancel).await?;
    reporter
        .tell(News::Filtered {
            look: id,
            query: text,
            rows: rows.into(),
        })
        .await;
    Ok(())
}

/// The rows that a selection means, in the look's order. Rows that can no longer be acted on are left out, except where they
/// were named one by one: then they are an error.
pub async fn select(
    look: &OpenLook,
    selection: &Selection,
    cancel: &CancellationToken,
) -> Result<Vec<u32>> {
    let open = look.view.open_rows();
    let rows = match selection {
        Selection::All => open,
        Selection::First(count) => open
            .into_iter()
            .take(usize::try_from(*count).unwrap_or(usize::MAX))
            .collect(),
        Selection::Match(query) => matching(look, open, query, cancel).await?,
        Selection::Rows(rows) => {
            let mut rows = rows.clone();
            rows.sort_unstable();
            rows.dedup();
            rows.retain(|row| look.view.state(*row).is_some_and(RowState::can_act));
            rows
        }
        Selection::Positions(positions) => at_positions(look, positions)?,
    };
    if rows.is_empty() {
        return Err(Error::new(
            ErrorKind::NotFound,
            "select messages",
            "no message is selected",
        )
        .with("destination", look.address().name.clone())
        .advise("Look again, or choose other messages."));
    }
    Ok(rows)
}

fn at_positions(look: &OpenLook, positions: &[Position]) -> Result<Vec<u32>> {
    let mut wanted: HashSet<&Position> = positions.iter().collect();
    let mut rows = Vec::with_capacity(positions.len());
    for row in look.view.rows_where(RowState::can_act) {
        if let Some(delivery) = look.view.delivery(row)
            && wanted.remove(&delivery.position)
        {
            rows.push(row);
        }
    }
    if wanted.is_empty() {
        return Ok(rows);
    }
    let missing: Vec<_> = wanted.iter().take(10).map(ToString::to_string).collect();
    Err(Error::new(
        ErrorKind::NotFound,
        "select messages",
        format!("no message is at {}", missing.join(", ")),
    )
    .with("destination", look.address().name.clone())
    .advise("Look again to see the positions of now; a larger limit looks further."))
}

async fn matching(
    look: &OpenLook,
    rows: Vec<u32>,
    text: &str,
    cancel: &CancellationToken,
) -> Result<Vec<u32>> {
    if text.trim().is_empty() {
        return Ok(rows);
    }
    let query = Query::parse(text).map_err(|error| {
        Error::new(
            ErrorKind::ConfigInvalid,
            "read the filter",
            error.to_string(),
        )
        .advise("`dlo help query` explains the filter.")
    })?;
    let mut matching = Vec::new();
    for stride in rows.chunks(STRIDE) {
        if cancel.is_cancelled() {
            return Err(Error::cancelled("filter"));
        }
        matching.extend(
            stride
                .iter()
                .copied()
                .filter(|row| matches(look, &query, *row)),
        );
        tokio::task::yield_now().await;
    }
    Ok(matching)
}

fn matches(look: &OpenLook, query: &Query, row: u32) -> bool {
    let Some(delivery) = look.view.delivery(row) else {
        return false;
    };
    let death = dead_letter::read(&delivery, &look.connection.headers);
    query.matches(&delivery, death.as_ref())
}
