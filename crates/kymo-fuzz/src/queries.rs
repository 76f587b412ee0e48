//! What people write of events: conditions, fields, groups, transitions, times.

use kymo::AnyRecording;
use kymo::analysis::{EventPattern, GroupBy, PairBy, Switch, Transition};
use kymo::filter::{FieldNames, Filter, FilterError, Glob, Moment, Query, parse_range};

/// Any text is read or refused, and every refusal can be shown.
pub fn queries(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let shown = |error: FilterError| assert!(!error.render("--where", false).is_empty());
    let query = Query {
        events: vec![Glob::new(&text)],
        condition: Some(text.to_string()),
    };
    if let Err(error) = Filter::new::<AnyRecording>(&query, &[], &[]) {
        shown(error);
    }
    match FieldNames::parse(&text) {
        Ok(names) => {
            // What was read is read again the same.
            let again = FieldNames::parse(&names.to_string());
            assert_eq!(again.map(|again| again.len()).ok(), Some(names.len()));
        }
        Err(error) => shown(error),
    }
    if let Err(error) = GroupBy::parse(&text) {
        shown(error);
    }
    if let Err(error) = PairBy::parse(&text) {
        shown(error);
    }
    if let Err(error) = Switch::parse(&text) {
        assert!(!error.to_string().is_empty());
    }
    if let Err(error) = Transition::parse(&text) {
        assert!(!error.to_string().is_empty());
    }
    let _ = (
        text.parse::<Moment>(),
        parse_range(&text),
        EventPattern::new(&text),
    );
}
