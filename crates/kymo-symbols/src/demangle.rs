//! Names as they are in the source.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// The longest name in bytes; what is longer is cut off.
pub const MOST_NAME: usize = 4096;

/// Text that ends at [`MOST_NAME`] bytes: some mangled names are short and mean very long ones.
#[derive(Default)]
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MOST_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// The name in the source of a symbol of C++ or Rust; other names, and those that would be too long, as they are.
pub fn demangled(symbol: &str) -> Cow<'_, str> {
    if symbol.len() > MOST_NAME {
        let mut end = MOST_NAME;
        while !symbol.is_char_boundary(end) {
            end -= 1;
        }
        return symbol[..end].into();
    }
    if !symbol.starts_with('_') {
        return symbol.into();
    }
    let mut text = Limited::default();
    if let Ok(name) = rustc_demangle::try_demangle(symbol) {
        return match write!(text, "{name:#}") {
            Ok(()) => text.0.into(),
            Err(_) => symbol.into(),
        };
    }
    if !symbol.starts_with("_Z") {
        return symbol.into();
    }
    // Compilers add `.cold`, `.isra.0` and similar to names of parts and copies.
    let (mangled, rest) = match symbol.find('.') {
        Some(at) => symbol.split_at(at),
        None => (symbol, ""),
    };
    let Ok(name) = cpp_demangle::BorrowedSymbol::new(mangled.as_bytes()) else {
        return symbol.into();
    };
    let options = cpp_demangle::DemangleOptions::default().recursion_limit(96);
    match name.structured_demangle(&mut text, &options) {
        Ok(()) => {
            text.0.push_str(rest);
            text.0.into()
        }
        Err(_) => symbol.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cpp_and_rust() {
        let names = [
            ("main", "main"),
            ("_start", "_start"),
            ("_ZN6shapes4drawEi", "shapes::draw(int)"),
            ("_ZN6shapes4drawEi.cold", "shapes::draw(int).cold"),
            ("_ZN5rusty7generic17h0123456789abcdefE", "rusty::generic"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("_Z", "_Z"),
            ("_ZNK", "_ZNK"),
        ];
        for (symbol, name) in names {
            assert_eq!(demangled(symbol), name);
        }
    }

    #[test]
    fn names_that_grow_are_left_as_they_are() {
        // Each parameter is a pair of the one before it, twice.
        let mut symbol = String::from("_Z1fI1aE1bIS_S_E");
        for at in 0..30 {
            symbol.push_str(&format!("1bIS{at}_S{at}_E"));
        }
        assert!(demangled(&symbol).len() <= MOST_NAME);
        let long = format!("_ZN{}a{}E", 9999, "x".repeat(9998));
        assert_eq!(demangled(&long).len(), MOST_NAME);
    }
}
