use super::*;
use crate::request::parse;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn check(hosts: &[&str], request: &str) -> Result<String, u16> {
    let guard = Guard::new(
        TOKEN.into(),
        hosts.iter().map(|&host| host.into()).collect(),
    );
    let (head, _) = parse(request.as_bytes()).unwrap().unwrap();
    guard
        .check(&head)
        .map(str::to_string)
        .map_err(|refused| refused.0)
}

fn get(headers: &str) -> String {
    format!("GET /{TOKEN}/view.js HTTP/1.1\r\n{headers}\r\n")
}

#[test]
fn loopback_names_are_accepted_with_any_port() {
    for host in [
        "127.0.0.1:8000",
        "localhost:1",
        "LOCALHOST",
        "[::1]:65535",
        "[::1]",
    ] {
        assert_eq!(
            check(&[], &get(&format!("Host: {host}\r\n"))),
            Ok("view.js".into()),
            "{host}"
        );
    }
}

#[test]
fn other_names_are_refused() {
    for host in [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost.",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.0.0.1:99999",
        "[::1",
        "[::1]x",
        "",
        "0.0.0.0:80",
    ] {
        assert_eq!(
            check(&[], &get(&format!("Host: {host}\r\n"))),
            Err(403),
            "{host}"
        );
    }
    assert_eq!(check(&[], &get("")), Err(403));
}

#[test]
fn with_hosts_exactly_these_are_accepted() {
    let hosts = ["box.example", "fe80::1"];
    assert!(check(&hosts, &get("Host: box.example:8000\r\n")).is_ok());
    assert!(check(&hosts, &get("Host: [fe80::1]:8000\r\n")).is_ok());
    assert_eq!(check(&hosts, &get("Host: localhost:8000\r\n")), Err(403));
    assert_eq!(check(&hosts, &get("Host: a.box.example\r\n")), Err(403));
}

#[test]
fn the_origin_is_that_of_the_host() {
    let with = |origin: &str| {
        check(
            &[],
            &get(&format!("Host: localhost:80\r\nOrigin: {origin}\r\n")),
        )
    };
    assert!(with("http://localhost:80").is_ok());
    for origin in [
        "null",
        "http://localhost:81",
        "http://127.0.0.1:80",
        "https://localhost:80",
        "http://evil.example",
    ] {
        assert_eq!(with(origin), Err(403), "{origin}");
    }
}

#[test]
fn other_sites_are_refused() {
    let with = |site: &str| {
        check(
            &[],
            &get(&format!("Host: localhost\r\nSec-Fetch-Site: {site}\r\n")),
        )
    };
    assert!(with("same-origin").is_ok());
    assert!(with("none").is_ok());
    assert_eq!(with("cross-site"), Err(403));
    assert_eq!(with("same-site"), Err(403));
}

#[test]
fn the_token_is_the_first_part_of_the_path() {
    let path = |path: &str| {
        check(
            &[],
            &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        )
    };
    assert_eq!(path(&format!("/{TOKEN}/")), Ok(String::new()));
    for wrong in ["/", "/view.js", "//", "/0123456789abcdef/view.js", "*"] {
        assert_eq!(path(wrong), Err(403), "{wrong}");
    }
    assert_eq!(path(&format!("/{TOKEN}")), Err(403));
}

#[test]
fn data_is_asked_for_as_json() {
    let post = |kind: &str| {
        let head = format!("POST /{TOKEN}/api/tiles HTTP/1.1\r\nHost: localhost\r\n{kind}\r\n");
        check(&[], &head)
    };
    assert!(post("Content-Type: application/json\r\n").is_ok());
    assert_eq!(post("Content-Type: text/plain\r\n"), Err(415));
    assert_eq!(post(""), Err(415));
}

#[test]
fn what_two_readers_may_understand_differently_is_refused() {
    let parse = |headers: &str| parse(get(headers).as_bytes()).map(|_| ());
    assert_eq!(
        parse("Host: a\r\nHost: b\r\n"),
        Err(crate::request::BadRequest(400))
    );
    assert!(parse("Content-Length: 1\r\nContent-Length: 1\r\n").is_err());
    assert!(parse("Content-Length: +1\r\n").is_err());
    assert!(parse("Transfer-Encoding: chunked\r\n").is_err());
    assert_eq!(
        parse("Content-Length: 1048577\r\n"),
        Err(crate::request::BadRequest(413))
    );
}

#[test]
fn heads_are_bounded() {
    let long = format!("Host: {}\r\n", "x".repeat(crate::request::MOST_HEAD));
    assert_eq!(
        parse(get(&long).as_bytes()),
        Err(crate::request::BadRequest(431))
    );
    let many = "A: b\r\n".repeat(100);
    assert_eq!(
        parse(get(&many).as_bytes()),
        Err(crate::request::BadRequest(431))
    );
}
