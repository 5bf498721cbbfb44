//! Which handler an event goes to, with its type erased.
use bytes::Bytes;
use futures_util::future::BoxFuture;
use trellis::{Event, EventDeclaration, HandlerError, On, Received, Registrar, Service};

use crate::validate::Validators;
use crate::wire::Environment;

/// Everything of a delivery that a handler is told, before its payload is read.
#[derive(Debug, Clone)]
pub(crate) struct Raw {
    pub(crate) body: Bytes,
    pub(crate) id: trellis::MessageId,
    pub(crate) root_id: trellis::MessageId,
    pub(crate) time: std::time::SystemTime,
    pub(crate) subject: String,
    pub(crate) deliveries: u64,
    pub(crate) sequence: u64,
}

/// Why a delivery was not handled.
#[derive(Debug)]
pub(crate) enum Unhandled {
    /// The payload cannot be read; another delivery of it neither.
    Unreadable(String),
    Failed(HandlerError),
}

type Handle<S> =
    for<'a> fn(&'a S, &'a <S as Service>::Ctx, &'a Validators, Raw) -> BoxFuture<'a, Result<(), Unhandled>>;

/// One event of a group.
pub(crate) struct Route<S: Service> {
    pub(crate) event: EventDeclaration,
    base: String,
    pub(crate) handle: Handle<S>,
}

impl<S: Service> Route<S> {
    /// Whether a message on `subject` is this event.
    pub(crate) fn takes(&self, subject: &str) -> bool {
        let Some(rest) = subject.strip_prefix(&self.base) else { return false };
        let params = rest.split('.').count() - 1;
        (rest.is_empty() || rest.starts_with('.')) && params == self.event.params.len()
    }
}

/// The events of a group, in declared order.
pub(crate) struct Routes<S: Service> {
    environment: Environment,
    pub(crate) routes: Vec<Route<S>>,
}

impl<S: Service> Routes<S> {
    pub(crate) fn new(environment: Environment) -> Self {
        Self { environment, routes: Vec::new() }
    }
}

impl<S: Service> Registrar<S> for Routes<S> {
    fn on<E: Event>(&mut self)
    where
        S: On<E>,
    {
        self.routes.push(Route {
            event: E::DECLARATION,
            base: self.environment.event_base(&E::DECLARATION),
            handle: |service, ctx, validators, raw| Box::pin(handle::<S, E>(service, ctx, validators, raw)),
        });
    }
}

async fn handle<S: On<E>, E: Event>(
    service: &S,
    ctx: &S::Ctx,
    validators: &Validators,
    raw: Raw,
) -> Result<(), Unhandled> {
    let event = E::DECLARATION;
    let mut json = serde_json::Deserializer::from_slice(&raw.body);
    let payload: E::Payload = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        Unhandled::Unreadable(format!("payload at `{}`: {}", error.path(), error.inner()))
    })?;
    json.end().map_err(|error| Unhandled::Unreadable(format!("payload: {error}")))?;
    validators
        .check((event.contract, event.name), trellis::schema::input::<E::Payload>, &raw.body)
        .map_err(|fault| Unhandled::Unreadable(fault.to_string()))?;
    let mut received = Received::<E>::new(payload, raw.id, raw.time);
    received.root_id = raw.root_id;
    received.subject = raw.subject;
    received.deliveries = raw.deliveries;
    received.sequence = raw.sequence;
    service.on(ctx, received).await.map_err(Unhandled::Failed)
}

#[cfg(test)]
mod tests {
    use super::{Raw, Registrar, Routes, Unhandled};
    use crate::validate::Validators;
    use crate::wire::Environment;
    use std::time::SystemTime;
    use trellis::{Event, EventDeclaration, HandlerError, MessageId, On, Received, Service};

    struct Shop;
    struct Created;
    impl Event for Created {
        type Payload = Order;
        const DECLARATION: EventDeclaration = EventDeclaration::new("a@v1", "orders.created");
    }
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Order {
        lines: Vec<Line>,
    }
    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    struct Line {
        #[schemars(range(min = 1))]
        quantity: u32,
    }
    impl Service for Shop {
        type Ctx = ();
    }
    impl On<Created> for Shop {
        async fn on(&self, (): &(), event: Received<Created>) -> Result<(), HandlerError> {
            assert_eq!((event.deliveries, event.root_id.as_str()), (3, "root"));
            Err(HandlerError::retry("no stock"))
        }
    }

    async fn handle(body: &'static str) -> Result<(), Unhandled> {
        let mut routes = Routes::<Shop>::new(Environment::NONE);
        routes.on::<Created>();
        let raw = Raw {
            body: body.into(),
            id: MessageId::new("m").unwrap(),
            root_id: MessageId::new("root").unwrap(),
            time: SystemTime::UNIX_EPOCH,
            subject: "s".into(),
            deliveries: 3,
            sequence: 1,
        };
        (routes.routes[0].handle)(&Shop, &(), &Validators::default(), raw).await
    }

    #[tokio::test]
    async fn an_unreadable_payload_says_where() {
        let cases = [
            (r#"{"lines":[{"quantity":1},{"quantity":"x"}]}"#, "`lines[1].quantity`: invalid type: string"),
            (r#"{"lines":[{"quantity":0}]}"#, "`/lines/0/quantity`: 0 is less than the minimum of 1"),
            (r#"{"lines":[]} x"#, "trailing characters"),
            ("", "EOF"),
        ];
        for (body, says) in cases {
            match handle(body).await {
                Err(Unhandled::Unreadable(reason)) => assert!(reason.contains(says), "{reason}"),
                other => panic!("{body}: {other:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_readable_one_reaches_its_handler() {
        let unknown_field = r#"{"lines":[{"quantity":1,"new":true}]}"#;
        assert!(
            matches!(handle(unknown_field).await, Err(Unhandled::Failed(error)) if error.to_string() == "no stock")
        );
    }
}
