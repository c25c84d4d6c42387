//! Transcripts of the specification, the quirks of implementations in use, and our two sides against each other.

use observe::progress::Samples;
use speedtest::rate::Throughput;
use speedtest::rmbt::chunks::{End, Incoming, Outgoing, RANDOM};
use speedtest::rmbt::client::{Event, Need as ClientNeed};
use speedtest::rmbt::server::{Direction, Framing, Limits, Need, Server, Transfer};
use speedtest::rmbt::{CHUNK, Client};
use speedtest::websocket::{Decoder, Opcode, Sender};
use std::io::IoSlice;
use units::{Span, Time};

const ACCEPT: &str = "ACCEPT GETCHUNKS GETTIME PUT PUTNORESULT PING QUIT\n";

fn ms(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn random() -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(RANDOM).collect()
}

/// The first `most` bytes of a burst.
fn first(burst: &[IoSlice], most: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in burst {
        bytes.extend_from_slice(&part[..part.len().min(most - bytes.len())]);
    }
    bytes
}

/// A server and what a client says to it.
struct Talk {
    server: Server,
    random: Vec<u8>,
}

impl Talk {
    /// After the token.
    fn ready(limits: Limits) -> Talk {
        let mut talk = Talk { server: Server::new(limits, Framing::Plain), random: random() };
        assert_eq!(talk.heard(), "RMBTv1.3.5\nACCEPT TOKEN QUIT\n");
        talk.say("TOKEN a\n", 0);
        assert_eq!((talk.server.need(), talk.server.token()), (Need::Decision, Some("a")));
        talk.server.admit();
        assert_eq!(talk.heard(), format!("OK\nCHUNKSIZE 4096 4096 4194304\n{ACCEPT}"));
        talk
    }

    fn say(&mut self, text: &str, at: u64) -> usize {
        self.bytes(text.as_bytes(), at)
    }

    fn bytes(&mut self, bytes: &[u8], at: u64) -> usize {
        self.server.handle_input(bytes, ms(at))
    }

    fn heard(&mut self) -> String {
        let text = String::from_utf8(self.server.output().to_vec()).expect("lines are text");
        self.server.consume_output(text.len());
        text
    }

    /// The bytes of a download, taken in steps of at most `step` bytes, each a millisecond after the other.
    fn download(&mut self, step: usize, mut at: u64) -> (Vec<u8>, u64) {
        let mut all = Vec::new();
        while self.server.need() == Need::Send {
            let part = first(&self.server.burst(&self.random, ms(at)), step);
            all.extend_from_slice(&part);
            at += 1;
            self.server.sent(part.len(), ms(at));
        }
        (all, at)
    }
}

fn chunk(size: usize, last: u8) -> Vec<u8> {
    let mut chunk = vec![7; size];
    chunk[size - 1] = last;
    chunk
}

#[test]
fn a_download_of_chunks_follows_the_specification() {
    let mut talk = Talk::ready(Limits::default());
    talk.say("GETCHUNKS 3 4096\n", 10);
    let (bytes, end) = talk.download(5_000, 10);
    assert_eq!(bytes.len(), 3 * CHUNK);
    let ends: Vec<u8> = bytes.chunks(CHUNK).map(|chunk| chunk[CHUNK - 1]).collect();
    assert_eq!(ends, [0, 0, 0xff]);
    assert_ne!(bytes[..CHUNK - 1], bytes[CHUNK..2 * CHUNK - 1], "neighbouring chunks differ");
    assert_eq!(talk.heard(), "");
    talk.say("OK\n", end + 5);
    assert_eq!(talk.heard(), format!("TIME {}\n{ACCEPT}", (end + 5 - 10) * 1_000_000));
    let transfer = talk.server.poll_transfer().expect("it has ended");
    assert_eq!((transfer.direction, transfer.bytes, transfer.complete), (Direction::Download, 3 * 4096, true));
}

#[test]
fn a_download_of_seconds_ends_with_the_chunk_that_is_being_sent() {
    for (size, step) in [(4_096, 100_000), (4_194_304, 10_000), (16_384, 16_384), (4_099, 1_000)] {
        let mut talk = Talk::ready(Limits::default());
        talk.say(&format!("GETTIME 1 {size}\n"), 0);
        let (bytes, end) = talk.download(step, 0);
        assert_eq!(bytes.len() % size, 0);
        let (last, others) = bytes
            .chunks(size)
            .map(|chunk| chunk[size - 1])
            .collect::<Vec<_>>()
            .split_last()
            .map(|(last, others)| (*last, others.to_vec()))
            .expect("chunks");
        assert_eq!((last, others.iter().all(|&byte| byte == 0)), (0xff, true));
        let rest = (size / step) as u64 + 1;
        assert!((1_000..=1_001 + rest).contains(&end), "{size}: {end} ms");
    }
}

