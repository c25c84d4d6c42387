//! What the kernels at a flow's ends tell of it, whoever asked them: a measurement that ran the flow, or a file of somebody else's.

use units::{Span, Time};
use wire::tcp_info::{BbrInfo, TcpInfo};

use crate::limits::{Limits, shows_pacing};
use crate::progress::Samples;

/// The direction of a flow's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// From the server.
    Down,
    /// To the server.
    Up,
}

impl Way {
    /// The name of its flows.
    pub fn name(self) -> &'static str {
        match self {
            Way::Down => "download",
            Way::Up => "upload",
        }
    }
}

/// The times of a write on its way. What the kernel has not told is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When it was written to the socket.
    pub written: Time,
    /// From then until the queueing discipline had its last byte.
    pub buffered: Option<Span>,
    /// From then until the driver had it.
    pub queued: Option<Span>,
    /// From then until it was acknowledged.
    pub travelled: Option<Span>,
}

/// The state of a flow at a moment.
#[derive(Clone, Debug)]
pub struct State {
    /// The moment.
    pub at: Time,
    /// The bytes that the kernel has filled in.
    pub raw: Box<[u8]>,
    /// Their meaning.
    pub info: TcpInfo,
    /// What BBR knows.
    pub bbr: Option<BbrInfo>,
    /// Bytes delivered so far: read here of a download, and received by the server of an upload.
    pub delivered: u64,
}

/// What is known of a flow.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its direction.
    pub way: Way,
    /// Its number among those of its direction, from 0.
    pub number: usize,
    /// The congestion control of its sender, if this end knows it or the server tells it.
    pub congestion: String,
    /// When its transfer began.
    pub start: Time,
    /// Bytes over time since then: as the server reports them of an upload, as they arrived here of a download. Empty if they are
    /// not known, as of a transfer that did not begin.
    pub bytes: Samples,
    /// Whether the bytes are those of an upload that were acknowledged to this end, because the server's count did not come.
    pub acknowledged: bool,
    /// When this end took note of its end, which is the time of the last sample; `None` of flows that were not measured here.
    pub ended: Option<Time>,
    /// What the kernel of its sender had counted before it began, if that is at this end: a connection may be older than its flow.
    pub before: Option<TcpInfo>,
    /// Its state in the kernel at this end.
    pub samples: Vec<State>,
    /// Its sender as the server tells it, of a download.
    pub remote: Remote,
    /// The times of some of its writes.
    pub passages: Vec<Passage>,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

impl Flow {
    /// Whether its sender keeps to a pacing rate in a state.
    pub fn is_paced(&self, info: &TcpInfo) -> bool {
        is_paced(&self.congestion, info)
    }

    /// The congestion control of its sender as scenarios call it; `None` if this end does not know it.
    pub fn control(&self) -> Option<&str> {
        Some(scenario_name(&self.congestion)).filter(|name| !name.is_empty())
    }

    /// The states of its sender's kernel: at this end of an upload, as the server tells them of a download.
    pub fn sender(&self) -> &[State] {
        if self.way == Way::Down { &self.remote.samples } else { &self.samples }
    }

    /// Those of the states while it was going on: at its beginning and at its end nothing is in flight.
    pub fn under_way(&self) -> impl Iterator<Item = &State> {
        let (start, ended) = (self.start, self.ended);
        let is_under_way = move |at: Time| ended.is_none_or(|ended| start < at && at < ended);
        self.sender().iter().filter(move |sample| is_under_way(sample.at))
    }

    /// Where its sender's time went; `None` of a download whose server does not tell.
    pub fn limits(&self) -> Option<Limits> {
        let states = self.sender();
        let (first, last) = (states.first()?, states.last()?);
        let between = |before: Option<&State>, after: &State| {
            let span = after.at.saturating_since(before.map_or(self.start, |before| before.at));
            Limits::between(before.map(|before| &before.info), &after.info, span, self.is_paced(&after.info))
        };
        // A server's first message comes some time after the start.
        let (from, mut sum) = match self.way {
            Way::Down => (self.start, between(None, first)),
            Way::Up => (first.at, Limits::default()),
        };
        for two in states.windows(2) {
            sum = sum.plus(between(Some(&two[0]), &two[1]));
        }
        (last.at > from).then_some(sum)
    }

    /// The bytes delivered in all, if they are known.
    pub fn total(&self) -> Option<u64> {
        self.bytes.last().map(|last| last.1)
    }

    /// The smoothed round-trip times of a sender's kernel that the server tells; otherwise those in the kernel of this end: of its
    /// sender (`at_sender`), or as the receiver of the data estimates them, see [`round_trip`]. A time that is told again although
    /// nothing has come since is one sample.
    pub fn rtts(&self, at_sender: bool) -> impl Iterator<Item = Span> {
        let is_told = self.remote.has_rtts();
        let (states, at_sender) = if is_told { (&self.remote.samples, true) } else { (&self.samples, at_sender) };
        let known = |info: &TcpInfo| (info.rtt, info.rttvar, info.rcv_rtt, info.bytes_acked, info.bytes_received);
        let mut before = None;
        let is_news = move |sample: &&State| before.replace(known(&sample.info)) != Some(known(&sample.info));
        states.iter().filter(is_news).filter_map(move |sample| round_trip(&sample.info, at_sender))
    }
}

/// Whether a sender with this congestion control keeps to a pacing rate in a state: BBR of any version always does, others if the
/// state shows it.
pub fn is_paced(congestion: &str, info: &TcpInfo) -> bool {
    congestion.contains("bbr") || shows_pacing(info)
}

/// What scenarios call a congestion control of the kernel.
pub fn scenario_name(congestion: &str) -> &str {
    if congestion == "reno" { "new-reno" } else { congestion }
}

/// The smoothed round-trip time in a kernel; `None` before it was measured. What a receiver knows as a sender (`tcpi_rtt`) is as old
/// as its last data, a request before the load: it has the time from an acknowledgement to the data that echoes its timestamp
/// (`tcpi_rcv_rtt`).
pub fn round_trip(info: &TcpInfo, at_sender: bool) -> Option<Span> {
    let micros = if at_sender { info.rtt } else { info.rcv_rtt };
    (micros > 0).then(|| Span::from_micros(micros.into()))
}

/// The sender of a download as its server tells it. Empty if that tells nothing, and of an upload, whose sender is at this end.
#[derive(Clone, Debug, Default)]
pub struct Remote {
    /// Its states, in the order of time; `raw` is empty, and `delivered` is what was acknowledged. The server's clock begins with
    /// its answer, so they are up to a one-way delay later than this end's.
    pub samples: Vec<State>,
    /// Its congestion control; empty if it is not told.
    pub congestion: String,
    /// Whether a state lacks something that the table `tcp_info` has: then windows and retransmissions are not known.
    pub is_partial: bool,
    /// Whether a state does not tell in which state of recovery the sender is.
    pub lacks_state: bool,
}

impl Remote {
    /// Returns the latest state at a moment, and the one before it.
    pub fn latest(&self, at: Time) -> Option<(Option<&State>, &State)> {
        let count = self.samples.partition_point(|sample| sample.at <= at);
        let latest = self.samples.get(count.checked_sub(1)?)?;
        Some((count.checked_sub(2).map(|before| &self.samples[before]), latest))
    }

    /// Whether it tells round-trip times.
    pub fn has_rtts(&self) -> bool {
        self.samples.iter().any(|sample| sample.info.rtt > 0)
    }
}
