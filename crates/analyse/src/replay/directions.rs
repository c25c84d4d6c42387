//! The capacity over time and the buffer of each direction of a path, from the flows that it carried.
//!
//! A round trip passes the queues of both directions. While both carry load, each flow has `rate × (base + forward queue + backward
//! queue)` in flight: round-trip times and bytes in flight tell the sum of the queues, and not which of them is whose. What separates
//! them is, in this order:
//!
//! 1. One-way delays, as of simulations, emulations and captures of both ends. A packet that waited for a time had in front of it what
//!    the direction carried in that time.
//! 2. Times in which one direction alone carried load: then all that waits is in its queue. What its buffer does not explain of the
//!    queues of other times is in the other direction.
//! 3. Nothing. Then both buffers are assumed to have as many bytes, so that the slower direction has the longer delay, as a phone's
//!    uplink does. What a sender's host measured of its own queue is the least for its direction.
//!
//! The capacity is what the flows got, with the acknowledgements of the other direction's data. A direction that carried less only
//! because the queue of the other one held up its acknowledgements had more: one-way delays show that nothing waited in it. So had one
//! whose flows had not yet filled it: round-trip times show that ([`Bins::not_yet_filled`]).
//!
//! What flows carried while their application or their receive window held them back tells nothing of a direction but that it had more
//! ([`Spare`]): its capacity is that of the nearest times with load, or of bursts of theirs that had a queue and, if there never were any,
//! unknown. Nor do such flows tell of its buffer.
//!
//! Bytes in flight are the least that a buffer holds. If nothing was lost, it holds more, and nothing tells how much. If something was,
//! they count it until the sender knows, and round-trip times tell the buffer better.

use std::collections::BTreeMap;
use std::mem;

use record::tables::{FlowRow, SampleRow, Tables};
use units::stats::nearest_place;

use super::axis::{Axis, Mean, mean_near};
use super::spare::{MOST_APP, Spare};
use crate::why::{Held, Hold};

/// Seconds over which rates are averaged, and the most of such intervals: an hour; those of a longer replay are longer.
const BIN_S: f64 = 0.1;
const MOST_BINS: f64 = 36_000.0;
/// IP bytes of a full segment over its payload.
const OVERHEAD: f64 = 1500.0 / 1448.0;
/// IP bytes of acknowledgements over the payload that they acknowledge: one without options but timestamps for two full segments, as
/// the receivers of the replay send them. Real ones send fewer if they merge segments.
const ACKS: f64 = 52.0 / (2.0 * 1448.0);
/// A direction with less than this share of the other one's rate carries no load: acknowledgements alone are as much.
const LEAST_LOAD: f64 = 0.02;
/// Seconds of load in both directions at once that are too short to matter.
const SHORT_S: f64 = 1.0;
/// Seconds of load in one direction alone that fill its buffer, and the time after the other's load until its queue is empty.
const ALONE_S: f64 = 5.0;
const SETTLED_S: f64 = 1.0;
/// Waiting times that are none: some packets' worth of service.
const EMPTY_MS: f64 = 5.0;
/// A capacity that is not this much larger than what was carried is the same.
const NOTABLE: f64 = 1.01;
/// Seconds over which rates are averaged where both directions carry load, and nothing tells of one-way delays.
const SMOOTH_S: f64 = 1.0;
/// The smallest and the largest buffer, in bytes.
const LEAST_BUFFER: f64 = 64e3;
const MOST_BUFFER: f64 = (1_u64 << 30) as f64;

/// By how many times a buffer in which nothing was lost is larger in the replay than what it held.
const ROOM: u64 = 2;

/// A direction as an index: that of the largest flow, or the other one.
pub(crate) const FORWARD: usize = 0;
pub(crate) const BACKWARD: usize = 1;

/// What was measured of a path. Times are in seconds.
pub(crate) struct Measured<'a> {
    pub(crate) tables: &'a Tables,
    pub(crate) point: u32,
    pub(crate) run: u32,
    /// When the replay begins, on the clock of the tables.
    pub(crate) start_s: f64,
    /// How long it is.
    pub(crate) seconds: f64,
    /// The round-trip time without queues.
    pub(crate) base_ms: f64,
    /// The flows with their directions.
    pub(crate) flows: Vec<(FlowRow<'a>, usize)>,
    /// What held the sender of each back.
    pub(crate) held: Vec<Held>,
}

