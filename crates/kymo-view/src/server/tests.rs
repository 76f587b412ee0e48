//! The server as a client sees it.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;
use crate::tests::scene;

fn start() -> (u16, String) {
    let server = Server::bind(&ServerOptions::default()).unwrap();
    let answer = place(&server);
    let scene = scene(None);
    std::thread::spawn(move || server.run(Api::new(scene)));
    answer
}

/// The port and the token of a server.
fn place(server: &Server) -> (u16, String) {
    let address = server.address();
    let rest = address.strip_prefix("http://127.0.0.1:").unwrap();
    let (port, token) = rest.split_once('/').unwrap();
    let answer = (
        port.parse().unwrap(),
        token.trim_end_matches('/').to_string(),
    );
    assert_eq!(answer.1.len(), 32);
    answer
}

/// Sends bytes, and reads what comes until the connection closes.
fn send(port: u16, bytes: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(bytes.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn the_server_answers_its_own_page_only() {
    let (port, token) = start();
    let get = |path: &str, headers: &str| {
        send(
            port,
            &format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n"),
        )
    };
    let host = format!("Host: localhost:{port}\r\n");
    let page = get(&format!("/{token}/"), &host);
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    // Its script and its style are in it, and no others are allowed.
    let nonce = page.split("script-src 'nonce-").nth(1).unwrap();
    let nonce = nonce.split('\'').next().unwrap();
    assert_eq!(nonce.len(), 24);
    assert_eq!(page.matches(&format!(" nonce=\"{nonce}\">")).count(), 2);
    let policy = format!(
        "Content-Security-Policy: default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'\r\n"
    );
    assert_eq!(page.matches("Content-Security-Policy").count(), 1);
    assert!(!get(&format!("/{token}/"), &host).contains(nonce));
    for header in [
        policy.as_str(),
        "X-Content-Type-Options: nosniff\r\n",
        "Cross-Origin-Opener-Policy: same-origin\r\n",
        "Cross-Origin-Resource-Policy: same-origin\r\n",
        "Referrer-Policy: no-referrer\r\n",
    ] {
        assert!(page.contains(header), "{header}");
    }
    assert!(!page.contains("Access-Control"));

    // All that are refused learn the same: nothing.
    let rebound = get(&format!("/{token}/"), "Host: evil.example\r\n");
    let guessed = get("/0123456789abcdef0123456789abcdef/", &host);
    let foreign = get(
        &format!("/{token}/"),
        &format!("{host}Origin: http://evil.example\r\n"),
    );
    let embedded = get(
        &format!("/{token}/"),
        &format!("{host}Sec-Fetch-Site: cross-site\r\n"),
    );
    assert!(rebound.starts_with("HTTP/1.1 403 Forbidden\r\n") && rebound.ends_with("\r\n\r\n"));
    assert!(
        [guessed, foreign, embedded]
            .iter()
            .all(|answer| *answer == rebound)
    );
    // A name in a path leads nowhere.
    assert!(get(&format!("/{token}/../Cargo.toml"), &host).starts_with("HTTP/1.1 404"));

    // The page brings along what it shows first, and is not the same later.
    assert!(page.contains("<script type=\"application/json\" id=\"first\">{\"keep\":"));
    assert!(page.contains("Cache-Control: no-store\r\n"));
    assert!(!page.contains("// main.js"));
    let rest = get(&format!("/{token}/rest.js"), &host);
    assert!(rest.contains("Content-Type: text/javascript") && rest.contains("\n// main.js\n"));
    let script = get(&format!("/{token}/main.js"), &host);
    assert!(script.contains("script-src 'self'; style-src 'self';"));
    let etag = script
        .split("ETag: ")
        .nth(1)
        .unwrap()
        .split("\r\n")
        .next()
        .unwrap();
    let known = get(
        &format!("/{token}/main.js"),
        &format!("{host}If-None-Match: {etag}\r\n"),
    );
    assert!(known.starts_with("HTTP/1.1 304") && known.ends_with("\r\n\r\n"));
}

#[test]
fn the_page_is_sent_while_recordings_are_opened() {
    let mut server = Server::bind(&ServerOptions::default()).unwrap();
    let (port, token) = place(&server);
    assert!(server.start());
    let get = |name: &str| {
        format!(
            "GET /{token}/{name} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n"
        )
    };
    assert!(send(port, &get("main.js")).starts_with("HTTP/1.1 200 OK\r\n"));
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(get("").as_bytes()).unwrap();
    let mut page = Vec::new();
    let has = |page: &[u8], text: &str| String::from_utf8_lossy(page).contains(text);
    while !has(&page, "<dialog id=\"dialog\">") {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the page ends early");
        page.extend_from_slice(&buffer[..count]);
    }
    assert!(has(&page, "HTTP/1.1 200 OK\r\n") && !has(&page, "id=\"first\""));
    // What it shows first comes as soon as there is something.
    let scene = scene(None);
    std::thread::spawn(move || server.run(Api::new(scene)));
    stream.read_to_end(&mut page).unwrap();
    assert!(has(&page, "id=\"first\">{\"keep\":") && has(&page, "</html>"));
}

#[test]
fn data_is_posted_as_json_on_one_connection() {
    let (port, token) = start();
    let post = |name: &str, kind: &str, body: &str, close: bool| {
        let close = if close { "Connection: close\r\n" } else { "" };
        format!(
            "POST /{token}/api/{name} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {kind}\r\n{close}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let json = "application/json";
    let two =
        post("scene", json, "{}", false) + &post("page", json, r#"{"time":"0","limit":1}"#, true);
    let answers = send(port, &two);
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2, "{answers}");
    assert!(answers.contains("\"recordings\":{") && answers.contains("\"lines\":["));
    assert!(send(port, &post("scene", "text/plain", "{}", true)).starts_with("HTTP/1.1 415"));
    assert!(send(port, &post("nothing", json, "{}", true)).starts_with("HTTP/1.1 404"));
    for wrong in [
        ("tiles", "{}"),
        ("tiles", r#"{"shift":60,"first":"0","count":1,"tracks":[]}"#),
        (
            "tiles",
            r#"{"shift":53,"first":"9223372036854775807","count":16,"tracks":[]}"#,
        ),
        (
            "tiles",
            r#"{"shift":0,"first":"0","count":1,"tracks":[-1]}"#,
        ),
        ("few", r#"{"begin":"5","end":"4","limit":1,"tracks":[]}"#),
        ("search", r#"{"text":"len >","mode":"where"}"#),
        ("found", r#"{"job":7,"begin":"0","end":"1","width":1}"#),
        ("page", "[[[[["),
    ] {
        let answer = send(port, &post(wrong.0, json, wrong.1, true));
        assert!(
            answer.starts_with("HTTP/1.1 422") && answer.contains("\"error\":"),
            "{wrong:?} {answer}"
        );
    }
    let long = format!(
        "POST /{token}/api/scene HTTP/1.1\r\nHost: localhost\r\nContent-Type: {json}\r\nContent-Length: 1048577\r\n\r\n"
    );
    let answer = send(port, &long);
    assert!(
        answer.starts_with("HTTP/1.1 413") && answer.ends_with("larger than 1048576 bytes\n"),
        "{answer}"
    );
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(65));
    let answer = send(port, &many);
    assert!(
        answer.starts_with("HTTP/1.1 431") && answer.ends_with("more than 64 headers\n"),
        "{answer}"
    );
    let parts = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(send(port, parts).ends_with("send `Content-Length`\n"));
    assert!(send(port, "BREW / HTCPCP/1.0\r\n\r\n").starts_with("HTTP/1.1 4"));
}

#[test]
fn all_requests_are_answered_whatever_the_numbers() {
    let api = Api::new(scene(None));
    let times = ["-9223372036854775808", "-1", "0", "9223372036854775807"];
    for begin in times {
        for end in times {
            for name in ["slices", "few", "stats"] {
                let body = format!(
                    r#"{{"begin":"{begin}","end":"{end}","width":4096,"limit":9,"tracks":[0,1,4294967295]}}"#
                );
                let _ = api.answer(name, body.as_bytes());
            }
            let body = format!(
                r#"{{"time":"{begin}","skip":18446744073709551615,"back":true,"limit":1,"track":0,"step":-1}}"#
            );
            let _ = api.answer("page", body.as_bytes());
            let _ = api.answer("event", body.as_bytes());
        }
        for step in [i64::MIN, -1, 0, 1, i64::MAX] {
            let body = format!(
                r#"{{"time":"{begin}","track":1,"step":{step},"nth":18446744073709551615}}"#
            );
            let _ = api.answer("event", body.as_bytes());
        }
    }
}

#[test]
fn only_this_machine_reaches_the_server() {
    let server = Server::bind(&ServerOptions::default()).unwrap();
    let addresses = server
        .listeners
        .iter()
        .map(|listener| listener.local_addr().unwrap());
    assert!(
        addresses
            .map(|address| address.ip())
            .all(|ip| ip.is_loopback())
    );
    let other = Server::bind(&ServerOptions::default()).unwrap();
    assert_ne!(server.shared.guard.token(), other.shared.guard.token());
}

#[test]
fn connections_are_bounded_and_none_keeps_others_waiting() {
    let (port, token) = start();
    let path = format!("GET /{token}/icon.svg HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let connect = || TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut page = connect();
    page.write_all(path.as_bytes()).unwrap();
    let mut part = [0; 64];
    let count = page.read(&mut part).unwrap();
    assert!(part[..count].starts_with(b"HTTP/1.1 200"));
    // Those that ask nothing give way to each other: who knows the token stays, and is answered at once.
    let from = Instant::now();
    let mut held: Vec<TcpStream> = (0..300).map(|_| connect()).collect();
    let close = path.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    assert!(send(port, &close).starts_with("HTTP/1.1 200"));
    page.write_all(close.as_bytes()).unwrap();
    let mut rest = Vec::new();
    page.read_to_end(&mut rest).unwrap();
    let rest = String::from_utf8_lossy(&rest);
    assert!(rest.contains("HTTP/1.1 200 OK"), "{rest}");
    assert!(from.elapsed() < FIRST_TIME, "{:?}", from.elapsed());
    // Who sends nothing, or a head that never ends, is disconnected soon.
    let last = held.len() - 1;
    held[last].write_all(b"GET / HTTP/1.1\r\nHost: ").unwrap();
    for mut one in held {
        let mut nothing = Vec::new();
        let _ = one.read_to_end(&mut nothing);
        assert!(nothing.is_empty());
    }
}

#[test]
fn a_connection_that_waits_for_an_answer_stays() {
    let connections = Arc::new(Connections::default());
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let enter = || {
        let client = TcpStream::connect(address).unwrap();
        let (stream, _) = listener.accept().unwrap();
        (Connections::enter(&connections, &stream), client)
    };
    let mut places = Vec::new();
    for at in 0..connections::MOST_CONNECTIONS {
        let (place, client) = enter();
        let mut place = place.unwrap();
        place.asked();
        if at == 5 {
            place.answered();
        }
        places.push((place, client));
    }
    // The one that waits for the next request gives way, and its client sees the end.
    let (other, _client) = enter();
    let mut other = other.unwrap();
    assert_eq!(places[5].1.read(&mut [0; 8]).unwrap(), 0);
    other.asked();
    assert!(enter().0.is_none());
    drop(places.pop());
    assert!(enter().0.is_some());
}

#[test]
fn texts_of_recordings_never_become_markup() {
    let sinks = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
        "srcdoc",
        "setHTML",
        "createContextualFragment",
    ];
    for asset in assets::ASSETS {
        let text = String::from_utf8_lossy(asset.bytes);
        for sink in sinks {
            assert!(!text.contains(sink), "{}: {sink}", asset.name);
        }
    }
}
