//! What other programs make and know, the way there and back, and damage.

use std::borrow::Cow;

use kymo_machine::ByteOrder;
use proptest::prelude::*;

use super::*;

/// A plain packet.
fn packet(content: &[u8], padding: usize, order: ByteOrder) -> Vec<u8> {
    let mut packet: Vec<u8> = (0..48).collect();
    let size = packet.len() + content.len();
    let header = PacketHeader {
        magic: 0xC1FC_1FC1,
        session_id: 7,
        content_size: size as u32,
        packet_size: (size + padding) as u32,
        checksum: 0x1234_5678,
        count_bits: 32,
        compression: 0,
        encryption: 0,
        checksum_scheme: 0,
    };
    header.write(&mut packet, order);
    packet.extend_from_slice(content);
    packet.resize(size + padding, 0xEE);
    packet
}

/// The same with content in the form of some schemes.
fn stored(content: &[u8], schemes: [u8; 3], checksum: u32, order: ByteOrder) -> Vec<u8> {
    let mut packet = packet(content, 5, order);
    let bytes = match order {
        ByteOrder::Little => checksum.to_le_bytes(),
        ByteOrder::Big => checksum.to_be_bytes(),
    };
    packet[16..20].copy_from_slice(&bytes);
    packet[45..48].copy_from_slice(&schemes);
    packet
}

fn bytes(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    digits
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

fn content_of<'p>(packet: &'p [u8], keys: &[Key]) -> Result<Vec<u8>, OpenError> {
    let opened: Cow<'p, [u8]> = open(packet, ByteOrder::Little, keys, &Limits::default())?;
    let header = PacketHeader::read(&opened, ByteOrder::Little).unwrap();
    Ok(opened[48..header.content_size as usize].to_vec())
}

/// Test cases 3, 9 and 15 of "The Galois/Counter Mode of Operation" (McGrew and Viega, 2005),
/// appendix B: one for each size of keys.
#[test]
fn aes_gcm_is_that_of_its_authors() {
    let key = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
    let nonce = "cafebabefacedbaddecaf888";
    let plain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
                 1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255";
    for (size, cipher, tag) in [
        (
            16,
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e
             21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985",
            "4d5c2af327cd64a62cf35abd2ba6fab4",
        ),
        (
            24,
            "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c
             7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710acade256",
            "9924a7c8587336bfb118024db8674a14",
        ),
        (
            32,
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa
             8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad",
            "b094dac5d93471bdec1a502270e3cc6c",
        ),
    ] {
        let key = Key::new(&bytes(key)[..size]).unwrap();
        let content = [bytes(nonce), bytes(cipher), bytes(tag)].concat();
        let packet = stored(&content, [0, 1, 0], 0, ByteOrder::Little);
        assert_eq!(content_of(&packet, &[key]), Ok(bytes(plain)));
    }
}

/// Of "123456789", as the catalogues of checksums have it.
#[test]
fn checksums_are_those_everybody_knows() {
    for (scheme, first_four) in [
        (1, Some(*b"\x25\xf9\xe7\x94")),
        (2, Some(*b"\xf7\xc3\xbc\x1d")),
        (3, None),
    ] {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let checksum = match (first_four, order) {
                (Some(first), ByteOrder::Little) => u32::from_le_bytes(first),
                (Some(first), ByteOrder::Big) => u32::from_be_bytes(first),
                (None, _) => 0xcbf4_3926,
            };
            let good = stored(b"123456789", [0, 0, scheme], checksum, order);
            let opened = open(&good, order, &[], &Limits::default()).unwrap();
            assert!(matches!(opened, Cow::Borrowed(same) if same == good));
            let bad = stored(b"123456788", [0, 0, scheme], checksum, order);
            let error = open(&bad, order, &[], &Limits::default()).unwrap_err();
            assert!(matches!(error, OpenError::Checksum { expected, .. } if expected == checksum));
        }
    }
}

/// What `gzip` and `bzip2` made of "kymo kymo kymo", as files hold it and twice one behind the other.
#[test]
fn compressed_content_is_that_of_files() {
    let gzip = "1f8b0800000000000203cbaecccd57c886110035d7c1100e000000";
    let bzip2 = "425a683931415926535925bf735500000111804000000a80202000223d26d066829391130bb9229c284812dfb9aa80";
    for (scheme, file) in [(2, gzip), (1, bzip2)] {
        let once = bytes(file);
        let packet = stored(&once, [scheme, 0, 0], 0, ByteOrder::Little);
        assert_eq!(content_of(&packet, &[]), Ok(b"kymo kymo kymo".to_vec()));
        let twice = stored(&once.repeat(2), [scheme, 0, 0], 0, ByteOrder::Little);
        assert_eq!(
            content_of(&twice, &[]),
            Ok(b"kymo kymo kymokymo kymo kymo".to_vec())
        );
        for wrong in [
            &[][..],
            &once[..once.len() - 1],
            &[&once[..], b"x"].concat(),
        ] {
            let packet = stored(wrong, [scheme, 0, 0], 0, ByteOrder::Little);
            assert_eq!(content_of(&packet, &[]), Err(OpenError::Compression));
        }
    }
}