impl<'a> Measured<'a> {
    fn is_of(&self, point: u32, run: u32) -> bool {
        (point, run) == (self.point, self.run)
    }

    /// Whether a direction lost packets, as far as its senders tell; `None` if one that lost none might have.
    fn has_lost(&self, way: usize) -> Option<bool> {
        let flows = self.flows.iter().filter(|(_, of)| *of == way);
        let lost = flows.map(|(row, _)| match (row.retransmitted, row.lost_packets) {
            (None, None) => None,
            (retransmitted, lost) => Some(retransmitted.unwrap_or(0) > 0 || lost.unwrap_or(0) > 0),
        });
        lost.reduce(|all, one| match (all, one) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        })?
    }

    /// The flows of a direction that may fill it: they have no rate of their own, and their application did not hold them back most of
    /// the time.
    fn may_fill(&self, way: usize) -> impl Iterator<Item = &FlowRow<'a>> {
        let may = |number: usize, row: &FlowRow<'_>| {
            let held = self.held.get(number).filter(|held| !held.stretches.is_empty());
            let app = match (row.limited_app, held) {
                (Some(share), _) => share,
                (None, Some(held)) => held.share(&[Hold::App, Hold::Room]),
                (None, None) => 0.0,
            };
            row.transport == "tcp" && app < MOST_APP
        };
        let flows = self.flows.iter().enumerate().filter(move |(_, (_, of))| *of == way);
        flows.filter(move |(number, (row, _))| may(*number, row)).map(|(_, (row, _))| row)
    }

    fn samples(&self) -> impl Iterator<Item = SampleRow<'a>> {
        self.tables.samples.iter().filter(move |row| self.is_of(row.point, row.run))
    }

    /// The directions of the flows by their names and numbers.
    fn ways(&self) -> BTreeMap<(&'a str, u32), usize> {
        self.flows.iter().map(|(row, way)| ((row.flow, row.conn), *way)).collect()
    }
}

/// What a buffer was inferred from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// Bytes in flight: the other direction carried no load.
    InFlight,
    /// Round-trip times: the other direction carried no load, and something was lost.
    RoundTrip,
    /// One-way delays.
    OneWay,
    /// Bytes in flight while the other direction carried no load.
    Alone,
    /// The queues of both directions, less what the buffer of the other one explains.
    Rest,
    /// The queues of both directions, with buffers that are assumed to be of the same size.
    Assumed,
}

impl Basis {
    fn text(self) -> &'static str {
        match self {
            Basis::InFlight => "the most bytes in flight, less those without a queue",
            Basis::RoundTrip => "the most that was carried while a packet waited, by round-trip times",
            Basis::OneWay => "the most that was carried while a packet waited, by one-way delays",
            Basis::Alone => "the most bytes in flight without load in the other direction, less those without a queue",
            Basis::Rest => "what waited in both directions, less what fits into the other one's buffer",
            Basis::Assumed => "assumed: a part of what waited in both directions",
        }
    }
}

/// A buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffer {
    /// What it held.
    bytes: u64,
    basis: Basis,
    /// Whether it holds more, because nothing was lost.
    is_least: bool,
}

impl Buffer {
    fn new(bytes: f64, basis: Basis) -> Buffer {
        Buffer { bytes: bytes.clamp(LEAST_BUFFER, MOST_BUFFER) as u64, basis, is_least: false }
    }

    /// Its size in the scenario, in bytes.
    pub(crate) fn size(self) -> u64 {
        if self.is_least { self.bytes * ROOM } else { self.bytes }
    }

    /// A comment for the scenario.
    pub(crate) fn comment(self) -> String {
        let basis = self.basis.text();
        if self.is_least {
            format!("# nothing was lost: at least {} B, {basis}; not measured", self.bytes)
        } else {
            format!("# {basis}")
        }
    }
}

/// Where the capacity is from while a direction carried load that did not fill it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Raised {
    /// The nearest times with a queue.
    Near,
    /// The best second: it never had a queue.
    Best,
    /// The nearest times with a queue, and no other direction held it up.
    Filled,
}

