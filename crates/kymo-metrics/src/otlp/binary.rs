//! OTLP as protocol buffers.

use super::{Attribute, MOST_ATTRIBUTES, Metric, Output, Point, Shape, push};
use crate::protobuf::{Damaged, Field, Message, fixed};
use crate::{Number, Sink};

/// The flag of a point that has no value.
const NO_VALUE: u64 = 1;

/// Parses a message.
///
/// # Errors
///
/// The offset of the part that is damaged.
pub(super) fn parse<S: Sink>(bytes: &[u8], output: &mut Output<'_, S>) -> Result<(), usize> {
    let mut message = Message::new(bytes);
    loop {
        let offset = message.position();
        let parsed = message.next().and_then(|next| match next {
            Some((1, field)) => resource(field.bytes(), output).map(|()| true),
            Some(_) => Ok(true),
            None => Ok(false),
        });
        match parsed {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(Damaged) => return Err(offset),
        }
    }
}

/// Calls `take` for each field of a message.
fn each<'a>(
    bytes: &'a [u8],
    mut take: impl FnMut(u32, Field<'a>) -> Result<(), Damaged>,
) -> Result<(), Damaged> {
    let mut message = Message::new(bytes);
    while let Some((number, field)) = message.next()? {
        take(number, field)?;
    }
    Ok(())
}

fn resource<S: Sink>(bytes: &[u8], output: &mut Output<'_, S>) -> Result<(), Damaged> {
    let mut attributes = Vec::new();
    each(bytes, |number, field| match number {
        1 => each(field.bytes(), |number, field| match number {
            1 => add_attribute(field.bytes(), &mut attributes),
            _ => Ok(()),
        }),
        _ => Ok(()),
    })?;
    output.set_resource(&attributes);
    each(bytes, |number, field| match number {
        2 => each(field.bytes(), |number, field| match number {
            2 => metric(field.bytes(), output),
            _ => Ok(()),
        }),
        _ => Ok(()),
    })
}

fn metric<S: Sink>(bytes: &[u8], output: &mut Output<'_, S>) -> Result<(), Damaged> {
    let mut metric = Metric::default();
    let mut data = &b""[..];
    each(bytes, |number, field| {
        let shape = match number {
            1 => {
                metric.name = field.bytes().to_vec();
                return Ok(());
            }
            3 => {
                metric.unit = field.bytes().to_vec();
                return Ok(());
            }
            5 => Shape::Gauge,
            7 => Shape::Sum,
            9 => Shape::Histogram,
            10 => Shape::Exponential,
            11 => Shape::Summary,
            _ => return Ok(()),
        };
        (metric.shape, data) = (shape, field.bytes());
        Ok(())
    })?;
    each(data, |number, field| {
        match (number, metric.shape) {
            (2, Shape::Sum | Shape::Histogram | Shape::Exponential) => {
                metric.is_delta = field.integer() == 1;
            }
            (3, Shape::Sum) => metric.is_monotonic = field.integer() != 0,
            _ => {}
        }
        Ok(())
    })?;
    each(data, |number, field| {
        if number == 1 {
            let point = point(field.bytes(), metric.shape)?;
            output.point(&metric, &point);
        }
        Ok(())
    })
}

fn point(bytes: &[u8], shape: Shape) -> Result<Point, Damaged> {
    let mut point = Point::default();
    each(bytes, |number, field| {
        match (shape, number) {
            (_, 3) => point.time = field.integer(),
            (Shape::Gauge | Shape::Sum | Shape::Summary, 7)
            | (Shape::Histogram, 9)
            | (Shape::Exponential, 1) => add_attribute(field.bytes(), &mut point.attributes)?,
            (Shape::Gauge | Shape::Sum | Shape::Summary, 8)
            | (Shape::Histogram | Shape::Exponential, 10) => {
                point.is_empty = field.integer() & NO_VALUE != 0;
            }
            (Shape::Gauge | Shape::Sum, 4) => {
                point.number = Some(Number::Float(field.double()));
            }
            (Shape::Gauge | Shape::Sum, 6) => {
                point.number = Some(Number::Signed(field.integer() as i64));
            }
            (Shape::Histogram | Shape::Exponential | Shape::Summary, 4) => {
                point.count = field.integer();
            }
            (Shape::Histogram | Shape::Exponential | Shape::Summary, 5) => {
                point.sum = Some(field.double());
            }
            (Shape::Histogram, 6) => fixed(field, |count| push(&mut point.counts, count))?,
            (Shape::Histogram, 7) => {
                fixed(field, |bits| push(&mut point.bounds, f64::from_bits(bits)))?;
            }
            (Shape::Histogram, 11) | (Shape::Exponential, 12) => {
                point.min = Some(field.double());
            }
            (Shape::Histogram, 12) | (Shape::Exponential, 13) => {
                point.max = Some(field.double());
            }
            (Shape::Summary, 6) => {
                let mut pair = (0.0, 0.0);
                each(field.bytes(), |number, field| {
                    match number {
                        1 => pair.0 = field.double(),
                        2 => pair.1 = field.double(),
                        _ => {}
                    }
                    Ok(())
                })?;
                push(&mut point.quantiles, pair);
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(point)
}

/// Adds an attribute whose value is a text, a number or a boolean.
fn add_attribute(bytes: &[u8], attributes: &mut Vec<Attribute>) -> Result<(), Damaged> {
    let (mut name, mut value) = (&b""[..], Vec::new());
    each(bytes, |number, field| {
        match number {
            1 => name = field.bytes(),
            2 => each(field.bytes(), |number, field| {
                match number {
                    1 => value = field.bytes().to_vec(),
                    2 => value = (field.integer() != 0).to_string().into_bytes(),
                    3 => value = (field.integer() as i64).to_string().into_bytes(),
                    4 => value = field.double().to_string().into_bytes(),
                    _ => {}
                }
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    })?;
    if attributes.len() <= MOST_ATTRIBUTES {
        attributes.push((name.to_vec(), value));
    }
    Ok(())
}
