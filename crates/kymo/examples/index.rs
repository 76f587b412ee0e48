//! Measures the index of recordings: first answer, build, queries.
//!
//!     cargo run --release --package kymo --example index -- PATH [WIDTH]

use std::error::Error;
use std::time::Instant;

use kymo::pipeline::Window;
use kymo::timeline::{IndexOptions, Summary, Timeline};
use kymo_time::Timestamp;

/// Processor time that this process has used, in seconds.
fn cpu() -> f64 {
    let (user, system) = kymo_io::cpu_times();
    (user + system).as_secs_f64()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which recording?")?;
    let width: usize = arguments.next().map_or(Ok(2000), |width| width.parse())?;
    let opened = kymo::open::open(&[path.into()], &kymo::open::Options::default());
    let timeline = Timeline::new(opened.recordings);

    let begin = (Instant::now(), cpu());
    let index = timeline.index(IndexOptions::default());
    let first = index.summary(Window::ALL, None, width);
    let first_wall = begin.0.elapsed().as_secs_f64();
    let states = index.wait();
    let rows: u64 = states.iter().map(|state| state.rows).sum();
    let bytes: u64 = states.iter().map(|state| state.bytes).sum();
    println!("first_answer_seconds {first_wall:.4}");
    println!("first_answer_exact {}", first.is_exact());
    println!("build_wall_seconds {:.3}", begin.0.elapsed().as_secs_f64());
    println!("build_cpu_seconds {:.3}", cpu() - begin.1);
    println!("rows {rows}");
    println!(
        "tracks {}",
        states.iter().map(|state| state.tracks).sum::<usize>()
    );
    println!("bytes_a_row {:.4}", bytes as f64 / rows.max(1) as f64);

    let all = index.summary(Window::ALL, None, 1);
    let bins = || all.tracks.iter().flat_map(|track| &track.bins);
    let from = bins().map(|(_, bin)| bin.first).min().unwrap_or(0);
    let to = bins().map(|(_, bin)| bin.last).max().unwrap_or(0);
    for (name, part) in [
        ("whole", 1),
        ("tenth", 10),
        ("thousandth", 1000),
        ("millionth", 1_000_000),
    ] {
        let length = to.abs_diff(from) / part;
        let begin = from + (to.abs_diff(from) / 3) as i64 * i64::from(part > 1);
        let range = Window {
            begin: Timestamp::from_nanos(begin),
            end: Timestamp::from_nanos(begin.saturating_add_unsigned(length)),
        };
        let mut costs = Vec::new();
        let mut summary: Option<Summary> = None;
        for _ in 0..11 {
            let before = cpu();
            let found = index.summary(range, None, width);
            costs.push(cpu() - before);
            summary = Some(found);
        }
        costs.sort_by(f64::total_cmp);
        let bins = summary.map_or(0, |summary| {
            summary.tracks.iter().map(|track| track.bins.len()).sum()
        });
        println!("query_{name}_cpu_ms {:.3} bins {bins}", costs[5] * 1e3);
    }
    Ok(())
}
