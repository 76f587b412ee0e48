//! Once a program has met its call sites, recording allocates nothing.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use kymo_tracing::{Layer, Options, WhenFull};

struct Counting;

static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: it is the system's, which does what an allocator must.
#[allow(unsafe_code, reason = "an allocator cannot be counted otherwise")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps what the system's asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above; it came from the system's.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Events and spans of all kinds, more than a packet holds.
fn work() {
    for number in 0..2000u64 {
        tracing::info!(number, a = -1, b = true, c = 0.5);
        let span = tracing::info_span!("span", number, later = tracing::field::Empty);
        let _entered = span.enter();
        tracing::warn!(text = "some text", debug = ?Some(number), "message {number}");
        span.record("later", number);
    }
}

/// How often all threads have allocated while one works for the second time.
fn counted(layer: Layer, meanwhile: impl Fn()) -> usize {
    common::record(layer, || {
        work();
        meanwhile();
        work();
        meanwhile();
        let before = COUNT.load(Ordering::Relaxed);
        work();
        meanwhile();
        COUNT.load(Ordering::Relaxed) - before
    })
}

/// One test, since all threads are counted.
#[test]
fn nothing_is_allocated_after_the_first_time() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new()
        .packet_size(1 << 14)
        .when_full(WhenFull::Wait);
    let (layer, guard) = options.files(folder.path().join("files")).unwrap();
    assert_eq!(counted(layer, || guard.flush().unwrap()), 0);

    let (layer, _flight) = options.flight_recorder(1 << 16).unwrap();
    assert_eq!(counted(layer, || ()), 0);

    // A new file costs some; nothing else does.
    let options = options.file_size(1 << 26);
    let (layer, _guard) = options.mapped(folder.path().join("mapped")).unwrap();
    assert_eq!(counted(layer, || ()), 0);
}
