//! Pages of interactive charts: one HTML file that loads nothing.
//!
//! A [`Chart`] has its values as data, and may have a picture for readers without scripts. The page's script, which is
//! all that its policy allows to run, draws them on a canvas: values under the pointer, zoom and pan in time, series
//! that can be hidden. Texts of charts are data, never markup.

use std::io::{self, Write};

use kymo_text::json::{Value, Writer, escape};
use kymo_text::{Line, base64, is_invisible, markup};
use sha2::{Digest, Sha256};

use crate::Colour;

const SCRIPT: &str = include_str!("chart.js");
const STYLE: &str = include_str!("chart.css");

/// Values over time, and how they are shown.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// Its title.
    pub title: String,
    /// Unit of the values; empty if it is not known.
    pub unit: String,
    /// From when to when, in nanoseconds since 1970, or since a clock's zero.
    pub range: (i64, i64),
    /// Whether times count from the zero of a clock without an origin.
    pub is_relative: bool,
    /// Seconds that local time is ahead of UTC, each from a time in seconds since 1970 on; the first from the beginning.
    pub offsets: Vec<(i64, i64)>,
    /// What is drawn, in this order.
    pub curves: Vec<Curve>,
    /// Lines across.
    pub rules: Vec<Rule>,
    /// When something was lost, in nanoseconds as the range.
    pub losses: Vec<i64>,
    /// Whether the axis of values is logarithmic.
    pub is_logarithmic: bool,
    /// The ends of the axis, if they are set; otherwise they fit what is shown.
    pub limits: (Option<f64>, Option<f64>),
    /// Whether the limits hold whatever the values are.
    pub is_rigid: bool,
    /// Whether k stands for 1024.
    pub is_binary: bool,
    /// Lines of text below.
    pub notes: Vec<String>,
    /// An SVG picture for readers without scripts, without the declaration of XML.
    pub picture: Option<Vec<u8>>,
}

/// How values are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum CurveKind {
    /// A line of a width.
    #[default]
    Line,
    /// An area down to zero, or to what it is stacked on.
    Area,
    /// A mark where the value is not 0, of a fraction of the height; from the top if that is negative.
    Tick(f64),
}

/// A series of values.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Its name; empty if it is not in the legend.
    pub name: String,
    /// Its colour.
    pub colour: Colour,
    /// How it is drawn.
    pub kind: CurveKind,
    /// Width of lines in pixels.
    pub width: f64,
    /// Whether it stands on the curve before it, which has the same times.
    pub is_stacked: bool,
    /// Whether values are connected by slopes.
    pub is_slope: bool,
    /// Whether the axis need not show it.
    pub is_unscaled: bool,
    /// Values further apart than this are not connected; `None` if all are.
    pub gap: Option<i64>,
    /// When each value begins, in order, and how long it holds, in nanoseconds; 0 for a value of one time.
    pub times: Vec<(i64, i64)>,
    /// The values; what is not finite is unknown.
    pub values: Vec<f64>,
    /// The least and the greatest value of each interval; empty if they are the values.
    pub extremes: Vec<(f64, f64)>,
}

/// A line across a chart.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Where: a value, or a time in nanoseconds.
    pub at: RuleAt,
    /// Its colour.
    pub colour: Colour,
}

/// Where a line across a chart is.
#[derive(Clone, Copy, Debug)]
pub enum RuleAt {
    /// At a value.
    Value(f64),
    /// At a time.
    Time(i64),
}

/// A page that is being written.
pub struct Page<'o> {
    out: &'o mut dyn Write,
}

/// What a page is.
#[derive(Clone, Debug, Default)]
pub struct PageOptions {
    /// Its title.
    pub title: String,
    /// The number of charts, as far as it is known: many are shown smaller.
    pub charts: usize,
    /// Light or dark, or as the reader's system is.
    pub is_dark: Option<bool>,
}