#[test]
fn an_upload_is_reported_after_chunks_and_at_most_once_a_millisecond() {
    let mut talk = Talk::ready(Limits::default());
    talk.say("PUT 4096\n", 0);
    assert_eq!(talk.heard(), "OK\n");
    let more = chunk(4096, 0);
    talk.bytes(&more[..4000], 5);
    assert_eq!(talk.heard(), "");
    talk.bytes(&more[4000..], 6);
    assert_eq!(talk.heard(), "TIME 6000000 BYTES 4096\n");
    talk.bytes(&more, 6);
    assert_eq!(talk.heard(), "");
    talk.bytes(&[more.clone(), more.clone()].concat(), 7);
    assert_eq!(talk.heard(), "TIME 7000000 BYTES 16384\n");
    // A client that does not read gets no further report, and the server keeps none.
    talk.bytes(&more, 8);
    talk.bytes(&more, 9);
    assert_eq!(talk.heard(), "TIME 8000000 BYTES 20480\n");
    talk.bytes(&chunk(4096, 0xff), 20);
    assert_eq!(talk.heard(), format!("TIME 20000000 BYTES 28672\nTIME 20000000\n{ACCEPT}"));
    let transfer = talk.server.poll_transfer().expect("it has ended");
    assert_eq!((transfer.direction, transfer.bytes), (Direction::Upload, 28_672));
    assert_eq!(transfer.samples.last(), Some((Span::from_millis(20), 28_672)));
}

#[test]
fn an_upload_without_reports_has_its_last_line_only() {
    let mut talk = Talk::ready(Limits::default());
    // The client does not wait for OK (phase 5 of the specification).
    let bytes = [b"PUTNORESULT 8192\n".to_vec(), chunk(8192, 0), chunk(8192, 0xff), b"PING\n".to_vec()].concat();
    assert_eq!(talk.bytes(&bytes, 3), bytes.len());
    assert_eq!(talk.heard(), format!("OK\nTIME 0\n{ACCEPT}PONG\n"));
    talk.say("OK\n", 4);
    assert_eq!(talk.heard(), format!("TIME 1000000\n{ACCEPT}"));
}

#[test]
fn the_last_chunk_size_stays() {
    let mut talk = Talk::ready(Limits::default());
    talk.say("PUTNORESULT 8192\n", 0);
    talk.bytes(&chunk(8192, 0xff), 0);
    talk.heard();
    talk.say("GETCHUNKS 1\n", 0);
    assert_eq!(talk.download(usize::MAX, 0).0.len(), 8192);
}

#[test]
fn an_invalid_command_is_an_error_and_the_connection_goes_on() {
    let mut talk = Talk::ready(Limits::default());
    for line in [
        "GETTIME 0",
        "GETTIME 61",
        "GETCHUNKS 0",
        "GETCHUNKS 300001",
        "PUT 4095",
        "PUT 4194305",
        "hello",
        "TOKEN a",
        "OK",
    ] {
        talk.say(&format!("{line}\n"), 0);
        assert_eq!(talk.heard(), format!("ERR\n{ACCEPT}"), "{line}");
    }
    talk.say("PING\n", 0);
    assert_eq!(talk.heard(), "PONG\n");
    talk.say("NO\n", 0);
    assert_eq!(talk.heard(), format!("ERR\n{ACCEPT}"));
    talk.say("QUIT\n", 0);
    assert_eq!((talk.heard().as_str(), talk.server.need()), ("BYE\n", Need::Close));
}

#[test]
fn garbage_ends_the_connection_and_output_has_a_bound() {
    let mut talk = Talk::ready(Limits::default());
    let garbage = "x\n".repeat(100_000);
    let used = talk.say(&garbage, 0);
    assert_eq!((talk.server.need(), used), (Need::Close, garbage.len()));
    assert!(talk.server.output().len() < 5_000);
    // Pings without their confirmation are no commands either; confirmed ones fill the output up to its bound.
    let mut talk = Talk::ready(Limits::default());
    let pings = "PING\nOK\n".repeat(10_000);
    assert!(talk.say(&pings, 0) < pings.len());
    assert!((4_096..5_000).contains(&talk.server.output().len()));
    let mut talk = Talk::ready(Limits::default());
    talk.bytes(&[b'x'; 1_024], 0);
    assert_eq!((talk.heard().as_str(), talk.server.need()), ("ERR a line is longer than 1024 bytes\n", Need::Close));
}

