//! How often durations of which length come: counts in buckets that grow with the length.
//!
//! Up to 255 ns every length has its own bucket; above, each power of two is cut into 128 equal
//! ones. A bucket is thus narrower than 1/128 of the lengths in it, and what is reported of one of
//! them by its middle is less than 0.4 % wrong. There are 7,424 buckets for all lengths of 64
//! bits, whatever comes, and memory for those powers of two that durations have. A few durations
//! are kept as they are: there may be a histogram for each of many groups.

/// Buckets of a power of two, as a power of two.
const FINE: u32 = 7;
/// Buckets of a power of two.
const OCTAVE: usize = 1 << FINE;
/// Powers of two.
const OCTAVES: usize = (64 - FINE) as usize + 1;
/// Number of buckets.
#[cfg(test)]
const BUCKETS: usize = OCTAVES << FINE;
/// Maximum number of durations that are kept as they are.
const FEW: usize = 32;

/// Counts of durations.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    counts: Counts,
    count: u64,
    min: u64,
    max: u64,
}

/// How durations are kept.
#[derive(Clone, Debug, PartialEq)]
enum Counts {
    /// As they came.
    Few(Vec<u64>),
    /// By powers of two.
    Many(Vec<Option<Box<[u64; OCTAVE]>>>),
}

/// Durations of about one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The shortest of them, in nanoseconds.
    pub from: u64,
    /// The longest of them, in nanoseconds.
    pub to: u64,
    /// How many there are.
    pub count: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: Counts::Few(Vec::new()),
            count: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

/// The bucket of a length.
#[inline]
fn bucket_of(nanos: u64) -> usize {
    let shift = (63 - FINE).saturating_sub(nanos.leading_zeros());
    ((shift as usize) << FINE) + (nanos >> shift) as usize
}

/// The shortest and the longest length of a bucket.
fn bounds(bucket: usize) -> (u64, u64) {
    let shift = (bucket >> FINE).saturating_sub(1) as u32;
    let leading = (bucket - ((shift as usize) << FINE)) as u64;
    let from = leading << shift;
    (from, from + ((1 << shift) - 1))
}

impl Histogram {
    /// Counts a duration in nanoseconds.
    #[inline]
    pub fn add(&mut self, nanos: u64) {
        self.add_many(nanos, 1);
        self.count += 1;
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
    }

    #[inline]
    fn add_many(&mut self, nanos: u64, times: u64) {
        let bucket = bucket_of(nanos);
        if let Counts::Many(octaves) = &mut self.counts
            && let Some(octave) = &mut octaves[bucket >> FINE]
        {
            octave[bucket % OCTAVE] += times;
            return;
        }
        self.add_new(nanos, times);
    }

    /// Adds durations of a length for which no memory is allocated yet.
    #[cold]
    fn add_new(&mut self, nanos: u64, times: u64) {
        let bucket = bucket_of(nanos);
        match &mut self.counts {
            Counts::Few(few) if few.len() as u64 + times <= FEW as u64 => {
                few.extend(std::iter::repeat_n(nanos, times as usize));
            }
            Counts::Few(few) => {
                let few = std::mem::take(few);
                self.counts = Counts::Many(vec![None; OCTAVES]);
                for known in few {
                    self.add_many(known, 1);
                }
                self.add_many(nanos, times);
            }
            Counts::Many(octaves) => {
                let octave = octaves[bucket >> FINE].get_or_insert_with(|| Box::new([0; OCTAVE]));
                octave[bucket % OCTAVE] += times;
            }
        }
    }

    /// Adds the durations of another one.
    pub fn merge(&mut self, other: &Self) {
        match &other.counts {
            Counts::Few(few) => few.iter().for_each(|&nanos| self.add_many(nanos, 1)),
            Counts::Many(_) => {
                for bucket in other.buckets() {
                    self.add_many(bucket.from, bucket.count);
                }
            }
        }
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many durations there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The buckets that hold something, shortest durations first.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        let mut buckets: Vec<Bucket> = Vec::new();
        match &self.counts {
            Counts::Few(few) => {
                let mut few: Vec<usize> = few.iter().copied().map(bucket_of).collect();
                few.sort_unstable();
                for same in few.chunk_by(|a, b| a == b) {
                    let (from, to) = bounds(same[0]);
                    let count = same.len() as u64;
                    buckets.push(Bucket { from, to, count });
                }
            }
            Counts::Many(octaves) => {
                for (number, octave) in octaves.iter().enumerate() {
                    let counts = octave.iter().flat_map(|octave| octave.iter().enumerate());
                    buckets.extend(counts.filter(|&(_, &count)| count > 0).map(|(at, &count)| {
                        let (from, to) = bounds((number << FINE) + at);
                        Bucket { from, to, count }
                    }));
                }
            }
        }
        buckets.into_iter()
    }

    /// The length that `thousandths` of all durations do not exceed, to within 0.4 %; `None`
    /// if there are none. It is that of the duration whose rank among all of them is the
    /// first that is not before that share of them.
    pub fn percentile(&self, thousandths: u32) -> Option<u64> {
        let share = u128::from(self.count) * u128::from(thousandths);
        let place = (share.div_ceil(1000) as u64).max(1);
        if let Counts::Few(few) = &self.counts {
            let mut few = few.clone();
            few.sort_unstable();
            return few.get(place as usize - 1).copied();
        }
        let mut before = 0;
        let bucket = self.buckets().find(|bucket| {
            before += bucket.count;
            before >= place
        })?;
        let middle = bucket.from + (bucket.to - bucket.from) / 2;
        Some(middle.clamp(self.min, self.max))
    }

