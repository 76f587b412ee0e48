//! A graph as a JSON document: its file, options and elements, which become the words of a command line.

use serde_json::{Map, Value};

use super::OPTIONS;
use crate::Failure;
use crate::options::Opt;
use crate::path::shown;

/// The words of a document, each with its path in the document.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Spec {
    /// Options, the file, and elements.
    pub(super) words: Vec<Vec<u8>>,
    /// The path of each word.
    pub(super) paths: Vec<String>,
    /// The file to write; `None` if the document has none.
    pub(super) output: Option<Vec<u8>>,
}

/// What an element has: its key, what the language calls it, and whether it is text at the end of the word.
struct Field {
    key: &'static str,
    name: &'static str,
    form: Form,
}

/// How a value becomes a part of a word.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// `name=VALUE`
    Named,
    /// The same of a list of numbers, or the name alone for `true`.
    Dashes,
    /// The name alone for `true`.
    Flag,
    /// `VALUE`, which has to be there.
    Plain,
    /// `VALUE`, if it is there.
    Optional,
}

const fn field(key: &'static str, name: &'static str, form: Form) -> Field {
    Field { key, name, form }
}

const VALUE: Field = field("value", "vname", Form::Named);
const COLOUR: Field = field("colour", "color", Form::Named);
const COLOR: Field = field("color", "color", Form::Named);
const STACK: Field = field("stack", "STACK", Form::Flag);
const SKIP: Field = field("skipscale", "skipscale", Form::Flag);
const DASHES: Field = field("dashes", "dashes", Form::Dashes);
const OFFSET: Field = field("dash-offset", "dash-offset", Form::Named);
const LEGEND: Field = field("legend", "legend", Form::Named);

/// The kinds of elements and their fields, in the order of the language; texts come last.
const KINDS: &[(&str, &[Field])] = &[
    (
        "DEF",
        &[
            field("name", "vname", Form::Named),
            field("file", "rrd", Form::Named),
            field("source", "ds", Form::Named),
            field("function", "cf", Form::Named),
            field("step", "step", Form::Named),
            field("start", "start", Form::Named),
            field("end", "end", Form::Named),
            field("reduce", "reduce", Form::Named),
            field("daemon", "daemon", Form::Named),
        ],
    ),
    (
        "CDEF",
        &[
            field("name", "vname", Form::Named),
            field("expression", "rpn", Form::Named),
        ],
    ),
    (
        "VDEF",
        &[
            field("name", "vname", Form::Named),
            field("expression", "rpn", Form::Named),
        ],
    ),
    (
        "SHIFT",
        &[
            field("name", "vname", Form::Named),
            field("by", "shift", Form::Named),
        ],
    ),
    (
        "LINE",
        &[
            VALUE,
            COLOUR,
            COLOR,
            field("width", "linewidth", Form::Named),
            STACK,
            SKIP,
            DASHES,
            OFFSET,
            LEGEND,
        ],
    ),
    (
        "AREA",
        &[
            VALUE,
            COLOUR,
            COLOR,
            field("colour2", "color2", Form::Named),
            field("color2", "color2", Form::Named),
            field("gradheight", "gradheight", Form::Named),
            STACK,
            SKIP,
            LEGEND,
        ],
    ),
    (
        "TICK",
        &[
            VALUE,
            COLOUR,
            COLOR,
            field("fraction", "fraction", Form::Named),
            LEGEND,
        ],
    ),
    ("HRULE", &[VALUE, COLOUR, COLOR, DASHES, OFFSET, LEGEND]),
    (
        "VRULE",
        &[
            field("time", "vname", Form::Named),
            COLOUR,
            COLOR,
            DASHES,
            OFFSET,
            LEGEND,
        ],
    ),
    ("GPRINT", PRINT),
    ("PRINT", PRINT),
    ("COMMENT", &[field("text", "legend", Form::Named)]),
    ("TEXTALIGN", &[field("align", "align", Form::Plain)]),
    ("XPORT", &[VALUE, LEGEND]),
];

const PRINT: &[Field] = &[
    field("value", "vname", Form::Plain),
    field("function", "cf", Form::Optional),
    field("strftime", "strftime", Form::Flag),
    field("valstrftime", "valstrftime", Form::Flag),
    field("valstrfduration", "valstrfduration", Form::Flag),
    field("format", "format", Form::Named),
];

fn wrong(path: &str, problem: impl std::fmt::Display) -> Failure {
    Failure::new(match path {
        "" => problem.to_string(),
        path => format!("{path}: {problem}"),
    })
}

/// What kind of value JSON has.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A string or number as text.
fn scalar(path: &str, value: &Value) -> Result<String, Failure> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(wrong(
            path,
            format_args!("expected a string or a number, found {}", kind(other)),
        )),
    }
}