#[test]
fn before_the_token_there_is_nothing_but_quit() {
    for (line, reply) in [("PING\n", "ERR expected TOKEN\n"), ("TOKEN\n", "ERR expected TOKEN\n"), ("QUIT\n", "BYE\n")]
    {
        let mut server = Server::new(Limits::default(), Framing::Plain);
        server.consume_output(server.output().len());
        server.handle_input(format!("\n{line}").as_bytes(), ms(0));
        assert_eq!((server.output(), server.need()), (reply.as_bytes(), Need::Close));
    }
    let mut server = Server::new(Limits::default(), Framing::Plain);
    server.consume_output(server.output().len());
    let line = b"TOKEN a\nGETTIME 10\n";
    assert_eq!(server.handle_input(line, ms(0)), 8, "nothing is read before the decision");
    server.refuse("busy, retry after 5 s");
    assert_eq!((server.output(), server.need()), (&b"ERR busy, retry after 5 s\n"[..], Need::Close));
}

#[test]
fn an_upload_above_the_limits_ends_and_is_not_complete() {
    let limits = Limits { seconds: 2, bytes: 10_000, ..Limits::default() };
    for (times, bytes) in [(&[1, 2, 3][..], 12_288), (&[1, 2_001], 8_192)] {
        let mut talk = Talk::ready(limits);
        talk.say("PUTNORESULT\n", 0);
        talk.heard();
        for &at in times {
            talk.bytes(&chunk(4096, 0), at);
        }
        assert_eq!(talk.heard(), "ERR the transfer exceeds the limits of this server\n");
        let transfer = talk.server.poll_transfer().expect("it has ended");
        assert_eq!((talk.server.need(), transfer.bytes, transfer.complete), (Need::Close, bytes, false));
    }
}

#[test]
fn a_download_above_the_limits_is_refused_or_ends() {
    let limits = Limits { bytes: 1 << 20, ..Limits::default() };
    let mut talk = Talk::ready(limits);
    talk.say("GETCHUNKS 257 4096\n", 0);
    assert_eq!(talk.heard(), format!("ERR\n{ACCEPT}"));
    talk.say("GETTIME 30\n", 0);
    let (bytes, _) = talk.download(usize::MAX, 0);
    assert!(bytes.len() > 1 << 20 && bytes.len() < 2 << 20);
    assert_eq!(talk.server.need(), Need::Close);
    assert!(talk.server.poll_transfer().is_some_and(|transfer| !transfer.complete));
}

#[test]
fn a_broken_transfer_is_kept_as_incomplete() {
    let mut talk = Talk::ready(Limits::default());
    talk.say("PUT\n", 0);
    talk.bytes(&[0; 5_000], 15);
    talk.server.abandon();
    let transfer = talk.server.poll_transfer().expect("it was broken");
    assert_eq!((transfer.bytes, transfer.duration, transfer.complete), (5_000, Span::from_millis(15), false));
}

/// Lets a client and a server talk until the client needs a command; data takes a millisecond a step.
fn converse(client: &mut Client, server: &mut Server, framing: Framing, now: &mut u64) -> Vec<Event> {
    let (random, mut events) = (random(), Vec::new());
    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    let (mut from_client, mut from_server) = (Decoder::new(Sender::Client), Decoder::new(Sender::Server));
    let decode = |decoder: &mut Decoder, bytes: &mut Vec<u8>| match framing {
        Framing::Plain => std::mem::take(bytes),
        Framing::WebSocket => {
            let (mut rest, mut payload) = (&mut bytes[..], Vec::new());
            while let Some(piece) = decoder.decode(&mut rest).expect("frames are valid") {
                assert!(matches!(piece.opcode, Opcode::Text | Opcode::Binary));
                payload.extend_from_slice(piece.payload);
            }
            bytes.clear();
            payload
        }
    };
    for _ in 0..100_000 {
        *now += 1;
        to_client.extend_from_slice(server.output());
        server.consume_output(server.output().len());
        if server.need() == Need::Send && to_client.is_empty() {
            let bytes = first(&server.burst(&random, ms(*now)), 40_000);
            server.sent(bytes.len(), ms(*now));
            to_client.extend(bytes);
        }
        let payload = decode(&mut from_server, &mut to_client);
        client.handle_input(&payload, ms(*now)).expect("the server follows the protocol");
        to_server.extend_from_slice(client.output());
        client.consume_output(client.output().len());
        if client.need() == ClientNeed::Send && to_server.is_empty() {
            let bytes = first(&client.burst(&random, ms(*now)), 40_000);
            client.sent(bytes.len());
            to_server.extend(bytes);
        }
        let payload = decode(&mut from_client, &mut to_server);
        assert_eq!(server.handle_input(&payload, ms(*now)), payload.len());
        if server.need() == Need::Decision {
            server.admit();
        }
        events.extend(std::iter::from_fn(|| client.poll_event()));
        if matches!(client.need(), ClientNeed::Command | ClientNeed::Close) {
            return events;
        }
    }
    panic!("the client waits for ever: {client:?}");
}

