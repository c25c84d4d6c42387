//! The LTE network of a scenario: how it is set up, and what is measured of it.
//!
//! It stands between links: a packet enters it at a radio hop of its route, and goes on from there when the [`Ran`] has
//! delivered it ([`crate::network`]).

use crate::Error;
use crate::live::UeStatus;
use crate::packet::{Packet, Store};
use crate::topology;
use crate::world::none_such;
use aqm::{DropReason, Packet as _, bql, dyn_rlc};
use channel::{
    AirConfig, Channel, Direction, Mobility, PathLoss, Position, Recorded, Shadowing, Site, fading, pathloss::Sight,
};
use des::{Part, Streams};
use ran::{
    A3, Above, BearerConfig, CellConfig, Discipline, Event, Filter, LinkAdaptation, MacConfig, Ran, Requests, Room,
    Sink, Step, Stream, Transmission, UeConfig, rlc,
};
use record::tables::{MobilityRow, RadioRow, TransmissionRow, UeRow};
use record::{Tables, ms, tables};
use scenario::{Completed, Limit, Loaded, Lte, Queue, Scenario};
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Bytes, Rate, Span, Time};

/// The temporary identifier of the first UE; those below are reserved for random access (36.321 table 7.1-1).
const FIRST_RNTI: u32 = 61;
/// All cells of a scenario have one carrier and one technology: this one stands for them.
const ALIKE: u32 = 0;
/// The names of the directions, downlink first.
const DIRECTIONS: [(Direction, &str); 2] = [(Direction::Downlink, "downlink"), (Direction::Uplink, "uplink")];

/// The recorded channels that a scenario's UEs name, by the name that they use.
pub(crate) type Channels = BTreeMap<String, Arc<Recorded>>;

/// The recorded channels that the UEs of `loaded` name.
pub(crate) fn load_channels(loaded: &Loaded) -> Result<Channels, Error> {
    let mut channels = Channels::new();
    let networks = loaded.points().iter().filter_map(|point| point.scenario.lte.as_ref());
    for ue in networks.flat_map(|lte| &lte.ues) {
        let scenario::Channel::Recorded { files } = &ue.channel else { continue };
        for file in files.values().filter(|file| !file.is_empty()) {
            if !channels.contains_key(file) {
                let text = loaded.channel(file).expect("a loaded scenario's channels were read");
                let channel =
                    Recorded::parse(text).map_err(|e| Error::Channel { file: file.clone(), what: e.to_string() })?;
                channels.insert(file.clone(), Arc::new(channel));
            }
        }
    }
    Ok(channels)
}

/// The network and its meters.
pub(crate) struct Radio {
    ran: Ran<Packet>,
    pub(crate) part: Part,
    ues: Vec<Meter>,
    /// Resource blocks of a carrier.
    prbs: u8,
    recorder: Recorder,
    listens: bool,
    /// When the counters of `ues` began,
    since: Time,
    /// and TTIs that had begun then and at the last sample.
    ttis: [u64; 2],
}

/// What is counted of one UE, downlink first.
#[derive(Clone, Default)]
struct Meter {
    ways: [Way; 2],
    /// What had been counted at the end of the warm-up, and at the last sample.
    before: ran::UeStats,
    sampled: ran::UeStats,
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
}

impl Way {
    fn add_core(&mut self, span: Span) {
        self.core.0 += span;
        self.core.1 += 1;
    }
}

/// Listens to the network.
struct Recorder {
    point: u32,
    run: u32,
    names: Vec<String>,
    cells: Vec<String>,
    /// By UE and direction: the sum of the transmissions' MCS since the last sample, and how many they were.
    mcs: Vec<[(u64, u64); 2]>,
    /// The table of transmissions, if it is asked for.
    transmissions: Option<tables::Transmissions>,
    mobility: tables::Mobility,
}

