//! The handler of one kind of job, with its type erased.
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use trellis::{ActiveJob, Job, Service, Then, Work};

use crate::jobs::decide::Ended;
use crate::jobs::log::AppendError;
use crate::jobs::worker::live::Live;

/// What calling a handler came to.
#[derive(Debug)]
pub(crate) enum Ran {
    Ended(Ended),
    /// `started` was not appended, so the handler was not called.
    NotBegun(AppendError),
}

/// Reads the payload, begins the try, calls the handler.
pub(crate) type Run<S> =
    for<'a> fn(&'a S, &'a <S as Service>::Ctx, &'a Arc<Live>, &'a RawValue) -> BoxFuture<'a, Ran>;

pub(crate) fn route<S: Work<J>, J: Job>() -> Run<S> {
    |service, ctx, live, payload| Box::pin(run::<S, J>(service, ctx, live, payload))
}

async fn run<S: Work<J>, J: Job>(service: &S, ctx: &S::Ctx, live: &Arc<Live>, payload: &RawValue) -> Ran {
    let payload = match read::<J>(live, payload) {
        Ok(payload) => payload,
        Err(reason) => return Ran::Ended(Ended::Unreadable(reason)),
    };
    let facts = match live.begin().await {
        Ok(facts) => facts,
        Err(error) => return Ran::NotBegun(error),
    };
    let job = ActiveJob::<J>::new(payload, facts, Arc::clone(live) as Arc<dyn trellis::Attempt>);
    Ran::Ended(match service.work(ctx, job).await {
        Ok(result) => write::<J>(live, &result),
        Err(error) => Ended::Failed(error.to_string(), error.then()),
    })
}

fn read<J: Job>(live: &Live, payload: &RawValue) -> Result<J::Payload, String> {
    let text = payload.get();
    let read = serde_json::from_str(text).map_err(|error| said_with_path::<J::Payload>(text, &error))?;
    let declared = (J::DECLARATION.contract, J::DECLARATION.name);
    let checked =
        live.queue.validators.check(declared, trellis::schema::input::<J::Payload>, text.as_bytes());
    checked.map_err(|invalid| invalid.to_string())?;
    Ok(read)
}

/// Read again for the place of the fault: keeping track of it is slow.
fn said_with_path<P: DeserializeOwned>(text: &str, error: &serde_json::Error) -> String {
    let mut json = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, P>(&mut json) {
        Err(error) => format!("payload at `{}`: {}", error.path(), error.inner()),
        Ok(_) => format!("payload: {error}"),
    }
}

fn write<J: Job>(live: &Live, result: &J::Result) -> Ended {
    let result = match to_raw_value(result) {
        Ok(result) => result,
        Err(error) => return Ended::Failed(format!("the result cannot be encoded: {error}"), Then::Fail),
    };
    let declared = (J::DECLARATION.contract, J::DECLARATION.name);
    let schema = trellis::schema::output::<J::Result>;
    match live.queue.validators.check(declared, schema, result.get().as_bytes()) {
        Ok(()) => Ended::Completed(result),
        Err(invalid) => Ended::Failed(
            format!("the result is invalid at `{}`: {}", invalid.path, invalid.problem),
            Then::Fail,
        ),
    }
}
