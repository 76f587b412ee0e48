//! Encodes a struct from the values of its members.

use kymo_machine::layout::{CType, Layout, Struct};
use kymo_machine::{Machine, Number, Width, integer};
use kymo_text::diagnostic::Diagnostic;
use serde_json::Value;

use super::layout::scalar_name;

/// What bytes hold that nothing was written to.
const UNTOUCHED: u8 = 0x88;

/// Values of members, by their names.
pub(super) struct Values {
    /// The name of the file they are from.
    pub(super) name: String,
    members: serde_json::Map<String, Value>,
}

impl Values {
    /// Reads a JSON object. Each of its members must be one of some struct.
    pub(super) fn parse(name: &str, text: &str, structs: &[Struct]) -> Result<Self, Diagnostic> {
        let value = serde_json::from_str(text).map_err(|error| {
            let at = offset(text, error.line(), error.column());
            let said = error.to_string();
            let what = said.split(" at line ").next().unwrap_or_default();
            Diagnostic::error("this is not JSON").at(at..at + 1, what)
        })?;
        let Value::Object(members) = value else {
            let begin = text.len() - text.trim_start().len();
            return Err(Diagnostic::error("unexpected JSON value").at(
                begin..begin + 1,
                "expected an object: the names of members and their values",
            ));
        };
        let is_known = |name: &str| {
            let mut all = structs.iter().flat_map(|one| &one.members);
            all.any(|member| member.name == name)
        };
        if let Some(unknown) = members.keys().find(|name| !is_known(name)) {
            return Err(Diagnostic::error(format!(
                "no struct has a member `{unknown}`"
            )));
        }
        Ok(Self {
            name: name.to_string(),
            members,
        })
    }
}

/// The place of a line and a column, both from 1, in bytes.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before = text.split_inclusive('\n').take(line.saturating_sub(1));
    before.map(str::len).sum::<usize>() + column.saturating_sub(1)
}

/// The bytes of a struct.
///
/// # Errors
///
/// Where a value does not fit its member: which one, what was found, and what was expected.
pub(super) fn bytes(
    description: &Struct,
    layout: &Layout,
    machine: &Machine,
    values: &Values,
) -> Result<Vec<u8>, String> {
    let size = usize::try_from(layout.size).map_err(|error| error.to_string())?;
    let mut image = Image {
        machine,
        bytes: vec![UNTOUCHED; size],
        path: String::new(),
    };
    image.members(description, layout, 0, &values.members)?;
    Ok(image.bytes)
}

/// Bytes in the making.
struct Image<'a> {
    machine: &'a Machine,
    bytes: Vec<u8>,
    /// The member that is being written, as C would call it.
    path: String,
}

/// Where something is written: from where on, how many bytes, and how structs in it are laid out.
#[derive(Clone, Copy)]
struct Target<'a> {
    offset: u64,
    size: u64,
    nested: Option<&'a Layout>,
}

