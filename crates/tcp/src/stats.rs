//! What a connection counted, and where its time went (after Linux `tcp_info` and `tcp_chrono`).

use units::{Span, Time};

/// What kept the sender from sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// The connection is not established yet.
    #[default]
    Handshake,
    /// The application had nothing to send.
    Application,
    /// The congestion window was full.
    Cwnd,
    /// The peer's receive window was full.
    ReceiveWindow,
    /// The pacer held the next segment back.
    Pacing,
    /// The send buffer was full of data that the peer has not acknowledged, and all of it was sent.
    SendBuffer,
    /// The queue of the sender's own host held enough of its data, or was full.
    HostQueue,
}

impl Limit {
    /// All of them, in the order of [`Endpoint::limited`](crate::Endpoint::limited).
    pub const ALL: [Limit; 7] = [
        Limit::Handshake,
        Limit::Application,
        Limit::Cwnd,
        Limit::ReceiveWindow,
        Limit::Pacing,
        Limit::SendBuffer,
        Limit::HostQueue,
    ];
}

/// A stop watch for each limit: one of them runs from the connection's start until everything that it sends, and the FIN,
/// is acknowledged.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chrono {
    pub(crate) limit: Limit,
    /// Since when the present one runs; [`Time::MAX`] before the start and after the end.
    since: Time,
    times: [Span; Limit::ALL.len()],
}

impl Chrono {
    pub(crate) fn new(now: Time) -> Chrono {
        Chrono { since: now, ..Chrono::default() }
    }

    #[inline]
    pub(crate) fn switch(&mut self, limit: Limit, now: Time) {
        if self.limit != limit && self.since != Time::MAX {
            self.times[self.limit as usize] += now.saturating_since(self.since);
            self.limit = limit;
            self.since = now;
        }
    }

    pub(crate) fn stop(&mut self, now: Time) {
        self.times = self.times(now);
        self.since = Time::MAX;
    }

    pub(crate) fn times(&self, now: Time) -> [Span; Limit::ALL.len()] {
        let mut times = self.times;
        times[self.limit as usize] += now.saturating_since(self.since);
        times
    }
}

/// Counts of a connection since its start. All count segments unless they say bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// All segments sent.
    pub segments_sent: u64,
    /// Segments with payload sent, retransmissions included.
    pub data_segments_sent: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Payload bytes that the peer acknowledged cumulatively.
    pub bytes_acked: u64,
    /// Payload bytes retransmitted, for whatever reason.
    pub bytes_retransmitted: u64,
    /// Retransmitted in fast recovery, after RACK or duplicate acknowledgements marked them lost.
    pub retransmitted_fast: u64,
    /// Retransmitted after a retransmission time-out.
    pub retransmitted_timeout: u64,
    /// Retransmitted as a tail loss probe.
    pub retransmitted_probe: u64,
    /// Of these three, FINs without payload.
    pub retransmitted_fin: u64,
    /// SYN and SYN-ACK retransmissions.
    pub retransmitted_syn: u64,
    /// Segments marked lost.
    pub lost: u64,
    /// Times that fast recovery began.
    pub recoveries: u64,
    /// Times that the window was reduced because of an ECN echo.
    pub ecn_reductions: u64,
    /// Times that the retransmission timer fired, that of a SYN or SYN-ACK included.
    pub timeouts: u64,
    /// Tail loss probes sent, of new data or as retransmissions.
    pub loss_probes: u64,
    /// Losses that only a tail loss probe's acknowledgement revealed.
    pub loss_probe_recoveries: u64,
    /// Zero-window probes sent.
    pub window_probes: u64,
    /// Reactions undone because D-SACKs told that every retransmission was needless.
    pub undone_dsack: u64,
    /// Reactions undone because an echoed timestamp told that the original had arrived (Eifel).
    pub undone_timestamp: u64,
    /// Time-outs undone because data sent before them was acknowledged (F-RTO).
    pub undone_frto: u64,
    /// Segments seen to have been reordered: how often.
    pub reorderings: u64,
    /// Times that the host's own queue was full, and so the window was reduced without a loss.
    pub host_drops: u64,
    /// Duplicate acknowledgements received.
    pub dup_acks_received: u64,
    /// The most of them between two advances of SND.UNA.
    pub dup_acks_longest: u64,
    /// Those since the last advance.
    pub(crate) dup_acks_since: u64,
    /// D-SACKs received.
    pub dsacks_received: u64,
    /// Acknowledgements received with an ECN echo.
    pub ece_received: u64,
    /// All segments received.
    pub segments_received: u64,
    /// Payload bytes that arrived in order: what the application can have read.
    pub bytes_received: u64,
    /// Segments with payload that arrived out of order.
    pub out_of_order_received: u64,
    /// Segments of which every byte had arrived before, or that lay outside the window.
    pub duplicates_received: u64,
    /// Data segments received with a congestion mark.
    pub ce_received: u64,
    /// Acknowledgements sent without payload.
    pub acks_sent: u64,
    /// D-SACKs sent.
    pub dsacks_sent: u64,
    /// Challenge acknowledgements sent (RFC 5961).
    pub challenge_acks_sent: u64,
    /// Reports of a PEP received, and those of them that were acceptable.
    pub reports_received: u64,
    /// See `reports_received`.
    pub reports_taken: u64,
}

impl Stats {
    /// All retransmissions of data and FIN.
    pub fn retransmitted(&self) -> u64 {
        self.retransmitted_fast + self.retransmitted_timeout + self.retransmitted_probe
    }
}
