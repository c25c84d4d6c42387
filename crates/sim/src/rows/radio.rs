//! What is measured of the UEs of the LTE network, and their rows.

use super::RunId;
use channel::Direction;
use ran::{Delivery, DirectionStats, Event, Ran, Sink, Step, Transmission, rlc};
use record::ms;
use record::tables::{Mobility, MobilityRow, Radio, RadioRow, TransmissionRow, Transmissions, UeRow, Ues};
use rnis::RadioReport;
use rnis::feed::recording;
use units::{Bytes, Rate, Span, Time};

/// The temporary identifier of the first UE; those below are reserved for random access (36.321 table 7.1-1).
pub(crate) const FIRST_RNTI: u32 = 61;
/// The names of the directions, downlink first.
const DIRECTIONS: [(Direction, &str); 2] = [(Direction::Downlink, "downlink"), (Direction::Uplink, "uplink")];

/// What is counted of all UEs.
pub(crate) struct UeMeters {
    ues: Vec<Meter>,
    /// When the counters of `ues` began.
    since: Time,
    /// Resource blocks that each cell had had at `since`, and at the last sample, downlink first.
    blocks: [Vec<[u64; 2]>; 2],
}

/// What is counted of one UE, downlink first.
#[derive(Clone, Default)]
struct Meter {
    ways: [Way; 2],
    /// What had been counted at the end of the warm-up, and at the last sample.
    before: ran::UeStats,
    sampled: ran::UeStats,
    /// How long it had slept at the end of the warm-up.
    asleep: Span,
}

/// What is counted of one direction.
#[derive(Clone, Copy, Default)]
struct Way {
    packets: u64,
    /// The time in the core, and of how many packets: some are still there in the end.
    core: (Span, u64),
    queue: Span,
    air: Span,
    harq: Span,
    rlc_wait: Span,
    /// RLC's counts at the end of the warm-up.
    rlc: rlc::Stats,
    /// The time that reports to the proxy cover, and their bytes.
    reports: (Span, u64),
}

impl Way {
    fn add_core(&mut self, span: Span) {
        self.core.0 += span;
        self.core.1 += 1;
    }
}

/// Returns the share of first transmissions that were not decoded.
fn bler(of: &DirectionStats) -> Option<f64> {
    (of.blocks > 0).then(|| of.first_failures as f64 / of.blocks as f64)
}

/// Returns the resource blocks that each of `cells` has had by `now`.
fn blocks_of<P: aqm::Packet>(ran: &Ran<P>, cells: usize, now: Time) -> Vec<[u64; 2]> {
    let ways = DIRECTIONS.map(|(way, _)| way);
    (0..cells as u32).map(|cell| ways.map(|way| ran.resource_blocks(cell, way, now))).collect()
}

impl UeMeters {
    pub(crate) fn new(ues: usize, cells: usize) -> UeMeters {
        let blocks = [(); 2].map(|()| vec![[0; 2]; cells]);
        UeMeters { ues: vec![Meter::default(); ues], since: Time::ZERO, blocks }
    }

    /// A packet to `ue` took so long through the core.
    #[inline]
    pub(crate) fn downlink_core(&mut self, ue: u32, span: Span) {
        self.ues[ue as usize].ways[Direction::Downlink as usize].add_core(span);
    }

    /// Records the delay of a packet of `ue` from the cell to its end.
    #[inline]
    pub(crate) fn uplink_core(&mut self, ue: u32, span: Span) {
        self.ues[ue as usize].ways[Direction::Uplink as usize].add_core(span);
    }

    /// A packet that came to its radio hop at `arrived` is delivered.
    #[inline]
    pub(crate) fn deliver<P>(&mut self, delivery: &Delivery<P>, arrived: Time, now: Time) {
        let times = &delivery.times;
        let way = &mut self.ues[delivery.ue as usize].ways[delivery.direction as usize];
        way.packets += 1;
        way.queue += times.first_sent.saturating_since(arrived);
        way.air += times.last_sent.saturating_since(times.first_sent);
        let decoded = times.decoded.unwrap_or(now);
        way.harq += decoded.saturating_since(times.last_sent);
        way.rlc_wait += now.saturating_since(decoded);
    }

    /// A report on `ue` is sent to the proxy.
    pub(crate) fn report(&mut self, ue: u32, report: &RadioReport) {
        let (time, bytes) = &mut self.ues[ue as usize].ways[Direction::Downlink as usize].reports;
        *time += report.interval;
        *bytes += recording::length(report);
    }