impl Radio {
    pub(crate) fn new(
        scenario: &Scenario,
        lte: &Lte,
        (point, run): (u32, u32),
        channels: &Channels,
        streams: &Streams,
        part: Part,
    ) -> Radio {
        let names: Vec<String> = lte.ues.iter().map(|ue| ue.name.clone()).collect();
        let cells: Vec<String> = lte.cells.iter().map(|cell| cell.name.clone()).collect();
        let stream = |stream: Stream| match stream {
            Stream::Air(ue) => streams.named(&format!("ue {} air", names[ue as usize])),
            Stream::Decoding(ue) => streams.named(&format!("ue {} decoding", names[ue as usize])),
        };
        Radio {
            ran: Ran::new(&config(lte, channels, streams), stream),
            part,
            ues: vec![Meter::default(); names.len()],
            prbs: bandwidth(lte.bandwidth).prbs(),
            // What nobody looks at is not computed.
            listens: scenario.record.radio || scenario.record.samples.interval().is_some() || cells.len() > 1,
            recorder: Recorder {
                point,
                run,
                mcs: vec![Default::default(); names.len()],
                names,
                cells,
                transmissions: scenario.record.radio.then(Default::default),
                mobility: tables::Mobility::default(),
            },
            since: Time::ZERO,
            ttis: [0; 2],
        }
    }

