//! The page with all of its files in it.
//!
//! A browser fetches modules level by level, as each names others: dozens of requests before the first line runs. Here
//! all of them are one script, in the order in which a browser would run them. Their names at the top level are distinct,
//! which a test of this module checks, so that the lines of imports and the word `export` are all there is to remove.
//! The script and the style are in the page itself: it is drawn without another request, and a page of a file may not
//! import other files at all.

use std::collections::HashSet;
use std::sync::OnceLock;

use serde_json::Value;

use crate::assets::{self, ASSETS};
use crate::export::base64;

/// The module with which the page begins.
const FIRST: &str = "main.js";

/// What the page names that comes with it here.
const ICON: &str = "<link rel=\"icon\" href=\"icon.svg\">";
const STYLE: &str = "<link rel=\"stylesheet\" href=\"view.css\">";
const SCRIPT: &str = "<script type=\"module\" src=\"main.js\"></script>";

/// The page with its icon, its style and its script in it. Its policy allows the latter two by their nonce.
pub(crate) fn page(nonce: &str) -> String {
    let icon = base64(text("icon.svg").as_bytes());
    let icon = format!("<link rel=\"icon\" href=\"data:image/svg+xml;base64,{icon}\">");
    let style = format!("<style nonce=\"{nonce}\">\n{}</style>", text("view.css"));
    let script = format!(
        "<script type=\"module\" nonce=\"{nonce}\">\n{}</script>",
        bundle()
    );
    let mut page = text(assets::INDEX).to_string();
    for (place, by) in [(ICON, icon), (STYLE, style), (SCRIPT, script)] {
        page = page.replacen(place, &by, 1);
    }
    page
}

/// What of a page comes before and behind the data that it reads.
pub(crate) fn around_data(page: &str) -> (&str, &str) {
    page.split_at(page.rfind("</body>").unwrap_or(page.len()))
}

/// Data for a page, as an element with an ID: nothing in the data ends the element.
pub(crate) fn data_element(id: &str, data: &Value) -> String {
    let json = data.to_string().replace('<', "\\u003c");
    format!("<script type=\"application/json\" id=\"{id}\">{json}</script>\n")
}

/// All modules of the page as one.
fn bundle() -> &'static str {
    static BUNDLE: OnceLock<String> = OnceLock::new();
    BUNDLE.get_or_init(|| {
        let mut script = String::new();
        add(FIRST, &mut HashSet::new(), &mut script);
        script
    })
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
                    let list = line["import {".len()..].split('}').next().unwrap();
                    for name in list.split(',').map(str::trim) {
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
    fn each_module_is_in_it_once() {
        let found: Vec<&str> = bundle()
            .lines()
            .filter_map(|line| line.strip_prefix("// ")?.strip_suffix(".js"))
            .collect();
        let distinct: BTreeSet<&str> = found.iter().copied().collect();
        assert_eq!(found.len(), distinct.len());
        let all: BTreeSet<&str> = modules().map(|name| name.trim_end_matches(".js")).collect();
        assert_eq!(distinct, all);
        assert_eq!(found.last(), Some(&"main"));
        // It can stand in a page.
        assert!(!bundle().contains("</script") && !bundle().contains("<!--"));
    }
}
