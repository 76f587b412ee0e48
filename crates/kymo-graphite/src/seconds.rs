//! Durations in Graphite's words.

/// Seconds in a day.
const DAY: i64 = 86_400;

/// Seconds of a duration as Graphite writes it: numbers with units, each with a sign or with that of the one before.
/// Months have 30 days and years 365. `None` if it is something else.
///
/// ```
/// use kymo_graphite::seconds;
///
/// assert_eq!(seconds("5min"), Some(300));
/// assert_eq!(seconds("-1h30min"), Some(-5400));
/// assert_eq!(seconds("5"), None);
/// ```
pub fn seconds(text: &str) -> Option<i64> {
    let mut total: i64 = 0;
    let mut rest = text.trim();
    let mut is_minus = false;
    loop {
        if let Some(behind) = rest.strip_prefix(['-', '+']) {
            is_minus = rest.starts_with('-');
            rest = behind;
        }
        let digits = rest.find(|char: char| !char.is_ascii_digit())?;
        let count: i64 = rest[..digits].parse().ok()?;
        let behind = rest[digits..].trim_start();
        let letters = behind.find(|char: char| !char.is_ascii_alphabetic());
        let (unit, behind) = behind.split_at(letters.unwrap_or(behind.len()));
        let unit = match unit {
            "s" | "sec" | "secs" | "second" | "seconds" => 1,
            "m" | "min" | "mins" | "minute" | "minutes" => 60,
            "h" | "hour" | "hours" => 3600,
            "d" | "day" | "days" => DAY,
            "w" | "week" | "weeks" => 7 * DAY,
            "mon" | "month" | "months" => 30 * DAY,
            "y" | "year" | "years" => 365 * DAY,
            _ => return None,
        };
        let seconds = count.checked_mul(unit)?;
        total = total.checked_add(if is_minus { -seconds } else { seconds })?;
        rest = behind;
        if rest.is_empty() {
            return Some(total);
        }
    }
}
