//! What a TTI costs in RLC and PDCP, both ends together. An iteration is a TTI.
//!
//! Each TTI a queue that is never empty gets a grant, the block arrives four TTIs later, and the other direction carries
//! STATUS PDUs and an acknowledgement of 40 bytes for each second SDU. The ring of blocks is part of the cost.

use aqm::{Ecn, Packet};
use channel::Direction::{self, Downlink, Uplink};
use cpu_time::ProcessTime;
use criterion::{Criterion, criterion_group, criterion_main};
use ran::pdcp::{self, Nr, PdcpSn, Times};
use ran::rlc::{Am, AmSn, Bearer, Block, Config, Mode, NrAm, NrUm, Um};
use std::time::Duration;
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

const DELAY: usize = 4;

/// TTIs after which the buffers have grown to their sizes.
const GROWN: u64 = 10_000;

fn run(mode: Mode, grant: u32, sdu: u32, loss_every: u64, ttis: u64) -> Duration {
    let pdcp = pdcp::Config::default();
    let mut bearer = Bearer::new(&Config { mode, downlink: pdcp, uplink: pdcp });
    let mut air: [[Block; DELAY]; 2] = Default::default();
    let mut drops = |_: Descriptor, _| {};
    let mut delivered = 0u64;
    let mut start = ProcessTime::now();
    for tti in 0..GROWN + ttis {
        if tti == GROWN {
            start = ProcessTime::now();
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
    start.elapsed()
}

fn ttis(c: &mut Criterion) {
    let mut bench = |name: &str, mode: Mode, grant: u32, sdu: u32, loss_every: u64| {
        c.bench_function(name, |b| b.iter_custom(|ttis| run(mode, grant, sdu, loss_every, ttis)));
    };
    let (am, um) = (Mode::Am(Am::default()), Mode::Um(Um::default()));
    let often = Mode::Am(Am {
        t_poll_retransmit: Span::from_millis(20),
        poll_pdu: Some(1),
        poll_byte: Some(50),
        t_reordering: Span::from_millis(10),
        t_status_prohibit: Span::from_millis(10),
        ..Am::default()
    });
    bench("AM, 9422 B grants, 1500 B SDUs", am, 9422, 1500, 0);
    bench("AM, each PDU polls", often, 9422, 1500, 0);
    bench("AM, each 100th block lost", am, 9422, 1500, 100);
    bench("AM, each PDU polls, 100th lost", often, 9422, 1500, 100);
    bench("AM, 300 B grants", am, 300, 1500, 0);
    bench("AM, 40 B SDUs", am, 9422, 40, 0);
    bench("UM, 9422 B grants, 1500 B SDUs", um, 9422, 1500, 0);
    bench("UM, each 100th block lost", um, 9422, 1500, 100);
    // 850 Mbit/s in slots of 125 us, and the widest carrier. Time runs eight times too fast for the timers here.
    let nr = Nr {
        sn: PdcpSn::Eighteen,
        t_reordering: Some(Span::from_millis(200)),
        sdap: true,
        limit: [Some(20_000_000); 2],
    };
    let am = |sn| Mode::NrAm(NrAm { sn, pdcp: nr, ..NrAm::default() });
    let um = Mode::NrUm(NrUm { pdcp: nr, ..NrUm::default() });
    bench("NR AM, 13321 B grants, 1500 B SDUs", am(AmSn::Eighteen), 13321, 1500, 0);
    bench("NR AM, each 100th block lost", am(AmSn::Eighteen), 13321, 1500, 100);
    bench("NR AM, each 10th block lost", am(AmSn::Eighteen), 13321, 1500, 10);
    bench("NR AM, 120 kB grants", am(AmSn::Eighteen), 120_000, 1500, 0);
    bench("NR AM, 300 B grants", am(AmSn::Twelve), 300, 1500, 0);
    bench("NR AM, 40 B SDUs", am(AmSn::Twelve), 13321, 40, 0);
    bench("NR UM, 13321 B grants, 1500 B SDUs", um, 13321, 1500, 0);
    bench("NR UM, each 100th block lost", um, 13321, 1500, 100);
}

criterion_group!(benches, ttis);
criterion_main!(benches);
