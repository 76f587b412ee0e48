//! The program on secured traces of RFC v1.1.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use kymo_ctf::secure::{Checksum, Compression, Key, Protection, seal};
use kymo_machine::ByteOrder;
use tempfile::TempDir;

const KEY: &[u8; 16] = b"0123456789abcdef";

/// A plain packet of two events.
fn packet(count: u32) -> Vec<u8> {
    let begin = u64::from(count) * 1000;
    let event = |time: u64, value: u8| {
        let header = 1 | (time as u32) << 5;
        [&header.to_le_bytes()[..], &[value]].concat()
    };
    let content = [event(begin + 1, 7), event(begin + 2, 8)].concat();
    let size = 48 + content.len() as u32;
    let mut packet = Vec::new();
    for number in [0xC1FC_1FC1, 9, size, size, 0, count] {
        packet.extend(u32::to_le_bytes(number));
    }
    packet.extend(begin.to_le_bytes());
    packet.extend((begin + 999).to_le_bytes());
    packet.extend(0u32.to_le_bytes());
    packet.extend([32, 0, 0, 0]);
    packet.extend(content);
    packet
}

/// A trace `t` of three secured packets, and files with its key, with another one, and with none.
fn secured() -> TempDir {
    let home = TempDir::new().expect("a directory");
    let path = |name: &str| home.path().join(name);
    fs::create_dir(path("t")).expect("a directory");
    let metadata = "trace { major = 1; minor = 1; }
        section { name = s; event { header_type = type1; } }
        event { name = beat; id = 1; section = s; fields = type { parent = struct;
            fields = { { uint8_t, x } }; } }";
    fs::write(path("t/metadata"), metadata).expect("metadata");
    let protection = Protection {
        compression: Compression::Gzip,
        key: Key::new(KEY),
        checksum: Checksum::Sha1,
    };
    let seal = |count: u32| {
        let nonce = || [count as u8; 12];
        seal(&packet(count), ByteOrder::Little, &protection, nonce).expect("a plain packet")
    };
    let stream: Vec<u8> = (0..3).flat_map(seal).collect();
    fs::write(path("t/s_0"), stream).expect("a stream");
    fs::write(path("key"), KEY).expect("a key");
    let digits: String = KEY.iter().map(|byte| format!("{byte:02x}")).collect();
    fs::write(path("digits"), digits + "\n").expect("a key");
    fs::write(path("other"), [1; 32]).expect("a key");
    fs::write(path("none"), "no key").expect("a file");
    home
}

fn run(directory: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kymo"))
        .args(args)
        .current_dir(directory)
        .env("TZ", "UTC")
        .output()
        .expect("kymo runs")
}

/// Exit code, lines of standard output, standard error.
fn reported(home: &TempDir, args: &[&str]) -> (Option<i32>, usize, String) {
    let output = run(home.path(), args);
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    (
        output.status.code(),
        text.lines().count(),
        error.into_owned(),
    )
}

#[test]
fn the_key_opens_it() {
    let home = secured();
    for key in ["key", "digits"] {
        let (code, lines, error) = reported(&home, &["print", "--key-file", key, "t"]);
        assert_eq!((code, lines), (Some(0), 6), "{error}");
    }
    let both = [
        "stats",
        "--json",
        "--key-file",
        "other",
        "--key-file",
        "key",
        "t",
    ];
    let (code, _, error) = reported(&home, &both);
    assert_eq!(code, Some(0), "{error}");
    let args = ["convert", "--key-file", "key", "t", "-o", "t.pftrace"];
    let (code, _, error) = reported(&home, &args);
    assert_eq!(code, Some(0), "{error}");
}

#[test]
fn a_key_that_looks_like_digits_is_warned_of() {
    let home = secured();
    let digits = fs::read_to_string(home.path().join("digits")).expect("digits");
    fs::write(home.path().join("endless"), digits.trim_end()).expect("a key");
    let warned = |key: &str, expected: usize| {
        for command in [&["print"][..], &["repair", "-f", "-o", "saved"]] {
            let args = [command, &["--key-file", key, "t"]].concat();
            let (_, _, error) = reported(&home, &args);
            let lines = error.lines().filter(|line| {
                line.starts_with("warning: ") && line.contains("hexadecimal digits")
            });
            assert_eq!(lines.count(), expected, "{key}: {error}");
        }
    };
    warned("endless", 1);
    for key in ["key", "digits", "other"] {
        warned(key, 0);
    }
    let (_, _, error) = reported(&home, &["print", "--key-file", "endless", "t"]);
    assert!(
        error.contains("endless: its 32 bytes are the key"),
        "{error}"
    );
}

