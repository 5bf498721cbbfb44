//! Sends the receipt of an order, once, however often its job is tried.
use std::marker::PhantomData;

use orders_contract::orders::{self, ReceiptSent, SendReceipt};
use trellis::{ActiveJob, JobError, LogLevel, Progress, Service, Work};
use trellis_runtime::Ctx;

use crate::mail::{Mail, MailError, MailServer};
use crate::store::Store;

/// The service.
pub(crate) struct Receipts<D> {
    pub(crate) mail_server: MailServer,
    pub(crate) database: PhantomData<fn() -> D>,
}

impl<D: Store> Service for Receipts<D> {
    type Ctx = Ctx<orders::Contract, D>;
}

impl<D: Store> Work<SendReceipt> for Receipts<D> {
    async fn work(&self, ctx: &Self::Ctx, job: ActiveJob<SendReceipt>) -> Result<ReceiptSent, JobError> {
        let SendReceipt { order_id, email, total_cents } = &job.payload;

        job.progress(Progress::of(0, 2).step("sending"));
        // Outside of a transaction: the server may be slow, and no rollback brings a mail back. Whoever
        // is killed after the server took the mail leaves nothing that says so: the job is tried again,
        // and the server knows the mail by its key. The job's id is the same in each try.
        let mail = Mail {
            key: job.id().as_str(),
            to: email,
            subject: format!("Your order {order_id}: {}.{:02} EUR", total_cents / 100, total_cents % 100),
        };
        let number = self.mail_server.send(&mail).await.map_err(what_follows)?;
        job.log(LogLevel::Info, format!("the mail server took it as mail {number}"));

        job.progress(Progress::of(1, 2).step("recording"));
        // At most once per job: what is in here is committed together with the result. A later try
        // gets that result.
        ctx.once(async |tx| {
            D::insert_receipt(tx, job.id(), &job.payload, number).await?;
            Ok(ReceiptSent { mail: number })
        })
        .await
    }
}

/// What follows when a mail was not taken.
fn what_follows(refusal: MailError) -> JobError {
    match refusal {
        MailError::NoSuchAddress => JobError::fail(refusal),
        MailError::Later { after } => JobError::retry_after(after, refusal),
        // The next try may succeed. Any error with `?` means this.
        _ => refusal.into(),
    }
}