impl<'o> Page<'o> {
    /// Writes what comes before the charts.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn begin(out: &'o mut dyn Write, options: &PageOptions) -> io::Result<Self> {
        let hash = base64::encode(&Sha256::digest(SCRIPT));
        let title = markup(&options.title);
        let theme = match options.is_dark {
            Some(true) => " data-theme=\"dark\"",
            Some(false) => " data-theme=\"light\"",
            None => "",
        };
        let class = match options.charts {
            0..=1 => "one",
            2..=12 => "some",
            _ => "many",
        };
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\"{theme}><head><meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-{hash}'; \
             style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"referrer\" content=\"no-referrer\">\n\
             <title>{title}</title>\n<style>{STYLE}</style></head>\n\
             <body><header><h1>{title}</h1><button id=\"all\">Show all</button><button id=\"theme\">Light or dark</button></header>\n\
             <main class=\"{class}\">\n"
        )?;
        Ok(Self { out })
    }

    /// Writes a chart.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn chart(&mut self, chart: &Chart) -> io::Result<()> {
        let title = markup(&chart.title);
        let unit = match chart.unit.as_str() {
            "" => String::new(),
            unit => format!(" <span>[{}]</span>", markup(unit)),
        };
        write!(
            self.out,
            "<figure data-chart><figcaption title=\"{title}\">{title}{unit}</figcaption>"
        )?;
        if let Some(picture) = &chart.picture {
            self.out.write_all(picture)?;
        }
        if !chart.notes.is_empty() {
            let notes = markup(&chart.notes.join("\n"));
            write!(self.out, "<pre>{notes}</pre>")?;
        }
        let data = chart.json();
        writeln!(
            self.out,
            "<script type=\"application/json\">{data}</script></figure>"
        )
    }

    /// Writes a picture that is not interactive: an SVG element.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn picture(&mut self, svg: &[u8]) -> io::Result<()> {
        self.out.write_all(b"<figure><figcaption></figcaption>")?;
        self.out.write_all(svg)?;
        self.out.write_all(b"</figure>\n")
    }

    /// Writes what comes behind the charts.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub fn end(self) -> io::Result<()> {
        write!(
            self.out,
            "</main>\n<footer>Drag to zoom, <kbd>Shift</kbd> and drag to pan, <kbd>Ctrl</kbd> and wheel to zoom, double \
             click to show all. Keys on a graph: <kbd>←</kbd> <kbd>→</kbd> <kbd>+</kbd> <kbd>-</kbd> <kbd>0</kbd>, \
             <kbd>,</kbd> <kbd>.</kbd> for values.<noscript> Without scripts, graphs are pictures.</noscript></footer>\n\
             <script>{SCRIPT}</script>\n</body></html>\n"
        )
    }
}

/// Whether a character in JSON that stands within HTML is escaped: no `<` begins a tag, and nothing is hidden.
fn is_unsafe(char: char) -> bool {
    matches!(char, '<' | '>' | '&') || is_invisible(char)
}

/// A number with some seven digits, which is more than a screen shows; null if it is not finite.
struct Short(f64);

impl Value for Short {
    fn write(self, line: &mut Line) {
        let short = self.0 as f32;
        let text = match short.is_finite() && (short != 0.0 || self.0 == 0.0) {
            _ if !self.0.is_finite() => "null".to_string(),
            true => short.to_string(),
            false => format!("{:e}", self.0),
        };
        line.push(text.as_bytes());
    }
}

/// A key and the list of its values.
fn list<V: Value>(json: &mut Writer, key: &str, values: impl IntoIterator<Item = V>) {
    json.begin_list(key);
    values.into_iter().for_each(|value| json.value(value));
    json.end_list();
}

fn css(colour: Colour) -> String {
    let part = |share: f64| (share.clamp(0.0, 1.0) * 255.0).round() as u8;
    format!(
        "#{:02x}{:02x}{:02x}",
        part(colour.red),
        part(colour.green),
        part(colour.blue)
    )
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        b => gcd(b, a % b),
    }
}

