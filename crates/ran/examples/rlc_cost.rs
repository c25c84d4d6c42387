//! What a PDU and an SDU cost in RLC and PDCP, both ends together: `cargo run --release -p ran --example rlc_cost [TTIS]`.
//!
//! Each TTI a queue that is never empty gets a grant, the block arrives four TTIs later, and the other direction carries
//! STATUS PDUs and an acknowledgement of 40 bytes for each second SDU. The ring of blocks is part of the cost.
#![allow(clippy::disallowed_methods, reason = "it measures the processor's time")]

use aqm::{Ecn, Packet};
use channel::Direction::{self, Downlink, Uplink};
use ran::pdcp::{self, Nr, PdcpSn, Times};
use ran::rlc::{Am, AmSn, Bearer, Block, Config, Mode, NrAm, NrUm, Um};
use units::{Span, Time};

/// As large as the simulator's descriptor.
#[derive(Clone, Copy)]
struct Descriptor {
    enqueued: Time,
    flow: u64,
    len: u32,
    _rest: [u64; 4],
}

impl Descriptor {
    fn new(len: u32) -> Self {
        Descriptor { enqueued: Time::ZERO, flow: 1, len, _rest: [0; 4] }
    }
}

impl Packet for Descriptor {
    #[inline]
    fn len(&self) -> u32 {
        self.len
    }
    #[inline]
    fn flow(&self) -> u64 {
        self.flow
    }
    fn priority(&self) -> u8 {
        0
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn mark_ce(&mut self) {}
    #[inline]
    fn enqueued(&self) -> Time {
        self.enqueued
    }
    #[inline]
    fn set_enqueued(&mut self, now: Time) {
        self.enqueued = now;
    }
}

/// Nanoseconds that this process has run, whatever else the machine does (Linux).
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("a Linux machine");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds first")
}

const DELAY: usize = 4;

fn run(name: &str, mode: Mode, grant: u32, sdu: u32, loss_every: u64, ttis: u64) {
    let pdcp = pdcp::Config::default();
    let mut bearer = Bearer::new(&Config { mode, downlink: pdcp, uplink: pdcp });
    let mut air: [[Block; DELAY]; 2] = Default::default();
    let mut drops = |_: Descriptor, _| {};
    let mut delivered = 0u64;
    let (mut start, mut counted) = (cpu(), (0, 0));
    for tti in 0..2 * ttis {
        if tti == ttis {
            // The buffers have grown to their sizes.
            start = cpu();
            let stats = bearer.stats(Downlink);
            counted = (delivered, stats.pdus + stats.retx_pdus);
        }
        let now = Time::from_nanos(tti * 1_000_000);
        let mut acks = 0;
        let mut deliver = |way: Direction, _: Descriptor, _: Times| {
            if way == Downlink {
                delivered += 1;
                acks += delivered % 2;
            }
        };
        if bearer.poll_timeout().is_some_and(|due| due <= now) {
            bearer.handle_timeout(now, &mut deliver, &mut drops);
        }
        let slot = tti as usize % DELAY;
        for way in [Downlink, Uplink] {
            let block = &air[way as usize][slot];
            if !block.is_empty() {
                bearer.receive(way, block, now, &mut deliver, &mut drops);
            }
        }
        for _ in 0..acks {
            bearer.enqueue(Uplink, Descriptor::new(40), now, &mut drops);
        }
        while bearer.queue(Downlink).bytes < u64::from(2 * grant) {
            bearer.enqueue(Downlink, Descriptor::new(sdu), now, &mut drops);
        }
        for (way, grant) in [(Downlink, grant), (Uplink, 1000)] {
            let block = &mut air[way as usize][slot];
            bearer.build(way, grant, now, block, &mut drops);
            if way == Downlink && loss_every > 0 && tti % loss_every == 0 {
                *block = Block::default();
            }
        }
    }
    let ns = (cpu() - start) as f64;
    let stats = bearer.stats(Downlink);
    let (sdus, pdus) = (delivered - counted.0, stats.pdus + stats.retx_pdus - counted.1);
    println!(
        "{name:<36} {:>6.0} ns/TTI {:>6.0} ns/PDU {:>6.1} ns/SDU {:>6.2} SDU/TTI",
        ns / ttis as f64,
        ns / pdus as f64,
        ns / sdus as f64,
        sdus as f64 / ttis as f64
    );
}

fn main() {
    let ttis = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(500_000);
    let (am, um) = (Mode::Am(Am::default()), Mode::Um(Um::default()));
    let often = Mode::Am(Am {
        t_poll_retransmit: Span::from_millis(20),
        poll_pdu: Some(1),
        poll_byte: Some(50),
        t_reordering: Span::from_millis(10),
        t_status_prohibit: Span::from_millis(10),
        ..Am::default()
    });
    println!("block of {} bytes", size_of::<Block>());
    run("AM, 9422 B grants, 1500 B SDUs", am, 9422, 1500, 0, ttis);
    run("AM, each PDU polls", often, 9422, 1500, 0, ttis);
    run("AM, each 100th block lost", am, 9422, 1500, 100, ttis);
    run("AM, each PDU polls, 100th lost", often, 9422, 1500, 100, ttis);
    run("AM, 300 B grants", am, 300, 1500, 0, ttis);
    run("AM, 40 B SDUs", am, 9422, 40, 0, ttis / 10);
    run("UM, 9422 B grants, 1500 B SDUs", um, 9422, 1500, 0, ttis);
    run("UM, each 100th block lost", um, 9422, 1500, 100, ttis);
    // 850 Mbit/s in slots of 125 us, and the widest carrier. Time runs eight times too fast for the timers here.
    let nr = Nr {
        sn: PdcpSn::Eighteen,
        t_reordering: Some(Span::from_millis(200)),
        sdap: true,
        limit: [Some(20_000_000); 2],
    };
    let am = |sn| Mode::NrAm(NrAm { sn, pdcp: nr, ..NrAm::default() });
    let um = Mode::NrUm(NrUm { pdcp: nr, ..NrUm::default() });
    run("NR AM, 13321 B grants, 1500 B SDUs", am(AmSn::Eighteen), 13321, 1500, 0, ttis);
    run("NR AM, each 100th block lost", am(AmSn::Eighteen), 13321, 1500, 100, ttis);
    run("NR AM, each 10th block lost", am(AmSn::Eighteen), 13321, 1500, 10, ttis);
    run("NR AM, 120 kB grants", am(AmSn::Eighteen), 120_000, 1500, 0, ttis / 10);
    run("NR AM, 300 B grants", am(AmSn::Twelve), 300, 1500, 0, ttis);
    run("NR AM, 40 B SDUs", am(AmSn::Twelve), 13321, 40, 0, ttis / 10);
    run("NR UM, 13321 B grants, 1500 B SDUs", um, 13321, 1500, 0, ttis);
    run("NR UM, each 100th block lost", um, 13321, 1500, 100, ttis);
}