impl Image<'_> {
    /// Writes the members of a struct that begins at `start`.
    fn members(
        &mut self,
        description: &Struct,
        layout: &Layout,
        start: u64,
        values: &serde_json::Map<String, Value>,
    ) -> Result<(), String> {
        let length = self.path.len();
        for (member, place) in description.members.iter().zip(&layout.members) {
            let Some(value) = values.get(member.name.as_ref()) else {
                continue;
            };
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(&member.name);
            let target = Target {
                offset: start + place.offset,
                size: place.size,
                nested: place.nested.as_ref(),
            };
            self.put(&member.ctype, target, value)?;
            self.path.truncate(length);
        }
        Ok(())
    }

    fn put(&mut self, ctype: &CType, target: Target<'_>, value: &Value) -> Result<(), String> {
        match (ctype, value) {
            (CType::Array { element, count }, Value::Array(values)) => {
                self.array(element, *count, target, values)
            }
            (CType::Array { element, count }, Value::String(text)) if is_char(element) => {
                self.text(*count, target, text)
            }
            (CType::Array { element, .. }, _) if is_char(element) => {
                Err(self.wrong(value, "a text or an array"))
            }
            (CType::Array { .. }, _) => Err(self.wrong(value, "an array")),
            (CType::Struct(inner), Value::Object(values)) => {
                let is_known = |name: &str| inner.members.iter().any(|one| one.name == name);
                if let Some(unknown) = values.keys().find(|name| !is_known(name)) {
                    return Err(format!("`{}` has no member `{unknown}`", self.path));
                }
                match target.nested {
                    Some(layout) => self.members(inner, layout, target.offset, values),
                    // A struct has a layout.
                    None => Ok(()),
                }
            }
            (CType::Struct(_), _) => Err(self.wrong(value, "an object")),
            (CType::Double, _) => {
                let bits = self.number(value)?.unwrap_or(self.machine.constant_nan());
                self.write(target.offset, &self.machine.double_to_bytes(bits));
                Ok(())
            }
            (CType::Float, _) => {
                let bits = match self.number(value)? {
                    Some(bits) => (f64::from_bits(bits) as f32).to_bits(),
                    None => short_nan(self.machine.constant_nan()),
                };
                self.integer(target, bits.into());
                Ok(())
            }
            (CType::Enum(constants), Value::String(name)) => {
                match constants.iter().find(|(constant, _)| constant == name) {
                    Some((_, constant)) => {
                        self.integer(target, *constant as u64);
                        Ok(())
                    }
                    None => Err(self.wrong(value, "the name of one of its constants")),
                }
            }
            (CType::Char, Value::String(text)) if text.len() == 1 => {
                self.write(target.offset, text.as_bytes());
                Ok(())
            }
            (scalar, _) => self.scalar(scalar, target, value),
        }
    }

    /// Writes an integer of any kind, if the type can hold it.
    fn scalar(&mut self, ctype: &CType, target: Target<'_>, value: &Value) -> Result<(), String> {
        let width = width(target);
        let (signed, unsigned) = match ctype {
            CType::Char | CType::Enum(_) => (true, true),
            CType::Int { signed, .. } | CType::Long { signed } | CType::Size { signed } => {
                (*signed, !signed)
            }
            CType::Time => (true, false),
            _ => (false, true),
        };
        let bits = match (value.as_u64(), value.as_i64()) {
            (Some(value), _) if unsigned && integer::fits_uint(value, width) => value,
            (_, Some(value)) if signed && integer::fits_sint(value, width) => value as u64,
            _ => {
                let expected = match ctype {
                    CType::Enum(_) => "the name of a constant, or an integer of 32 bits".into(),
                    _ => format!("an integer that fits in {}", scalar_name(ctype)),
                };
                return Err(self.wrong(value, &expected));
            }
        };
        self.integer(target, bits);
        Ok(())
    }

    /// Writes the elements of an array, one for each value.
    fn array(
        &mut self,
        element: &CType,
        count: u64,
        target: Target<'_>,
        values: &[Value],
    ) -> Result<(), String> {
        if values.len() as u64 > count {
            let (path, found) = (&self.path, values.len());
            return Err(format!("`{path}` has {count} elements, not {found}"));
        }
        let length = self.path.len();
        let size = target.size.checked_div(count).unwrap_or(0);
        for (at, value) in values.iter().enumerate() {
            self.path.push_str(&format!("[{at}]"));
            let offset = target.offset + at as u64 * size;
            let target = Target {
                offset,
                size,
                ..target
            };
            self.put(element, target, value)?;
            self.path.truncate(length);
        }
        Ok(())
    }

    /// Writes a text and a NUL behind it.
    fn text(&mut self, count: u64, target: Target<'_>, text: &str) -> Result<(), String> {
        if text.len() as u64 >= count {
            let (path, length) = (&self.path, text.len());
            return Err(format!(
                "`{path}` has {count} bytes: a text of {length} and its NUL do not fit"
            ));
        }
        self.write(target.offset, text.as_bytes());
        self.write(target.offset + text.len() as u64, &[0]);
        Ok(())
    }

    /// The bits of a double; nothing for a NaN.
    fn number(&self, value: &Value) -> Result<Option<u64>, String> {
        let text = match value {
            Value::Number(number) => number.to_string(),
            Value::String(text) => text.clone(),
            _ => return Err(self.wrong(value, "a number")),
        };
        match Number::parse(&text) {
            Ok(number) => Ok(number.bits),
            Err(error) => Err(self.wrong(value, &error.to_string())),
        }
    }

    /// Writes the low bits of an integer to all of the target.
    fn integer(&mut self, target: Target<'_>, bits: u64) {
        let order = self.machine.byte_order();
        let mut bytes = [0; 8];
        let width = width(target);
        // The array has room for any.
        let _ = integer::write(&mut bytes, 0, width, order, bits);
        self.write(target.offset, &bytes[..width.bytes()]);
    }

    /// Writes bytes within the struct, at a place that the layout determined.
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let target = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.bytes.get_mut(offset..)?.get_mut(..bytes.len()));
        if let Some(target) = target {
            target.copy_from_slice(bytes);
        }
    }

    /// What to say of a value of the wrong kind.
    fn wrong(&self, found: &Value, expected: &str) -> String {
        let path = &self.path;
        let expected = expected.trim_start_matches("expected ");
        let found = match found {
            Value::Array(_) => "an array".to_string(),
            Value::Object(_) => "an object".to_string(),
            scalar => format!("`{scalar}`"),
        };
        format!("`{path}` cannot be {found}: expected {expected}")
    }
}

/// The width of an integer that takes all of a target.
fn width(target: Target<'_>) -> Width {
    match target.size {
        1 => Width::W8,
        2 => Width::W16,
        4 => Width::W32,
        _ => Width::W64,
    }
}

/// Whether a text can be written to an array of this.
fn is_char(ctype: &CType) -> bool {
    matches!(
        ctype,
        CType::Char
            | CType::Int {
                width: Width::W8,
                ..
            }
    )
}

/// The bits of a NaN in a float: those of a double, with the end of the fraction cut off.
fn short_nan(double: u64) -> u32 {
    let sign = (double >> 32) as u32 & 1 << 31;
    let fraction = (double >> 29) as u32 & 0x007f_ffff;
    sign | 0x7f80_0000 | fraction
}
