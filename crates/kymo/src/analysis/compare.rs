//! What changed from one measurement to another, and whether it is more than noise.
//!
//! Distributions are compared by their ranks (Mann and Whitney's test, with its correction for ties), numbers of events
//! by their rates, whose noise is taken from how they vary over time. Of many tests some succeed by chance:
//! Benjamini and Hochberg's procedure keeps the share of these among the changes that are reported small.

use std::collections::BTreeMap;

use super::breakdown::Distribution;
use super::numbers::Numbers;

/// Intervals into which a measurement is cut for the noise of rates.
const INTERVALS: usize = 64;

/// Numbers of a group in one of the measurements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// About each number and how often it comes, in order.
    values: Vec<(f64, u64)>,
    count: u64,
    total: f64,
    min: f64,
    max: f64,
}

impl Sample {
    /// Durations, in nanoseconds.
    pub fn of_durations(distribution: &Distribution) -> Self {
        let buckets = distribution.histogram.buckets();
        Self {
            values: buckets
                .map(|bucket| {
                    (
                        (bucket.from + (bucket.to - bucket.from) / 2) as f64,
                        bucket.count,
                    )
                })
                .collect(),
            count: distribution.times.count(),
            total: distribution.times.mean().unwrap_or_default()
                * distribution.times.count() as f64,
            min: distribution.times.min() as f64,
            max: distribution.times.max() as f64,
        }
    }

    /// Numbers.
    pub fn of_numbers(numbers: &Numbers) -> Self {
        Self {
            values: numbers.buckets(),
            count: numbers.count(),
            total: numbers.mean().unwrap_or_default() * numbers.count() as f64,
            min: numbers.min().unwrap_or_default(),
            max: numbers.max().unwrap_or_default(),
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Their mean.
    pub fn mean(&self) -> f64 {
        self.total / self.count.max(1) as f64
    }

    /// The least and the greatest.
    pub fn extremes(&self) -> (f64, f64) {
        (self.min, self.max)
    }

    /// The number that `thousandths` of all do not exceed, to within 0.4 %.
    pub fn percentile(&self, thousandths: u32) -> f64 {
        let share = u128::from(self.count) * u128::from(thousandths);
        let place = (share.div_ceil(1000) as u64).max(1);
        let mut before = 0;
        let found = self.values.iter().find(|(_, count)| {
            before += count;
            before >= place
        });
        found.map_or(0.0, |(value, _)| value.clamp(self.min, self.max))
    }
}

/// What a test says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// How probable so large a difference is if nothing changed.
    pub p: f64,
    /// How much more often a number of the second is larger than one of the first than the other way round: from -1
    /// to 1 (Cliff's delta); of rates, the change in standard deviations.
    pub effect: f64,
}

/// Compares the numbers of the second with those of the first by rank; `None` if there are too few to decide.
pub fn ranks(a: &Sample, b: &Sample) -> Option<Verdict> {
    const FEWEST: u64 = 8;
    let (n, m) = (a.count as f64, b.count as f64);
    if a.count < FEWEST || b.count < FEWEST {
        return None;
    }
    let (mut left, mut right) = (a.values.iter().peekable(), b.values.iter().peekable());
    let (mut before, mut larger, mut ties) = (0.0, 0.0, 0.0);
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(a), Some(b)) => a.0.min(b.0),
            (Some(one), None) | (None, Some(one)) => one.0,
            (None, None) => break,
        };
        let of_a = left
            .next_if(|value| value.0 == next)
            .map_or(0.0, |value| value.1 as f64);
        let of_b = right
            .next_if(|value| value.0 == next)
            .map_or(0.0, |value| value.1 as f64);
        // Of each of the second, those of the first that are less, and half of the equal ones.
        larger += of_b * (before + of_a / 2.0);
        before += of_a;
        let same = of_a + of_b;
        ties += same * same * same - same;
    }
    let all = n + m;
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    let z = match variance > 0.0 {
        true => (larger - n * m / 2.0) / variance.sqrt(),
        false => 0.0,
    };
    Some(Verdict {
        p: two_sided(z),
        effect: 2.0 * larger / (n * m) - 1.0,
    })
}

/// Numbers of events over time, in a bounded number of intervals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rate {
    first: i64,
    /// Length of an interval, in nanoseconds.
    width: i64,
    counts: Vec<u32>,
    total: u64,
}

