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
    background_alpha: Option<f64>,
    pub(crate) underline: Underline,
    pub(crate) underline_colour: Option<Colour>,
    pub(crate) strikethrough: bool,
    pub(crate) strikethrough_colour: Option<Colour>,
    /// Of the baseline, upwards.
    pub(crate) rise: Rise,
    /// Whether the font is as small as that of a script.
    pub(crate) scale: Option<Script>,
    /// Between two characters, in pixels.
    pub(crate) letter_spacing: f64,
    transform: Transform,
}

/// A line under a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Underline {
    None,
    Single,
    Double,
}

/// How letters are changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transform {
    None,
    Lowercase,
    Uppercase,
    /// The first letter of each word is an upper-case one.
    Capitalize,
}

/// What is written below or above the line, with a smaller font.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Script {
    Subscript,
    Superscript,
}

/// How far a baseline is raised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rise {
    Pixels(f64),
    /// As the font of the text before it asks for.
    Script(Script),
}

impl RunStyle {
    pub(crate) fn plain(font: &Font, colour: Colour) -> RunStyle {
        RunStyle {
            font: font.clone(),
            colour,
            background: None,
            background_alpha: None,
            underline: Underline::None,
            underline_colour: None,
            strikethrough: false,
            strikethrough_colour: None,
            rise: Rise::Pixels(0.0),
            scale: None,
            letter_spacing: 0.0,
            transform: Transform::None,
        }
    }

    /// What is behind the text.
    pub(crate) fn background(&self) -> Option<Colour> {
        let alpha = self.background_alpha;
        let colour = self.background?;
        Some(alpha.map_or(colour, |alpha| colour.with_alpha(alpha)))
    }
}

impl Transform {
    /// A text that was transformed; `is_inside` says whether it goes on within a word.
    fn apply(self, text: &str, mut is_inside: bool) -> String {
        match self {
            Self::None => text.to_owned(),
            Self::Lowercase => text.to_lowercase(),
            Self::Uppercase => text.to_uppercase(),
            Self::Capitalize => {
                let mut done = String::with_capacity(text.len());
                for character in text.chars() {
                    match is_inside {
                        true => done.push(character),
                        false => done.extend(character.to_uppercase()),
                    }
                    is_inside = character.is_alphanumeric();
                }
                done
            }
        }
    }
}

/// Ratio of neighbouring sizes: `small` to `medium`, `medium` to `large`.
pub(crate) const SCALE: f64 = 1.2;

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
        let mut add = |text: &str| {
            let last = runs.last().and_then(|run| run.text.chars().next_back());
            let is_inside = last.is_some_and(char::is_alphanumeric);
            let text = style.transform.apply(text, is_inside);
            match runs.last_mut() {
                Some(run) if run.style == style => run.text.push_str(&text),
                _ => runs.push(Run {
                    text,
                    style: style.clone(),
                }),
            }
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
        "u" => style.underline = Underline::Single,
        "tt" => style.font.family = "monospace".to_owned(),
        "sub" => style.set_script(Script::Subscript),
        "sup" => style.set_script(Script::Superscript),
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
            style.colour = colour(&lower, style.colour.alpha).ok_or_else(wrong)?;
        }
        "background" | "bgcolor" => {
            style.background = Some(colour(&lower, style.colour.alpha).ok_or_else(wrong)?);
        }
        "underline" => {
            style.underline = match lower.as_str() {
                "none" => Underline::None,
                "single" | "single-line" | "low" | "error" | "error-line" => Underline::Single,
                "double" | "double-line" => Underline::Double,
                _ => return Err(wrong()),
            };
        }
        "underline_color" => {
            style.underline_colour = Some(colour(&lower, style.colour.alpha).ok_or_else(wrong)?);
        }
        "strikethrough" => {
            style.strikethrough = match lower.as_str() {
                "true" | "yes" | "t" | "y" => true,
                "false" | "no" | "f" | "n" => false,
                _ => return Err(wrong()),
            };
        }
        "strikethrough_color" => {
            style.strikethrough_colour =
                Some(colour(&lower, style.colour.alpha).ok_or_else(wrong)?);
        }
        "rise" | "baseline_shift" => {
            style.rise = match (script(&lower), lower.strip_suffix("pt")) {
                (Some(script), _) if key == "baseline_shift" => Rise::Script(script),
                // A point of a rise is a pixel.
                (_, Some(pixels)) => Rise::Pixels(finite(pixels).ok_or_else(wrong)?),
                _ => Rise::Pixels(finite(&lower).ok_or_else(wrong)? / 1024.0),
            };
        }
        "font_scale" => style.scale = Some(script(&lower).ok_or_else(wrong)?),
        "letter_spacing" => {
            let units = lower.parse::<i32>().map_err(|_| wrong())?;
            style.letter_spacing = f64::from(units) / 1024.0;
        }
        "text_transform" => {
            style.transform = match lower.as_str() {
                "none" => Transform::None,
                "lowercase" => Transform::Lowercase,
                "uppercase" => Transform::Uppercase,
                "capitalize" => Transform::Capitalize,
                _ => return Err(wrong()),
            };
        }
        "alpha" | "fgalpha" => style.colour.alpha = alpha(&lower).ok_or_else(wrong)?,
        "bgalpha" | "background_alpha" => {
            style.background_alpha = Some(alpha(&lower).ok_or_else(wrong)?);
        }
        // These change nothing in left-to-right text of one face.
        "lang" | "gravity" | "gravity_hint" | "fallback" | "variant" | "font_variant"
        | "stretch" | "font_stretch" | "font_features" | "allow_breaks" | "segment"
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