/// The events of a trace, without the name of the recording.
fn events(home: &TempDir, args: &[&str]) -> Vec<String> {
    let args = [&["print", "--names=none"], args].concat();
    let output = run(home.path(), &args);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(str::to_owned).collect()
}

#[test]
fn how_packets_are_secured_is_reported_by_options() {
    let home = secured();
    let expected = events(&home, &["--key-file", "key", "t"]);
    assert_eq!(expected.len(), 6);
    let convert = |output: &str, options: &[&str]| {
        let input = ["convert", "t", "--key-file", "key", "-o", output];
        let (code, _, error) = reported(&home, &[&input, options].concat());
        assert_eq!(code, Some(0), "{error}");
    };
    // The default is plain, also where events are copied one by one.
    convert("plain", &["--to=ctf-rfc"]);
    assert_eq!(events(&home, &["plain"]), expected);
    convert("packets", &["--to=ctf-rfc", "--packet-size=64K"]);
    assert_eq!(events(&home, &["packets"]), expected);
    convert("ctf1.8", &["--to=ctf1.8"]);
    let secured = [
        "--to=ctf-rfc",
        "--compress=bzip2",
        "--encrypt",
        "--checksum=crc32",
    ];
    for (output, more) in [("all", "--packet-size=4K"), ("threads", "--threads=4")] {
        convert(output, &[&secured[..], &[more]].concat());
        assert_eq!(events(&home, &["--key-file", "key", output]), expected);
        // Without the key, not even names can be read.
        let (code, lines, error) = reported(&home, &["print", output]);
        assert_eq!((code, lines), (Some(3), 0));
        assert!(error.contains("found an encrypted packet"), "{error}");
        let metadata = fs::read(home.path().join(output).join("metadata")).expect("metadata");
        assert!(!metadata.windows(4).any(|text| text == b"beat"));
        let (_, _, error) = reported(&home, &["print", "--key-file", "key", output]);
        assert!(!error.contains("the metadata is not encrypted"), "{error}");
    }
    // A renamed event is noticed.
    let path = home.path().join("all/metadata");
    let whole = fs::read(&path).expect("metadata");
    for at in [60, 4, 44] {
        let mut altered = whole.clone();
        altered[at] ^= 1;
        fs::write(&path, altered).expect("metadata");
        let (code, lines, error) = reported(&home, &["print", "--key-file", "key", "all"]);
        assert_eq!((code, lines), (Some(3), 0), "{error}");
    }
    fs::copy(home.path().join("t/metadata"), &path).expect("metadata");
    let (_, _, error) = reported(&home, &["print", "--key-file", "key", "all"]);
    assert!(
        error.contains("all/metadata: the metadata is not encrypted as packets are"),
        "{error}"
    );
    fs::write(&path, &whole).expect("metadata");
    let repaired = ["repair", "--key-file", "key", "all", "-o", "repaired"];
    assert_eq!(reported(&home, &repaired).0, Some(0));
    assert_eq!(events(&home, &["--key-file", "key", "repaired"]), expected);
    assert_eq!(reported(&home, &["print", "repaired"]).0, Some(3));
    let plain = ["--to=ctf-rfc", "--encrypt", "--plain-metadata"];
    convert("exposed", &plain);
    let (code, lines, error) = reported(&home, &["print", "exposed"]);
    assert_eq!((code, lines), (Some(1), 0));
    assert!(error.contains("the packet is encrypted"), "{error}");
    for wrong in [
        &["convert", "t", "-o", "w", "--to=ctf-rfc", "--encrypt"][..],
        &["convert", "t", "-o", "w", "--to=ctf2", "--compress=gzip"],
    ] {
        let (code, _, error) = reported(&home, wrong);
        assert_eq!(code, Some(2), "{error}");
    }
}

