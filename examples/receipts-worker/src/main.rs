//! The receipts worker: sends the receipts of orders by mail, each once, however often its job is tried.
//!
//! Read `send.rs` first: it is what work on a job looks like. `mail.rs` speaks with the mail server,
//! `store.rs` is the SQL. It is a process of the orders service: the same contract, the same database.
//! Jobs can be worked on by the process that creates them, too; here a mail server that is slow keeps
//! nobody from placing orders, and each of the two can be stopped, updated and multiplied by itself.
mod mail;
mod send;
mod store;

use std::error::Error;
use std::marker::PhantomData;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use orders_contract::orders::SendReceipt;
use sqlx::{Postgres, Sqlite};
use trellis_runtime::{Host, OutboxConfig, SqlOutbox, WorkerConfig, migrate};

use crate::mail::MailServer;
use crate::send::Receipts;
use crate::store::Store;

#[derive(Parser)]
#[command(about = "Sends the receipts of orders by mail, each once, however often its job is tried")]
struct Args {
    /// Where the orders are kept, such as sqlite:orders.db or postgres://localhost/orders
    #[arg(long, env = "DATABASE_URL")]
    database: String,
    /// The NATS server
    #[arg(long, env = "NATS_URL", default_value = "nats://127.0.0.1:4222")]
    nats: String,
    /// The mail server
    #[arg(long, default_value = "127.0.0.1:2525")]
    mail_server: String,
    /// Jobs at work at once
    #[arg(long, default_value_t = 16)]
    concurrency: u16,
    /// How long a killed process keeps the jobs that it was working on
    #[arg(long, default_value_t = 30)]
    ack_wait_seconds: u64,
    /// How long a killed process keeps the rows that it was sending
    #[arg(long, default_value_t = 30)]
    lease_seconds: u64,
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
            tracing::error!(error = &*error, "the receipts worker ends");
            ExitCode::FAILURE
        }
    }
}

/// Work on jobs until the process is told to end.
async fn run<D: Store>(args: &Args) -> Result<(), Box<dyn Error>> {
    let pool = D::open(&args.database).await?;
    migrate(&pool).await?;
    let outbox = SqlOutbox::builder(pool).config(outbox_config(args)).build()?;
    let receipts = Receipts { mail_server: MailServer::at(&args.mail_server), database: PhantomData };

    let host = Host::builder(receipts, outbox)
        .connect(&args.nats)
        .work_with::<SendReceipt>(worker_config(args))
        .start()
        .await?;
    host.run().await;
    Ok(())
}

fn worker_config(args: &Args) -> WorkerConfig {
    WorkerConfig {
        concurrency: args.concurrency,
        ack_wait: Duration::from_secs(args.ack_wait_seconds),
        ..WorkerConfig::default()
    }
}

/// It sends what is in the outbox as well: every process of a service does.
fn outbox_config(args: &Args) -> OutboxConfig {
    let (lease, default) = (Duration::from_secs(args.lease_seconds), OutboxConfig::default());
    OutboxConfig { lease, ack_timeout: default.ack_timeout.min(lease / 4), ..default }
}
