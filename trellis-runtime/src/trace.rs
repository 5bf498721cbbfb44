//! W3C trace context: carried from a handler to what it enqueues, without an exporter.
//!
//! Source: <https://www.w3.org/TR/trace-context/>. A handler runs inside the context of the event
//! it handles; what it enqueues continues that trace. Outside of one, each enqueue begins a trace.
use std::future::Future;

use crate::ports::Ids;

/// The trace that work belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: u128,
    span_id: u64,
    flags: u8,
    state: Option<String>,
}

tokio::task_local! {
    static CURRENT: TraceContext;
}

impl TraceContext {
    /// Read `traceparent` and `tracestate`. `None` when the former is not well formed.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let mut parts = traceparent.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let lower_hex = |text: &str, len| {
            text.len() == len && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        let shaped =
            lower_hex(version, 2) && lower_hex(trace, 32) && lower_hex(span, 16) && lower_hex(flags, 2);
        // A later version may append parts; version 00 has exactly four, and ff is forbidden.
        if !shaped || version == "ff" || (version == "00" && parts.next().is_some()) {
            return None;
        }
        let trace_id = u128::from_str_radix(trace, 16).ok().filter(|id| *id != 0)?;
        let span_id = u64::from_str_radix(span, 16).ok().filter(|id| *id != 0)?;
        let flags = u8::from_str_radix(flags, 16).ok()?;
        let state = tracestate.filter(|state| !state.is_empty() && state.len() <= 512).map(str::to_owned);
        Some(Self { trace_id, span_id, flags, state })
    }

    /// A new trace.
    pub fn begin(ids: &dyn Ids) -> Self {
        Self { trace_id: ids.random().max(1), span_id: span_id(ids), flags: 0, state: None }
    }

    /// A new span of the current trace, or a new trace where there is none.
    pub(crate) fn next(ids: &dyn Ids) -> Self {
        CURRENT
            .try_with(|current| Self { span_id: span_id(ids), ..current.clone() })
            .unwrap_or_else(|_| Self::begin(ids))
    }

    /// Run `work` as part of this trace.
    pub async fn scope<T>(self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(self, work).await
    }

    /// The trace's id: 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace_id)
    }

    /// The value of the `traceparent` header.
    pub fn traceparent(&self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }

    /// The value of the `tracestate` header.
    pub fn tracestate(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

fn span_id(ids: &dyn Ids) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "64 of the random bits are wanted")]
    let id = ids.random() as u64;
    id.max(1)
}

#[cfg(test)]
mod tests {
    use super::TraceContext;
    use crate::ports::RandomIds;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_well_formed_context_reads_back() {
        let context = TraceContext::parse(PARENT, Some("a=1")).unwrap();
        assert_eq!((context.traceparent().as_str(), context.tracestate()), (PARENT, Some("a=1")));
    }

    #[test]
    fn everything_else_is_refused() {
        let zero_trace = format!("00-{}-b7ad6b7169203331-01", "0".repeat(32));
        let upper = PARENT.to_uppercase();
        let five_parts = format!("{PARENT}-00");
        for bad in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            &zero_trace,
            &upper,
            &five_parts,
        ] {
            assert_eq!(TraceContext::parse(bad, None), None, "{bad}");
        }
    }

    #[tokio::test]
    async fn what_a_handler_enqueues_continues_its_trace() {
        let context = TraceContext::parse(PARENT, Some("a=1")).unwrap();
        let next = context.scope(async { TraceContext::next(&RandomIds) }).await;
        assert!(next.traceparent().starts_with("00-0af7651916cd43dd8448eb211c80319c-"));
        assert_ne!(next.traceparent(), PARENT);
        assert_eq!(next.tracestate(), Some("a=1"));
        assert_ne!(TraceContext::next(&RandomIds).traceparent(), next.traceparent());
    }
}
