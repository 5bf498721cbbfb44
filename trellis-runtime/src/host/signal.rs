//! When the operating system asks the process to end.
use std::future::Future;

/// Listens from the call on; ready when the process is asked to end. Signals that cannot be listened
/// to never come.
#[cfg(unix)]
pub(crate) fn asked_to_end() -> impl Future<Output = ()> {
    use tokio::signal::unix::{Signal, SignalKind, signal};
    async fn one(listened: std::io::Result<Signal>) {
        match listened {
            Ok(mut signals) => {
                signals.recv().await;
            }
            Err(error) => {
                tracing::warn!(%error, "a signal cannot be listened to");
                std::future::pending::<()>().await;
            }
        }
    }
    let (terminate, interrupt) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    async move {
        tokio::select! {
            () = one(terminate) => {}
            () = one(interrupt) => {}
        }
    }
}

/// Listens from the call on; ready when the process is asked to end. Signals that cannot be listened
/// to never come.
#[cfg(windows)]
pub(crate) fn asked_to_end() -> impl Future<Output = ()> {
    use tokio::signal::windows;
    let listened =
        (windows::ctrl_c(), windows::ctrl_break(), windows::ctrl_close(), windows::ctrl_shutdown());
    async move {
        let (Ok(mut c), Ok(mut pause), Ok(mut close), Ok(mut shutdown)) = listened else {
            tracing::warn!("the console's signals cannot be listened to");
            return std::future::pending().await;
        };
        tokio::select! {
            _ = c.recv() => {}
            _ = pause.recv() => {}
            _ = close.recv() => {}
            _ = shutdown.recv() => {}
        }
    }
}
