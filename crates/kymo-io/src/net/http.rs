//! Heads of HTTP answers: what all servers of kymo share, whatever their sockets are.

/// The head of an answer of HTTP/1.1, with the empty line behind it: its status, some headers (names and values), the
/// length of the body in bytes, and whether the connection stays open. A body without a length ends with the connection,
/// which must not stay open then.
///
/// ```
/// let head = kymo_io::net::response_head(404, &[("Content-Type", "text/plain")], 5, false);
/// assert_eq!(
///     head,
///     "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"
/// );
/// ```
pub fn response_head(
    status: u16,
    headers: &[(&str, &str)],
    length: impl Into<Option<usize>>,
    keep_alive: bool,
) -> String {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason_phrase(status));
    for (name, value) in headers {
        head.push_str(name);
        head.push_str(": ");
        head.push_str(value);
        head.push_str("\r\n");
    }
    let connection = if keep_alive { "keep-alive" } else { "close" };
    // An answer that never has a body has no length either (RFC 9110, section 8.6).
    if let Some(length) = length.into().filter(|_| status != 204) {
        head.push_str(&format!("Content-Length: {length}\r\n"));
    }
    head.push_str(&format!("Connection: {connection}\r\n\r\n"));
    head
}

/// The reason phrase that goes with a status of HTTP (RFC 9110, section 15); `Error` for those that no server here sends.
///
/// ```
/// assert_eq!(kymo_io::net::reason_phrase(404), "Not Found");
/// ```
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        411 => "Length Required",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Error",
    }
}
