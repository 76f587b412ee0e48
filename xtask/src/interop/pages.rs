//! Pages of rrdcgi's language, made by Debian's rrdcgi and by kymo through a link of that name.
//!
//! `pages.jsonl` has a page in each line, with its request and environment: all tags of rrdcgi's manual page, nested
//! tags, quotes, wrong arguments. What differs on purpose, as docs/graph.md says, is not among them.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use super::Counts;
use crate::Outcome;
use crate::process::{command, output, require};

const PAGES: &str = include_str!("pages.jsonl");

/// What a program makes of a page: a JSON object with `page`, the variables of a GET request in `query` or those of a
/// POST request in `post`, an `environment`, and `filter` if there are neither headers nor a request.
fn made_by(program: &Path, page: &Value, folder: &Path) -> Outcome<String> {
    let mut rrdcgi = command("timeout");
    rrdcgi.arg("20").arg(program).current_dir(folder);
    for (name, value) in page["environment"].as_object().into_iter().flatten() {
        rrdcgi.env(name, value.as_str().unwrap_or_default());
    }
    if page["filter"] == true {
        rrdcgi.arg("--filter");
    }
    if let Some(query) = page["query"].as_str() {
        rrdcgi.env("REQUEST_METHOD", "GET");
        rrdcgi.env("QUERY_STRING", query);
    }
    let posted = page["post"].as_str();
    if let Some(posted) = posted {
        rrdcgi.env("REQUEST_METHOD", "POST");
        rrdcgi.env("CONTENT_TYPE", "application/x-www-form-urlencoded");
        rrdcgi.env("CONTENT_LENGTH", posted.len().to_string());
    }
    let text = page["page"].as_str().ok_or("a line without a page")?;
    std::fs::write(folder.join("page"), text)?;
    rrdcgi.arg("page").stdin(Stdio::piped());
    rrdcgi.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = rrdcgi.spawn()?;
    let mut input = child.stdin.take().ok_or("rrdcgi has no input")?;
    if let Some(posted) = posted {
        input.write_all(posted.as_bytes())?;
    }
    drop(input);
    let said = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&said.stdout);
    // These lines have the time.
    let lines = text.split_inclusive('\n').map(|line| {
        let name = line.split(": ").next().unwrap_or_default();
        match name {
            "Last-Modified" | "Expires" => format!("{name}\n"),
            _ => line.to_owned(),
        }
    });
    Ok(format!(
        "{:?} {}",
        said.status.code(),
        lines.collect::<String>()
    ))
}

/// Compares all pages, and prints those that differ.
pub(super) fn run(kymo: &Path) -> Outcome<Counts> {
    require("rrdcgi", "rrdtool")?;
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    std::fs::create_dir(folder.join("sub"))?;
    std::fs::write(
        folder.join("part.html"),
        "included <RRD::GETVAR v> <RRD::TIME::STRFTIME START 1000000000 1000003600 %Y>\n",
    )?;
    let link = folder.join("rrdcgi");
    std::os::unix::fs::symlink(std::path::absolute(kymo)?, &link)?;
    let mut rrdtool = command("rrdtool");
    rrdtool.current_dir(folder).args(["create", "year.rrd"]);
    rrdtool.args(["--start", "1699899700", "--step", "300"]);
    output(rrdtool.args(["DS:in:GAUGE:600:U:U", "RRA:AVERAGE:0.5:1:600"]))?;
    let readings = (0..300).map(|reading| {
        let time = 1_699_900_000 + reading * 300;
        format!("{time}:{}", reading * reading % 77)
    });
    let mut rrdtool = command("rrdtool");
    rrdtool.current_dir(folder).args(["update", "year.rrd"]);
    output(rrdtool.args(readings))?;
    let mut counts = Counts::default();
    for line in PAGES.lines() {
        let page: Value = serde_json::from_str(line)?;
        let theirs = made_by(Path::new("rrdcgi"), &page, folder)?;
        let ours = made_by(&link, &page, folder)?;
        if theirs == ours {
            counts.passed += 1;
            continue;
        }
        counts.failed += 1;
        println!("differs: {line}\n    rrdcgi: {theirs:?}\n    kymo: {ours:?}");
    }
    println!("{} pages of rrdcgi", counts.passed + counts.failed);
    Ok(counts)
}
