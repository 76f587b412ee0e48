//! What the daemon reads: lines of rrdcached's protocol, its journal, its configuration.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kymo_serve::collectd;
use kymo_serve::conf;
use kymo_serve::config::Config;
use kymo_serve::journal::{self, Entry};
use kymo_serve::rrdcached::Rrdcached;
use kymo_serve::store::{Options, Store, Timing};

/// The database that there is.
const DATABASE: &str = "CREATE a.rrd -b 1000000000 -s 10 DS:x:GAUGE:20:U:U DS:y:COUNTER:20:0:U \
    RRA:AVERAGE:0.5:1:10 RRA:MAX:0.5:2:5\n";
/// Nothing is written of itself, so that what happens depends on the input alone.
const NEVER: Duration = Duration::from_secs(1 << 30);
/// Bytes of updates that may wait.
const MOST_PENDING: usize = 1 << 20;
/// Bytes of answers after which a client disconnects: rows of a long time are many.
const MOST_ANSWERED: usize = 1 << 20;

/// A client in memory: it sends pieces, and keeps what it is answered.
struct Talk<'a> {
    sent: &'a [u8],
    piece: usize,
    answered: &'a mut Vec<u8>,
}

impl Read for Talk<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (mut piece, rest) = self.sent.split_at(self.piece.min(self.sent.len()));
        let count = piece.read(buffer)?;
        // What did not fit comes again.
        self.sent = match piece.is_empty() {
            true => rest,
            false => &self.sent[count..],
        };
        Ok(count)
    }
}

impl Write for Talk<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.answered.len() > MOST_ANSWERED {
            true => Err(io::ErrorKind::BrokenPipe.into()),
            false => self.answered.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A store in a directory, perhaps with a journal.
fn open(directory: &Path, has_journal: bool) -> io::Result<Arc<Store>> {
    let options = Options::new(directory.join("data"), Arc::new(|_, _| {}));
    Store::open(Options {
        timing: Timing {
            write_timeout: NEVER,
            jitter: Duration::ZERO,
            flush_interval: NEVER,
        },
        writers: 1,
        open_files: 4,
        most_pending: MOST_PENDING,
        // What is answered does not depend on the clock.
        future_limit: Duration::MAX,
        journal: has_journal.then(|| journal::Options {
            most_bytes: 1 << 20,
            ..journal::Options::new(directory.join("journal"))
        }),
        ..options
    })
}

/// What a separate daemon answers to lines that arrive in pieces of `piece` bytes; and the same as
/// text, in which nothing depends on its directory. `None` where the client has left.
fn answers(lines: &[u8], piece: usize, has_journal: bool) -> Option<(Vec<u8>, String)> {
    let directory = tempfile::tempdir().expect("a directory");
    let data = directory.path().join("data");
    std::fs::create_dir(&data).expect("a directory");
    std::fs::write(data.join("a.rrd"), database()).expect("a file");
    let store = open(directory.path(), has_journal).expect("a store");
    let shared = Rrdcached::new(Arc::clone(&store));
    let mut answered = Vec::new();
    let talk = Talk {
        sent: lines,
        piece,
        answered: &mut answered,
    };
    let stayed = shared.answer(talk);
    store.close();
    assert_eq!(store.pending_bytes(), 0, "all is written in the end");
    stayed.ok()?;
    // Each daemon has a directory of its own.
    let base = store.options().base.display().to_string();
    let text = answered.escape_ascii().to_string();
    Some((answered, text.replace(&base, "BASE")))
}

/// The bytes of the database, which a daemon has made.
fn database() -> &'static [u8] {
    static MADE: OnceLock<Vec<u8>> = OnceLock::new();
    MADE.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a directory");
        let store = open(directory.path(), false).expect("a store");
        let mut answered = Vec::new();
        let talk = Talk {
            sent: DATABASE.as_bytes(),
            piece: usize::MAX,
            answered: &mut answered,
        };
        let shared = Rrdcached::new(Arc::clone(&store));
        shared.answer(talk).expect("memory takes all");
        store.close();
        let file = directory.path().join("data/a.rrd");
        std::fs::read(file).expect("what was made")
    })
}

/// Lines of rrdcached's protocol, behind a byte that specifies in what pieces they come and whether
/// there is a journal: each answer is as long as it says, and all are the same in other pieces.
pub(crate) fn rrdcached(data: &[u8]) {
    let Some((form, lines)) = data.split_first() else {
        return;
    };
    if lines.split(|byte| *byte == b'\n').any(makes_much) {
        return;
    }
    let has_journal = form & 1 != 0;
    let Some((answered, text)) = answers(lines, usize::from(form >> 1) + 1, has_journal) else {
        return;
    };
    let asks = |word: &str| {
        let mut words = lines.windows(word.len());
        words.any(|it| it.eq_ignore_ascii_case(word.as_bytes()))
    };
    if !asks("fetchbin") {
        are_whole(&answered);
    }
    // These replies depend on the present time, on chance, on unfinished work, and on how the state came about.
    if !["fetch", "create", "flushall", "stats"]
        .iter()
        .any(|word| asks(word))
    {
        let again = answers(lines, usize::MAX, has_journal);
        assert_eq!(again.map(|(_, text)| text), Some(text));
    }
}

