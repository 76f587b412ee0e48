//! What is sent over UDP arrives, whatever is lost on the way.

mod common;

use std::fs::OpenOptions;
use std::io::Write;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use common::{numbers, read, record};
use kymo_ctf::wire::{Event, Receiver, ReceiverLimits, ReceiverOptions};
use kymo_tracing::{Key, Options, WhenFull};

/// Receives a trace; one of every `losing` datagrams is lost.
fn receive(socket: &UdpSocket, directory: &Path, key: Option<Key>, losing: usize) {
    let mut receiver = Receiver::new(ReceiverOptions {
        key,
        resend: true,
        idle: Duration::from_secs(20),
        first_number: 0,
        limits: ReceiverLimits::default(),
    });
    socket
        .set_read_timeout(Some(Duration::from_millis(10)))
        .unwrap();
    let begun = Instant::now();
    let mut buffer = [0; 1 << 16];
    let mut names = std::collections::BTreeMap::new();
    let mut packets = Vec::new();
    for number in 1usize.. {
        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
            socket.connect(from).unwrap();
            if !number.is_multiple_of(losing) {
                receiver
                    .receive(begun.elapsed(), &buffer[..length])
                    .unwrap();
            }
        }
        receiver.poll(begun.elapsed());
        while let Some(datagram) = receiver.next_datagram() {
            // Who sends may have ended.
            let _ = socket.send(&datagram);
        }
        while let Some(event) = receiver.next_event() {
            match event {
                Event::Stream { stream, name, .. } => drop(names.insert(stream, name)),
                Event::Packet { stream, bytes, .. } => packets.push((stream, bytes)),
                Event::Lost { .. } | Event::TooLarge { .. } => panic!("{event:?}"),
                Event::End { reported } => assert!(reported),
            }
        }
        if receiver.has_ended() {
            break;
        }
    }
    for (stream, bytes) in packets {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(directory.join(&names[&stream]));
        file.unwrap().write_all(&bytes).unwrap();
    }
}

#[test]
fn what_is_sent_arrives() {
    for key in [None, Key::new(&[7; 16])] {
        let folder = tempfile::tempdir().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = socket.local_addr().unwrap();
        let directory = folder.path().to_path_buf();
        let its_key = key.clone();
        let receiver = std::thread::spawn(move || receive(&socket, &directory, its_key, 7));
        let options = Options::new().packet_size(4096).when_full(WhenFull::Wait);
        let (layer, guard) = options.udp(to, key).unwrap();
        record(layer, || {
            for number in 0..3000u64 {
                tracing::info!(number, "one of many");
            }
            tracing::info!(number = 3000u64, "another class");
        });
        guard.finish().unwrap();
        receiver.join().unwrap();
        assert!(
            numbers(&read(folder.path()), "number")
                .into_iter()
                .eq(0..=3000)
        );
    }
}

#[test]
fn nobody_need_be_there() {
    // The port is free again when this is dropped.
    let to = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (layer, guard) = Options::new().udp(to, None).unwrap();
    record(layer, || tracing::info!("said to nobody"));
    let begun = Instant::now();
    assert!(guard.finish().is_err());
    assert!(begun.elapsed() < Duration::from_secs(60));
}

/// Asks again and again for what it never takes, until it is stopped.
fn nag(socket: &UdpSocket, stop: &AtomicBool) {
    let mut receiver = Receiver::new(ReceiverOptions {
        key: None,
        resend: true,
        idle: Duration::from_secs(60),
        first_number: 0,
        limits: ReceiverLimits::default(),
    });
    socket
        .set_read_timeout(Some(Duration::from_millis(10)))
        .unwrap();
    let begun = Instant::now();
    let mut buffer = [0; 1 << 16];
    while !stop.load(Relaxed) {
        if let Ok((length, from)) = socket.recv_from(&mut buffer) {
            socket.connect(from).unwrap();
            // That it ends is all it hears.
            if length < 40 {
                receiver
                    .receive(begun.elapsed(), &buffer[..length])
                    .unwrap();
            }
        }
        receiver.poll(begun.elapsed());
        while let Some(datagram) = receiver.next_datagram() {
            let _ = socket.send(&datagram);
        }
    }
}

#[test]
fn the_end_comes_whatever_is_asked_for() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = socket.local_addr().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| nag(&socket, &stop));
        // Longer than a receiver may be silent.
        let time = Duration::from_secs(7);
        let (layer, guard) = Options::new().end_within(time).udp(to, None).unwrap();
        record(layer, || tracing::info!("asked for without end"));
        let begun = Instant::now();
        let error = guard.finish().unwrap_err();
        let took = begun.elapsed();
        stop.store(true, Relaxed);
        assert!(
            (time..time + Duration::from_secs(8)).contains(&took),
            "{took:?}"
        );
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("within 7s"), "{error}");
    });
}