    /// Ends the warm-up: the summary leaves out what was counted so far.
    pub(crate) fn warmed_up<P: aqm::Packet>(&mut self, ran: &mut Ran<P>, now: Time) {
        self.since = now;
        self.blocks[0] = blocks_of(ran, self.blocks[0].len(), now);
        for (ue, meter) in (0..).zip(&mut self.ues) {
            meter.before = ran.stats(ue);
            meter.asleep = ran.time_asleep(ue, now);
            for (way, (direction, _)) in meter.ways.iter_mut().zip(DIRECTIONS) {
                *way = Way { rlc: ran.rlc_stats(ue, direction), ..Way::default() };
            }
        }
    }

    /// The rows at a sampling moment.
    pub(crate) fn sample<P: aqm::Packet>(
        &mut self,
        ran: &mut Ran<P>,
        recorder: &mut Recorder,
        now: Time,
        interval: Span,
        table: &mut Radio,
    ) {
        let had = blocks_of(ran, self.blocks[1].len(), now);
        let before = std::mem::replace(&mut self.blocks[1], had);
        let since = now - interval;
        let mbps = |bits: u64| Rate::over(Bytes::new(bits / 8), interval).as_mbps();
        for (ue, meter) in (0..).zip(&mut self.ues) {
            let heard = ran.hears(ue, now);
            let all = ran.stats(ue);
            let last = std::mem::replace(&mut meter.sampled, all);
            let (dl, ul) = (all.downlink - last.downlink, all.uplink - last.uplink);
            let of = |prbs: u64, blocks: u64| if blocks > 0 { prbs as f64 / blocks as f64 } else { 0.0 };
            let served = &recorder.served[ue as usize];
            let share = |prbs: u64, way: Direction| {
                of(prbs, blocks_of_served(ran, (ue, served), way, (since, &before), &self.blocks[1]))
            };
            let cell = ran.last_serving(ue);
            let whole_cell = [Some(cell), ran.secondary_of(cell)].into_iter().flatten();
            let down = |of: &[[u64; 2]], carrier: u32| of[carrier as usize][Direction::Downlink as usize];
            let whole_cell = whole_cell.map(|c| down(&self.blocks[1], c) - down(&before, c)).sum();
            let here = ran.downlink_of_cell(ue, since, last.downlink);
            let mcs = std::mem::take(&mut recorder.mcs[ue as usize]);
            let mean = |(sum, count): (u64, u64)| (count > 0).then(|| sum as f64 / count as f64);
            let cell = ran.serving(ue).map_or("", |cell| &recorder.cells[cell as usize]);
            table.push(&RadioRow {
                point: recorder.id.point,
                run: recorder.id.run,
                ue: &recorder.names[ue as usize],
                t_s: now.as_secs_f64(),
                cell,
                rsrp_dbm: heard.rsrp_dbm,
                rsrq_db: heard.rsrq_db,
                sinr_db: heard.sinr_db,
                cqi: heard.cqi.into(),
                dl_mcs: mean(mcs[0]),
                ul_mcs: mean(mcs[1]),
                dl_mbps: mbps(dl.bits),
                ul_mbps: mbps(ul.bits),
                dl_prbs: Some(share(dl.prbs, Direction::Downlink)),
                ul_prbs: share(ul.prbs, Direction::Uplink),
                dl_cell_prbs: Some(of(here.prbs, whole_cell)),
                dl_queue_bytes: Some(ran.rlc_backlog(ue, Direction::Downlink).bytes),
                ul_queue_bytes: ran.rlc_backlog(ue, Direction::Uplink).bytes,
                host_queue_bytes: ran.above_backlog(ue, Direction::Uplink).bytes,
                dl_above_bytes: ran.above_backlog(ue, Direction::Downlink).bytes,
                dl_limit_bytes: ran.quota(ue, Direction::Downlink),
                ul_limit_bytes: ran.quota(ue, Direction::Uplink),
                harq_retx: dl.retransmissions + ul.retransmissions,
                dl_bler: bler(&dl),
                ul_bler: bler(&ul),
                dl_buffer_bytes: ran.occupancy(ue, Direction::Downlink),
                ul_buffer_bytes: ran.occupancy(ue, Direction::Uplink),
                los: heard.is_los,
                cell_beam: heard.beams.map(|(cell, _)| cell.into()),
                ue_beam: heard.beams.map(|(_, ue)| ue.into()),
                blocked_db: heard.blocked_db,
            });
        }
    }

