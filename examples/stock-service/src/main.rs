//! The stock service: reserves stock for each order, once, however often its event is delivered.
//!
//! Read `contract.rs` and `reserve.rs`: they are what a consumer looks like. `store.rs` is the SQL.
mod contract;
mod reserve;
mod store;

use std::error::Error;
use std::fs::File;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use serde::Deserialize;
use sqlx::{Pool, Postgres, Sqlite};
use trellis_runtime::{GroupConfig, Host, SqlOutbox, migrate};

use crate::contract::warehouse;
use crate::reserve::Warehouse;
use crate::store::Store;

#[derive(Parser)]
#[command(about = "Reserves stock for each order, once, however often its event is delivered")]
struct Args {
    /// Where the stock is kept, such as sqlite:stock.db or postgres://localhost/stock
    #[arg(long, env = "DATABASE_URL")]
    database: String,
    /// The NATS server
    #[arg(long, env = "NATS_URL", default_value = "nats://127.0.0.1:4222")]
    nats: String,
    /// What is delivered at the beginning, and how much of it
    #[arg(long)]
    catalogue: PathBuf,
    /// Handlers at work at once
    #[arg(long, default_value_t = 4)]
    concurrency: u16,
    /// How long a killed process keeps the events that it was handling
    #[arg(long, default_value_t = 30)]
    ack_wait_seconds: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).init();

    let args = Args::parse();
    let ended = if args.database.starts_with("sqlite:") {
        run::<Sqlite>(&args).await
    } else {
        run::<Postgres>(&args).await
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = &*error, "the stock service ends");
            ExitCode::FAILURE
        }
    }
}

/// Handle events until the process is told to end.
async fn run<D: Store>(args: &Args) -> Result<(), Box<dyn Error>> {
    let pool = D::open(&args.database).await?;
    migrate(&pool).await?;
    fill_shelves::<D>(&pool, args).await?;

    let host = Host::builder(Warehouse(PhantomData), SqlOutbox::new(pool)?)
        .connect(&args.nats)
        .mount_with::<warehouse::Stock>(group_config(args))
        .start()
        .await?;
    host.run().await;
    Ok(())
}

fn group_config(args: &Args) -> GroupConfig {
    GroupConfig {
        concurrency: args.concurrency,
        ack_wait: Duration::from_secs(args.ack_wait_seconds),
        ..GroupConfig::default()
    }
}

async fn fill_shelves<D: Store>(pool: &Pool<D>, args: &Args) -> Result<(), Box<dyn Error>> {
    #[derive(Deserialize)]
    struct Article {
        sku: String,
        stock: u32,
    }
    let articles: Vec<Article> = serde_json::from_reader(File::open(&args.catalogue)?)?;
    for article in articles {
        D::deliver(pool, &article.sku, article.stock).await?;
    }
    Ok(())
}
