//! What is drawn and written: lines, areas, rules, texts.

use kymo_rrd::model::ArchiveKind;
use kymo_rrd::text::numbers;

use super::colour::Colour;
use super::format::NumberFormat;
use super::script::Script;
use super::words::Word;
use crate::Failure;
use crate::path::shown;

/// What an element shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shown {
    Variable(usize),
    Number(f64),
}

/// An element of a graph, in the order of the command line.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) kind: Kind,
    /// The text below the graph, with escapes; empty if there is none.
    pub(crate) legend: String,
}

/// What an element is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Line {
        width: f64,
        dash: Option<Dash>,
        curve: Curve,
    },
    Area {
        /// The colour at the other end, and the height of the gradient in pixels.
        gradient: Option<(Colour, f64)>,
        curve: Curve,
    },
    Tick {
        fraction: f64,
        curve: Curve,
    },
    HorizontalRule {
        value: Shown,
        colour: Option<Colour>,
        dash: Option<Dash>,
    },
    VerticalRule {
        time: Shown,
        colour: Option<Colour>,
        dash: Option<Dash>,
    },
    /// PRINT writes to the output, GPRINT below the graph.
    Print {
        text: Text,
        graphic: bool,
    },
    Comment,
    Align(Alignment),
    /// A column of a table.
    Export {
        variable: usize,
    },
}

/// What lines, areas and ticks have in common.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) shown: Shown,
    /// `None`: not drawn, but scaled and stacked.
    pub(crate) colour: Option<Colour>,
    /// Whether it stands on the element before.
    pub(crate) stack: bool,
    /// Whether the y axis need not cover it.
    pub(crate) skip_scale: bool,
    /// Whether it is written as STACK, and so called in tables.
    pub(crate) is_stack: bool,
}

/// Lengths of dashes and gaps in pixels, and where in them a line begins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dash {
    pub(crate) lengths: Vec<f64>,
    pub(crate) offset: f64,
}

/// How texts below the graph are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alignment {
    Left,
    Right,
    Justified,
    Center,
}

impl Alignment {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
            Self::Justified => "justified",
            Self::Center => "center",
        }
    }
}

/// A value as text.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) variable: usize,
    /// How a series becomes one value; `None` if the variable is one.
    pub(crate) function: Option<&'static str>,
    pub(crate) form: Form,
}

/// What a text shows.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    Number(NumberFormat),
    /// The time of the value.
    Date(String),
    /// The value, as seconds since 1970.
    Timestamp(String),
    /// The value, as milliseconds.
    Duration(String),
}

impl Kind {
    /// Lines, areas and ticks.
    pub(crate) fn curve(&self) -> Option<&Curve> {
        match self {
            Self::Line { curve, .. } | Self::Area { curve, .. } | Self::Tick { curve, .. } => {
                Some(curve)
            }
            _ => None,
        }
    }

    /// The colour of the box of a legend; `None` for texts without a box.
    pub(crate) fn colour(&self) -> Option<Colour> {
        match self {
            Self::HorizontalRule { colour, .. } | Self::VerticalRule { colour, .. } => {
                Some(colour.unwrap_or(Colour::NONE))
            }
            kind => kind
                .curve()
                .map(|curve| curve.colour.unwrap_or(Colour::NONE)),
        }
    }

    pub(crate) fn dash(&self) -> Option<&Dash> {
        match self {
            Self::Line { dash, .. }
            | Self::HorizontalRule { dash, .. }
            | Self::VerticalRule { dash, .. } => dash.as_ref(),
            _ => None,
        }
    }
}

/// The commands of elements.
enum Command {
    Line(f64),
    Area,
    Stack,
    Tick,
    HorizontalRule,
    VerticalRule,
    Print { graphic: bool },
    Comment,
    Align,
    Export,
}

impl Command {
    fn read(word: &Word<'_>) -> Result<Option<Self>, Failure> {
        Ok(Some(match word.command {
            b"AREA" => Self::Area,
            b"STACK" => Self::Stack,
            b"TICK" => Self::Tick,
            b"HRULE" => Self::HorizontalRule,
            b"VRULE" => Self::VerticalRule,
            b"PRINT" => Self::Print { graphic: false },
            b"GPRINT" => Self::Print { graphic: true },
            b"COMMENT" => Self::Comment,
            b"TEXTALIGN" => Self::Align,
            b"XPORT" => Self::Export,
            [b'L', b'I', b'N', b'E', width @ ..] => Self::Line(line_width(width)?),
            _ => return Ok(None),
        }))
    }
}

fn line_width(text: &[u8]) -> Result<f64, Failure> {
    if text.is_empty() {
        return Ok(1.0);
    }
    let width = numbers::whole(text).ok();
    width
        .filter(|width| width.is_finite() && *width >= 0.0)
        .ok_or_else(|| Failure::new(format!("Bad line width: {}", shown(text))))
}