impl RunStyle {
    fn set_script(&mut self, script: Script) {
        self.rise = Rise::Script(script);
        self.scale = Some(script);
    }
}

fn script(value: &str) -> Option<Script> {
    match value {
        "subscript" => Some(Script::Subscript),
        "superscript" => Some(Script::Superscript),
        _ => None,
    }
}

fn finite(value: &str) -> Option<f64> {
    value
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())
}

/// A part of 65536, or a percentage.
fn alpha(value: &str) -> Option<f64> {
    let alpha = match value.strip_suffix('%') {
        Some(percent) => finite(percent)? / 100.0,
        None => finite(value)? / 65536.0,
    };
    Some(alpha.clamp(0.0, 1.0))
}

/// The colours that have names, each behind its name.
const COLOURS: &str = include_str!("colours.txt");

/// A colour in lower case: `#` and 1 to 4 digits each for red, green and blue, and for alpha (not 3); or the name of a
/// colour. `alpha` is used for colours without one.
fn colour(value: &str, alpha: f64) -> Option<Colour> {
    if let Some(digits) = value.strip_prefix('#') {
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let (width, has_alpha) = match digits.len() {
            3 | 6 | 9 | 12 => (digits.len() / 3, false),
            4 | 8 | 16 => (digits.len() / 4, true),
            _ => return None,
        };
        let greatest = f64::from((1_u32 << (4 * width)) - 1);
        let part = |place: usize| -> Option<f64> {
            let digits = digits.get(place * width..(place + 1) * width)?;
            Some(f64::from(u32::from_str_radix(digits, 16).ok()?) / greatest)
        };
        let byte = |part: f64| (part * 255.0).round() as u32;
        let rgb = byte(part(0)?) << 16 | byte(part(1)?) << 8 | byte(part(2)?);
        let alpha = if has_alpha { part(3)? } else { alpha };
        return Some(Colour::from_rgba(rgb << 8 | 255).with_alpha(alpha));
    }
    let name: String = value.split_whitespace().collect();
    let digits = COLOURS.lines().find_map(|line| {
        let (found, digits) = line.split_once(' ')?;
        (found == name).then_some(digits)
    });
    let rgb = u32::from_str_radix(digits?, 16).ok()?;
    Some(Colour::from_rgba(rgb << 8 | 255).with_alpha(alpha))
}
