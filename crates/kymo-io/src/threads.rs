//! Work in several threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Works on all numbers below `count` in up to so many threads, the caller's included: each thread
/// makes a part and does `work` on it for every number it takes, which are in order. `work` tells
/// whether later numbers still matter; those before are always worked on. Where the system has no
/// more threads, those that there are do the work. The parts come in no particular order.
pub fn in_threads<P: Send>(
    count: usize,
    threads: usize,
    new_part: impl Fn() -> P + Sync,
    work: impl Fn(&mut P, usize) -> bool + Sync,
) -> Vec<P> {
    let next = AtomicUsize::new(0);
    let end = AtomicUsize::new(count);
    let run = || {
        let mut part = new_part();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= end.load(Ordering::Relaxed) {
                return part;
            }
            if !work(&mut part, number) {
                end.fetch_min(number + 1, Ordering::Relaxed);
            }
        }
    };
    let threads = threads.clamp(1, count.max(1));
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map_while(|_| std::thread::Builder::new().spawn_scoped(scope, run).ok())
            .collect();
        let mut parts = vec![run()];
        for other in others {
            match other.join() {
                Ok(part) => parts.push(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        parts
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_up_to_the_last_that_matters_is_worked_on() {
        for threads in [0, 1, 2, 7] {
            for last in [0, 3, 99] {
                let parts = in_threads(100, threads, Vec::new, |part, number| {
                    part.push(number);
                    number != last
                });
                assert!(parts.len() <= threads.max(1));
                assert!(parts.iter().all(|part| part.is_sorted()));
                let mut done = parts.concat();
                done.sort_unstable();
                assert!(done[..=last].iter().copied().eq(0..=last), "{done:?}");
            }
        }
        assert_eq!(in_threads(0, 3, || 1, |_, _| true), [1]);
    }
}
