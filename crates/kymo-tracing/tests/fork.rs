//! A child that comes of a fork has the memory of its parent, and neither its threads nor its recording. This test is a program of
//! its own, since only the thread that forks is there in a child.
#![cfg(target_os = "linux")]

mod common;

use common::{numbers, read};
use kymo_tracing::{Options, WhenFull};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, alarm, fork};

#[test]
fn children_leave_the_recording_to_their_parent() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new()
        .packet_size(4096)
        .file_size(1 << 14)
        .waiting(2)
        .when_full(WhenFull::Wait);
    for kind in ["files", "mapped", "flight"] {
        let trace = folder.path().join(kind);
        let mut guard = None;
        let mut flight = None;
        let layer = if kind == "flight" {
            let (layer, its_flight) = options.flight_recorder(1 << 16).unwrap();
            flight = Some(its_flight);
            layer
        } else {
            let (layer, its_guard) = match kind {
                "files" => options.files(&trace).unwrap(),
                _ => options.mapped(&trace).unwrap(),
            };
            guard = Some(its_guard);
            layer
        };
        let dispatch = common::dispatch(layer);
        let report = |number: u64| tracing::info!(number);
        tracing::dispatcher::with_default(&dispatch, || (0..200).for_each(report));
        // SAFETY: the child records, and ends; it needs nothing of other threads.
        #[allow(unsafe_code, reason = "there is no safe fork")]
        let forked = unsafe { fork() }.unwrap();
        match forked {
            ForkResult::Child => {
                // Where it waits for ever, it ends by that.
                alarm::set(60);
                tracing::dispatcher::with_default(&dispatch, || (0..5000).for_each(report));
                let refused = match (&guard, &flight) {
                    (Some(guard), _) => guard.flush().is_err(),
                    (_, Some(flight)) => flight.snapshot(folder.path().join("of-child")).is_err(),
                    _ => false,
                };
                drop((guard, flight, dispatch));
                // SAFETY: it ends the child at once.
                #[allow(unsafe_code, reason = "no test goes on in the child")]
                unsafe {
                    nix::libc::_exit(i32::from(!refused))
                }
            }
            ForkResult::Parent { child } => {
                tracing::dispatcher::with_default(&dispatch, || (200..400).for_each(report));
                assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
                tracing::dispatcher::with_default(&dispatch, || (400..500).for_each(report));
            }
        }
        match (guard, flight) {
            (Some(guard), _) => guard.finish().unwrap(),
            (_, Some(flight)) => drop(flight.snapshot(&trace).unwrap()),
            _ => unreachable!("there is one of them"),
        }
        assert!(numbers(&read(&trace), "number").into_iter().eq(0..500));
    }
}