#[test]
fn content_that_becomes_too_large_is_not_made() {
    let zeros = vec![0; 1 << 20];
    for compression in [Compression::Gzip, Compression::Bzip2] {
        let content = compression::compress(compression, &zeros);
        let packet = stored(&content, [compression.scheme(), 0, 0], 0, ByteOrder::Big);
        let open = |most| {
            let limits = Limits {
                most,
                ratio: 1,
                free: most,
            };
            open(&packet, ByteOrder::Big, &[], &limits).map(|opened| opened.len())
        };
        assert_eq!(open(zeros.len()), Ok(48 + zeros.len()));
        assert_eq!(
            open(zeros.len() - 1),
            Err(OpenError::Limit(zeros.len() - 1))
        );
        assert_eq!(open(0), Err(OpenError::Limit(0)));
    }
    let limits = Limits::default();
    assert_eq!(limits.of(1), 4 << 20);
    assert_eq!(limits.of(1 << 17), 1 << 25);
    assert_eq!(limits.of(usize::MAX), 64 << 20);
}

/// Content that would be taken for an attack is stored as it is.
#[test]
fn what_is_sealed_can_be_opened() {
    let zeros = vec![0; 5 << 20];
    let plain = packet(&zeros, 0, ByteOrder::Little);
    let protection = Protection {
        compression: Compression::Bzip2,
        ..Protection::default()
    };
    let sealed = seal(&plain, ByteOrder::Little, &protection, || [0; 12]).unwrap();
    assert_eq!((sealed[45], sealed.len() % PAGE), (0, 0));
    assert_eq!(content_of(&sealed, &[]), Ok(zeros));
}

#[test]
fn key_files() {
    let raw: Vec<u8> = (0..32).map(|byte| byte * 7).collect();
    for size in [16, 24, 32] {
        let key = Key::parse(&raw[..size]).unwrap();
        let digits: String = raw[..size]
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect();
        for end in ["\n", "\r\n"] {
            assert_eq!(
                Key::parse(format!("{digits}{end}").as_bytes()),
                Ok(key.clone())
            );
        }
        let lower = digits.to_lowercase() + "\n";
        assert_eq!(Key::parse(lower.as_bytes()), Ok(key.clone()));
        assert_eq!(format!("{key:?}"), format!("Key({} bits)", size * 8));
    }
    assert_eq!(Key::parse(&[b'a'; 32]).unwrap().bytes(), [b'a'; 32]);
    for wrong in [
        &b""[..],
        b"key\n",
        &[b'a'; 31],
        &[b'a'; 40],
        &[b'g'; 33],
        &[b'\n'; 33],
        &[b'a'; 66],
    ] {
        let message = Key::parse(wrong).unwrap_err().to_string();
        assert!(
            message.starts_with(&format!("found {} bytes", wrong.len())),
            "{message}"
        );
    }
}

#[test]
fn what_is_no_plain_packet_is_not_sealed() {
    let order = ByteOrder::Little;
    let none = Protection::default();
    let seal = |packet: &[u8]| seal(packet, order, &none, || [0; 12]);
    let plain = packet(b"content", 0, order);
    assert_eq!(seal(&plain[..47]), Err(SealError::Size));
    assert_eq!(seal(&plain[..plain.len() - 1]), Err(SealError::Size));
    let sealed = stored(b"content", [0, 0, 3], 0, order);
    assert_eq!(seal(&sealed), Err(SealError::Sealed));
    let mut short = plain;
    short[8] = 47;
    assert_eq!(seal(&short), Err(SealError::Size));
    assert_eq!(content_of(&short, &[]), Err(OpenError::Size));
}

#[test]
fn unknown_schemes_are_reported() {
    for (at, field) in ["compression_scheme", "encryption_scheme", "checksum_scheme"]
        .into_iter()
        .enumerate()
    {
        let mut schemes = [0; 3];
        schemes[at] = 9;
        let packet = stored(b"", schemes, 0, ByteOrder::Little);
        assert_eq!(
            content_of(&packet, &[]),
            Err(OpenError::Scheme { field, scheme: 9 })
        );
    }
}

fn keys() -> impl Strategy<Value = Option<Key>> {
    let size = prop_oneof![Just(16), Just(24), Just(32)];
    let key = size
        .prop_flat_map(|size| proptest::collection::vec(any::<u8>(), size))
        .prop_map(|bytes| Key::new(&bytes).unwrap());
    proptest::option::of(key)
}

