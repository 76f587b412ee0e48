//! The tags of a page: where they are, their arguments, and what takes their place.

/// What an output may have at most: 64 MiB.
const MOST_OUTPUT: usize = 64 << 20;
/// Files within files.
const MOST_INCLUDES: u32 = 16;
/// Files in all: those that include several of each other would take long.
const MOST_FILES: u32 = 10_000;
/// Tags in arguments of tags.
const MOST_NESTED: u32 = 8;
/// Tags that do not end; what follows is copied.
const MOST_UNENDED: u32 = 20;
/// Bytes of the arguments of a tag.
const MOST_ARGUMENTS: usize = 1 << 20;

/// A tag, by its name behind `<RRD::`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    Variable,
    QuotedVariable,
    PathVariable,
    GetEnvironment,
    SetEnvironment,
    GetVariable,
    SetVariable,
    GoodFor,
    Graph,
    Include,
    Print,
    Last,
    Now,
    Strftime,
    Internal,
}

const TAGS: [(&str, Tag); 15] = [
    ("CV", Tag::Variable),
    ("CV::QUOTE", Tag::QuotedVariable),
    ("CV::PATH", Tag::PathVariable),
    ("GETENV", Tag::GetEnvironment),
    ("SETENV", Tag::SetEnvironment),
    ("GETVAR", Tag::GetVariable),
    ("SETVAR", Tag::SetVariable),
    ("GOODFOR", Tag::GoodFor),
    ("GRAPH", Tag::Graph),
    ("INCLUDE", Tag::Include),
    ("PRINT", Tag::Print),
    ("TIME::LAST", Tag::Last),
    ("TIME::NOW", Tag::Now),
    ("TIME::STRFTIME", Tag::Strftime),
    ("INTERNAL", Tag::Internal),
];

impl Tag {
    /// Whether it may stand in an argument of another.
    fn is_value(self) -> bool {
        !matches!(
            self,
            Self::SetEnvironment | Self::SetVariable | Self::GoodFor | Self::Graph | Self::Include
        )
    }

    /// Whether it is there only with variables of a request.
    fn is_of_requests(self) -> bool {
        matches!(
            self,
            Self::Variable | Self::QuotedVariable | Self::PathVariable | Self::GetEnvironment
        )
    }
}

/// What tags ask for.
pub(super) trait Host {
    /// What takes the place of a tag that is not [`Tag::Include`].
    fn replace(&mut self, tag: Tag, arguments: &[Vec<u8>]) -> Vec<u8>;
    /// The content of a file, or what takes its place.
    fn include(&mut self, arguments: &[Vec<u8>]) -> Result<Vec<u8>, Vec<u8>>;
    /// Whether there is no request, so that request tags are text.
    fn is_filter(&self) -> bool;
}

/// Too much came of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// What a page becomes.
pub(super) fn expand(page: &[u8], host: &mut dyn Host) -> Result<Vec<u8>, TooLarge> {
    let mut expansion = Expansion {
        host,
        out: Vec::new(),
        unended: 0,
        files: 0,
    };
    expansion.text(page, MOST_INCLUDES)?;
    Ok(expansion.out)
}

struct Expansion<'h> {
    host: &'h mut dyn Host,
    out: Vec<u8>,
    unended: u32,
    files: u32,
}

