//! The ten parameters of an archive's definition.

use super::structs::SLOTS;
use crate::Value;
use crate::model::{ArchiveKind, ArchiveLink};

/// What lies in a slot of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parameter {
    /// Nothing.
    Unused,
    /// A double.
    Value(Value),
    /// An `unsigned long`.
    Counter(u64),
    /// An `unsigned long` that may be -1.
    Link(ArchiveLink),
}

/// The parameters of an archive, by their places.
pub(super) fn parameters(kind: &ArchiveKind) -> [Parameter; SLOTS] {
    use Parameter::{Counter, Link, Unused, Value};
    let mut slots = [Unused; SLOTS];
    match *kind {
        ArchiveKind::Consolidated { xff, .. } => slots[0] = Value(xff),
        ArchiveKind::HwPredict {
            alpha,
            beta,
            period,
            seasonal,
            ..
        } => {
            slots[1..5].copy_from_slice(&[
                Value(alpha),
                Value(beta),
                Link(seasonal),
                // A double, though it counts rows.
                Value(period),
            ]);
        }
        ArchiveKind::Seasonal {
            gamma,
            smoothing_window,
            smooth_row,
            predictions,
            ..
        } => {
            slots[1..5].copy_from_slice(&[
                Value(gamma),
                Value(smoothing_window),
                Link(predictions),
                Counter(smooth_row),
            ]);
        }
        ArchiveKind::DevPredict { deviations } => slots[3] = Link(deviations),
        ArchiveKind::Failures {
            delta_positive,
            delta_negative,
            window,
            threshold,
            deviations,
        } => {
            slots[1..6].copy_from_slice(&[
                Value(delta_positive),
                Value(delta_negative),
                Link(deviations),
                Counter(window),
                Counter(threshold),
            ]);
        }
    }
    slots
}
