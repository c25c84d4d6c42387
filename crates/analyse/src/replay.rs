//! A scenario that replays a point: the same flows with the same congestion controls at the same times, over the radio or the capacity
//! that was measured. What an application held back is replayed as it was written, what a receive window held back with this window, and
//! what ended by itself with its bytes: see `demand`.
//!
//! With received powers (tables `modem` and `radio`), the network is a cell for each one that served, with a recorded channel. Of cells
//! that did not serve nothing is recorded: just before and after its time, one is taken for [`serving::MARGIN_DB`] weaker than the one that
//! served, so that handovers happen when they did, and otherwise for out of reach. Without them, or on request, the network is one link,
//! whose capacity is what the flows got of it.
//!
//! What nothing measured is a comment in the scenario, to be edited: the bandwidth of the carrier, the load of the cells, and what the
//! flows could have had beyond what they got. How capacities and buffers are inferred is told in `directions`.

mod axis;
mod demand;
mod directions;
mod spare;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use import::channel::Quantity;
use import::serving::{self, Serving};
use import::{Columns, rates};
use record::Results;
use record::tables::{FlowRow, Tables};

use crate::collector::Error;
use crate::why::{Held, Hold, held};
use demand::Demand;
use directions::{BACKWARD, Directions, FORWARD, Measured};

/// Flows that are replayed: the largest.
const MOST_FLOWS: usize = 64;
/// The longest replay in seconds.
const LONGEST_S: f64 = 86_400.0;
/// Steps of the rates of all applications together: a scenario file has no more than 1 MiB.
const MOST_STEPS: usize = 20_000;
/// What a round trip over an idle LTE cell takes beside the wired path.
const RADIO_RTT_MS: f64 = 20.0;
/// Bytes of the headers of a datagram (IPv4 and UDP: RFC 791, RFC 768), and of the largest payload that fits into a packet,
/// which is taken where nobody tells its size.
const DATAGRAM_HEADERS: f64 = 28.0;
const MOST_DATAGRAM: f64 = 1_472.0;

/// What the flows of a replay share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Cells where received powers were recorded, elsewhere a link.
    Measured,
    /// A link, whatever was recorded.
    Link,
}

/// A scenario, and the files that it names.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay {
    /// The scenario's text.
    pub scenario: String,
    /// Files beside it, with their names.
    pub files: Vec<(String, String)>,
    /// What a reader has to know: a line each. They are comments of the scenario, too.
    pub notes: Vec<String>,
}

/// Makes the scenario of a point. `name` is what the names of its files begin with.
///
/// # Errors
/// [`Error::Invalid`] if there is no such point, or no flow in it that can be replayed.
pub fn replay(results: &Results, point: Option<u32>, over: Over, name: &str) -> Result<Replay, Error> {
    let point = choose(results, point)?;
    // Our own results have the flows that somebody asked for; of others, nobody knows why they were there.
    let strangers = results.meta.points.get(point as usize).is_none_or(|point| !point.values.contains_key("results"));
    let source = Source::of(&results.tables, point, strangers)?;
    let mut notes = source.notes.clone();
    let base_ms = source.base_rtt_ms(&mut notes);
    let directions = Directions::of(&source.measured(base_ms));
    notes.extend(directions.buffer_notes());
    let demands = source.demands(&mut notes);
    // The last that an application wrote is under way for a while.
    let written = demands.iter().any(|demand| matches!(demand, Demand::Steps(_)));
    let seconds = source.seconds + if written { 2.0 * base_ms / 1e3 } else { 0.0 };
    let mut text = String::new();
    let _ = writeln!(text, "title = {}", quoted(&format!("Replay of {}", plain(&results.meta.title))));
    let _ = writeln!(text, "duration = \"{seconds:.3} s\"\n");
    let mut files = Vec::new();
    let serving = if over == Over::Link { None } else { source.serving(&mut notes) };
    let (forward, backward) = match &serving {
        Some(serving) => {
            notes.extend(source.radio_notes(&directions));
            source.radio(serving, &directions, base_ms, name, &mut text, &mut files)?
        }
        None => {
            if directions.ways.iter().any(|way| way.capacity_mbps.is_some()) {
                notes.push(
                    "replay: the capacity is what the flows got: too little where they did not fill it".to_owned(),
                );
            }
            notes.extend(directions.capacity_notes());
            source.link(&directions, base_ms, name, &mut text, &mut files)?
        }
    };
    source.flows(&demands, (forward, backward), &mut text, &mut notes);
    let mut scenario = format!(
        "# Replays {}, point {point}: {}.\n# Written by `ranway analyse --scenario`. What was not measured is marked below: edit it.\n",
        plain(&results.meta.title),
        plain(&results.meta.points.get(point as usize).map(record::Point::label).unwrap_or_default()),
    );
    for note in &notes {
        let _ = writeln!(scenario, "# {}.", note.strip_prefix("replay: ").unwrap_or(note));
    }
    Ok(Replay { scenario: scenario + "\n" + &text, files, notes })
}