impl Rate {
    /// Adds an event at a time.
    pub fn add(&mut self, time: i64) {
        if self.counts.is_empty() {
            (self.first, self.width) = (time, 1_000);
        }
        let at =
            |first: i64, width: i64| usize::try_from(time.saturating_sub(first).max(0) / width);
        let mut place = at(self.first, self.width).unwrap_or(usize::MAX);
        while place >= INTERVALS {
            // Two become one.
            let pairs = self.counts.chunks(2);
            self.counts = pairs
                .map(|pair| pair.iter().copied().fold(0, u32::saturating_add))
                .collect();
            self.width = self.width.saturating_mul(2);
            place = at(self.first, self.width).unwrap_or(usize::MAX);
        }
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] = self.counts[place].saturating_add(1);
        self.total += 1;
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// How much more their number varies from interval to interval than that of independent events does; at least 1.
    fn dispersion(&self, begin: i64, end: i64) -> f64 {
        let width = self.width.max(1);
        // The intervals of the whole measurement, and not only from this group's first event on.
        let before = (self.first.saturating_sub(begin).max(0) / width) as f64;
        let all = (end.saturating_sub(begin).max(0) / width) as f64;
        let n = all.max(self.counts.len() as f64).max(before + 1.0);
        if n < 8.0 {
            return 1.0;
        }
        let mean = self.total as f64 / n;
        let squares: f64 = self
            .counts
            .iter()
            .map(|&count| (f64::from(count) - mean).powi(2))
            .sum();
        let squares = squares + (n - self.counts.len() as f64) * mean * mean;
        (squares / (n - 1.0) / mean).max(1.0)
    }
}

/// The rates of two measurements, each with its first and last time.
pub fn rates(a: (&Rate, i64, i64), b: (&Rate, i64, i64)) -> Option<Verdict> {
    let rate_and_variance = |(rate, begin, end): (&Rate, i64, i64)| {
        let seconds = end.saturating_sub(begin).max(0) as f64 / 1e9;
        let count = rate.total as f64;
        let per_second = count / seconds;
        let variance = rate.dispersion(begin, end) * count.max(1.0) / (seconds * seconds);
        (seconds > 0.0).then_some((per_second, variance))
    };
    let ((a, a_variance), (b, b_variance)) = (rate_and_variance(a)?, rate_and_variance(b)?);
    let z = (b - a) / (a_variance + b_variance).sqrt();
    Some(Verdict {
        p: two_sided(z),
        effect: z,
    })
}

/// How probable it is that a normal number is as far from 0.
fn two_sided(z: f64) -> f64 {
    complement(z.abs() / std::f64::consts::SQRT_2)
}

/// The complementary error function of a number that is not negative, by its continued fraction, or near 0 by its series.
fn complement(x: f64) -> f64 {
    let scale = 2.0 / std::f64::consts::PI.sqrt();
    if x < 2.0 {
        let (mut term, mut sum) = (x, x);
        for n in 1..60 {
            let n = f64::from(n);
            term *= -x * x / n;
            sum += term / (2.0 * n + 1.0);
        }
        return (1.0 - scale * sum).max(0.0);
    }
    let mut fraction = x;
    for n in (1..=60).rev() {
        fraction = x + f64::from(n) / 2.0 / fraction;
    }
    (-x * x).exp() * scale / 2.0 / fraction
}

/// Of many tests, how large a share of chance there is among those that are as sure as each (Benjamini and Hochberg's
/// q values).
pub fn false_shares(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut q = vec![1.0; p.len()];
    let mut least: f64 = 1.0;
    for (rank, &at) in order.iter().enumerate().rev() {
        least = least.min(p[at] * p.len() as f64 / (rank as f64 + 1.0));
        q[at] = least;
    }
    q
}

/// What is compared of a group.
#[derive(Clone, Debug, PartialEq)]
pub enum Measured {
    /// Numbers of events.
    Events(Rate),
    /// Durations, or values of a field.
    Numbers(Sample),
}

/// One of two measurements.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// The first and the last time, in nanoseconds.
    pub span: Option<(i64, i64)>,
    /// By kind (`events`, `latency`, `self`, `values.FIELD`) and group.
    pub groups: BTreeMap<(String, String), Measured>,
}

impl Side {
    /// How long it is, in seconds.
    pub fn seconds(&self) -> f64 {
        self.span
            .map_or(0.0, |(first, last)| last.abs_diff(first) as f64 / 1e9)
    }
}

/// What became of a group.
#[derive(Clone, Debug)]
pub struct Change {
    /// `events`, `latency`, `self` or `values.FIELD`.
    pub kind: String,
    /// The group.
    pub group: String,
    /// What it was; `None` if it is new.
    pub a: Option<Measured>,
    /// What it is; `None` if it is gone.
    pub b: Option<Measured>,
    /// What the test says, where there is one.
    pub verdict: Option<Verdict>,
    /// The share of chance among the changes that are as sure.
    pub q: f64,
    /// Whether it is reported.
    pub is_change: bool,
    /// How much it matters: the change of events or of time a second, of values that of their mean, relative.
    pub weight: f64,
}

