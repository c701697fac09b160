//! Which rows match a query, and which rows a selection means.

use std::{collections::HashSet, sync::Arc};

use dlo_core::{Delivery, Error, ErrorKind, Millis, Position, Result};
use tokio_util::sync::CancellationToken;

use super::{OpenLook, message};
use crate::{
    command::{LookId, Selection, ShowResolved},
    dead_letter,
    event::News,
    group::Class,
    query::{Query, Subject},
    shared::{Reporter, Shared},
    store::{GroupRow, RowState},
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
        .rows_where(|state| resolved == ShowResolved::Show || !state.is_settled());
    let rows = matching(shared, &look, shown, &text, cancel).await?;
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
    shared: &Arc<Shared>,
    look: &OpenLook,
    selection: &Selection,
    cancel: &CancellationToken,
) -> Result<Vec<u32>> {
    let open = look.view.open_rows();
    select_from(shared, look, selection, open, RowState::can_act, cancel).await
}

/// The same among the rows that are marked as resolved, to take their marks back.
pub async fn select_resolved(
    shared: &Arc<Shared>,
    look: &OpenLook,
    selection: &Selection,
    cancel: &CancellationToken,
) -> Result<Vec<u32>> {
    let is_resolved = |state| state == RowState::Resolved;
    let resolved = look.view.rows_where(is_resolved);
    select_from(shared, look, selection, resolved, is_resolved, cancel).await
}

/// `rows` is what a selection chooses from; `may` is what a row that is named must be.
async fn select_from(
    shared: &Arc<Shared>,
    look: &OpenLook,
    selection: &Selection,
    rows: Vec<u32>,
    may: fn(RowState) -> bool,
    cancel: &CancellationToken,
) -> Result<Vec<u32>> {
    let rows = match selection {
        Selection::All => rows,
        Selection::First(count) => rows
            .into_iter()
            .take(usize::try_from(*count).unwrap_or(usize::MAX))
            .collect(),
        Selection::Match(query) => matching(shared, look, rows, query, cancel).await?,
        Selection::Rows(rows) => {
            let mut rows = rows.clone();
            rows.sort_unstable();
            rows.dedup();
            rows.retain(|row| look.view.state(*row).is_some_and(may));
            rows
        }
        Selection::Positions(positions) => at_positions(look, positions, may)?,
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

fn at_positions(
    look: &OpenLook,
    positions: &[Position],
    may: fn(RowState) -> bool,
) -> Result<Vec<u32>> {
    let mut wanted: HashSet<&Position> = positions.iter().collect();
    let mut rows = Vec::with_capacity(positions.len());
    for row in look.view.rows_where(may) {
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
    shared: &Arc<Shared>,
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
        .advise("`dlo explain query` explains the filter.")
    })?;
    let filter = Filter {
        query,
        groups: look.view.groups(),
        now: Millis::now(),
        recipe: message::remembered_recipe(shared, look).await,
    };
    let mut matching = Vec::new();
    for stride in rows.chunks(STRIDE) {
        if cancel.is_cancelled() {
            return Err(Error::cancelled("filter"));
        }
        for row in stride {
            if filter.matches(shared, look, *row).await {
                matching.push(*row);
            }
        }
        tokio::task::yield_now().await;
    }
    Ok(matching)
}

/// A query with what is the same for all rows.
struct Filter {
    query: Query,
    groups: Vec<GroupRow>,
    now: Millis,
    /// How bodies of this destination are decoded, when a person has chosen that.
    recipe: Option<String>,
}

impl Filter {
    async fn matches(&self, shared: &Arc<Shared>, look: &OpenLook, row: u32) -> bool {
        let Some(delivery) = look.view.delivery(row) else {
            return false;
        };
        let death = dead_letter::read(&delivery, &look.connection.headers);
        let json = self.decoded(shared, look, &delivery).await;
        let group = look.view.group_of(row);
        let group = group.and_then(|id| self.groups.get(id as usize));
        self.query.matches(&Subject {
            json: json.as_ref(),
            group: group.map(|group| group.label.as_str()),
            class: group.and_then(|group| Class::from_word(&group.class)),
            ..Subject::new(&delivery, death.as_ref(), self.now)
        })
    }

    /// The decoded body, when the query asks for a field of it and its bytes are not JSON already. One that cannot be decoded
    /// has no fields.
    async fn decoded(
        &self,
        shared: &Arc<Shared>,
        look: &OpenLook,
        delivery: &Delivery,
    ) -> Option<serde_json::Value> {
        let body = delivery.message.body.as_deref()?;
        let is_json = || serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok();
        if !self.query.needs_json() || is_json() {
            return None;
        }
        let decoding = shared
            .schemas
            .decode(&look.connection, delivery, self.recipe.as_deref());
        let (body, _) = decoding.await.ok()?;
        Some(body.document.to_json())
    }
}
