use super::*;
use crate::network::PORT;

/// A datagram of UDP.
fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u16 + 8;
    let halves = [40_000, port, length, 0].map(u16::to_be_bytes);
    [halves.as_flattened(), payload].concat()
}

/// A packet of IPv4; `pieces` are its flags and its offset.
fn ipv4(pieces: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 20];
    packet[0] = 0x45;
    packet[6..8].copy_from_slice(&pieces.to_be_bytes());
    packet[9] = 17;
    [packet, payload.to_vec()].concat()
}

/// A packet of IPv6 with other headers before UDP: their numbers and bytes.
fn ipv6(headers: &[(u8, &[u8])], payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; 40];
    packet[0] = 0x60;
    let mut next_at = 6;
    for (number, bytes) in headers {
        packet[next_at] = *number;
        next_at = packet.len();
        packet.extend_from_slice(bytes);
    }
    packet[next_at] = 17;
    [packet, payload.to_vec()].concat()
}

fn ethernet(protocol: &[u8], payload: &[u8]) -> Vec<u8> {
    [&[0; 12], protocol, payload].concat()
}

fn word(number: u32, order: ByteOrder) -> [u8; 4] {
    match order {
        ByteOrder::Little => number.to_le_bytes(),
        ByteOrder::Big => number.to_be_bytes(),
    }
}

fn pcap(order: ByteOrder, link: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for number in [0xa1b2_c3d4, 0x0002_0004, 0, 0, 65_535, link] {
        file.extend_from_slice(&word(number, order));
    }
    for packet in packets {
        let length = packet.len() as u32;
        for number in [0, 0, length, length] {
            file.extend_from_slice(&word(number, order));
        }
        file.extend_from_slice(packet);
    }
    file
}

fn block(order: ByteOrder, kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
    let length = word((body.len() + padding.len()) as u32 + 12, order);
    [&word(kind, order)[..], &length, body, &padding, &length].concat()
}

fn section(order: ByteOrder) -> Vec<u8> {
    block(
        order,
        0x0a0d_0d0a,
        &[&word(0x1a2b_3c4d, order)[..], &[0; 12]].concat(),
    )
}

fn interface(order: ByteOrder, link: u16) -> Vec<u8> {
    let link = match order {
        ByteOrder::Little => link.to_le_bytes(),
        ByteOrder::Big => link.to_be_bytes(),
    };
    block(order, 1, &[&link[..], &[0; 6]].concat())
}

fn packet(order: ByteOrder, interface: u32, packet: &[u8]) -> Vec<u8> {
    let length = packet.len() as u32;
    let numbers = [interface, 0, 0, length, length].map(|number| word(number, order));
    block(order, 6, &[numbers.as_flattened(), packet].concat())
}

fn read(file: &[u8]) -> Vec<Result<Vec<u8>, CaptureProblem>> {
    let mut found = Vec::new();
    datagrams(file, Form::detect(file).unwrap(), PORT, &mut |datagram| {
        found.push(match datagram {
            Ok(Datagram { offset, payload }) => {
                assert_eq!(&file[offset..offset + payload.len()], payload);
                Ok(payload.to_vec())
            }
            Err(fault) => {
                assert!(fault.offset <= file.len());
                Err(fault.problem)
            }
        });
    });
    found
}

#[test]
fn every_link_and_every_header() {
    let inner = udp(PORT, b"abc");
    let v4 = ipv4(0x4000, &inner);
    for (link, packet) in [
        (1, ethernet(&[8, 0], &v4)),
        (1, ethernet(&[0x81, 0, 0, 5, 8, 0], &v4)),
        (1, ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8, 0], &v4)),
        (1, ethernet(&[0x86, 0xdd], &ipv6(&[], &inner))),
        (0, [&[2, 0, 0, 0], &v4[..]].concat()),
        (108, [&[0, 0, 0, 2], &v4[..]].concat()),
        (101, v4.clone()),
        (228, v4.clone()),
        (113, [&[0; 14][..], &[8, 0], &v4].concat()),
        (113, [&[0; 14][..], &[0x81, 0, 0, 5, 8, 0], &v4].concat()),
        (276, [&[8, 0][..], &[0; 18], &v4].concat()),
        (276, [&[0x81, 0][..], &[0; 18], &[0, 5, 8, 0], &v4].concat()),
        (
            101,
            ipv6(
                &[
                    (0, &[0; 8]),
                    (60, &[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
                ],
                &inner,
            ),
        ),
        (101, ipv6(&[(44, &[0; 8])], &inner)),
    ] {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let file = pcap(order, link, std::slice::from_ref(&packet));
            assert_eq!(read(&file), [Ok(b"abc".to_vec())], "{link}");
            let blocks = [
                section(order),
                interface(order, link as u16),
                packet_of(order, &packet),
            ];
            assert_eq!(read(&blocks.concat()), [Ok(b"abc".to_vec())], "{link}");
        }
    }
}

