//! Errors and what caused them.
use std::error::Error;

/// An error and what caused it, outermost first.
pub(crate) fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let this = next?;
        next = this.source();
        Some(this)
    })
}

/// An error and its causes, joined by `: `. A cause that its effect already quotes is left out.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    causes(error).fold(String::new(), |text, cause| {
        let part = cause.to_string();
        match text {
            text if text.is_empty() => part,
            text if text.ends_with(&part) => text,
            text => format!("{text}: {part}"),
        }
    })
}

/// What a panic said.
pub(crate) fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