/// The point to replay: the only one, if none is named.
fn choose(results: &Results, point: Option<u32>) -> Result<u32, Error> {
    let points = &results.meta.points;
    let list = || {
        let named = points.iter().take(8).enumerate();
        let named: Vec<String> = named.map(|(number, point)| format!("{number} ({})", plain(&point.label()))).collect();
        let more = if points.len() > 8 { format!(", … {}", points.len() - 1) } else { String::new() };
        format!("{}{more}", named.join(", "))
    };
    match point {
        Some(point) if (point as usize) < points.len() => Ok(point),
        Some(point) => Err(Error::Invalid(format!("no point {point}: choose --point from {}", list()))),
        None if points.len() == 1 => Ok(0),
        None => Err(Error::Invalid(format!("a scenario replays one point: choose --point from {}", list()))),
    }
}

/// Text for a comment or a title: one line of printable characters.
fn plain(text: &str) -> String {
    text.chars().filter(|one| !one.is_control()).take(200).collect()
}

/// A string of TOML: its escapes are those of JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The ends of a flow in the scenario.
type Ends = (&'static str, &'static str);

/// What served, with its received powers, in the order of time, and the radio access technology.
struct Radio {
    serving: Vec<Serving>,
    is_nr: bool,
    frequency_mhz: Option<f64>,
}

/// A point's flows and tables.
struct Source<'a> {
    tables: &'a Tables,
    point: u32,
    run: u32,
    /// The flows, the largest first, and what held the sender of each back.
    flows: Vec<FlowRow<'a>>,
    held: Vec<Held>,
    /// When the first one began, and how long all of them took.
    start_s: f64,
    seconds: f64,
    notes: Vec<String>,
}

impl<'a> Source<'a> {
    fn of(tables: &'a Tables, point: u32, strangers: bool) -> Result<Source<'a>, Error> {
        let mut notes = Vec::new();
        let run = tables.flows.iter().filter(|row| row.point == point).map(|row| row.run).min().unwrap_or(0);
        let is_usable = |row: &FlowRow<'_>| {
            let times = [row.measured_from_s, row.measured_to_s, row.goodput_mbps, row.start_s];
            row.bytes > 0 && times.iter().all(|time| (0.0..1e9).contains(time)) && row.measured_to_s > row.start_s
        };
        let of_point = tables.flows.iter().filter(|row| row.point == point && row.run == run);
        let mut flows: Vec<FlowRow<'a>> =
            of_point.filter(|row| ["tcp", "udp"].contains(&row.transport) && is_usable(row)).collect();
        if flows.is_empty() {
            return Err(Error::Invalid(format!("point {point} has no flow of TCP or UDP to replay")));
        }
        flows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
        let ends = flows.len();
        one_of_both_ends(&mut flows);
        if flows.len() < ends {
            notes.push(format!(
                "replay: {} connections were recorded at both of their ends, and are one flow each",
                ends - flows.len()
            ));
        }
        let (all, most) = (flows.len(), flows[0].bytes);
        if strangers {
            flows.retain(|row| !row.is_aside(most));
        }
        if flows.len() < all {
            let what =
                "connections that carried little beside the largest (control connections, requests) are left out";
            notes.push(format!("replay: {} {what}", all - flows.len()));
        }
        if flows.len() > MOST_FLOWS {
            notes.push(format!("replay: only the {MOST_FLOWS} largest of {} flows", flows.len()));
            flows.truncate(MOST_FLOWS);
        }
        let start_s = flows.iter().map(|row| row.start_s).fold(f64::INFINITY, f64::min);
        let end_s = flows.iter().map(|row| row.measured_to_s).fold(0.0, f64::max);
        let seconds = (end_s - start_s).max(1.0);
        if seconds > LONGEST_S {
            notes.push("replay: only the first 24 hours".to_owned());
        }
        let held = held(tables, &flows);
        Ok(Source { tables, point, run, flows, held, start_s, seconds: seconds.min(LONGEST_S), notes })
    }

