//! `kymo view` without a server: in the terminal, and as a page of its own.

mod common;

use common::{example, good, kymo, kymo_in, text};

#[test]
fn a_time_line_is_drawn_in_the_terminal() {
    let (code, out, _) = kymo_in(
        &example(""),
        &[
            "view",
            "--text",
            "--width",
            "80",
            "--no-cache",
            "lttng-discarded",
        ],
    );
    assert_eq!(code, 0);
    insta::assert_snapshot!(out);
}

#[test]
fn series_are_drawn_between_their_least_and_greatest_value() {
    let directory = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| kymo_in(directory.path(), args);
    let create = [
        "rrd",
        "create",
        "load.rrd",
        "--start",
        "999999960",
        "--step",
        "60",
        "DS:v:GAUGE:120:U:U",
        "RRA:AVERAGE:0.5:1:8",
    ];
    assert_eq!(run(&create).0, 0);
    let update = [
        "rrd",
        "update",
        "load.rrd",
        "1000000020:1",
        "1000000080:2",
        "1000000140:8",
        "1000000200:U",
        "1000000260:4",
    ];
    assert_eq!(run(&update).0, 0);
    let (code, out, _) = run(&["view", "--text", "--width", "60", "--no-cache", "load.rrd"]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(out);
}

#[test]
fn a_page_holds_what_the_range_does() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    let trace = example("lttng-small");
    let all = ["view", "--no-cache", "--export", text(&page), text(&trace)];
    assert_eq!(good(&all), "");
    let whole = std::fs::read_to_string(&page).unwrap();
    assert!(whole.contains("\"whole\":true"));
    assert_eq!(whole.matches("\\\"timestamp\\\":").count(), 3000);
    // Nothing of it is fetched.
    assert!(!whole.contains("src=") && !whole.contains("href=\"h"));
    let few = [
        "view",
        "--no-cache",
        "--export",
        text(&page),
        "--force",
        "--export-size",
        "128K",
        text(&trace),
    ];
    let reported = good(&few);
    assert!(reported.contains("hint: choose a range"), "{reported}");
    assert!(std::fs::metadata(&page).unwrap().len() < (whole.len() as u64) / 2);
    // A page without any event says nothing: what would be enough is named, and is enough.
    let export = |size: &str| {
        let size = ["--force", "--export-size", size];
        kymo(&[&all[..], &size[..]].concat())
    };
    let none = export("1");
    assert_eq!(none.status.code(), Some(2));
    let reported = String::from_utf8_lossy(&none.stderr).into_owned();
    let needed = reported.split("hint: use `--export-size ").nth(1).unwrap();
    let needed = needed.split('`').next().unwrap();
    let one = export(needed);
    let reported = String::from_utf8_lossy(&one.stderr).into_owned();
    assert!(reported.contains("the first 1 events"), "{reported}");
}

/// A `kymo serve` with a database in a directory `a`, which asks for a token; it ends with its test.
#[cfg(unix)]
struct Server {
    child: std::process::Child,
    directory: tempfile::TempDir,
    address: String,
}