#[test]
fn without_its_key_all_packets_are_reported() {
    let home = secured();
    let (code, lines, error) = reported(&home, &["print", "t"]);
    assert_eq!((code, lines), (Some(1), 0));
    for packet in 0..3 {
        let place = format!("t/s_0: offset {}, packet {packet}: ", packet * 4096);
        assert!(error.contains(&place), "{error}");
    }
    assert!(error.contains("`--key-file FILE` names a file"), "{error}");
    let (code, _, error) = reported(&home, &["print", "--key-file", "other", "t"]);
    assert_eq!(code, Some(1));
    assert!(
        error.contains("its key is another one, or it was altered"),
        "{error}"
    );
    for (file, said) in [
        ("none", "found 6 bytes that are not a key"),
        ("nowhere", "`nowhere` does not exist"),
    ] {
        let (code, _, error) = reported(&home, &["print", "--key-file", file, "t"]);
        assert_eq!(code, Some(2));
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn damage_is_reported_of_its_packet_and_the_rest_is_read() {
    let home = secured();
    let path = home.path().join("t/s_0");
    let whole = fs::read(&path).expect("the stream");
    let mut flipped = whole.clone();
    flipped[4096 + 50] ^= 1;
    fs::write(&path, flipped).expect("the stream");
    let args = ["print", "--key-file", "key", "t"];
    let (code, lines, error) = reported(&home, &args);
    assert_eq!((code, lines), (Some(1), 4));
    assert!(
        error.contains("t/s_0: offset 4096, packet 1: the packet's content has the checksum"),
        "{error}"
    );

    fs::write(&path, [&whole[..4096], &whole[8192..]].concat()).expect("the stream");
    let (code, lines, error) = reported(&home, &args);
    assert_eq!((code, lines), (Some(1), 4));
    assert!(
        error.contains("t/s_0: offset 4096, packet 1: packet 1 of the section"),
        "{error}"
    );
    let (code, _, _) = reported(&home, &["check", "--key-file", "key", "t"]);
    assert_eq!(code, Some(1));
}

#[test]
fn a_packet_that_stays_shut_is_left_out() {
    let home = secured();
    let stream = home.path().join("t/s_0");
    let mut bytes = fs::read(&stream).expect("a stream");
    let protection = Protection {
        compression: Compression::None,
        key: Key::new(&[1; 32]),
        checksum: Checksum::Sha1,
    };
    let other = seal(&packet(1), ByteOrder::Little, &protection, || [1; 12]).expect("a packet");
    bytes[4096..8192].copy_from_slice(&other);
    fs::write(&stream, bytes).expect("a stream");
    let args = ["repair", "--key-file", "key", "t", "-o", "saved"];
    let (code, _, error) = reported(&home, &args);
    assert_eq!(code, Some(1), "{error}");
    assert!(error.contains("packet 1"), "{error}");
    let saved = fs::read(home.path().join("saved/s_0")).expect("a stream");
    // Their numbers show that one is missing.
    let counts: Vec<u8> = saved.chunks(4096).map(|packet| packet[20]).collect();
    assert_eq!(counts, [0, 2]);
}

#[cfg(unix)]
#[test]
fn a_key_file_that_everybody_can_read_is_warned_of() {
    use std::os::unix::fs::PermissionsExt;

    let home = secured();
    for (mode, is_public) in [(0o644, true), (0o640, false), (0o600, false), (0o602, true)] {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(home.path().join("key"), permissions).expect("permissions");
        let (code, _, error) = reported(&home, &["print", "--key-file", "key", "t"]);
        assert_eq!(code, Some(0), "{error}");
        let warning = "key: everybody on this machine can read or write the key file";
        assert_eq!(error.contains(warning), is_public, "{mode:o}: {error}");
    }
}

#[test]
fn a_part_stays_secured() {
    let home = secured();
    let path = |name: &str| home.path().join(name);
    let whole = fs::read(path("t/s_0")).expect("a stream");
    let (code, _, error) = reported(&home, &["cut", "--key-file", "key", "t", "-o", "all"]);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(fs::read(path("all/s_0")).expect("a stream"), whole);

    // Half of the second packet, and the third one.
    let begin = ["--begin", "0.000001002"];
    let args = [&["cut", "--key-file", "key", "t", "-o", "part"][..], &begin].concat();
    let (code, _, error) = reported(&home, &args);
    assert_eq!(code, Some(0), "{error}");
    let part = fs::read(path("part/s_0")).expect("a stream");
    assert_eq!(part.len(), 2 * 4096);
    assert_eq!(part[4096..], whole[2 * 4096..]);
    let schemes = |packet: &[u8]| packet[44..48].to_vec();
    assert_eq!(schemes(&part), schemes(&whole[4096..]));
    let all = events(&home, &[&["--key-file", "key", "t"][..], &begin].concat());
    assert_eq!(all.len(), 3);
    assert_eq!(events(&home, &["--key-file", "key", "part"]), all);
    let (code, lines, _) = reported(&home, &["print", "part"]);
    assert_eq!((code, lines), (Some(1), 0));

    // Metadata that is encrypted stays so.
    let args = ["--to", "ctf-rfc", "--encrypt", "-o", "closed"];
    let (code, _, error) = reported(
        &home,
        &[&["convert", "--key-file", "key", "t"][..], &args].concat(),
    );
    assert_eq!(code, Some(0), "{error}");
    let args = [
        &["cut", "--key-file", "key", "closed", "-o", "half"][..],
        &begin,
    ]
    .concat();
    let (code, _, error) = reported(&home, &args);
    assert_eq!(code, Some(0), "{error}");
    let metadata = fs::read(path("half/metadata")).expect("metadata");
    assert!(!metadata.windows(4).any(|word| word == b"beat"));
    assert_eq!(events(&home, &["--key-file", "key", "half"]), all);
}