    /// What each flow wanted to send.
    fn demands(&self, notes: &mut Vec<String>) -> Vec<Demand> {
        let is_told = |row: &FlowRow<'_>| {
            let of = |point, run, flow: &str, conn| self.is_of(point, run) && (flow, conn) == (row.flow, row.conn);
            self.tables.tcp_flows.iter().any(|packets| of(packets.point, packets.run, packets.flow, packets.conn))
        };
        let most = (MOST_STEPS / self.flows.len()).max(1);
        let of = |(row, held): (&FlowRow<'_>, &Held)| Demand::of(row, held, is_told(row), most);
        let demands: Vec<Demand> = self.flows.iter().zip(&self.held).map(of).collect();
        let written = demands.iter().filter(|demand| matches!(demand, Demand::Steps(_))).count();
        if written > 0 {
            notes.push(format!(
                "replay: of {written} flows the application, not the path, held the sender back: they write what they wrote"
            ));
        }
        let is_unknown = |(row, held): &(&FlowRow<'_>, &Held)| row.transport == "tcp" && held.told_by.is_none();
        let unknown = self.flows.iter().zip(&self.held).filter(is_unknown).count();
        if unknown > 0 {
            notes.push(format!(
                "replay: nothing tells what held back the senders of {unknown} flows: they send as much as the path takes"
            ));
        }
        demands
    }

    fn is_of(&self, point: u32, run: u32) -> bool {
        (point, run) == (self.point, self.run)
    }

    /// The smallest round-trip time that anything measured. Where no flow ever filled the path, nothing waited, and what was usual is the
    /// path's.
    fn base_rtt_ms(&self, notes: &mut Vec<String>) -> f64 {
        let is_idle = |(row, held): (&FlowRow<'_>, &Held)| row.transport == "tcp" && held.share(&[Hold::App]) >= 0.9;
        if let Some(usual) = self.flows[0].rtt_p50_ms.filter(|ms| ms.is_finite() && *ms > 0.0)
            && self.flows.iter().zip(&self.held).all(is_idle)
        {
            return usual.min(10_000.0);
        }
        let flows = self.flows.iter().filter_map(|row| row.rtt_min_ms);
        let kernel = self.tables.tcp_info.iter().filter(|row| self.is_of(row.point, row.run));
        let kernel = kernel.filter_map(|row| row.min_rtt_us).map(|us| us as f64 / 1e3);
        let probes = self.tables.latencies.iter().filter(|row| self.is_of(row.point, row.run) && row.probe != "hop");
        let all = flows.chain(kernel).chain(probes.filter_map(|row| row.rtt_ms));
        let least = all.filter(|ms| ms.is_finite() && *ms > 0.0).fold(f64::INFINITY, f64::min);
        if least.is_finite() {
            return least.min(10_000.0);
        }
        notes.push("replay: no round-trip time was measured, 50 ms are assumed".to_owned());
        50.0
    }

    /// What tells of both directions.
    fn measured(&self, base_ms: f64) -> Measured<'a> {
        let way = |row: &FlowRow<'_>| if self.is_forward(row) { FORWARD } else { BACKWARD };
        Measured {
            tables: self.tables,
            point: self.point,
            run: self.run,
            start_s: self.start_s,
            seconds: self.seconds,
            base_ms,
            flows: self.flows.iter().map(|row| (*row, way(row))).collect(),
            held: self.held.clone(),
        }
    }

    /// Whether a flow goes the way of the largest one.
    fn is_forward(&self, row: &FlowRow<'_>) -> bool {
        let first = &self.flows[0];
        row.from == first.from || row.to == first.to && row.to != first.from
    }

    /// The cells that served, if their received power was recorded.
    fn serving(&self, notes: &mut Vec<String>) -> Option<Radio> {
        let rows = || self.tables.modem.iter().filter(|row| self.is_of(row.point, row.run));
        let mut modems: BTreeMap<&str, usize> = BTreeMap::new();
        rows().for_each(|row| *modems.entry(row.modem).or_default() += usize::from(row.rsrp_dbm.is_some()));
        let modem = modems.iter().max_by_key(|(_, count)| **count).map(|(modem, _)| *modem);
        if modems.len() > 1 {
            notes.push(format!("replay: of {} modems, the one that told most", modems.len()));
        }
        let of_modem = || rows().filter(|row| Some(row.modem) == modem);
        let is_nr = !of_modem().any(|row| row.technology == "lte") && of_modem().any(|row| row.technology == "nr");
        let technology = if is_nr { "nr" } else { "lte" };
        let usable = || of_modem().filter(|row| row.technology == technology);
        let mut serving: Vec<Serving> = usable()
            .filter_map(|row| {
                let cell = match (row.cell, row.pci) {
                    (Some(cell), _) => format!("cell-{cell}"),
                    (None, Some(pci)) => format!("pci-{pci}"),
                    (None, None) => "cell".to_owned(),
                };
                Some(Serving { at_s: row.t_s, cell, value: row.rsrp_dbm? })
            })
            .collect();
        let mut is_nr = is_nr;
        if serving.is_empty() {
            // A simulated UE: the one that most flows end at.
            let ue = self.ue()?;
            let rows = self.tables.radio.iter().filter(|row| self.is_of(row.point, row.run) && row.ue == ue);
            let rows = rows.filter(|row| !row.cell.is_empty());
            serving =
                rows.map(|row| Serving { at_s: row.t_s, cell: sanitised(row.cell), value: row.rsrp_dbm }).collect();
            is_nr = false;
        }
        let frequency_mhz = usable().find_map(|row| row.frequency_mhz);
        serving.retain(|one| one.at_s.is_finite() && (-200.0..=50.0).contains(&one.value));
        serving.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        for one in &mut serving {
            one.at_s -= self.start_s;
        }
        // What held at the beginning, and what came during the replay.
        let before = serving.partition_point(|one| one.at_s <= 0.0).saturating_sub(1);
        serving.drain(..before);
        serving.retain(|one| one.at_s <= self.seconds);
        if let Some(first) = serving.first_mut() {
            first.at_s = 0.0;
        }
        (!serving.is_empty()).then_some(Radio { serving, is_nr, frequency_mhz })
    }

    /// The UE of simulated results at an end of the largest flow.
    fn ue(&self) -> Option<&'a str> {
        let first = &self.flows[0];
        let is_ue = |name: &str| self.tables.radio.iter().any(|row| self.is_of(row.point, row.run) && row.ue == name);
        [first.to, first.from].into_iter().find(|name| is_ue(name))
    }