fn transferred(events: &[Event]) -> &Transfer {
    match events {
        [Event::Transferred(transfer)] => transfer,
        _ => panic!("no transfer: {events:?}"),
    }
}

#[test]
fn our_client_and_server_agree_in_both_framings() {
    for framing in [Framing::Plain, Framing::WebSocket] {
        let mut server = Server::new(Limits::default(), framing);
        let (mut client, mut now) = (Client::new("a", framing), 0);
        let events = converse(&mut client, &mut server, framing, &mut now);
        assert!(matches!(events[..], [Event::Greeted(_), Event::Admitted]), "{events:?}");
        assert_eq!(client.chunk_range(), (4_096, 4_194_304));
        client.ping(ms(now));
        let events = converse(&mut client, &mut server, framing, &mut now);
        assert!(
            matches!(events[..], [Event::Pinged { client, server }] if client.as_millis() > 0 && server.as_millis() <= 1),
            "{events:?}"
        );
        client.get_chunks(5, Some(10_000), ms(now));
        assert_eq!(transferred(&converse(&mut client, &mut server, framing, &mut now)).bytes, 50_000);
        client.get_time(2, Some(32_768), ms(now));
        let events = converse(&mut client, &mut server, framing, &mut now);
        let download = transferred(&events);
        let theirs = server.poll_transfer().expect("it has ended");
        assert_eq!((download.bytes, download.duration), (theirs.bytes, theirs.duration));
        assert!((2_000..2_010).contains(&download.duration.as_millis()), "{:?}", download.duration);
        client.put(End::After(Span::from_secs(2)), Some(32_768), true, ms(now));
        let events = converse(&mut client, &mut server, framing, &mut now);
        let upload = transferred(&events);
        let theirs = server.poll_transfer().expect("it has ended");
        assert_eq!((upload.bytes, upload.duration), (theirs.bytes, theirs.duration));
        let rate = |samples: &Samples| Throughput::of([samples]).expect("samples").total.as_mbps();
        let (ours, truth) = (rate(&upload.samples), rate(&theirs.samples));
        assert!((ours / truth - 1.0).abs() < 0.001, "{ours} {truth}");
        client.quit();
        let events = converse(&mut client, &mut server, framing, &mut now);
        assert!(matches!(events[..], [Event::Ended]), "{events:?}");
        assert_eq!(server.need(), Need::Close);
    }
}

/// Feeds a client with what a server says, and returns the events.
fn hear(client: &mut Client, text: &str) -> Vec<Event> {
    client.handle_input(text.as_bytes(), ms(1)).expect("the client bears with it");
    std::iter::from_fn(|| client.poll_event()).collect()
}

#[test]
fn the_client_bears_with_the_quirks_of_servers() {
    let mut client = Client::new("a", Framing::Plain);
    // The C server sends a zero byte after the upgrade, and old ones name one chunk size.
    hear(&mut client, "\0RMBTv1.2.1\nACCEPT TOKEN QUIT\n");
    let events = hear(&mut client, "OK\nCHUNKSIZE 8192\nACCEPT QUIT PING PUT GETTIME\n");
    assert!(matches!(events[..], [Event::Admitted]) && client.need() == ClientNeed::Command);
    // The C server reports after each read, even within a chunk.
    client.consume_output(client.output().len());
    client.put(End::Chunks(2), None, true, ms(0));
    hear(&mut client, "OK\n");
    assert_eq!(client.need(), ClientNeed::Send);
    hear(&mut client, "TIME 500 BYTES 1448\n");
    let random = random();
    let total = client.burst(&random, ms(1)).iter().map(|part| part.len()).sum();
    assert_eq!(total, 16_384);
    client.sent(total);
    let events = hear(&mut client, "TIME 20000000 BYTES 9000\nTIME 30000000 BYTES 16384\nTIME 30500000\n");
    let samples = transferred(&events).samples.as_slice();
    assert_eq!(samples[1], (Span::from_millis(20), 9_000));
    assert_eq!(samples.last(), Some(&(Span::from_micros(30_500), 16_384)));
}

