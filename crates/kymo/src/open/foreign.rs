//! Files that are not recordings, named for what they are.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use kymo_cpel::json;
use kymo_io::Compression;

/// What a file is that is not a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Foreign {
    /// What it is, such as `a ZIP archive`; `None` where its content is not known.
    pub what: Option<&'static str>,
    /// What to do.
    pub hint: String,
}

/// A kind of file by how it begins.
struct Known {
    /// Where the bytes stand that say what it is.
    at: usize,
    begins: &'static [u8],
    what: &'static str,
    /// What to do; `FILE` stands for the path.
    hint: &'static str,
}

const fn known(begins: &'static [u8], what: &'static str, hint: &'static str) -> Known {
    Known {
        at: 0,
        begins,
        what,
        hint,
    }
}

/// What to do about files that hold no records of events.
const NO_RECORDING: &str = "specify a recording: `kymo print --help` lists what is read";
const PERF: &str =
    "`perf data convert --to-ctf DIR -i FILE` writes it as a CTF trace, which kymo reads";
const PIPE_XZ: &str = "`xz -dc FILE | kymo print -` reads it from standard input";
const PARQUET: &str = "this kymo was built without the feature `arrow`, which reads such files: install a package of \
     kymo, or build it with `--features arrow`";
const ARROW: &str =
    "kymo writes such tables but does not read them; specify the recording they came from";
const STREAM: &str = "specify the directory with the trace's `metadata` file; if it is missing, copy it from where the trace was recorded, \
     into the directory with the streams";
const SUMMARY: &str = "kymo reads summaries from its cache; specify the recording itself";

/// Kinds of files by how they begin.
static KNOWN: [Known; 36] = [
    known(b"PERFILE2", "data of Linux perf", PERF),
    known(b"2ELIFREP", "data of Linux perf", PERF),
    known(
        b"\x17\x08\x44tracing",
        "data of trace-cmd (ftrace)",
        "`trace-cmd report FILE` prints it; to see it in kymo, record the events with LTTng or perf",
    ),
    known(
        b"LPKSHHRH",
        "a systemd journal",
        "`journalctl --file FILE` prints it",
    ),
    known(
        b"SQLite format 3\0",
        "an SQLite database",
        "`sqlite3 FILE .dump` prints it",
    ),
    known(
        b"PK\x03\x04",
        "a ZIP archive",
        "`unzip FILE -d DIR` extracts it; then specify the directory",
    ),
    known(
        b"7z\xbc\xaf\x27\x1c",
        "a 7z archive",
        "`7z x FILE` extracts it; then specify the directory",
    ),
    known(b"\xfd7zXZ\0", "compressed by xz", PIPE_XZ),
    known(
        b"BZh",
        "compressed by bzip2",
        "`bzip2 -dc FILE | kymo print -` reads it from standard input",
    ),
    known(
        b"\x04\x22\x4d\x18",
        "compressed by lz4",
        "`lz4 -dc FILE | kymo print -` reads it from standard input",
    ),
    known(
        b"\x1f\x9d",
        "compressed by compress",
        "`zcat FILE | kymo print -` reads it from standard input",
    ),
    known(b"PAR1", "a Parquet file", PARQUET),
    known(b"ARROW1", "an Arrow file", ARROW),
    known(
        b"\xc1\x1f\xfc\xc1",
        "a data stream of a CTF trace without its metadata",
        STREAM,
    ),
    known(
        b"\xc1\xfc\x1f\xc1",
        "a data stream of a CTF trace without its metadata",
        STREAM,
    ),
    known(
        b"KYMOIDX",
        "a summary made by `kymo index --summary`",
        SUMMARY,
    ),
    known(
        b"KYMONOT",
        "a note that `kymo index --summary` made of a trace",
        SUMMARY,
    ),
    known(
        b"FLR\0",
        "a recording of Java Flight Recorder",
        "`jfr print FILE` prints it",
    ),
    known(
        b"go 1.",
        "an execution trace of a Go program",
        "`go tool trace FILE` shows it",
    ),
    known(b"\x89PNG\r\n", "a picture (PNG)", NO_RECORDING),
    known(b"\xff\xd8\xff", "a picture (JPEG)", NO_RECORDING),
    known(b"GIF8", "a picture (GIF)", NO_RECORDING),
    known(b"%PDF-", "a PDF document", NO_RECORDING),
    known(b"<svg", "a picture (SVG)", NO_RECORDING),
    known(
        b"<!DOCTYPE html",
        "a web page (HTML)",
        "a download may have failed: `head FILE` shows what came instead",
    ),
    known(
        b"<!doctype html",
        "a web page (HTML)",
        "a download may have failed: `head FILE` shows what came instead",
    ),
    known(
        b"<html",
        "a web page (HTML)",
        "a download may have failed: `head FILE` shows what came instead",
    ),
    known(
        b"#!",
        "a script",
        "run it, and specify the recording that it makes",
    ),
    known(
        b"!<arch>\n",
        "an archive of object files or a Debian package",
        NO_RECORDING,
    ),
    known(b"\xca\xfe\xba\xbe", "a Java class", NO_RECORDING),
    known(b"MZ", "a Windows program", NO_RECORDING),
    known(b"\0asm", "a WebAssembly program", NO_RECORDING),
    known(
        b"\x53\x19\x01\x00",
        "data of Windows Performance Toolkit",
        NO_RECORDING,
    ),
    known(
        b"JAVA PROFILE ",
        "a heap dump of Java",
        "kymo reads recordings of events and metrics, not of memory",
    ),
    known(
        b"/* CTF 1.8",
        "metadata of a CTF trace under another name",
        "rename it to `metadata`, and specify its directory",
    ),
    Known {
        at: 4,
        begins: b"ftyp",
        what: "a video",
        hint: NO_RECORDING,
    },
];

