//! A connection between two pairs of sockets, with hosts that write, read, pause, end and reset in any order.

use super::*;
use bolero::{TypeGenerator, check};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown as Half, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// The longest that all bytes take to pass: the kernel waits before it probes a closed window.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// What a host does.
#[derive(Clone, Copy, Debug, TypeGenerator)]
enum Act {
    /// The client or the server writes so many bytes, as far as there is room.
    Write { client: bool, count: u16, times: u8 },
    /// One reads so many bytes, if there are any: a host that never does closes its window.
    Read { client: bool, count: u16, times: u8 },
    /// One ends its direction.
    End { client: bool },
    /// The proxy's worker runs, once or until it has nothing to do.
    Relay { long: bool },
    /// One sends a byte of urgent data.
    Urgent { client: bool },
    /// A control bounds what is between the sockets, or lifts that.
    Bound { most: Option<u16> },
}

/// A host and what it has written and read.
struct Host {
    stream: TcpStream,
    written: u64,
    read: u64,
    ended: bool,
    seen_end: bool,
}

/// The byte at a position of a host's data; the two directions differ.
fn byte(position: u64, salt: u8) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 ^ salt
}

impl Host {
    fn new(stream: TcpStream) -> Host {
        stream.set_nonblocking(true).expect("it is a socket");
        Host { stream, written: 0, read: 0, ended: false, seen_end: false }
    }

    fn write(&mut self, count: usize, salt: u8) {
        if self.ended {
            return;
        }
        let bytes: Vec<u8> = (0..count as u64).map(|n| byte(self.written + n, salt)).collect();
        match self.stream.write(&bytes) {
            Ok(count) => self.written += count as u64,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }

    fn urgent(&mut self, salt: u8) {
        if !self.ended && send(&self.stream, &[byte(self.written, salt)], SendFlags::OOB).is_ok() {
            self.written += 1;
        }
    }

    /// Reads and checks up to `count` bytes.
    fn read(&mut self, count: usize, salt: u8) {
        let mut buffer = vec![0; count];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.seen_end |= count > 0,
            Ok(count) => {
                assert!(!self.seen_end, "bytes after the end");
                for &found in &buffer[..count] {
                    assert_eq!(found, byte(self.read, salt), "at {}", self.read);
                    self.read += 1;
                }
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }

    fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.stream.shutdown(Half::Write).expect("it is connected");
        }
    }
}

/// Two connected sockets with small buffers.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    rustix::net::sockopt::set_socket_recv_buffer_size(&listener, 8 << 10).expect("it can be set");
    rustix::net::sockopt::set_socket_oobinline(&listener, true).expect("it can be set");
    let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
    let (server, _) = listener.accept().expect("a client");
    for socket in [&client, &server] {
        rustix::net::sockopt::set_socket_send_buffer_size(socket, 8 << 10).expect("it can be set");
        rustix::net::sockopt::set_socket_oobinline(socket, true).expect("it can be set");
        socket.set_nodelay(true).expect("it can be set");
        socket.set_nonblocking(true).expect("it can be set");
    }
    (client, server)
}

/// A proxy's connection, whose events come from poll(2) as its worker's come from epoll.
struct Split {
    legs: [TcpStream; 2],
    directions: [Direction; 2],
    tools: Tools,
    most: usize,
    bound: usize,
}

impl Split {
    fn new(legs: [TcpStream; 2], buffer: usize) -> Split {
        let tools = Tools::new(buffer, 1, usize::MAX);
        Split { legs, directions: Default::default(), most: tools.size, bound: NO_LIMIT, tools }
    }

    /// Does what the worker does when the client's leg has failed.
    fn fail(&mut self, reported: Option<Errno>) {
        self.directions[0].on_source_failed(reported);
        self.directions[1].discard();
    }

