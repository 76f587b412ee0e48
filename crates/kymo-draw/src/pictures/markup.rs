//! Pango's markup: runs of text with their own fonts, colours and lines.

use crate::pictures::font::Font;
use crate::pictures::picture::Colour;
use quick_xml::Reader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};

/// Text of one style.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(crate) text: String,
    pub(crate) style: RunStyle,
}

/// How a run is drawn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunStyle {
    pub(crate) font: Font,
    pub(crate) colour: Colour,
    pub(crate) background: Option<Colour>,
    pub(crate) underline: bool,
    pub(crate) strikethrough: bool,
    /// Of the baseline, upwards.
    pub(crate) rise: Rise,
}

/// How far a baseline is raised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rise {
    Points(f64),
    /// As the font asks for; the size of the font before it is reduced, in points.
    Subscript(f64),
    /// As the font asks for.
    Superscript,
}

impl RunStyle {
    pub(crate) fn plain(font: &Font, colour: Colour) -> RunStyle {
        RunStyle {
            font: font.clone(),
            colour,
            background: None,
            underline: false,
            strikethrough: false,
            rise: Rise::Points(0.0),
        }
    }
}

/// Ratio of neighbouring sizes: `small` to `medium`, `medium` to `large`.
const SCALE: f64 = 1.2;

/// Reads markup.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn parse(text: &str, base: RunStyle) -> Result<Vec<Run>, String> {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = true;
    let size = base.font.size;
    let mut styles = vec![base];
    let mut runs: Vec<Run> = Vec::new();
    loop {
        let style = styles
            .last()
            .ok_or("more tags are closed than opened")?
            .clone();
        let mut add = |text: &str| match runs.last_mut() {
            Some(run) if run.style == style => run.text.push_str(text),
            _ => runs.push(Run {
                text: text.to_owned(),
                style: style.clone(),
            }),
        };
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Text(text) => add(&text),
            Event::CData(text) => add(&text),
            Event::GeneralRef(entity) => match entity
                .resolve_char_ref()
                .map_err(|error| error.to_string())?
            {
                Some(character) => add(character.encode_utf8(&mut [0; 4])),
                None => {
                    let name: &str = &entity;
                    add(resolve_xml_entity(name)
                        .ok_or_else(|| format!("unknown entity `&{name};`"))?);
                }
            },
            Event::Start(tag) => {
                let style = tagged(style, &tag, size)?;
                styles.push(style);
            }
            Event::Empty(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_) => {}
            Event::End(_) => {
                styles.pop();
            }
            Event::Eof if styles.len() > 1 => return Err("a tag is not closed".to_owned()),
            Event::Eof => return Ok(runs),
        }
    }
}

fn tagged(mut style: RunStyle, tag: &BytesStart<'_>, base: f64) -> Result<RunStyle, String> {
    let size = style.font.size;
    let reduced = size / SCALE;
    match tag.name().as_ref() {
        "markup" => {}
        "b" => style.font.bold = true,
        "i" => style.font.italic = true,
        "big" => style.font.size = size * SCALE,
        "small" => style.font.size = reduced,
        "s" => style.strikethrough = true,
        "u" => style.underline = true,
        "tt" => style.font.family = "monospace".to_owned(),
        "sub" => style.rise = Rise::Subscript(size),
        "sup" => style.rise = Rise::Superscript,
        "span" => {
            for attribute in tag.attributes() {
                let attribute = attribute.map_err(|error| error.to_string())?;
                span(&mut style, attribute.key.as_ref(), &attribute.value, base)?;
            }
        }
        name => return Err(format!("unknown tag `{name}`")),
    }
    Ok(style)
}

