//! The loop that comes to mind first: claim a few, publish one, wait, mark it, next.

use std::time::Duration;

use async_nats::jetstream;
use sqlx::Pool;
use testbed::Stopwatch;

use crate::Result;
use crate::database::Dialect;
use crate::relay::overlapped::send_row;

const PAGE: i64 = 25;

pub(crate) async fn relay<D: Dialect>(pool: &Pool<D>, js: &jetstream::Context) -> Result<Duration> {
    let stopwatch = Stopwatch::start();
    loop {
        let page = D::claim(pool, PAGE).await?;
        if page.is_empty() {
            return Ok(stopwatch.elapsed());
        }
        for row in page {
            let (id, ack) = send_row(js, row).await?;
            ack.await?;
            D::mark(pool, &id).await?;
        }
    }
}