/// A direction.
pub(crate) struct Way {
    /// The capacity of each interval of [`Directions::bin_s`] in Mbit/s; `None` without flows that needed it.
    pub(crate) capacity_mbps: Option<Vec<f64>>,
    /// The most that it carried in an interval, in Mbit/s, if flows used it and none needed all of it.
    pub(crate) least_mbps: Option<f64>,
    /// Its buffer; `None` if nothing tells.
    pub(crate) buffer: Option<Buffer>,
    /// The mean rate in Mbit/s while it alone carried load and had a queue; `None` if that never was.
    pub(crate) full_mbps: Option<f64>,
    raised: Option<Raised>,
}

/// Both directions of a path.
pub(crate) struct Directions {
    /// Seconds of an interval.
    pub(crate) bin_s: f64,
    /// [`FORWARD`] and [`BACKWARD`].
    pub(crate) ways: [Way; 2],
    is_smoothed: bool,
}

impl Directions {
    /// Infers both directions.
    pub(crate) fn of(measured: &Measured<'_>) -> Directions {
        let bins = Bins::of(measured);
        let has_both = bins.count(|bin| bins.is_both(bin)) >= SHORT_S;
        let is_smoothed = has_both && !bins.tell_one_way();
        let buffers = if has_both {
            bins.buffers(measured)
        } else {
            [FORWARD, BACKWARD].map(|way| bins.buffer_of_one(measured, way))
        };
        let way = |way: usize| {
            let is_used = measured.flows.iter().any(|(_, of)| *of == way);
            let (bytes, raised) = if is_smoothed {
                (bins.smoothed(way), None)
            } else if has_both {
                bins.filled(way)
            } else {
                bins.not_yet_filled(way, measured.has_lost(way))
            };
            let own = &bins.ways[way];
            let (bytes, by_bursts) = own.spare.filled(&own.bytes, bytes, bins.full(way), &bins.axis);
            let least_mbps = bytes.is_none().then(|| bins.most_mbps(way)).filter(|_| is_used);
            let capacity_mbps = bytes.filter(|_| is_used).map(|bytes| bins.capacity_mbps(way, bytes));
            let is_least = measured.has_lost(way) == Some(false);
            // What nobody filled tells nothing of its buffer.
            let buffer = match by_bursts {
                Some(rate) => in_flight_of_bursts(measured, way, rate),
                None => buffers[way].filter(|_| least_mbps.is_none()),
            };
            let buffer = buffer.map(|buffer| Buffer { is_least, ..buffer });
            Way { capacity_mbps, least_mbps, buffer, raised, full_mbps: bins.full_mbps(way) }
        };
        Directions { bin_s: bins.axis.width_s, ways: [way(FORWARD), way(BACKWARD)], is_smoothed }
    }

    /// What a reader has to know of the buffers.
    pub(crate) fn buffer_notes(&self) -> Vec<String> {
        let is_assumed = |way: &Way| way.buffer.is_some_and(|buffer| buffer.basis == Basis::Assumed);
        let note = "replay: flows ran in both directions at once, and nothing tells in which direction packets waited: both \
            buffers are assumed to be of the same size";
        if self.ways.iter().any(is_assumed) { vec![note.to_owned()] } else { Vec::new() }
    }

    /// What a reader has to know of the capacity.
    pub(crate) fn capacity_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.is_smoothed {
            let note = "replay: while flows run in both directions, their rates are averaged over 1 s: at shorter times, they \
                depend on when acknowledgements came";
            notes.push(note.to_owned());
        }
        for (way, name) in self.ways.iter().zip(["forward", "backward"]) {
            if let Some(mbps) = way.least_mbps {
                notes.push(format!(
                    "replay: no flow needed all of the {name} direction, whose capacity is therefore not known: it carried up to \
                     {mbps:.2} Mbit/s"
                ));
            }
            let from = match way.raised {
                Some(Raised::Filled) => {
                    notes.push(format!(
                        "replay: before the flows of the {name} direction had filled it, its capacity is that of the nearest times \
                         with a queue"
                    ));
                    continue;
                }
                Some(Raised::Near) => "its capacity is that of the nearest times with a queue",
                Some(Raised::Best) => "its capacity is not known, and the best second's is taken",
                None => continue,
            };
            notes.push(format!(
                "replay: the {name} direction had no queue while that of the other one held up acknowledgements: {from}"
            ));
        }
        notes
    }
}

