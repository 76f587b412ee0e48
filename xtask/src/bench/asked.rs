//! Figures beside what is asked of them, a line each.

/// What is asked of a figure.
#[derive(Clone, Copy)]
pub(super) enum Asked {
    AtLeast(f64),
    AtMost(f64),
    /// It is only reported.
    Nothing,
}

/// Prints the heads of the columns of [`line()`].
pub(super) fn head(title: &str) {
    println!("\n{title:<58} {:>14} {:>14}", "measured", "asked");
}

/// Prints a figure, with its unit, and whether it is what is asked.
pub(super) fn line(name: &str, measured: f64, unit: &str, asked: Asked) {
    let digits = match measured.abs() {
        large if large >= 1000.0 => 0,
        middle if middle >= 10.0 => 1,
        _ => 3,
    };
    let measured_text = format!("{measured:.digits$} {unit}");
    let (asked_text, is_reached) = match asked {
        Asked::AtLeast(least) => (format!(">= {least} {unit}"), Some(measured >= least)),
        Asked::AtMost(most) => (format!("<= {most} {unit}"), Some(measured <= most)),
        Asked::Nothing => (String::new(), None),
    };
    let verdict = match is_reached {
        Some(true) => "  reached",
        Some(false) => "  missed",
        None => "",
    };
    let text = format!("{name:<58} {measured_text:>14} {asked_text:>14}{verdict}");
    println!("{}", text.trim_end());
}
