//! Values of events: bytes that any thread writes, and Python's objects that are made of them.

use kymo_model::{FieldId, Kind, Schema, Scope, Visitor, Wide};
use kymo_text::Line;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// What the next value is.
mod tag {
    pub(super) const UINT: u8 = 0;
    pub(super) const SINT: u8 = 1;
    pub(super) const WIDE: u8 = 2;
    pub(super) const FLOAT: u8 = 3;
    pub(super) const FLOAT128: u8 = 4;
    pub(super) const BOOL: u8 = 5;
    pub(super) const TEXT: u8 = 6;
    pub(super) const BLOB: u8 = 7;
    pub(super) const STRUCT: u8 = 8;
    pub(super) const ARRAY: u8 = 9;
    pub(super) const PRESENT: u8 = 10;
    pub(super) const ABSENT: u8 = 11;
    pub(super) const VARIANT: u8 = 12;
    pub(super) const END: u8 = 13;
}

/// Writes the values of an event, each with a tag; of the root of a scope, its number comes first.
pub(crate) struct Encoder<'l> {
    out: &'l mut Line,
    depth: u32,
}

impl<'l> Encoder<'l> {
    pub(crate) fn new(out: &'l mut Line) -> Self {
        Self { out, depth: 0 }
    }

    #[inline]
    fn begin(&mut self, field: FieldId, tag: u8) {
        self.root(field);
        self.out.push_byte(tag);
    }

    #[inline]
    fn root(&mut self, field: FieldId) {
        if self.depth == 0 {
            self.out.push(&field.0.to_le_bytes());
        }
    }

    #[inline]
    fn number(&mut self, field: FieldId, tag: u8, value: u64) {
        self.root(field);
        let mut bytes = [tag; 9];
        bytes[1..].copy_from_slice(&value.to_le_bytes());
        self.out.push(&bytes);
    }

    #[inline]
    fn bytes(&mut self, field: FieldId, tag: u8, bytes: &[u8]) {
        self.number(field, tag, bytes.len() as u64);
        self.out.push(bytes);
    }
}

impl Visitor for Encoder<'_> {
    #[inline]
    fn uint(&mut self, field: FieldId, value: u64) {
        self.number(field, tag::UINT, value);
    }

    #[inline]
    fn sint(&mut self, field: FieldId, value: i64) {
        self.number(field, tag::SINT, value as u64);
    }

    fn wide(&mut self, field: FieldId, value: Wide<'_>) {
        self.bytes(field, tag::WIDE, value.bytes());
        self.out.push_byte(value.is_signed().into());
    }

    #[inline]
    fn float(&mut self, field: FieldId, value: f64) {
        self.number(field, tag::FLOAT, value.to_bits());
    }

    fn float128(&mut self, field: FieldId, bits: u128) {
        self.begin(field, tag::FLOAT128);
        self.out.push(&bits.to_le_bytes());
    }

    #[inline]
    fn boolean(&mut self, field: FieldId, value: bool) {
        self.begin(field, tag::BOOL);
        self.out.push_byte(value.into());
    }

    #[inline]
    fn bits(&mut self, field: FieldId, value: u64) {
        self.number(field, tag::UINT, value);
    }

    #[inline]
    fn text(&mut self, field: FieldId, text: &[u8]) {
        self.bytes(field, tag::TEXT, text);
    }

    fn blob(&mut self, field: FieldId, bytes: &[u8]) {
        self.bytes(field, tag::BLOB, bytes);
    }

    #[inline]
    fn begin_struct(&mut self, field: FieldId) {
        self.begin(field, tag::STRUCT);
        self.depth += 1;
    }

    #[inline]
    fn end_struct(&mut self, _field: FieldId) {
        self.depth -= 1;
        self.out.push_byte(tag::END);
    }

    fn begin_array(&mut self, field: FieldId, length: u64) {
        self.number(field, tag::ARRAY, length);
        self.depth += 1;
    }

    fn end_array(&mut self, _field: FieldId) {
        self.depth -= 1;
    }

    fn begin_optional(&mut self, field: FieldId, present: bool, _selector: u64) {
        let tag = match present {
            true => tag::PRESENT,
            false => tag::ABSENT,
        };
        self.begin(field, tag);
        self.depth += 1;
    }

    fn end_optional(&mut self, _field: FieldId) {
        self.depth -= 1;
    }

    fn begin_variant(&mut self, field: FieldId, selected: u32, _selector: u64) {
        self.number(field, tag::VARIANT, selected.into());
        self.depth += 1;
    }

    fn end_variant(&mut self, _field: FieldId) {
        self.depth -= 1;
    }
}

/// How values become objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As people want them: a variant is what it holds, and so is an optional, or None.
    Plain,
    /// With all that is recorded: a variant is a tuple of the option's number and its value, an optional that has a
    /// value a tuple of it.
    Whole,
}

/// A schema, and its names as Python's strings.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) schema: Schema,
    names: Vec<Option<Py<PyString>>>,
}