    /// When it is to be called.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.ran.poll_timeout()
    }

    /// A packet enters a UE's radio hop.
    #[inline]
    pub(crate) fn enter(
        &mut self,
        ue: u32,
        direction: Direction,
        packet: Packet,
        now: Time,
        drops: &mut impl FnMut(Packet, DropReason),
    ) {
        self.run(now, drops);
        match direction {
            Direction::Downlink => self.ran.handle_downlink(ue, packet, now, drops),
            Direction::Uplink => self.ran.handle_uplink(ue, packet, now, drops),
        }
    }

    /// Runs what is due.
    #[inline]
    pub(crate) fn run(&mut self, now: Time, drops: &mut impl FnMut(Packet, DropReason)) {
        if self.listens {
            self.ran.handle_timeout(now, drops, &mut self.recorder);
        } else {
            self.ran.handle_timeout(now, drops, &mut ());
        }
    }

    /// The next packet that has come through.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time, store: &mut Store) -> Option<Packet> {
        let delivery = self.ran.poll_delivery()?;
        let (packet, times) = (delivery.packet, delivery.times);
        let parcel = store.get(&packet);
        // A UE's own packets came to the host's queue when they were sent, and later to the modem's.
        let arrived = match delivery.direction {
            Direction::Uplink if packet.hop() == 0 => parcel.sent,
            _ => packet.enqueued(),
        };
        if delivery.direction == Direction::Downlink {
            // From another UE, the core is on that one's account.
            match parcel.aired.take() {
                Some((from, left)) => self.beyond(from, arrived.saturating_since(left)),
                None => self.ues[delivery.ue as usize].ways[0].add_core(arrived.saturating_since(parcel.sent)),
            }
        } else {
            parcel.aired = Some((delivery.ue, now));
        }
        let way = &mut self.ues[delivery.ue as usize].ways[delivery.direction as usize];
        way.packets += 1;
        way.queue += times.first_sent.saturating_since(arrived);
        way.air += times.last_sent.saturating_since(times.first_sent);
        let decoded = times.decoded.unwrap_or(now);
        way.harq += decoded.saturating_since(times.last_sent);
        way.rlc_wait += now.saturating_since(decoded);
        Some(packet)
    }

    /// A packet of `ue` took so long from the cell to its end.
    #[inline]
    pub(crate) fn beyond(&mut self, ue: u32, span: Span) {
        self.ues[ue as usize].ways[Direction::Uplink as usize].add_core(span);
    }

    /// The warm-up ends: what was counted so far is left out of the summary.
    pub(crate) fn warmed_up(&mut self, now: Time) {
        self.since = now;
        self.ttis[0] = self.ran.begun(ALIKE, now);
        for (ue, meter) in (0..).zip(&mut self.ues) {
            meter.before = self.ran.stats(ue);
            for (way, (direction, _)) in meter.ways.iter_mut().zip(DIRECTIONS) {
                *way = Way { rlc: self.ran.rlc_stats(ue, direction), ..Way::default() };
            }
        }
    }

    /// As [`crate::Live::set_sinr`].
    pub(crate) fn set_sinr(&mut self, ue: &str, sinr_db: Option<f64>, now: Time) -> Result<(), String> {
        self.ran.set_sinr(place("UE", ue, &self.recorder.names)?, sinr_db, now);
        Ok(())
    }

    /// As [`crate::Live::hand_over`].
    pub(crate) fn hand_over(&mut self, ue: &str, cell: &str, now: Time) -> Result<(), String> {
        let (ue, cell) = (place("UE", ue, &self.recorder.names)?, place("cell", cell, &self.recorder.cells)?);
        self.ran.hand_over(ue, cell, now, &mut self.recorder).map_err(|refused| refused.to_string())
    }

    /// As [`crate::Live::set_load`].
    pub(crate) fn set_load(&mut self, cell: &str, load: f32, now: Time) -> Result<(), String> {
        self.ran.set_load(place("cell", cell, &self.recorder.cells)?, load, now);
        Ok(())
    }

    /// What can be seen of the UEs.
    pub(crate) fn status(&mut self, now: Time) -> Vec<UeStatus> {
        let names = self.recorder.names.iter();
        (0..)
            .zip(names)
            .map(|(ue, name)| UeStatus {
                ue: name.clone(),
                cell: self.ran.serving(ue).map(|cell| self.recorder.cells[cell as usize].clone()),
                cqi: self.ran.hears(ue, now).cqi,
                downlink_bytes: self.ran.rlc_backlog(ue, Direction::Downlink).bytes
                    + self.ran.above_backlog(ue, Direction::Downlink).bytes,
                uplink_bytes: self.ran.rlc_backlog(ue, Direction::Uplink).bytes
                    + self.ran.above_backlog(ue, Direction::Uplink).bytes,
            })
            .collect()
    }

    /// The rows of the UEs at a sampling moment.
    pub(crate) fn sample(&mut self, now: Time, interval: Span, tables: &mut Tables) {
        let begun = self.ran.begun(ALIKE, now);
        let blocks = (begun - std::mem::replace(&mut self.ttis[1], begun)) * u64::from(self.prbs);
        let share = |prbs: u64| if blocks > 0 { prbs as f64 / blocks as f64 } else { 0.0 };
        let mbps = |bits: u64| Rate::over(Bytes::new(bits / 8), interval).as_mbps();
        for (ue, meter) in (0..).zip(&mut self.ues) {
            let heard = self.ran.hears(ue, now);
            let (all, last) = (self.ran.stats(ue), meter.sampled);
            let mcs = std::mem::take(&mut self.recorder.mcs[ue as usize]);
            let mean = |(sum, count): (u64, u64)| (count > 0).then(|| sum as f64 / count as f64);
            let cell = self.ran.serving(ue).map_or("", |cell| &self.recorder.cells[cell as usize]);
            tables.radio.push(&RadioRow {
                point: self.recorder.point,
                run: self.recorder.run,
                ue: &self.recorder.names[ue as usize],
                t_s: now.as_secs_f64(),
                cell,
                rsrp_dbm: heard.rsrp_dbm,
                rsrq_db: heard.rsrq_db,
                sinr_db: heard.sinr_db,
                cqi: heard.cqi.into(),
                dl_mcs: mean(mcs[0]),
                ul_mcs: mean(mcs[1]),
                dl_mbps: mbps(all.downlink.bits - last.downlink.bits),
                ul_mbps: mbps(all.uplink.bits - last.uplink.bits),
                dl_prbs: share(all.downlink.prbs - last.downlink.prbs),
                ul_prbs: share(all.uplink.prbs - last.uplink.prbs),
                dl_queue_bytes: self.ran.rlc_backlog(ue, Direction::Downlink).bytes,
                ul_queue_bytes: self.ran.rlc_backlog(ue, Direction::Uplink).bytes,
                host_queue_bytes: self.ran.above_backlog(ue, Direction::Uplink).bytes,
                dl_above_bytes: self.ran.above_backlog(ue, Direction::Downlink).bytes,
                dl_limit_bytes: self.ran.quota(ue, Direction::Downlink),
                ul_limit_bytes: self.ran.quota(ue, Direction::Uplink),
                harq_retx: all.downlink.retransmissions + all.uplink.retransmissions
                    - last.downlink.retransmissions
                    - last.uplink.retransmissions,
            });
            meter.sampled = all;
        }
    }

    /// The rows of the UEs at the end, and the tables that were kept.
    pub(crate) fn finish(self, end: Time, tables: &mut Tables) {
        let measured = end.saturating_since(self.since);
        let blocks = ((self.ran.begun(ALIKE, end) - self.ttis[0]) * u64::from(self.prbs)) as f64;
        let Recorder { point, run, ref names, .. } = self.recorder;
        for (ue, meter) in (0..).zip(&self.ues) {
            let (all, before) = (self.ran.stats(ue), &meter.before);
            for ((direction, name), way) in DIRECTIONS.iter().zip(&meter.ways) {
                let (now, then) = match direction {
                    Direction::Downlink => (&all.downlink, &before.downlink),
                    Direction::Uplink => (&all.uplink, &before.uplink),
                };
                let rlc = self.ran.rlc_stats(ue, *direction);
                // Counts of both directions stand in the uplink's row.
                let once = |count: u64| if *direction == Direction::Uplink { count } else { 0 };
                let (sent, failed) = (now.blocks - then.blocks, now.first_failures - then.first_failures);
                let ratio = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
                let mean = |sum: Span| if way.packets > 0 { ms(sum / way.packets) } else { 0.0 };
                tables.ues.push(&UeRow {
                    point,
                    run,
                    ue: &names[ue as usize],
                    direction: name,
                    measured_s: measured.as_secs_f64(),
                    blocks: sent,
                    mbits: (now.bits - then.bits) as f64 / 1e6,
                    retransmissions: now.retransmissions - then.retransmissions,
                    block_error_rate: ratio(failed as f64, sent as f64),
                    residual_errors: now.residual_errors - then.residual_errors,
                    prbs: now.prbs - then.prbs,
                    utilisation: ratio((now.prbs - then.prbs) as f64, blocks),
                    padding_bytes: now.padding - then.padding,
                    starved_blocks: now.starved - then.starved,
                    rlc_retx_pdus: rlc.retx_pdus - way.rlc.retx_pdus,
                    rlc_retx_bytes: rlc.retx_bytes - way.rlc.retx_bytes,
                    scheduling_requests: once(all.scheduling_requests - before.scheduling_requests),
                    random_accesses: once(all.random_accesses - before.random_accesses),
                    handovers: once(all.handovers - before.handovers),
                    handover_failures: once(all.handover_failures - before.handover_failures),
                    link_failures: once(all.link_failures - before.link_failures),
                    core_ms: if way.core.1 > 0 { ms(way.core.0 / way.core.1) } else { 0.0 },
                    queue_ms: mean(way.queue),
                    air_ms: mean(way.air),
                    harq_ms: mean(way.harq),
                    rlc_ms: mean(way.rlc_wait),
                    packets: way.packets,
                });
            }
        }
        tables.mobility = self.recorder.mobility;
        tables.transmissions = self.recorder.transmissions.unwrap_or_default();
    }
}

