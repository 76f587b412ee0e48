//! Pictures as rrdtool draws them: its SVG is read as a display list, and what kymo renders of it
//! is compared with rrdtool's PNG and SVG.
//!
//! The tests do nothing where rrdtool 1.7.2 or DejaVu Sans Mono is not installed.

mod source;

use kymo_draw::{Fonts, RenderOptions};
use std::path::Path;
use std::process::Command;

/// Options that draw all kinds of items without snapping them to pixels.
const CASES: &[&[&str]] = &[
    &[
        "DEF:a=x.rrd:a:AVERAGE",
        "LINE1:a#ff0000:one",
        "GPRINT:a:MAX:%6.2lf %s\\l",
        "--title",
        "Title, Quite Long",
    ],
    &[
        "DEF:a=x.rrd:a:AVERAGE",
        "AREA:a#00cf0080:half",
        "LINE2:a#002a97:two",
        "--vertical-label",
        "bits per second",
    ],
    &[
        "DEF:a=x.rrd:a:AVERAGE",
        "LINE3:a#123456c0:dashed:dashes=10,3",
        "HRULE:3#ff00ff:rule:dashes=2",
        "--slope-mode",
    ],
    &[
        "DEF:a=x.rrd:a:AVERAGE",
        "AREA:a#00cf00#cf0000:gradient",
        "TICK:a#00000040:0.5",
        "--watermark",
        "Water 0123456789",
    ],
    &[
        "HRULE:3#ff00ff:Hgx(){}[]@#&",
        "VRULE:1700040000#00f:v",
        "COMMENT:ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "COMMENT:abcdefghijklmnopqrstuvwxyz",
    ],
    &[
        "DEF:a=x.rrd:a:AVERAGE",
        "LINE1.5:a#aa0000:zoomed",
        "--zoom",
        "1.7",
        "--title",
        "Zoom",
    ],
    &[
        "DEF:a=x.rrd:a:AVERAGE",
        "LINE0.5:a#aa0000:log",
        "--logarithmic",
        "--lower-limit",
        "0.1",
        "--border",
        "0",
    ],
];

struct Rrdtool {
    directory: tempfile::TempDir,
}

impl Rrdtool {
    /// `None` if there is no rrdtool with known pictures.
    fn find() -> Option<Rrdtool> {
        let version = Command::new("rrdtool").arg("--version").output().ok()?;
        let font = Path::new("/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf");
        if !version.stdout.starts_with(b"RRDtool 1.7.2") || !font.exists() {
            return None;
        }
        let rrdtool = Rrdtool {
            directory: tempfile::tempdir().unwrap(),
        };
        rrdtool.run(&[
            "create",
            "x.rrd",
            "--start",
            "1699999700",
            "--step",
            "300",
            "DS:a:GAUGE:600:U:U",
            "RRA:AVERAGE:0.5:1:400",
        ]);
        let mut updates = vec!["update".to_owned(), "x.rrd".to_owned()];
        updates.extend((0..280u64).map(|number| {
            let value = (number * number * 37 + number * 11) % 101;
            format!(
                "{}:{}",
                1_700_000_000 + number * 300,
                value as f64 / 10.0 + (number as f64 / 20.0).sin() * 4.0
            )
        }));
        rrdtool.run(&updates);
        Some(rrdtool)
    }

    fn run(&self, arguments: &[impl AsRef<str>]) {
        let done = Command::new("rrdtool")
            .args(arguments.iter().map(AsRef::as_ref))
            .current_dir(self.directory.path())
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8")
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    }

    fn graph(&self, format: &str, arguments: &[&str]) -> Vec<u8> {
        let times = [
            "--start",
            "1700000000",
            "--end",
            "1700080000",
            "--no-gridfit",
            "--imgformat",
            format,
        ];
        self.run(&[&["graph", "picture"], &times[..], arguments].concat());
        std::fs::read(self.directory.path().join("picture")).unwrap()
    }
}

fn pixels(file: &[u8]) -> (u32, u32, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(file))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    pixels.truncate(info.buffer_size());
    assert_eq!(info.color_type, png::ColorType::Rgb);
    (info.width, info.height, pixels)
}

#[test]
fn pixels_are_those_of_rrdtool() {
    let Some(rrdtool) = Rrdtool::find() else {
        return;
    };
    let fonts = Fonts::new();
    for case in CASES {
        let zoom = if case.contains(&"--zoom") { 1.7 } else { 1.0 };
        let svg = String::from_utf8(rrdtool.graph("SVG", case)).unwrap();
        let mut picture = source::picture(&svg, &fonts, zoom);
        let (width, height, expected) = pixels(&rrdtool.graph("PNG", case));
        (picture.width, picture.height) = (width, height);
        let file = kymo_draw::png(&picture, &fonts, &RenderOptions::default()).unwrap();
        let (_, _, found) = pixels(&file);
        let differences: Vec<(usize, u8)> = found
            .chunks(3)
            .zip(expected.chunks(3))
            .map(|(a, b)| {
                (0..3)
                    .map(|channel| a[channel].abs_diff(b[channel]))
                    .max()
                    .unwrap()
            })
            .enumerate()
            .filter(|(_, difference)| *difference > 0)
            .collect();
        let worst = differences
            .iter()
            .max_by_key(|(_, difference)| *difference)
            .copied()
            .unwrap_or_default();
        let (x, y) = (worst.0 as u32 % width, worst.0 as u32 / width);
        println!(
            "{} pixels differ, worst by {} at {x},{y}: {case:?}",
            differences.len(),
            worst.1
        );
        // Zoomed corners lie anywhere between cairo's rows of samples, of which a pixel has 15.
        let limit = if zoom == 1.0 { 8 } else { 17 };
        assert!(worst.1 <= limit, "worst {} at {x},{y} of {case:?}", worst.1);
    }
}