/// What a file is that no format takes for its own; of a compressed file, `bytes` are its content.
pub(super) fn recognize(bytes: &[u8], path: &Path) -> Foreign {
    recognize_in(bytes, compression(path), path)
}

/// How the file at a path is compressed.
fn compression(path: &Path) -> Option<Compression> {
    let mut begin = Vec::new();
    File::open(path)
        .ok()?
        .take(16)
        .read_to_end(&mut begin)
        .ok()?;
    Compression::detect(&begin)
}

fn recognize_in(bytes: &[u8], compression: Option<Compression>, path: &Path) -> Foreign {
    let found = |what: &'static str, hint: &str| Foreign {
        what: Some(what),
        hint: hint.replace("FILE", &path.display().to_string()),
    };
    if bytes.is_empty() {
        return match compression {
            Some(_) => found(
                "compressed, and nothing is in it",
                "the program whose output was compressed wrote nothing: run it again, and look at its errors",
            ),
            None => found(
                "empty",
                "nothing was written yet: let the program that writes it end, or look at its errors",
            ),
        };
    }
    if let Some(known) = KNOWN.iter().find(|known| {
        bytes
            .get(known.at..)
            .is_some_and(|bytes| bytes.starts_with(known.begins))
    }) {
        return found(known.what, known.hint);
    }
    if bytes.starts_with(b"\x7fELF") {
        return match elf_type(bytes) {
            Some(4) => found("a core dump", "`gdb PROGRAM FILE` opens it"),
            _ => found(
                "a program (ELF)",
                "run it, and specify the recording that it makes",
            ),
        };
    }
    if is_whisper(bytes) {
        return found(
            "a Whisper database (Graphite)",
            "`whisper-dump FILE` prints it; kymo reads databases of rrdtool",
        );
    }
    let text = bytes.trim_ascii_start();
    match (text.first(), compression) {
        (Some(b'{'), _) if json::begins(text) => found(
            "events as lines of JSON",
            "kymo reads such lines only if `kymo convert LOG.cpel --to jsonl` wrote them; specify the recording that they \
             were made of",
        ),
        (Some(b'{' | b'['), _) => found(
            "JSON, but not a trace",
            "a Chrome trace is an object with `traceEvents`, or a list of events with `ph` and `ts`",
        ),
        (Some(b'<'), _) if holds(text, b"<rrd>") => found(
            "XML of a database (`rrdtool dump`)",
            "`kymo rrd restore FILE NEW.rrd` makes the database of it, which kymo reads",
        ),
        (Some(b'<'), _) => found("XML", NO_RECORDING),
        (_, Some(Compression::Gzip)) if is_text(bytes) => {
            found("text, compressed by gzip", NO_RECORDING)
        }
        (_, Some(_)) if is_text(bytes) => found("compressed text", NO_RECORDING),
        _ if is_text(bytes) => found("text", NO_RECORDING),
        _ => Foreign {
            what: None,
            hint:
                "kymo does not know its format (the program `file` may); it reads CTF, Perfetto and Chrome traces, RRD databases, \
                 CPEL and elog files, and captures of collectd's datagrams"
                    .to_string(),
        },
    }
}

