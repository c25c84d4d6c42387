//! What is known of a connection that has ended.

use crate::clock::unix_now;
use std::net::SocketAddr;

use serde::Serialize;
use wire::tcp_info::TcpInfo;

use super::flow::{Flow, Observation, Side};

/// Bytes of the headers of a packet without options, and of TCP's timestamps with their padding (RFC 7323, appendix A).
const IPV4: u64 = 20;
const IPV6: u64 = 40;
const TCP: u64 = 20;
const TIMESTAMPS: u64 = 12;
/// `TCPI_OPT_TIMESTAMPS` in `tcpi_options`.
const HAS_TIMESTAMPS: u8 = 1;

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    /// Both sides have acknowledged everything.
    Closed,
    /// A leg has failed, as after a reset by its host.
    Reset,
    ConnectFailed,
    ConnectTimeout,
    Idle,
    HalfClosed,
    /// All connections together take too much memory, and this one's UE takes most.
    Starved,
}

/// A connection that has ended. What is unknown is missing. Its serialised form is an entry of the log.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Ended {
    /// When it ended, in Unix time.
    pub(super) time_s: f64,
    pub(super) ue: SocketAddr,
    pub(super) peer: SocketAddr,
    /// The side whose host opened it.
    pub(super) opened_by: Side,
    /// Since the client's handshake was complete.
    pub(super) duration_s: f64,
    /// Whether both legs were established.
    pub(super) established: bool,
    pub(super) end: End,
    /// Bytes taken from the server and from the UE.
    pub(super) to_ue_bytes: u64,
    pub(super) from_ue_bytes: u64,
    pub(super) ran: Option<Leg>,
    pub(super) wan: Option<Leg>,
    /// The numbers of the interfaces towards the UE and towards its peer.
    #[serde(skip)]
    pub(super) interfaces: [Option<u32>; 2],
}

/// What the kernel knows of a leg.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Leg {
    pub(super) srtt_s: Option<f64>,
    pub(super) min_rtt_s: Option<f64>,
    /// Segments that the proxy has sent again.
    pub(super) retransmissions: u32,
    /// Packets that have come from its host.
    #[serde(skip)]
    pub(super) packets: u32,
    /// Their bytes, but for what the kernel does not count: options beyond timestamps, such as those of a SYN, and repeated data.
    #[serde(skip)]
    pub(super) octets: u64,
}

impl Leg {
    /// `taken` bytes of its data have been read.
    fn new(info: &TcpInfo, taken: u64, is_ipv6: bool) -> Leg {
        let seconds = |us: u32| f64::from(us) * 1e-6;
        let timestamps = if info.options & HAS_TIMESTAMPS != 0 { TIMESTAMPS } else { 0 };
        let header = if is_ipv6 { IPV6 } else { IPV4 } + TCP + timestamps;
        // The kernel counts a FIN as a byte.
        let payload = info.bytes_received.saturating_sub(1).max(taken);
        Leg {
            srtt_s: (info.rtt > 0).then(|| seconds(info.rtt)),
            min_rtt_s: info.min_rtt().map(seconds),
            retransmissions: info.total_retrans,
            packets: info.segs_in,
            octets: u64::from(info.segs_in) * header + payload,
        }
    }
}

impl Ended {
    /// `seen` is the state of both legs, if it could be read.
    pub(super) fn new(flow: &Flow, end: End, seen: Option<&Observation>) -> Ended {
        let [to_ue_bytes, from_ue_bytes] = flow.taken();
        let is_ipv6 = flow.ue().is_ipv6();
        Ended {
            time_s: unix_now().as_secs_f64(),
            ue: flow.ue(),
            peer: flow.peer(),
            opened_by: flow.opened_by(),
            duration_s: flow.opened().elapsed().as_secs_f64(),
            established: flow.is_established(),
            end,
            to_ue_bytes,
            from_ue_bytes,
            ran: seen.map(|seen| Leg::new(&seen.radio, from_ue_bytes, is_ipv6)),
            wan: seen.map(|seen| Leg::new(&seen.wired, to_ue_bytes, is_ipv6)),
            interfaces: flow.interfaces(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A connection from this port of a UE to a web server.
    pub(in crate::proxy) fn example(port: u16) -> Ended {
        Ended {
            time_s: 1.5,
            ue: ([10, 0, 0, 1], port).into(),
            peer: ([192, 0, 2, 1], 443).into(),
            opened_by: Side::Ran,
            duration_s: 1.0,
            established: true,
            end: End::Closed,
            to_ue_bytes: 3,
            from_ue_bytes: 4,
            ran: Some(Leg { srtt_s: Some(0.05), min_rtt_s: None, retransmissions: 7, packets: 5, octets: 264 }),
            wan: None,
            interfaces: [Some(4), Some(3)],
        }
    }

    #[test]
    fn the_octets_of_packets_are_those_of_their_headers_and_of_what_they_carry() {
        let mut info = TcpInfo { segs_in: 10, bytes_received: 1_001, options: HAS_TIMESTAMPS, ..TcpInfo::default() };
        assert_eq!(Leg::new(&info, 1_000, false).octets, 10 * 52 + 1_000);
        assert_eq!(Leg::new(&info, 1_000, true).octets, 10 * 72 + 1_000);
        info.options = 0;
        assert_eq!(Leg::new(&info, 1_000, false).octets, 10 * 40 + 1_000);
        // A host has reset the connection, and nobody has read the rest.
        assert_eq!(Leg::new(&info, 300, false).octets, 10 * 40 + 1_000);
        // Without a FIN, all was read.
        assert_eq!(Leg::new(&info, 1_001, false).octets, 10 * 40 + 1_001);
    }

    #[test]
    fn an_entry_of_the_log_names_the_end_and_has_null_for_what_is_unknown() {
        let text = serde_json::to_string(&Ended { end: End::ConnectTimeout, ..example(1) }).expect("JSON");
        assert!(text.contains("\"end\":\"connect_timeout\"") && text.contains("\"wan\":null"), "{text}");
        assert!(!text.contains("octets") && !text.contains("interfaces"), "{text}");
    }
}
