//! Places the orders of a file: one line, one transaction, one event.
use std::time::Duration;

use orders_contract::orders;
use trellis_runtime::{Ctx, OutboxError};

use crate::order::{self, Prices};
use crate::store::Store;

/// The context of this service: the events of its contract, and its database.
pub(crate) type OrdersCtx<D> = Ctx<orders::Contract, D>;

/// Why placing ends early. What was committed stays; the next start goes on after it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    #[error("a transaction failed")]
    Outbox(#[from] OutboxError),
    #[error("a statement failed")]
    Database(#[from] sqlx::Error),
}

/// Place all lines that no earlier run has placed, with a pause after each.
pub(crate) async fn place_all<D: Store>(
    ctx: &OrdersCtx<D>,
    lines: &[&str],
    prices: &Prices,
    pause: Duration,
) -> Result<(), PlaceError> {
    while place_next(ctx, lines, prices).await? {
        tokio::time::sleep(pause).await;
    }
    tracing::info!(lines = lines.len(), "all lines are placed or refused");
    Ok(())
}

/// Place the next line, or record why it is refused. False when no line is left.
///
/// Everything is in one transaction: which line it is, the order, its event. Whenever the process
/// is killed, either all of it is there or nothing, and the next start takes the same line again.
async fn place_next<D: Store>(
    ctx: &OrdersCtx<D>,
    lines: &[&str],
    prices: &Prices,
) -> Result<bool, PlaceError> {
    ctx.transaction(async |tx| {
        let Some(number) = D::take_line(tx, lines.len()).await? else { return Ok(false) };
        let Some(line) = lines.get(number) else { return Ok(false) };
        match order::check(line, prices) {
            Ok(order) if D::insert_order(tx, number, &order).await? => {
                ctx.event.orders.created.enqueue(tx, order).await?;
            }
            Ok(order) => {
                let detail = format!("order {:?} exists", order.order_id);
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
