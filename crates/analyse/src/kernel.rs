//! Connections by what their kernel told of them at moments (`TCP_INFO`), from whichever tool asked it.

use std::collections::BTreeMap;

pub(crate) use observe::kernel::State;
use observe::kernel::{Flow, Remote, Way};
use observe::progress::Samples;
use record::tables::SampleRow;
use record::told::{Told, add_flow};
use units::{Bytes, Rate, Span, Time};
use wire::tcp_info::{BbrInfo, TcpInfo};

use crate::collector::Collector;

/// States that are kept of a file, of some 350 bytes each: then every second one is dropped.
pub(crate) const MOST_STATES: usize = 400_000;

/// A connection over the time in which it was watched.
pub(crate) struct Connection<'a> {
    pub(crate) flow: &'a str,
    pub(crate) conn: u32,
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    /// The sender's congestion control; empty if it is not known.
    pub(crate) congestion: &'a str,
    /// Whether the kernel that told is the sender's.
    pub(crate) at_sender: bool,
    /// See [`Told::has_senders_rtt`].
    pub(crate) has_senders_rtt: bool,
    /// Whether it told all that the table `tcp_info` has.
    pub(crate) is_whole: bool,
    /// Whether it told in which state of recovery the sender is.
    pub(crate) has_state: bool,
    /// When it began, with bytes over time since then; `None` if its counters alone are known, from the first state on.
    pub(crate) bytes: Option<(Time, Samples)>,
}

/// Adds the rows of a connection. Returns the time from its first byte counted to its last; 0 without states or bytes.
pub(crate) fn push(all: &mut Collector<'_>, point: u32, one: &Connection<'_>, mut states: Vec<State>) -> f64 {
    let counts_bytes = one.bytes.is_none();
    let first = states.first().map(|state| (state.at, state.info));
    let (start, bytes) = match (&one.bytes, first) {
        (Some((start, bytes)), _) => (*start, bytes.clone()),
        (None, Some((start, info))) => {
            let before = delivered(&info, one.at_sender);
            for state in &mut states {
                state.delivered = delivered(&state.info, one.at_sender).saturating_sub(before);
            }
            let mut bytes = Samples::default();
            bytes.record(Span::ZERO, 0);
            if let Some(last) = states.last() {
                bytes.finish(last.at.saturating_since(start), last.delivered);
            }
            (start, bytes)
        }
        (None, None) => return 0.0,
    };
    let end = states.last().map_or(start, |state| state.at).max(start);
    let seconds = bytes.last().map_or(end.saturating_since(start), |last| last.0).as_secs_f64();
    let flow = Flow {
        way: if one.at_sender { Way::Up } else { Way::Down },
        number: one.conn as usize,
        congestion: one.congestion.to_owned(),
        start,
        bytes,
        acknowledged: false,
        ended: None,
        before: first.map(|first| first.1).filter(|_| counts_bytes),
        samples: states,
        remote: Remote::default(),
        passages: Vec::new(),
        failure: None,
    };
    if flow.samples.is_empty() {
        push_counts(all, point, one, &flow);
    }
    let told = Told {
        flow: one.flow,
        conn: one.conn,
        from: one.from,
        to: one.to,
        at_sender: one.at_sender,
        has_senders_rtt: one.has_senders_rtt,
        is_whole: one.is_whole,
        has_state: one.has_state,
        counts_bytes,
    };
    add_flow(&mut all.tables, &flow, end, point, &told);
    seconds
}

/// Adds samples of which the goodput alone is known.
fn push_counts(all: &mut Collector<'_>, point: u32, one: &Connection<'_>, flow: &Flow) {
    for two in flow.bytes.as_slice().windows(2) {
        let span = two[1].0.saturating_sub(two[0].0);
        let t_s = (flow.start + two[1].0).as_secs_f64();
        let goodput = Rate::over(Bytes::new(two[1].1.saturating_sub(two[0].1)), span);
        all.tables.samples.push(&SampleRow::counted((point, one.flow, one.conn), t_s, goodput.as_mbps()));
    }
}

/// The bytes that the other end has, or that this end has of it.
pub(crate) fn delivered(info: &TcpInfo, at_sender: bool) -> u64 {
    if at_sender { info.bytes_acked } else { info.bytes_received }
}

/// How many bytes were delivered from the first state to the last.
pub(crate) fn grown(states: &[State], at_sender: bool) -> u64 {
    let ends = states.first().zip(states.last());
    ends.map_or(0, |(first, last)| delivered(&last.info, at_sender).saturating_sub(delivered(&first.info, at_sender)))
}

/// Whether these are the states of a sender: more was acknowledged than received.
pub(crate) fn are_of_sender(states: &[State]) -> bool {
    grown(states, true) >= grown(states, false)
}

/// The name of a test's flow, its sender and its receiver.
pub(crate) fn ends(is_upload: bool) -> (&'static str, &'static str, &'static str) {
    if is_upload { ("upload", "client", "server") } else { ("download", "server", "client") }
}

/// A state without its bytes.
pub(crate) fn state(at: Time, info: TcpInfo, bbr: Option<BbrInfo>) -> State {
    State { at, raw: Box::default(), info, bbr, delivered: 0 }
}

/// The states of several connections, thinned out evenly if there are too many.
pub(crate) struct States<K> {
    of: BTreeMap<K, (u64, Vec<State>)>,
    kept: usize,
    stride: u64,
}

impl<K: Ord> Default for States<K> {
    fn default() -> States<K> {
        States { of: BTreeMap::new(), kept: 0, stride: 1 }
    }
}

impl<K: Ord> States<K> {
    pub(crate) fn push(&mut self, of: K, state: State) {
        let (seen, states) = self.of.entry(of).or_default();
        *seen += 1;
        if !(*seen - 1).is_multiple_of(self.stride) {
            return;
        }
        states.push(state);
        self.kept += 1;
        if self.kept > MOST_STATES {
            self.stride *= 2;
            self.kept = 0;
            for (_, states) in self.of.values_mut() {
                let mut keep = false;
                states.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.kept += states.len();
            }
        }
    }

    /// Of how many states one is kept.
    pub(crate) fn stride(&self) -> u64 {
        self.stride
    }

    /// The connections in order, with their states in the order in which they came.
    pub(crate) fn into_iter(self) -> impl Iterator<Item = (K, Vec<State>)> {
        self.of.into_iter().map(|(of, (_, states))| (of, states))
    }

    pub(crate) fn remove(&mut self, of: &K) -> Vec<State> {
        self.of.remove(of).map_or_else(Vec::new, |(_, states)| states)
    }

    /// Puts back a state that was removed.
    pub(crate) fn give_back(&mut self, of: K, state: State) {
        self.of.entry(of).or_default().1.push(state);
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.of.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_beyond_the_most_are_thinned_evenly() {
        let mut states = States::default();
        let count = MOST_STATES as u64 * 3;
        for n in 0..count {
            states.push(n % 2, state(Time::from_nanos(n), TcpInfo::default(), None));
        }
        assert_eq!(states.stride(), 4);
        for (of, states) in states.into_iter() {
            assert_eq!(states.len() as u64, count / 8);
            assert!(states.iter().zip(0..).all(|(state, n)| state.at.as_nanos() == n * 8 + of));
        }
    }
}
