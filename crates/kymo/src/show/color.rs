//! Colours of a terminal.

/// The escape sequences of babeltrace2's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    pub(super) reset: &'static str,
    /// Keys of the header, and scopes.
    pub(super) key: &'static str,
    /// Names of fields.
    pub(super) field: &'static str,
    /// Values: numbers, text, labels.
    pub(super) value: &'static str,
    /// What has no name or label.
    pub(super) unknown: &'static str,
    /// Names of events.
    pub(super) event: &'static str,
    /// Times of events.
    pub(super) time: &'static str,
    /// Warnings, and before that the word itself.
    pub(super) warning: &'static str,
    pub(super) warning_word: &'static str,
}

impl Palette {
    /// No colours.
    pub const NONE: Self = Self {
        reset: "",
        key: "",
        field: "",
        value: "",
        unknown: "",
        event: "",
        time: "",
        warning: "",
        warning_word: "",
    };

    /// Colours for a terminal on which bold text is bright, as on most, or which has
    /// bright colours of their own.
    pub const fn new(bold_is_bright: bool) -> Self {
        let (unknown, event, time) = if bold_is_bright {
            (
                "\x1b[1m\x1b[1m\x1b[31m",
                "\x1b[1m\x1b[1m\x1b[35m",
                "\x1b[1m\x1b[1m\x1b[33m",
            )
        } else {
            ("\x1b[1m\x1b[91m", "\x1b[1m\x1b[95m", "\x1b[1m\x1b[93m")
        };
        Self {
            reset: "\x1b[0m",
            key: "\x1b[1m",
            field: "\x1b[36m",
            value: "\x1b[1m",
            unknown,
            event,
            time,
            warning: "\x1b[33m",
            warning_word: "\x1b[33m\x1b[1m",
        }
    }
}