    /// Whether the phone sends the largest flow; `None` if nothing tells.
    fn phone_sends(&self) -> Option<bool> {
        let first = &self.flows[0];
        match (first.from, first.to) {
            ("client", _) | (_, "server") => Some(true),
            (_, "client") | ("server", _) => Some(false),
            _ => self.ue().map(|ue| ue == first.from),
        }
    }

    /// What the cells of a replay cannot take from a measurement: the capacity follows from received power, bandwidth, interference and
    /// the share of other users, of which it is one number for three unknowns.
    fn radio_notes(&self, directions: &Directions) -> Vec<String> {
        let sends = self.phone_sends().unwrap_or(false);
        let names = if sends { ["uplink", "downlink"] } else { ["downlink", "uplink"] };
        let told = directions.ways.iter().zip(names).filter_map(|(way, name)| Some((way.full_mbps?, name)));
        told.map(|(mbps, name)| {
            format!(
                "replay: while the flows filled it, the {name} carried {mbps:.1} Mbit/s; the cells are not scaled to that, because \
                 nothing tells whether bandwidth, interference or other users made it so: compare the replay with it, and change \
                 `bandwidth`, the cells' `load` or the number of UEs; --link replays the capacity itself"
            )
        })
        .collect()
    }

    /// Writes a network of cells. Returns the ends of flows that go the way of the largest one, and of others.
    fn radio(
        &self,
        radio: &Radio,
        directions: &Directions,
        base_ms: f64,
        name: &str,
        text: &mut String,
        files: &mut Vec<(String, String)>,
    ) -> Result<(Ends, Ends), Error> {
        let channels = serving::channels(&radio.serving, Quantity::Rsrp, serving::MARGIN_DB)
            .map_err(|error| Error::Invalid(format!("replay: {error}")))?;
        let delay_ms = ((base_ms - RADIO_RTT_MS) / 2.0).max(0.0);
        let (table, carrier) = match (radio.is_nr, radio.frequency_mhz) {
            (true, Some(mhz)) if (410.0..=7125.0).contains(&mhz) => {
                ("nr", format!("frequency_mhz = {mhz:.1}\nbandwidth_mhz = 100 # not measured"))
            }
            (true, _) => ("nr", "frequency_mhz = 3500.0 # not measured\nbandwidth_mhz = 100 # not measured".to_owned()),
            (false, _) => ("lte", "bandwidth = \"20 MHz\" # not measured".to_owned()),
        };
        let _ = writeln!(text, "[{table}]\n{carrier}");
        let _ = writeln!(
            text,
            "server_delay = \"{delay_ms:.3} ms\" # half of the smallest round-trip time, less {RADIO_RTT_MS} ms of radio"
        );
        let _ =
            writeln!(text, "# A cell's times are those of its recording; the event of a handover follows it at once.");
        let _ = writeln!(text, "handover = {{ time_to_trigger = \"40 ms\", filter = 0 }}");
        let _ = writeln!(text, "cells = [");
        for cell in channels.keys() {
            let _ = writeln!(
                text,
                "    {{ name = {}, position = [0, 0, 30], power_dbm = 46 }}, # place and power not measured",
                quoted(cell)
            );
        }
        let _ = writeln!(
            text,
            "]\n\n[[{table}.ues]]\nname = \"phone\"\nmobility = [100, 0, 1.5] # of no effect: the channel is recorded"
        );
        let sends = self.phone_sends();
        if sends.is_none() {
            let _ = writeln!(text, "# Nothing tells which end of the flows the phone is: it receives the largest.");
        }
        let sends = sends.unwrap_or(false);
        let (up, down) = if sends { (FORWARD, BACKWARD) } else { (BACKWARD, FORWARD) };
        if let Some(buffer) = directions.ways[up].buffer {
            let _ = writeln!(text, "modem = \"{} B\" {}", buffer.size(), buffer.comment());
            let _ = writeln!(text, "host_queue = {{ kind = \"drop-tail\", packets = 10 }}");
        }
        if let Some(buffer) = directions.ways[down].buffer {
            let queue = format!("{{ kind = \"drop-tail\", bytes = \"{} B\" }}", buffer.size());
            let _ = writeln!(text, "bearer = {{ queue = {queue} }} {}", buffer.comment());
        }
        let named: Vec<String> = channels
            .keys()
            .map(|cell| format!("{} = {}", quoted(cell), quoted(&format!("{name}-{cell}.csv"))))
            .collect();
        let _ = writeln!(text, "channel = {{ kind = \"recorded\", files = {{ {} }} }}\n", named.join(", "));
        for (cell, channel) in channels {
            files.push((format!("{name}-{cell}.csv"), channel.to_csv()));
        }
        let ends = [("phone", "server"), ("server", "phone")];
        Ok(if sends { (ends[0], ends[1]) } else { (ends[1], ends[0]) })
    }

