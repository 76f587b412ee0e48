//! What a library's panic means here: the file is damaged.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use super::Problem;

thread_local! {
    /// Whether a panic of this thread is caught here, and nobody's to report.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Does something with bytes that anybody may have made: where a library gives up, the file is damaged.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                report(panic);
            }
        }));
    });
    let before = IS_GUARDED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_GUARDED.set(before);
    result.unwrap_or_else(|_| Err("the file is damaged: its reader has given up".to_owned()))
}