/// The index of what has this name.
fn place(what: &str, name: &str, known: &[String]) -> Result<u32, String> {
    let found = known.iter().position(|known| known == name).map(|at| at as u32);
    found.ok_or_else(|| none_such(what, name, known.iter().map(String::as_str)))
}

impl Sink for Recorder {
    fn event(&mut self, now: Time, event: &Event) {
        match event {
            Event::Transmission(t) => {
                let (sum, count) = &mut self.mcs[t.ue as usize][t.direction as usize];
                *sum += u64::from(t.mcs);
                *count += 1;
                self.transmission(now, t);
            }
            Event::Mobility { ue, step } => self.step(now, *ue, *step),
            Event::BufferStatus { .. }
            | Event::PowerHeadroom { .. }
            | Event::SchedulingRequest { .. }
            | Event::Measured { .. } => {}
        }
    }
}

impl Recorder {
    fn transmission(&mut self, now: Time, t: &Transmission) {
        let Some(transmissions) = &mut self.transmissions else { return };
        transmissions.push(&TransmissionRow {
            point: self.point,
            run: self.run,
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
            point: self.point,
            run: self.run,
            t_s: now.as_secs_f64(),
            ue: &self.names[ue as usize],
            event,
            cell,
            interruption_ms: interruption,
        });
    }
}