    /// One turn of the direction from the client after its leg has failed.
    fn drain(&mut self) {
        let mut sink = [PollFd::new(&self.legs[1], PollFlags::OUT)];
        poll(&mut sink, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("it can be polled");
        if sink[0].revents().contains(PollFlags::OUT) {
            self.directions[0].on_writable();
        }
        let [from, to] = [0, 1].map(|leg| self.legs[leg].as_fd());
        self.directions[0].advance(from, to, self.bound, &mut self.tools).expect("the server does not reset");
        assert!(self.directions[0].held() <= self.most, "more than the setting permits");
        assert!(self.tools.count() <= self.tools.most);
    }

    /// Tells the directions of events. Returns whether the client's leg has failed.
    fn look(&mut self) -> bool {
        let mut has_failed = false;
        for leg in 0..2 {
            let flags = PollFlags::IN | PollFlags::OUT | PollFlags::RDHUP | PollFlags::PRI;
            let mut ends = [PollFd::new(&self.legs[leg], flags)];
            poll(&mut ends, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("it can be polled");
            let found = ends[0].revents();
            let ending = found.intersects(PollFlags::RDHUP | PollFlags::HUP);
            if ending || found.contains(PollFlags::IN) {
                self.directions[leg].on_readable(ending);
            }
            if found.contains(PollFlags::PRI) {
                self.directions[leg].on_urgent();
            }
            if found.contains(PollFlags::OUT) {
                self.directions[1 - leg].on_writable();
            }
            has_failed |= leg == 0 && found.contains(PollFlags::ERR);
        }
        has_failed
    }

    /// One turn of both directions. Returns whether there is more at once.
    fn turn(&mut self) -> bool {
        self.look();
        let mut more = false;
        for source in 0..2 {
            let (before, held) = (self.directions[source].taken(), self.directions[source].held());
            let [from, to] = [source, 1 - source].map(|leg| self.legs[leg].as_fd());
            let turn = self.directions[source].advance(from, to, self.bound, &mut self.tools).expect("nobody resets");
            more |= turn == Turn::More || self.directions[source].taken() > before;
            assert!(self.directions[source].held() <= self.most, "more than the setting permits");
            assert!(self.directions[source].held() <= self.bound.max(held), "more than the control permits");
            let direction = &self.directions[source];
            assert!(direction.pipe.is_none() || direction.rest.is_empty());
            assert_eq!(direction.held() > 0, direction.pipe.is_some() || !direction.rest.is_empty());
            assert!(self.tools.count() <= self.tools.most);
        }
        more
    }
}

impl Act {
    fn perform(self, client: &mut Host, server: &mut Host, split: &mut Split) {
        match self {
            Act::Write { client: true, count, times } => (0..=times).for_each(|_| client.write(count.into(), 1)),
            Act::Write { client: false, count, times } => (0..=times).for_each(|_| server.write(count.into(), 2)),
            Act::Read { client: true, count, times } => (0..=times).for_each(|_| client.read(count.into(), 2)),
            Act::Read { client: false, count, times } => (0..=times).for_each(|_| server.read(count.into(), 1)),
            Act::End { client: true } => client.end(),
            Act::End { client: false } => server.end(),
            Act::Urgent { client: true } => client.urgent(1),
            Act::Urgent { client: false } => server.urgent(2),
            Act::Bound { most } => split.bound = most.map_or(NO_LIMIT, |most| usize::from(most).max(1)),
            Act::Relay { long } => while split.turn() && long {},
        }
    }
}

#[test]
fn every_byte_passes_once_and_in_order_and_each_end_after_its_bytes() {
    check!().with_type::<(bool, u8, Vec<Act>)>().with_iterations(100).for_each(|(large, pipes, acts)| {
        let (client, accepted) = pair();
        let (outgoing, server) = pair();
        let (mut client, mut server) = (Host::new(client), Host::new(server));
        let mut split = Split::new([accepted, outgoing], if *large { 256 << 10 } else { LEAST_PIPE });
        // None, one for both directions, or enough.
        split.tools.set_most(usize::from(*pipes) % 3);
        for act in acts {
            act.perform(&mut client, &mut server, &mut split);
            assert!(!server.seen_end || (client.ended && server.read == client.written));
            assert!(!client.seen_end || (server.ended && client.read == server.written));
        }
        client.end();
        server.end();
        let start = Instant::now();
        while !(client.seen_end && server.seen_end) && start.elapsed() < TEST_TIMEOUT {
            if !split.turn() {
                std::thread::sleep(Duration::from_micros(100));
            }
            client.read(1 << 16, 2);
            server.read(1 << 16, 1);
        }
        assert!(client.seen_end && server.seen_end, "the ends do not arrive");
        assert_eq!((server.read, client.read), (client.written, server.written));
        assert!(split.directions.iter().all(|direction| direction.is_finished() && direction.held() == 0));
    });
}

#[test]
fn a_reset_of_one_side_fails_the_direction_and_closing_resets_the_other() {
    for by_client in [true, false] {
        let ((client, accepted), (outgoing, server)) = (pair(), pair());
        let mut split = Split::new([accepted, outgoing], LEAST_PIPE);
        split.legs.iter().for_each(does_not_linger);
        let (gone, mut other) = if by_client { (client, server) } else { (server, client) };
        does_not_linger(&gone);
        drop(gone);
        let source = usize::from(!by_client);
        split.directions[source].on_readable(true);
        split.directions[source].on_writable();
        let [from, to] = [source, 1 - source].map(|leg| split.legs[leg].as_fd());
        let turn = split.directions[source].advance(from, to, NO_LIMIT, &mut split.tools);
        assert_eq!(turn, Err(Fault::Source(Errno::CONNRESET)));
        drop(split);
        let error = other.read(&mut [0]).expect_err("not an end");
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    }
}

/// Lets closing reset a connection.
fn does_not_linger(stream: &TcpStream) {
    rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO)).expect("it can be set");
}

