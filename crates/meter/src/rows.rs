//! The outcome as tables. A load is a point; a flow is called `download` or `upload`, with its congestion control if those of a
//! direction differ ([`Load::name`]), and with its number as `conn`.

use observe::kernel::Way;
use record::tables::{LatencyRow, ResponsivenessRow, WaitRow};
use record::told::{Told, add_cells, add_flow};
use record::{Tables, ms};
use units::Time;

use crate::kinds::Probe;
use crate::outcome::{LEAST_WAIT, Load, Outcome};

/// The name of this end in tables.
pub(crate) const CLIENT: &str = "client";
/// The name of the other end.
pub(crate) const SERVER: &str = "server";

impl Outcome {
    /// Returns the tables of the measurement. Times are from its beginning.
    pub fn tables(&self) -> Tables {
        let mut tables = Tables::default();
        for (load, point) in self.loads.iter().zip(0..) {
            // A row would say that a flow of which nothing is known delivered 0 bytes.
            for flow in load.flows.iter().filter(|flow| flow.total().is_some()) {
                let (from, to) = ends(flow.way);
                let name = load.name(flow);
                let told = Told {
                    flow: &name,
                    conn: flow.number as u32,
                    from,
                    to,
                    at_sender: flow.way == Way::Up,
                    has_senders_rtt: flow.way == Way::Up,
                    is_whole: true,
                    has_state: true,
                    counts_bytes: false,
                };
                add_flow(&mut tables, flow, load.times.after, point, &told);
            }
            for latency in &self.latencies {
                let Some(phase) = load.phase(latency.at) else { continue };
                let hop = if let Probe::Hop(limit) = latency.probe { Some(limit.into()) } else { None };
                tables.latencies.push(&LatencyRow {
                    point,
                    run: 0,
                    t_s: latency.at.as_secs_f64(),
                    probe: latency.probe.name(),
                    hop,
                    phase: phase.name(),
                    rtt_ms: latency.rtt.map(ms),
                });
            }
            for (at, located) in self.waits(load) {
                tables.waits.push(&WaitRow {
                    point,
                    run: 0,
                    t_s: at.as_secs_f64(),
                    host_ms: located.host.map(ms),
                    modem_ms: located.modem.map(ms),
                    network_ms: located.network.map(ms),
                    total_ms: located.total.map(ms),
                    behind_ms: located.behind.map(|behind| behind.ms),
                    error_ms: located.behind.map(|behind| behind.error_ms),
                    worst: located.worst(LEAST_WAIT).map_or("", |(place, _)| place.name()),
                });
            }
            if let Some(of) = self.responsiveness(load) {
                tables.responsiveness.push(&ResponsivenessRow {
                    point,
                    run: 0,
                    direction: direction(load),
                    rpm: of.rpm,
                    foreign_ms: ms(of.foreign),
                    loaded_ms: ms(of.loaded),
                });
            }
        }
        add_cells(&mut tables, &self.cells, |at| self.load_at(at));
        tables
    }

    /// The number of the load that a moment belongs to, with the probes before and after it.
    fn load_at(&self, at: Time) -> Option<u32> {
        self.loads.iter().position(|load| load.phase(at).is_some()).map(|point| point as u32)
    }
}

/// The directions of a load's flows.
fn direction(load: &Load) -> &'static str {
    if !load.has(Way::Up) {
        Way::Down.name()
    } else if !load.has(Way::Down) {
        Way::Up.name()
    } else {
        "both"
    }
}

/// The hosts that send and receive the data of flows of a direction, as tables call them.
pub fn ends(way: Way) -> (&'static str, &'static str) {
    match way {
        Way::Down => (SERVER, CLIENT),
        Way::Up => (CLIENT, SERVER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::LoadTimes;
    use observe::kernel::{Flow, Remote, State};
    use observe::progress::Samples;
    use record::Results;
    use units::Span;
    use wire::tcp_info::TcpInfo;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    /// A flow of a second whose sender always has data to send and never fills its window.
    fn flow(way: Way, number: usize, congestion: &str) -> Flow {
        let sample = |ms: u64| {
            let counted = |micros: u64| Some(micros);
            let info = TcpInfo {
                rtt: 20_000 + number as u32,
                snd_cwnd: 10,
                snd_mss: 1000,
                notsent_bytes: 1,
                busy_time: counted(ms * 1000),
                rwnd_limited: counted(0),
                sndbuf_limited: counted(0),
                ..TcpInfo::default()
            };
            State { at: at(ms), raw: Box::default(), info, bbr: None, delivered: ms }
        };
        let mut bytes = Samples::default();
        bytes.record(Span::ZERO, 0);
        bytes.finish(Span::from_secs(1), 1_000_000);
        Flow {
            way,
            number,
            congestion: congestion.into(),
            start: at(0),
            bytes,
            acknowledged: false,
            ended: None,
            before: None,
            samples: vec![sample(0), sample(1000)],
            remote: Remote::default(),
            passages: Vec::new(),
            failure: None,
        }
    }

    /// What the summary has of a flow.
    type Shown = (String, Option<String>, f64, Option<[f64; 2]>);

    /// The name, the congestion control, the copies, and the shares of congestion window and pacing of each flow in the summary.
    fn summary(flows: Vec<Flow>) -> Vec<Shown> {
        let outcome = Outcome {
            loads: vec![Load { times: LoadTimes::of_ms([0, 0, 0, 2000, 2000]), flows }],
            finished: 1,
            ..Outcome::default()
        };
        let mut results = Results { tables: outcome.tables(), ..Results::default() };
        results.meta.points.push(record::Point::default());
        let point = results.summary().points.swap_remove(0);
        let of = |flow: record::FlowSummary| {
            let limited = flow.limited.map(|limited| [limited.cwnd.mean, limited.pacing.mean]);
            (flow.flow, flow.cc, flow.copies.mean, limited)
        };
        point.flows.into_iter().map(of).collect()
    }

    #[test]
    fn flows_of_different_congestion_controls_are_told_apart() {
        let up = |number, congestion| flow(Way::Up, number, congestion);
        let told = summary(vec![up(0, "cubic"), up(1, "bbr"), up(2, "cubic"), up(3, "reno"), flow(Way::Down, 0, "")]);
        let name = |name: &str, cc: &str, copies, limited| (name.to_owned(), Some(cc.to_owned()), copies, limited);
        let expected = [
            name("upload-cubic", "cubic", 2.0, Some([1.0, 0.0])),
            name("upload-bbr", "bbr", 1.0, Some([0.0, 1.0])),
            name("upload-new-reno", "new-reno", 1.0, Some([1.0, 0.0])),
            ("download".to_owned(), None, 1.0, None),
        ];
        assert_eq!(told, expected);
        let alike = summary(vec![up(0, "bbr"), up(1, "bbr"), flow(Way::Down, 0, "cubic")]);
        assert_eq!(
            alike.iter().map(|flow| (&*flow.0, flow.2)).collect::<Vec<_>>(),
            [("upload", 2.0), ("download", 1.0)]
        );
    }
}