impl Chart {
    fn json(&self) -> String {
        let origin = self.range.0;
        let since = |time: i64| time.saturating_sub(origin);
        let mut json = Writer::default();
        json.begin_object();
        json.entry("title", self.title.as_str());
        json.entry("unit", self.unit.as_str());
        json.entry("origin", origin.to_string().as_str());
        json.entry("length", since(self.range.1).max(1));
        json.entry("relative", self.is_relative);
        json.entry("log", self.is_logarithmic);
        json.entry("isRigid", self.is_rigid);
        json.entry("base", if self.is_binary { 1024_u64 } else { 1000 });
        json.entry("low", self.limits.0.map(Short));
        json.entry("high", self.limits.1.map(Short));
        json.begin_list("offsets");
        for (place, (from, ahead)) in self.offsets.iter().enumerate() {
            json.begin_array();
            json.value(Some(*from).filter(|_| place > 0));
            json.value(*ahead);
            json.end_list();
        }
        json.end_list();
        list(
            &mut json,
            "losses",
            self.losses.iter().map(|time| since(*time)),
        );
        json.begin_list("rules");
        for rule in &self.rules {
            json.begin_object();
            match rule.at {
                RuleAt::Value(value) => json.entry("value", Short(value)),
                RuleAt::Time(time) => json.entry("time", since(time)),
            }
            json.entry("colour", css(rule.colour).as_str());
            json.end_object();
        }
        json.end_list();
        json.begin_list("curves");
        for curve in &self.curves {
            curve.json(&mut json, origin);
        }
        json.end_list();
        json.end_object();
        escape(&String::from_utf8_lossy(json.as_bytes()), is_unsafe).into_owned()
    }
}

impl Curve {
    fn json(&self, json: &mut Writer, origin: i64) {
        json.begin_object();
        json.entry("name", self.name.as_str());
        json.entry("colour", css(self.colour).as_str());
        json.entry("alpha", Short(self.colour.alpha));
        let kind = match self.kind {
            CurveKind::Line => "line",
            CurveKind::Area => "area",
            CurveKind::Tick(fraction) => {
                json.entry("fraction", Short(fraction));
                "tick"
            }
        };
        json.entry("kind", kind);
        json.entry("width", Short(self.width));
        json.entry("stack", self.is_stacked);
        json.entry("isSlope", self.is_slope);
        json.entry("isUnscaled", self.is_unscaled);
        json.entry("isConnected", self.gap.is_none());
        json.entry("gap", self.gap);
        let values = self.values.len().min(self.times.len());
        let begins: Vec<i64> = self.times[..values]
            .iter()
            .map(|(begin, _)| begin.saturating_sub(origin))
            .collect();
        let lengths: Vec<i64> = self.times[..values]
            .iter()
            .map(|(_, length)| *length)
            .collect();
        // Times are whole multiples of a tick, and so short numbers.
        let all = begins.iter().chain(&lengths);
        let tick = all
            .fold(0, |tick, time| gcd(time.unsigned_abs(), tick))
            .max(1);
        let tick = i64::try_from(tick).unwrap_or(1);
        json.entry("tick", tick);
        let places = regular(&begins, &lengths);
        match &places {
            Some((step, _)) => {
                json.entry("first", begins.first().copied().unwrap_or(0) / tick);
                json.entry("step", step / tick);
            }
            None => {
                list(json, "x", begins.iter().map(|time| time / tick));
                list(json, "w", lengths.iter().map(|time| time / tick));
            }
        }
        let places = places.map_or_else(|| (0..values).map(Some).collect(), |(_, places)| places);
        let numbers = |value: &dyn Fn(usize) -> f64| -> Vec<_> {
            places
                .iter()
                .map(|place| place.map(|at| Short(value(at))))
                .collect()
        };
        list(json, "y", numbers(&|at| self.values[at]));
        if self.extremes.len() >= values && self.extremes.iter().any(|(low, high)| low < high) {
            list(json, "low", numbers(&|at| self.extremes[at].0));
            list(json, "high", numbers(&|at| self.extremes[at].1));
        }
        json.end_object();
    }
}