impl Script {
    /// Gives the lines and areas that have no colour those of a palette, in turn.
    pub(super) fn colour(&mut self, palette: &[Colour]) {
        let curves = self
            .elements
            .iter_mut()
            .filter_map(|element| match &mut element.kind {
                Kind::Line { curve, .. } | Kind::Area { curve, .. } => Some(curve),
                _ => None,
            });
        let without = curves.filter(|curve| curve.colour.is_none());
        for (curve, colour) in without.zip(palette.iter().cycle()) {
            curve.colour = Some(*colour);
        }
    }

    /// Reads a word that draws or writes. `false` if it is not one.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn element(&mut self, word: &mut Word<'_>) -> Result<bool, Failure> {
        let Some(command) = Command::read(word)? else {
            return Ok(false);
        };
        let mut legend = String::new();
        let mut take_legend = |word: &mut Word<'_>| {
            let found = word.named("label").or_else(|| word.next("legend"));
            legend = found
                .map(|text| shown(&text).into_owned())
                .unwrap_or_default();
        };
        let kind = match command {
            Command::Comment => {
                take_legend(word);
                Kind::Comment
            }
            Command::Align => Kind::Align(alignment(word)?),
            Command::Export => {
                let variable = self.exported(word)?;
                take_legend(word);
                Kind::Export { variable }
            }
            Command::Print { graphic } => Kind::Print {
                text: self.text(word)?,
                graphic,
            },
            Command::HorizontalRule | Command::VerticalRule => {
                let dash = dash(word)?;
                let Painted { shown, colour, .. } = self.painted(word)?;
                if let Shown::Variable(variable) = shown
                    && !self.is_value(variable)
                {
                    let name = word.shown();
                    let message =
                        format!("Using vname of wrong type in line {name}: a rule needs a VDEF");
                    return Err(Failure::new(message));
                }
                take_legend(word);
                match command {
                    Command::HorizontalRule => Kind::HorizontalRule {
                        value: shown,
                        colour,
                        dash,
                    },
                    _ => Kind::VerticalRule {
                        time: shown,
                        colour,
                        dash,
                    },
                }
            }
            Command::Tick => {
                let Painted { shown, colour, .. } = self.painted(word)?;
                let fraction = word
                    .next("fraction")
                    .ok_or_else(|| Failure::new("No positional FRACTION"))?;
                let fraction = match self.find(&fraction) {
                    Some(_) => 0.5,
                    None => number(&fraction)?,
                };
                take_legend(word);
                let curve = Curve {
                    shown,
                    colour,
                    stack: false,
                    skip_scale: false,
                    is_stack: false,
                };
                Kind::Tick { fraction, curve }
            }
            Command::Line(_) | Command::Area | Command::Stack => {
                let dash = dash(word)?;
                let stack = word.flag("STACK");
                let skip_scale = word.flag("skipscale");
                let is_stack = matches!(command, Command::Stack);
                let own_width = word.named("linewidth").map(|width| line_width(&width));
                let own_width = own_width.transpose()?;
                let height = word.named("gradheight").map(|height| number(&height));
                let height = height.transpose()?.unwrap_or(50.0);
                let Painted {
                    shown,
                    colour,
                    second,
                } = self.painted(word)?;
                take_legend(word);
                let curve = Curve {
                    shown,
                    colour,
                    stack: stack || is_stack,
                    skip_scale,
                    is_stack,
                };
                let gradient = second.map(|colour| (colour, height));
                // STACK draws as the element before does.
                let before = || {
                    let mut kinds = self.elements.iter().rev().map(|element| &element.kind);
                    let drawn = kinds.find_map(|kind| match kind {
                        Kind::Line { width, .. } => Some(Some(*width)),
                        Kind::Area { .. } => Some(None),
                        _ => None,
                    });
                    let none = || format!("No previous LINE or AREA found for {}", word.shown());
                    drawn.ok_or_else(|| Failure::new(none()))
                };
                let width = match command {
                    Command::Line(width) => Some(width),
                    Command::Stack => before()?,
                    _ => None,
                };
                match width {
                    Some(width) => Kind::Line {
                        width: own_width.unwrap_or(width),
                        dash,
                        curve,
                    },
                    None => Kind::Area { gradient, curve },
                }
            }
        };
        self.elements.push(Element { kind, legend });
        Ok(true)
    }

    /// `VALUE[#COLOUR[#COLOUR]]`
    fn painted(&self, word: &mut Word<'_>) -> Result<Painted, Failure> {
        let named = |word: &mut Word<'_>, names: [&str; 2]| {
            let found = names.iter().find_map(|name| word.named(name));
            let colour = found.map(|text| {
                let text = text.strip_prefix(b"#").unwrap_or(&text);
                Colour::parse(text).map_err(|error| word.error(error))
            });
            colour.transpose()
        };
        let mut colour = named(word, ["color", "colour"])?;
        let mut second = named(word, ["color2", "colour2"])?;
        let text = ["vname", "value", "time"]
            .iter()
            .find_map(|name| word.named(name));
        let text = text.or_else(|| word.next("vname"));
        let text = text.ok_or_else(|| Failure::new("No positional VNAME"))?;
        let mut parts = text.split(|byte| *byte == b'#');
        let value = parts.next().unwrap_or_default();
        for place in [&mut colour, &mut second] {
            if let Some(text) = parts.next().filter(|text| !text.is_empty()) {
                *place = Some(Colour::parse(text).map_err(|error| word.error(error))?);
            }
        }
        if let Some(text) = parts.next() {
            return Err(word.error(format!("unexpected third colour '#{}'", shown(text))));
        }
        let value = match self.find(value) {
            Some(variable) => Shown::Variable(variable),
            None => Shown::Number(numbers::whole(value).map_err(|_| {
                Failure::new(format!("{} is not a vname nor a number", shown(value)))
            })?),
        };
        Ok(Painted {
            shown: value,
            colour,
            second,
        })
    }

    /// `VARIABLE[:FUNCTION]:FORMAT[:strftime|:valstrftime|:valstrfduration]`
    fn text(&self, word: &mut Word<'_>) -> Result<Text, Failure> {
        let date = word.flag("strftime");
        let named = word.named("vformatter");
        let named = |name: &[u8]| named.as_deref() == Some(name);
        let timestamp = word.flag("valstrftime") || named(b"timestamp");
        let duration = word.flag("valstrfduration") || named(b"duration");
        let name = word.next("vname").unwrap_or_default();
        let variable = self
            .find(&name)
            .ok_or_else(|| Failure::new(format!("undefined vname {}", shown(&name))))?;
        let function = match self.is_value(variable) {
            true => None,
            false => {
                let function = word.next("cf");
                let function = function.ok_or_else(|| Failure::new("No positional CF/FORMAT"))?;
                let known = ArchiveKind::known(&function);
                let unknown = || format!("bad CF for DEF/CDEF: {}", shown(&function));
                Some(known.ok_or_else(|| Failure::new(unknown()))?)
            }
        };
        let format = word.next("format");
        let format = match (format, timestamp || duration) {
            (Some(format), _) => shown(&format).into_owned(),
            (None, true) => String::new(),
            (None, false) => return Err(Failure::new("No positional CF/FORMAT")),
        };
        let or = |default: &str| match format.is_empty() {
            true => default.to_owned(),
            false => format.clone(),
        };
        let form = match () {
            () if date => Form::Date(format.clone()),
            () if timestamp => Form::Timestamp(or(super::format::TIMESTAMP)),
            () if duration => Form::Duration(or(super::format::DURATION)),
            () => Form::Number(NumberFormat::parse(&format)?),
        };
        Ok(Text {
            variable,
            function,
            form,
        })
    }
}