#[cfg(unix)]
impl Server {
    /// Starts it with lines of its configuration of queries.
    fn new(config: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let create =
            "rrd create a/load.rrd --start 999999900 --step 60 DS:v:GAUGE:120:U:U RRA:LAST:0:1:10";
        let update = "rrd update a/load.rrd 999999960:1 1000000020:2";
        std::fs::create_dir_all(directory.path().join("data/a")).unwrap();
        for words in [create, update] {
            let words = words.replace("a/load.rrd", "data/a/load.rrd");
            let words: Vec<&str> = words.split(' ').collect();
            assert_eq!(run_in(directory.path(), &words).0, Some(0));
        }
        std::fs::write(directory.path().join("tokens"), "# of a test\nfirst\n").unwrap();
        let config = format!("[query]\ntoken-file = \"tokens\"\n{config}");
        std::fs::write(directory.path().join("serve.toml"), config).unwrap();
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap().to_string();
        drop(socket);
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kymo"));
        let words = [
            "serve",
            "--config",
            "serve.toml",
            "--data",
            "data",
            "--query",
            &address,
        ];
        let child = command.args(words).current_dir(directory.path()).spawn();
        let server = Self {
            child: child.unwrap(),
            directory,
            address,
        };
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while std::net::TcpStream::connect(&server.address).is_err() {
            assert!(std::time::Instant::now() < end, "it does not listen");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        server
    }

    /// Draws what words name: status, standard output and standard error.
    fn view(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let always = ["view", "--text", "--width", "60", "--no-cache"];
        run_in(self.directory.path(), &[&always, words].concat())
    }

    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(unix)]
fn run_in(directory: &std::path::Path, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_kymo"));
    let output = command.args(words).current_dir(directory).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[cfg(unix)]
#[test]
fn databases_of_a_server_are_drawn() {
    let mut server = Server::new("");
    let url = format!("http://{}/a", server.address);
    let (code, _, reported) = server.view(&[&url]);
    assert!(
        code != Some(0) && reported.contains("`--token-file`"),
        "{reported}"
    );
    for url in [&url, &format!("{url}/load.rrd"), &url.replace("/a", "")] {
        let (code, out, reported) = server.view(&["--token-file", "tokens", url]);
        assert_eq!(code, Some(0), "{reported}");
        assert!(out.contains("load.rrd"), "{out}");
    }
    let (code, _, reported) = server.view(&["--token-file", "tokens", &format!("{url}/b")]);
    assert!(code != Some(0), "{reported}");
    server.end();
    let (code, _, reported) = server.view(&["--token-file", "tokens", &url]);
    assert!(
        code != Some(0) && reported.contains("refused"),
        "{reported}"
    );
}

#[cfg(unix)]
#[test]
fn connections_to_a_server_are_encrypted() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../kymo-serve/tests/data/tls");
    if !cfg!(feature = "tls") {
        let server = Server::new("");
        let url = format!("https://{}/a", server.address);
        let (code, _, reported) = server.view(&["--token-file", "tokens", &url]);
        assert!(
            code != Some(0) && reported.contains("`--features tls`"),
            "{reported}"
        );
        return;
    }
    let config = format!("certificate = \"{data}/server.pem\"\nkey = \"{data}/server.key\"\n");
    let server = Server::new(&config);
    let port = server.address.rsplit_once(':').unwrap().1;
    let (ca, other) = (format!("{data}/ca.pem"), format!("{data}/other.pem"));
    let view = |ca: &str, url: &str| server.view(&["--token-file", "tokens", "--ca", ca, url]);
    let (code, out, reported) = view(&ca, &format!("https://localhost:{port}/a"));
    assert_eq!(code, Some(0), "{reported}");
    assert!(out.contains("load.rrd"), "{out}");
    for (ca, url, expected) in [
        (&other, format!("https://localhost:{port}/a"), "`--ca FILE`"),
        (&ca, format!("http://localhost:{port}/a"), "https://"),
    ] {
        let (code, _, reported) = view(ca, &url);
        assert!(
            code != Some(0) && reported.contains(expected),
            "{url}: {reported}"
        );
    }
}

#[test]
fn views_are_checked() {
    let trace = example("lttng-small");
    for (args, expected) in [
        (
            ["--export", "-"],
            "a page is not written to standard output",
        ),
        (
            ["--assets", "/nowhere"],
            "`/nowhere` of --assets is not a directory",
        ),
    ] {
        let output = kymo(&[&["view"], &args[..], &[text(&trace)]].concat());
        let reported = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{reported}");
        assert!(reported.contains(expected), "{reported}");
    }
    let wrong = |state: &str| kymo(&["view", "--no-open", "--at", state, "x"]);
    for state in ["", "a b", "<script>", "a\u{e9}"] {
        assert_eq!(wrong(state).status.code(), Some(2), "{state}");
    }
    let output = kymo(&[
        "view",
        "--export",
        "/nowhere/page.html",
        "--no-cache",
        text(&example("lttng-small")),
    ]);
    assert_eq!(output.status.code(), Some(2));
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(
        reported.contains("cannot write `/nowhere/page.html`"),
        "{reported}"
    );
}

#[test]
fn a_page_does_not_replace_a_file_unless_forced() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("page.html");
    std::fs::write(&page, "mine").unwrap();
    let trace = example("lttng-small");
    let all = ["view", "--no-cache", "--export", text(&page), text(&trace)];
    let output = kymo(&all);
    assert_eq!(output.status.code(), Some(2));
    let reported = String::from_utf8_lossy(&output.stderr);
    assert!(
        reported.contains("already exists\nhint: `--force` overwrites it"),
        "{reported}"
    );
    assert_eq!(std::fs::read_to_string(&page).unwrap(), "mine");
    let mut forced = all.to_vec();
    forced.push("--force");
    assert_eq!(good(&forced), "");
    assert!(std::fs::read_to_string(&page).unwrap().contains("embedded"));
}

#[test]
fn options_of_the_server_have_no_meaning_without_it() {
    for options in [
        &["--port", "8000"][..],
        &["--host", "localhost"],
        &["--stay"],
        &["--no-open"],
        &["--assets", "."],
        &["--add", "."],
        &["--daemon", "unix:x"],
        &["--at", "abc"],
    ] {
        for way in [&["--text"][..], &["--export", "page.html"]] {
            let all = [&["view"][..], options, way, &["x"]].concat();
            let output = kymo(&all);
            let reported = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{all:?}");
            assert!(
                reported.contains("cannot be used with"),
                "{all:?}: {reported}"
            );
        }
    }
    for option in [
        &["--force"][..],
        &["--export-size", "1M"],
        &["--width", "80"],
    ] {
        for (server, expected) in [(None, "is missing"), (Some("--no-open"), "cannot be used")] {
            let all = [&["view"][..], server.as_slice(), option, &["x"]].concat();
            let output = kymo(&all);
            let reported = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{all:?}");
            assert!(reported.contains(expected), "{all:?}: {reported}");
        }
    }
}