/// The most bytes in flight of a direction's flows that may fill it, less what is on its way without a queue: of those that ran at the
/// same time together. `None` if no sender told.
fn in_flight_beyond_base(measured: &Measured<'_>, way: usize) -> Option<f64> {
    let beyond = |row: &FlowRow<'_>| {
        let most = row.max_in_flight_bytes.filter(|&most| most > 0)?;
        Some(most.min(1 << 32) as f64 - row.goodput_mbps * 1e6 / 8.0 * measured.base_ms / 1e3)
    };
    let told = measured.may_fill(way).filter_map(|row| Some((row, beyond(row)?)));
    let told: Vec<(&FlowRow<'_>, f64)> = told.collect();
    let meet = |a: &FlowRow<'_>, b: &FlowRow<'_>| a.start_s < b.measured_to_s && b.start_s < a.measured_to_s;
    let beside = |(row, _): &(&FlowRow<'_>, f64)| {
        told.iter().filter(|(other, _)| meet(row, other)).map(|(_, bytes)| bytes).sum::<f64>()
    };
    told.iter().map(beside).reduce(f64::max)
}

/// A direction over time: a value for each bin.
struct Binned {
    /// IP bytes carried: data, and acknowledgements of the other direction's data.
    bytes: Vec<f64>,
    /// Whether a flow was under way.
    is_used: Vec<bool>,
    /// Whether a flow that may fill it was.
    is_loaded: Vec<bool>,
    /// What flows left of it.
    spare: Spare,
    /// How much longer than the shortest one-way delay those of its packets were, if some arrived.
    waited_ms: Vec<Option<f64>>,
    /// Bytes in flight of all flows together.
    in_flight: Vec<u64>,
}

/// Both directions over time.
struct Bins {
    axis: Axis,
    ways: [Binned; 2],
    /// How much longer than the base the round-trip times were, if there were some.
    queued_ms: Vec<Option<f64>>,
}

impl Bins {
    fn of(measured: &Measured<'_>) -> Bins {
        let width_s = BIN_S.max(measured.seconds / MOST_BINS);
        let count = ((measured.seconds / width_s).ceil() as usize).max(1);
        let axis = Axis { start_s: measured.start_s, seconds: measured.seconds, width_s, count };
        let (bytes, rtts) = (carried(measured, &axis), rtts(measured, &axis));
        let [forward, backward] = bytes;
        let ways = [Binned::of(measured, &axis, FORWARD, forward), Binned::of(measured, &axis, BACKWARD, backward)];
        Bins { axis, ways, queued_ms: rtts }
    }

    /// Whether both directions carry load.
    fn is_both(&self, bin: usize) -> bool {
        self.ways.iter().all(|way| way.is_loaded[bin])
    }

    /// How long something holds, in seconds.
    fn count(&self, holds: impl Fn(usize) -> bool) -> f64 {
        (0..self.axis.count).filter(|&bin| holds(bin)).count() as f64 * self.axis.width_s
    }

    /// Whether one-way delays are known for most of the time with load in both directions.
    fn tell_one_way(&self) -> bool {
        let both = self.count(|bin| self.is_both(bin));
        let is_known = |way: &Binned| self.count(|bin| self.is_both(bin) && way.waited_ms[bin].is_some()) * 2.0 >= both;
        both > 0.0 && self.ways.iter().all(is_known)
    }

    /// The buffers of both directions, which carried load at once.
    fn buffers(&self, measured: &Measured<'_>) -> [Option<Buffer>; 2] {
        let ways = [FORWARD, BACKWARD];
        if self.tell_one_way() {
            let most = |way: usize| self.most_carried(way, self.ways[way].waited_ms.iter().copied());
            return ways.map(|way| Some(Buffer::new(most(way), Basis::OneWay)));
        }
        let alone = ways.map(|way| self.alone(way, measured.base_ms));
        let rates = ways.map(|way| self.rate_of_both(way));
        let shares = self.shares(measured, rates);
        ways.map(|way| {
            if let Some(bytes) = alone[way] {
                return Some(Buffer::new(bytes, Basis::Alone));
            }
            // What this direction's flows have in the queues of both.
            let joint = in_flight_beyond_base(measured, way).or_else(|| Some(rates[way] * self.queued_s(0.95)?))?;
            Some(match alone[1 - way] {
                Some(other) => {
                    let explained = other.max(LEAST_BUFFER) / rates[1 - way].max(1.0) * rates[way];
                    Buffer::new(joint - explained, Basis::Rest)
                }
                None => Buffer::new(joint * shares[way], Basis::Assumed),
            })
        })
    }

