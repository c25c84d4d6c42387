//! Passes on the question whether the other host is alive.
//!
//! A host that sends keepalives (RFC 9293, 3.8.4) wants to know whether its peer is there, and the proxy's kernel would answer for
//! it. So when a host of a silent connection probes the proxy, the proxy probes the other host, once for each look at which there was
//! a probe: a UE is woken no more often than without the proxy. If the other host does not answer in time, the kernel ends its leg,
//! and the worker resets the other one.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use netio::socket::Keepalive;
use netio::sys;
use serde::{Deserialize, Serialize};

/// Probes without an answer after which a host is dead.
const PROBES: u32 = 5;
/// The shortest time that the kernel's keepalives know.
const SECOND: Duration = Duration::from_secs(1);

/// What was seen of a leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    segments: u32,
    /// Bytes received and acknowledged: with new ones, segments are no probes.
    bytes: [u64; 2],
}

/// What is known of the legs of a connection.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Liveness {
    /// At the last look.
    #[serde(skip)]
    seen: Option<[Seen; 2]>,
    /// Whether the host of each leg is probed.
    probed: [bool; 2],
}

impl Liveness {
    /// Looks at the legs of a connection on which no byte passes. A host that is probed has `time` to answer. A host that has answered
    /// is left in peace for as long as `keepalive` says.
    pub(super) fn look(&mut self, legs: [BorrowedFd; 2], time: Duration, keepalive: Keepalive) {
        let [Ok(one), Ok(other)] = legs.map(sys::tcp_info) else { return };
        let infos = [one, other];
        let now = infos.map(|info| Seen { segments: info.segs_in, bytes: [info.bytes_received, info.bytes_acked] });
        let asks = self.asks(now);
        for leg in 0..2 {
            let has_answered = self.seen.is_some_and(|seen| now[leg].segments != seen[leg].segments);
            // The kernel sends no keepalives while data waits for an acknowledgement.
            let is_silent = infos[leg].unacked == 0 && infos[leg].notsent_bytes == 0;
            if self.probed[leg] && has_answered {
                let _ = keepalive.set(legs[leg]);
                self.probed[leg] = false;
            } else if asks[1 - leg] && is_silent && !self.probed[leg] {
                // The first goes at once, because the silence is longer than that.
                let (silence, interval) = (SECOND, (time / PROBES).max(SECOND));
                self.probed[leg] = Keepalive { silence, interval, probes: PROBES }.set(legs[leg]).is_ok();
            }
        }
        self.seen = Some(now);
    }

    /// Returns whether the host of each leg has probed us since the last look. What comes from a host that we probe is an answer.
    fn asks(&self, now: [Seen; 2]) -> [bool; 2] {
        let Some(before) = self.seen else { return [false; 2] };
        [0, 1].map(|leg| {
            let is_quiet = now[leg].bytes == before[leg].bytes;
            is_quiet && now[leg].segments != before[leg].segments && !self.probed[leg]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_without_bytes_are_probes_unless_they_are_answers() {
        let seen = |segments, bytes| Seen { segments, bytes: [bytes, 7] };
        let mut liveness = Liveness::default();
        assert_eq!(liveness.asks([seen(9, 0), seen(9, 0)]), [false, false], "nothing is known");
        liveness.seen = Some([seen(9, 100), seen(20, 100)]);
        assert_eq!(liveness.asks([seen(10, 100), seen(20, 100)]), [true, false]);
        assert_eq!(liveness.asks([seen(10, 101), seen(21, 100)]), [false, true]);
        liveness.probed = [false, true];
        assert_eq!(liveness.asks([seen(10, 100), seen(21, 100)]), [true, false]);
    }
}
