//! Comparing SVG as cairo writes it.

use std::collections::HashMap;

/// Places differ by no more, in pixels.
const MOST: f64 = 0.01;

/// A shape, or a character of a text.
#[derive(Debug)]
struct Shape {
    /// What it is and how it is painted.
    style: String,
    /// Letters of the commands of a path.
    commands: String,
    numbers: Vec<f64>,
}

/// Compares two pictures, shape by shape. Clips are left out, since cairo makes them as small as what is drawn,
/// and so are texts and backgrounds that cannot be seen.
pub(crate) fn compare(expected: &str, found: &str) -> Result<(), String> {
    let (expected, found) = (visible(expected), visible(found));
    for (place, (expected, found)) in expected.iter().zip(&found).enumerate() {
        let places = expected.numbers.iter().zip(&found.numbers);
        let is_near = places.clone().all(|(a, b)| (a - b).abs() <= MOST);
        let is_same = expected.style == found.style
            && expected.commands == found.commands
            && expected.numbers.len() == found.numbers.len();
        if !is_same || !is_near {
            return Err(format!(
                "shape {place}: expected {}, found {}",
                short(expected),
                short(found)
            ));
        }
    }
    match expected.len() == found.len() {
        true => Ok(()),
        false => Err(format!(
            "expected {} shapes, found {}",
            expected.len(),
            found.len()
        )),
    }
}

fn short(shape: &Shape) -> String {
    format!("{shape:?}").chars().take(200).collect()
}

/// The shapes that can be seen.
fn visible(svg: &str) -> Vec<Shape> {
    let page = svg.split_once("viewBox=\"").map_or("", |(_, rest)| rest);
    let page = numbers(page.split('"').next().unwrap_or_default());
    let (width, height) = (
        page.get(2).copied().unwrap_or(0.0),
        page.get(3).copied().unwrap_or(0.0),
    );
    let mut shapes = shapes(svg);
    shapes.retain(|shape| {
        // What is half outside is written or not, as its ink reaches.
        !shape.style.starts_with("character")
            || (-3.0..width + 3.0).contains(&shape.numbers[0])
                && (-3.0..height).contains(&shape.numbers[1])
    });
    // What is opaque and covers the page hides what is below it.
    let covers = |shape: &Shape| {
        let each = |side: f64, from: usize| {
            shape
                .numbers
                .iter()
                .skip(from)
                .step_by(2)
                .all(|at| *at == 0.0 || *at == side)
        };
        shape.style.contains("fill-opacity:1;")
            && shape.numbers.len() == 10
            && each(width, 0)
            && each(height, 1)
    };
    let hidden = shapes.iter().take(3).rposition(covers).unwrap_or(0);
    shapes.drain(..hidden);
    if let Some(first) = shapes.first_mut().filter(|first| covers(first)) {
        first.numbers = vec![0.0, 0.0, width, height];
        first.commands = String::new();
    }
    shapes
}

fn shapes(svg: &str) -> Vec<Shape> {
    let (definitions, body) = svg.rsplit_once("</defs>").unwrap_or(("", svg));
    let symbols = named(definitions, "<symbol", "</symbol>");
    let gradients = named(definitions, "<linearGradient", "</linearGradient>");
    let mut shapes = Vec::new();
    for tag in body.split('<').skip(1) {
        let name = tag.split([' ', '>']).next().unwrap_or_default();
        let value = |name: &str| attribute(tag, name).unwrap_or_default();
        let number = |name: &str| value(name).parse().unwrap_or(0.0);
        match name {
            "use" => {
                let symbol = symbols.get(value("xlink:href").trim_start_matches('#'));
                let outline = symbol.and_then(|symbol| attribute(symbol, "d"));
                // The beginning of the outline identifies the character.
                let begin = numbers(outline.unwrap_or_default());
                let begin: Vec<String> =
                    begin.iter().take(2).map(|at| format!("{at:.1}")).collect();
                shapes.push(Shape {
                    style: format!("character {}", begin.join(" ")),
                    commands: String::new(),
                    numbers: vec![number("x"), number("y")],
                });
            }
            "rect" => {
                let (width, height) = (number("width"), number("height"));
                shapes.push(Shape {
                    style: value("style").replace("stroke:none;", ""),
                    commands: "M L L L Z M".to_owned(),
                    numbers: vec![0.0, 0.0, 0.0, height, width, height, width, 0.0, 0.0, 0.0],
                });
            }
            "path" => shapes.push(path(tag, &gradients)),
            _ => {}
        }
    }
    shapes
}

fn path(tag: &str, gradients: &HashMap<&str, &str>) -> Shape {
    let value = |name: &str| attribute(tag, name).unwrap_or_default();
    let outline = value("d");
    let commands: Vec<&str> = outline
        .split(' ')
        .filter(|word| word.len() == 1 && word.starts_with(char::is_alphabetic))
        .collect();
    let mut numbers = numbers(outline);
    // cairo gives lines of zoomed pictures a matrix.
    let scale = scale_of(value("transform"));
    numbers.iter_mut().for_each(|number| *number *= scale);
    let mut style = Vec::new();
    for part in value("style").trim().split(';') {
        let (name, value) = part.split_once(':').unwrap_or((part, ""));
        match name {
            "stroke-width" | "stroke-dasharray" => {
                let lengths = self::numbers(&value.replace(',', " "));
                let lengths: Vec<String> = lengths
                    .iter()
                    .map(|length| format!("{:.3}", length * scale))
                    .collect();
                style.push(format!("{name}:{}", lengths.join(",")));
            }
            "stroke" if value == "none" => {}
            "fill" if value.starts_with("url(") => {
                let id = value.trim_start_matches("url(#").trim_end_matches(')');
                let gradient = gradients.get(id).copied().unwrap_or_default();
                let colours: Vec<&str> = gradient
                    .split("<stop")
                    .skip(1)
                    .filter_map(|stop| attribute(stop, "style"))
                    .collect();
                style.push(colours.join(" "));
                // At a zoom, cairo gives gradients a matrix, too.
                let scale = scale_of(attribute(gradient, "gradientTransform").unwrap_or_default());
                let place = |name| attribute(gradient, name).and_then(|at| at.parse::<f64>().ok());
                let places = ["y1", "y2"].map(|name| place(name).map_or(f64::NAN, |at| at * scale));
                // A step in height where the gradient begins is seen as a difference of the path, too.
                numbers.push(places[1] - places[0]);
            }
            "" => {}
            _ => style.push(part.to_owned()),
        }
    }
    let mut style = style.join(";");
    style.push(';');
    Shape {
        style: style.replace("fill-rule:nonzero;", ""),
        commands: commands.join(" "),
        numbers,
    }
}

/// The factor of a matrix that only scales; 1 if there is none.
fn scale_of(matrix: &str) -> f64 {
    let first = matrix.split(['(', ',']).nth(1);
    first.and_then(|scale| scale.parse().ok()).unwrap_or(1.0)
}

/// Definitions by their ids, up to where each ends.
fn named<'a>(text: &'a str, begin: &str, end: &str) -> HashMap<&'a str, &'a str> {
    let parts = text.split(begin).skip(1);
    let parts = parts.map(|part| part.split(end).next().unwrap_or_default());
    parts
        .filter_map(|part| Some((attribute(part, "id")?, part)))
        .collect()
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) = tag.split_once(&format!(" {name}=\""))?;
    value.split('"').next()
}

fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}