/// Compares two measurements. Reported is what is only in one of them, and what has changed by more than noise: with a
/// share `alpha` of chance at most, and by `least` (a share of the median, or of the rate) at least. The changes that
/// matter most come first.
pub fn compare(a: &Side, b: &Side, alpha: f64, least: f64) -> Vec<Change> {
    let keys: std::collections::BTreeSet<_> = a.groups.keys().chain(b.groups.keys()).collect();
    let mut changes: Vec<Change> = keys.into_iter().map(|key| change(key, a, b)).collect();
    let tested: Vec<usize> = (0..changes.len())
        .filter(|&at| changes[at].verdict.is_some())
        .collect();
    let p: Vec<f64> = tested
        .iter()
        .filter_map(|&at| Some(changes[at].verdict?.p))
        .collect();
    for (&at, q) in tested.iter().zip(false_shares(&p)) {
        let change = &mut changes[at];
        change.q = q;
        change.is_change = q <= alpha
            && change
                .relative(500)
                .is_none_or(|share| share.abs() >= least);
    }
    changes.sort_by(|a, b| {
        let rank = |change: &Change| (change.kind.clone(), !change.is_change);
        let heaviest = || b.weight.abs().total_cmp(&a.weight.abs());
        rank(a)
            .cmp(&rank(b))
            .then_with(heaviest)
            .then_with(|| a.group.cmp(&b.group))
    });
    changes
}

fn change(key: &(String, String), a: &Side, b: &Side) -> Change {
    let (first, second) = (a.groups.get(key), b.groups.get(key));
    let (seconds_a, seconds_b) = (a.seconds().max(1e-9), b.seconds().max(1e-9));
    let per_second = |measured: Option<&Measured>, seconds: f64| match measured {
        None => 0.0,
        Some(Measured::Events(rate)) => rate.total as f64 / seconds,
        Some(Measured::Numbers(sample)) => sample.total / seconds,
    };
    let verdict = match (first, second) {
        (Some(Measured::Numbers(a)), Some(Measured::Numbers(b))) => ranks(a, b),
        (Some(Measured::Events(of_a)), Some(Measured::Events(of_b))) => {
            let (span_a, span_b) = (a.span.unwrap_or_default(), b.span.unwrap_or_default());
            rates((of_a, span_a.0, span_a.1), (of_b, span_b.0, span_b.1))
        }
        _ => None,
    };
    let weight = match (key.0.starts_with("values."), first, second) {
        (true, Some(Measured::Numbers(a)), Some(Measured::Numbers(b))) => {
            (b.mean() - a.mean()) / a.mean().abs().max(f64::MIN_POSITIVE)
        }
        _ => per_second(second, seconds_b) - per_second(first, seconds_a),
    };
    Change {
        kind: key.0.clone(),
        group: key.1.clone(),
        a: first.cloned(),
        b: second.cloned(),
        verdict,
        q: 1.0,
        is_change: first.is_none() || second.is_none(),
        weight,
    }
}

impl Change {
    /// The numbers before and after.
    pub fn samples(&self) -> Option<(&Sample, &Sample)> {
        match (&self.a, &self.b) {
            (Some(Measured::Numbers(a)), Some(Measured::Numbers(b))) => Some((a, b)),
            _ => None,
        }
    }

    /// The relative change of a percentile; `None` if there is none.
    pub fn relative(&self, thousandths: u32) -> Option<f64> {
        let (a, b) = self.samples()?;
        let (a, b) = (a.percentile(thousandths), b.percentile(thousandths));
        // Where the median stays, what else may have changed counts.
        (a != 0.0 && a != b).then(|| b / a - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut x = self.0;
            x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            let (a, b) = (self.next().max(1e-12), self.next());
            (-2.0 * a.ln()).sqrt() * (2.0 * std::f64::consts::PI * b).cos()
        }
    }

    /// 200 groups, of which every tenth becomes 5 % slower or faster, of latencies that vary by 30 %.
    fn sides(seed: u64, count: usize) -> (Side, Side) {
        let mut random = Random(seed);
        let mut side = |changed: bool| {
            let groups = (0..200).map(|group| {
                let factor = match (changed, group % 20) {
                    (true, 0) => 1.05,
                    (true, 10) => 1.0 / 1.05,
                    _ => 1.0,
                };
                let mut durations = Distribution::default();
                for _ in 0..count {
                    let nanos =
                        1000.0 * f64::from(group + 1) * factor * (0.3 * random.normal()).exp();
                    durations.add(nanos as u64, 0);
                }
                let key = ("latency".to_string(), format!("{group:03}"));
                (key, Measured::Numbers(Sample::of_durations(&durations)))
            });
            Side {
                span: Some((0, 1_000_000_000)),
                groups: groups.collect(),
            }
        };
        (side(false), side(true))
    }

