//! The page with its files in it.
//!
//! A browser fetches modules level by level, as each names others: dozens of requests before the first line runs. Here
//! they are two scripts, in the order in which a browser would run them. Their names at the top level are distinct,
//! which a test of this module checks, so that the lines of imports and the word `export` are all there is to remove.
//!
//! The first script is all that the first picture needs. It is in the page itself, as the style is: the page is drawn
//! without another request, and before a browser has read the rest. What the rest imports of it are properties of the
//! global object, which are read each time, as imports are. A page that stands alone has the rest in it, too, since a
//! page of a file may not import other files at all.

use std::collections::{BTreeSet, HashSet};
use std::sync::OnceLock;

use kymo_text::base64;
use serde_json::Value;

use crate::assets::{self, ASSETS};

/// The modules with which the page and the rest of it begin.
const FIRST: &str = "first.js";
const MAIN: &str = "main.js";

/// The name under which a page asks for the rest of it.
pub(crate) const REST: &str = "rest.js";

/// What the page names that comes with it here.
const ICON: &str = "<link rel=\"icon\" href=\"icon.svg\">";
const STYLE: &str = "<link rel=\"stylesheet\" href=\"view.css\">";
const SCRIPT: &str = "<script type=\"module\" src=\"main.js\"></script>\n";

/// What the page of a server does when it is read: it draws, and asks for the rest.
const START: &str = "start(() => import(\"./rest.js\"));";

/// A page in parts. The data that it reads come before the last one.
#[derive(Debug)]
pub(crate) struct Page {
    /// What nobody sees.
    pub(crate) head: String,
    pub(crate) body: String,
    pub(crate) end: String,
}

impl Page {
    /// The page of a server, which asks for the rest of it when it has drawn its first picture. Its policy allows what is in
    /// it by their nonce, and what these import.
    pub(crate) fn served(nonce: &str) -> Self {
        // One script: a browser that draws between two would draw a page without a picture.
        let first = first();
        Self::new(
            nonce,
            &format!("<script nonce=\"{nonce}\">\n{first}{START}\n</script>\n"),
        )
    }

    /// A page that has all in it.
    pub(crate) fn alone(nonce: &str) -> Self {
        let (first, rest) = (first(), rest());
        let first = format!("<script nonce=\"{nonce}\">\n{first}</script>\n");
        let rest = format!("<script type=\"module\" nonce=\"{nonce}\">\n{rest}</script>\n");
        Self::new(nonce, &(first + &rest))
    }

    /// A page that names its files.
    pub(crate) fn of_files(page: &str) -> Self {
        let (head, rest) = page.split_at(page.find("<body>").unwrap_or(0));
        let (body, end) = rest.split_at(rest.rfind("</body>").unwrap_or(rest.len()));
        Self {
            head: head.into(),
            body: body.into(),
            end: end.into(),
        }
    }

    fn new(nonce: &str, scripts: &str) -> Self {
        let icon = base64::encode(text("icon.svg").as_bytes());
        let icon = format!("<link rel=\"icon\" href=\"data:image/svg+xml;base64,{icon}\">");
        let style = format!("<style nonce=\"{nonce}\">\n{}</style>", text("view.css"));
        let mut page = text(assets::INDEX).to_string();
        for (place, by) in [(ICON, icon), (STYLE, style), (SCRIPT, String::new())] {
            page = page.replacen(place, &by, 1);
        }
        let mut parts = Self::of_files(&page);
        parts.end.insert_str(0, scripts);
        parts
    }
}

/// Data for a page, as an element with an ID: nothing in the data ends the element.
pub(crate) fn data_element(id: &str, data: &Value) -> String {
    let json = data.to_string().replace('<', "\\u003c");
    format!("<script type=\"application/json\" id=\"{id}\">{json}</script>\n")
}

/// The modules of the first picture as one script.
fn first() -> &'static str {
    static SCRIPT: OnceLock<String> = OnceLock::new();
    SCRIPT.get_or_init(|| {
        let mut script = String::from("(() => {\n\"use strict\";\n");
        add(FIRST, &mut HashSet::new(), &mut script);
        script.push_str("const offered = {\n");
        for name in imported_by_rest() {
            script.push_str(&format!("{name}: {{ get: () => {name} }},\n"));
        }
        script.push_str("};\nObject.defineProperties(globalThis, offered);\n})();\n");
        script
    })
}

/// The other modules as one.
pub(crate) fn rest() -> &'static str {
    static SCRIPT: OnceLock<String> = OnceLock::new();
    SCRIPT.get_or_init(|| {
        let mut script = String::new();
        add(MAIN, &mut of_first(), &mut script);
        script
    })
}

