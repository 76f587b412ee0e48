use crate::pictures::raster::{Bounds, Polygons, fixed};
use crate::*;
use proptest::prelude::*;

/// The pixels of a PNG with 3 or 4 bytes each.
fn decoded(file: &[u8]) -> (u32, u32, Vec<u8>) {
    let mut reader = ::png::Decoder::new(std::io::Cursor::new(file))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    pixels.truncate(info.buffer_size());
    (info.width, info.height, pixels)
}

fn text(text: &str) -> Text {
    Text::new(text, 0.0, 0.0, Font::new(8.0), Colour::BLACK)
}

#[test]
fn metrics_are_those_of_rrdtool() {
    let fonts = Fonts::new();
    for (size, width, height) in [
        (5.5, 5.0, 10.0),
        (7.0, 6.0, 13.0),
        (8.0, 7.0, 14.0),
        (9.0, 8.0, 15.0),
        (10.0, 8.0, 17.0),
        (12.0, 10.0, 20.0),
    ] {
        let font = Font::new(size);
        assert_eq!(
            (fonts.text_width(&font, "0"), fonts.metrics(&font).height()),
            (width, height),
            "{size} pt"
        );
    }
    assert_eq!(fonts.take_warnings(), Vec::<String>::new());
}

#[test]
fn texts_are_measured_by_lines_and_tabs() {
    let fonts = Fonts::new();
    assert_eq!(
        fonts.measure(&text("abc\nabcde"), 1.0),
        Extents {
            width: 35.0,
            height: 28.0
        }
    );
    assert_eq!(fonts.measure(&text("a\tb"), 1.0).width, 8.0 * 7.0 + 7.0);
    let mut stops = text("a\tb\tc");
    stops.tabs = Some(TabStops {
        first: 20.0,
        step: 40.0,
    });
    assert_eq!(fonts.measure(&stops, 1.0).width, 60.0 + 7.0);
    stops.tabs = Some(TabStops {
        first: 20.0,
        step: 0.0,
    });
    assert_eq!(fonts.measure(&stops, 1.0).width, 3.0 * 7.0 + 2.0 * 7.0);
}

#[test]
fn markup_changes_runs_and_broken_markup_is_text() {
    let fonts = Fonts::new();
    let mut marked = text("a<span size='16pt'>b</span>&lt;");
    marked.markup = true;
    assert_eq!(fonts.measure(&marked, 1.0).width, 7.0 + 13.0 + 7.0);
    assert_eq!(fonts.take_warnings(), Vec::<String>::new());
    for broken in [
        "a<b>c",
        "a</b>",
        "<blink>a</blink>",
        "&nothing;",
        "<span color='x'>a</span>",
    ] {
        marked.text = broken.to_owned();
        assert_eq!(
            fonts.measure(&marked, 1.0).width,
            7.0 * broken.len() as f64,
            "{broken}"
        );
        assert_eq!(fonts.take_warnings().len(), 1, "{broken}");
    }
}

