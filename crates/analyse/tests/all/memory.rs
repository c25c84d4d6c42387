//! Memory does not grow with the length of a capture.

use std::io::{self, Read};

use crate::common::{Script, pcap};
use analyse::{Rules, Single};
use import::packets::{Reader, ip_packet};
use units::Time;
use wire::Headers;

/// The largest resident size of this process so far, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
}

/// A capture of `left` segments in four connections, which never exists as a whole: each segment is acknowledged, one in a
/// hundred is sent again.
struct Endless {
    left: u32,
    number: u32,
    ready: Vec<u8>,
    at: usize,
}

impl Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at == self.ready.len() {
            if self.left == 0 {
                return Ok(0);
            }
            let mut script = Script::new(99, 10_000, true);
            script.packets.clear();
            for n in self.number..self.number + self.left.min(500) {
                let at_us = u64::from(n) * 40_000;
                script.data(at_us, n);
                if n % 100 == 0 {
                    script.data(at_us + 200, n);
                }
                script.ack(at_us + 500, n + 1, &[(n + 2, n + 3)]);
            }
            let done = self.left.min(500);
            (self.number, self.left, self.at) = (self.number + done, self.left - done, 0);
            let packets = script.packets.iter().enumerate().map(|(place, packet)| {
                let mut bytes = packet.bytes();
                // Headers alone, and four clients.
                bytes.truncate(76);
                let port = if packet.back { 22 } else { 20 };
                bytes[port] = 0x90 | (place % 4) as u8;
                (packet.at_us * 1_000, bytes)
            });
            let file = pcap(101, packets);
            self.ready = if self.number == done { file } else { file[24..].to_vec() };
        }
        let len = into.len().min(self.ready.len() - self.at);
        into[..len].copy_from_slice(&self.ready[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

fn analyse(segments: u32, rules: Rules) -> u64 {
    let mut reader = Reader::new(Endless { left: segments, number: 0, ready: Vec::new(), at: 0 }).unwrap();
    let (mut single, mut first) = (Single::new(rules, true), None);
    let mut packets = 0;
    while let Some(packet) = reader.next_packet().unwrap() {
        let at = Time::from_nanos(packet.at - *first.get_or_insert(packet.at));
        let ip = ip_packet(packet.link, packet.data).unwrap();
        single.packet(&Headers::parse_captured(ip, ip.len()).unwrap(), at);
        packets += 1;
    }
    let (flows, _) = single.finish();
    assert!(!flows.is_empty());
    let rows: usize = flows.iter().filter_map(|flow| flow.tcp.as_ref()).map(|tcp| tcp.rows.len()).sum();
    assert!((1_000..=400_000).contains(&rows), "{rows}");
    packets
}

#[test]
fn a_capture_ten_times_as_long_takes_less_than_twice_the_memory() {
    for rules in [Rules::Ranway, Rules::Wireshark] {
        // Beyond the bounds of samples and of rows of plots.
        assert!(analyse(400_000, rules) >= 800_000);
        let before = peak();
        assert!(analyse(4_000_000, rules) >= 8_000_000);
        // Lists that grow and shrink leave holes in the heap.
        assert!(peak() < 2 * before, "{} MiB, then {} MiB", before >> 20, peak() >> 20);
    }
}
