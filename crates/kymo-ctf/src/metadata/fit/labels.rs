//! Labels and the ranges of values that they stand for.

use std::collections::HashMap;
use std::sync::Arc;

use kymo_model::{Flag, Labels, Mapping};

use crate::class::{Selector, VariantOption};
use crate::decode::choice::Choice;
use crate::metadata::tsdl;

/// The labels of a bit map's flags: each stands for the numbers with one of its bits.
pub(super) fn labels_of(flags: &[Flag], size: u32) -> Labels {
    let mappings = flags.iter().map(|flag| {
        let bits = flag.bits();
        let single = (0..size.min(64)).filter(|bit| bits >> bit & 1 == 1);
        Mapping {
            label: flag.name.clone(),
            ranges: single.map(|bit| (1 << bit, 1 << bit)).collect(),
        }
    });
    let labels = Labels::new(false, mappings.collect());
    cleaned(&labels, false).unwrap_or(labels)
}

/// The labels that can be written, or `None` if all can be written as they are: in quotes nothing
/// stands for a zero character, a label is one whatever its ranges, and ranges have values.
pub(super) fn cleaned(labels: &Labels, signed: bool) -> Option<Labels> {
    let mut cleaned: Vec<Mapping> = Vec::with_capacity(labels.mappings().len());
    let mut positions = HashMap::new();
    let flip = u64::from(signed) << 63;
    for mapping in labels.mappings() {
        let label: Arc<str> = match mapping.label.contains('\0') {
            true => tsdl::names::without_zeros(&mapping.label).into(),
            false => mapping.label.clone(),
        };
        let ranges = mapping.ranges.iter().copied();
        let ranges: Vec<_> = ranges
            .filter(|(low, high)| low ^ flip <= high ^ flip)
            .collect();
        if ranges.is_empty() {
            continue;
        }
        let at = *positions.entry(label.clone()).or_insert(cleaned.len());
        match cleaned.get_mut(at) {
            Some(known) => known.ranges.extend(ranges),
            None => cleaned.push(Mapping { label, ranges }),
        }
    }
    let cleaned = Labels::new(signed, cleaned);
    (cleaned != *labels).then_some(cleaned)
}

/// Which selectors select which option, where several options have a selector or an option has
/// none: each then has selectors of its own, as decoding takes them. An option that is never selected
/// has one that the selector, of a size in bits, does not reach.
///
/// # Errors
///
/// If there are not enough such numbers.
pub(super) fn apart(
    options: &[VariantOption],
    signed: bool,
    bits: u32,
) -> Result<Option<Vec<Selector>>, ()> {
    let count = |when: &Selector| match when {
        Selector::True => 0,
        Selector::Unsigned(ranges) => ranges.len(),
        Selector::Signed(ranges) => ranges.len(),
    };
    let choice = Choice::new(options.iter().map(|option| &option.when));
    let mut apart: Vec<Vec<(u64, u64)>> = vec![Vec::new(); options.len()];
    for (low, high, option) in choice.ranges() {
        apart[option].push((low, high));
    }
    let covered = |option: usize| {
        let ranges = apart[option].iter();
        ranges
            .map(|(low, high)| u128::from(high.wrapping_sub(*low)) + 1)
            .sum::<u128>()
    };
    let alone = |option: usize| {
        let choice = Choice::new([&options[option].when]);
        let ranges = choice.ranges();
        ranges
            .map(|(low, high, _)| u128::from(high.wrapping_sub(low)) + 1)
            .sum::<u128>()
    };
    let mut options_at = 0..options.len();
    if options_at.all(|at| count(&options[at].when) > 0 && covered(at) == alone(at)) {
        return Ok(None);
    }
    let mut beyond = beyond(&apart, signed, bits).into_iter();
    for ranges in apart.iter_mut().filter(|ranges| ranges.is_empty()) {
        let number = beyond.next().ok_or(())?;
        ranges.push((number, number));
    }
    let selector = |ranges: Vec<(u64, u64)>| match signed {
        true => Selector::Signed(ranges.iter().map(|&(a, b)| (a as i64, b as i64)).collect()),
        false => Selector::Unsigned(ranges),
    };
    Ok(Some(apart.into_iter().map(selector).collect()))
}

