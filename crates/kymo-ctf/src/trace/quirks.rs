//! What certain versions of tracers are known to get wrong in the times of their packets
//! (babeltrace2 knows the same ones).

use crate::class::{EnvironmentValue, TraceClass};

/// The faults that the tracer of a trace is known for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Quirks {
    /// A crashed session leaves packets open: their time at the end is 0.
    pub(super) zero_end: bool,
    /// Events may be later than the end of their packet.
    pub(super) event_after_packet: bool,
    /// Events may be earlier than the beginning of their packet.
    pub(super) event_before_packet: bool,
}

impl Quirks {
    /// What the environment of a trace says about its tracer. Without a name and a major version
    /// there is nothing to know; a minor or patch version that is not there counts as 0.
    pub(super) fn of(class: &TraceClass) -> Self {
        let number = |name| match class.environment(name) {
            Some(&EnvironmentValue::Integer(number)) => Some(number),
            _ => None,
        };
        let (Some(EnvironmentValue::Text(name)), Some(major)) =
            (class.environment("tracer_name"), number("tracer_major"))
        else {
            return Self::default();
        };
        let minor = number("tracer_minor");
        // LTTng's kernel tracer calls it a level.
        let patch = minor.and(number("tracer_patch").or_else(|| number("tracer_patchlevel")));
        let version = (major, minor.unwrap_or(0), patch.unwrap_or(0));
        match name.as_str() {
            "lttng-ust" => Self {
                zero_end: true,
                event_after_packet: version < (2, 11, 0),
                ..Self::default()
            },
            "lttng-modules" => {
                // Versions 2.9 and 2.10 got the correction later.
                let corrected = match version {
                    (2, 9, patch) => patch >= 13,
                    (2, 10, patch) => patch >= 10,
                    version => version >= (2, 11, 0),
                };
                Self {
                    zero_end: true,
                    event_after_packet: !corrected,
                    ..Self::default()
                }
            }
            "barectf" => Self {
                event_before_packet: version < (2, 3, 1),
                ..Self::default()
            },
            _ => Self::default(),
        }
    }
}
