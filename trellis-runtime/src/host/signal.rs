//! When the operating system asks the process to end.

/// Ready when it does. Signals that cannot be listened to never come.
#[cfg(unix)]
pub(crate) async fn asked_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let one = |kind| async move {
        match signal(kind) {
            Ok(mut signals) => {
                signals.recv().await;
            }
            Err(error) => {
                tracing::warn!(%error, "a signal cannot be listened to");
                std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        () = one(SignalKind::terminate()) => {}
        () = one(SignalKind::interrupt()) => {}
    }
}

/// Ready when it does. Signals that cannot be listened to never come.
#[cfg(windows)]
pub(crate) async fn asked_to_end() {
    use tokio::signal::windows;
    let listened =
        (windows::ctrl_c(), windows::ctrl_break(), windows::ctrl_close(), windows::ctrl_shutdown());
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
