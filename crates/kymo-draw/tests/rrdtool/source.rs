//! cairo's SVG as a display list.

use kymo_draw::{
    Cap, Colour, Font, Fonts, Item, Join, Paint, Path, Picture, Point, RenderOptions, Segment,
    Stroke, Text,
};
use std::collections::HashMap;

/// What a symbol shows.
#[derive(Clone, Copy)]
struct Shown {
    character: char,
    size: f64,
    angle: f64,
}

fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let begin = line.find(&format!(" {name}=\""))? + name.len() + 3;
    line[begin..].split('"').next()
}

fn property<'a>(style: &'a str, name: &str) -> Option<&'a str> {
    style
        .split(';')
        .find_map(|part| part.trim().strip_prefix(name)?.strip_prefix(':'))
}

fn numbers(text: &str) -> Vec<f64> {
    text.split([' ', ',', '(', ')', '%'])
        .filter_map(|word| word.parse().ok())
        .collect()
}

fn colour(style: &str, name: &str) -> Colour {
    let rgb = numbers(property(style, name).unwrap().trim_start_matches("rgb"));
    let alpha = property(style, &format!("{name}-opacity"))
        .unwrap()
        .parse()
        .unwrap();
    Colour::new(rgb[0] / 100.0, rgb[1] / 100.0, rgb[2] / 100.0, alpha)
}

fn path(steps: &str) -> Path {
    let mut path = Path::new();
    let mut words = steps.split(' ');
    while let Some(word) = words.next() {
        let mut point = || {
            let mut number = || words.next().unwrap().parse().unwrap();
            Point::new(number(), number())
        };
        match word {
            "M" => path.segments.push(Segment::Move(point())),
            "L" => path.segments.push(Segment::Line(point())),
            "Z" => path.close(),
            "" => {}
            other => panic!("unknown step {other}"),
        }
    }
    path
}

/// The outline of each symbol with its character, found by rendering all of them.
fn calibration(fonts: &Fonts, zoom: f64) -> HashMap<String, Shown> {
    let mut found = HashMap::new();
    let characters: String = (' '..='~').collect();
    for (size, angle) in [
        (5.5, 0.0),
        (5.5, -90.0),
        (7.0, 0.0),
        (8.0, 0.0),
        (8.0, 90.0),
        (9.0, 0.0),
    ] {
        let mut picture = Picture::new(1, 1);
        let mut text = Text::new(characters.clone(), 0.0, 0.0, Font::new(size), Colour::BLACK);
        text.angle = angle;
        picture.items.push(Item::Text(text));
        let svg = kymo_draw::svg(
            &picture,
            fonts,
            &RenderOptions {
                zoom,
                ..RenderOptions::default()
            },
        )
        .unwrap();
        let symbols = symbols(std::str::from_utf8(&svg).unwrap());
        for (number, character) in characters.chars().enumerate() {
            let outline = symbols[&format!("glyph0-{}", number + 1)].to_owned();
            found.insert(
                outline,
                Shown {
                    character,
                    size,
                    angle,
                },
            );
        }
    }
    found
}

fn symbols(svg: &str) -> HashMap<String, &str> {
    let mut lines = svg.lines();
    let mut found = HashMap::new();
    while let Some(line) = lines.next() {
        if line.starts_with("<symbol") {
            found.insert(
                attribute(line, "id").unwrap().to_owned(),
                attribute(lines.next().unwrap(), "d").unwrap(),
            );
        }
    }
    found
}

