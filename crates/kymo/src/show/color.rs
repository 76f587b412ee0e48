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
    /// Times of events; objects, where everything is shown of them.
    pub(super) time: &'static str,
    /// Those of details: elsewhere, the sequences above are copied often.
    pub(super) details: &'static DetailsColors,
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
        details: &DetailsColors::NONE,
        warning: "",
        warning_word: "",
    };

    /// Colours for a terminal on which bold text is bright, as on most, or which has
    /// bright colours of their own.
    pub const fn new(bold_is_bright: bool) -> Self {
        let (unknown, event, time, details) = if bold_is_bright {
            (
                "\x1b[1m\x1b[1m\x1b[31m",
                "\x1b[1m\x1b[1m\x1b[35m",
                "\x1b[1m\x1b[1m\x1b[33m",
                &DetailsColors::BOLD,
            )
        } else {
            (
                "\x1b[1m\x1b[91m",
                "\x1b[1m\x1b[95m",
                "\x1b[1m\x1b[93m",
                &DetailsColors::BRIGHT,
            )
        };
        Self {
            reset: "\x1b[0m",
            key: "\x1b[1m",
            field: "\x1b[36m",
            value: "\x1b[1m",
            unknown,
            event,
            time,
            details,
            warning: "\x1b[33m",
            warning_word: "\x1b[33m\x1b[1m",
        }
    }
}

impl Default for Palette {
    fn default() -> Self {
        Self::NONE
    }
}

/// Colours of what only details show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DetailsColors {
    /// What is said of an object.
    pub(super) property: &'static str,
    /// Types of fields.
    pub(super) kind: &'static str,
    /// Names of event classes.
    pub(super) class: &'static str,
    pub(super) yes: &'static str,
    /// Times of messages.
    pub(super) stamp: &'static str,
    /// Numbers of streams.
    pub(super) number: &'static str,
}

impl DetailsColors {
    /// Where there are bright colours of their own.
    const BRIGHT: Self = Self {
        property: "\x1b[35m",
        kind: "\x1b[34m",
        class: "\x1b[32m",
        yes: "\x1b[1m\x1b[92m",
        stamp: "\x1b[1m\x1b[94m",
        number: "\x1b[1m\x1b[96m",
    };

    /// Where bold text is bright.
    const BOLD: Self = Self {
        yes: "\x1b[1m\x1b[1m\x1b[32m",
        stamp: "\x1b[1m\x1b[1m\x1b[34m",
        number: "\x1b[1m\x1b[1m\x1b[36m",
        ..Self::BRIGHT
    };

    const NONE: Self = Self {
        property: "",
        kind: "",
        class: "",
        yes: "",
        stamp: "",
        number: "",
    };
}
