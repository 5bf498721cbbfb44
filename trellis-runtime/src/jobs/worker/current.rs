//! The try that the code at hand runs in, if any: what it waits for is noted by itself.
use std::future::Future;
use std::sync::Arc;

use trellis::{Attempt, WaitTarget};

use crate::jobs::worker::live::Live;

tokio::task_local! {
    static CURRENT: Arc<Live>;
}

/// Run `work` as part of the try `live`.
pub(crate) async fn scope<T>(live: Arc<Live>, work: impl Future<Output = T>) -> T {
    CURRENT.scope(live, work).await
}

/// Await `work`; inside a try, its job says meanwhile that it waits for `target`.
pub(crate) async fn noting<T>(target: WaitTarget, work: impl Future<Output = T>) -> T {
    struct Resume(Arc<Live>, String);
    impl Drop for Resume {
        fn drop(&mut self) {
            self.0.resumed(std::mem::take(&mut self.1));
        }
    }
    let _resume = CURRENT.try_with(Arc::clone).ok().map(|live| {
        let wait = live.waiting(target);
        Resume(live, wait)
    });
    work.await
}
