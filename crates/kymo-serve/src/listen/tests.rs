use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use super::*;
use crate::log::Level;
use crate::store::{Log, no_log};

fn echo(mut stream: Stream) {
    let mut byte = [0];
    while stream.read_exact(&mut byte).is_ok() && stream.write_all(&byte).is_ok() {}
}

#[test]
fn sockets_without_a_listener_are_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let address = Address::Unix(directory.path().join("sock"));
    let Address::Unix(path) = &address else {
        unreachable!()
    };
    drop(UnixListener::bind(path).unwrap());
    let socket = Socket::bind(&address, &Access::mode(0o600)).unwrap();
    let mode = path.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let taken = Socket::bind(&address, &Access::mode(0o600)).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    drop(socket);
    assert!(!path.exists());
    std::fs::write(path, "no socket").unwrap();
    assert!(Socket::bind(&address, &Access::mode(0o600)).is_err());
}

/// Bytes that end no line do not hold a connection, and lines do as long as they come.
#[test]
fn lines_that_drip_end_connections() {
    let (mut stream, mut client) = Stream::pair().unwrap();
    let timeout = Duration::from_millis(200);
    stream.set_idle_timeout(timeout).unwrap();
    let sender = std::thread::spawn(move || {
        for byte in (0..).map(|number| if number < 100 { b'\n' } else { b'x' }) {
            if client.write_all(&[byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let begun = Instant::now();
    let mut lines = 0;
    let error = loop {
        let mut byte = [0];
        match stream.read(&mut byte) {
            Ok(_) => lines += usize::from(byte == *b"\n"),
            Err(error) => break error,
        }
        assert!(begun.elapsed() < Duration::from_secs(30));
    };
    assert_eq!((lines, error.kind()), (100, io::ErrorKind::TimedOut));
    drop(stream);
    sender.join().unwrap();
}

/// Without a group, a file has that of a new one, also if it had another before.
#[test]
fn groups_are_given_and_taken_back() {
    let directory = tempfile::tempdir().unwrap();
    let address = Address::Unix(directory.path().join("sock"));
    let socket = Socket::bind(&address, &Access::mode(0o600)).unwrap();
    let path = directory.path().join("sock");
    let own = path.metadata().unwrap().gid();
    // Only a privileged user may give files to any group.
    let Some(other) = Group::from_name("daemon")
        .unwrap()
        .filter(|_| nix::unistd::geteuid().is_root())
    else {
        return;
    };
    let group = Some("daemon".to_owned());
    socket.set_access(&Access { mode: 0o660, group }).unwrap();
    assert_eq!(path.metadata().unwrap().gid(), other.gid.as_raw());
    socket.set_access(&Access::mode(0o660)).unwrap();
    assert_eq!(path.metadata().unwrap().gid(), own);
}

#[test]
fn connections_are_served_until_the_end() {
    let directory = tempfile::tempdir().unwrap();
    let address = Address::Unix(directory.path().join("sock"));
    let Address::Unix(path) = &address else {
        unreachable!()
    };
    let socket = Socket::bind(&address, &Access::mode(0o600)).unwrap();
    let messages = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&messages);
    let log: Log = Arc::new(move |level, text| kept.lock().unwrap().push((level, text.to_owned())));
    let server = Server::start("echo", &[Arc::new(socket)], 2, &log, echo).unwrap();
    let mut one = UnixStream::connect(path).unwrap();
    let mut other = UnixStream::connect(path).unwrap();
    let mut byte = [0];
    for stream in [&mut one, &mut other] {
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut byte).unwrap();
    }
    // A third is turned away.
    let mut third = UnixStream::connect(path).unwrap();
    assert_eq!(third.read(&mut byte).unwrap_or(0), 0);
    assert_eq!(
        server
            .connections()
            .listeners
            .sum(|it| it.refused.load(Relaxed)),
        1
    );
    let expected =
        format!("echo at {address}: connection refused: the limit of 2 connections is reached");
    assert_eq!(*messages.lock().unwrap(), [(Level::Warning, expected)]);
    server.stop();
    assert_eq!(one.read(&mut byte).unwrap(), 0);
    assert!(UnixStream::connect(path).is_err());
}

/// Whoever connects and says nothing keeps nobody out.
#[test]
fn silent_connections_give_way() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sock");
    let socket = Socket::bind(&Address::Unix(path.clone()), &Access::mode(0o600)).unwrap();
    let sockets = [Arc::new(socket)];
    let server = Server::start("echo", &sockets, 4, &no_log(), echo).unwrap();
    let mut byte = [0];
    let mut speaks = UnixStream::connect(&path).unwrap();
    speaks.write_all(b"x").unwrap();
    speaks.read_exact(&mut byte).unwrap();
    let silent: Vec<_> = (0..3)
        .map(|_| UnixStream::connect(&path).unwrap())
        .collect();
    std::thread::sleep(Duration::from_millis(1100));
    for _ in 0..2 {
        let mut late = UnixStream::connect(&path).unwrap();
        late.write_all(b"y").unwrap();
        late.read_exact(&mut byte).unwrap();
        drop(late);
        std::thread::sleep(Duration::from_millis(20));
    }
    // Who speaks now and then stays.
    speaks.write_all(b"z").unwrap();
    speaks.read_exact(&mut byte).unwrap();
    let connections = server.connections();
    assert_eq!(connections.listeners.sum(|it| it.refused.load(Relaxed)), 0);
    assert_eq!(connections.listeners.sum(|it| it.evicted.load(Relaxed)), 1);
    assert_eq!(connections.count(), 3);
    drop(silent);
    server.stop();
}

#[test]
fn sockets_come_and_go() {
    let directory = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| directory.path().join(name));
    let [a, b] = paths.clone().map(|path| {
        let socket = Socket::bind(&Address::Unix(path), &Access::mode(0o600));
        Arc::new(socket.unwrap())
    });
    let server = Server::start("echo", &[Arc::clone(&a)], 9, &no_log(), echo).unwrap();
    server.add(&[Arc::clone(&a), Arc::clone(&b)]).unwrap();
    let [mut one, mut other] = paths.each_ref().map(|path| {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0]).unwrap();
        stream
    });
    drop(a);
    server.retain(std::slice::from_ref(&b), 1);
    assert_eq!(one.read(&mut [0]).unwrap(), 0, "its socket is gone");
    assert!(!paths[0].exists());
    other.write_all(b"x").unwrap();
    other.read_exact(&mut [0]).unwrap();
    let mut third = UnixStream::connect(&paths[1]).unwrap();
    assert_eq!(third.read(&mut [0]).unwrap_or(0), 0, "only one at a time");
    assert_eq!(server.connections().count(), 1);
    server.stop();
}
