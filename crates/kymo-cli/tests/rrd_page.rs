//! `kymo rrd cgi`, and a link named rrdcgi: what is expected here, rrdcgi 1.7.2 prints.
#![cfg(unix)]

mod common;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use common::{kymo_in, text};

/// A directory with a database of three values, a page, and a link to the program.
fn place(page: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let words = [
        "rrd",
        "create",
        "t.rrd",
        "--start",
        "1700000000",
        "-s",
        "60",
        "DS:a:GAUGE:120:U:U",
        "RRA:AVERAGE:0.5:1:100",
    ];
    assert_eq!(kymo_in(place.path(), &words).0, 0);
    let words = [
        "rrd",
        "update",
        "t.rrd",
        "1700000060:1",
        "1700000120:2",
        "1700000180:3.5",
    ];
    assert_eq!(kymo_in(place.path(), &words).0, 0);
    std::fs::write(
        place.path().join("page.cgi"),
        format!("#!/usr/bin/rrdcgi\n{page}"),
    )
    .unwrap();
    std::fs::write(place.path().join("inc.html"), "inc <RRD::GETVAR v>\n").unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kymo"), place.path().join("rrdcgi")).unwrap();
    place
}

fn link(place: &Path, words: &[&str], request: &[(&str, &str)], input: &str) -> Output {
    let mut command = Command::new(place.join("rrdcgi"));
    command.args(words).current_dir(place).env("TZ", "UTC");
    command
        .env_remove("REQUEST_METHOD")
        .envs(request.iter().copied());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the link runs");
    // A program that does not read its input is not a failure.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// The headers and the body of a page that is asked for with variables.
fn page(template: &str, query: &str) -> (String, String) {
    let place = place(template);
    let request = [("REQUEST_METHOD", "GET"), ("QUERY_STRING", query)];
    let output = link(place.path(), &["page.cgi"], &request, "");
    assert!(output.status.success(), "{output:?}");
    let all = String::from_utf8(output.stdout).unwrap();
    let (headers, body) = all.split_once("\n\n").unwrap();
    assert!(headers.contains(&format!("Content-Length: {}", body.len())));
    (headers.to_owned(), body.to_owned())
}

#[test]
fn tags_are_replaced_by_what_they_say() {
    for (template, body) in [
        (
            "a<RRD::CV p>b<RRD::CV::QUOTE p>c<RRD::CV::PATH p>d",
            "a../x y_b\"../x y_\"c__/x y_d",
        ),
        (
            "<RRD::CV>|<RRD::CV none>|<RRD::NONE x>",
            "<RRD::CV>||<RRD::NONE x>",
        ),
        (
            "<RRD::SETVAR v 1>. <RRD::GETVAR v> <RRD::GETVAR w>",
            ". 1 [ERROR:_getvar_'w'_failed",
        ),
        ("<RRD::SETENV V 1>. <RRD::GETENV V>", ". 1"),
        (
            "<RRD::SETVAR v <RRD::CV::QUOTE q>>. <RRD::GETVAR v>",
            ". \"r s\"",
        ),
        ("<RRD::SETVAR v V>. <RRD::INCLUDE inc.html>", ". inc V\n"),
        (
            "<RRD::TIME::LAST t.rrd \"%Y-%m-%d %H:%M\">",
            "2023-11-14 22:16",
        ),
        (
            "<RRD::SETENV TZ Europe/Berlin>. <RRD::TIME::LAST t.rrd %H:%M>",
            ". 23:16",
        ),
        (
            "<RRD::TIME::LAST no.rrd %Y>",
            "[ERROR opening 'no.rrd': No such file or directory]",
        ),
        (
            "<RRD::TIME::STRFTIME END 1700000000 start+1h %H:%M>",
            "23:13",
        ),
        ("<RRD::INTERNAL VERSION>", "1.7.2"),
        (
            "x<RRD::GRAPH g.png DEF:a=no.rrd:a:AVERAGE LINE:a>",
            "x[ERROR opening 'no.rrd': No such file or directory]",
        ),
        (
            "<RRD::GRAPH g.png -s 1700000000 -e 1700000300 DEF:a=t.rrd:a:AVERAGE LINE:a#f00 PRINT:a:MAX:%lf \
             'PRINT:a:MIN:min %lf'>|<RRD::PRINT 1>|<RRD::PRINT 2>",
            "<IMG SRC=\"./g.png\" WIDTH=\"481\" HEIGHT=\"141\">|min 1.000000|[ERROR: RRD::PRINT argument error]",
        ),
    ] {
        assert_eq!(page(template, "p=../x+y%3E&q=r+s").1, body, "{template}");
    }
}

#[test]
fn headers_say_how_long_a_page_is_good() {
    let (headers, _) = page("x", "");
    assert!(headers.starts_with("Content-Type: text/html\nContent-Length: 1"));
    assert!(!headers.contains("Expires"));
    let (headers, _) = page("<RRD::GOODFOR 60>", "");
    assert!(headers.contains("\nLast-Modified: ") && headers.contains("\nExpires: "));
    assert!(!headers.contains("Refresh"));
    let (headers, body) = page("<RRD::GOODFOR -60>x", "");
    assert!(headers.ends_with("\nRefresh: 60"));
    assert_eq!(body, "x");
}

#[test]
fn requests_filters_and_files() {
    let place = place("<RRD::CV v>,<RRD::GETVAR x>");
    let post = [("REQUEST_METHOD", "POST"), ("CONTENT_LENGTH", "5")];
    let output = link(place.path(), &["page.cgi"], &post, "v=a+b&w=1");
    assert!(
        output
            .stdout
            .ends_with(b"\n\na b,[ERROR:_getvar_'x'_failed"),
        "{output:?}"
    );
    let output = link(place.path(), &["page.cgi"], &[], "v=1\n");
    assert!(
        output.stdout.ends_with(b"\n\n1,[ERROR:_getvar_'x'_failed"),
        "{output:?}"
    );
    let filtered = "<RRD::CV v>,[ERROR:_getvar_'x'_failed";
    let output = link(place.path(), &["--filter", "page.cgi"], &[], "");
    assert_eq!(String::from_utf8_lossy(&output.stdout), filtered);
    let file = place.path().join("page.cgi");
    let (code, out, _) = kymo_in(place.path(), &["rrd", "cgi", "-f", text(&file)]);
    assert_eq!((code, &*out), (0, filtered));
    let output = link(
        place.path(),
        &["-f", "-"],
        &[],
        "a<RRD::SETVAR x 1><RRD::GETVAR x>",
    );
    assert_eq!(output.stdout, b"a1");
    for (words, error) in [
        (
            &["none.cgi"][..],
            "ERROR: opening 'none.cgi': No such file or directory",
        ),
        (&[], "ERROR: expected a filename"),
        (&["--none", "page.cgi"], "ERROR: invalid option '--none'"),
    ] {
        let output = link(place.path(), words, &[], "");
        assert_eq!(output.status.code(), Some(1));
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(errors.contains(error), "{errors}");
    }
}