/// Sizes are those that pango 1.50 has, as rrdtool reports them.
#[test]
fn markup_is_laid_out_as_pango_does() {
    let fonts = Fonts::new();
    let mut marked = text("");
    marked.markup = true;
    for (text, width, height) in [
        ("abcd", 28.0, 14.0),
        ("<span letter_spacing='2048'>abc</span>", 25.0, 14.0),
        ("<span letter_spacing='3072'>abc</span>", 27.0, 14.0),
        ("<span letter_spacing='-1024'>abc</span>", 19.0, 14.0),
        ("a<span letter_spacing='2048'>bc</span>d", 32.0, 14.0),
        ("a<span letter_spacing='2048'>bc</span>", 24.0, 14.0),
        ("<span letter_spacing='2048'>abc</span>d", 33.0, 14.0),
        ("<span rise='5000'>abc</span>d", 28.0, 19.0),
        ("<span rise='5pt'>abc</span>d", 28.0, 19.0),
        ("<span rise='-5000'>abc</span>d", 28.0, 19.0),
        ("<span rise='5000'>abc</span>", 21.0, 16.0),
        ("<span rise='10000'>abc</span>", 21.0, 21.0),
        ("<sup>c</sup>", 6.0, 14.0),
        ("<sub>c</sub>", 6.0, 12.0),
        ("<sub>b</sub><sup>c</sup>", 11.0, 21.0),
        ("m<sup>2</sup>s", 19.0, 17.0),
        ("<span font_scale='superscript'>ab</span>", 12.0, 12.0),
        ("<span baseline_shift='superscript'>abc</span>d", 28.0, 19.0),
        (
            "a<span baseline_shift='superscript'>abc</span>d",
            35.0,
            20.0,
        ),
        (
            "<span bgalpha='50%' bgcolor='Dark Green'>abc</span>",
            21.0,
            14.0,
        ),
        (
            "<span color='#f008' underline_color='#123456789'>abc</span>",
            21.0,
            14.0,
        ),
        ("<span text_transform='uppercase'>\u{df}</span>", 14.0, 14.0),
    ] {
        marked.text = text.to_owned();
        let extents = fonts.measure(&marked, 1.0);
        assert_eq!((extents.width, extents.height), (width, height), "{text}");
        assert_eq!(fonts.take_warnings(), Vec::<String>::new(), "{text}");
    }
}

/// Without a name of a family, bold texts are not set in another family.
#[test]
fn bold_texts_are_of_the_default_family() {
    let fonts = Fonts::new();
    let mut bold = Font::new(8.0);
    bold.bold = true;
    // Each glyph of it is as wide; where it is not installed, so are those that are built in.
    let width = |text: &str| fonts.text_width(&bold, text);
    assert_eq!(width("iiii"), width("mmmm"));
}

#[test]
fn a_picture_that_is_too_large_is_refused() {
    let fonts = Fonts::new();
    for (width, height, zoom) in [
        (40_000, 1, 1.0),
        (20_000, 20_000, 1.0),
        (100, 100, 1e9),
        (1, 1, f64::NAN),
        (1, 1, -1.0),
    ] {
        let options = RenderOptions {
            zoom,
            ..RenderOptions::default()
        };
        for render in [png, svg, pdf, eps] {
            let error = render(&Picture::new(width, height), &fonts, &options).unwrap_err();
            assert!(matches!(error, DrawError::Size { .. }), "{error}");
        }
    }
}

#[test]
fn pixels_of_a_rectangle_and_of_transparency() {
    let mut picture = Picture::new(3, 2);
    let red = Paint::Solid(Colour::new(1.0, 0.0, 0.0, 1.0));
    picture
        .items
        .push(Item::Clip(Path::rectangle(0.0, 0.0, 2.0, 2.0)));
    picture.items.push(Item::Fill {
        path: Path::rectangle(1.0, 0.0, 9.0, 1.5),
        paint: red,
    });
    let (_, _, pixels) = decoded(&png(&picture, &Fonts::new(), &RenderOptions::default()).unwrap());
    let (none, full, half) = ([0; 4], [255, 0, 0, 255], [255, 0, 0, 128]);
    assert_eq!(pixels, [none, full, none, none, half, none].concat());
}