/// Kinds of files that hold records, in a form that another program makes readable.
const RECORDS: [&str; 9] = [
    "data of Linux perf",
    "data of trace-cmd (ftrace)",
    "a systemd journal",
    "a data stream of a CTF trace without its metadata",
    "a Whisper database (Graphite)",
    "a recording of Java Flight Recorder",
    "an execution trace of a Go program",
    "XML of a database (`rrdtool dump`)",
    "metadata of a CTF trace under another name",
];

/// The first file at or below a directory that holds records, among those that are looked at.
pub(super) fn records_below(directory: &Path) -> Option<(PathBuf, Foreign)> {
    /// Enough for a hint.
    const LOOKED_AT: usize = 500;
    let mut ahead = vec![directory.to_path_buf()];
    let mut looked_at = 0;
    while let Some(directory) = ahead.pop() {
        let mut entries: Vec<_> = std::fs::read_dir(directory)
            .ok()?
            .flatten()
            .take(LOOKED_AT)
            .collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            looked_at += 1;
            if looked_at > LOOKED_AT {
                return None;
            }
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() {
                ahead.push(entry.path());
            } else if kind.is_file()
                && let Some(foreign) = records_in(&entry.path())
            {
                return Some((entry.path(), foreign));
            }
        }
    }
    None
}

/// What a file is, if it holds records.
fn records_in(path: &Path) -> Option<Foreign> {
    let mut begin = Vec::new();
    let file = File::open(path).ok()?;
    file.take(TEXT_BYTES as u64).read_to_end(&mut begin).ok()?;
    let foreign = recognize_in(&begin, None, path);
    foreign
        .what
        .is_some_and(|what| RECORDS.contains(&what))
        .then_some(foreign)
}

/// What a device, pipe or socket is.
pub(super) fn special() -> Foreign {
    Foreign {
        what: Some("a device, pipe or socket"),
        hint: "kymo reads standard input with the path `-`".to_string(),
    }
}

/// The first bytes of a text are looked at.
const TEXT_BYTES: usize = 4096;

fn is_text(bytes: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len().min(TEXT_BYTES)];
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // A character may be cut.
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !text.is_empty()
        && text
            .chars()
            .all(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\x1b'))
}

fn holds(bytes: &[u8], wanted: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len().min(TEXT_BYTES)];
    bytes.windows(wanted.len()).any(|part| part == wanted)
}

/// The type of an ELF file: 4 is a core dump.
fn elf_type(bytes: &[u8]) -> Option<u16> {
    let number = bytes.get(16..18)?.try_into().ok()?;
    Some(match bytes.get(5)? {
        2 => u16::from_be_bytes(number),
        _ => u16::from_le_bytes(number),
    })
}

/// Whether bytes begin as Whisper files do: kind of aggregation, longest retention, fraction of known points, number
/// of archives, and where the first one is, which is right behind the table of archives.
fn is_whisper(bytes: &[u8]) -> bool {
    let word = |at: usize| {
        let word = bytes.get(4 * at..4 * at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(word))
    };
    let (Some(kind), Some(fraction), Some(archives), Some(first)) =
        (word(0), word(2), word(3), word(4))
    else {
        return false;
    };
    let fraction = f32::from_bits(fraction);
    (1..=8).contains(&kind)
        && (0.0..=1.0).contains(&fraction)
        && (1..=64).contains(&archives)
        && first == 16 + 12 * archives
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(bytes: &[u8]) -> Option<&'static str> {
        recognize_in(bytes, None, Path::new("f")).what
    }

    #[test]
    fn files_are_named() {
        assert_eq!(what(b""), Some("empty"));
        assert_eq!(what("h\u{e4}llo\n".as_bytes()), Some("text"));
        assert_eq!(what(b"\x01\x02\x03"), None);
        assert_eq!(what(b"\x7fELF"), Some("a program (ELF)"));
        let hint = recognize_in(b"PERFILE2", None, Path::new("a.data")).hint;
        assert!(hint.contains("-i a.data`"), "{hint}");
    }

    #[test]
    fn every_kind_of_records_is_recognized() {
        let known: Vec<_> = KNOWN.iter().map(|known| known.what).collect();
        let others = [
            "a Whisper database (Graphite)",
            "XML of a database (`rrdtool dump`)",
        ];
        for what in RECORDS {
            assert!(known.contains(&what) || others.contains(&what), "{what}");
        }
    }

    #[test]
    fn a_text_may_end_within_a_character() {
        let text = [&[b'a'; TEXT_BYTES - 1][..], "\u{e4}".as_bytes()].concat();
        assert_eq!(what(&text), Some("text"));
        assert_eq!(what(b"\xe4"), None);
    }
}