/// The network's settings.
fn config(lte: &Lte, channels: &Channels, streams: &Streams) -> ran::Config {
    let carrier = channel::Carrier {
        downlink_hz: lte.downlink_mhz * 1e6,
        uplink_hz: lte.uplink_mhz * 1e6,
        bandwidth: bandwidth(lte.bandwidth),
    };
    let cell = |cell: &scenario::Cell| CellConfig {
        site: Site {
            position: position(cell.position),
            antenna: cell.sector_deg.map_or_else(channel::Antenna::default, channel::Antenna::sector),
            power_dbm: cell.power_dbm,
            noise_figure_db: cell.noise_figure_db,
            carrier,
        },
        mac: mac(&lte.mac),
        downlink: discipline(cell.scheduler),
        uplink: discipline(cell.uplink_scheduler),
        load: cell.load as f32,
    };
    ran::Config {
        cells: lte.cells.iter().map(cell).collect(),
        ues: lte.ues.iter().map(|ue| ue_config(ue, lte, channels, streams)).collect(),
        handover: handover(&lte.handover),
    }
}

fn ue_config(ue: &scenario::Ue, lte: &Lte, channels: &Channels, streams: &Streams) -> UeConfig {
    let index = |name: &String| lte.cells.iter().position(|cell| cell.name == *name);
    // Logical channel groups: the default bearer's is the last, as eNodeBs commonly have it.
    let bearer = |of: &scenario::Bearer, filter, group: u8, name: &str| BearerConfig {
        qci: of.qci,
        filter,
        group,
        rlc: rlc::Config {
            mode: mode(of.rlc, lte.mac.ideal),
            downlink: ran::pdcp::Config {
                // Below another queue, it is the other's to keep to the limit.
                queue: of
                    .above
                    .as_ref()
                    .map_or_else(|| topology::queue(&of.queue, streams, name), |_| aqm::Config::default()),
                discard: of.discard,
            },
            uplink: ran::pdcp::Config { queue: aqm::Config::default(), discard: of.discard },
        },
        above: of.above.as_ref().map(|above| {
            let queue = topology::queue(&above.queue, streams, &format!("above {name}"));
            let Queue::DropTail { packets, bytes, .. } = of.queue else {
                unreachable!("a checked buffer is drop-tail")
            };
            self::above(queue, &above.limit, Room { packets: packets.map(u64::from), bytes: bytes.map(Bytes::get) })
        }),
    };
    let mut bearers = vec![bearer(&ue.bearer, Filter::All, 3, &format!("bearer {}", ue.name))];
    for (i, dedicated) in (0..).zip(&ue.dedicated) {
        let set = dedicated.priorities.iter().fold(0, |set, priority| set | 1 << priority);
        let name = format!("bearer {} {}", ue.name, i + 1);
        bearers.push(bearer(&dedicated.bearer, Filter::Priorities(set), i.min(2), &name));
    }
    UeConfig {
        air: AirConfig {
            mobility: mobility(&ue.mobility),
            channel: channel(&ue.channel, lte, channels),
            fading: ue.fading.map(|fading| self::fading(fading, lte.downlink_mhz)),
            gain_db: ue.gain_db,
            noise_figure_db: ue.noise_figure_db,
            power: channel::UplinkPower {
                max_dbm: ue.power_dbm,
                p0_dbm: lte.power_control.p0_dbm,
                alpha: lte.power_control.alpha,
            },
        },
        cell: ue.cell.as_ref().and_then(index),
        layers: ue.layers,
        category: ue.category.and_then(channel::tables::lte::Category::numbered).unwrap_or_default(),
        bearers,
        host: above(
            topology::queue(&ue.host_queue, streams, &format!("host {}", ue.name)),
            &ue.modem_limit,
            Room { packets: None, bytes: Some(ue.modem.get()) },
        ),
        reports_host: ue.reports_host,
    }
}

