//! `kymo repair`.

use super::*;

#[test]
fn damaged_traces_are_repaired() {
    let home = home();
    let trace = example("lttng-small/ust/uid/0/64-bit");
    let broken = home.path().join("broken");
    fs::create_dir(&broken).expect("a directory");
    fs::copy(trace.join("metadata"), broken.join("metadata")).expect("metadata");
    let stream = fs::read(trace.join("r_0")).expect("a stream");
    fs::write(broken.join("r_0"), &stream[..stream.len() / 3]).expect("a stream");
    let kept = events(&broken, &[]);
    assert!(!kept.is_empty());
    assert_eq!(kymo(&["check", text(&broken)]).status.code(), Some(1));
    let saved = home.path().join("saved");
    let output = kymo(&["repair", text(&broken), "-o", text(&saved)]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(events(&saved, &[]), kept);
    good(&["check", text(&saved)]);
    // Stopping at the damage is not what it is for.
    let strict = kymo(&[
        "repair",
        "--strict",
        text(&broken),
        "-o",
        text(&saved),
        "-f",
    ]);
    assert_eq!(strict.status.code(), Some(2));
    // What is whole stays as it is.
    let whole = home.path().join("whole");
    good(&["repair", text(&trace), "-o", text(&whole)]);
    assert_eq!(events(&whole, &[]), events(&trace, &[]));
}

#[test]
fn a_packet_whose_padding_is_cut_is_written_anew() {
    let home = home();
    let name = "lttng-discarded/ust/uid/0/64-bit";
    let cut = changed(&home, name, "tiny_0", |bytes| {
        bytes.pop();
    });
    assert_eq!(kymo(&["check", text(&cut)]).status.code(), Some(1));
    let kept = events(&cut, &[]);
    assert!(!kept.is_empty());
    let saved = home.path().join("saved");
    kymo(&["repair", text(&cut), "-o", text(&saved)]);
    good(&["check", text(&saved)]);
    assert_eq!(events(&saved, &[]).len(), kept.len());
}

/// A packet in the middle and its index disagree: whichever is damaged, repairing saves
/// all of its events.
#[test]
fn a_packet_that_contradicts_its_index_is_saved() {
    let home = home();
    let name = "lttng-discarded/ust/uid/0/64-bit";
    let stream = fs::read(example(name).join("tiny_0")).expect("a stream");
    let is_magic = |at: &usize| stream[*at..].starts_with(&[0xc1, 0x1f, 0xfc, 0xc1]);
    let second = (1..stream.len()).find(is_magic).expect("a second packet");
    // Behind magic number, UUID and numbers of the stream: times, size of the content.
    let (begin, content) = (second + 32, second + 48);
    // The second record, behind the header: place, size, size of the content, time.
    let (of_content, of_begin) = (16 + 72 + 16, 16 + 72 + 24);
    let damage: [(&str, usize, u8); 6] = [
        ("tiny_0", content, 0x40),
        ("tiny_0", content + 1, 0x04),
        ("tiny_0", begin + 5, 0x10),
        ("index/tiny_0.idx", of_content + 7, 0x40),
        ("index/tiny_0.idx", of_content + 6, 0x04),
        ("index/tiny_0.idx", of_begin + 2, 0x10),
    ];
    for (number, (file, at, bits)) in damage.into_iter().enumerate() {
        let trace = changed(&home, name, "tiny_0", |_| {});
        let _ = fs::remove_dir_all(trace.join("index"));
        good(&["index", text(&trace)]);
        let expected = events(&trace, &[]);
        let mut bytes = fs::read(trace.join(file)).expect("a file");
        bytes[at] ^= bits;
        fs::write(trace.join(file), bytes).expect("a file");
        let output = kymo(&["check", text(&trace)]);
        assert_eq!(output.status.code(), Some(1), "{file} {at}");
        assert!(events(&trace, &[]).len() < expected.len(), "{file} {at}");
        let saved = home.path().join(format!("saved{number}"));
        let output = kymo(&["repair", text(&trace), "-o", text(&saved)]);
        assert_eq!(output.status.code(), Some(1), "{file} {at}");
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(err.contains("index"), "{err}");
        good(&["check", text(&saved)]);
        let found = events(&saved, &[]);
        assert_eq!(found.len(), expected.len(), "{file} {at}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found["timestamp"], expected["timestamp"], "{file} {at}");
            assert_eq!(found["payload"], expected["payload"], "{file} {at}");
        }
    }
}

/// The streams of a section of RFC v1.1 count their packets and discarded events together: what one
/// that is damaged should contain follows from the others.
#[test]
fn counters_of_a_section_are_mended_by_all_its_streams() {
    let home = home();
    let trace = home.path().join("trace");
    fs::create_dir(&trace).expect("a directory");
    let metadata = example("rfc-small").join("metadata");
    fs::copy(metadata, trace.join("metadata")).expect("metadata");
    let packet = |(number, discarded): (u32, u32)| {
        // A damaged number has another time nowhere.
        let begin = 1000 + 10 * u64::from(number & 0x3f);
        let words: [u32; 6] = [0xc1fc_1fc1, 1, 48, 64, 0, number];
        let mut packet = words.map(u32::to_be_bytes).concat();
        packet.extend([begin, begin + 5].map(u64::to_be_bytes).concat());
        packet.extend([discarded, 32 << 24].map(u32::to_be_bytes).concat());
        packet.resize(64, 0);
        packet
    };
    let numbers = |file: &[u32]| file.iter().map(|&n| (n, 2 * n)).collect::<Vec<_>>();
    let mut files = [numbers(&[0, 2, 4, 5, 8]), numbers(&[1, 3, 6, 7, 9])];
    let good_files = files.clone();
    let write = |files: &[Vec<(u32, u32)>; 2]| {
        for (cpu, file) in files.iter().enumerate() {
            let bytes: Vec<u8> = file.iter().copied().flat_map(packet).collect();
            fs::write(trace.join(format!("kernel_{cpu}")), bytes).expect("a stream");
        }
    };
    let read = |trace: &Path| {
        [0, 1].map(|cpu| {
            let bytes = fs::read(trace.join(format!("kernel_{cpu}"))).expect("a stream");
            let word = |at: usize| {
                let word = bytes[at..].first_chunk::<4>().expect("a number");
                u32::from_be_bytes(*word)
            };
            let mut found = Vec::new();
            let mut at = 0;
            while at < bytes.len() {
                found.push((word(at + 20), word(at + 40)));
                at += word(at + 12) as usize;
            }
            found
        })
    };
    write(&files);
    let whole = home.path().join("whole");
    good(&["repair", text(&trace), "-o", text(&whole)]);
    assert_eq!(read(&whole), good_files);
    // A number, and what was discarded before another packet.
    files[0][2].0 ^= 0x40;
    files[1][2].1 ^= 0x100;
    write(&files);
    let saved = home.path().join("saved");
    kymo(&["repair", text(&trace), "-o", text(&saved)]);
    let mut expected = good_files;
    // Only as many as the packet before it states: no others are known.
    expected[1][2].1 = 10;
    assert_eq!(read(&saved), expected);
}