impl Expansion<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.out.len() + bytes.len() > MOST_OUTPUT {
            return Err(TooLarge);
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn text(&mut self, mut rest: &[u8], includes: u32) -> Result<(), TooLarge> {
        while let Some(at) = rest.iter().position(|byte| *byte == b'<') {
            self.push(&rest[..at])?;
            rest = &rest[at..];
            let found =
                tag_at(rest).filter(|(tag, _)| !(tag.is_of_requests() && self.host.is_filter()));
            let Some((tag, begin)) = found.filter(|_| self.unended < MOST_UNENDED) else {
                self.push(b"<")?;
                rest = &rest[1..];
                continue;
            };
            let Some((arguments, end)) = arguments(&rest[begin..]) else {
                // As rrdcgi does, without the opening bracket.
                self.unended += 1;
                self.push(
                    b"[ERROR: Parsing Problem with the following text\n Check original file. \
                      This may have been altered by parsing.]\n\n",
                )?;
                rest = &rest[1..];
                continue;
            };
            let arguments: Vec<Vec<u8>> = arguments
                .iter()
                .map(|argument| nested(argument, self.host, MOST_NESTED))
                .collect();
            rest = &rest[begin + end..];
            match tag {
                Tag::Include if self.files == MOST_FILES => {
                    self.push(b"[ERROR: too many files are included]")?;
                }
                Tag::Include => match self.host.include(&arguments) {
                    Ok(_) if includes == 0 => self.push(b"[ERROR: files include each other]")?,
                    Ok(content) => {
                        self.files += 1;
                        self.text(&content, includes - 1)?;
                    }
                    Err(instead) => self.push(&instead)?,
                },
                tag => {
                    let text = self.host.replace(tag, &arguments);
                    self.push(&text)?;
                }
            }
        }
        self.push(rest)
    }
}

/// An argument with the tags in it replaced.
fn nested(argument: &[u8], host: &mut dyn Host, depth: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = argument;
    while let Some(at) = rest.iter().position(|byte| *byte == b'<') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let found = tag_at(rest).filter(|(tag, _)| {
            depth > 0 && tag.is_value() && !(tag.is_of_requests() && host.is_filter())
        });
        let Some((tag, begin)) = found else {
            out.push(b'<');
            rest = &rest[1..];
            continue;
        };
        // Where one tag does not end, none behind it is looked for: that would take long.
        let Some((inner, end)) = arguments(&rest[begin..]) else {
            break;
        };
        let inner: Vec<Vec<u8>> = inner
            .iter()
            .map(|argument| nested(argument, host, depth - 1))
            .collect();
        out.extend(host.replace(tag, &inner));
        out.truncate(MOST_ARGUMENTS);
        rest = &rest[begin + end..];
    }
    out.extend_from_slice(rest);
    out
}

/// The tag that a text begins with, and where its arguments begin: a tag has some.
fn tag_at(text: &[u8]) -> Option<(Tag, usize)> {
    let name = text.strip_prefix(b"<RRD::")?;
    let end = name.iter().take(20).position(u8::is_ascii_whitespace)?;
    let (_, tag) = TAGS
        .iter()
        .find(|(tag, _)| tag.as_bytes() == &name[..end])?;
    Some((*tag, b"<RRD::".len() + end))
}

