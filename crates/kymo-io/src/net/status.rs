//! Statuses of HTTP.

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