/// Numbers that a selector of a size in bits does not reach and that select nothing: labels may stand
/// for numbers that their integer cannot have. Returns one for each option, or all that exist.
fn beyond(options: &[Vec<(u64, u64)>], signed: bool, bits: u32) -> Vec<u64> {
    let bits = bits.min(64);
    let number = |bits: u64| match signed {
        true => i128::from(bits as i64),
        false => i128::from(bits),
    };
    let taken: Vec<_> = (options.iter().flatten())
        .map(|&(low, high)| (number(low), number(high)))
        .collect();
    let (lowest, reached, highest) = match signed {
        true => {
            let half = 1i128 << (bits - 1);
            (i64::MIN.into(), (-half, half - 1), i64::MAX.into())
        }
        false => (0, (0, (1i128 << bits) - 1), u64::MAX.into()),
    };
    let above = complement(&taken, reached.1 + 1, highest);
    let below = complement(&taken, lowest, reached.0 - 1);
    let free = above.into_iter().chain(below);
    let numbers = free.flat_map(|(low, high)| (low..=high).map(|number| number as u64));
    numbers.take(options.len()).collect()
}

/// The label that stands for the same values as a selector.
pub(super) fn label_of<'l>(labels: &'l Labels, when: &Selector) -> Option<&'l str> {
    let mut mappings = labels.mappings().iter();
    let found = mappings.find(|mapping| tsdl::write::is_same(&mapping.ranges, when))?;
    Some(&found.label)
}

pub(super) fn wide<T: Copy + Into<i128>>(ranges: &[(T, T)]) -> Vec<(i128, i128)> {
    let wide = |&(low, high): &(T, T)| (low.into(), high.into());
    ranges.iter().map(wide).collect()
}

/// The ranges from `low` to `high` without others.
pub(super) fn complement(ranges: &[(i128, i128)], low: i128, high: i128) -> Vec<(i128, i128)> {
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable();
    let mut rest = Vec::new();
    let mut next = low;
    for (first, last) in sorted {
        if first > next {
            rest.push((next, high.min(first - 1)));
        }
        next = next.max(last + 1);
    }
    if next <= high {
        rest.push((next, high));
    }
    rest.retain(|(low, high)| low <= high);
    rest
}

/// The labels as RFC v1.1 can express them: value by value. Ranges of more values than there may be
/// in all are left out.
pub(super) fn by_value(labels: &Labels, bits: u32) -> Labels {
    /// How many values an enumeration may have.
    const MOST: u64 = 4096;
    let signed = labels.is_signed();
    let flip = u64::from(signed) << 63;
    let (low, high) = match signed {
        true => (
            -(1i128 << (bits - 1)) as u64,
            ((1i128 << (bits - 1)) - 1) as u64,
        ),
        false => (0, u64::MAX >> (64 - bits)),
    };
    let (low, high) = (low ^ flip, high ^ flip);
    let mut left = MOST;
    let mut mappings = Vec::with_capacity(labels.mappings().len());
    for mapping in labels.mappings() {
        let mut ranges = Vec::new();
        for &(first, last) in &mapping.ranges {
            // Values outside the range of the integer do not count.
            let (first, last) = ((first ^ flip).max(low), (last ^ flip).min(high));
            if first > last || last - first >= left {
                continue;
            }
            left -= last - first + 1;
            ranges.extend((first..=last).map(|value| (value ^ flip, value ^ flip)));
        }
        if !ranges.is_empty() {
            let label = mapping.label.clone();
            mappings.push(Mapping { label, ranges });
        }
    }
    Labels::new(signed, mappings)
}