fn object<'v>(path: &str, value: &'v Value) -> Result<&'v Map<String, Value>, Failure> {
    value.as_object().ok_or_else(|| {
        wrong(
            path,
            format_args!("expected an object, found {}", kind(value)),
        )
    })
}

impl Spec {
    /// Reads a document.
    ///
    /// # Errors
    ///
    /// What is wrong, with its path; for what is not JSON, with its line and column.
    pub(super) fn read(text: &[u8]) -> Result<Self, Failure> {
        let document: Value = serde_json::from_slice(text)
            .map_err(|error| Failure::new(format!("not JSON: {error}")))?;
        let mut spec = Self::default();
        let all = object("", &document)?;
        for key in all.keys() {
            if !["output", "options", "elements"].contains(&key.as_str()) {
                return Err(wrong(
                    key,
                    "unknown key (expected output, options or elements)",
                ));
            }
        }
        if let Some(options) = all.get("options") {
            for (name, value) in object("options", options)? {
                spec.option(name, value)?;
            }
        }
        if let Some(output) = all.get("output") {
            spec.output = Some(scalar("output", output)?.into_bytes());
        }
        let elements = all
            .get("elements")
            .ok_or_else(|| Failure::new("elements: missing (expected an array of elements)"))?;
        let elements = elements.as_array().ok_or_else(|| {
            wrong(
                "elements",
                format_args!("expected an array, found {}", kind(elements)),
            )
        })?;
        for (place, element) in elements.iter().enumerate() {
            let path = format!("elements[{place}]");
            let word = match element {
                Value::String(word) => word.clone(),
                element => self::element(&path, element)?,
            };
            spec.push(word, path);
        }
        Ok(spec)
    }

    fn push(&mut self, word: String, path: String) {
        self.words.push(word.into_bytes());
        self.paths.push(path);
    }

    fn option(&mut self, name: &str, value: &Value) -> Result<(), Failure> {
        let path = format!("options.{name}");
        let known = |option: &&Opt| option.long == name && name != "json-spec";
        let Some(option) = OPTIONS.iter().find(known) else {
            return Err(wrong(&path, "unknown option"));
        };
        match (option.value, value) {
            (None, Value::Bool(true)) => self.push(format!("--{name}"), path),
            (None, Value::Bool(false)) => {}
            (None, other) => {
                return Err(wrong(
                    &path,
                    format_args!("expected true or false, found {}", kind(other)),
                ));
            }
            (Some(_), Value::Array(values)) => {
                for (place, value) in values.iter().enumerate() {
                    let path = format!("{path}[{place}]");
                    let value = scalar(&path, value)?;
                    self.push(format!("--{name}={value}"), path);
                }
            }
            // Parts with their colours or fonts.
            (Some(_), Value::Object(parts)) if ["color", "font"].contains(&name) => {
                for (part, value) in parts {
                    let path = format!("{path}.{part}");
                    let value = scalar(&path, value)?;
                    let between = match name {
                        "color" if value.starts_with('#') => "",
                        "color" => "#",
                        _ => ":",
                    };
                    self.push(format!("--{name}={part}{between}{value}"), path);
                }
            }
            (Some(_), value) => {
                let value = scalar(&path, value)?;
                self.push(format!("--{name}={value}"), path);
            }
        }
        Ok(())
    }
}

