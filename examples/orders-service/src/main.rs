//! The orders service: places the orders of a file, each in one SQL transaction with its event and the
//! job of its receipt. Another process works on those jobs: `receipts-worker`.
//!
//! Read `place.rs` first: it is what a service with an outbox looks like. `order.rs` decides what is
//! an order, `store.rs` is the SQL.
mod order;
mod place;
mod store;

use std::error::Error;
use std::fs::File;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use serde::Deserialize;
use sqlx::{Postgres, Sqlite};
use trellis::Service;
use trellis_runtime::{Host, OutboxConfig, SqlOutbox, migrate};

use crate::order::Prices;
use crate::place::{OrdersCtx, place_all};
use crate::store::Store;

#[derive(Parser)]
#[command(about = "Places the orders of a file, each in one SQL transaction with its event and its receipt")]
struct Args {
    /// Where the orders are kept, such as sqlite:orders.db or postgres://localhost/orders
    #[arg(long, env = "DATABASE_URL")]
    database: String,
    /// The NATS server
    #[arg(long, env = "NATS_URL", default_value = "nats://127.0.0.1:4222")]
    nats: String,
    /// The orders, one JSON object per line
    #[arg(long)]
    orders: PathBuf,
    /// What is sold, and for how much
    #[arg(long)]
    catalogue: PathBuf,
    /// A pause after each line, in milliseconds
    #[arg(long, default_value_t = 0)]
    pause_ms: u64,
    /// How long a killed process keeps the rows that it was sending
    #[arg(long, default_value_t = 30)]
    lease_seconds: u64,
}

/// The service. This process of it consumes nothing, so it has no handlers here.
struct Orders<D>(PhantomData<fn() -> D>);

impl<D: Store> Service for Orders<D> {
    type Ctx = OrdersCtx<D>;
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
            tracing::error!(error = &*error, "the orders service ends");
            ExitCode::FAILURE
        }
    }
}

/// Place what is to be placed and send its events, until the process is told to end.
async fn run<D: Store>(args: &Args) -> Result<(), Box<dyn Error>> {
    let prices = read_prices(args)?;
    let orders = std::fs::read_to_string(&args.orders)?;
    let lines: Vec<&str> = orders.lines().collect();

    let pool = D::open(&args.database).await?;
    migrate(&pool).await?;
    let outbox = SqlOutbox::builder(pool).config(outbox_config(args)).build()?;
    let host = Host::builder(Orders(PhantomData), outbox).connect(&args.nats).start().await?;

    let ctx = host.ctx();
    let placing = place_all(&ctx, &lines, &prices, Duration::from_millis(args.pause_ms));
    let mut asked_to_end = std::pin::pin!(host.asked_to_end());
    tokio::select! {
        placed = placing => {
            placed?;
            asked_to_end.await;
        }
        () = &mut asked_to_end => {}
    }
    // Nothing is placed any more: what is in the outbox can be sent.
    host.stop().await;
    Ok(())
}

fn outbox_config(args: &Args) -> OutboxConfig {
    let (lease, default) = (Duration::from_secs(args.lease_seconds), OutboxConfig::default());
    OutboxConfig { lease, ack_timeout: default.ack_timeout.min(lease / 4), ..default }
}

fn read_prices(args: &Args) -> Result<Prices, Box<dyn Error>> {
    #[derive(Deserialize)]
    struct Article {
        sku: String,
        price_cents: u64,
    }
    let articles: Vec<Article> = serde_json::from_reader(File::open(&args.catalogue)?)?;
    Ok(articles.into_iter().map(|article| (article.sku, article.price_cents)).collect())
}