/// The step of times that are equal steps apart, some of them missing, and the position of the value at each step.
fn regular(begins: &[i64], lengths: &[i64]) -> Option<(i64, Vec<Option<usize>>)> {
    let step = begins
        .windows(2)
        .map(|pair| pair[1].saturating_sub(pair[0]))
        .min()?;
    let (last, others) = lengths.split_last()?;
    if step <= 0 || others.iter().any(|length| *length != step) || *last > step {
        return None;
    }
    let first = begins[0];
    let mut places = Vec::new();
    for (at, begin) in begins.iter().enumerate() {
        let since = begin.checked_sub(first)?;
        let place = usize::try_from(since / step).ok()?;
        if since % step != 0 || place < places.len() || place > 2 * begins.len() + 16 {
            return None;
        }
        places.resize(place, None);
        places.push(Some(at));
    }
    Some((step, places))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(chart: &Chart) -> String {
        let mut out = Vec::new();
        let options = PageOptions {
            title: "a <b> & \"c\"".into(),
            charts: 1,
            is_dark: None,
        };
        let mut page = Page::begin(&mut out, &options).unwrap();
        page.chart(chart).unwrap();
        page.end().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn hostile_texts_are_data() {
        let hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{202e}\u{200b}\u{e0041}\u{0}";
        let chart = Chart {
            title: hostile.into(),
            unit: hostile.into(),
            range: (0, 10),
            notes: vec![hostile.into()],
            curves: vec![Curve {
                name: hostile.into(),
                times: vec![(0, 1)],
                values: vec![1.0],
                ..Curve::default()
            }],
            ..Chart::default()
        };
        let page = page(&chart);
        assert_eq!(
            page.matches("<script").count(),
            2,
            "data, and the page's own"
        );
        assert!(!page.contains("<img"));
        assert!(!page.contains("alert(1)</script>"));
        assert!(!page.contains(['\u{202e}', '\u{200b}', '\u{e0041}']));
        assert!(page.contains("a &lt;b&gt; &amp; &quot;c&quot;"));
    }

    #[test]
    fn the_policy_names_the_script() {
        let page = page(&Chart::default());
        let hash = base64::encode(&Sha256::digest(SCRIPT));
        assert!(page.contains(&format!("script-src 'sha256-{hash}'")));
        assert!(page.contains(&format!("<script>{SCRIPT}</script>")));
        assert!(!SCRIPT.contains("</") && !STYLE.contains("</"));
        for word in [
            "fetch",
            "XMLHttp",
            "http:",
            "https:",
            "innerHTML",
            "eval(",
            "import",
        ] {
            assert!(!SCRIPT.contains(word), "{word}");
        }
    }

    #[test]
    fn equal_steps_are_written_once() {
        let curve = |times: Vec<(i64, i64)>| {
            let mut json = Writer::default();
            let values = (0..times.len()).map(|at| at as f64).collect();
            let curve = Curve {
                times,
                values,
                ..Curve::default()
            };
            curve.json(&mut json, 100);
            String::from_utf8_lossy(json.as_bytes()).into_owned()
        };
        let all = curve(vec![(100, 10), (110, 10), (130, 5)]);
        assert!(
            all.contains("\"tick\":5,\"first\":0,\"step\":2,\"y\":[0,1,null,2]"),
            "{all}"
        );
        let some = curve(vec![(100, 0), (107, 0)]);
        assert!(
            some.contains("\"tick\":7,\"x\":[0,1],\"w\":[0,0],\"y\":[0,1]"),
            "{some}"
        );
        assert!(curve(Vec::new()).contains("\"y\":[]"));
    }

    #[test]
    fn numbers_are_json() {
        let mut line = Line::new();
        for value in [0.0, -1.5, f64::NAN, f64::INFINITY, 1e300, 1e-300, 0.1] {
            Short(value).write(&mut line);
            line.push_byte(b' ');
        }
        assert_eq!(line.as_bytes(), b"0 -1.5 null null 1e300 1e-300 0.1 ");
    }
}
