//! What a relay daemon sends.

use std::collections::BTreeMap;
use std::time::Duration;

use kymo_live::{Limits, Viewer, ViewerEvent, ViewerOptions};

const LIMITS: Limits = Limits {
    sessions: 8,
    streams: 16,
    packet: 4096,
    metadata: 4096,
};
/// More requests are not made.
const MOST_STEPS: usize = 10_000;

/// Any bytes as replies. With the lowest bit of the first byte set, they follow on those that attach a session with
/// a trace of two streams. Each further byte before some bytes is their number.
pub(super) fn replies(data: &[u8]) {
    let Some((&choice, mut data)) = data.split_first() else {
        return;
    };
    let mut viewer = Viewer::new(ViewerOptions {
        limits: LIMITS,
        period: Duration::from_millis(choice.into()),
        ..ViewerOptions::default()
    });
    let mut received = Received::default();
    let mut now = Duration::ZERO;
    if choice & 1 != 0 {
        for reply in attached() {
            assert!(viewer.next_request(now).is_some());
            assert_eq!(viewer.receive(now, &reply), Ok(()));
            received.events(&mut viewer);
        }
    }
    for step in 0..MOST_STEPS {
        now += Duration::from_millis(7);
        if let Some(request) = viewer.next_request(now) {
            assert!((16..=36).contains(&request.len()) && viewer.is_waiting());
        }
        assert!(
            viewer
                .deadline()
                .is_none_or(|at| at <= now + Duration::from_secs(60))
        );
        let Some((&count, rest)) = data.split_first() else {
            break;
        };
        let (reply, rest) = rest.split_at(rest.len().min(count.into()));
        data = rest;
        if viewer.receive(now, reply).is_err() {
            break;
        }
        received.events(&mut viewer);
        if step == usize::from(choice) * 4 {
            viewer.detach();
        }
    }
}

/// What has come, to hold it to the limits.
#[derive(Default)]
struct Received {
    metadata: BTreeMap<u64, u64>,
    streams: u32,
}

impl Received {
    fn events(&mut self, viewer: &mut Viewer) {
        while let Some(event) = viewer.next_event() {
            match event {
                ViewerEvent::Sessions(sessions) => {
                    assert!(sessions.len() <= LIMITS.sessions as usize);
                    sessions
                        .iter()
                        .for_each(|session| viewer.attach(session.id));
                }
                ViewerEvent::Stream(_) => {
                    self.streams += 1;
                    assert!(self.streams <= LIMITS.streams);
                }
                ViewerEvent::Metadata { stream, bytes } => {
                    let all = self.metadata.entry(stream).or_default();
                    *all += bytes.len() as u64;
                    assert!(*all <= LIMITS.metadata);
                }
                ViewerEvent::Packet { index, bytes, .. } => {
                    assert_eq!(bytes.len() as u64, index.packet_bits.div_ceil(8));
                    assert!(bytes.len() as u64 <= LIMITS.packet);
                }
                _ => {}
            }
        }
    }
}

/// The replies that attach a session.
fn attached() -> [Vec<u8>; 4] {
    let number = |value: u32| value.to_be_bytes().to_vec();
    let long = |value: u64| value.to_be_bytes().to_vec();
    let text = |text: &str, size: usize| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(size, 0);
        bytes
    };
    let stream = |id: u64, flag: u32, channel: &str| {
        [
            long(id),
            long(7),
            number(flag),
            text("ust", 4096),
            text(channel, 255),
        ]
        .concat()
    };
    let streams = [
        stream(1, 1, "metadata"),
        stream(2, 0, "a"),
        stream(3, 0, "b"),
    ]
    .concat();
    let session = [
        long(4),
        number(1000),
        number(0),
        number(3),
        text("vm", 64),
        text("s", 255),
    ];
    [
        [long(5), number(2), number(13), number(1)].concat(),
        [number(1), session.concat()].concat(),
        number(1),
        [number(1), number(3), streams].concat(),
    ]
}
