//! The public interface of each crate, as lists in `xtask/api` that a change has to change along.
//!
//! Items are read from the sources: `unreachable_pub` makes sure that what is `pub` can be reached, so no compiler has to
//! be asked. What macros make, what is derived, and implementations of traits are not listed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Outcome;
use crate::args::Args;
use crate::process::root;

/// Lines of a difference that are shown.
const MOST_LINES: usize = 40;

/// `cargo xtask api`.
pub(crate) fn run(mut args: Args) -> Outcome {
    let bless = args.flag("--bless");
    args.finish()?;
    let lists = root().join("xtask/api");
    fs::create_dir_all(&lists)?;
    let mut known: BTreeSet<PathBuf> = fs::read_dir(&lists)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    let mut changed = Vec::new();
    let mut crates: Vec<PathBuf> = fs::read_dir(root().join("crates"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    crates.sort();
    let mut count = 0;
    for place in crates {
        let manifest = fs::read_to_string(place.join("Cargo.toml")).unwrap_or_default();
        if !place.join("src/lib.rs").is_file() || manifest.contains("publish = false") {
            continue;
        }
        let name = place.file_name().unwrap_or_default().to_string_lossy();
        let items = items_below(&place.join("src"))?;
        count += items.len();
        let list = lists.join(format!("{name}.txt"));
        known.remove(&list);
        let before = fs::read_to_string(&list).unwrap_or_default();
        let now: String = items.iter().map(|item| format!("{item}\n")).collect();
        if before == now {
            continue;
        }
        if bless {
            fs::write(&list, now)?;
            continue;
        }
        let old: BTreeSet<&str> = before.lines().collect();
        let new: BTreeSet<&str> = items.iter().map(String::as_str).collect();
        changed.extend(old.difference(&new).map(|item| format!("- {name}: {item}")));
        changed.extend(new.difference(&old).map(|item| format!("+ {name}: {item}")));
    }
    for list in known {
        match bless {
            true => fs::remove_file(list)?,
            false => changed.push(format!("- {}: there is no such crate", list.display())),
        }
    }
    if changed.is_empty() {
        println!("{count} public items are as listed in xtask/api");
        return Ok(());
    }
    for line in changed.iter().take(MOST_LINES) {
        eprintln!("{line}");
    }
    if changed.len() > MOST_LINES {
        eprintln!("... and {} more", changed.len() - MOST_LINES);
    }
    Err("the public interface is not the listed one: name what others must change in CHANGELOG.md, then run \
         `cargo xtask api --bless`"
        .into())
}

/// The public items of the sources below a directory, in order.
fn items_below(directory: &Path) -> Outcome<BTreeSet<String>> {
    let mut items = BTreeSet::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if matches!(&*name, "tests" | "tests.rs" | "testing.rs" | "main.rs") {
            continue;
        }
        if path.is_dir() {
            items.append(&mut items_below(&path)?);
        } else if name.ends_with(".rs") {
            items.append(&mut items_of(&fs::read_to_string(&path)?));
        }
    }
    Ok(items)
}

/// What a block in braces is.
enum Block {
    /// A module that is written in place.
    Module,
    /// Methods of a type.
    Impl(String),
    /// A public trait, all items of which are public.
    Trait(String),
    /// A public enumeration or structure, the body of which begins there.
    Body(String, usize),
    /// Code, and what is not public.
    Other,
}

/// The public items of a source file.
fn items_of(source: &str) -> BTreeSet<String> {
    let code = blank(source);
    let bytes = code.as_bytes();
    let mut items = BTreeSet::new();
    let mut blocks: Vec<Block> = Vec::new();
    let (mut begin, mut nested) = (0, 0_usize);
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'(' | b'[' => nested += 1,
            b')' | b']' => nested = nested.saturating_sub(1),
            _ => {}
        }
        if matches!(byte, b'(' | b')' | b'[' | b']') || nested > 0 && byte == b';' {
            continue;
        }
        let is_hidden = blocks
            .iter()
            .any(|block| matches!(block, Block::Other | Block::Body(..)));
        match byte {
            b'{' => {
                let head = head(&code[begin..at]);
                if is_use(&head) {
                    continue;
                }
                let block = match is_hidden {
                    true => Block::Other,
                    false => opened(&head, blocks.last(), at + 1, &mut items),
                };
                blocks.push(block);
                begin = at + 1;
            }
            b'}' => {
                if is_use(&head(&code[begin..at])) {
                    continue;
                }
                if let Some(Block::Body(name, from)) = blocks.pop() {
                    add_body(&name, &code[from..at], &mut items);
                }
                begin = at + 1;
            }
            b';' => {
                if !is_hidden {
                    add(&head(&code[begin..at]), blocks.last(), &mut items);
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
    items
}

fn is_use(head: &str) -> bool {
    head.starts_with("use ") || head.starts_with("pub use ")
}

/// Takes the head of a block, and returns what the block is.
fn opened(head: &str, within: Option<&Block>, at: usize, items: &mut BTreeSet<String>) -> Block {
    if let Some(rest) = head.strip_prefix("impl") {
        // Implementations of traits have no public items of their own.
        return Block::Impl(without_generics(rest));
    }
    if head.starts_with("mod ") || head.starts_with("pub mod ") {
        add(head, within, items);
        return Block::Module;
    }
    add(head, within, items);
    let words = head.strip_prefix("pub ").map(|rest| {
        let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
        rest.split_once(' ').unwrap_or((rest, ""))
    });
    match words {
        Some(("trait", name)) => Block::Trait(name_of(name)),
        Some(("enum" | "struct" | "union", _)) => {
            Block::Body(head.trim_start_matches("pub ").to_owned(), at)
        }
        _ => Block::Other,
    }
}

/// Adds an item, if it is public.
fn add(head: &str, within: Option<&Block>, items: &mut BTreeSet<String>) {
    // Values are no part of an interface.
    let mut has_value = ["pub const ", "pub static ", "const "].iter();
    let shown = match has_value.any(|start| head.starts_with(start)) {
        true => head.split(" = ").next().unwrap_or(head).trim(),
        false => head,
    };
    let item = match (within, shown.strip_prefix("pub ")) {
        (Some(Block::Trait(name)), None) if !shown.is_empty() => format!("{name}: {shown}"),
        (Some(Block::Impl(name)), Some(shown)) => format!("{name}: {}", without_private(shown)),
        (_, Some(shown)) => without_private(shown),
        _ => return,
    };
    items.insert(item);
}

/// A structure of fields without names, of which only public ones are shown.
fn without_private(shown: &str) -> String {
    let Some((name, fields)) = shown
        .strip_prefix("struct ")
        .and_then(|rest| rest.strip_suffix(')'))
        .and_then(|rest| rest.split_once('('))
    else {
        return shown.to_owned();
    };
    let fields = parts(fields);
    let fields = fields.iter().map(|field| match field.starts_with("pub ") {
        true => field.as_str(),
        false => "_",
    });
    format!("struct {name}({})", fields.collect::<Vec<_>>().join(", "))
}

/// Adds the variants of an enumeration, or the public fields of a structure.
fn add_body(name: &str, body: &str, items: &mut BTreeSet<String>) {
    let (kind, name) = name.split_once(' ').unwrap_or(("", name));
    let name = name_of(name);
    for part in parts(body) {
        let part = head(&part);
        match (kind, part.strip_prefix("pub ")) {
            ("enum", _) if !part.is_empty() => items.insert(format!("{name}: {part}")),
            (_, Some(field)) => items.insert(format!("{name}: {field}")),
            _ => false,
        };
    }
}

/// What commas part, outside of brackets.
fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut nested = 0_i32;
    let mut before = ' ';
    for char in text.chars() {
        match char {
            '(' | '[' | '{' | '<' => nested += 1,
            // Not that of `->` and `=>`.
            '>' if before == '-' || before == '=' => {}
            ')' | ']' | '}' | '>' => nested -= 1,
            _ => {}
        }
        before = char;
        match (char, parts.last_mut()) {
            (',', _) if nested == 0 => parts.push(String::new()),
            (_, Some(part)) => part.push(char),
            _ => {}
        }
    }
    parts.iter().map(|part| plain(part)).collect()
}

/// The words of an item without its attributes; empty if it is only for tests, or hidden.
fn head(text: &str) -> String {
    let mut rest = text.trim_start();
    while let Some(attribute) = rest.strip_prefix("#") {
        let mut nested = 0_usize;
        let end = attribute.find(|char| {
            match char {
                '[' => nested += 1,
                ']' => nested -= 1,
                _ => {}
            }
            char == ']' && nested == 0
        });
        let Some(end) = end else {
            break;
        };
        let words = plain(&attribute[..end]);
        if words.contains("cfg(test") || words.contains("doc(hidden)") {
            return String::new();
        }
        rest = attribute[end + 1..].trim_start();
    }
    plain(rest)
}

/// One blank between words, and none within brackets.
fn plain(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text
        .replace("( ", "(")
        .replace(", )", ")")
        .replace(",)", ")");
    let text = text.replace("< ", "<").replace(", >", ">");
    match text.contains("use ") {
        true => text
            .replace("{ ", "{")
            .replace(", }", "}")
            .trim()
            .to_owned(),
        false => text.trim().to_owned(),
    }
}

/// The name that begins a text.
fn name_of(text: &str) -> String {
    let end = text.find(|char: char| !char.is_alphanumeric() && char != '_');
    text[..end.unwrap_or(text.len())].to_owned()
}

/// The type of `impl` without the list of its parameters.
fn without_generics(text: &str) -> String {
    let mut rest = text.trim_start();
    if rest.starts_with('<') {
        let (mut nested, mut before) = (0, ' ');
        let end = rest.find(|char| {
            match char {
                '<' => nested += 1,
                // Not that of `->`.
                '>' if before != '-' => nested -= 1,
                _ => {}
            }
            before = char;
            nested == 0
        });
        rest = rest[end.map_or(0, |end| end + 1)..].trim_start();
    }
    name_of(rest)
}

/// The code with blanks in place of comments and of what is in quotation marks.
fn blank(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let is_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        let length = if rest.starts_with(b"//") {
            find(rest, b"\n").unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            comment(rest)
        } else if rest[0] == b'"' {
            quoted(rest, b'"')
        } else if rest[0] == b'r' && !is_word && raw(rest) > 0 {
            raw(rest)
        } else if rest.starts_with(b"br") && !is_word && raw(&rest[1..]) > 0 {
            1 + raw(&rest[1..])
        } else if rest[0] == b'\'' && is_character(rest) {
            quoted(rest, b'\'')
        } else {
            at += 1;
            continue;
        };
        let end = (at + length.max(1)).min(bytes.len());
        out[at..end].fill(b' ');
        at = end;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

/// The length of a comment, with those in it.
fn comment(bytes: &[u8]) -> usize {
    let (mut nested, mut at) = (0, 0);
    while at < bytes.len() {
        match &bytes[at..bytes.len().min(at + 2)] {
            b"/*" => nested += 1,
            b"*/" => nested -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if nested == 0 {
            break;
        }
    }
    at
}

/// The length of what is between two marks.
fn quoted(bytes: &[u8], mark: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != mark {
        at += 1 + usize::from(bytes[at] == b'\\');
    }
    at + 1
}

/// The length of a raw text; 0 if it is none.
fn raw(bytes: &[u8]) -> usize {
    let hashes = bytes[1..].iter().take_while(|&&byte| byte == b'#').count();
    if bytes.get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let end = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
    let from = 2 + hashes;
    find(&bytes[from..], &end).map_or(bytes.len(), |at| from + at + end.len())
}

/// Whether a mark begins a character, and not a lifetime.
fn is_character(bytes: &[u8]) -> bool {
    match bytes.get(1) {
        Some(b'\\') => true,
        Some(_) => {
            let text = String::from_utf8_lossy(&bytes[1..bytes.len().min(6)]).into_owned();
            text.chars().nth(1) == Some('\'')
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_items_are_found() {
        let source = r##"
            //! pub fn in_a_comment() {}
            pub use a::{b, c};
            use d::{e};
            pub mod inner { pub fn within() {} }
            #[derive(Debug)]
            pub struct Plain { pub a: u8, b: Vec<(u8, u16)>, pub c: HashMap<u8, [u8; 2]> }
            pub struct Pair(pub u8, u16);
            pub(crate) struct Own { pub a: u8 }
            pub enum Kind { #[doc = "}"] A, B(u8, u16), C { x: u8 } }
            impl<'a, T: Fn(u8) -> u8> Plain {
                pub fn get(&self, at: usize) -> Option<char> { let x = '}'; pub_use(r#"}"#); None }
                fn hidden(&self) {}
                pub const SIZE: [u8; 2] = [1; 2];
            }
            pub trait Reads: Sized { type Item; fn read(&mut self) -> Self::Item; fn twice(&self) { loop {} } }
            pub type Short = Vec<u8>;
            #[cfg(test)]
            mod tests { pub fn only_here() {} }
            #[doc(hidden)]
            pub fn hidden() {}
        "##;
        let items: Vec<String> = items_of(source).into_iter().collect();
        let mut expected = vec![
            "Kind: A",
            "Kind: B(u8, u16)",
            "Kind: C { x: u8 }",
            "Plain: a: u8",
            "Plain: c: HashMap<u8, [u8; 2]>",
            "Plain: const SIZE: [u8; 2]",
            "Plain: fn get(&self, at: usize) -> Option<char>",
            "Reads: fn read(&mut self) -> Self::Item",
            "Reads: fn twice(&self)",
            "Reads: type Item",
            "enum Kind",
            "fn within()",
            "mod inner",
            "struct Pair(pub u8, _)",
            "struct Plain",
            "trait Reads: Sized",
            "type Short = Vec<u8>",
            "use a::{b, c}",
        ];
        expected.sort_unstable();
        assert_eq!(items, expected);
    }
}