    /// Writes a network of one link. Returns as [`Source::radio`].
    fn link(
        &self,
        directions: &Directions,
        base_ms: f64,
        name: &str,
        text: &mut String,
        files: &mut Vec<(String, String)>,
    ) -> Result<(Ends, Ends), Error> {
        let _ = writeln!(
            text,
            "[dumbbell]\nrtt = \"{base_ms:.3} ms\" # the smallest that was measured, or the usual one if nothing filled the path"
        );
        let mut rate = |way: usize, direction: &str| -> Result<String, Error> {
            let file = format!("{name}-{direction}.trace");
            Ok(match &directions.ways[way].capacity_mbps {
                Some(mbps) => {
                    files.push((file.clone(), self.trace(mbps, directions.bin_s)?));
                    format!("{{ kind = \"trace\", file = {}, offset = \"0 s\" }}", quoted(&file))
                }
                None => "\"1 Gbit/s\" # not measured".to_owned(),
            })
        };
        let _ = writeln!(text, "rate = {}", rate(FORWARD, "forward")?);
        let queue = |way: usize| match directions.ways[way].buffer {
            Some(buffer) => format!("\"{} B\" }} {}", buffer.size(), buffer.comment()),
            None => "\"1 MB\" } # not measured".to_owned(),
        };
        let _ = writeln!(text, "queue = {{ kind = \"drop-tail\", bytes = {}", queue(FORWARD));
        let _ = writeln!(text, "\n[dumbbell.reverse]\nrate = {}", rate(BACKWARD, "backward")?);
        let _ = writeln!(text, "queue = {{ kind = \"drop-tail\", bytes = {}\n", queue(BACKWARD));
        let _ = writeln!(text, "[hosts]\nprocessing = \"0 s\" # contained in the round-trip time\n");
        Ok((("sender", "receiver"), ("receiver", "sender")))
    }