    #[test]
    fn planted_changes_are_found_and_few_others() {
        for seed in 1..=2 {
            let (a, b) = sides(seed, 4000);
            let changes = compare(&a, &b, 0.01, 0.0);
            let found = changes.iter().filter(|change| change.is_change);
            let found: Vec<u32> = found.map(|change| change.group.parse().unwrap()).collect();
            let planted = found.iter().filter(|group| *group % 10 == 0).count();
            assert_eq!(planted, 20, "seed {seed}");
            let others = found.len() - planted;
            assert!(
                others * 20 <= found.len(),
                "seed {seed}: {others} of {}",
                found.len()
            );
            for change in changes.iter().filter(|change| change.is_change) {
                let share = change.relative(500).unwrap().abs();
                assert!((0.02..0.08).contains(&share), "{} {share}", change.group);
            }
        }
    }

    #[test]
    fn nothing_is_reported_of_what_is_the_same() {
        let (a, _) = sides(7, 300);
        let (b, _) = sides(8, 300);
        let changes = compare(&a, &b, 0.01, 0.0);
        assert_eq!(changes.iter().filter(|change| change.is_change).count(), 0);
    }

    #[test]
    fn ranks_are_those_of_the_definition() {
        let sample = |values: &[u64]| {
            let mut all = Distribution::default();
            values.iter().for_each(|&value| all.add(value, 0));
            Sample::of_durations(&all)
        };
        let (a, b) = ([1, 2, 3, 4, 5, 6, 7, 8], [5, 6, 7, 8, 9, 10, 11, 12]);
        let verdict = ranks(&sample(&a), &sample(&b)).unwrap();
        let mut sum = 0;
        for a in a {
            for b in b {
                sum += i32::from(b > a) - i32::from(b < a);
            }
        }
        assert!((verdict.effect - f64::from(sum) / 64.0).abs() < 1e-12);
        // U is 56 of 64, its mean 32, and its variance 64 / 12 * (17 - 24 / 240).
        assert!((verdict.p - 0.011_473_060_3).abs() < 1e-9, "{}", verdict.p);
        assert_eq!(ranks(&sample(&a[..4]), &sample(&b)), None, "too few");
        let same = ranks(&sample(&[5; 20]), &sample(&[5; 20])).unwrap();
        assert_eq!((same.effect, same.p), (0.0, 1.0));
    }

    #[test]
    fn probabilities_are_those_of_tables() {
        for (z, p) in [
            (0.0, 1.0),
            (1.0, 0.317_310_507_862_914),
            (1.959_963_984_540_054, 0.05),
            (3.290_526_731_491_931, 0.001),
            (6.0, 1.973_175_290_075_4e-9),
            (10.0, 1.523_970_604_832_1e-23),
        ] {
            let found = two_sided(z);
            assert!((found - p).abs() <= p * 1e-9, "{z}: {found} {p}");
        }
        assert_eq!(two_sided(f64::INFINITY), 0.0);
        let q = false_shares(&[0.01, 0.5, 0.02]);
        assert!((q[0] - 0.03).abs() < 1e-12 && (q[2] - 0.03).abs() < 1e-12 && q[1] == 0.5);
    }

    #[test]
    fn bursts_are_noise_and_a_doubled_rate_is_not() {
        let rate = |per_burst: u64, bursts: i64| {
            let mut rate = Rate::default();
            for burst in 0..bursts {
                for event in 0..per_burst as i64 {
                    rate.add(burst * (1_000_000_000 / bursts) + event);
                }
            }
            rate
        };
        let probability = |a: &Rate, b: &Rate| {
            rates((a, 0, 1_000_000_000), (b, 0, 1_000_000_000))
                .unwrap()
                .p
        };
        // One burst of 300 events more.
        assert!(probability(&rate(300, 5), &rate(300, 6)) > 0.1);
        assert!(probability(&rate(1, 1000), &rate(1, 2000)) < 1e-9);
        assert!(probability(&rate(1, 1000), &rate(1, 1020)) > 0.1);
        let mut long = Rate::default();
        [i64::MIN, 0, i64::MAX]
            .into_iter()
            .for_each(|time| long.add(time));
        assert_eq!(long.count(), 3);
    }
}