/// What is drawn in which colours.
struct Painted {
    shown: Shown,
    colour: Option<Colour>,
    second: Option<Colour>,
}

fn alignment(word: &mut Word<'_>) -> Result<Alignment, Failure> {
    let name = word.next("align").unwrap_or_default();
    Ok(match &*name {
        b"left" => Alignment::Left,
        b"right" => Alignment::Right,
        b"justified" => Alignment::Justified,
        b"center" => Alignment::Center,
        name => {
            let message = format!("Unknown alignment type '{}'", shown(name));
            return Err(Failure::new(message));
        }
    })
}

/// `dashes[=ON[,OFF]...][:dash-offset=OFFSET]`
fn dash(word: &mut Word<'_>) -> Result<Option<Dash>, Failure> {
    let offset = word.named("dash-offset").map(|offset| number(&offset));
    let offset = offset.transpose()?.unwrap_or_default();
    let lengths = match word.named("dashes") {
        Some(list) => {
            let lengths = list.split(|byte| *byte == b',').map(number);
            let lengths = lengths.collect::<Result<Vec<_>, _>>()?;
            let drawable = lengths.iter().all(|length| *length >= 0.0);
            if !drawable || lengths.iter().all(|length| *length == 0.0) {
                let problem = format!("no dashes of lengths '{}'", shown(&list));
                return Err(word.error(problem));
            }
            lengths
        }
        None if word.flag("dashes") => vec![5.0, 5.0],
        None => return Ok(None),
    };
    Ok(Some(Dash { lengths, offset }))
}

fn number(text: &[u8]) -> Result<f64, Failure> {
    let number = numbers::whole(text)
        .ok()
        .filter(|number| number.is_finite());
    number.ok_or_else(|| Failure::new(format!("Could not parse number: {}", shown(text))))
}