    /// The trace of the capacity of a direction.
    fn trace(&self, mbps: &[f64], bin_s: f64) -> Result<String, Error> {
        let mut table = "time_s,mbps\n".to_owned();
        for (bin, mbps) in mbps.iter().enumerate() {
            let _ = writeln!(table, "{:.6},{mbps:.6}", bin as f64 * bin_s);
        }
        let trace = rates(table.as_bytes(), &Columns::default(), 0.0, Some(self.seconds));
        trace.map(|trace| trace.value.to_string()).map_err(|error| Error::Invalid(format!("replay: {error}")))
    }

    /// Writes the flows, those that go the way of the largest one between the first ends.
    fn flows(&self, demands: &[Demand], ends: (Ends, Ends), text: &mut String, notes: &mut Vec<String>) {
        let mut unknown = 0;
        let mut names: BTreeMap<String, u32> = BTreeMap::new();
        for (row, demand) in self.flows.iter().zip(demands) {
            let (from, to) = if self.is_forward(row) { ends.0 } else { ends.1 };
            let base =
                if ["upload", "download"].contains(&row.flow) || is_simple(row.flow) { row.flow } else { "flow" };
            let count = names.entry(base.to_owned()).or_default();
            *count += 1;
            let start_s = row.start_s - self.start_s;
            let stop_s = (row.measured_to_s - self.start_s).min(self.seconds);
            let _ = writeln!(text, "[[flows]] # {}\nname = {}", plain(row.flow), quoted(&format!("{base}-{count}")));
            let _ = writeln!(text, "from = \"{from}\"\nto = \"{to}\"");
            if row.transport == "udp" {
                // What was sent, if it is known how much of it was lost.
                let arrived = row.segments_sent.zip(row.lost_packets).filter(|(sent, lost)| lost < sent);
                let share = arrived.map_or(1.0, |(sent, lost)| (sent - lost) as f64 / sent as f64);
                let payload = row
                    .segments_sent
                    .filter(|sent| *sent > 0)
                    .map_or(MOST_DATAGRAM, |sent| (row.bytes as f64 / share / sent as f64).clamp(1.0, MOST_DATAGRAM));
                // Both are of packets with their headers.
                let packet = (payload + DATAGRAM_HEADERS).round();
                let rate = (row.goodput_mbps / share).clamp(0.001, 1e5) * 1e6 * packet / (packet - DATAGRAM_HEADERS);
                let _ = writeln!(
                    text,
                    "traffic = {{ kind = \"cbr\", rate = \"{} bit/s\", packet = \"{packet} B\" }}",
                    rate.round() as u64
                );
            } else {
                let (cc, comment) = match (row.cc, row.cc.and_then(cc::Config::named)) {
                    (_, Some(cc)) => (cc.name(), String::new()),
                    (Some(other), None) => ("cubic", format!(" # {} is not simulated", plain(other))),
                    (None, None) => ("cubic", " # not known".to_owned()),
                };
                unknown += usize::from(!comment.is_empty());
                let _ = writeln!(text, "cc = \"{cc}\"{comment}");
                write_demand(demand, text);
            }
            if start_s > 0.0 {
                let _ = writeln!(text, "start = \"{start_s:.6} s\"");
            }
            // What ends by itself needs no stop, and what it writes last may still be under way then.
            if stop_s > start_s && !matches!(demand, Demand::Transfer(_)) {
                let _ = writeln!(text, "stop = \"{stop_s:.6} s\"");
            }
            text.push('\n');
        }
        if unknown > 0 {
            notes.push(format!(
                "replay: CUBIC for {unknown} flows whose congestion control is not known or not simulated"
            ));
        }
    }
}

