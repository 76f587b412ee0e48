//! Aligns two sequences in bounded memory.
//!
//! As long as both are alike, nothing is kept. Where they differ, up to [`WINDOW`] elements of each are looked at for
//! the nearest places from which on both are alike again: for a few elements, or for one that is there only once in
//! each. Everything before these places differs. If there are no such places, the whole windows differ.

use std::collections::{HashMap, VecDeque};

/// Elements that are looked at ahead.
const WINDOW: usize = 4096;
/// Elements that must be alike for both to go on from there.
const ALIKE: usize = 3;

/// A difference: the elements that are only in one of the sequences, and where they begin in each.
#[derive(Debug, PartialEq)]
pub(super) struct Difference<T> {
    pub(super) at: [u64; 2],
    pub(super) only: [Vec<T>; 2],
}

struct Ahead<T, I> {
    elements: I,
    buffer: VecDeque<(u64, T)>,
    taken: u64,
}

impl<T, I: Iterator<Item = (u64, T)>> Ahead<T, I> {
    fn new(elements: I) -> Self {
        Self {
            elements,
            buffer: VecDeque::new(),
            taken: 0,
        }
    }

    /// Looks so far ahead; returns how far there is something.
    fn fill(&mut self, count: usize) -> usize {
        while self.buffer.len() < count {
            match self.elements.next() {
                Some(element) => self.buffer.push_back(element),
                None => break,
            }
        }
        self.buffer.len()
    }

    fn take(&mut self, count: usize) -> Vec<T> {
        self.taken += count as u64;
        self.buffer
            .drain(..count)
            .map(|(_, element)| element)
            .collect()
    }
}

/// Reports the differences of two sequences of hashed elements in order; returns how many elements are alike.
/// `false` of the teller ends it.
pub(super) fn align<T>(
    a: impl Iterator<Item = (u64, T)>,
    b: impl Iterator<Item = (u64, T)>,
    mut report: impl FnMut(Difference<T>) -> bool,
) -> u64 {
    let (mut a, mut b) = (Ahead::new(a), Ahead::new(b));
    let mut alike = 0;
    loop {
        let (in_a, in_b) = (a.fill(1), b.fill(1));
        if in_a == 0 && in_b == 0 {
            return alike;
        }
        if in_a > 0 && in_b > 0 && a.buffer[0].0 == b.buffer[0].0 {
            a.take(1);
            b.take(1);
            alike += 1;
            continue;
        }
        let (in_a, in_b) = (a.fill(WINDOW), b.fill(WINDOW));
        let hashes =
            |queue: &VecDeque<(u64, T)>| queue.iter().map(|(hash, _)| *hash).collect::<Vec<_>>();
        let (left, right) = nearest(&hashes(&a.buffer), &hashes(&b.buffer)).unwrap_or((in_a, in_b));
        let at = [a.taken, b.taken];
        let only = [a.take(left), b.take(right)];
        if !report(Difference { at, only }) {
            return alike;
        }
    }
}

/// The places nearest to the beginnings from which on both are alike: for [`ALIKE`] elements, until one ends, or for an
/// element that is there once in each.
fn nearest(a: &[u64], b: &[u64]) -> Option<(usize, usize)> {
    /// Places of an element that are looked at.
    const MOST_PLACES: usize = 64;
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, hash) in b.iter().enumerate() {
        let known = places.entry(*hash).or_default();
        if known.len() < MOST_PLACES {
            known.push(at);
        }
    }
    let mut counts: HashMap<u64, usize> = HashMap::new();
    a.iter()
        .for_each(|hash| *counts.entry(*hash).or_default() += 1);
    let mut best: Option<(usize, usize)> = None;
    for (left, hash) in a.iter().enumerate() {
        if best.is_some_and(|(x, y)| left >= x + y) {
            break;
        }
        let here = places.get(hash).map_or(&[][..], |here| here);
        let is_unique = here.len() == 1 && counts[hash] == 1;
        for &right in here {
            if best.is_some_and(|(x, y)| left + right >= x + y) {
                break;
            }
            let same = a[left..]
                .iter()
                .zip(&b[right..])
                .take(ALIKE)
                .take_while(|(a, b)| a == b);
            let rest = (a.len() - left).min(b.len() - right).min(ALIKE);
            if is_unique || same.count() == rest {
                best = Some((left, right));
                break;
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differences(a: &str, b: &str) -> (Vec<(u64, u64, String, String)>, u64) {
        let elements = |text: &str| text.chars().map(|c| (u64::from(c), c)).collect::<Vec<_>>();
        let mut all = Vec::new();
        let alike = align(
            elements(a).into_iter(),
            elements(b).into_iter(),
            |difference| {
                let [left, right] = difference.only.map(|only| only.into_iter().collect());
                all.push((difference.at[0], difference.at[1], left, right));
                true
            },
        );
        (all, alike)
    }

    fn one(a: u64, b: u64, left: &str, right: &str) -> (u64, u64, String, String) {
        (a, b, left.to_string(), right.to_string())
    }

    #[test]
    fn both_go_on_where_they_are_alike() {
        assert_eq!(differences("", ""), (vec![], 0));
        assert_eq!(differences("abcdef", "abcdef"), (vec![], 6));
        assert_eq!(
            differences("abcdef", "abXcdef"),
            (vec![one(2, 2, "", "X")], 6)
        );
        assert_eq!(
            differences("abcdef", "adef"),
            (vec![one(1, 1, "bc", "")], 4)
        );
        assert_eq!(
            differences("abcdef", "abXYdef"),
            (vec![one(2, 2, "c", "XY")], 5)
        );
        assert_eq!(differences("abc", ""), (vec![one(0, 0, "abc", "")], 0));
        assert_eq!(differences("abcdefghi", "abXdefgYhi").0.len(), 2);
        assert_eq!(
            differences("abcdefg", "abcXdeg"),
            (vec![one(3, 3, "", "X"), one(5, 6, "f", "")], 6)
        );
        assert_eq!(differences("xxxxa", "xxxa").1, 4);
        assert_eq!(differences("abc", "abcd"), (vec![one(3, 3, "", "d")], 3));
    }

    #[test]
    fn long_differences_need_no_more_than_the_windows() {
        let number = |from: u64, count: u64| (from..from + count).map(|n| (n, n));
        let many = WINDOW as u64 * 3;
        let a = number(0, 10)
            .chain(number(1_000_000, many))
            .chain(number(10, 10));
        let b = number(0, 20);
        let mut only = [0, 0];
        align(a, b, |difference| {
            assert!(difference.only.iter().all(|only| only.len() <= WINDOW));
            only[0] += difference.only[0].len();
            only[1] += difference.only[1].len();
            true
        });
        // Those at the end are reported as different, since the others came too long before.
        assert_eq!(only, [many as usize + 10, 10]);
        // One that stops early.
        let mut reported = 0;
        align(number(0, 100), number(50, 100), |_| {
            reported += 1;
            false
        });
        assert_eq!(reported, 1);
    }
}
