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

    /// The colour `0xRRGGBBAA`.
    const fn rgba(rgba: u32) -> Self {
        let [red, green, blue, alpha] = rgba.to_be_bytes();
        Self::new(
            red as f64 / 255.0,
            green as f64 / 255.0,
            blue as f64 / 255.0,
            alpha as f64 / 255.0,
        )
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

/// The colours of the parts of a dark picture: background, canvas, two shades, minor and major grid, texts, arrows,
/// axes, frames.
pub(super) const DARK: [Colour; 10] = [
    Colour::rgba(0x1e_1f_22_ff),
    Colour::rgba(0x16_17_19_ff),
    Colour::rgba(0x3a_3c_40_ff),
    Colour::rgba(0x0c_0d_0e_ff),
    Colour::rgba(0x8a_8f_98_80),
    Colour::rgba(0xd0_7a_7a_a0),
    Colour::rgba(0xe4_e6_ea_ff),
    Colour::rgba(0xe0_70_70_ff),
    Colour::rgba(0xb8_bc_c4_ff),
    Colour::rgba(0xb8_bc_c4_ff),
];

/// Sets of colours that readers with any colour vision deficiency can distinguish: of Masataka Okabe and Kei Ito
/// (2008), without black, and of Paul Tol (2021).
pub(super) const PALETTES: [(&str, &[Colour]); 3] = [
    (
        "okabe-ito",
        &[
            Colour::rgba(0x00_72_b2_ff),
            Colour::rgba(0xe6_9f_00_ff),
            Colour::rgba(0x00_9e_73_ff),
            Colour::rgba(0xd5_5e_00_ff),
            Colour::rgba(0x56_b4_e9_ff),
            Colour::rgba(0xcc_79_a7_ff),
            Colour::rgba(0xf0_e4_42_ff),
        ],
    ),
    (
        "tol-bright",
        &[
            Colour::rgba(0x44_77_aa_ff),
            Colour::rgba(0xee_66_77_ff),
            Colour::rgba(0x22_88_33_ff),
            Colour::rgba(0xcc_bb_44_ff),
            Colour::rgba(0x66_cc_ee_ff),
            Colour::rgba(0xaa_33_77_ff),
            Colour::rgba(0xbb_bb_bb_ff),
        ],
    ),
    (
        "tol-muted",
        &[
            Colour::rgba(0x33_22_88_ff),
            Colour::rgba(0x88_cc_ee_ff),
            Colour::rgba(0x44_aa_99_ff),
            Colour::rgba(0x11_77_33_ff),
            Colour::rgba(0x99_99_33_ff),
            Colour::rgba(0xdd_cc_77_ff),
            Colour::rgba(0xcc_66_77_ff),
            Colour::rgba(0x88_22_55_ff),
            Colour::rgba(0xaa_44_99_ff),
        ],
    ),
];

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
