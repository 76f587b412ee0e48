//! Requests of HTTP that bring samples: InfluxDB's lines, Prometheus' remote write, OTLP.

use std::io::Read;
use std::sync::Arc;

use kymo_metrics::influx::{self, Precision};
use kymo_metrics::otlp::Encoding;
use kymo_metrics::remote_write::Version;
use kymo_metrics::{Fault, Problem, Sink as _, otlp, remote_write};
use kymo_text::json::Writer;

use super::options::HttpListen;
use super::session::Session;
use super::{Options, Protocol, Shared};
use crate::http::{self, HttpAnswer, HttpRequest, Limits, Method};
use crate::listen::Stream;

/// How long senders are asked to wait if there is no room.
const RETRY_AFTER: &str = "5";

/// Answers the requests of a connection until it ends.
pub(super) fn serve(shared: &Arc<Shared>, protocol: Protocol, stream: Stream) {
    let listener = stream.listener().to_owned();
    let mut session = Session::new(shared, protocol, &listener, stream.peer());
    session.waits = true;
    let options = Arc::clone(session.options());
    let Some(listen) = options.http(protocol) else {
        return;
    };
    let limits = Limits {
        body: listen.most_request,
        time: listen.timeout,
        idle: listen.listen.idle_timeout,
    };
    // As the latest options say it, whenever the connection began.
    let token_file = || {
        let (options, _) = shared.options();
        options.http(protocol)?.listen.token_file.clone()
    };
    http::serve(stream, &limits, &token_file, &mut |request, _| {
        answer(&request, protocol, listen, &mut session)
    });
}

fn answer(
    request: &HttpRequest,
    protocol: Protocol,
    listen: &HttpListen,
    session: &mut Session,
) -> HttpAnswer {
    let path = request.path.trim_end_matches('/');
    match (protocol, path) {
        (Protocol::Influx, "/ping") => no_content(),
        (Protocol::Influx, "/health" | "/ready") => HttpAnswer::json(
            200,
            br#"{"name":"influxdb","message":"ready for writes","status":"pass"}"#.to_vec(),
        ),
        (Protocol::Influx, "/query") => influx_query(request),
        (Protocol::Influx, "/write" | "/api/v2/write") => {
            write(request, listen, session, |body, session| {
                take_influx(request, body, session)
            })
        }
        (Protocol::RemoteWrite, "/api/v1/write") => {
            write(request, listen, session, |body, session| {
                take_remote_write(request, body, session)
            })
        }
        (Protocol::Otlp, "/v1/metrics") => write(request, listen, session, |body, session| {
            take_otlp(request, body, session)
        }),
        (protocol, _) => {
            let expected = match protocol {
                Protocol::Influx => "/write, /api/v2/write, /ping or /health of InfluxDB",
                Protocol::RemoteWrite => "/api/v1/write of Prometheus",
                _ => "/v1/metrics of OTLP",
            };
            HttpAnswer::text(404, &format!("expected {expected}\n"))
        }
    }
}

fn no_content() -> HttpAnswer {
    let mut answer = HttpAnswer::text(204, "");
    answer
        .headers
        .push(("X-Influxdb-Version", "1.8.10".to_owned()));
    answer
}