    /// The buffer of a direction that never carried load together with the other one; `None` if no sender told.
    fn buffer_of_one(&self, measured: &Measured<'_>, way: usize) -> Option<Buffer> {
        let in_flight = in_flight_beyond_base(measured, way)?;
        let waited = (0..self.axis.count).map(|bin| self.queued_ms[bin].filter(|_| self.is_alone(way, bin)));
        let carried = self.most_carried(way, waited);
        // What is lost counts as in flight until the sender knows.
        let is_told = measured.has_lost(way) == Some(true) && carried > 0.0 && carried < in_flight;
        Some(if is_told { Buffer::new(carried, Basis::RoundTrip) } else { Buffer::new(in_flight, Basis::InFlight) })
    }

    /// Whether one direction alone carries load.
    fn is_alone(&self, way: usize, bin: usize) -> bool {
        self.ways[way].is_loaded[bin] && !self.ways[1 - way].is_loaded[bin]
    }

    /// Whether a direction that alone carries load has a queue, by round-trip times; `None` if nothing tells.
    fn has_queue(&self, way: usize, bin: usize) -> Option<bool> {
        self.queued_ms[bin].filter(|_| self.is_alone(way, bin)).map(|ms| ms >= EMPTY_MS)
    }

    /// Returns the bins in which a direction that alone carries load has a queue, as in the bin before: it was filled all the time.
    fn full(&self, way: usize) -> Vec<usize> {
        let has_queue = |bin: usize| self.has_queue(way, bin) == Some(true);
        (1..self.axis.count).filter(|&bin| has_queue(bin) && has_queue(bin - 1)).collect()
    }

    /// The mean rate of a direction in those bins, in Mbit/s.
    fn full_mbps(&self, way: usize) -> Option<f64> {
        let mut mean = Mean::default();
        self.full(way).into_iter().for_each(|bin| mean.add(self.ways[way].bytes[bin]));
        mean.get().map(|bytes| bytes * 8.0 / 1e6 / self.axis.width_s)
    }

    /// What a direction carried, or could have carried where its flows alone had not filled it: until it first had a queue and, if nothing
    /// was lost, whenever it has none. After a loss, a sender may use less than there is for other reasons.
    fn not_yet_filled(&self, way: usize, has_lost: Option<bool>) -> (Vec<f64>, Option<Raised>) {
        let (own, mut bytes) = (&self.ways[way].bytes, self.ways[way].bytes.clone());
        let full = self.full(way);
        let Some(&first) = full.first() else { return (bytes, None) };
        let mut raised = None;
        for bin in (0..bytes.len()).filter(|&bin| self.is_alone(way, bin)) {
            let is_empty = |bin: usize| self.has_queue(way, bin) == Some(false);
            let was_empty = bin > 0 && is_empty(bin - 1);
            if bin >= first && !(has_lost == Some(false) && (is_empty(bin) || was_empty)) {
                continue;
            }
            let could = mean_near(own, &full, bin).unwrap_or(0.0);
            if could > bytes[bin] * NOTABLE {
                raised = Some(Raised::Filled);
                bytes[bin] = could;
            }
        }
        (bytes, raised)
    }

    /// The most bytes that were in a direction's queue, by how long its packets waited in each bin.
    fn most_carried(&self, way: usize, waited_ms: impl Iterator<Item = Option<f64>>) -> f64 {
        let (Axis { width_s, count, .. }, of) = (self.axis, &self.ways[way]);
        let mut until = vec![0.0; count + 1];
        for (bin, bytes) in of.bytes.iter().enumerate() {
            until[bin + 1] = until[bin] + bytes;
        }
        let carried = |at_s: f64| {
            let place = (at_s / width_s).max(0.0);
            let bin = (place as usize).min(count - 1);
            until[bin] + (place - bin as f64) * of.bytes[bin]
        };
        let waiting = waited_ms.enumerate().filter_map(|(bin, waited_ms)| {
            let arrived_s = (bin as f64 + 0.5) * width_s;
            Some(carried(arrived_s) - carried(arrived_s - waited_ms? / 1e3))
        });
        waiting.fold(0.0, f64::max)
    }