/// Of a connection between addresses that was recorded at both of its ends, as by ss on one host, leaves the end that knows most: there
/// are no two connections between the same ports at the same time.
fn one_of_both_ends(flows: &mut Vec<FlowRow<'_>>) {
    let knows = |row: &FlowRow<'_>| (row.limited_app.is_some(), row.segments_sent.is_some(), row.bytes);
    let all = flows.clone();
    flows.retain(|row| {
        let is_better = |other: &FlowRow<'_>| (knows(other), row.conn) > (knows(row), other.conn);
        let is_same = |other: &&FlowRow<'_>| {
            let meets = other.start_s < row.measured_to_s && row.start_s < other.measured_to_s;
            row.flow.contains(" > ") && other.flow == row.flow && other.conn != row.conn && meets
        };
        !all.iter().filter(is_same).any(is_better)
    });
}

/// Writes the keys of what a flow wants to send.
fn write_demand(demand: &Demand, text: &mut String) {
    let _ = match demand {
        Demand::Bulk => Ok(()),
        Demand::Window(bytes) => {
            writeln!(text, "tcp = {{ window_clamp = \"{bytes} B\" }} # the receive window held it back")
        }
        Demand::Transfer(bytes) => writeln!(text, "traffic = {{ kind = \"transfer\", size = \"{bytes} B\" }}"),
        Demand::Steps(steps) => {
            let _ = writeln!(text, "traffic = {{ kind = \"steps\", steps = [ # what its application wrote");
            for (at, rate) in steps {
                let _ = writeln!(text, "    [\"{:.3} s\", \"{} bit/s\"],", at.as_secs_f64(), rate.bits_per_sec());
            }
            writeln!(text, "] }}")
        }
    };
}

/// A name of a cell that is a key of TOML and the name of a file.
fn sanitised(name: &str) -> String {
    let name: String =
        name.chars().filter(|one| one.is_ascii_alphanumeric() || *one == '-' || *one == '_').take(40).collect();
    if name.is_empty() { "cell".to_owned() } else { name }
}

/// Whether a flow's name is one of a scenario.
fn is_simple(name: &str) -> bool {
    (1..=40).contains(&name.len()) && sanitised(name) == name
}
