//! Colours as the language writes them.

/// A colour; each part from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Colour {
    pub(crate) red: f64,
    pub(crate) green: f64,
    pub(crate) blue: f64,
    /// 0 is invisible.
    pub(crate) alpha: f64,
}

impl Colour {
    /// An invisible one.
    pub(crate) const NONE: Self = Self::new(0.0, 0.0, 0.0, 0.0);

    pub(crate) const fn new(red: f64, green: f64, blue: f64, alpha: f64) -> Self {
        Self {
            red,
            green,
            blue,
            alpha,
        }
    }

    /// Reads 3, 4, 6 or 8 hexadecimal digits.
    ///
    /// # Errors
    ///
    /// What is wrong, in words.
    pub(crate) fn parse(digits: &[u8]) -> Result<Self, String> {
        let values: Option<Vec<u32>> = digits
            .iter()
            .map(|&byte| char::from(byte).to_digit(16))
            .collect();
        let part = |high: u32, low: u32| f64::from(16 * high + low) / 255.0;
        match values.as_deref() {
            Some(&[r, g, b]) => Ok(Self::new(part(r, r), part(g, g), part(b, b), 1.0)),
            Some(&[r, g, b, a]) => Ok(Self::new(part(r, r), part(g, g), part(b, b), part(a, a))),
            Some(&[r, s, g, h, b, c]) => Ok(Self::new(part(r, s), part(g, h), part(b, c), 1.0)),
            Some(&[r, s, g, h, b, c, a, d]) => {
                Ok(Self::new(part(r, s), part(g, h), part(b, c), part(a, d)))
            }
            _ => Err(format!(
                "'#{}' is not a colour (expected #rgb, #rgba, #rrggbb or #rrggbbaa)",
                String::from_utf8_lossy(digits)
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_have_short_forms() {
        let full = Colour::parse(b"ff000080").unwrap();
        assert_eq!((full.red, full.green), (1.0, 0.0));
        assert_eq!(full.alpha, 128.0 / 255.0);
        assert_eq!(Colour::parse(b"F00"), Colour::parse(b"ff0000"));
        assert_eq!(Colour::parse(b"F008"), Colour::parse(b"ff000088"));
        for wrong in ["", "ff", "gg0000", "fffff", "fffffffff"] {
            assert!(Colour::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