    /// The most bytes in flight of a direction beyond those without a queue, while it alone carried load; `None` if that was too short,
    /// or no sender told.
    fn alone(&self, way: usize, base_ms: f64) -> Option<f64> {
        let (Axis { width_s, count, .. }, of) = (self.axis, &self.ways[way]);
        let other = &self.ways[1 - way].is_loaded;
        let margin = (SETTLED_S / width_s).ceil() as usize;
        let is_alone = |bin: &usize| {
            let around = bin.saturating_sub(margin)..(bin + margin + 1).min(count);
            of.is_loaded[*bin] && !other[around].contains(&true)
        };
        let bins: Vec<usize> = (0..count).filter(is_alone).collect();
        let seconds = bins.len() as f64 * width_s;
        if seconds < ALONE_S {
            return None;
        }
        let most = bins.iter().map(|&bin| of.in_flight[bin]).max().filter(|&most| most > 0)?;
        let rate = bins.iter().map(|&bin| of.bytes[bin]).sum::<f64>() / seconds;
        Some(most as f64 - rate * base_ms / 1e3)
    }

    /// The mean rate of a direction in bytes a second, while both carried load.
    fn rate_of_both(&self, way: usize) -> f64 {
        let bins = (0..self.axis.count).filter(|&bin| self.is_both(bin));
        let mut mean = Mean::default();
        bins.for_each(|bin| mean.add(self.ways[way].bytes[bin]));
        mean.get().unwrap_or(0.0) / self.axis.width_s
    }

    /// A quantile of the time in both queues together, while both directions carried load.
    fn queued_s(&self, quantile: f64) -> Option<f64> {
        let queued = self.queued_ms.iter().enumerate().filter(|(bin, _)| self.is_both(*bin));
        quantile_of(queued.filter_map(|(_, ms)| *ms).collect(), quantile).map(|ms| ms / 1e3)
    }

    /// Each direction's share of the time in both queues: with buffers of the same size, the other one's share of the rate.
    fn shares(&self, measured: &Measured<'_>, rates: [f64; 2]) -> [f64; 2] {
        let rate = rates[FORWARD] + rates[BACKWARD];
        let assumed = if rate > 0.0 { rates[BACKWARD] / rate } else { 0.5 };
        let in_hosts = self.in_hosts_s(measured);
        let least = in_hosts.map(|host_s| match (host_s, self.queued_s(0.5)) {
            (Some(host_s), Some(queued_s)) if queued_s > 0.0 => (host_s / queued_s).min(1.0),
            _ => 0.0,
        });
        let forward = assumed.max(least[FORWARD]).min(1.0 - least[BACKWARD]).max(0.0);
        [forward, 1.0 - forward]
    }

    /// The median time that each direction's data spent in the queue of its sender's host, while both directions carried load.
    fn in_hosts_s(&self, measured: &Measured<'_>) -> [Option<f64>; 2] {
        let ways = measured.ways();
        let mut waited: [Vec<f64>; 2] = Default::default();
        for row in measured.tables.passages.iter().filter(|row| measured.is_of(row.point, row.run)) {
            let Some(&way) = ways.get(&(row.flow, row.conn)) else { continue };
            let is_both = self.axis.bin(row.t_s).is_some_and(|bin| self.is_both(bin));
            waited[way].extend(row.host_ms.filter(|ms| is_both && is_time(*ms)));
        }
        waited.map(|waited| quantile_of(waited, 0.5).map(|ms| ms / 1e3))
    }

    /// What a direction carried, averaged where both carried load.
    fn smoothed(&self, way: usize) -> Vec<f64> {
        let bytes = &self.ways[way].bytes;
        let around = (SMOOTH_S / 2.0 / self.axis.width_s).round() as usize;
        let of_bin = |bin: usize| {
            let near = bin.saturating_sub(around)..(bin + around + 1).min(self.axis.count);
            let mut mean = Mean::default();
            near.filter(|&near| self.is_both(near)).for_each(|near| mean.add(bytes[near]));
            mean.get().filter(|_| self.is_both(bin)).unwrap_or(bytes[bin])
        };
        (0..self.axis.count).map(of_bin).collect()
    }

