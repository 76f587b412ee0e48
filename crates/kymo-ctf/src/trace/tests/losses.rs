//! RFC v1.1: what was lost, according to counters of streams or of whole sections.

use kymo_model::Lost;

use super::sections::{Rfc, bytes_of, rfc};
use super::*;

fn losses(trace: &Trace, stream: usize) -> Vec<(Option<Lost>, Option<Lost>)> {
    let chunks = trace.chunks(stream);
    chunks
        .map(|chunk| (chunk.lost_events, chunk.lost_chunks))
        .collect()
}

fn lost(count: u64, begin: u64, end: u64) -> Option<Lost> {
    Some(Lost {
        count: Some(count),
        begin: Some(begin),
        end: Some(end),
    })
}

#[test]
fn discarded_events_were_lost_before_the_packet() {
    let packets = [
        Rfc::empty(0, 10, 20, 5),
        Rfc::empty(1, 30, 40, 8),
        // The counter goes round.
        Rfc::empty(2, 50, 60, u32::MAX),
        Rfc::empty(3, 70, 80, 1),
    ];
    let trace = rfc("", &[("few_0", bytes_of(&packets))]);
    assert_eq!(
        losses(&trace, 0),
        [
            (None, None),
            (lost(3, 20, 30), None),
            (lost(u64::from(u32::MAX) - 8, 40, 50), None),
            (lost(2, 60, 70), None),
        ]
    );
}

#[test]
fn numbers_of_packets_go_round_in_the_bits_that_count() {
    let packet = |count, begin, count_bits| Rfc {
        count_bits,
        ..Rfc::empty(count, begin, begin + 5, 0)
    };
    // 6, 7, then 5: all others are missing; higher bits do not count.
    let packets = [packet(6, 10, 3), packet(0xF7, 20, 3), packet(5, 30, 3)];
    let trace = rfc("", &[("few_0", bytes_of(&packets))]);
    assert_eq!(
        losses(&trace, 0)[1..],
        [(None, None), (None, lost(5, 25, 30))]
    );
    // Without bits, nothing is counted; with too many, all that there are.
    for (bits, expected) in [(0, None), (32, lost(2, 15, 20)), (200, lost(2, 15, 20))] {
        let packets = [packet(u32::MAX - 1, 10, bits), packet(1, 20, bits)];
        let trace = rfc("", &[("few_0", bytes_of(&packets))]);
        assert_eq!(losses(&trace, 0)[1].1, expected);
    }
}

#[test]
fn streams_of_a_section_count_together_or_each_for_itself() {
    // Together: 3 is missing, 6 was first; CPU 0 lost two events before packet 4, CPU 1 one
    // before packet 2.
    let cpu0 = [
        Rfc::empty(0, 10, 20, 0),
        Rfc::empty(1, 30, 40, 0),
        Rfc::empty(4, 90, 95, 3),
    ];
    let cpu1 = [Rfc::empty(2, 35, 60, 1), Rfc::empty(5, 100, 110, 3)];
    let trace = rfc(
        "",
        &[("few_0", bytes_of(&cpu0)), ("few_1", bytes_of(&cpu1))],
    );
    assert_eq!(
        losses(&trace, 0),
        [
            (None, None),
            (None, None),
            (lost(2, 60, 90), lost(1, 60, 90))
        ]
    );
    // Packets 1 and 2 overlap.
    assert_eq!(losses(&trace, 1), [(lost(1, 30, 35), None), (None, None)]);

    // Each for itself, since number 0 is there twice.
    let cpu1 = [Rfc::empty(0, 35, 60, 7), Rfc::empty(2, 100, 110, 9)];
    let trace = rfc(
        "",
        &[("few_0", bytes_of(&cpu0)), ("few_1", bytes_of(&cpu1))],
    );
    assert_eq!(
        losses(&trace, 0),
        [
            (None, None),
            (None, None),
            (lost(3, 40, 90), lost(2, 40, 90))
        ]
    );
    assert_eq!(
        losses(&trace, 1),
        [(None, None), (lost(2, 60, 100), lost(1, 60, 100))]
    );

    // Together, and round: 6, 7, 0, 1 of three bits. Another section counts for itself.
    let packet = |count, begin| Rfc {
        count_bits: 3,
        ..Rfc::empty(count, begin, begin + 5, 0)
    };
    let trace = rfc(
        "",
        &[
            ("few_0", bytes_of(&[packet(6, 10), packet(1, 40)])),
            (
                "few_1",
                bytes_of(&[packet(7, 20), packet(0, 30), packet(3, 50)]),
            ),
            ("many_0", bytes_of(&[packet(6, 10), packet(0, 20)])),
        ],
    );
    assert_eq!(losses(&trace, 0), [(None, None); 2]);
    assert_eq!(
        losses(&trace, 1),
        [(None, None), (None, None), (None, lost(1, 45, 50))]
    );
    assert_eq!(losses(&trace, 2)[1], (None, lost(1, 15, 20)));

    // Apart, though one after the other: with few packets, no number is one that has gone round.
    let trace = rfc(
        "",
        &[
            (
                "few_0",
                bytes_of(&[packet(0, 10), packet(1, 20), packet(5, 30)]),
            ),
            ("few_1", bytes_of(&[packet(0, 40), packet(1, 50)])),
        ],
    );
    assert_eq!(losses(&trace, 0)[2], (None, lost(3, 25, 30)));
    assert_eq!(losses(&trace, 1), [(None, None); 2]);
}
