//! Font files that users name.

use kymo_draw::{Colour, Font, Fonts, Item, Picture, RenderOptions, Text};

/// A damaged font is refused, or texts in it are measured and drawn in every format.
pub fn font(data: &[u8]) {
    let fonts = Fonts::new();
    let Ok(family) = fonts.add_data(data.to_vec()) else {
        return;
    };
    let font = Font {
        family,
        bold: false,
        italic: false,
        size: 8.0,
    };
    let text = Text::new("Ag 0\u{e9}%", 2.0, 2.0, font, Colour::BLACK);
    let mut picture = Picture::new(80, 24);
    picture.items.push(Item::Text(text));
    for render in [
        kymo_draw::png,
        kymo_draw::svg,
        kymo_draw::pdf,
        kymo_draw::eps,
    ] {
        let drawn = render(&picture, &fonts, &RenderOptions::default());
        assert!(
            drawn.is_ok_and(|file| !file.is_empty()),
            "a picture of this size is drawn"
        );
    }
}
