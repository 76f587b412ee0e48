//! Smoothing of seasons: each coefficient becomes the mean of those around it.

use super::plan::{Plan, Role};
use super::{Change, UpdateError};
use crate::Value;
use crate::model::Scratch;

/// The part of a season that is smoothed over if the file does not specify one.
const WINDOW: f64 = 0.05;

/// Smooths all seasons of a file.
pub(super) fn smooth(plan: &Plan, change: &mut impl Change) -> Result<(), UpdateError> {
    for (index, ring) in plan.archives.iter().enumerate() {
        let Role::Season {
            deviation,
            window,
            links,
            ..
        } = ring.role
        else {
            continue;
        };
        let part = if plan.reports_window { window } else { WINDOW };
        let around = (part / 2.0 * ring.rows as f64).floor();
        // No wider than from one end of the season to the other, whatever the file says.
        if !(around >= 1.0 && around <= ring.rows as f64) {
            continue;
        }
        let mut values = change.values(index)?;
        if values.iter().any(|value| value.is_unknown()) {
            continue;
        }
        let sources = plan.sources.len();
        for source in 0..sources {
            let column: Vec<f64> = values
                .iter()
                .skip(source)
                .step_by(sources)
                .map(|value| value.to_f64())
                .collect();
            let (mut means, base) = moving_means(&column, around as usize);
            if !deviation {
                let multiplicative = links.adaption.multiplicative;
                for mean in &mut means {
                    *mean = match multiplicative {
                        true if base <= 0.0 => f64::NAN,
                        true => *mean / base,
                        false => *mean - base,
                    };
                }
                // Added in both cases, as in all programs.
                let predictions = &mut change.state().archives[links.predictions];
                let scratch = &mut predictions.scratch[source];
                let intercept = scratch.value(Scratch::INTERCEPT).to_f64() + base;
                scratch.set_value(Scratch::INTERCEPT, Value::from(intercept));
            }
            let column = values.iter_mut().skip(source).step_by(sources);
            for (value, mean) in column.zip(means) {
                *value = Value::from(mean);
            }
        }
        change.rewrite(index, values)?;
    }
    Ok(())
}

/// The mean of each value of a ring with `around` values on either side, and the mean of these. There are
/// at least `around` values.
fn moving_means(values: &[f64], around: usize) -> (Vec<f64>, f64) {
    let rows = values.len();
    let window = (2 * around + 1) as f64;
    let at = |index: usize| values[index % rows];
    let mut sum = 0.0;
    for index in 0..2 * around {
        sum += at(index + rows - around);
    }
    let mut means = Vec::with_capacity(rows);
    let mut base = 0.0;
    for index in around..rows + around {
        sum += at(index);
        let mean = sum / window;
        means.push(mean);
        base += mean;
        sum -= at(index + rows - 2 * around);
    }
    (means, base / rows as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_go_round_the_season() {
        let (means, base) = moving_means(&[0.0, 3.0, 6.0, 9.0], 1);
        assert_eq!(means, [4.0, 3.0, 6.0, 5.0]);
        assert_eq!(base, 4.5);
    }
}