/// Telegraf creates its database first. Data is read by the addresses for queries.
fn influx_query(request: &HttpRequest) -> HttpAnswer {
    let mut request = request.clone();
    if let Err(status) = request.read_form() {
        return HttpAnswer::text(status, "the body is not a form\n");
    }
    let query = request.get("q").unwrap_or_default().trim_start();
    let begin = query.get(..query.len().min(15)).unwrap_or_default();
    match begin.eq_ignore_ascii_case("CREATE DATABASE") {
        true => HttpAnswer::json(200, br#"{"results":[{"statement_id":0}]}"#.to_vec()),
        false => HttpAnswer::json(
            400,
            br#"{"error":"InfluxQL is not supported: query the addresses of `query.listen`"}"#
                .to_vec(),
        ),
    }
}

/// Decompresses a body, has it taken, and sees that what is acknowledged is in the journal.
fn write(
    request: &HttpRequest,
    listen: &HttpListen,
    session: &mut Session,
    take: impl FnOnce(&[u8], &mut Session) -> HttpAnswer,
) -> HttpAnswer {
    session.begin(request.body.len());
    if request.method != Method::Post {
        return HttpAnswer::text(405, "only POST is supported\n");
    }
    let body = decompress(
        &request.body,
        &request.content_encoding,
        listen.most_request,
    );
    let answer = match &body {
        Ok(body) => take(body.as_deref().unwrap_or(&request.body), session),
        Err(status) => {
            let problem = Problem::Damaged(match status {
                415 => {
                    "expected Content-Encoding gzip, snappy or none: set another compression in the sender"
                }
                413 => {
                    "the body is longer than `most-request-mib` when it is decompressed: send less at once"
                }
                _ => "the body cannot be decompressed",
            });
            // What was found: the encoding, else the body itself.
            let found = if *status == 415 {
                request.content_encoding.as_bytes()
            } else {
                b""
            };
            let fault = Fault::new(0, problem, found);
            session.fault(fault);
            HttpAnswer::text(*status, &format!("{}\n", fault.text()))
        }
    };
    if session.commit().is_err() {
        return unavailable("the journal cannot be written\n");
    }
    answer
}

/// The body without compression; `None` if it has none.
fn decompress(body: &[u8], encoding: &str, most: usize) -> Result<Option<Vec<u8>>, u16> {
    match encoding {
        "" | "identity" => Ok(None),
        "gzip" => {
            let mut plain = Vec::new();
            let mut decoder = flate2::read::MultiGzDecoder::new(body).take(most as u64 + 1);
            decoder.read_to_end(&mut plain).map_err(|_| 400_u16)?;
            match plain.len() > most {
                true => Err(413),
                false => Ok(Some(plain)),
            }
        }
        "snappy" => {
            let length = snap::raw::decompress_len(body).map_err(|_| 400_u16)?;
            if length > most {
                return Err(413);
            }
            let plain = snap::raw::Decoder::new().decompress_vec(body);
            plain.map(Some).map_err(|_| 400)
        }
        _ => Err(415),
    }
}

fn unavailable(text: &str) -> HttpAnswer {
    let mut answer = HttpAnswer::text(503, text);
    answer.headers.push(("Retry-After", RETRY_AFTER.to_owned()));
    answer
}

fn take_influx(request: &HttpRequest, body: &[u8], session: &mut Session) -> HttpAnswer {
    let precision = request.get("precision").unwrap_or_default();
    let Some(precision) = Precision::from_name(precision) else {
        let text = format!("found precision `{precision}`, expected ns, us, ms, s, m or h");
        return influx_error(400, &text);
    };
    let database = request.get("db").or_else(|| request.get("bucket"));
    influx::parse(body, precision, database.unwrap_or_default(), session);
    let summary = &session.summary;
    match (summary.rejected, summary.is_temporary) {
        (0, _) => no_content(),
        (_, true) => unavailable("there is no room for more updates\n"),
        (_, false) => influx_error(400, &format!("partial write: {}", summary.text())),
    }
}

fn influx_error(status: u16, text: &str) -> HttpAnswer {
    let mut json = Writer::default();
    json.begin_object();
    json.entry("code", "invalid");
    json.entry("error", text);
    json.entry("message", text);
    json.end_object();
    HttpAnswer::json(status, json.as_bytes().to_vec())
}

fn take_remote_write(request: &HttpRequest, body: &[u8], session: &mut Session) -> HttpAnswer {
    let version = match request.content_type.as_str() {
        "" => Some(Version::V1),
        content_type => Version::of_content_type(content_type),
    };
    let Some(version) = version else {
        return wrong_type(
            request,
            "application/x-protobuf, with proto=prometheus.WriteRequest or proto=io.prometheus.write.v2.Request",
            session,
        );
    };
    remote_write::parse(body, version, session);
    let summary = &session.summary;
    let mut answer = match (summary.rejected, summary.is_temporary) {
        (0, _) => HttpAnswer::text(204, ""),
        (_, true) => unavailable("there is no room for more updates\n"),
        // Prometheus does not send it again then.
        (_, false) => HttpAnswer::text(400, &format!("{}\n", summary.text())),
    };
    if version == Version::V2 {
        for (name, count) in [
            ("X-Prometheus-Remote-Write-Samples-Written", summary.taken),
            ("X-Prometheus-Remote-Write-Histograms-Written", 0),
            ("X-Prometheus-Remote-Write-Exemplars-Written", 0),
        ] {
            answer.headers.push((name, count.to_string()));
        }
    }
    answer
}

fn take_otlp(request: &HttpRequest, body: &[u8], session: &mut Session) -> HttpAnswer {
    let Some(encoding) = Encoding::of_content_type(&request.content_type) else {
        let expected = "application/x-protobuf or application/json";
        return wrong_type(request, expected, session);
    };
    let options: Arc<Options> = Arc::clone(session.options());
    otlp::parse(body, encoding, &options.otlp.attributes, session);
    let summary = &session.summary;
    if summary.is_temporary {
        return unavailable("there is no room for more updates\n");
    }
    if summary.is_damaged {
        return HttpAnswer::text(400, &format!("{}\n", summary.text()));
    }
    let body = partial_success(encoding, summary.rejected, &summary.text());
    match encoding {
        Encoding::Json => HttpAnswer::json(200, body),
        Encoding::Protobuf => HttpAnswer {
            content_type: "application/x-protobuf",
            body,
            ..HttpAnswer::text(200, "")
        },
    }
}

/// The answer to a body of another type, which is logged like faults in bodies.
fn wrong_type(request: &HttpRequest, expected: &'static str, session: &mut Session) -> HttpAnswer {
    let found = request.content_type.as_bytes();
    let fault = Fault::new(0, Problem::Syntax(expected), found);
    session.fault(fault);
    let text = format!("Content-Type: {}\n", fault.text());
    HttpAnswer::text(415, &text)
}

/// The message that answers an export: empty if all was taken.
fn partial_success(encoding: Encoding, rejected: u64, text: &str) -> Vec<u8> {
    match encoding {
        Encoding::Json => {
            let mut json = Writer::default();
            json.begin_object();
            if rejected > 0 {
                json.key("partialSuccess");
                json.begin_object();
                json.entry("rejectedDataPoints", rejected.to_string().as_str());
                json.entry("errorMessage", text);
                json.end_object();
            }
            json.end_object();
            json.as_bytes().to_vec()
        }
        Encoding::Protobuf if rejected == 0 => Vec::new(),
        Encoding::Protobuf => {
            let mut inner = vec![1 << 3];
            varint(&mut inner, rejected);
            inner.push(2 << 3 | 2);
            varint(&mut inner, text.len() as u64);
            inner.extend_from_slice(text.as_bytes());
            let mut message = vec![1 << 3 | 2];
            varint(&mut message, inner.len() as u64);
            message.extend_from_slice(&inner);
            message
        }
    }
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn bodies_are_decompressed_within_bounds() {
        let plain = vec![b'x'; 1000];
        let snappy = snap::raw::Encoder::new().compress_vec(&plain).unwrap();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&plain).unwrap();
        let gzip = gzip.finish().unwrap();
        for (body, encoding) in [(&snappy, "snappy"), (&gzip, "gzip")] {
            assert_eq!(decompress(body, encoding, 1000), Ok(Some(plain.clone())));
            assert_eq!(decompress(body, encoding, 999), Err(413));
            assert_eq!(
                decompress(&body[..body.len() / 2], encoding, 1000),
                Err(400)
            );
        }
        assert_eq!(decompress(&plain, "", 1), Ok(None));
        assert_eq!(decompress(&plain, "br", 1), Err(415));
    }

    #[test]
    fn exports_are_answered() {
        assert_eq!(partial_success(Encoding::Json, 0, ""), b"{}");
        assert_eq!(
            partial_success(Encoding::Json, 2, "a\"b"),
            br#"{"partialSuccess":{"rejectedDataPoints":"2","errorMessage":"a\"b"}}"#
        );
        assert_eq!(
            partial_success(Encoding::Protobuf, 300, "ab"),
            b"\x0a\x07\x08\xac\x02\x12\x02ab"
        );
    }
}