fn above(queue: aqm::Config, limit: &Limit, room: Room) -> Above {
    let (limit, completed) = match *limit {
        Limit::None => (aqm::Limit::None, Completed::Sent),
        Limit::Bql { min, max, hold, completed } => {
            (aqm::Limit::Bql(bql::Config { min: min.get(), max: max.get(), hold }), completed)
        }
        Limit::DynRlc { target, interval, min, max, completed } => {
            (aqm::Limit::DynRlc(dyn_rlc::Config { target, interval, min, max }), completed)
        }
    };
    let completion = match completed {
        Completed::Sent => rlc::Completion::Sent,
        Completed::Acknowledged => rlc::Completion::Acknowledged,
    };
    Above { gate: aqm::gate::Config { queue, limit }, room, completion }
}

fn channel(channel: &scenario::Channel, lte: &Lte, channels: &Channels) -> Channel {
    let modelled = |path_loss, shadowing| Channel::Modelled { path_loss, shadowing };
    match channel {
        scenario::Channel::Friis => modelled(PathLoss::Friis, None),
        scenario::Channel::LogDistance { exponent, at_1m_db, shadowing_db, correlation_m } => {
            let loss = PathLoss::LogDistance { exponent: *exponent, reference_m: 1.0, reference_db: *at_1m_db };
            modelled(loss, (*shadowing_db > 0.0).then(|| Shadowing::uniform(*shadowing_db, *correlation_m)))
        }
        scenario::Channel::Umi { sight, shadowing } => {
            modelled(PathLoss::UmiStreetCanyon(self::sight(*sight)), shadowing.then_some(Shadowing::UMI))
        }
        scenario::Channel::Uma { sight, shadowing } => {
            modelled(PathLoss::UrbanMacro(self::sight(*sight)), shadowing.then_some(Shadowing::UMA))
        }
        scenario::Channel::Rma { sight, shadowing, building_m, street_m } => {
            let sight = self::sight(*sight);
            let loss = PathLoss::RuralMacro { sight, building_m: *building_m, street_m: *street_m };
            modelled(loss, shadowing.then_some(Shadowing::RMA))
        }
        scenario::Channel::Cost231 { metropolitan, shadowing_db, correlation_m } => {
            let loss = PathLoss::Cost231Hata { metropolitan: *metropolitan };
            modelled(loss, (*shadowing_db > 0.0).then(|| Shadowing::uniform(*shadowing_db, *correlation_m)))
        }
        scenario::Channel::Fixed { loss_db } => modelled(PathLoss::Fixed(*loss_db), None),
        scenario::Channel::Recorded { files } => {
            let record = |cell: &scenario::Cell| files.get(&cell.name).map(|file| Arc::clone(&channels[file]));
            Channel::Recorded(lte.cells.iter().map(record).collect())
        }
    }
}

fn sight(of: scenario::Sight) -> Sight {
    match of {
        scenario::Sight::Los => Sight::Los,
        scenario::Sight::Nlos => Sight::Nlos,
        scenario::Sight::Random => Sight::Random,
    }
}

fn fading(fading: scenario::Fading, downlink_mhz: f64) -> fading::Config {
    let (profile, kmh) = match fading {
        scenario::Fading::Epa { kmh } => (fading::Profile::Epa, kmh),
        scenario::Fading::Eva { kmh } => (fading::Profile::Eva, kmh),
        scenario::Fading::Etu { kmh } => (fading::Profile::Etu, kmh),
    };
    // f_d = v f / c.
    let hz = |kmh: f64| kmh / 3.6 * downlink_mhz * 1e6 / 299_792_458.0;
    let doppler = kmh.map_or(fading::Doppler::Speed, |kmh| fading::Doppler::Hz(hz(kmh)));
    fading::Config { profile, doppler }
}

fn mobility(of: &scenario::Mobility) -> Mobility {
    const CHECKED: &str = "a checked scenario's movements are sound";
    match of {
        scenario::Mobility::Still { position: at } => Mobility::fixed(position(*at)),
        scenario::Mobility::Line { from, velocity } => Mobility::line(position(*from), *velocity),
        scenario::Mobility::Waypoints { points } => {
            let points: Vec<_> = points.iter().map(|(at, point)| (Time::ZERO + *at, position(*point))).collect();
            Mobility::waypoints(&points).expect(CHECKED)
        }
        scenario::Mobility::Route { points, speeds } => {
            let points: Vec<_> = points.iter().map(|point| position(*point)).collect();
            // The last speed holds for the rest.
            let rest = std::iter::repeat(speeds.last().copied().unwrap_or_default());
            let speeds: Vec<f64> = speeds.iter().copied().chain(rest).take(points.len() - 1).collect();
            Mobility::route(&points, &speeds).expect(CHECKED)
        }
    }
}