    /// What a direction carried, or could have carried where it had no queue because that of the other one held up acknowledgements.
    fn filled(&self, way: usize) -> (Vec<f64>, Option<Raised>) {
        let (own, mut bytes) = (&self.ways[way], self.ways[way].bytes.clone());
        let (waited, other) = (own.waited_or_next(), self.ways[1 - way].waited_or_next());
        let has_queue = |waited: &[Option<f64>], bin: usize| waited[bin].map(|ms| ms >= EMPTY_MS);
        let with_queue: Vec<usize> =
            (0..bytes.len()).filter(|&bin| has_queue(&own.waited_ms, bin) == Some(true)).collect();
        let is_held_up = |bin: &usize| {
            self.is_both(*bin) && has_queue(&waited, *bin) == Some(false) && has_queue(&other, *bin) == Some(true)
        };
        let second = ((1.0 / self.axis.width_s).round() as usize).clamp(1, bytes.len());
        let best = own.bytes.windows(second).map(|bins| bins.iter().sum::<f64>() / second as f64).fold(0.0, f64::max);
        let mut raised = None;
        for bin in (0..bytes.len()).filter(is_held_up) {
            let could = mean_near(&own.bytes, &with_queue, bin).unwrap_or(best);
            if could > bytes[bin] * NOTABLE {
                raised = Some(if with_queue.is_empty() { Raised::Best } else { Raised::Near });
                bytes[bin] = could;
            }
        }
        (bytes, raised)
    }

    /// The most that a direction carried in a bin.
    fn most_mbps(&self, way: usize) -> f64 {
        self.ways[way].bytes.iter().copied().fold(0.0, f64::max) * 8.0 / 1e6 / self.axis.width_s
    }

    /// The capacity of a direction that could have carried these bytes.
    fn capacity_mbps(&self, way: usize, mut bytes: Vec<f64>) -> Vec<f64> {
        // While no flow used the direction, nothing tells its capacity, and acknowledgements of the other one have to pass.
        let most = bytes.iter().copied().fold(0.0, f64::max);
        for (bytes, is_used) in bytes.iter_mut().zip(&self.ways[way].is_used) {
            let could = if *is_used { *bytes } else { most };
            *bytes = could * 8.0 / 1e6 / self.axis.width_s;
        }
        bytes
    }
}

/// The buffer that bursts filled at a rate in bytes a second, by the most bytes that a flow of the direction had in flight; `None` if no
/// sender told.
fn in_flight_of_bursts(measured: &Measured<'_>, way: usize, rate: f64) -> Option<Buffer> {
    let flows = measured.flows.iter().filter(|(row, of)| *of == way && row.transport == "tcp");
    let most = flows.filter_map(|(row, _)| row.max_in_flight_bytes.filter(|&most| most > 0)).max()?;
    Some(Buffer::new(most.min(1 << 32) as f64 - rate * measured.base_ms / 1e3, Basis::InFlight))
}