fn span(style: &mut RunStyle, key: &str, value: &str, base: f64) -> Result<(), String> {
    let wrong = || format!("`{value}` is not a value of `{key}`");
    let lower = value.to_ascii_lowercase();
    match key {
        "font" | "font_desc" => style.font = Font::parse(value, style.font.size),
        "face" | "font_family" => value.clone_into(&mut style.font.family),
        "size" | "font_size" => {
            style.font.size = size(&lower, style.font.size, base)
                .filter(|size| size.is_finite() && *size > 0.0)
                .ok_or_else(wrong)?;
        }
        "weight" | "font_weight" => {
            style.font.bold = match lower.parse::<u32>() {
                Ok(weight) => weight >= 600,
                Err(_) => matches!(
                    lower.as_str(),
                    "bold" | "semibold" | "ultrabold" | "heavy" | "ultraheavy"
                ),
            };
        }
        "style" | "font_style" => {
            style.font.italic = matches!(lower.as_str(), "italic" | "oblique")
        }
        "foreground" | "fgcolor" | "color" => {
            style.colour = colour(&lower)
                .ok_or_else(wrong)?
                .with_alpha(style.colour.alpha);
        }
        "background" | "bgcolor" => {
            style.background = Some(
                colour(&lower)
                    .ok_or_else(wrong)?
                    .with_alpha(style.colour.alpha),
            )
        }
        "underline" => style.underline = lower != "none",
        "strikethrough" => style.strikethrough = lower == "true",
        "rise" => {
            let points = match lower.strip_suffix("pt") {
                Some(points) => points.parse::<f64>(),
                None => lower.parse::<f64>().map(|units| units / 1024.0),
            };
            style.rise = Rise::Points(
                points
                    .ok()
                    .filter(|points| points.is_finite())
                    .ok_or_else(wrong)?,
            );
        }
        "alpha" | "fgalpha" => {
            let alpha = match lower.strip_suffix('%') {
                Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
                None => lower.parse::<f64>().map(|units| units / 65536.0),
            };
            style.colour.alpha = alpha.map_err(|_| wrong())?.clamp(0.0, 1.0);
        }
        // These change nothing in left-to-right text of one face.
        "lang"
        | "gravity"
        | "gravity_hint"
        | "fallback"
        | "variant"
        | "font_variant"
        | "stretch"
        | "font_stretch"
        | "underline_color"
        | "strikethrough_color"
        | "letter_spacing"
        | "font_features"
        | "insert_hyphens" => {}
        _ => return Err(format!("unknown attribute `{key}`")),
    }
    Ok(())
}

fn size(value: &str, current: f64, base: f64) -> Option<f64> {
    let steps = match value {
        "xx-small" => -3,
        "x-small" => -2,
        "small" => -1,
        "medium" => 0,
        "large" => 1,
        "x-large" => 2,
        "xx-large" => 3,
        "smaller" => return Some(current / SCALE),
        "larger" => return Some(current * SCALE),
        _ => {
            return if let Some(points) = value.strip_suffix("pt") {
                points.parse().ok()
            } else if let Some(percent) = value.strip_suffix('%') {
                percent
                    .parse::<f64>()
                    .ok()
                    .map(|percent| percent / 100.0 * current)
            } else {
                value.parse::<f64>().ok().map(|units| units / 1024.0)
            };
        }
    };
    Some(base * SCALE.powi(steps))
}

/// `#rgb`, `#rrggbb` or one of the names of colours that CSS 2.1 has.
fn colour(value: &str) -> Option<Colour> {
    if let Some(digits) = value.strip_prefix('#') {
        let number = u32::from_str_radix(digits, 16).ok()?;
        return match digits.len() {
            3 => Some(Colour::from_rgba(
                [8, 4, 0].iter().fold(0, |rgba, shift| {
                    (rgba << 8) | (((number >> shift) & 15) * 17)
                }) << 8
                    | 255,
            )),
            6 => Some(Colour::from_rgba(number << 8 | 255)),
            _ => None,
        };
    }
    let rgb: u32 = match value {
        "black" => 0,
        "white" => 0xff_ffff,
        "red" => 0xff_0000,
        "green" => 0x00_8000,
        "lime" => 0x00_ff00,
        "blue" => 0x00_00ff,
        "yellow" => 0xff_ff00,
        "cyan" | "aqua" => 0x00_ffff,
        "magenta" | "fuchsia" => 0xff_00ff,
        "gray" | "grey" => 0x80_8080,
        "silver" => 0xc0_c0c0,
        "maroon" => 0x80_0000,
        "navy" => 0x00_0080,
        "olive" => 0x80_8000,
        "purple" => 0x80_0080,
        "teal" => 0x00_8080,
        "orange" => 0xff_a500,
        _ => return None,
    };
    Some(Colour::from_rgba(rgb << 8 | 255))
}