/// The items of cairo's SVG in device pixels; its size is left to the caller.
pub(crate) fn picture(svg: &str, fonts: &Fonts, zoom: f64) -> Picture {
    let known = calibration(fonts, zoom);
    let symbols = symbols(svg);
    let mut gradients: HashMap<String, Paint> = HashMap::new();
    let mut clips: HashMap<String, Path> = HashMap::new();
    let mut picture = Picture::new(0, 0);
    let mut lines = svg.lines();
    let mut text_colour = Colour::BLACK;
    let mut groups = Vec::new();
    while let Some(line) = lines.next() {
        let style = attribute(line, "style").unwrap_or("");
        if line.starts_with("<symbol") {
            lines.next();
        } else if line.starts_with("<clipPath") {
            let steps = attribute(lines.next().unwrap(), "d").unwrap();
            clips.insert(attribute(line, "id").unwrap().to_owned(), path(steps));
        } else if line.starts_with("<linearGradient") {
            let [x1, y1, x2, y2] = ["x1", "y1", "x2", "y2"]
                .map(|name| attribute(line, name).unwrap().parse().unwrap());
            let mut stops = Vec::new();
            for line in lines.by_ref().take_while(|line| line.starts_with("<stop")) {
                let style = attribute(line, "style")
                    .unwrap()
                    .replace("stop-opacity", "stop-color-opacity");
                stops.push((
                    attribute(line, "offset").unwrap().parse().unwrap(),
                    colour(&style, "stop-color"),
                ));
            }
            let paint = Paint::Linear {
                from: Point::new(x1, y1),
                to: Point::new(x2, y2),
                stops,
            };
            gradients.insert(attribute(line, "id").unwrap().to_owned(), paint);
        } else if line.starts_with("<g") {
            let clip =
                attribute(line, "clip-path").map(|url| clips[&url[5..url.len() - 1]].clone());
            if style.starts_with("fill") {
                text_colour = colour(style, "fill");
            }
            groups.push(clip.is_some());
            picture.items.extend(clip.map(Item::Clip));
        } else if line.starts_with("</g>") {
            if groups.pop() == Some(true) {
                picture.items.push(Item::Unclip);
            }
        } else if line.starts_with("<rect") {
            let [width, height] =
                ["width", "height"].map(|name| attribute(line, name).unwrap().parse().unwrap());
            picture.items.push(Item::Fill {
                path: Path::rectangle(0.0, 0.0, width, height),
                paint: Paint::Solid(colour(style, "fill")),
            });
        } else if line.starts_with("  <use") {
            let outline = symbols[&attribute(line, "xlink:href").unwrap()[1..]];
            let shown = known
                .get(outline)
                .unwrap_or_else(|| panic!("{line} has an outline that kymo does not have"));
            let [x, y]: [f64; 2] =
                ["x", "y"].map(|name| attribute(line, name).unwrap().parse().unwrap());
            let ascent = fonts.metrics(&Font::new(shown.size * zoom)).ascent;
            let (sin, cos) = shown.angle.to_radians().sin_cos();
            // Glyphs are at whole pixels in PNG; here each is a text, and the origin of a text is
            // rounded to a 256th before.
            let (x, y) = ((x + 0.5).floor(), (y + 0.5).floor());
            let (x, y) = (x - (sin * ascent).round(), y - (cos * ascent).round());
            let mut text = Text::new(
                shown.character,
                x,
                y,
                Font::new(shown.size * zoom),
                text_colour,
            );
            text.angle = shown.angle;
            picture.items.push(Item::Text(text));
        } else if line.starts_with("<path") {
            let mut path = path(attribute(line, "d").unwrap());
            if style.starts_with("fill:none") {
                let scale = attribute(line, "transform").map_or(1.0, |matrix| {
                    numbers(matrix.trim_start_matches("matrix"))[0]
                });
                for segment in &mut path.segments {
                    if let Segment::Move(to) | Segment::Line(to) = segment {
                        *to = Point::new(to.x * scale, to.y * scale);
                    }
                }
                let round = property(style, "stroke-linecap") == Some("round");
                let number =
                    |name: &str| property(style, name).map_or(0.0, |text| text.parse().unwrap());
                picture.items.push(Item::Stroke {
                    path,
                    colour: colour(style, "stroke"),
                    style: Stroke {
                        width: number("stroke-width") * scale,
                        cap: if round { Cap::Round } else { Cap::Butt },
                        join: if round { Join::Round } else { Join::Miter },
                        dashes: property(style, "stroke-dasharray").map_or(Vec::new(), |text| {
                            numbers(text).iter().map(|length| length * scale).collect()
                        }),
                        dash_offset: number("stroke-dashoffset") * scale,
                    },
                });
            } else {
                let paint = match property(style, "fill").unwrap().strip_prefix("url(#") {
                    Some(url) => gradients[url.trim_end_matches(')')].clone(),
                    None => Paint::Solid(colour(style, "fill")),
                };
                picture.items.push(Item::Fill { path, paint });
            }
        }
    }
    picture
}
