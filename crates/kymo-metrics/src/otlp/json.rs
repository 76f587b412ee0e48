//! OTLP as JSON. Integers of 64 bits may be numbers or texts.

use kymo_text::json::{Reader, Wrong};

use super::{Attribute, MOST_ATTRIBUTES, Metric, Output, Point, Shape, push};
use crate::{Number, Sink};

/// Parses a message.
///
/// # Errors
///
/// The offset where something is wrong, and what would have been right.
pub(super) fn parse<S: Sink>(
    text: &[u8],
    output: &mut Output<'_, S>,
) -> Result<(), (usize, &'static str)> {
    let mut reader = Reader::new(text);
    let parsed = reader
        .object(|reader, name| match name {
            b"resourceMetrics" => reader.array(|reader| resource(reader, output)),
            _ => skip(reader),
        })
        .and_then(|()| reader.end("the end of the message"));
    parsed.map_err(|wrong| (wrong.at, wrong.expected))
}

fn skip(reader: &mut Reader<'_>) -> Result<(), Wrong> {
    reader.raw().map(drop)
}

/// Reads a value later: where it begins. What follows it is next.
fn later(reader: &mut Reader<'_>, place: &mut Option<usize>) -> Result<(), Wrong> {
    reader.peek();
    *place = Some(reader.position());
    skip(reader)
}

/// Reads what was left for later, and goes on behind it.
fn go_back(
    reader: &mut Reader<'_>,
    place: Option<usize>,
    read: impl FnOnce(&mut Reader<'_>) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    let Some(place) = place else {
        return Ok(());
    };
    let end = reader.position();
    reader.seek(place);
    read(reader)?;
    reader.seek(end);
    Ok(())
}

fn resource<S: Sink>(reader: &mut Reader<'_>, output: &mut Output<'_, S>) -> Result<(), Wrong> {
    let mut attributes = Vec::new();
    let mut scopes = None;
    reader.object(|reader, name| match name {
        b"resource" => reader.object(|reader, name| match name {
            b"attributes" => read_attributes(reader, &mut attributes),
            _ => skip(reader),
        }),
        b"scopeMetrics" => later(reader, &mut scopes),
        _ => skip(reader),
    })?;
    output.set_resource(&attributes);
    go_back(reader, scopes, |reader| {
        reader.array(|reader| {
            reader.object(|reader, name| match name {
                b"metrics" => reader.array(|reader| metric(reader, output)),
                _ => skip(reader),
            })
        })
    })
}

fn metric<S: Sink>(reader: &mut Reader<'_>, output: &mut Output<'_, S>) -> Result<(), Wrong> {
    let mut metric = Metric::default();
    let mut points = None;
    reader.object(|reader, name| {
        metric.shape = match name {
            b"name" => {
                metric.name = reader.string()?.into_owned();
                return Ok(());
            }
            b"unit" => {
                metric.unit = reader.string()?.into_owned();
                return Ok(());
            }
            b"gauge" => Shape::Gauge,
            b"sum" => Shape::Sum,
            b"histogram" => Shape::Histogram,
            b"exponentialHistogram" => Shape::Exponential,
            b"summary" => Shape::Summary,
            _ => return skip(reader),
        };
        reader.object(|reader, name| match name {
            b"dataPoints" => later(reader, &mut points),
            b"aggregationTemporality" => {
                let text = text(reader)?;
                metric.is_delta = matches!(&text[..], b"1" | b"AGGREGATION_TEMPORALITY_DELTA");
                Ok(())
            }
            b"isMonotonic" => {
                metric.is_monotonic = reader.word()? == b"true";
                Ok(())
            }
            _ => skip(reader),
        })
    })?;
    go_back(reader, points, |reader| {
        reader.array(|reader| {
            let point = point(reader)?;
            output.point(&metric, &point);
            Ok(())
        })
    })
}

fn point(reader: &mut Reader<'_>) -> Result<Point, Wrong> {
    let mut point = Point::default();
    reader.object(|reader, name| {
        match name {
            b"attributes" => read_attributes(reader, &mut point.attributes)?,
            b"timeUnixNano" => point.time = number(reader)?,
            b"flags" => point.is_empty = number::<u64>(reader)? & 1 != 0,
            b"asDouble" => point.number = Some(Number::Float(float(reader)?)),
            b"asInt" => point.number = Some(Number::Signed(number(reader)?)),
            b"count" => point.count = number(reader)?,
            b"sum" => point.sum = Some(float(reader)?),
            b"min" => point.min = Some(float(reader)?),
            b"max" => point.max = Some(float(reader)?),
            b"bucketCounts" => reader.array(|reader| {
                push(&mut point.counts, number(reader)?);
                Ok(())
            })?,
            b"explicitBounds" => reader.array(|reader| {
                push(&mut point.bounds, float(reader)?);
                Ok(())
            })?,
            b"quantileValues" => reader.array(|reader| {
                let mut pair = (0.0, 0.0);
                reader.object(|reader, name| {
                    match name {
                        b"quantile" => pair.0 = float(reader)?,
                        b"value" => pair.1 = float(reader)?,
                        _ => skip(reader)?,
                    }
                    Ok(())
                })?;
                push(&mut point.quantiles, pair);
                Ok(())
            })?,
            _ => skip(reader)?,
        }
        Ok(())
    })?;
    Ok(point)
}

fn read_attributes(reader: &mut Reader<'_>, attributes: &mut Vec<Attribute>) -> Result<(), Wrong> {
    reader.array(|reader| {
        let (mut name, mut value) = (Vec::new(), Vec::new());
        reader.object(|reader, member| match member {
            b"key" => {
                name = reader.string()?.into_owned();
                Ok(())
            }
            b"value" => reader.object(|reader, kind| match kind {
                b"stringValue" | b"intValue" | b"doubleValue" | b"boolValue" => {
                    value = text(reader)?;
                    Ok(())
                }
                _ => skip(reader),
            }),
            _ => skip(reader),
        })?;
        if attributes.len() <= MOST_ATTRIBUTES {
            attributes.push((name, value));
        }
        Ok(())
    })
}

/// A text, or the text of a number, true or false.
fn text(reader: &mut Reader<'_>) -> Result<Vec<u8>, Wrong> {
    match reader.peek() {
        Some(b'"') => Ok(reader.string()?.into_owned()),
        _ => Ok(reader.word()?.to_vec()),
    }
}

fn number<T: std::str::FromStr>(reader: &mut Reader<'_>) -> Result<T, Wrong> {
    let place = reader.clone();
    let text = text(reader)?;
    let number = std::str::from_utf8(&text).ok();
    match number.and_then(|text| text.parse().ok()) {
        Some(number) => Ok(number),
        None => place.wrong("an integer"),
    }
}

fn float(reader: &mut Reader<'_>) -> Result<f64, Wrong> {
    let place = reader.clone();
    let text = text(reader)?;
    match crate::float(&text) {
        Some(number) => Ok(number),
        None => place.wrong("a number"),
    }
}