    /// The rows at the end.
    pub(crate) fn finish<P: aqm::Packet>(&self, ran: &mut Ran<P>, recorder: &Recorder, end: Time, table: &mut Ues) {
        let measured = end.saturating_since(self.since);
        let had = blocks_of(ran, self.blocks[0].len(), end);
        let RunId { point, run } = recorder.id;
        let names = &recorder.names;
        for (ue, meter) in (0..).zip(&self.ues) {
            let (all, before) = (ran.stats(ue), &meter.before);
            let asleep = ran.time_asleep(ue, end).saturating_sub(meter.asleep);
            let served = &recorder.served[ue as usize];
            for ((direction, name), way) in DIRECTIONS.iter().zip(&meter.ways) {
                let new = match direction {
                    Direction::Downlink => all.downlink - before.downlink,
                    Direction::Uplink => all.uplink - before.uplink,
                };
                let rlc = ran.rlc_stats(ue, *direction);
                let since = (self.since, &self.blocks[0][..]);
                let blocks = blocks_of_served(ran, (ue, served), *direction, since, &had) as f64;
                // Counts of both directions stand in the uplink's row.
                let once = |count: u64| if *direction == Direction::Uplink { count } else { 0 };
                let ratio = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
                let mean = |sum: Span| if way.packets > 0 { ms(sum / way.packets) } else { 0.0 };
                table.push(&UeRow {
                    point,
                    run,
                    ue: &names[ue as usize],
                    direction: name,
                    measured_s: measured.as_secs_f64(),
                    blocks: new.blocks,
                    mbits: new.bits as f64 / 1e6,
                    retransmissions: new.retransmissions,
                    block_error_rate: ratio(new.first_failures as f64, new.blocks as f64),
                    residual_errors: new.residual_errors,
                    prbs: new.prbs,
                    utilisation: Some(ratio(new.prbs as f64, blocks)),
                    padding_bytes: new.padding,
                    starved_blocks: new.starved,
                    rlc_retx_pdus: rlc.retx_pdus - way.rlc.retx_pdus,
                    rlc_retx_bytes: rlc.retx_bytes - way.rlc.retx_bytes,
                    scheduling_requests: once(all.scheduling_requests - before.scheduling_requests),
                    random_accesses: once(all.random_accesses - before.random_accesses),
                    handovers: once(all.handovers - before.handovers),
                    handover_failures: once(all.handover_failures - before.handover_failures),
                    link_failures: once(all.link_failures - before.link_failures),
                    asleep: ratio(asleep.as_secs_f64(), measured.as_secs_f64()),
                    core_ms: if way.core.1 > 0 { ms(way.core.0 / way.core.1) } else { 0.0 },
                    queue_ms: mean(way.queue),
                    air_ms: mean(way.air),
                    harq_ms: mean(way.harq),
                    rlc_ms: mean(way.rlc_wait),
                    packets: way.packets,
                    reported_s: way.reports.0.as_secs_f64(),
                    report_bytes: way.reports.1,
                });
            }
        }
    }
}

/// Returns the resource blocks of the cells that `served` a UE, of each while it did and with its second carrier, from
/// `since`, when each had had `before`, until now, when each has had what `had` says.
fn blocks_of_served<P: aqm::Packet>(
    ran: &Ran<P>,
    (ue, served): (u32, &[(Time, u32)]),
    way: Direction,
    (since, before): (Time, &[[u64; 2]]),
    had: &[[u64; 2]],
) -> u64 {
    let carriers = |cell: u32| carriers(ran, (ue, cell), way);
    let counted = |cell: u32, of: &[[u64; 2]]| carriers(cell).map(|c| of[c as usize][way as usize]).sum::<u64>();
    let had_by = |cell: u32, at: Time| carriers(cell).map(|c| ran.resource_blocks(c, way, at)).sum::<u64>();
    let first = served.partition_point(|(at, _)| *at <= since).saturating_sub(1);
    let mut cell = served[first].1;
    let mut before = counted(cell, before);
    let mut sum = 0;
    for &(at, next) in &served[first + 1..] {
        sum += had_by(cell, at).saturating_sub(before);
        (cell, before) = (next, had_by(next, at));
    }
    sum + counted(cell, had).saturating_sub(before)
}

/// Returns the carriers on which `ue` has a direction when `cell` serves it.
pub(crate) fn carriers<P: aqm::Packet>(
    ran: &Ran<P>,
    (ue, cell): (u32, u32),
    way: Direction,
) -> impl Iterator<Item = u32> + use<P> {
    let second = ran.secondary(ue, cell).filter(|_| way == Direction::Downlink);
    [Some(cell), second].into_iter().flatten()
}

