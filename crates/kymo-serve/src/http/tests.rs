use super::*;

#[test]
fn parameters_come_in_the_address_and_in_the_body() {
    let bytes = b"POST /api/v1/query?a=1&b=x%20y HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n\
        Content-Length: 17\r\n\r\nquery=a%2Bb+c&a=2";
    let limits = Limits::default();
    let (head, length) = parse_head(bytes, &limits).unwrap().unwrap();
    let mut request = request(head, bytes[length..].to_vec()).unwrap();
    request.read_form().unwrap();
    assert_eq!(request.path, "/api/v1/query");
    assert_eq!(
        (request.get("b"), request.get("query")),
        (Some("x y"), Some("a+b c"))
    );
    assert_eq!(request.all("a").collect::<Vec<_>>(), ["2", "1"]);
    for (bytes, status) in [
        (
            &b"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"[..],
            400,
        ),
        (b"GET / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n", 413),
        (
            b"GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            411,
        ),
        (
            b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
            400,
        ),
        (b"\0", 400),
    ] {
        assert_eq!(parse_head(bytes, &limits), Err(status));
    }
    assert_eq!(parse_head(b"GET / HT", &limits), Ok(None));
    assert_eq!(decode(b"%zz%4", false), "%zz%4");
}

/// If a connection is closed with bytes that were not read, it is reset, and the answer is lost.
#[test]
fn answers_come_before_the_bodies_are_read() {
    let limits = Limits {
        body: 1 << 20,
        ..Limits::default()
    };
    let directory = tempfile::tempdir().unwrap();
    let tokens = directory.path().join("tokens");
    std::fs::write(&tokens, "secret").unwrap();
    for (header, length, status) in [
        ("", 1_usize << 20, "401"),
        ("Authorization: Bearer secret\r\n", 8 << 20, "413"),
        (
            "Authorization: Bearer secret\r\nExpect: x\r\n",
            1 << 20,
            "417",
        ),
    ] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stream = Stream::of_tcp(listener.accept().unwrap().0);
        let tokens = tokens.clone();
        let server = std::thread::spawn(move || {
            let token_file = || Some(tokens.clone());
            serve(stream, &limits, &token_file, &mut |_, _| {
                HttpAnswer::text(200, "taken\n")
            });
        });
        let head = format!("POST /write HTTP/1.1\r\n{header}Content-Length: {length}\r\n\r\n");
        client.write_all(head.as_bytes()).unwrap();
        // The answer is there before the body.
        let mut begin = [0; 12];
        client.read_exact(&mut begin).unwrap();
        assert_eq!(
            std::str::from_utf8(&begin).unwrap(),
            format!("HTTP/1.1 {status}")
        );
        client.write_all(&vec![b'x'; length]).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("\r\n\r\n"), "{answer}");
        drop(client);
        server.join().unwrap();
    }
}

#[test]
fn tokens_are_those_of_the_file_at_each_request() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokens");
    std::fs::write(&path, "old").unwrap();
    let (stream, mut client) = Stream::pair().unwrap();
    let file = path.clone();
    let server = std::thread::spawn(move || {
        let token_file = || Some(file.clone());
        serve(stream, &Limits::default(), &token_file, &mut |_, _| {
            HttpAnswer::text(204, "")
        });
    });
    let request = b"GET / HTTP/1.1\r\nAuthorization: Bearer old\r\n\r\n";
    for status in ["204", "401"] {
        client.write_all(request).unwrap();
        let mut answer = vec![0; 1 << 12];
        let length = client.read(&mut answer).unwrap();
        let expected = format!("HTTP/1.1 {status} ");
        assert!(answer[..length].starts_with(expected.as_bytes()));
        std::fs::write(&path, "another").unwrap();
    }
    drop(client);
    server.join().unwrap();
}

#[test]
fn bodies_come_in_parts() {
    let limits = Limits {
        body: 8,
        ..Limits::default()
    };
    let text = b"3\r\nabc\r\n5;x=y\r\ndefgh\r\n0\r\nTrailer: x\r\n\r\nGET";
    let length = text.len() - 3;
    assert_eq!(
        dechunk(text, &limits),
        Ok(Some((b"abcdefgh".to_vec(), length)))
    );
    for end in 0..length {
        assert_eq!(dechunk(&text[..end], &limits), Ok(None), "{end}");
    }
    for (text, status) in [
        (&b"9\r\n"[..], 413),
        (b"ffffffffffffffffff\r\n", 400),
        (b"-1\r\n", 400),
        (b"\r\n", 400),
        (b"1\r\nabc", 400),
    ] {
        assert_eq!(dechunk(text, &limits), Err(status));
    }
    let trailers = [&b"0\r\n"[..], &b"a: b\r\n".repeat(MOST_HEAD / 6 + 1)].concat();
    assert_eq!(dechunk(&trailers, &limits), Err(431));
}
