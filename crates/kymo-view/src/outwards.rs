//! In which order a search looks at time: what is in sight first, then what is further and further away.

/// About how many bytes of recordings the first part has.
const FIRST_BYTES: u64 = 2 << 20;

/// Later parts are longer: each is at least the whole time divided by this.
const PARTS: i128 = 8;

/// Cuts all time into parts that do not overlap, both ends of each included. The first one begins where the view does,
/// the ones behind it go through the view, and the others lie further away on both sides in turn.
///
/// A part is handed over as soon as it has been read, so that the first hits are there at once; each costs reading the
/// packets at its ends twice, so that they become longer.
pub(crate) fn outwards(all: (i64, i64), bytes: u64, view: Option<(i64, i64)>) -> Vec<(i64, i64)> {
    if bytes <= FIRST_BYTES || all.0 >= all.1 {
        return vec![(i64::MIN, i64::MAX)];
    }
    let (begin, end) = (i128::from(all.0), i128::from(all.1) + 1);
    let (from, to) = match view {
        Some((from, to)) if to >= all.0 && from <= all.1 => {
            (i128::from(from.max(all.0)), i128::from(to.min(all.1)) + 1)
        }
        _ => (begin, end),
    };
    let first = ((end - begin) * i128::from(FIRST_BYTES) / i128::from(bytes)).max(1);
    let most = ((end - begin) / PARTS).max(first);
    let mut parts: Vec<(i128, i128)> = Vec::new();
    let (mut left, mut right, mut length) = (from, from, first);
    while right < end || left > begin {
        if right < end {
            // Within the view a part ends with it at the latest.
            let limit = if right < to { to } else { end };
            let next = (right + length).min(limit);
            parts.push((right, next));
            right = next;
        }
        if right >= to && left > begin {
            let next = (left - length).max(begin);
            parts.push((next, left));
            left = next;
        }
        length = (length * 2).min(most);
    }
    let all = begin..end;
    let part = |(from, to): (i128, i128)| {
        // What is known of the range may be an estimate: nothing is left out beyond it.
        let from = if from <= all.start {
            i64::MIN
        } else {
            from as i64
        };
        let to = if to >= all.end {
            i64::MAX
        } else {
            (to - 1) as i64
        };
        (from, to)
    };
    parts.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_view_comes_first() {
        let parts = outwards((0, 9_999), 100 * FIRST_BYTES, Some((4_000, 4_299)));
        assert_eq!(parts[..2], [(4_000, 4_099), (4_100, 4_299)]);
        assert_eq!(parts[2], (3_800, 3_999), "then what lies beside it");
        let parts = outwards((0, 9_999), 100 * FIRST_BYTES, None);
        assert_eq!(
            parts[0],
            (i64::MIN, 99),
            "without a view from the beginning"
        );
        assert_eq!(outwards((0, 9_999), 10, None), [(i64::MIN, i64::MAX)]);
    }

    proptest! {
        #[test]
        fn parts_are_all_of_time_once(
            all in any::<(i64, i64)>(), view in any::<Option<(i64, i64)>>(), bytes in any::<u64>(),
        ) {
            let view = view.map(|(one, other)| (one.min(other), one.max(other)));
            let mut parts = outwards((all.0.min(all.1), all.0.max(all.1)), bytes, view);
            // Few, however large the recordings are.
            prop_assert!(parts.len() < 100, "{}", parts.len());
            parts.sort_unstable();
            prop_assert_eq!(parts[0].0, i64::MIN);
            prop_assert_eq!(parts[parts.len() - 1].1, i64::MAX);
            prop_assert!(parts.iter().all(|(from, to)| from <= to));
            prop_assert!(parts.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0));
        }
    }
}
