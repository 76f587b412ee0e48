//! A graph as an interactive page.

use kymo_draw::page::{Chart, Curve, CurveKind, Page, PageOptions, Rule, RuleAt};

use super::colour::Colour;
use super::elements::{Kind, Shown};
use super::layout::Layout;
use super::legend::rule_time;
use super::options::GraphOptions;
use super::picture::Graph;
use crate::LocalZone;

const NANOS: i64 = 1_000_000_000;

/// The page of a graph: its picture for readers without scripts, and its values.
pub(super) fn page(
    mut svg: Vec<u8>,
    graph: &Graph,
    layout: &Layout,
    options: &GraphOptions,
) -> Vec<u8> {
    // A declaration of XML is only for files of their own.
    let begin = svg.windows(4).position(|bytes| bytes == b"<svg");
    svg.drain(..begin.unwrap_or(0));
    let title = match options.title.is_empty() {
        true => "Graph".to_owned(),
        false => options.title.join(" "),
    };
    let bounds = &graph.bounds;
    let limit = |value: f64| (!value.is_nan()).then_some(value);
    let chart = Chart {
        title: title.clone(),
        unit: options.vertical_label.clone(),
        range: (
            bounds.start.saturating_mul(NANOS),
            bounds.end.saturating_mul(NANOS),
        ),
        is_relative: false,
        offsets: offsets(&graph.zone, (bounds.start, bounds.end)),
        curves: curves(graph, layout, options),
        rules: rules(graph),
        losses: Vec::new(),
        is_logarithmic: options.logarithmic,
        limits: (limit(options.lower), limit(options.upper)),
        is_rigid: options.rigid,
        is_binary: options.base == 1024.0,
        notes: notes(layout),
        picture: Some(svg),
    };
    let mut out = Vec::new();
    let page = PageOptions {
        title,
        charts: 1,
        is_dark: options.theme_is_dark,
    };
    let written = Page::begin(&mut out, &page).and_then(|mut page| {
        page.chart(&chart)?;
        page.end()
    });
    // Memory takes everything.
    debug_assert!(written.is_ok());
    out
}

/// Seconds that local time is ahead in a range, each from a time on.
fn offsets(zone: &LocalZone, (start, end): (i64, i64)) -> Vec<(i64, i64)> {
    /// Zones change less often than twice in that time.
    const STEP: i64 = 7 * 86_400;
    let ahead = |time: i64| zone.offset(time).0;
    let mut all = vec![(start, ahead(start))];
    let step = STEP.max(end.saturating_sub(start) / 4000);
    let mut time = start;
    while time < end {
        let next = time.saturating_add(step).min(end);
        if ahead(next) != ahead(time) {
            let (mut before, mut after) = (time, next);
            while after - before > 1 {
                let middle = before + (after - before) / 2;
                match ahead(middle) == ahead(time) {
                    true => before = middle,
                    false => after = middle,
                }
            }
            all.push((after, ahead(after)));
        }
        time = next;
    }
    all
}

/// The text of an element in the legend, or what is written of it.
pub(super) fn name(graph: &Graph, layout: &Layout, element: usize) -> String {
    let entries = &layout.legend.entries;
    let text = match entries.iter().find(|entry| entry.element == element) {
        Some(entry) => entry.text.as_str(),
        None => {
            let legend = &graph.script.elements[element].legend;
            legend.split('\\').next().unwrap_or_default()
        }
    };
    text.trim().to_owned()
}

/// What is drawn, with a value for each row.
fn curves(graph: &Graph, layout: &Layout, options: &GraphOptions) -> Vec<Curve> {
    let bounds = &graph.bounds;
    let rows = options.rows().max(1);
    let length = i128::from(bounds.end - bounds.start) * i128::from(NANOS);
    let time = |row: i64| {
        let since = length * i128::from(row) / i128::from(rows);
        i128::from(bounds.start) * i128::from(NANOS) + since
    };
    let nanos = |time: i128| i64::try_from(time).unwrap_or(i64::MAX);
    let mut curves = Vec::new();
    for (element, drawn) in graph.script.elements.iter().enumerate() {
        let Some(curve) = drawn.kind.curve() else {
            continue;
        };
        let (kind, width) = match &drawn.kind {
            Kind::Line { width, .. } => (CurveKind::Line, *width),
            Kind::Tick { fraction, .. } => (CurveKind::Tick(*fraction), 1.0),
            _ => (CurveKind::Area, 1.0),
        };
        let series = match curve.shown {
            Shown::Variable(variable) => graph.known[variable].series(),
            Shown::Number(_) => None,
        };
        let constant = graph.value(curve.shown);
        let value = |row: i64| match series {
            Some(series) => series.value_from((time(row) / i128::from(NANOS)) as i64),
            None => constant,
        };
        let colour = curve.colour.unwrap_or(Colour::NONE);
        let name = name(graph, layout, element);
        curves.push(Curve {
            name,
            colour: colour.into(),
            kind,
            width,
            is_stacked: curve.stack,
            is_slope: options.slope,
            is_unscaled: curve.skip_scale,
            gap: Some(0),
            times: (0..rows)
                .map(|row| (nanos(time(row)), nanos(time(row + 1) - time(row))))
                .collect(),
            values: (0..rows).map(value).collect(),
            extremes: Vec::new(),
        });
    }
    curves
}

fn rules(graph: &Graph) -> Vec<Rule> {
    let rule = |kind: &Kind| {
        let (at, colour) = match kind {
            Kind::HorizontalRule { value, colour, .. } => {
                (RuleAt::Value(graph.value(*value)), colour)
            }
            Kind::VerticalRule { time, colour, .. } => {
                let time = rule_time(*time, &graph.known);
                (RuleAt::Time(time.saturating_mul(NANOS)), colour)
            }
            _ => return None,
        };
        let colour = (*colour)?.into();
        Some(Rule { at, colour })
    };
    let elements = graph.script.elements.iter();
    elements.filter_map(|element| rule(&element.kind)).collect()
}

/// The lines of the legend, with the texts of each about where they are in the picture.
fn notes(layout: &Layout) -> Vec<String> {
    /// Pixels of a character.
    const CHARACTER: f64 = 7.0;
    let mut lines: Vec<(f64, String)> = Vec::new();
    for entry in &layout.legend.entries {
        let line = match lines.last_mut() {
            Some(line) if (line.0 - entry.y).abs() < 1.0 => line,
            _ => {
                lines.push((entry.y, String::new()));
                lines.last_mut().expect("one was added")
            }
        };
        let column = (entry.x / CHARACTER).clamp(0.0, 1000.0) as usize;
        let taken = line.1.chars().count();
        let blanks = column.saturating_sub(taken).max(usize::from(taken > 0));
        line.1.extend(std::iter::repeat_n(' ', blanks));
        line.1.push_str(&entry.text);
    }
    lines.into_iter().map(|(_, line)| line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_a_zone_are_found() {
        let zone = LocalZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let (start, end) = (1_704_067_200, 1_735_689_600);
        let found = offsets(&zone, (start, end));
        assert_eq!(
            found,
            [(start, 3600), (1_711_846_800, 7200), (1_729_990_800, 3600)]
        );
        assert!(offsets(&zone, (0, i64::MAX / NANOS)).len() < 10_000);
    }
}