prop_compose! {
    fn protections()(
        compression in prop_oneof![Just(Compression::None), Just(Compression::Bzip2), Just(Compression::Gzip)],
        key in keys(),
        checksum in prop_oneof![Just(Checksum::None), Just(Checksum::Md5), Just(Checksum::Sha1), Just(Checksum::Crc32)],
    ) -> Protection {
        Protection { compression, key, checksum }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn packets_come_back(
        content in proptest::collection::vec(0..5u8, 0..10_000),
        padding in 0..100usize,
        big in any::<bool>(),
        protection in protections(),
        nonce in any::<[u8; 12]>(),
    ) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let plain = packet(&content, padding, order);
        let sealed = seal(&plain, order, &protection, || nonce).unwrap();
        prop_assert_eq!(sealed.len() % PAGE, 0);
        let header = PacketHeader::read(&sealed, order).unwrap();
        prop_assert_eq!(header.packet_size as usize, sealed.len());
        prop_assert_eq!(header.encryption == 1, protection.key.is_some());
        prop_assert_eq!(header.compression, protection.compression.scheme());
        prop_assert_eq!(&sealed[20..45], &plain[20..45]);

        let keys: Vec<Key> = [Key::new(&[1; 16]).unwrap()].into_iter().chain(protection.key.clone()).collect();
        let opened = open(&sealed, order, &keys, &Limits::default()).unwrap();
        prop_assert_eq!(&opened[48..48 + content.len()], &content);
        prop_assert_eq!(&opened[20..45], &plain[20..45]);
        let again = PacketHeader::read(&opened, order).unwrap();
        prop_assert_eq!(again.content_size as usize, 48 + content.len());

        if protection.key.is_some() {
            let without = open(&sealed, order, &[], &Limits::default());
            prop_assert_eq!(without, Err(OpenError::KeyNeeded));
            let wrong = open(&sealed, order, &keys[..1], &Limits::default());
            prop_assert_eq!(wrong, Err(OpenError::Encryption));
        }
    }

    #[test]
    fn no_flipped_bit_goes_unnoticed(
        content in proptest::collection::vec(any::<u8>(), 1..500),
        mut protection in protections(),
        flip in any::<proptest::sample::Index>(),
        bit in 0..8u32,
    ) {
        if protection.key.is_none() && protection.checksum == Checksum::None {
            protection.checksum = Checksum::Crc32;
        }
        let order = ByteOrder::Little;
        let plain = packet(&content, 0, order);
        let mut sealed = seal(&plain, order, &protection, || [3; 12]).unwrap();
        let end = PacketHeader::read(&sealed, order).unwrap().content_size as usize;
        // A checksum is of the content alone.
        let begin = if protection.key.is_some() { 0 } else { 48 };
        let at = begin + flip.index(end - begin);
        sealed[at] ^= 1 << bit;
        let keys: Vec<Key> = protection.key.into_iter().collect();
        let opened = open(&sealed, order, &keys, &Limits::default());
        match (at, bit) {
            // That a packet is not encrypted is seen among others that are.
            (46, 0) => {}
            (46 | 47, _) => prop_assert!(opened.is_err()),
            (8..12, _) => prop_assert!(opened.is_err()),
            _ => {
                let is_reported = matches!(opened, Err(OpenError::Checksum { .. } | OpenError::Encryption | OpenError::Scheme { .. }));
                prop_assert!(is_reported, "{} {}", at, bit);
            }
        }
    }
}

#[test]
fn content_stays_with_its_header() {
    let order = ByteOrder::Big;
    let protection = Protection {
        key: Key::new(&[1; 16]),
        checksum: Checksum::Crc32,
        ..Protection::default()
    };
    let keys: Vec<Key> = protection.key.clone().into_iter().collect();
    let sealed = |time: u8| {
        let mut plain = packet(b"content", 0, order);
        plain[31] = time;
        seal(&plain, order, &protection, || [time; 12]).unwrap()
    };
    let (one, two) = (sealed(1), sealed(2));
    let mut exchanged = one.clone();
    // With its checksum.
    exchanged[16..20].copy_from_slice(&two[16..20]);
    exchanged[48..].copy_from_slice(&two[48..]);
    let error = open(&exchanged, order, &keys, &Limits::default()).unwrap_err();
    assert_eq!(error, OpenError::Encryption);
}

/// What is free is so for all packets together: many small ones cannot ask for much.
#[test]
fn many_packets_share_what_is_free() {
    assert_eq!(Limits::among(4096, 4096), Limits::default());
    assert_eq!(Limits::among(0, 0).of(100), 25_600);
    assert_eq!(Limits::among(1 << 20, 16 << 20).of(1), 4 << 20);
    for (packet, count) in [(129, 100), (129, 100_000), (4096, 1000), (u64::MAX, 1)] {
        let all = packet.saturating_mul(count);
        let most = Limits::among(packet, all).of(usize::try_from(packet).unwrap_or(usize::MAX));
        let together = (most as u64).saturating_mul(count);
        assert!(together <= all.saturating_mul(256).saturating_add(64 << 20));
    }
}