/// Waits for a reset. Returns whether it has come.
fn has_failed(leg: &TcpStream, within: Duration) -> bool {
    let timeout = Timespec { tv_sec: 0, tv_nsec: within.subsec_nanos().into() };
    let mut polled = [PollFd::new(leg, PollFlags::empty())];
    poll(&mut polled, Some(&timeout)).expect("it can be polled") > 0 && polled[0].revents().contains(PollFlags::ERR)
}

#[test]
fn what_came_before_a_reset_passes_and_an_end_only_if_it_came_as_well() {
    check!().with_type::<(bool, u8, bool, Vec<Act>)>().with_iterations(100).for_each(|(large, pipes, told, acts)| {
        let (client, accepted) = pair();
        let (outgoing, server) = pair();
        let (mut client, mut server) = (Host::new(client), Host::new(server));
        let mut split = Split::new([accepted, outgoing], if *large { 256 << 10 } else { LEAST_PIPE });
        split.legs.iter().chain([&client.stream]).for_each(does_not_linger);
        split.tools.set_most(usize::from(*pipes) % 3);
        for act in acts {
            act.perform(&mut client, &mut server, &mut split);
        }
        let Host { stream, written, ended, .. } = client;
        drop(stream);
        // The kernel does not repeat a reset that is outside the window, as behind data that had no room.
        if !has_failed(&split.legs[0], Duration::from_millis(200)) {
            return;
        }
        let unread = rustix::io::ioctl_fionread(&split.legs[0]).expect("it is a socket");
        let arrived = split.directions[0].taken() + unread;
        // Writing to the leg may be what tells of the reset.
        let reported = told.then(|| send(&split.legs[0], b"x", SEND).expect_err("it has failed"));
        split.fail(reported);
        let start = Instant::now();
        let is_over = |split: &Split, server: &Host| {
            let direction = &split.directions[0];
            direction.is_drained() && server.read == arrived && server.seen_end == direction.is_finished()
        };
        while !is_over(&split, &server) {
            assert!(start.elapsed() < TEST_TIMEOUT, "{} of {arrived} bytes, {:?}", server.read, split.directions[0]);
            split.drain();
            server.read(1 << 16, 1);
        }
        assert!(!server.seen_end || (ended && server.read == written));
        drop(split);
        if !server.seen_end {
            server.stream.set_nonblocking(false).expect("it is a socket");
            let error = server.stream.read(&mut [0]).expect_err("not an end");
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
    });
}

#[test]
fn a_reset_that_a_writer_has_been_told_of_is_no_end() {
    for (ends, urgent) in [(false, false), (false, true), (true, false), (true, true)] {
        let ((client, accepted), (outgoing, server)) = (pair(), pair());
        let (mut client, mut server) = (Host::new(client), Host::new(server));
        let mut split = Split::new([accepted, outgoing], LEAST_PIPE);
        does_not_linger(&client.stream);
        client.write(100, 1);
        if urgent {
            client.urgent(1);
            client.write(100, 1);
        }
        if ends {
            client.end();
        }
        let written = client.written;
        drop(client);
        assert!(has_failed(&split.legs[0], Duration::from_millis(900)));
        let reported = send(&split.legs[0], b"x", SEND).expect_err("it has failed");
        assert_eq!(reported, if ends { Errno::PIPE } else { Errno::CONNRESET });
        split.fail(Some(reported));
        while !split.directions[0].is_drained() {
            split.drain();
        }
        assert_eq!(split.directions[0].is_finished(), ends);
        while server.read < written || server.seen_end != ends {
            server.read(1 << 10, 1);
        }
    }
}

/// A client resets while splice(2) writes to its leg, which keeps an error to itself after it has written something.
#[test]
fn a_reset_in_the_middle_of_a_write_is_no_end() {
    const BYTES: usize = 1 << 20;
    for turn in 0..1000 {
        let ((client, accepted), (outgoing, server)) = (pair(), pair());
        for host in [&client, &server] {
            host.set_nonblocking(false).expect("it is a socket");
        }
        for sender in [&accepted, &server] {
            rustix::net::sockopt::set_socket_send_buffer_size(sender, BYTES).expect("it can be set");
        }
        let mut split = Split::new([accepted, outgoing], 256 << 10);
        std::thread::scope(|scope| {
            // In short packets, of which splice(2) passes few at a time. The end of the split resets it.
            scope.spawn(|| (0..BYTES / 1000).try_for_each(|_| (&server).write_all(&[7; 1000])));
            scope.spawn(move || {
                let count = 100_000 + turn * 7919 % (BYTES / 2);
                (&client).read_exact(&mut vec![0; count]).expect("the server writes more");
                does_not_linger(&client);
            });
            let reported = 'failed: loop {
                if split.look() {
                    break None;
                }
                for source in 0..2 {
                    let [from, to] = [source, 1 - source].map(|leg| split.legs[leg].as_fd());
                    match split.directions[source].advance(from, to, NO_LIMIT, &mut split.tools) {
                        Ok(_) => {}
                        Err(Fault::Source(error) | Fault::Sink(error)) => break 'failed Some(error),
                        Err(Fault::Pipe(error)) => panic!("{error}"),
                    }
                }
                assert!(!split.directions[0].is_finished(), "an end in turn {turn}");
            };
            split.fail(reported);
            while !split.directions[0].is_drained() {
                split.drain();
            }
            assert!(!split.directions[0].is_finished(), "an end in turn {turn}, after {reported:?}");
            split.legs.iter().for_each(does_not_linger);
            drop(split);
        });
    }
}

