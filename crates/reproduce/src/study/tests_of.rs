//! The tests of results, with what measures need of their samples.

use crate::pattern::is_flow;
use record::Results;
use record::tables::{FlowRow, MobilityRow, RadioRow, SampleRow};
use std::collections::BTreeMap;

/// All tests of all runs, in the order of the flow table.
#[derive(Debug, Default)]
pub(crate) struct Study {
    tests: Vec<Test>,
}

/// The copies of a flow in a run: a test.
#[derive(Debug, Default)]
pub(crate) struct Test {
    pub(crate) point: u32,
    pub(crate) run: u32,
    pub(crate) flow: String,
    /// The host that sends, which is a UE's name if it is one.
    from: String,
    pub(crate) copies: Vec<OneFlow>,
    /// What its UE measured at each sampling moment.
    pub(super) radio: Vec<Radio>,
    /// When its UE changed its cell.
    pub(super) handovers: Vec<f64>,
}

/// A flow of a test.
#[derive(Debug, Default)]
pub(crate) struct OneFlow {
    pub(crate) goodput_mbps: f64,
    pub(super) payload_mb: f64,
    pub(crate) rtt_ms: f64,
    pub(crate) in_flight_kb: f64,
    pub(super) sent: f64,
    pub(super) retransmitted: f64,
    pub(super) timeouts: f64,
    pub(super) dup_acks: f64,
    /// While the application has data.
    pub(crate) samples: Vec<Sample>,
    /// The latest round-trip time so far, ms.
    latest_rtt_ms: f64,
}

/// A sample of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) t_s: f64,
    pub(crate) goodput_mbps: f64,
    pub(crate) in_flight_kb: f64,
    pub(crate) rto_ms: f64,
    pub(crate) srtt_ms: f64,
    /// The latest round-trip time, of this interval or an earlier one.
    pub(super) latest_rtt_ms: f64,
    /// The latest round-trip time of this interval; NaN if it has none.
    pub(super) rtt_ms: f64,
    pub(super) probes_rtt: bool,
}

/// A sample of a UE.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Radio {
    pub(super) t_s: f64,
    pub(super) rsrp_dbm: f64,
}

impl Study {
    /// Collects the tests: each TCP flow of a run with at least two copies, or any other.
    pub(crate) fn new(results: &Results) -> Study {
        let mut tests: Vec<Test> = Vec::new();
        let mut places = BTreeMap::new();
        for row in results.tables.flows.iter().filter(|row| row.transport == "tcp") {
            let key = (row.point, row.run, row.flow.to_owned());
            let place = *places.entry(key).or_insert_with(|| {
                tests.push(Test::new(&row));
                tests.len() - 1
            });
            tests[place].copies.push(OneFlow::new(&row));
        }
        let mut key = (0, 0, String::new());
        let mut last = None;
        for row in results.tables.samples.iter() {
            // The samples of a test follow each other.
            if last.is_none() || (row.point, row.run) != (key.0, key.1) || row.flow != key.2 {
                key = (row.point, row.run, row.flow.to_owned());
                last = places.get(&key).copied();
            }
            if let Some(copy) = last.and_then(|place| tests[place].copies.get_mut(row.conn as usize)) {
                copy.add(&row);
            }
        }
        let mut study = Study { tests };
        study.add_radio(results);
        study
    }

    /// Returns the tests at a point whose flow matches a pattern.
    pub(crate) fn matching<'a>(&'a self, point: u32, pattern: &'a str) -> impl Iterator<Item = &'a Test> {
        self.tests.iter().filter(move |test| test.point == point && is_flow(pattern, &test.flow))
    }

