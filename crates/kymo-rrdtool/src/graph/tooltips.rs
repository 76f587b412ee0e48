//! Values under the pointer in SVG, without scripts: a region for each stretch of equal values, with a title that
//! browsers show, and a cross that appears by a rule of style.

use std::fmt::Write as _;

use kymo_text::markup;

use super::colour::Colour;
use super::dates::date;
use super::elements::Kind;
use super::interactive::name;
use super::layout::Layout;
use super::options::{GraphOptions, Part};
use super::picture::Graph;
use super::scale::{Columns, Transform};

/// Maximum width of a region, so that its time is near the pointer.
const WIDEST: usize = 24;

/// A curve that has values to show.
struct Shown<'a> {
    name: String,
    colour: String,
    /// The values as they are drawn.
    tops: &'a [f64],
    /// What they stand on; `None` if that is zero.
    below: Option<&'a [f64]>,
    is_tick: bool,
}

/// A picture with regions for the pointer.
pub(super) fn added(
    mut svg: Vec<u8>,
    graph: &Graph,
    layout: &Layout,
    columns: &Columns,
    options: &GraphOptions,
) -> Vec<u8> {
    const END: &[u8] = b"</svg>";
    let Some(at) = svg.windows(END.len()).rposition(|bytes| bytes == END) else {
        return svg;
    };
    let text = regions(graph, layout, columns, options);
    svg.splice(at..at, text.into_bytes());
    svg
}

fn css(colour: Colour) -> String {
    let part = |share: f64| (share.clamp(0.0, 1.0) * 255.0).round() as u8;
    let Colour {
        red, green, blue, ..
    } = colour;
    format!("#{:02x}{:02x}{:02x}", part(red), part(green), part(blue))
}

fn regions(graph: &Graph, layout: &Layout, columns: &Columns, options: &GraphOptions) -> String {
    let (bottom, height) = (layout.bottom as f64, layout.graph_height as f64);
    let transform = Transform::new(&columns.range, options.logarithmic, bottom, height);
    let shown = shown(graph, layout, columns);
    let pixels = shown.first().map_or(0, |curve| curve.tops.len());
    let bounds = &graph.bounds;
    let step = (bounds.end - bounds.start) as f64 / pixels.max(1) as f64;
    let format = match step < 60.0 {
        true => "%Y-%m-%d %H:%M:%S",
        false => "%Y-%m-%d %H:%M",
    };
    let same = |a: usize, b: usize| {
        let equal = |pixels: &[f64]| pixels[a].to_bits() == pixels[b].to_bits();
        shown
            .iter()
            .all(|curve| equal(curve.tops) && curve.below.is_none_or(equal))
    };
    let mut out = String::from(
        "<style>.kymo-at .kymo-cross{visibility:hidden}.kymo-at:hover .kymo-cross{visibility:visible}</style>\n\
         <g id=\"kymo-tooltips\">\n",
    );
    let top = bottom - height;
    let axis = css(options.colour(Part::Axis));
    let mut from = 0;
    while from < pixels {
        let mut to = from + 1;
        while to < pixels && to - from < WIDEST && same(from, to) {
            to += 1;
        }
        let time = (bounds.start as f64 + step * from as f64) as i64;
        let left = (layout.left as f64 + from as f64 - 1.0).max(layout.left as f64);
        let right = layout.left as f64 + to as f64 - if to < pixels { 1.0 } else { 0.0 };
        let width = (right - left).max(1.0);
        let _ = write!(
            out,
            "<g class=\"kymo-at\"><title>{}",
            markup(&date(format, time, &graph.zone))
        );
        for curve in &shown {
            let value = curve.tops[from] - curve.below.map_or(0.0, |below| below[from]);
            let value = match value.is_nan() {
                true => "unknown".to_owned(),
                false => short(value, options.base),
            };
            let _ = write!(out, "\n{}: {value}", markup(&curve.name));
        }
        let _ = write!(
            out,
            "</title><rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill-opacity=\"0\"/>\
             <g class=\"kymo-cross\" pointer-events=\"none\"><path d=\"M{} {top}V{bottom}\" stroke=\"{axis}\" \
             stroke-width=\"1\" stroke-dasharray=\"2 2\"/>",
            left + width / 2.0
        );
        for curve in shown.iter().filter(|curve| !curve.is_tick) {
            let value = curve.tops[from];
            if !value.is_finite() {
                continue;
            }
            let y = transform.y(value).clamp(top, bottom);
            let _ = write!(
                out,
                "<circle cx=\"{}\" cy=\"{y:.2}\" r=\"2.5\" fill=\"{}\"/>",
                left + width / 2.0,
                curve.colour
            );
        }
        out.push_str("</g></g>\n");
        from = to;
    }
    out + "</g>\n"
}

fn shown<'a>(graph: &Graph, layout: &Layout, columns: &'a Columns) -> Vec<Shown<'a>> {
    let mut all = Vec::new();
    let mut before: Option<&[f64]> = None;
    let elements = graph.script.elements.iter().enumerate();
    for ((element, item), tops) in elements.zip(&columns.values) {
        let Some(curve) = item.kind.curve() else {
            continue;
        };
        let below = before.filter(|_| curve.stack);
        before = Some(tops);
        let Some(colour) = curve.colour else {
            continue;
        };
        let name = match name(graph, layout, element) {
            name if name.is_empty() => format!("series {}", all.len() + 1),
            name => name,
        };
        all.push(Shown {
            name,
            colour: css(colour),
            tops,
            below,
            is_tick: matches!(item.kind, Kind::Tick { .. }),
        });
    }
    all
}

/// A number with at most four digits and an SI prefix.
fn short(value: f64, base: f64) -> String {
    const PREFIXES: [&str; 13] = [
        " a", " f", " p", " n", " µ", " m", "", " k", " M", " G", " T", " P", " E",
    ];
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let power = (value.abs().ln() / base.ln() + 1e-9)
        .floor()
        .clamp(-6.0, 6.0);
    let scaled = value / base.powf(power);
    if scaled.abs() >= 1e6 || scaled.abs() < 1e-3 {
        return format!("{value:.3e}");
    }
    let digits = (3.0 - scaled.abs().log10().floor()).clamp(0.0, 3.0) as usize;
    let text = format!("{scaled:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{}", PREFIXES[(power + 6.0) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, base, text) in [
            (1234.0, 1000.0, "1.234 k"),
            (0.00025, 1000.0, "250 µ"),
            (2048.0, 1024.0, "2 k"),
            (0.0, 1000.0, "0"),
            (100.0, 1000.0, "100"),
            (1e300, 1000.0, "1.000e300"),
        ] {
            assert_eq!(short(value, base), text);
        }
    }
}