#[test]
fn a_reader_that_does_not_read_leaves_the_rest_with_the_writer() {
    let ((client, accepted), (outgoing, server)) = (pair(), pair());
    let mut client = Host::new(client);
    let mut split = Split::new([accepted, outgoing], 64 << 10);
    for _ in 0..200 {
        client.write(1 << 16, 1);
        split.turn();
    }
    assert!(split.directions[0].held() <= 64 << 10);
    // The buffers of four sockets, which the kernel doubles, and the pipe.
    assert!(client.written < 400 << 10, "{}", client.written);
    let mut server = Host::new(server);
    client.end();
    let start = Instant::now();
    while !server.seen_end && start.elapsed() < TEST_TIMEOUT {
        split.turn();
        server.read(1 << 16, 1);
    }
    assert!(server.seen_end);
    assert_eq!(server.read, client.written);
}

#[test]
fn an_end_behind_urgent_data_does_not_hide_it() {
    let ((client, accepted), (outgoing, server)) = (pair(), pair());
    let (mut client, mut server) = (Host::new(client), Host::new(server));
    let mut split = Split::new([accepted, outgoing], LEAST_PIPE);
    // The pipe is in use when the urgent byte and the end come, and only then the worker looks at events again.
    split.directions[0].bulk = true;
    client.write(100, 1);
    client.urgent(1);
    client.write(100, 1);
    client.end();
    let [from, to] = [0, 1].map(|leg| split.legs[leg].as_fd());
    split.directions[0].on_readable(true);
    split.directions[0].on_writable();
    split.directions[0].advance(from, to, NO_LIMIT, &mut split.tools).expect("nobody resets");
    while split.turn() {}
    while !server.seen_end {
        server.read(1 << 16, 1);
    }
    assert_eq!(server.read, 201);
}
