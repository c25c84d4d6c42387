//! Whole connections, packet by packet, as tables: what the stories of the other files leave out. A change that is meant to
//! change a table shows there which packets change.

use crate::pipe::*;
use cc::{AnyController, Controller};
use std::fmt::Write;
use tcp::{Config, Event, Pacing, SendBuffer, State};
use units::{Rate, Span};
use wire::report::Report;
use wire::{Block, Flags, Options, Segment, Timestamps};

/// Knuth's MMIX generator: a byte for each segment.
fn bytes(mut state: u64) -> impl FnMut() -> u8 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    }
}

/// Drops about one segment in 20 after the first four, and delays, duplicates and marks as many.
fn noisy(seed: u64) -> impl FnMut(&Entry) -> Fate {
    let (mut next, mut count) = (bytes(seed), 0);
    move |_| {
        count += 1;
        match next() {
            _ if count <= 4 => Fate::Pass,
            byte @ 0..=12 => Fate::Delay(Span::from_millis(u64::from(byte) * 2)),
            13..=25 => Fate::Drop,
            byte @ 26..=38 => Fate::Duplicate(Span::from_millis(u64::from(byte))),
            39..=51 => Fate::Mark,
            _ => Fate::Pass,
        }
    }
}

fn pipe(config: &Config, controller: &str) -> Pipe<AnyController> {
    let new = || AnyController::by_name(controller, 10).expect("a known controller");
    let mut p = Pipe::new(config, new(), new());
    (p.delay, p.rate) = (ms(10), Some(Rate::from_mbps(10)));
    p
}

/// A segment of the log: when and from where; its flags, its offset and length; what it acknowledges, its window and blocks.
fn packet(e: &Entry) -> String {
    let (own, other) = if e.from == Client { (CLIENT_ISN, SERVER_ISN) } else { (SERVER_ISN, CLIENT_ISN) };
    let named = [(Flags::SYN, 'S'), (Flags::FIN, 'F'), (Flags::RST, 'R'), (Flags::PSH, 'P'), (Flags::ECE, 'E')];
    let mut text = format!("{:>9} ", e.time.as_nanos() / 1000);
    text.push(if e.from == Client { '>' } else { '<' });
    text.extend(named.iter().filter(|(flag, _)| e.has(*flag)).map(|(_, name)| *name));
    text.push_str(if e.has(Flags::CWR) { "C" } else { "" });
    text.push_str(if e.ect { "t" } else { "" });
    write!(text, " {}+{}", e.segment.seq.wrapping_sub(own), e.segment.len).expect("a text takes it");
    let ack = if e.has(Flags::ACK) { e.segment.ack.wrapping_sub(other) } else { 0 };
    write!(text, " ack {ack} win {}", e.segment.window).expect("a text takes it");
    for (start, end) in e.blocks() {
        write!(text, " {}-{}", start.wrapping_sub(other), end.wrapping_sub(other)).expect("a text takes it");
    }
    if let Some(stamps) = e.segment.timestamps {
        write!(text, " ts {} {}", stamps.value, stamps.echo).expect("a text takes it");
    }
    if matches!(e.segment.options, Options::Announcement) {
        text.push_str(" announcement");
    }
    text
}

/// The counts of both sides, and where the time went.
fn totals<C: Controller>(p: &Pipe<C>) -> String {
    let mut text = format!("{}\n", p.now);
    for end in [&p.client, &p.server] {
        let s = end.snapshot();
        let limited = end.limited(p.now).map(Span::as_millis);
        let rtts = [s.srtt, s.rtt, s.min_rtt, Some(s.rto), end.receive_rtt()].map(|rtt| rtt.map_or(0, Span::as_micros));
        writeln!(text, "{:?} {:?} cwnd {} ssthresh {}", s.state, s.phase, s.cwnd, s.ssthresh).expect("a text takes it");
        writeln!(text, "  limited, ms {limited:?}; srtt, rtt, min, rto, received, us {rtts:?}")
            .expect("a text takes it");
        let stats = format!("{:?}", end.stats());
        let fields = stats.trim_start_matches("Stats { ").trim_end_matches(" }").split(", ");
        let told: Vec<&str> = fields.filter(|field| !field.ends_with(": 0")).collect();
        writeln!(text, "  {}", told.join(", ")).expect("a text takes it");
    }
    text
}

fn trace<C: Controller>(p: &Pipe<C>) -> String {
    let packets: Vec<String> = p.log.iter().map(packet).collect();
    format!("{}\n{}", packets.join("\n"), totals(p))
}

/// 100 kB one way and 12 kB the other, with noise.
fn transfer(config: &Config, controller: &str, seed: u64) -> Pipe<AnyController> {
    let mut p = pipe(config, controller).script(noisy(seed));
    p.client.write(100_000);
    p.run_until(at(30));
    p.write(Server, 12_000);
    p.close(Client);
    p.run_until(at(2000));
    p.close(Server);
    p.run_until(at(6000));
    assert_eq!((p.delivered(Server), p.delivered(Client)), (100_000, 12_000));
    p
}

