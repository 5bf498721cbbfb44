//! When the operating system asks the process to end.
use std::future::Future;
use std::io;

/// Listens from the call on; ready when the process is asked to end.
#[cfg(unix)]
pub(crate) fn asked_to_end() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Listens from the call on; ready when the process is asked to end.
#[cfg(windows)]
pub(crate) fn asked_to_end() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}
