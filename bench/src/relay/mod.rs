//! `bench relay`: a backlog of committed rows → acknowledged by JetStream → gone from the table.

mod contest;
mod ours;
mod overlapped;
mod row_by_row;

use sqlx::{Postgres, Sqlite};

use crate::Result;
use crate::case::Case;
use crate::database::Sync;
use crate::relay::contest::Contest;
use crate::setting::Setting;

/// Rows of a backlog.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// For ours and the ideal loop.
    backlog: u32,
    /// For the loop that goes row by row, which would take minutes otherwise.
    row_by_row: u32,
}

/// All databases, round by round, so that whatever the machine does meanwhile hits all alike.
pub(crate) async fn run(setting: &Setting) -> Result<Vec<Case>> {
    let sizes = if setting.quick {
        Sizes { backlog: 20_000, row_by_row: 100 }
    } else {
        Sizes { backlog: 100_000, row_by_row: 1_000 }
    };
    let mut postgres = Contest::<Postgres>::prepare(setting, "PostgreSQL", Sync::Full).await?;
    let mut full = Contest::<Sqlite>::prepare(setting, "SQLite FULL", Sync::Full).await?;
    let mut normal = Contest::<Sqlite>::prepare(setting, "SQLite NORMAL", Sync::Normal).await?;
    for round in 0..setting.rounds() {
        postgres.round(round, sizes).await?;
        full.round(round, sizes).await?;
        normal.round(round, sizes).await?;
    }
    Ok(vec![postgres.case(), full.case(), normal.case()])
}