fn short() -> Config {
    Config { time_wait: ms(500), ..plain() }
}

#[test]
fn cubic_with_everything_that_linux_offers() {
    insta::assert_snapshot!(trace(&transfer(&Config { ecn: true, ..short() }, "cubic", 3)));
}

#[test]
fn reno_without_timestamps_in_long_packets() {
    let config = Config { timestamps: false, tso: true, ..short() };
    insta::assert_snapshot!(trace(&transfer(&config, "reno", 4)));
}

#[test]
fn reno_without_selective_acknowledgements() {
    insta::assert_snapshot!(trace(&transfer(&Config { sack: false, ..short() }, "reno", 5)));
}

#[test]
fn cubic_paced_by_the_stack_without_delayed_acknowledgements() {
    let config = Config { pacing: Pacing::Always, delayed_ack: false, tso: true, ecn: true, ..short() };
    insta::assert_snapshot!(trace(&transfer(&config, "cubic", 6)));
}

#[test]
fn a_reader_that_is_slower_than_the_path() {
    let config = Config { auto_read: false, receive_buffer: 20_000, receive_buffer_max: 20_000, ..short() };
    let mut p = pipe(&config, "cubic");
    p.client.write(90_000);
    p.client.close();
    let mut next = bytes(8);
    while p.delivered(Server) < 90_000 {
        p.run_for(ms(u64::from(next())));
        let now = p.now;
        p.server.read(u64::from(next()) * 40, now);
        p.flush(Server);
    }
    let now = p.now;
    p.server.read(u64::MAX, now);
    p.flush(Server);
    p.close(Server);
    p.run_for(ms(2000));
    assert!(p.client.is_over() && p.server.is_over());
    insta::assert_snapshot!(trace(&p));
}

#[test]
fn requests_and_replies_with_pauses() {
    let mut p = pipe(&short(), "cubic");
    p.run_until(at(100));
    for (n, pause) in [20, 5, 60, 300, 41, 39, 1200, 90, 20, 20, 250, 3000, 15, 15, 15].into_iter().enumerate() {
        p.write(Client, 200 + 37 * n as u64);
        p.run_for(ms(25));
        p.write(Server, [100, 1448, 3000, 20_000][n % 4]);
        p.run_for(ms(pause));
    }
    p.close(Client);
    p.close(Server);
    p.run_for(ms(2000));
    insta::assert_snapshot!(trace(&p));
}

/// What both sides know every 20 ms.
fn samples(p: &mut Pipe<AnyController>, count: u32) -> String {
    let mut text =
        String::from("   ms  cwnd ssthresh flight unsent  send-win receive-win  buffer   srtt    min     rto limit\n");
    for _ in 0..count {
        p.run_for(ms(20));
        let (c, s) = (p.client.snapshot(), p.server.snapshot());
        let micros = |span: Option<Span>| span.map_or(0, Span::as_micros);
        let ssthresh = if c.ssthresh == cc::INFINITE_SSTHRESH { 0 } else { c.ssthresh };
        writeln!(
            text,
            "{:>5} {:>5} {ssthresh:>8} {:>6} {:>6} {:>9} {:>11} {:>7} {:>6} {:>6} {:>7} {:?}",
            p.now.as_nanos() / 1_000_000,
            c.cwnd,
            c.in_flight,
            p.client.unsent().min(9_999_999),
            c.send_window,
            s.receive_window,
            s.receive_buffer,
            micros(c.srtt),
            micros(c.min_rtt),
            c.rto.as_micros(),
            c.limit,
        )
        .expect("a text takes it");
    }
    text + &totals(p)
}

#[test]
fn buffers_and_windows_grow_with_a_long_transfer() {
    let config = Config { send_buffer: SendBuffer::Growing(4 << 20), ..Config::default() };
    let mut p = pipe(&config, "cubic");
    (p.delay, p.rate, p.keep_log) = (ms(20), Some(Rate::from_mbps(80)), false);
    // A queue of about 500 packets.
    let mut count = 0;
    p.rescript(move |e| {
        count += u64::from(e.is_data());
        if e.is_data() && [900, 901, 2_400, 2_600].contains(&count) { Fate::Drop } else { Fate::Pass }
    });
    p.client.write_unlimited();
    insta::assert_snapshot!(samples(&mut p, 60));
}

#[test]
fn bbr_paces_a_transfer_that_pauses() {
    let config = Config { send_buffer: SendBuffer::Growing(4 << 20), ..Config::default() };
    let mut p = pipe(&config, "bbr").script(noisy(9));
    p.keep_log = false;
    p.client.write(400_000);
    let mut text = samples(&mut p, 20);
    p.write(Client, 200_000);
    text += &samples(&mut p, 30);
    insta::assert_snapshot!(text);
}