/// Listens to the network.
pub(crate) struct Recorder {
    id: RunId,
    names: Vec<String>,
    cells: Vec<String>,
    /// By UE and direction: the sum of the transmissions' MCS since the last sample, and how many they were.
    mcs: Vec<[(u64, u64); 2]>,
    /// By UE: since when which cells have served it, from the beginning.
    served: Vec<Vec<(Time, u32)>>,
    /// The table of transmissions, if it is asked for.
    transmissions: Option<Transmissions>,
    mobility: Mobility,
}

impl Sink for Recorder {
    const MEASURES: bool = false;

    fn event(&mut self, now: Time, event: &Event) {
        match event {
            Event::Transmission(t) => {
                let (sum, count) = &mut self.mcs[t.ue as usize][t.direction as usize];
                *sum += u64::from(t.mcs);
                *count += 1;
                self.transmission(now, t);
            }
            Event::Mobility { ue, step } => {
                if let Step::Connected { cell, .. } = step {
                    self.served[*ue as usize].push((now, *cell));
                }
                self.step(now, *ue, *step);
            }
            Event::BufferStatus { .. }
            | Event::PowerHeadroom { .. }
            | Event::SchedulingRequest { .. }
            | Event::Measured { .. } => {}
        }
    }
}

impl Recorder {
    /// Listens to these UEs, which the cells with the numbers `serving` serve at first, and these cells and second carriers,
    /// and keeps a row of each transmission if `transmissions` are asked for.
    pub(crate) fn new(
        id: RunId,
        (ues, serving): (Vec<String>, impl Iterator<Item = u32>),
        cells: Vec<String>,
        transmissions: bool,
    ) -> Recorder {
        Recorder {
            id,
            mcs: vec![Default::default(); ues.len()],
            served: serving.map(|cell| vec![(Time::ZERO, cell)]).collect(),
            names: ues,
            cells,
            transmissions: transmissions.then(Default::default),
            mobility: Mobility::default(),
        }
    }

    /// The names of the UEs.
    pub(crate) fn ues(&self) -> &[String] {
        &self.names
    }

    /// The names of the cells.
    pub(crate) fn cells(&self) -> &[String] {
        &self.cells
    }

    /// By UE, since when which cells have served it, from the beginning.
    pub(crate) fn served(&self) -> &[Vec<(Time, u32)>] {
        &self.served
    }

    /// What has happened to UEs so far.
    pub(crate) fn mobility(&self) -> &Mobility {
        &self.mobility
    }

    /// The tables that were kept.
    pub(crate) fn finish(self) -> (Mobility, Transmissions) {
        (self.mobility, self.transmissions.unwrap_or_default())
    }

    fn transmission(&mut self, now: Time, t: &Transmission) {
        let Some(transmissions) = &mut self.transmissions else { return };
        transmissions.push(&TransmissionRow {
            point: self.id.point,
            run: self.id.run,
            t_ns: now.as_nanos(),
            ue: &self.names[t.ue as usize],
            rnti: FIRST_RNTI + t.ue,
            cell: &self.cells[t.cell as usize],
            direction: DIRECTIONS[t.direction as usize].1,
            process: t.process.into(),
            attempt: t.attempt.into(),
            decoded: t.decoded,
            mcs: t.mcs.into(),
            layers: t.layers.into(),
            cqi: t.cqi.into(),
            sinr_db: f64::from(t.sinr_cdb) / 100.0,
            first_prb: t.first_prb.into(),
            prbs: t.prbs.into(),
            bits: t.bits,
            padding_bytes: t.padding,
            queued_bytes: t.queued,
        });
    }

    fn step(&mut self, now: Time, ue: u32, step: Step) {
        let cell = |cell: u32| self.cells[cell as usize].as_str();
        let (event, cell, interruption) = match step {
            Step::Triggered { target } => ("triggered", cell(target), None),
            Step::Preparing { target } => ("preparing", cell(target), None),
            Step::CommandLost => ("command-lost", "", None),
            Step::Left { target, .. } => ("left", cell(target), None),
            Step::Failed => ("failed", "", None),
            Step::LinkLost { source } => ("link-lost", cell(source), None),
            Step::Connected { cell: at, interruption } => ("connected", cell(at), Some(ms(interruption))),
        };
        self.mobility.push(&MobilityRow {
            point: self.id.point,
            run: self.id.run,
            t_s: now.as_secs_f64(),
            ue: &self.names[ue as usize],
            event,
            cell,
            interruption_ms: interruption,
        });
    }
}
