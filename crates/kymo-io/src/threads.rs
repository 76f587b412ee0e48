//! Work in several threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Works on all numbers below `count` in up to `threads` threads, including the caller's: each thread
/// makes a part and does `work` on it for every number it takes, which are in order. `work` returns
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

/// Works on jobs in up to `threads` threads, and takes their results in the order of the jobs.
///
/// # Errors
///
/// Those of taking, which end the work.
pub fn in_order<J: Sync, D: Send, E>(
    jobs: &[J],
    threads: usize,
    work: impl Fn(&J) -> D + Sync,
    mut take: impl FnMut(usize, D) -> Result<(), E>,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            let sender = sender.clone();
            let (next, work) = (&next, &work);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(number) else { break };
                    if sender.send((number, work(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut taken = 0;
        for (number, done) in receiver {
            waiting.insert(number, done);
            while let Some(done) = waiting.remove(&taken) {
                take(taken, done)?;
                taken += 1;
            }
        }
        Ok(())
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

    #[test]
    fn what_became_of_jobs_is_taken_in_their_order() {
        let jobs: Vec<u64> = (0..200).collect();
        for threads in [0, 1, 3] {
            let mut taken = Vec::new();
            let done = in_order(
                &jobs,
                threads,
                |job| job * 2,
                |number, done| {
                    taken.push(done);
                    if number == 150 { Err(number) } else { Ok(()) }
                },
            );
            assert_eq!(done, Err(150));
            assert!(taken.iter().copied().eq((0..=150).map(|job| job * 2)));
        }
    }
}