/// The modules that the first picture needs.
fn of_first() -> HashSet<&'static str> {
    let mut modules = HashSet::new();
    add(FIRST, &mut modules, &mut String::new());
    modules
}

/// The names that the rest imports from the first script.
fn imported_by_rest() -> BTreeSet<&'static str> {
    let first = of_first();
    let modules = ASSETS.iter().map(|asset| asset.name);
    let rest = modules.filter(|name| name.ends_with(".js") && !first.contains(name));
    let lines = rest.flat_map(|name| text(name).lines());
    let from_first =
        lines.filter(|line| imported(line).is_some_and(|module| first.contains(module)));
    from_first.flat_map(imported_names).collect()
}

/// The text of a file.
fn text(name: &str) -> &'static str {
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    let bytes = asset.map_or(&[][..], |asset| asset.bytes);
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// The module that a line imports from.
fn imported(line: &str) -> Option<&str> {
    let (_, name) = line.strip_prefix("import {")?.split_once("} from \"./")?;
    name.strip_suffix("\";")
}

/// The names that a line imports.
fn imported_names(line: &str) -> impl Iterator<Item = &str> {
    let list = line.strip_prefix("import {").unwrap_or_default();
    let list = list.split('}').next().unwrap_or_default();
    list.split(',').map(str::trim)
}

/// Adds a module behind those that it imports.
fn add(name: &'static str, added: &mut HashSet<&'static str>, script: &mut String) {
    if !added.insert(name) {
        return;
    }
    for other in text(name).lines().filter_map(imported) {
        add(other, added, script);
    }
    script.push_str("// ");
    script.push_str(name);
    script.push('\n');
    for line in text(name).lines() {
        // Lines keep their numbers within a module.
        if imported(line).is_none() {
            script.push_str(line.strip_prefix("export ").unwrap_or(line));
        }
        script.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, HashMap};

    /// The name that a line at the top level declares.
    fn declared(line: &str) -> Option<&str> {
        let line = match line.strip_prefix("/**") {
            Some(rest) => rest.split_once("*/ ")?.1,
            None => line,
        };
        let line = line.strip_prefix("export ").unwrap_or(line);
        let line = line.strip_prefix("async ").unwrap_or(line);
        let words = ["function* ", "function ", "const ", "let ", "class "];
        let rest = words.iter().find_map(|word| line.strip_prefix(word))?;
        let end = rest.find(|char: char| !char.is_alphanumeric() && !"_$".contains(char));
        Some(&rest[..end.unwrap_or(rest.len())])
    }

    fn modules() -> impl Iterator<Item = &'static str> {
        let names = ASSETS.iter().map(|asset| asset.name);
        names.filter(|name| name.ends_with(".js"))
    }

    #[test]
    fn modules_can_share_a_scope() {
        let mut names: HashMap<&str, &str> = HashMap::new();
        for module in modules() {
            for line in text(module).lines() {
                let Some(name) = declared(line) else { continue };
                assert!(!name.is_empty(), "{module}: {line}: one name a declaration");
                if let Some(other) = names.insert(name, module) {
                    panic!("`{name}` is declared by `{other}` and `{module}`");
                }
            }
        }
        for module in modules() {
            for line in text(module).lines() {
                if line.starts_with("import") {
                    let from = imported(line).unwrap_or_else(|| panic!("{module}: {line}"));
                    for name in imported_names(line) {
                        assert_eq!(names.get(name), Some(&from), "{module}: {line}");
                    }
                }
                // Forms that are not removed.
                for form in ["export {", "export *", "export default"] {
                    assert!(!line.starts_with(form), "{module}: {line}");
                }
            }
        }
    }

    #[test]
    fn each_module_is_in_one_of_the_scripts() {
        let lines = || first().lines().chain(rest().lines());
        let found: Vec<&str> = lines()
            .filter_map(|line| line.strip_prefix("// ")?.strip_suffix(".js"))
            .collect();
        let distinct: BTreeSet<&str> = found.iter().copied().collect();
        assert_eq!(found.len(), distinct.len());
        let all: BTreeSet<&str> = modules().map(|name| name.trim_end_matches(".js")).collect();
        assert_eq!(distinct, all);
        assert_eq!(found.last(), Some(&"main"));
        // They can stand in a page.
        assert!(lines().all(|line| !line.contains("</script") && !line.contains("<!--")));
        // The first picture waits for less than half of them.
        assert!(first().len() < rest().len(), "{}", first().len());
        assert!(!of_first().contains("actions.js"));
    }

    #[test]
    fn the_rest_gets_what_it_imports() {
        let names = imported_by_rest();
        assert!(names.contains("scene") && names.contains("start"));
        for name in names {
            assert_eq!(
                first()
                    .matches(&format!("\n{name}: {{ get: () => {name} }},"))
                    .count(),
                1
            );
        }
    }
}