#[test]
fn what_is_not_a_number_is_drawn_somewhere() {
    let mut picture = Picture::new(20, 20);
    for value in [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1e300,
        -1e300,
        0.0,
    ] {
        let path = Path::polyline([
            Point::new(value, 1.0),
            Point::new(3.0, value),
            Point::new(value, value),
        ]);
        picture.items.push(Item::Fill {
            path: path.clone(),
            paint: Paint::Solid(Colour::new(value, value, value, value)),
        });
        let mut style = Stroke::round(value);
        picture.items.push(Item::Stroke {
            path: path.clone(),
            colour: Colour::BLACK,
            style: style.clone(),
        });
        (style.width, style.dashes, style.dash_offset) = (1.0, vec![value, 1.0], value);
        picture.items.push(Item::Stroke {
            path: path.clone(),
            colour: Colour::BLACK,
            style: style.clone(),
        });
        style.dashes = vec![1e308, 1e308];
        style.dash_offset = -1.0;
        picture.items.push(Item::Stroke {
            path: path.clone(),
            colour: Colour::BLACK,
            style: style.clone(),
        });
        style.dashes = vec![1e-300, 1.0];
        picture.items.push(Item::Stroke {
            path,
            colour: Colour::BLACK,
            style,
        });
        let mut text = Text::new("x\ty", value, value, Font::new(value), Colour::BLACK);
        (text.angle, text.tabs) = (
            value,
            Some(TabStops {
                first: value,
                step: value,
            }),
        );
        picture.items.push(Item::Text(text));
        let stops = vec![
            (value, Colour::BLACK),
            (value, Colour::WHITE.with_alpha(value)),
        ];
        let paint = Paint::Linear {
            from: Point::new(value, 0.0),
            to: Point::new(value, 0.0),
            stops,
        };
        picture.items.push(Item::Fill {
            path: Path::rectangle(0.0, 0.0, 20.0, 20.0),
            paint,
        });
    }
    for render in [png, svg, pdf, eps] {
        let options = RenderOptions {
            compression: 0,
            ..RenderOptions::default()
        };
        let file = render(&picture, &Fonts::new(), &options).unwrap();
        for word in [&b"NaN"[..], b"inf"] {
            let name = String::from_utf8_lossy(&file[..10]);
            assert!(
                file.starts_with(b"\x89PNG") || !file.windows(3).any(|found| found == word),
                "{name}"
            );
        }
    }
}

#[test]
fn the_same_picture_gives_the_same_bytes() {
    let mut picture = Picture::new(100, 30);
    picture.items.push(Item::Text(text("same bytes")));
    for render in [png, svg, pdf, eps] {
        let [first, second] =
            [(); 2].map(|()| render(&picture, &Fonts::new(), &RenderOptions::default()).unwrap());
        assert_eq!(first, second);
    }
}

#[test]
fn svg_has_texts_as_symbols_or_as_text() {
    let mut picture = Picture::new(40, 20);
    picture.items.push(Item::Text(text("<i>")));
    let symbols = svg(&picture, &Fonts::new(), &RenderOptions::default()).unwrap();
    let symbols = String::from_utf8(symbols).unwrap();
    assert!(
        symbols.contains("<use xlink:href=\"#glyph0-2\" x=\"7\" y=\"11\"/>"),
        "{symbols}"
    );
    let options = RenderOptions {
        svg_text: true,
        ..RenderOptions::default()
    };
    let texts = String::from_utf8(svg(&picture, &Fonts::new(), &options).unwrap()).unwrap();
    assert!(
        texts.contains("textLength=\"21\" lengthAdjust=\"spacingAndGlyphs\">&lt;i&gt;</text>"),
        "{texts}"
    );
}

#[test]
fn a_font_file_is_found_by_its_name_and_damage_is_an_error() {
    let fonts = Fonts::new();
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fonts/DejaVuSansMono.ttf");
    assert_eq!(fonts.add_file(&file).unwrap(), BUILT_IN_FAMILY);
    let error = fonts
        .add_file(std::path::Path::new("/missing/font.ttf"))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot use font `/missing/font.ttf`: "),
        "{error}"
    );
    assert!(fonts.add_data(b"not a font".to_vec()).is_err());
    let mut cut = std::fs::read(file).unwrap();
    cut.truncate(100_000);
    if let Ok(family) = fonts.add_data(cut) {
        let mut damaged = text("damage");
        damaged.font.family = family;
        fonts.measure(&damaged, 1.0);
    }
}

/// A pixel belongs to a shape if its centre does, one on the upper or left edge too: as in cairo.
#[test]
fn without_smooth_edges_centres_of_pixels_decide() {
    let mut picture = Picture::new(4, 4);
    picture.items.push(Item::Fill {
        path: Path::rectangle(0.5, 0.5, 2.5, 2.5),
        paint: Paint::Solid(Colour::BLACK),
    });
    let options = RenderOptions {
        smooth_shapes: false,
        ..RenderOptions::default()
    };
    let (_, _, pixels) = decoded(&png(&picture, &Fonts::new(), &options).unwrap());
    let covered: Vec<usize> = (0..16).filter(|at| pixels[at * 4 + 3] > 0).collect();
    assert_eq!(covered, [0, 1, 4, 5]);
}