fn packet_of(order: ByteOrder, bytes: &[u8]) -> Vec<u8> {
    packet(order, 0, bytes)
}

#[test]
fn what_is_for_others_is_left_out() {
    let other = |packet: Vec<u8>| assert_eq!(read(&pcap(ByteOrder::Little, 1, &[packet])), []);
    other(ethernet(&[8, 6], &[0; 28]));
    other(ethernet(&[8, 0], &ipv4(0, &udp(PORT - 1, b"abc"))));
    let mut tcp = ipv4(0, &udp(PORT, b"abc"));
    tcp[9] = 6;
    other(ethernet(&[8, 0], &tcp));
    // Later pieces have no port.
    other(ethernet(&[8, 0], &ipv4(5, &udp(PORT, b"abc"))));
    other(vec![]);
}

#[test]
fn what_cannot_be_read_is_reported() {
    let order = ByteOrder::Little;
    let whole = ethernet(&[8, 0], &ipv4(0, &udp(PORT, b"abc")));
    let cut = whole[..whole.len() - 1].to_vec();
    // A first piece has the length of the whole.
    let mut longer = udp(PORT, b"abc");
    longer[5] += 100;
    let piece = ethernet(&[8, 0], &ipv4(0x2000, &longer));
    let piece6 = ethernet(
        &[0x86, 0xdd],
        &ipv6(&[(44, &[0, 0, 0, 1, 0, 0, 0, 0])], &udp(PORT, b"a")),
    );
    let file = pcap(order, 1, &[cut, piece, piece6, whole.clone()]);
    let skipped = |skipped| Err(CaptureProblem::Skipped(skipped));
    assert_eq!(
        read(&file),
        [
            skipped(Skipped::Cut),
            skipped(Skipped::Fragment),
            skipped(Skipped::Fragment),
            Ok(b"abc".to_vec())
        ]
    );
    assert_eq!(
        read(&file[..file.len() - 1]).last(),
        Some(&Err(CaptureProblem::Truncated))
    );
    let file = pcap(order, 147, std::slice::from_ref(&whole));
    assert_eq!(read(&file), [Err(CaptureProblem::LinkType(147))]);
    let file = [section(order), packet(order, 0, &whole)].concat();
    assert_eq!(read(&file), [Err(CaptureProblem::Interface(0))]);
    let mut file = section(order);
    file[4] = 13;
    assert_eq!(read(&file), [Err(CaptureProblem::BlockLength(13))]);
}

#[test]
fn simple_packets_and_several_sections() {
    let whole = ethernet(&[8, 0], &ipv4(0, &udp(PORT, b"abc")));
    let simple = |order| {
        let length = word(whole.len() as u32, order);
        block(order, 3, &[&length[..], &whole].concat())
    };
    let file: Vec<u8> = [ByteOrder::Little, ByteOrder::Big]
        .map(|order| [section(order), interface(order, 1), simple(order)].concat())
        .concat();
    assert_eq!(read(&file), [Ok(b"abc".to_vec()), Ok(b"abc".to_vec())]);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_withstood(head in 0..5usize, bytes: Vec<u8>) {
        let heads = [
            vec![0xa1, 0xb2, 0xc3, 0xd4],
            vec![0xd4, 0xc3, 0xb2, 0xa1],
            vec![0x0a, 0x0d, 0x0d, 0x0a],
            section(ByteOrder::Big),
            pcap(ByteOrder::Little, 1, &[]),
        ];
        read(&[&heads[head][..], &bytes].concat());
    }
}