fn mode(rlc: scenario::Rlc, ideal: bool) -> rlc::Mode {
    match rlc {
        scenario::Rlc::Tm => rlc::Mode::Tm,
        scenario::Rlc::Um { t_reordering } => rlc::Mode::Um(rlc::Um { t_reordering, ..rlc::Um::default() }),
        scenario::Rlc::Am { t_poll_retransmit, t_reordering, t_status_prohibit, poll_pdu, max_retx, status_alone } => {
            rlc::Mode::Am(rlc::Am {
                t_poll_retransmit,
                t_reordering,
                t_status_prohibit,
                poll_pdu: Some(poll_pdu),
                max_retx,
                status_alone: status_alone.unwrap_or(ideal),
                ..rlc::Am::default()
            })
        }
    }
}

fn mac(of: &scenario::Mac) -> MacConfig {
    let requests = Requests {
        sr_period: of.sr_period,
        sr_prohibit: of.sr_prohibit,
        sr_maximum: of.sr_maximum,
        bsr_periodic: Some(of.bsr_period),
        bsr_retx: of.bsr_retx,
        ..Requests::default()
    };
    let worst_group = of.cqi == scenario::CqiOf::WorstGroup;
    if of.ideal {
        let ideal = MacConfig::ideal();
        let link = LinkAdaptation { worst_group, ..ideal.link };
        return MacConfig { transmissions: of.harq_transmissions, requests, link, ..ideal };
    }
    MacConfig {
        transmissions: of.harq_transmissions,
        decoding: of.decoding,
        link: LinkAdaptation {
            period: of.cqi_period,
            delay: of.cqi_delay,
            step_db: of.outer_loop_db as f32,
            worst_group,
        },
        requests,
        ..MacConfig::default()
    }
}

fn handover(of: &scenario::Handover) -> ran::Handover {
    let a3 = A3 {
        offset_db: of.offset_db,
        hysteresis_db: of.hysteresis_db,
        time_to_trigger: of.time_to_trigger,
        report_interval: of.report_interval,
    };
    ran::Handover {
        a3: of.enabled.then_some(a3),
        period: of.measurement_period,
        filter: of.filter,
        preparation: of.preparation,
        command_bytes: of.command_size.get() as u32,
        interruption: of.interruption,
        forwarding: of.forwarding,
        t304: of.t304,
        reestablishment: of.reestablishment,
        link: ran::RadioLink {
            q_out_db: of.q_out_db,
            q_in_db: of.q_in_db,
            n310: of.n310,
            n311: of.n311,
            t310: of.t310,
        },
    }
}

fn discipline(of: scenario::Scheduler) -> Discipline {
    match of {
        scenario::Scheduler::RoundRobin => Discipline::RoundRobin,
        scenario::Scheduler::ProportionalFair => Discipline::ProportionalFair,
        scenario::Scheduler::MaxThroughput => Discipline::MaxThroughput,
    }
}

fn bandwidth(of: scenario::Bandwidth) -> channel::Bandwidth {
    match of {
        scenario::Bandwidth::Mhz1_4 => channel::Bandwidth::Mhz1_4,
        scenario::Bandwidth::Mhz3 => channel::Bandwidth::Mhz3,
        scenario::Bandwidth::Mhz5 => channel::Bandwidth::Mhz5,
        scenario::Bandwidth::Mhz10 => channel::Bandwidth::Mhz10,
        scenario::Bandwidth::Mhz15 => channel::Bandwidth::Mhz15,
        scenario::Bandwidth::Mhz20 => channel::Bandwidth::Mhz20,
    }
}

fn position([x, y, z]: [f64; 3]) -> Position {
    Position::new(x, y, z)
}