/// With the font that rrdtool uses where a command line asks for it, and where it is installed.
#[test]
fn letters_become_ligatures_of_the_font() {
    let file = std::path::Path::new("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf");
    if !file.exists() {
        return;
    }
    let fonts = Fonts::new();
    let family = fonts.add_file(file).unwrap();
    let font = Font::parse(&family, 9.0);
    let face = fonts.find(&font);
    let characters = |text: &str| -> String {
        let glyphs = fonts.glyphs_of(face, text.chars());
        glyphs.iter().map(|(_, character)| character).collect()
    };
    assert_eq!(characters("traffic"), "tra\u{fb03}c");
    assert_eq!(characters("offf if fl"), "o\u{fb00}f if \u{fb02}");
    let spelled: String = characters("traffic")
        .chars()
        .flat_map(crate::pictures::font::spelled)
        .collect();
    assert_eq!(spelled, "traffic");
    let mono = Font::new(9.0);
    assert_eq!(fonts.glyphs_of(fonts.find(&mono), "ffi".chars()).len(), 3);
}

/// Whether a point is inside of a polygon by the non-zero rule.
fn winding(points: &[(f64, f64)], x: f64, y: f64) -> bool {
    let mut winding = 0;
    for (number, from) in points.iter().enumerate() {
        let to = points[(number + 1) % points.len()];
        let crosses = (from.1 <= y) != (to.1 <= y);
        if crosses && from.0 + (y - from.1) / (to.1 - from.1) * (to.0 - from.0) > x {
            winding += if from.1 <= y { 1 } else { -1 };
        }
    }
    winding != 0
}

proptest! {
    /// Coverage is near the share of many points that are inside.
    #[test]
    fn coverage_agrees_with_points(points in prop::collection::vec((-2.0..10.0f64, -2.0..10.0f64), 3..8)) {
        let mut polygons = Polygons::default();
        polygons.add(&points.iter().map(|(x, y)| (fixed(*x), fixed(*y))).collect::<Vec<_>>());
        let mut found = [[0u8; 8]; 8];
        let clip = Bounds { left: 0, top: 0, right: 8 * 256, bottom: 8 * 256 };
        polygons.cover(clip, true, |rows, x, row| {
            for y in rows {
                found[y as usize][x as usize..][..row.len()].copy_from_slice(row);
            }
        });
        for (y, row) in found.iter().enumerate() {
            for (x, level) in row.iter().enumerate() {
                let inside = (0..40 * 40).filter(|sample| {
                    let (column, line) = (sample % 40, sample / 40);
                    winding(&points, x as f64 + (f64::from(column) + 0.5) / 40.0, y as f64 + (f64::from(line) + 0.5) / 40.0)
                }).count();
                let expected = inside as f64 * 255.0 / 1600.0;
                prop_assert!((expected - f64::from(*level)).abs() < 30.0, "{expected} {level} at {x},{y}");
            }
        }
    }

    /// A box of any place is covered exactly.
    #[test]
    fn boxes_are_exact(left in 0..1000i32, top in 0..1000i32, width in 1..1000i32, height in 1..1000i32) {
        let mut polygons = Polygons::default();
        polygons.add(&[(left, top), (left + width, top), (left + width, top + height), (left, top + height)]);
        let clip = Bounds { left: 0, top: 0, right: 8 * 256, bottom: 8 * 256 };
        let shared = |from: i32, length: i32, pixel: i32| ((from + length).min(pixel * 256 + 256) - from.max(pixel * 256)).max(0);
        let mut found = [[0u8; 8]; 8];
        polygons.cover(clip, true, |rows, x, row| {
            for y in rows {
                found[y as usize][x as usize..][..row.len()].copy_from_slice(row);
            }
        });
        for y in 0..8 {
            for x in 0..8 {
                let area = shared(left, width, x) * shared(top, height, y);
                prop_assert_eq!(i32::from(found[y as usize][x as usize]), (area >> 8).min(255));
            }
        }
    }
}
