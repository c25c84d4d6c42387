//! Time–sequence figures from the packets of flows, which a scenario records with `record.events`.

use crate::drawn::{Drawn, Kind, Line, POINTS};
use record::Results;
use record::tables::{EventRow, MobilityRow};
use serde::Deserialize;
use units::Span;

/// Bytes of a packet's headers at most: a longer one has data. IP 20, TCP 20 and options 40.
const HEADERS: u32 = 80;

/// A time–sequence figure, as `paper.toml` describes it: of the first point and run, and of the first copy of each flow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    /// Its title.
    pub(crate) title: String,
    /// The flows.
    pub(crate) lines: Vec<Flow>,
    /// Whether time is relative to the first handover of the flow's UE at least `before` after the flow's start, instead of to
    /// the flow's start.
    #[serde(default)]
    handover: bool,
    /// What is shown before the handover.
    #[serde(default)]
    before: Span,
    /// What is shown after the handover, or after the flow's start. Default: everything.
    after: Option<Span>,
}

/// A flow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Flow {
    label: String,
    pub(crate) flow: String,
}

impl Sequence {
    pub(crate) fn draw(&self, results: &Results, blank: Drawn) -> Drawn {
        let lines = self.lines.iter().flat_map(|flow| self.segments(results, flow)).collect();
        let since = if self.handover { "the handover" } else { "the start" };
        let (x, y) = (format!("time since {since}, s"), "sequence number, MB".to_owned());
        Drawn { title: self.title.clone(), kind: Kind::Points, x, y, lines, ..blank }
    }

    /// The segments of a flow that were sent for the first time, those that were sent again, and its acknowledgements.
    fn segments(&self, results: &Results, flow: &Flow) -> Vec<Line> {
        let label = |what: &str| format!("{}{what}", flow.label);
        let line = |what: &str, pairs: Vec<(f64, f64)>| {
            let every = pairs.len().div_ceil(POINTS).max(1);
            let (x, y) = pairs.into_iter().step_by(every).map(|(x, y)| (x, Some(y))).unzip();
            Line { label: label(what), x, y, ..Line::default() }
        };
        let mut first = Vec::new();
        let mut again = Vec::new();
        let mut acknowledged = Vec::new();
        if let Some((zero, from, to)) = self.window(results, &flow.flow) {
            let rows =
                results.tables.events.iter().filter(|row| (row.point, row.run) == (0, 0) && row.flow == flow.flow);
            let mut connection = None;
            let mut initial = None;
            let mut highest = 0;
            let mut newest = 0;
            for EventRow { t_ns, kind, conn, towards, seq, ack, len, .. } in rows {
                if *connection.get_or_insert(conn) != conn || !matches!(kind, "send" | "receive") {
                    continue;
                }
                let t = t_ns as f64 / 1e9;
                let is_shown = (from..=to).contains(&t);
                // The first packet is the handshake's, with the connection's initial number; numbers wrap.
                let initial = *initial.get_or_insert(seq);
                let since_initial = |number: u64| u64::from((number as u32).wrapping_sub(initial as u32));
                let (seq, ack) = (since_initial(seq), since_initial(ack));
                if kind == "send" && towards == "to" && len > HEADERS {
                    let is_new = seq >= highest;
                    highest = highest.max(seq + 1);
                    if is_shown {
                        (if is_new { &mut first } else { &mut again }).push((t - zero, seq as f64 / 1e6));
                    }
                } else if kind == "receive" && towards == "from" && ack > newest {
                    newest = ack;
                    if is_shown {
                        acknowledged.push((t - zero, ack as f64 / 1e6));
                    }
                }
            }
        }
        let mut lines = vec![line("", first), line(", sent again", again)];
        if self.handover {
            lines.push(line(", acknowledged", acknowledged));
        }
        lines
    }