#[test]
fn the_client_hears_refusals() {
    let mut client = Client::new("a", Framing::Plain);
    hear(&mut client, "RMBTv1.3.5\nACCEPT TOKEN QUIT\n");
    let events = hear(&mut client, "ERR busy, retry after 5 s\n");
    assert!(matches!(&events[..], [Event::Refused(why)] if why == "busy, retry after 5 s"), "{events:?}");
    assert_eq!(client.need(), ClientNeed::Close);
    let mut client = Client::new("a", Framing::Plain);
    hear(&mut client, &format!("RMBTv1.3.5\nACCEPT TOKEN QUIT\nOK\nCHUNKSIZE 4096 4096 4194304\n{ACCEPT}"));
    client.get_time(99, None, ms(0));
    let events = hear(&mut client, &format!("ERR\n{ACCEPT}"));
    assert!(matches!(&events[..], [_, _, Event::Refused(_)] | [Event::Refused(_)]), "{events:?}");
    assert_eq!(client.need(), ClientNeed::Command);
    let unexpected = Client::new("a", Framing::Plain).handle_input(b"SSH-2.0-x\n", ms(0));
    assert_eq!(unexpected.map_err(|line| line.0), Err("SSH-2.0-x".into()));
}

#[test]
fn chunks_of_any_division_are_counted_alike() {
    let random = random();
    for (size, count) in [(4_096, 40), (5_003, 33), (100_000, 3)] {
        let mut out = Outgoing::new(size, End::Chunks(count), ms(0), &[1, 2, 3]);
        let (mut all, mut step) = (Vec::new(), 1);
        while !out.is_finished() {
            step = step * 3 % 70_001 + 1;
            let part = first(&out.burst(&random, ms(0)), step);
            out.sent(part.len());
            all.extend(part);
        }
        assert_eq!(all.len() as u64, count * (size as u64 + 3));
        let payload: Vec<u8> = all
            .chunks(size + 3)
            .flat_map(|frame| {
                assert_eq!(frame[..3], [1, 2, 3]);
                frame[3..].to_vec()
            })
            .collect();
        let (mut incoming, mut rest) = (Incoming::new(size), &payload[..]);
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(rest.len().min(1_777));
            let taken = incoming.take(part);
            assert_eq!((taken.used, taken.last), (part.len(), behind.is_empty()));
            rest = behind;
        }
        assert_eq!((incoming.bytes(), incoming.complete()), (out.bytes(), count * size as u64));
    }
}

#[test]
fn bytes_of_large_chunks_may_be_dropped_unread_up_to_the_last_one() {
    const SIZE: usize = 64 << 10;
    let mut talk = Talk::ready(Limits::default());
    talk.say(&format!("PUT {SIZE}\n"), 0);
    assert_eq!(talk.heard(), "OK\n");
    for (number, last) in [(1, 0x00), (2, 0xFF)] {
        assert_eq!(talk.server.skippable(), Some(SIZE - 1));
        talk.server.skipped(SIZE - 10, ms(number * 10));
        assert_eq!(talk.server.skippable(), Some(9));
        assert_eq!(talk.bytes(&[0; 4], number * 10), 4);
        talk.server.skipped(5, ms(number * 10));
        assert_eq!(talk.server.skippable(), Some(0));
        assert_eq!(talk.bytes(&[last], number * 10 + 5), 1);
    }
    assert_eq!(talk.heard(), format!("TIME 15000000 BYTES {SIZE}\nTIME 25000000\n{ACCEPT}"));
    let transfer = talk.server.poll_transfer().expect("it has ended");
    assert_eq!((transfer.bytes, transfer.complete), (2 * SIZE as u64, true));
    // Small chunks are read, and so is everything of other commands.
    assert_eq!(talk.server.skippable(), None);
    talk.say("PUT 4096\n", 30);
    assert_eq!(talk.server.skippable(), None);
}
