//! Sets of ranges of integers (CTF2-SPEC-2.0, "integer range set"): labels, flags, selectors.

use std::sync::Arc;

use kymo_model::{Flag, Labels, Mapping};
use kymo_text::diagnostic::Diagnostic;

use super::json::Value;
use super::types::{Choice, Range};
use crate::metadata::limits::Warnings;

/// The labels of an integer and the ranges of each.
pub(super) fn mappings(
    value: &Value<'_>,
    signed: bool,
    warnings: &mut Warnings,
) -> Result<Labels, Diagnostic> {
    let mut mappings = Vec::new();
    for member in value.object("an object of labels")? {
        let mut bits = Vec::new();
        for range in ranges(&member.value)? {
            match bits_of(&range, signed) {
                Some(range) => bits.push(range),
                // What cannot occur needs no label.
                None if !signed => {
                    warnings.push(
                        Diagnostic::warning(format!(
                            "the label `{}` of an unsigned integer is for negative ones",
                            member.name
                        ))
                        .at(range.span, "the negative ones are left out"),
                    );
                    bits.extend(u64::try_from(range.high).ok().map(|high| (0, high)));
                }
                None => return Err(too_large(&range)),
            }
        }
        if !bits.is_empty() {
            mappings.push(Mapping {
                label: (&*member.name).into(),
                ranges: bits,
            });
        }
    }
    Ok(Labels::new(signed, mappings))
}

/// A range as the bits of 64-bit integers; `None` where these do not reach as far.
fn bits_of(range: &Range, signed: bool) -> Option<(u64, u64)> {
    if signed {
        let bits = |number| i64::try_from(number).ok().map(|number| number as u64);
        Some((bits(range.low)?, bits(range.high)?))
    } else {
        let bits = |number| u64::try_from(number).ok();
        Some((bits(range.low)?, bits(range.high)?))
    }
}

/// That a signed integer never has such a value.
pub(super) fn too_large(range: &Range) -> Diagnostic {
    Diagnostic::error("a range beyond the signed integers of 64 bits")
        .at(range.span, "expected numbers less than 2^63")
}

/// The names of the bits of a bit map.
pub(super) fn flags(value: &Value<'_>) -> Result<Arc<[Flag]>, Diagnostic> {
    let members = value.object("an object of flags")?;
    if members.is_empty() {
        return value.expected("at least one flag");
    }
    let flag = |(name, value): (&str, &Value<'_>)| {
        let mut bits = Vec::new();
        for range in ranges(value)? {
            match bits_of(&range, false) {
                Some(range) => bits.push(range),
                None => {
                    return Err(Diagnostic::error("a bit with a negative number")
                        .at(range.span, "expected numbers of bits, from 0 on"));
                }
            }
        }
        Ok(Flag {
            name: name.into(),
            ranges: bits,
        })
    };
    members
        .iter()
        .map(|member| flag((&member.name, &member.value)))
        .collect()
}

/// A set of ranges of integers, which is not empty.
pub(super) fn ranges(value: &Value<'_>) -> Result<Vec<Range>, Diagnostic> {
    let values = value.array("an array of ranges such as `[0, 9]`")?;
    if values.is_empty() {
        return value.expected("at least one range");
    }
    values.iter().map(range).collect()
}

fn range(value: &Value<'_>) -> Result<Range, Diagnostic> {
    const WHAT: &str = "a range such as `[0, 9]`";
    let [low, high] = value.array(WHAT)? else {
        return value.expected(WHAT);
    };
    let (low, high) = (low.integer()?, high.integer()?);
    if low > high {
        return value.expected("a range whose first number is not greater than its last");
    }
    Ok(Range {
        low,
        high,
        span: value.span,
    })
}

/// Checks that no value selects two options.
pub(super) fn different_ranges(options: &[Choice]) -> Result<(), Diagnostic> {
    let mut ranges: Vec<_> = options
        .iter()
        .enumerate()
        .flat_map(|(at, option)| option.when.iter().map(move |range| (at, range)))
        .collect();
    ranges.sort_by_key(|(_, range)| (range.low, range.span.start));
    // The range that reaches furthest so far.
    let mut furthest: Option<(usize, &Range)> = None;
    for (at, range) in ranges {
        if let Some((other, before)) = furthest {
            if other != at && range.low <= before.high {
                return Err(Diagnostic::error("two options for the same selector")
                    .at(range.span, format!("{} selects this option...", range.low))
                    .because(before.span, "... and this one"));
            }
            if before.high >= range.high {
                continue;
            }
        }
        furthest = Some((at, range));
    }
    Ok(())
}