    /// A few ranges of round lengths that hold all durations, for people: on a logarithmic
    /// scale of 1, 2, 5, 10 where they are of very different length, and on a linear one
    /// otherwise. A bucket belongs to the range that its shortest length is in.
    pub fn ranges(&self) -> Vec<Bucket> {
        if self.count == 0 {
            return Vec::new();
        }
        let mut starts = match self.max / self.min.max(1) {
            0..8 => linear(self.min, self.max),
            _ => logarithmic(self.min, self.max),
        };
        starts.dedup();
        let ends = starts.iter().skip(1).map(|&next| next - 1);
        let mut ranges: Vec<Bucket> = starts
            .iter()
            .zip(ends.chain([u64::MAX]))
            .map(|(&from, to)| Bucket { from, to, count: 0 })
            .collect();
        for bucket in self.buckets() {
            let after = ranges.partition_point(|range| range.from <= bucket.from);
            ranges[after.saturating_sub(1)].count += bucket.count;
        }
        ranges
    }
}

/// Where ranges of a round width begin that go from `min` to `max`.
fn linear(min: u64, max: u64) -> Vec<u64> {
    const MOST: u64 = 16;
    let step = round_steps()
        .find(|step| (max - min) / step < MOST)
        .unwrap_or(u64::MAX);
    let mut starts = vec![min / step * step];
    while let Some(next) = starts.last().and_then(|last| last.checked_add(step))
        && next <= max
    {
        starts.push(next);
    }
    starts
}

/// Where ranges begin that grow with their lengths from `min` to `max`.
fn logarithmic(min: u64, max: u64) -> Vec<u64> {
    let below = [0].into_iter().chain(round_steps());
    let first = below.take_while(|&start| start <= min).last();
    let starts = [0].into_iter().chain(round_steps());
    starts
        .filter(|&start| Some(start) >= first && start <= max)
        .collect()
}

/// 1, 2, 5, 10, 20, 50 and so on, as far as 64 bits go.
fn round_steps() -> impl Iterator<Item = u64> {
    let powers = std::iter::successors(Some(1u64), |power| power.checked_mul(10));
    powers.flat_map(|power| {
        [1, 2, 5]
            .into_iter()
            .filter_map(move |digit| power.checked_mul(digit))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gap() {
        let mut next = Some(0u64);
        for bucket in 0..BUCKETS {
            let (from, to) = bounds(bucket);
            assert_eq!(Some(from), next, "bucket {bucket}");
            assert_eq!((bucket_of(from), bucket_of(to)), (bucket, bucket));
            assert!((to - from) as f64 <= from as f64 / 128.0);
            next = to.checked_add(1);
        }
        assert_eq!(next, None, "the last one ends with the largest number");
    }

    fn lengths() -> impl Strategy<Value = Vec<u64>> {
        let length = (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift);
        prop::collection::vec(length, 1..300)
    }

    proptest! {
        #[test]
        fn percentiles_are_near_those_of_the_sorted_list(mut values in lengths(), p in 0u32..=1000) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.add(value));
            values.sort_unstable();
            let place = (values.len() * p as usize).div_ceil(1000).max(1);
            let exact = values[place - 1];
            let found = histogram.percentile(p).unwrap();
            prop_assert!(exact.abs_diff(found) as f64 <= exact as f64 * 0.004);
            prop_assert_eq!(histogram.percentile(1000) <= values.last().copied(), true);
        }

        #[test]
        fn merged_ones_are_as_if_all_were_added_to_one(a in lengths(), b in lengths()) {
            let histogram_of = |values: &[u64]| {
                let mut histogram = Histogram::default();
                values.iter().for_each(|&value| histogram.add(value));
                histogram
            };
            let mut merged = histogram_of(&a);
            merged.merge(&histogram_of(&b));
            let all = histogram_of(&[a, b].concat());
            prop_assert!(merged.buckets().eq(all.buckets()));
            prop_assert_eq!((merged.count, merged.min, merged.max), (all.count, all.min, all.max));
        }

        #[test]
        fn ranges_hold_every_duration_once(values in lengths()) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.add(value));
            let ranges = histogram.ranges();
            prop_assert!(ranges.len() <= 64);
            prop_assert!(ranges.windows(2).all(|pair| pair[0].to + 1 == pair[1].from));
            prop_assert_eq!(ranges.iter().map(|range| range.count).sum::<u64>(), values.len() as u64);
            for range in &ranges {
                // Buckets on the border may be a hundredth off.
                let (low, high) = (range.from as f64 * 0.99, range.to as f64 * 1.01);
                let inside = values.iter().filter(|&&v| low <= v as f64 && v as f64 <= high);
                prop_assert!(range.count <= inside.count() as u64);
            }
        }
    }

    #[test]
    fn scales_suit_the_spread() {
        let starts_of = |values: &[u64]| {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.add(value));
            let starts: Vec<u64> = histogram.ranges().iter().map(|range| range.from).collect();
            starts
        };
        assert!(starts_of(&[]).is_empty());
        assert_eq!(starts_of(&[0]), [0]);
        assert_eq!(starts_of(&[700]), [700]);
        assert_eq!(starts_of(&[0, 9]), [0, 1, 2, 5]);
        assert_eq!(
            starts_of(&[1000, 1040]),
            [1000, 1005, 1010, 1015, 1020, 1025, 1030, 1035, 1040]
        );
        assert_eq!(starts_of(&[30, 700]), [20, 50, 100, 200, 500]);
        assert_eq!(starts_of(&[u64::MAX, 1]).len(), 58);
    }
}
