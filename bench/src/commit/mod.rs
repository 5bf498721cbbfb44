//! `bench commit`: what one message costs the transaction that writes it.

mod contest;

use sqlx::{Postgres, Sqlite};

use crate::Result;
use crate::case::Case;
use crate::commit::contest::Contest;
use crate::database::Sync;
use crate::setting::Setting;

/// How many transactions are made, and how many at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    transactions: u32,
    at_once: u32,
}

/// All databases, round by round, one transaction at a time and several.
pub(crate) async fn run(setting: &Setting) -> Result<Vec<Case>> {
    let (one_by_one, together) = if setting.quick { (150, 480) } else { (2_000, 8_000) };
    let loads = [Load { transactions: one_by_one, at_once: 1 }, Load { transactions: together, at_once: 16 }];
    let mut cases = Vec::new();
    for load in loads {
        let mut postgres = Contest::<Postgres>::prepare(setting, "PostgreSQL", Sync::Full, load).await?;
        let mut full = Contest::<Sqlite>::prepare(setting, "SQLite FULL", Sync::Full, load).await?;
        let mut normal = Contest::<Sqlite>::prepare(setting, "SQLite NORMAL", Sync::Normal, load).await?;
        for round in 0..setting.rounds() {
            postgres.round(round).await?;
            full.round(round).await?;
            normal.round(round).await?;
        }
        cases.extend([postgres.case(), full.case(), normal.case()]);
    }
    Ok(cases)
}
