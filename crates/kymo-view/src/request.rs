//! Heads of HTTP requests.

/// The largest head, in bytes.
pub const MOST_HEAD: usize = 16 << 10;

/// The largest body, in bytes.
pub const MOST_BODY: u64 = 1 << 20;

const MOST_HEADERS: usize = 64;

/// What a request asks to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// To send an asset.
    Get,
    /// To send data.
    Post,
}

/// The head of a request: the parts that decide about the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// What is to be done.
    pub method: Method,
    /// The path, with the token.
    pub target: String,
    /// The name and port that the browser believes to talk to.
    pub host: Option<String>,
    /// The page that asks, where the browser says so.
    pub origin: Option<String>,
    /// How that page is related to this server, where the browser says so.
    pub fetch_site: Option<String>,
    /// The type of the body.
    pub content_type: Option<String>,
    /// The version of an asset that the browser has.
    pub if_none_match: Option<String>,
    /// The length of the body.
    pub length: u64,
    /// Whether the connection stays open afterwards.
    pub keep_alive: bool,
}

/// Why a request is not understood: the status that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRequest(pub u16);

const BAD: BadRequest = BadRequest(400);

impl BadRequest {
    /// The reason for people, with the limit that the request exceeds.
    pub fn reason(self) -> String {
        match self.0 {
            405 => "only GET and POST are supported\n".into(),
            411 => {
                "requests in parts (`Transfer-Encoding`) are not supported: send `Content-Length`\n"
                    .into()
            }
            413 => format!("the body is larger than {MOST_BODY} bytes\n"),
            417 => "`Expect` is not supported\n".into(),
            431 => format!(
                "the head is larger than {MOST_HEAD} bytes, or has more than {MOST_HEADERS} headers\n"
            ),
            _ => "the request is not HTTP/1\n".into(),
        }
    }
}

/// Reads the head of a request from the bytes that have arrived, and says how many bytes it takes; `None` if more
/// bytes are needed.
///
/// ```
/// use kymo_view::request::{Method, parse};
///
/// let bytes = b"GET /token/ HTTP/1.1\r\nHost: localhost:8000\r\n\r\nrest";
/// let (head, length) = parse(bytes).unwrap().unwrap();
/// assert_eq!((head.method, head.target.as_str()), (Method::Get, "/token/"));
/// assert_eq!(&bytes[length..], b"rest");
/// assert_eq!(parse(b"GET /to").unwrap(), None);
/// ```
///
/// # Errors
///
/// The head is too large, is not HTTP/1, names a header twice that decides something, or asks for what this server
/// does not do (RFC 9110 and 9112).
pub fn parse(bytes: &[u8]) -> Result<Option<(Head, usize)>, BadRequest> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(&bytes[..bytes.len().min(MOST_HEAD)]) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() >= MOST_HEAD => return Err(BadRequest(431)),
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(BadRequest(431)),
        Err(_) => return Err(BAD),
    };
    let method = match request.method {
        Some("GET") => Method::Get,
        Some("POST") => Method::Post,
        _ => return Err(BadRequest(405)),
    };
    let mut head = Head {
        method,
        target: request.path.unwrap_or_default().to_string(),
        host: None,
        origin: None,
        fetch_site: None,
        content_type: None,
        if_none_match: None,
        length: 0,
        keep_alive: request.version == Some(1),
    };
    let mut has_length = false;
    for header in request.headers.iter() {
        let value = std::str::from_utf8(header.value).map_err(|_| BAD)?.trim();
        let slot = match header.name.to_ascii_lowercase().as_str() {
            "host" => &mut head.host,
            "origin" => &mut head.origin,
            "sec-fetch-site" => &mut head.fetch_site,
            "content-type" => &mut head.content_type,
            "if-none-match" => &mut head.if_none_match,
            "content-length" => {
                // Two lengths would let two readers see two different requests.
                let digits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                if has_length || !digits {
                    return Err(BAD);
                }
                has_length = true;
                head.length = value.parse().map_err(|_| BadRequest(413))?;
                continue;
            }
            "transfer-encoding" => return Err(BadRequest(411)),
            "expect" => return Err(BadRequest(417)),
            "connection" => {
                let mut options = value.split(',').map(str::trim);
                head.keep_alive &= !options.any(|option| option.eq_ignore_ascii_case("close"));
                continue;
            }
            _ => continue,
        };
        if slot.replace(value.to_string()).is_some() {
            return Err(BAD);
        }
    }
    if head.length > MOST_BODY {
        return Err(BadRequest(413));
    }
    Ok(Some((head, length)))
}