/// Heavy loss, with all controllers and options: the end of each connection as a line.
#[test]
fn long_random_scripts_of_heavy_loss() {
    let mut text = String::new();
    for round in 0..48_u8 {
        let config = Config {
            timestamps: round & 1 == 0,
            sack: round % 4 != 3,
            ecn: round & 8 != 0,
            tso: round & 16 != 0,
            pacing: [Pacing::AsAsked, Pacing::Always][usize::from(round >> 2 & 1)],
            send_buffer: [SendBuffer::Fixed(60_000), SendBuffer::Growing(1 << 20)][usize::from(round >> 1 & 1)],
            ..short()
        };
        let controller = CONTROLS[usize::from(round) % CONTROLS.len()];
        let mut p = pipe(&config, controller);
        p.keep_log = false;
        let (mut next, mut count) = (bytes(u64::from(round)), 0);
        p.rescript(move |_| {
            count += 1;
            match next() {
                _ if count <= 3 || count > 1_000 => Fate::Pass,
                0..=23 => Fate::Drop,
                byte @ 24..=40 => Fate::Delay(Span::from_millis(u64::from(byte - 24) * 5)),
                41..=44 => Fate::Delay(ms(400)),
                byte @ 45..=55 => Fate::Duplicate(Span::from_millis(u64::from(byte - 45))),
                56..=66 => Fate::Mark,
                _ => Fate::Pass,
            }
        });
        p.client.write_all(300_000);
        p.run_until(at(200));
        p.server.write_all(30_000);
        p.client.close();
        p.server.close();
        for _ in 0..400 {
            p.run_for(Span::from_secs(1));
            if p.client.is_over() && p.server.is_over() {
                break;
            }
        }
        writeln!(text, "{controller} {round}: {}", totals(&p)).expect("a text takes it");
        assert!(p.has_event(Client, Event::Closed) || p.client.state() != State::Closed, "{round}");
    }
    insta::assert_snapshot!(text);
}

/// Whether the wire before the PEP loses a segment, and the radio behind it another one.
fn lost_before(e: &Entry) -> bool {
    e.is_data() && e.number % 37 == 20
}

fn lost_behind(e: &Entry) -> bool {
    e.is_data() && e.number % 53 == 30
}

/// What a PEP has seen of a client's data, as offsets.
#[derive(Default)]
struct Watcher {
    seen: std::collections::BTreeMap<u32, u32>,
    stamp: u32,
    entries: usize,
}

impl Watcher {
    /// A report on what has passed since the last one, from the acknowledged offset on.
    fn report(&mut self, p: &Pipe<AnyController>) -> Option<Segment> {
        let entries = &p.log[self.entries..];
        self.entries = p.log.len();
        for e in entries.iter().filter(|e| e.from == Client && e.is_data() && !lost_before(e)) {
            let start = e.segment.seq.wrapping_sub(CLIENT_ISN);
            self.seen.insert(start, start + u32::from(e.segment.len));
            self.stamp = self.stamp.max(e.segment.timestamps.map_or(0, |stamps| stamps.value));
        }
        let last = &p.log.iter().rev().find(|e| e.from == Server)?.segment;
        let acked = last.ack.wrapping_sub(CLIENT_ISN);
        let (mut at, mut missing) = (acked, Vec::new());
        for (&start, &end) in self.seen.range(acked..) {
            if start > at {
                missing.push((at, start));
            }
            at = end.max(at);
        }
        if at == acked || missing.len() > 2 {
            return None;
        }
        let mut report = Report::new(acked, at);
        for (start, end) in missing {
            assert!(report.push(Block { start, end }));
        }
        let timestamps = last.timestamps.map(|stamps| Timestamps { echo: self.stamp, ..stamps });
        let seq = SERVER_ISN.wrapping_add(1);
        Some(Segment {
            seq,
            ack: CLIENT_ISN,
            window: 0,
            len: 0,
            flags: Flags::ACK,
            timestamps,
            options: Options::Report(report),
        })
    }
}

#[test]
fn mdcc_with_the_reports_of_a_pep() {
    let mut p = pipe(&Config::default(), "mdcc");
    (p.delay, p.rate) = (ms(20), Some(Rate::from_mbps(20)));
    p.rescript(|e| if e.from == Client && (lost_before(e) || lost_behind(e)) { Fate::Drop } else { Fate::Pass });
    p.client.write_unlimited();
    let mut watcher = Watcher::default();
    let mut text = String::new();
    for step in 1..=600 {
        p.run_for(ms(2));
        // The PEP is silent for two fifths of the time.
        if let Some(report) = watcher.report(&p).filter(|_| step % 200 < 120) {
            p.inject(Server, report);
        }
        if step % 10 == 0 {
            let c = p.client.snapshot();
            let announcements = p.log.iter().filter(|e| matches!(e.segment.options, Options::Announcement)).count();
            let s = p.client.stats();
            writeln!(
                text,
                "{:>4} ms cwnd {} {:?} in flight {} {:?}; lost {} fast {} undone {} reports {} of {} announced {announcements}",
                p.now.as_nanos() / 1_000_000,
                c.cwnd,
                c.gauges,
                c.in_flight,
                c.phase,
                s.lost,
                s.retransmitted_fast,
                s.undone_timestamp + s.undone_dsack,
                s.reports_taken,
                s.reports_received,
            )
            .expect("a text takes it");
        }
    }
    insta::assert_snapshot!(text + &totals(&p));
}
