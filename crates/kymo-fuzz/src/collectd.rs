//! collectd's protocols and files.

use std::path::Path;

use kymo_collectd::config;
use kymo_collectd::network::{
    Decoder, Item, Keys, Packer, PackerOptions, Protection, ReplayWindow, Security,
};
use kymo_collectd::plain::{self, Command, Context, Lines};
use kymo_collectd::recording::{Options, Recording as Metrics};
use kymo_collectd::{Identifier, TypesDb, Value};
use kymo_model::{Cursor, Event, Nothing, Recording};
use kymo_time::CdTime;

/// The types of the text protocol's checks.
const TYPES: &str = "gauge value:GAUGE:U:U\nio rx:DERIVE:0:U, tx:COUNTER:0:U\na a:ABSOLUTE:0:U";

fn keys() -> Keys {
    Keys::parse(b"alice: s3cret pass\nbob: hunter2\n").expect("right lines")
}

/// The name, time, interval and values of a list, as bits.
type Bits = (String, CdTime, CdTime, Vec<(u8, [u8; 8])>);

/// A datagram, after a byte whose lowest bits are the level: lists are complete and can be stored,
/// and what is packed of them is read again. A replay window lets nothing pass twice.
pub(crate) fn network(data: &[u8]) {
    let Some((level, datagram)) = data.split_first() else {
        return;
    };
    let levels = [Security::None, Security::Sign, Security::Encrypt];
    let decoder = Decoder {
        level: levels[usize::from(level & 3) % 3],
        keys: (level & 4 != 0).then(keys),
    };
    let mut packer = Packer::new(PackerOptions {
        size: 65_507,
        protection: Protection::None,
    })
    .expect("a size that can be");
    let (mut lists, mut datagrams) = (Vec::<Bits>::new(), Vec::new());
    decoder.decode(datagram, &mut (), &mut |item| match item {
        Item::Values(list) => {
            assert!(list.security >= decoder.level);
            let path = list.id.path().expect("a name that can be kept");
            assert_eq!(path.split('/').count(), 3);
            let values: Vec<Value> = list.values.iter().collect();
            if let Ok(full) = packer.values(&list.id, list.time, list.interval, &values) {
                datagrams.extend(full);
                lists.push(bits(&list.id, list.time, list.interval, &values));
            }
        }
        Item::Notification(received) => assert!(received.security >= decoder.level),
        Item::Fault(fault) => {
            assert!(fault.offset <= datagram.len());
            assert!(!fault.to_string().is_empty());
        }
    });
    datagrams.extend(packer.flush());
    let mut again = Vec::new();
    for datagram in &datagrams {
        Decoder::default().decode(datagram, &mut (), &mut |item| {
            let Item::Values(list) = item else {
                panic!("what was packed: {item:?}");
            };
            let values: Vec<Value> = list.values.iter().collect();
            again.push(bits(&list.id, list.time, list.interval, &values));
        });
    }
    assert_eq!(again, lists);
    let mut window = ReplayWindow::new(CdTime::MAX, 1000);
    let mut counts = [0, 0];
    for count in &mut counts {
        decoder.decode(datagram, &mut window.at(CdTime::ZERO), &mut |item| {
            *count += match item {
                Item::Values(list) => usize::from(list.security > Security::None),
                _ => 0,
            };
        });
    }
    assert_eq!(
        counts[1], 0,
        "the second time nothing that is protected is admitted"
    );
}

fn bits(id: &Identifier<'_>, time: CdTime, interval: CdTime, values: &[Value]) -> Bits {
    let values = values.iter().map(|value| value.to_wire()).collect();
    (format!("{id:?}"), time, interval, values)
}

/// Text of the text protocol: cut anywhere the lines are the same, each has one reply, and values
/// that are written are read again.
pub(crate) fn plain(data: &[u8]) {
    let types = TypesDb::parse(TYPES).expect("right lines");
    let whole = lines(data, data.len().max(1));
    assert_eq!(whole, lines(data, 7));
    for line in whole.iter().flatten() {
        match plain::parse(line, &Context { types: &types }) {
            Err(reply) => {
                assert!(reply.status() < 0);
                assert_eq!(reply.to_string().matches('\n').count(), 1);
            }
            Ok(Command::PutValues(put)) => {
                let id = Identifier::parse(&put.id).expect("it was parsed");
                for list in &put.lists {
                    written(&id, list, &types);
                }
            }
            Ok(_) => {}
        }
    }
}

fn written(id: &Identifier<'_>, list: &plain::PutList, types: &TypesDb) {
    let time = list.time.unwrap_or(CdTime::from_ticks(1 << 30));
    let interval = list.interval.unwrap_or_default();
    let line = plain::put_values(id, time, interval, &list.values);
    match plain::parse(&line, &Context { types }) {
        Ok(Command::PutValues(again)) => {
            let is_same = |(a, b): (&Value, &Value)| match (a, b) {
                (Value::Gauge(a), Value::Gauge(b)) if a.is_nan() => b.is_nan(),
                (a, b) => a == b,
            };
            let pairs = list.values.iter().zip(&again.lists[0].values);
            assert!(pairs.into_iter().all(is_same), "{line}");
        }
        // A name with a control character in a field is not kept, and so not read before.
        found => panic!("{line}: {found:?}"),
    }
}

fn lines(data: &[u8], size: usize) -> Vec<Result<String, plain::LineError>> {
    let mut lines = Lines::new(64);
    let mut found = Vec::new();
    for piece in data.chunks(size) {
        lines.push(piece);
        while let Some(line) = lines.next_line() {
            found.push(line.map(str::to_string));
        }
    }
    found
}

/// A configuration, which may be a `types.db` or a file of passwords as well: the place of an error
/// is in the text.
pub(crate) fn files(data: &[u8]) {
    if let Err(error) = Keys::parse(data) {
        assert!(error.line <= data.len() + 1);
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Err(error) = TypesDb::parse(text) {
        assert!(error.line <= text.lines().count());
    }
    let result = config::parse(text).and_then(|items| {
        config::interval(&items)?;
        config::refuse_unknown(&items, &["Interval", "LoadPlugin", "Plugin"])?;
        items.iter().try_for_each(|item| item.time().map(|_| ()))
    });
    if let Err(error) = result {
        assert!(!error.spans.is_empty());
        for span in &error.spans {
            assert!(
                text.get(span.range.clone()).is_some(),
                "the place is in the text"
            );
        }
        let _ = error.render("collectd.conf", text, false);
    }
}

/// A capture of a network, or a datagram: its lists and messages match the reported number, and are in
/// the order of time.
pub(crate) fn capture(data: &[u8]) {
    let options = Options { keys: Some(keys()) };
    let Ok(recording) = Metrics::new(Path::new("x"), data, &options) else {
        return;
    };
    for fault in recording.faults() {
        assert!(fault.offset <= data.len() as u64);
    }
    let mut counts = [0, 0];
    for (stream, count) in counts.iter_mut().enumerate() {
        let mut last = 0;
        for chunk in recording.chunks(stream) {
            let mut cursor = recording.cursor(&chunk);
            while let Some(event) = cursor.next_event().expect("no faults in chunks") {
                let ticks = event.ticks().expect("a time");
                assert!(ticks >= last);
                last = ticks;
                event.visit(&mut Nothing).expect("no faults in events");
                *count += 1;
            }
        }
    }
    assert_eq!(counts, [recording.lists(), recording.messages()]);
}
