//! What a submission comes from: carried from a handler to the jobs it creates.
use std::future::Future;

use trellis::{JobId, PayloadError, Submission};

use crate::jobs::event::{Context, Lineage, Trigger, TriggerKind};
use crate::jobs::submission::Stamp;
use crate::ports::Ports;
use crate::trace::TraceContext;

/// What handles something at the moment.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// The context that jobs created now inherit; without one they begin their own.
    pub(crate) context: Option<Context>,
    pub(crate) trigger: Trigger,
    pub(crate) lineage: Option<Lineage>,
}

tokio::task_local! {
    static CURRENT: Origin;
}

impl Origin {
    /// Run `work` as what comes from here.
    pub(crate) async fn scope<T>(self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(self, work).await
    }

    /// The handler of an event.
    pub(crate) fn event(id: &str, subject: &str) -> Self {
        let (id, subject) = (Some(id.to_owned()), Some(subject.to_owned()));
        Self {
            context: None,
            trigger: Trigger { id, subject, ..Trigger::of(TriggerKind::Event) },
            lineage: None,
        }
    }

    /// The handler of the job `id`.
    pub(crate) fn job(id: &str, context: Option<Context>, lineage: Option<&Lineage>) -> Self {
        let trigger = Trigger { parent_job_id: Some(id.to_owned()), ..Trigger::of(TriggerKind::ParentJob) };
        let root_job_id = lineage.map_or_else(|| id.to_owned(), |lineage| lineage.root_job_id.clone());
        let lineage = Some(Lineage { parent_job_id: id.to_owned(), root_job_id });
        Self { context, trigger, lineage }
    }

    fn current() -> Self {
        let outside =
            || Self { context: None, trigger: Trigger::of(TriggerKind::ServiceCode), lineage: None };
        CURRENT.try_with(Clone::clone).unwrap_or_else(|_| outside())
    }
}

impl Trigger {
    pub(crate) fn of(kind: TriggerKind) -> Self {
        Self { kind, id: None, subject: None, parent_job_id: None }
    }
}

impl Stamp {
    /// What is added to `submission` here and now.
    pub(crate) fn new(submission: &Submission, ports: &Ports) -> Result<Self, PayloadError> {
        let name = submission.declaration.name;
        let id = match &submission.id {
            Some(id) => id.clone(),
            None => JobId::new(ports.ulid()).map_err(|source| PayloadError::JobId { name, source })?,
        };
        let Origin { context, trigger, lineage } = Origin::current();
        let context = context.unwrap_or_else(|| {
            let trace = TraceContext::next(&*ports.ids);
            Context {
                request_id: ports.ulid(),
                trace_id: trace.trace_id(),
                traceparent: trace.traceparent(),
                tracestate: trace.tracestate().map(str::to_owned),
            }
        });
        Ok(Self { id, append_id: ports.ulid(), time: ports.clock.now(), context, trigger, lineage })
    }
}