impl Binned {
    fn of(measured: &Measured<'_>, axis: &Axis, way: usize, bytes: Vec<f64>) -> Binned {
        let flows = || measured.flows.iter().filter(|(_, of)| *of == way).map(|(row, _)| row);
        let (mut is_used, mut is_loaded) = (vec![false; axis.count], vec![false; axis.count]);
        flows().for_each(|row| axis.mark(&mut is_used, row));
        let spare = Spare::of((&measured.flows, &measured.held), axis, way, &is_used);
        let loads = [FORWARD, BACKWARD].map(|way| measured.may_fill(way).map(|row| row.goodput_mbps).sum::<f64>());
        if loads[way] >= loads[1 - way] * LEAST_LOAD {
            measured.may_fill(way).for_each(|row| axis.mark(&mut is_loaded, row));
            is_loaded.iter_mut().zip(&spare.bins).for_each(|(is_loaded, is_spare)| *is_loaded &= !is_spare);
        }
        let (mut owds, mut in_flight) = (vec![Mean::default(); axis.count], vec![0_u64; axis.count]);
        let mut shortest = f64::INFINITY;
        let ways = measured.ways();
        let is_own = |flow: &str, conn: u32| ways.get(&(flow, conn)) == Some(&way);
        // A flow may have several samples in a bin: the most counts.
        let mut latest: BTreeMap<(&str, u32), (usize, u64)> = BTreeMap::new();
        for row in measured.samples().filter(|row| is_own(row.flow, row.conn)) {
            let Some(bin) = axis.bin(row.t_s) else { continue };
            if let Some(owd_ms) = row.owd_ms.filter(|ms| is_time(*ms)) {
                owds[bin].add(owd_ms);
                shortest = shortest.min(owd_ms);
            }
            let bytes = row.in_flight_bytes.unwrap_or(0).min(1 << 32);
            let (last, counted) = latest.entry((row.flow, row.conn)).or_insert((bin, 0));
            if *last != bin {
                (*last, *counted) = (bin, 0);
            }
            in_flight[bin] += bytes.saturating_sub(*counted);
            *counted = bytes.max(*counted);
        }
        let owd_rows = measured.tables.owds.iter().filter(|row| measured.is_of(row.point, row.run));
        let of_way = owd_rows.filter(|row| is_own(row.flow, row.conn) && is_time(row.owd_ms));
        shortest = of_way.map(|row| row.owd_ms).fold(shortest, f64::min);
        let waited_ms = owds.iter().map(|owd| owd.get().map(|ms| (ms - shortest).max(0.0))).collect();
        Binned { bytes, is_used, is_loaded, spare, waited_ms, in_flight }
    }

    /// The waiting times; of a bin in which nothing arrived, those of the next arrivals: had the direction stood still, they would
    /// have waited.
    fn waited_or_next(&self) -> Vec<Option<f64>> {
        let mut waited = self.waited_ms.clone();
        let mut next = None;
        for one in waited.iter_mut().rev() {
            next = one.or(next);
            *one = next;
        }
        waited
    }
}

/// Whether a number can be a time of a packet in milliseconds.
fn is_time(ms: f64) -> bool {
    (0.0..1e6).contains(&ms)
}

/// A quantile of some values.
fn quantile_of(mut values: Vec<f64>, quantile: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    nearest_place(&values, quantile)
}

/// The IP bytes that each direction carried in each bin.
fn carried(measured: &Measured<'_>, axis: &Axis) -> [Vec<f64>; 2] {
    let mut bytes = [vec![0.0; axis.count], vec![0.0; axis.count]];
    let mut add = |row: &FlowRow<'_>, way: usize, from_s: f64, to_s: f64, goodput: f64, throughput: Option<f64>| {
        axis.add(&mut bytes[way], from_s, to_s, throughput.unwrap_or(goodput * OVERHEAD));
        if row.transport == "tcp" {
            axis.add(&mut bytes[1 - way], from_s, to_s, goodput * ACKS);
        }
    };
    // Each flow with the time of its last sample, and whether there was one.
    let flows = measured.flows.iter().map(|(row, way)| ((row.flow, row.conn), (row, *way, row.start_s, false)));
    let mut flows: BTreeMap<_, _> = flows.collect();
    for row in measured.samples() {
        let found = flows.get_mut(&(row.flow, row.conn));
        let Some(&mut (flow, way, ref mut last_s, ref mut is_sampled)) = found else { continue };
        add(flow, way, mem::replace(last_s, row.t_s), row.t_s, row.goodput_mbps, row.throughput_mbps);
        *is_sampled = true;
    }
    for &(row, way, _, _) in flows.values().filter(|(_, _, _, is_sampled)| !is_sampled) {
        add(row, way, row.measured_from_s, row.measured_to_s, row.goodput_mbps, None);
    }
    bytes
}

/// How much longer than the base round-trip times were in each bin.
fn rtts(measured: &Measured<'_>, axis: &Axis) -> Vec<Option<f64>> {
    let ways = measured.ways();
    let mut rtts = vec![Mean::default(); axis.count];
    for row in measured.samples().filter(|row| ways.contains_key(&(row.flow, row.conn))) {
        let rtt_ms = row.rtt_ms.or(row.srtt_ms).filter(|ms| is_time(*ms));
        if let (Some(bin), Some(rtt_ms)) = (axis.bin(row.t_s), rtt_ms) {
            rtts[bin].add((rtt_ms - measured.base_ms).max(0.0));
        }
    }
    rtts.into_iter().map(Mean::get).collect()
}

#[cfg(test)]
mod tests;