    fn add_radio(&mut self, results: &Results) {
        // Tests of a UE do not overlap, and follow each other in time.
        let mut of_ue: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (i, test) in self.tests.iter().enumerate() {
            let Some((from, to)) = test.span() else { continue };
            of_ue.entry((test.point, test.run, test.from.as_str())).or_default().push((from, to, i));
        }
        let mut found: Vec<(usize, Radio)> = Vec::new();
        let mut changes: Vec<(usize, f64)> = Vec::new();
        for tests in of_ue.values_mut() {
            tests.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let tests_at = |point, run, ue: &str, t: f64| -> Vec<usize> {
            let Some(tests) = of_ue.get(&(point, run, ue)) else { return Vec::new() };
            let until = tests.partition_point(|&(from, ..)| from <= t);
            tests[..until].iter().rev().take(4).filter(|&&(_, to, _)| t <= to).map(|&(.., i)| i).collect()
        };
        for RadioRow { point, run, ue, t_s, rsrp_dbm, .. } in results.tables.radio.iter() {
            found.extend(tests_at(point, run, ue, t_s).into_iter().map(|i| (i, Radio { t_s, rsrp_dbm })));
        }
        for MobilityRow { point, run, ue, t_s, event, .. } in results.tables.mobility.iter() {
            if event == "left" {
                changes.extend(tests_at(point, run, ue, t_s).into_iter().map(|i| (i, t_s)));
            }
        }
        found.into_iter().for_each(|(i, radio)| self.tests[i].radio.push(radio));
        changes.into_iter().for_each(|(i, t)| self.tests[i].handovers.push(t));
    }
}

impl Test {
    fn new(row: &FlowRow) -> Test {
        let (flow, from) = (row.flow.to_owned(), row.from.to_owned());
        Test { point: row.point, run: row.run, flow, from, ..Test::default() }
    }

    /// Returns the times of the first and the last sample.
    fn span(&self) -> Option<(f64, f64)> {
        let ends = self.copies.iter().filter_map(|copy| Some((copy.samples.first()?.t_s, copy.samples.last()?.t_s)));
        ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Returns the moments at which all flows have a sample, and the samples.
    pub(super) fn moments(&self) -> impl Iterator<Item = Vec<&Sample>> {
        let n = self.copies.iter().map(|copy| copy.samples.len()).min().unwrap_or(0);
        (0..n).map(|i| self.copies.iter().map(|copy| &copy.samples[i]).collect())
    }
}

impl OneFlow {
    fn new(row: &FlowRow) -> OneFlow {
        let count = |count: Option<u64>| count.map_or(f64::NAN, |count| count as f64);
        OneFlow {
            goodput_mbps: row.goodput_mbps,
            payload_mb: row.bytes as f64 / 1e6,
            rtt_ms: row.rtt_mean_ms.unwrap_or(f64::NAN),
            in_flight_kb: row.mean_in_flight_bytes.unwrap_or(f64::NAN) / 1e3,
            sent: count(row.segments_sent),
            retransmitted: count(row.retransmitted_data()),
            timeouts: count(row.rtos),
            dup_acks: count(row.max_dup_acks),
            samples: Vec::new(),
            latest_rtt_ms: f64::NAN,
        }
    }

    fn add(&mut self, row: &SampleRow) {
        self.latest_rtt_ms = row.rtt_ms.unwrap_or(self.latest_rtt_ms);
        // Before the handshake, and while the rest drains, nothing depends on the congestion control.
        if matches!(row.limit, "app" | "idle") {
            return;
        }
        self.samples.push(Sample {
            t_s: row.t_s,
            goodput_mbps: row.goodput_mbps,
            in_flight_kb: row.in_flight_bytes.map_or(f64::NAN, |bytes| bytes as f64 / 1e3),
            rto_ms: row.rto_ms.unwrap_or(f64::NAN),
            srtt_ms: row.srtt_ms.unwrap_or(f64::NAN),
            latest_rtt_ms: self.latest_rtt_ms,
            rtt_ms: row.rtt_ms.unwrap_or(f64::NAN),
            probes_rtt: row.state == "probe-rtt",
        });
    }
}