    /// Time zero of a flow's axis, and the first and the last moment that is shown, in seconds of the run. None of a flow that
    /// did not start, or without a handover.
    fn window(&self, results: &Results, flow: &str) -> Option<(f64, f64, f64)> {
        let mut flows = results.tables.flows.iter();
        let row = flows.find(|row| (row.point, row.run) == (0, 0) && row.flow == flow)?;
        let after = self.after.map_or(f64::INFINITY, Span::as_secs_f64);
        if !self.handover {
            return Some((row.start_s, row.start_s, row.start_s + after));
        }
        let before = self.before.as_secs_f64();
        let is_it = |change: &MobilityRow| {
            (change.point, change.run) == (0, 0)
                && change.ue == row.from
                && change.event == "left"
                && change.t_s >= row.start_s + before
        };
        let at = results.tables.mobility.iter().find(is_it)?.t_s;
        Some((at, at - before, at + after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::tables::FlowRow;

    /// Its numbers wrap after the second segment.
    const INITIAL: u64 = (1 << 32) - 2000;

    fn wrapped(number: u64) -> u64 {
        (INITIAL + number) % (1 << 32)
    }

    /// A flow from 1 s on that sends a segment of 1 kB in each 0.1 s: the fourth is lost and sent again after the sixth.
    fn results() -> Results {
        let mut results = Results::default();
        results.tables.flows.push(&FlowRow { flow: "up", from: "bus", start_s: 1.0, ..FlowRow::default() });
        for (t_s, event) in [(0.5, "left"), (1.3, "triggered"), (1.4, "left")] {
            results.tables.mobility.push(&MobilityRow { ue: "bus", t_s, event, ..MobilityRow::default() });
        }
        let mut send = |tenths: u64, conn, seq, len| {
            let row = EventRow {
                t_ns: tenths * 100_000_000,
                kind: "send",
                flow: "up",
                conn,
                towards: "to",
                ..EventRow::default()
            };
            results.tables.events.push(&EventRow { seq, len, ..row });
        };
        send(10, 7, INITIAL, 60);
        for (tenths, seq) in [(11, 1), (12, 1001), (13, 2001), (14, 3001), (15, 4001), (16, 5001), (17, 3001)] {
            send(tenths, 7, wrapped(seq), 1052);
            // Another copy of the flow.
            send(tenths, 8, wrapped(seq + 50), 1052);
        }
        for (tenths, ack) in [(12, 1001), (13, 2001), (14, 3001), (15, 3001), (18, 6001)] {
            let row =
                EventRow { t_ns: tenths * 100_000_000, kind: "receive", flow: "up", conn: 7, ..EventRow::default() };
            results.tables.events.push(&EventRow { towards: "from", ack: wrapped(ack), len: 52, ..row });
        }
        results
    }

    fn drawn(more: &str) -> Vec<Line> {
        let text = format!("title = 't'\nlines = [{{ label = 'a', flow = 'up' }}]\n{more}");
        let sequence: Sequence = toml::from_str(&text).unwrap();
        sequence.draw(&results(), Drawn::blank("paper", "experiment")).lines
    }

    #[test]
    fn retransmissions_are_apart_from_first_transmissions() {
        let lines = drawn("");
        let [first, again] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!((first.x.len(), first.y[3]), (6, Some(0.003_001)));
        assert!((first.x[0] - 0.1).abs() < 1e-9, "{first:?}");
        assert_eq!((&again.y[..], again.label.as_str()), (&[Some(0.003_001)][..], "a, sent again"));
    }

    #[test]
    fn a_window_around_a_handover_has_acknowledgements() {
        // From 1.3 to 1.7 s: the handover before the flow's start does not count.
        let lines = drawn("handover = true\nbefore = '100 ms'\nafter = '300 ms'");
        let [first, again, acknowledged] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!((first.x.len(), again.x.len(), acknowledged.x.len()), (4, 1, 2));
        assert!((first.x[0] + 0.1).abs() < 1e-9 && (again.x[0] - 0.3).abs() < 1e-9, "{first:?} {again:?}");
        let none = drawn("handover = true\nbefore = '1 s'");
        assert!(none.iter().all(|line| line.x.is_empty()), "{none:?}");
    }
}
