//! Creates a database of one data source and four archives, and updates it COUNT times:
//!
//!     updates FILE COUNT [portable|MACHINE]
//!
//! The file stays open and locked. `cargo xtask bench engine` counts the instructions of an update.

use std::error::Error;
use std::path::Path;

use kymo_io::{Locking, Shared};
use kymo_machine::Machine;
use kymo_rrd::engine::{Definition, Measurement, Rrd, Sample, Smoothing, create};
use kymo_rrd::file::convert::{Target, convert};
use kymo_rrd::{Source, Time, file::portable};

/// Seconds of a data point, which are those between updates too.
const STEP: i64 = 300;
const BEGIN: i64 = 1_600_000_200;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, count, form @ ..] = &words[..] else {
        return Err("updates FILE COUNT [portable|MACHINE]".into());
    };
    let path = Path::new(path);
    let form = form.first().map_or("x86_64", String::as_str);
    std::fs::write(path, database(form)?)?;
    let mut file = Shared::open(path)?;
    for _ in 0..2 {
        file.lock(Locking::Try)?;
    }
    let mut rrd = Rrd::open(file)?;
    for number in 1..=count.parse::<u32>()? {
        rrd.update(&Sample {
            time: Time::from_seconds(BEGIN + i64::from(number) * STEP),
            values: &[Measurement::Float(f64::from(number % 1000) / 7.0)],
        })?;
    }
    println!("{}", rrd.database().state.last_update.seconds());
    Ok(())
}

/// A file of a form: of an amd64 machine's, unless it is portable.
fn database(form: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let texts = [
        "DS:load:GAUGE:600:0:U",
        "RRA:AVERAGE:0.5:1:600",
        "RRA:AVERAGE:0.5:6:700",
        "RRA:AVERAGE:0.5:24:775",
        "RRA:MAX:0.5:288:797",
    ];
    let begin = Time::from_seconds(BEGIN);
    let definition = Definition::parse(begin, STEP as u64, &texts, &Smoothing::default())?;
    let database = create(&definition, |_, _| 0)?;
    let file = portable::create(&database, None, &Default::default(), Vec::new())?.into_storage();
    let target = match form {
        "portable" => return Ok(file),
        name => Target::Native(Machine::find(name).ok_or("no such machine")?),
    };
    Ok(convert(&Source::open(&file, None)?, target)?.bytes)
}