impl Names {
    pub(crate) fn new(py: Python<'_>, schema: &Schema) -> Self {
        let name = |name: &str| PyString::intern(py, name).unbind();
        let fields = schema.fields().iter();
        Self {
            names: fields
                .map(|field| field.name.as_deref().map(name))
                .collect(),
            schema: schema.clone(),
        }
    }

    /// The name of a field, if it has one.
    pub(crate) fn get(&self, field: FieldId) -> Option<&Py<PyString>> {
        self.names[field.index()].as_ref()
    }
}

/// Reads what an [`Encoder`] has written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoder<'b> {
    pub(crate) bytes: &'b [u8],
}

impl<'b> Decoder<'b> {
    pub(crate) fn take(&mut self, count: usize) -> PyResult<&'b [u8]> {
        match self.bytes.split_at_checked(count) {
            Some((taken, rest)) => {
                self.bytes = rest;
                Ok(taken)
            }
            None => Err(PyValueError::new_err("the values of an event are cut")),
        }
    }

    pub(crate) fn byte(&mut self) -> PyResult<u8> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn flag(&mut self) -> PyResult<bool> {
        Ok(self.byte()? != 0)
    }

    fn array<const N: usize>(&mut self) -> PyResult<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u64(&mut self) -> PyResult<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> PyResult<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn sized(&mut self) -> PyResult<&'b [u8]> {
        let count = self.u64()?;
        self.take(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// The root of the next scope, if there is one.
    pub(crate) fn root(&mut self) -> PyResult<Option<FieldId>> {
        match self.bytes.is_empty() {
            true => Ok(None),
            false => self.u32().map(|field| Some(FieldId(field))),
        }
    }

    /// The next value, which is of a field.
    pub(crate) fn value<'p>(
        &mut self,
        py: Python<'p>,
        names: &Names,
        field: FieldId,
        form: Form,
    ) -> PyResult<Bound<'p, PyAny>> {
        let children = &names.schema.field(field).children;
        let tag = self.byte()?;
        Ok(match tag {
            tag::UINT => PyInt::new(py, self.u64()?).into_any(),
            tag::SINT => PyInt::new(py, self.u64()? as i64).into_any(),
            tag::FLOAT => PyFloat::new(py, f64::from_bits(self.u64()?)).into_any(),
            tag::BOOL => PyBool::new(py, self.byte()? != 0).to_owned().into_any(),
            tag::TEXT => text(py, self.sized()?)?,
            tag::BLOB => PyBytes::new(py, self.sized()?).into_any(),
            tag::WIDE => {
                let bytes = PyBytes::new(py, self.sized()?);
                let options = PyDict::new(py);
                options.set_item("signed", self.byte()? != 0)?;
                let int = py.get_type::<PyInt>();
                int.call_method("from_bytes", (bytes, "big"), Some(&options))?
            }
            tag::FLOAT128 => {
                let bits = u128::from_le_bytes(self.array()?);
                PyFloat::new(py, kymo_model::narrow_float128(bits)).into_any()
            }
            tag::STRUCT => {
                let dict = PyDict::new(py);
                for &child in children {
                    let value = self.value(py, names, child, form)?;
                    match names.get(child) {
                        Some(name) => dict.set_item(name, value)?,
                        None => dict.set_item(py.None(), value)?,
                    }
                }
                if self.byte()? != tag::END {
                    return Err(PyValueError::new_err(
                        "the members of a structure are not those of its class",
                    ));
                }
                dict.into_any()
            }
            tag::ARRAY => {
                let length = self.u64()?;
                let list = PyList::empty(py);
                let child = child(children, 0)?;
                for _ in 0..length {
                    list.append(self.value(py, names, child, form)?)?;
                }
                list.into_any()
            }
            tag::PRESENT => {
                let value = self.value(py, names, child(children, 0)?, form)?;
                match form {
                    Form::Plain => value,
                    Form::Whole => PyTuple::new(py, [value])?.into_any(),
                }
            }
            tag::ABSENT => py.None().into_bound(py),
            tag::VARIANT => {
                let selected = self.u64()?;
                let value = self.value(py, names, child(children, selected)?, form)?;
                match form {
                    Form::Plain => value,
                    Form::Whole => {
                        let selected = PyInt::new(py, selected).into_any();
                        PyTuple::new(py, [selected, value])?.into_any()
                    }
                }
            }
            _ => return Err(PyValueError::new_err("unknown kind of value")),
        })
    }

    /// Passes over the next value.
    fn skip(&mut self) -> PyResult<()> {
        match self.byte()? {
            tag::UINT | tag::SINT | tag::FLOAT => drop(self.take(8)?),
            tag::BOOL => drop(self.byte()?),
            tag::TEXT | tag::BLOB => drop(self.sized()?),
            tag::WIDE => {
                self.sized()?;
                self.byte()?;
            }
            tag::FLOAT128 => drop(self.take(16)?),
            tag::STRUCT => {
                while self.bytes.first() != Some(&tag::END) {
                    self.skip()?;
                }
                self.byte()?;
            }
            tag::ARRAY => {
                for _ in 0..self.u64()? {
                    self.skip()?;
                }
            }
            tag::PRESENT => self.skip()?,
            tag::ABSENT => {}
            tag::VARIANT => {
                self.u64()?;
                self.skip()?;
            }
            _ => return Err(PyValueError::new_err("unknown kind of value")),
        }
        Ok(())
    }

    /// The value of a member of the structure that a scope is; of others, none is made.
    pub(crate) fn member<'p>(
        mut self,
        py: Python<'p>,
        names: &Names,
        (scope, member): (FieldId, FieldId),
        form: Form,
    ) -> PyResult<Option<Bound<'p, PyAny>>> {
        while let Some(root) = self.root()? {
            if root != scope {
                self.skip()?;
                continue;
            }
            if self.byte()? != tag::STRUCT {
                return Ok(None);
            }
            for &child in &names.schema.field(root).children {
                if child == member {
                    return self.value(py, names, child, form).map(Some);
                }
                self.skip()?;
            }
        }
        Ok(None)
    }

    /// The values of a scope; of others, none is made.
    pub(crate) fn scope<'p>(
        mut self,
        py: Python<'p>,
        names: &Names,
        scope: Scope,
        form: Form,
    ) -> PyResult<Option<Bound<'p, PyAny>>> {
        let wanted = names.schema.root(scope);
        while let Some(root) = self.root()? {
            let value = self.value(py, names, root, form)?;
            if Some(root) == wanted {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }
}

