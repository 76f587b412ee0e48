//! Connections whose answers have no more bytes than were asked for, whatever a server sends.

use std::io;

use async_trait::async_trait;
use http_body_util::{BodyExt, Limited};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService, SpawnedReqwestConnector,
};
use tokio::runtime::Handle;

/// Bytes of an answer to what asks for no range: lists of objects have at most 1000 of them.
const MOST: usize = 16 << 20;

/// Connects in a runtime, and limits answers.
#[derive(Debug)]
pub(super) struct Connector(SpawnedReqwestConnector);

impl Connector {
    pub(super) fn new(runtime: Handle) -> Self {
        Self(SpawnedReqwestConnector::new(runtime))
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Service(self.0.connect(options)?)))
    }
}

#[derive(Debug)]
struct Service(HttpClient);

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let range = request.headers().get("range");
        let range = range.and_then(|range| range.to_str().ok().map(str::to_owned));
        let asked = range.as_deref().and_then(asked);
        let (parts, body) = self.0.execute(request).await?.into_parts();
        // The library adds to these numbers without a look.
        let place = parts.headers.get("content-range");
        if place.is_some_and(|place| !is_possible(place.as_bytes())) {
            let problem = io::Error::other("the server's answer cannot be understood");
            return Err(HttpError::new(HttpErrorKind::Decode, problem));
        }
        // Readers of Parquet files cut the parts that they want from an answer without a look at its length.
        let is_part = parts.status.as_u16() == 206
            && range.is_some_and(|range| !range.starts_with("bytes=-"));
        let length = parts.headers.get("content-length");
        let length = length.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if let (true, Some(expected), Some(length)) = (is_part, asked, length)
            && length < expected
        {
            let problem = io::Error::other(format!(
                "the server sends {length} bytes of a range of {expected}; it may have been changed, query again"
            ));
            return Err(HttpError::new(HttpErrorKind::Decode, problem));
        }
        // Errors are answered with a text.
        let most = match parts.status.is_success() {
            true => asked.unwrap_or(MOST),
            false => MOST,
        };
        let body = Limited::new(body, most)
            .map_err(|error| HttpError::new(HttpErrorKind::Decode, io::Error::other(error)));
        Ok(HttpResponse::from_parts(parts, HttpResponseBody::new(body)))
    }
}

/// Whether all numbers of an answer's range are ones that files may have.
fn is_possible(place: &[u8]) -> bool {
    let numbers = place.split(|byte| !byte.is_ascii_digit());
    numbers.filter(|digits| !digits.is_empty()).all(|digits| {
        let number = std::str::from_utf8(digits)
            .ok()
            .and_then(|value| value.parse::<i64>().ok());
        number.is_some_and(|number| number < i64::MAX)
    })
}

/// How many bytes a range of a request has.
fn asked(range: &str) -> Option<usize> {
    let (begin, end) = range.strip_prefix("bytes=")?.split_once('-')?;
    let end: u64 = end.parse().ok()?;
    let count = match begin {
        // The last bytes.
        "" => end,
        begin => end.checked_sub(begin.parse().ok()?)?.checked_add(1)?,
    };
    usize::try_from(count).ok()
}

#[cfg(test)]
mod tests {
    use super::{asked, is_possible};

    #[test]
    fn numbers_of_answers_are_those_of_files() {
        assert!(is_possible(b"bytes 0-9/10"));
        assert!(is_possible(b"bytes 0-9/*"));
        for wrong in [
            "18446744073709551615",
            "9223372036854775807",
            "99999999999999999999",
        ] {
            assert!(!is_possible(format!("bytes 0-{wrong}/10").as_bytes()));
        }
    }

    #[test]
    fn ranges_say_how_much_is_asked_for() {
        assert_eq!(asked("bytes=0-0"), Some(1));
        assert_eq!(asked("bytes=5-14"), Some(10));
        assert_eq!(asked("bytes=-8"), Some(8));
        for wrong in [
            "bytes=5-",
            "bytes=9-3",
            "lines=1-2",
            "bytes=0-18446744073709551615",
        ] {
            assert_eq!(asked(wrong), None, "{wrong}");
        }
    }
}