/// Whether a line may ask for a database that takes long to make.
fn makes_much(line: &[u8]) -> bool {
    let creates = line
        .windows(6)
        .any(|word| word.eq_ignore_ascii_case(b"create"));
    let mut archives = line.windows(4);
    let Some(at) = archives.position(|word| word == b"RRA:") else {
        return false;
    };
    let definitions = &line[at..];
    let digits = |run: &[u8]| run.iter().all(u8::is_ascii_digit);
    creates
        && (definitions.len() > 300
            || definitions.contains(&b'\\')
            || definitions.windows(4).any(digits)
            // Times have units.
            || definitions
                .windows(2)
                .any(|pair| pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic()))
}

/// Sees that each answer has as many lines as its first one says.
fn are_whole(answered: &[u8]) {
    let mut lines = answered.split_inclusive(|byte| *byte == b'\n');
    while let Some(line) = lines.next() {
        let shown = line.escape_ascii();
        assert!(line.ends_with(b"\n"), "`{shown}` does not end");
        let count = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        let count = std::str::from_utf8(count).ok();
        let count: i64 = count
            .and_then(|count| count.parse().ok())
            .unwrap_or_else(|| panic!("no answer begins with `{shown}`"));
        assert!(count >= -1);
        for _ in 0..count {
            assert!(lines.next().is_some(), "`{shown}` has fewer lines");
        }
    }
}

/// An entry of a journal, on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kept {
    Update(Vec<u8>, Vec<u8>),
    Forget(Vec<u8>),
}

/// The entries of a journal, and whether it was read to its end.
fn entries(bytes: &[u8]) -> (Vec<Kept>, bool) {
    let mut kept = Vec::new();
    let read = journal::replay(bytes, |entry| {
        kept.push(match entry {
            Entry::Update(path, record) => {
                assert!(record.text().len() <= 40 + 30 * record.bytes.len());
                Kept::Update(path.to_vec(), record.bytes.to_vec())
            }
            Entry::Forget(path) => Kept::Forget(path.to_vec()),
        });
    });
    if let Err(problem) = &read {
        assert!(problem.starts_with("offset "), "{problem}");
    }
    (kept, read.is_ok())
}

/// A file of one group.
fn file_of(mut group: Vec<u8>) -> Vec<u8> {
    match journal::seal(&mut group) {
        Some(()) => [journal::MAGIC.as_slice(), &group].concat(),
        None => journal::MAGIC.to_vec(),
    }
}

/// A journal, behind a byte that specifies whether the rest is the file or the entries of its only group:
/// what is read of it is written and read again, and a store that begins with it has that pending.
pub(crate) fn journal(data: &[u8]) {
    let Some((form, rest)) = data.split_first() else {
        return;
    };
    let file = match form & 1 {
        0 => rest.to_vec(),
        _ => file_of([&[0; 8], rest].concat()),
    };
    let (kept, _) = entries(&file);
    let write = |path_of: &dyn Fn(&[u8]) -> Vec<u8>| {
        let mut group = Vec::new();
        for entry in &kept {
            match entry {
                Kept::Update(path, record) => journal::update(&path_of(path), record, &mut group),
                Kept::Forget(path) => journal::forget(&path_of(path), &mut group),
            }
        }
        file_of(group)
    };
    let again = write(&<[u8]>::to_vec);
    assert_eq!(entries(&again), (kept.clone(), true));

    // The same of files that a store may have.
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["data", "journal"] {
        std::fs::create_dir(directory.path().join(name)).expect("a directory");
    }
    let base = directory.path().canonicalize().expect("it is there");
    let base = base.join("data");
    std::fs::write(base.join("a.rrd"), database()).expect("a file");
    let path_of = |path: &[u8]| {
        let name = match path.first().is_some_and(|byte| byte & 1 != 0) {
            true => "a.rrd",
            false => "gone.rrd",
        };
        base.join(name).into_os_string().into_encoded_bytes()
    };
    let of_store = write(&path_of);
    let name = directory.path().join("journal/kymo.journal.000000000001");
    std::fs::write(name, of_store).expect("a file");
    let store = open(directory.path(), true).expect("whatever a journal has");
    let mut pending = 0;
    for database in store.databases() {
        pending += database.pending().len();
        assert_eq!(database.path(), path_of(b"a"), "the one that is there");
    }
    assert!(pending <= kept.len());
    store.close();
    assert_eq!(store.pending_bytes(), 0, "all is written in the end");
}

/// A configuration, and perhaps a `collectd.conf` that it names: what is wrong has its place, and what
/// is right means the same the second time.
pub(crate) fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (text, conf) = text.split_once("\n---\n").unwrap_or((text, ""));
    let read = |_: &Path| Ok(conf.to_owned());
    let parsed = Config::parse_with(text, &read);
    match &parsed {
        Ok(config) => assert!(!config.data.as_os_str().is_empty()),
        Err(problem) => assert!(!problem.is_empty()),
    }
    assert_eq!(parsed, Config::parse_with(text, &read));

    let mut options = collectd::Options::default();
    match conf::parse(conf, "x.conf", &mut options) {
        Err(problem) => assert!(problem.contains("x.conf:"), "{problem}"),
        Ok(ignored) => {
            let lines = conf.lines().count();
            for reported in ignored {
                let line = reported.strip_prefix("x.conf: line ").unwrap_or_default();
                let line = line.split(':').next().and_then(|line| line.parse().ok());
                assert!(line.is_some_and(|line: usize| (1..=lines).contains(&line)));
            }
        }
    }
}