/// The word of an element.
fn element(path: &str, value: &Value) -> Result<String, Failure> {
    let all = object(path, value)?;
    let kinds = || {
        KINDS
            .iter()
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let name = all
        .get("type")
        .ok_or_else(|| wrong(path, format_args!("no type (known: {})", kinds())))?;
    let name = scalar(&format!("{path}.type"), name)?;
    let Some((name, fields)) = KINDS.iter().find(|(kind, _)| *kind == name) else {
        return Err(wrong(
            &format!("{path}.type"),
            format_args!("unknown type '{name}' (known: {})", kinds()),
        ));
    };
    for key in all.keys() {
        if key != "type" && !fields.iter().any(|field| field.key == key) {
            let known: Vec<_> = fields.iter().map(|field| field.key).collect();
            let problem = format!("unknown key of {name} (known: {})", known.join(" "));
            return Err(wrong(&format!("{path}.{key}"), problem));
        }
    }
    let mut word = (*name).to_owned();
    for field in *fields {
        let path = format!("{path}.{}", field.key);
        let value = match (all.get(field.key), field.form) {
            (None | Some(Value::Null), Form::Plain) => return Err(wrong(&path, "missing")),
            (None | Some(Value::Null), _) => continue,
            (Some(value), _) => value,
        };
        let text = match (field.form, value) {
            (Form::Flag | Form::Dashes, Value::Bool(true)) => field.name.to_owned(),
            (Form::Flag | Form::Dashes, Value::Bool(false)) => continue,
            (Form::Flag, other) => {
                return Err(wrong(
                    &path,
                    format_args!("expected true or false, found {}", kind(other)),
                ));
            }
            (Form::Dashes, Value::Array(lengths)) => {
                let lengths: Result<Vec<_>, _> =
                    lengths.iter().map(|length| scalar(&path, length)).collect();
                format!("{}={}", field.name, lengths?.join(","))
            }
            (Form::Plain | Form::Optional, value) => escaped(&path, &scalar(&path, value)?)?,
            (_, value) => format!("{}={}", field.name, escaped(&path, &scalar(&path, value)?)?),
        };
        word.push(':');
        word.push_str(&text);
    }
    Ok(word)
}

/// A text as a part of a word: colons do not end it.
fn escaped(path: &str, text: &str) -> Result<String, Failure> {
    match text.contains('\0') {
        true => Err(wrong(path, "a NUL character")),
        false => Ok(text.replace(':', "\\:")),
    }
}

/// A failure of the words of a document, with the path of the word.
pub(super) fn with_path(name: &[u8], path: Option<&str>, failure: &Failure) -> Failure {
    let name = match name {
        b"-" => "standard input".into(),
        name => shown(name),
    };
    match path {
        Some(path) => Failure::new(format!("{name}: {path}: {failure}")),
        None => Failure::new(format!("{name}: {failure}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Vec<String>, String> {
        let spec = Spec::read(text.as_bytes()).map_err(|failure| failure.to_string())?;
        let text = |word: Vec<u8>| String::from_utf8(word).unwrap();
        Ok(spec.words.into_iter().map(text).collect())
    }

    #[test]
    fn documents_become_words() {
        let found = words(
            r##"{"output": "load.png",
                "options": {"start": -3600, "slope-mode": true, "no-legend": false,
                            "color": {"BACK": "#fff"}, "font": ["TITLE:12"]},
                "elements": [
                  {"type": "DEF", "name": "a", "file": "C:/x.rrd", "source": "a", "function": "AVERAGE", "step": 300},
                  {"type": "CDEF", "name": "b", "expression": "a,2,*"},
                  {"type": "LINE", "value": "b", "colour": "#00f", "width": 1.5, "stack": true, "dashes": [2, 3],
                   "legend": "b: twice"},
                  {"type": "GPRINT", "value": "a", "function": "MAX", "format": "%lf:x"},
                  "COMMENT:as it is"]}"##,
        );
        assert_eq!(
            found.unwrap(),
            [
                "--color=BACK#fff",
                "--font=TITLE:12",
                "--slope-mode",
                "--start=-3600",
                "DEF:vname=a:rrd=C\\:/x.rrd:ds=a:cf=AVERAGE:step=300",
                "CDEF:vname=b:rpn=a,2,*",
                "LINE:vname=b:color=#00f:linewidth=1.5:STACK:dashes=2,3:legend=b\\: twice",
                "GPRINT:a:MAX:format=%lf\\:x",
                "COMMENT:as it is",
            ]
        );
    }

    #[test]
    fn what_is_wrong_has_a_path() {
        for (text, message) in [
            ("[]", "expected an object, found an array"),
            ("{}", "elements: missing (expected an array of elements)"),
            (
                "{\"x\":1}",
                "x: unknown key (expected output, options or elements)",
            ),
            (
                "{\"elements\":[1]}",
                "elements[0]: expected an object, found a number",
            ),
            (
                "{\"elements\":[{}]}",
                "elements[0]: no type (known: DEF CDEF",
            ),
            (
                "{\"elements\":[\"a\",{\"type\":\"X\"}]}",
                "elements[1].type: unknown type 'X'",
            ),
            (
                "{\"elements\":[{\"type\":\"LINE\",\"colr\":1}]}",
                "elements[0].colr: unknown key of LINE (known: value colour",
            ),
            (
                "{\"elements\":[{\"type\":\"LINE\",\"stack\":1}]}",
                "elements[0].stack: expected true or false, found a number",
            ),
            (
                "{\"options\":{\"width\":true},\"elements\":[]}",
                "options.width: expected a string or a number, found a boolean",
            ),
            (
                "{\"options\":{\"json-spec\":\"x\"},\"elements\":[]}",
                "options.json-spec: unknown option",
            ),
            (
                "{\"options\":{\"font\":[null]},\"elements\":[]}",
                "options.font[0]: expected a string or a number, found null",
            ),
            (
                "{",
                "not JSON: EOF while parsing an object at line 1 column 1",
            ),
        ] {
            let found = words(text).unwrap_err();
            assert!(found.starts_with(message), "{text}: {found}");
        }
    }
}