fn child(children: &[FieldId], position: u64) -> PyResult<FieldId> {
    let child = usize::try_from(position).ok();
    let child = child.and_then(|position| children.get(position));
    child
        .copied()
        .ok_or_else(|| PyValueError::new_err("a value is of no part of its class"))
}

/// A text; bytes that are not UTF-8 are lone surrogates, as in JSON.
fn text<'p>(py: Python<'p>, bytes: &[u8]) -> PyResult<Bound<'p, PyAny>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text).into_any()),
        Err(_) => PyBytes::new(py, bytes).call_method1("decode", ("utf-8", "surrogateescape")),
    }
}

/// What a field is, for those who make objects of classes.
pub(crate) fn describe<'p>(
    py: Python<'p>,
    schema: &Schema,
    field: FieldId,
) -> PyResult<Bound<'p, PyDict>> {
    let info = schema.field(field);
    let dict = PyDict::new(py);
    let labels = |labels: &kymo_model::Labels| -> PyResult<Bound<'p, PyList>> {
        let signed = labels.is_signed();
        let bound = |bits: u64| match signed {
            true => PyInt::new(py, bits as i64),
            false => PyInt::new(py, bits),
        };
        let all = PyList::empty(py);
        for mapping in labels.mappings() {
            let ranges = mapping.ranges.iter();
            let ranges = ranges.map(|&(low, high)| (bound(low), bound(high)));
            all.append((&*mapping.label, ranges.collect::<Vec<_>>()))?;
        }
        Ok(all)
    };
    let kind = |kind: &str| dict.set_item("kind", kind);
    match &info.kind {
        Kind::Uint {
            bits,
            base,
            labels: known,
        }
        | Kind::Sint {
            bits,
            base,
            labels: known,
        } => {
            kind(match info.kind {
                Kind::Uint { .. } => "uint",
                _ => "sint",
            })?;
            dict.set_item("bits", bits)?;
            let base = match base {
                kymo_model::Base::Binary => 2,
                kymo_model::Base::Octal => 8,
                kymo_model::Base::Decimal => 10,
                kymo_model::Base::Hexadecimal => 16,
            };
            dict.set_item("base", base)?;
            if let Some(known) = known {
                dict.set_item("labels", labels(known)?)?;
            }
        }
        Kind::Wide { bits, signed } => {
            kind(match signed {
                true => "sint",
                false => "uint",
            })?;
            dict.set_item("bits", bits)?;
            dict.set_item("base", 16)?;
        }
        Kind::Float { bits } => {
            kind("float")?;
            dict.set_item("bits", bits)?;
        }
        Kind::Bool { .. } => kind("bool")?,
        Kind::BitArray { bits } => {
            kind("bits")?;
            dict.set_item("bits", bits)?;
        }
        Kind::BitMap { bits, flags } => {
            kind("bits")?;
            dict.set_item("bits", bits)?;
            let flags = flags.iter().map(|flag| (&*flag.name, flag.bits()));
            dict.set_item("flags", flags.collect::<Vec<_>>())?;
        }
        Kind::Text => kind("text")?,
        Kind::Blob => kind("blob")?,
        Kind::Struct => kind("struct")?,
        Kind::Array { length } => {
            kind("array")?;
            dict.set_item("length", length)?;
        }
        Kind::Optional => kind("optional")?,
        Kind::Variant => kind("variant")?,
    }
    if !info.children.is_empty() || matches!(info.kind, Kind::Struct) {
        let children = PyList::empty(py);
        for &child in &info.children {
            let name = schema.field(child).name.as_deref();
            children.append((name, describe(py, schema, child)?))?;
        }
        dict.set_item("children", children)?;
    }
    Ok(dict)
}
