//! Reserves stock for each order, once, however often its event is delivered.
use std::marker::PhantomData;

use orders_contract::orders::OrderCreated;
use trellis::{HandlerError, On, Received, Service};
use trellis_runtime::Ctx;

use crate::contract::warehouse;
use crate::store::Store;

/// The service.
pub(crate) struct Warehouse<D>(pub(crate) PhantomData<fn() -> D>);

impl<D: Store> Service for Warehouse<D> {
    type Ctx = Ctx<warehouse::Contract, D>;
}

impl<D: Store> On<OrderCreated> for Warehouse<D> {
    async fn on(&self, ctx: &Self::Ctx, event: Received<OrderCreated>) -> Result<(), HandlerError> {
        let order = event.payload;
        // At most once per event: what is in here is committed with a row of the inbox. A second
        // delivery gets the first one's answer.
        let reserved = ctx
            .once(async |tx| {
                let reserved = D::take_stock(tx, &order.sku, order.quantity).await?;
                D::insert_reservation(tx, &order, reserved).await?;
                Ok::<_, HandlerError>(reserved)
            })
            .await?;
        tracing::debug!(order = order.order_id, reserved, deliveries = event.deliveries, "handled");
        Ok(())
    }
}