/// The arguments up to the bracket that ends a tag, split as a C shell does, and where the text behind it begins. What
/// stands in tags within is left as it is. `None` if nothing ends the tag.
fn arguments(text: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
    let mut all = Vec::new();
    let mut argument: Option<Vec<u8>> = None;
    let mut quote = None;
    // The quotes around each tag within.
    let mut outer: Vec<Option<u8>> = Vec::new();
    for (at, &byte) in text.iter().take(MOST_ARGUMENTS).enumerate() {
        let is_within = !outer.is_empty();
        if tag_at(&text[at..]).is_some() && outer.len() < MOST_NESTED as usize {
            outer.push(quote.take());
            argument.get_or_insert_default().push(byte);
            continue;
        }
        match (byte, quote) {
            (b'>', None) => match outer.pop() {
                Some(around) => {
                    quote = around;
                    argument.get_or_insert_default().push(byte);
                }
                None => {
                    all.extend(argument);
                    return Some((all, at + 1));
                }
            },
            (byte, Some(open)) if byte == open => {
                quote = None;
                if is_within {
                    argument.get_or_insert_default().push(byte);
                }
            }
            (b'"' | b'\'', None) => {
                quote = Some(byte);
                let argument = argument.get_or_insert_default();
                if is_within {
                    argument.push(byte);
                }
            }
            (byte, None) if byte.is_ascii_whitespace() && !is_within => all.extend(argument.take()),
            (byte, _) => argument.get_or_insert_default().push(byte),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Echo {
        is_filter: bool,
    }

    impl Host for Echo {
        fn replace(&mut self, tag: Tag, arguments: &[Vec<u8>]) -> Vec<u8> {
            let arguments: Vec<_> = arguments
                .iter()
                .map(|argument| String::from_utf8_lossy(argument))
                .collect();
            format!("{{{tag:?} {}}}", arguments.join("|")).into_bytes()
        }

        fn include(&mut self, arguments: &[Vec<u8>]) -> Result<Vec<u8>, Vec<u8>> {
            match arguments {
                [name] if name == b"self" => Ok(b"(<RRD::INCLUDE self>)".to_vec()),
                _ => Err(b"none".to_vec()),
            }
        }

        fn is_filter(&self) -> bool {
            self.is_filter
        }
    }

    fn expanded(page: &str) -> String {
        let out = expand(page.as_bytes(), &mut Echo { is_filter: false }).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn arguments_are_split_as_rrdcgi_splits_them() {
        for (page, out) in [
            ("a<RRD::CV x>b", "a{Variable x}b"),
            ("<RRD::CV\n x \t y>", "{Variable x|y}"),
            ("<RRD::CV a\"b c\"'d e'>", "{Variable ab cd e}"),
            ("<RRD::CV \"<b>\">", "{Variable <b>}"),
            ("<RRD::CV \"\" x>", "{Variable |x}"),
            ("<RRD::CV::PATH x>", "{PathVariable x}"),
            (
                "<RRD::CV>|<RRD::CVx y>|<rrd::CV x>|< RRD::CV x>",
                "<RRD::CV>|<RRD::CVx y>|<rrd::CV x>|< RRD::CV x>",
            ),
            (
                "<RRD::SETVAR a <RRD::GETVAR b>.png>",
                "{SetVariable a|{GetVariable b}.png}",
            ),
            (
                "<RRD::SETVAR a \"b <RRD::TIME::NOW \"%H %M\"> c\">",
                "{SetVariable a|b {Now %H %M} c}",
            ),
            (
                "<RRD::SETVAR a <RRD::GRAPH b>>",
                "{SetVariable a|<RRD::GRAPH b>}",
            ),
            // rrdcgi leaves out a tag that stands right behind one that is replaced by nothing.
            (
                "<RRD::SETVAR a b><RRD::GETVAR a>",
                "{SetVariable a|b}{GetVariable a}",
            ),
        ] {
            assert_eq!(expanded(page), out, "{page}");
        }
        let out = expand(b"<RRD::CV x><RRD::GETVAR x>", &mut Echo { is_filter: true }).unwrap();
        assert_eq!(out, b"<RRD::CV x>{GetVariable x}");
    }

    #[test]
    fn what_does_not_end_is_reported_and_bounded() {
        let out = expanded("x <RRD::CV \"a> y");
        assert!(out.starts_with("x [ERROR: Parsing Problem"), "{out}");
        assert!(out.ends_with("RRD::CV \"a> y"));
        let many = expanded(&"<RRD::CV \"".repeat(10_001));
        assert!(many.len() < 200_000);
        let out = expanded("<RRD::INCLUDE self>");
        assert_eq!(out.matches('(').count(), MOST_INCLUDES as usize);
        assert!(out.contains("include each other"));
        let out =
            expanded(&"<RRD::INCLUDE self>".repeat((MOST_FILES / MOST_INCLUDES) as usize + 1));
        assert!(out.contains("too many files are included"));
        // Neither do many tags that do not end within one take long.
        let inner = "<RRD::GETVAR \"".repeat(20_001);
        expanded(&format!("<RRD::SETVAR a {inner}{}", ">".repeat(20)));
        let deep = format!("{}x{}", "<RRD::GETVAR ".repeat(50), ">".repeat(50));
        assert!(expanded(&deep).contains("{GetVariable"));
    }

    proptest! {
        #[test]
        fn no_page_is_too_odd(page in "(<RRD::(CV|GRAPH|INCLUDE|SETVAR) |>|\"|'| |a|<){0,60}") {
            expanded(&page);
        }
    }
}
