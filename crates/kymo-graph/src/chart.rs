//! Panels as interactive charts.

use kymo_draw::Colour;
use kymo_draw::page::{Chart, Curve, CurveKind};

use crate::draw::{COLOURS, Look};
use crate::panel::{Panel, Series};

/// The chart of a panel of series, without a picture; `None` if something else is drawn.
pub fn chart(panel: &Panel, look: &Look) -> Option<Chart> {
    let series = panel.series();
    if series.is_empty() && !matches!(panel.content, crate::Content::Series(_)) {
        return None;
    }
    let curves = series.iter().zip(COLOURS);
    let offsets = match panel.is_relative {
        true => Vec::new(),
        false => look.zone.offsets(panel.range),
    };
    Some(Chart {
        title: panel.title.clone(),
        unit: panel.unit.clone(),
        range: panel.range,
        is_relative: panel.is_relative,
        offsets,
        curves: curves
            .map(|(series, colour)| curve(series, Colour::from_rgba(colour)))
            .collect(),
        losses: panel.losses.clone(),
        ..Chart::default()
    })
}

fn curve(series: &Series, colour: Colour) -> Curve {
    let points = &series.points;
    Curve {
        name: series.name.clone(),
        colour,
        kind: CurveKind::Line,
        width: 1.3,
        gap: (series.gap != i64::MAX).then_some(series.gap),
        times: points
            .iter()
            .map(|point| (point.begin, point.end.saturating_sub(point.begin)))
            .collect(),
        values: points.iter().map(|point| point.mean).collect(),
        extremes: points.iter().map(|point| (point.min, point.max)).collect(),
        ..Curve::default()
    }
}
