//! Places the orders of a file: one line, one transaction, with its event and the job of its receipt.
use std::error::Error;
use std::time::Duration;

use orders_contract::orders;
use trellis_runtime::{Ctx, OutboxError, OutboxErrorKind};

use crate::order::{self, Order, Prices};
use crate::store::Store;

/// The context of this service: the events and jobs of its contract, and its database.
pub(crate) type OrdersCtx<D> = Ctx<orders::Contract, D>;

/// Place all lines that no earlier run has placed, with a pause after each.
///
/// When it fails, what was committed stays, and the next start goes on after it.
pub(crate) async fn place_all<D: Store>(
    ctx: &OrdersCtx<D>,
    lines: &[&str],
    prices: &Prices,
    pause: Duration,
) -> Result<(), OutboxError> {
    loop {
        match place_next(ctx, lines, prices).await {
            Ok(true) => tokio::time::sleep(pause).await,
            Ok(false) => break,
            // Another transaction was in the way: nothing of this one was done, so do it again.
            Err(error) if error.kind() == OutboxErrorKind::Retryable => {
                tracing::warn!(error = &error as &dyn Error, "a line is placed again");
            }
            Err(error) => return Err(error),
        }
    }
    tracing::info!(lines = lines.len(), "all lines are placed or refused");
    Ok(())
}

/// Place the next line, or record why it is refused. False when no line is left.
///
/// Everything is in one transaction: which line it is, the order, its event, the job of its receipt.
/// Whenever the process is killed, either all of it is there or nothing, and the next start takes the
/// same line again.
async fn place_next<D: Store>(
    ctx: &OrdersCtx<D>,
    lines: &[&str],
    prices: &Prices,
) -> Result<bool, OutboxError> {
    ctx.transaction(async |tx| {
        let Some(number) = D::take_line(tx, lines.len()).await? else { return Ok(false) };
        let Some(line) = lines.get(number) else { return Ok(false) };
        match order::check(line, prices) {
            Ok(Order { created, receipt }) if D::insert_order(tx, number, &created).await? => {
                ctx.event.orders.created.enqueue(tx, created).await?;
                ctx.job.orders.send_receipt.create(tx, receipt).await?;
            }
            Ok(Order { created, .. }) => {
                let detail = format!("order {:?} exists", created.order_id);
                D::insert_refusal(tx, number, "duplicate", &detail).await?;
            }
            Err(rejection) => {
                D::insert_refusal(tx, number, rejection.code(), &rejection.to_string()).await?;
            }
        }
        Ok(true)
    })
    .await
}
