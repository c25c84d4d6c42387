//! The metrics of a proxy.

use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::book::Reason;
use super::feeds::{Trust, Unused};
use super::flow::Side;
use super::gate::Bypass;
use super::status::{Status, status};
use super::worker::Shared;
use crate::metrics::{self, Page};

/// Encodes a status, and the samples of workers.
#[derive(Debug)]
struct Told {
    status: Status,
    workers: Vec<Arc<Shared>>,
}

impl Collector for Told {
    fn encode(&self, encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let Status { totals: of, accepting, bypass, limits, feeds, unused_reports: unused, .. } = &self.status;
        let mut page = Page(encoder);
        for (name, help, value) in [
            ("connections", "Connections at present", of.open),
            ("connections_limit", "Connections at which new ones begin to bypass the proxy", limits.connections),
            ("half_open", "Connections at present whose handshake is not complete", of.half_open),
            ("accepting", "1 if new connections pass through the proxy, 0 if they bypass it", u64::from(*accepting)),
            ("memory_bytes", "Memory of connections, in sockets and pipes", of.memory_bytes),
            ("memory_limit_bytes", "What connections may take of it together", limits.memory_bytes),
        ] {
            page.gauge(name, help, value as f64)?;
        }
        let is = |why| f64::from(u8::from(*bypass == Some(why)));
        page.gauges(
            "bypass",
            "1 for the reason for which all new connections bypass the proxy at present",
            Bypass::ALL.map(|why| ([("reason", why.name())], is(why))),
        )?;
        for (name, help, value) in [
            ("established", "Connections of which both legs were established", of.established),
            ("closed", "Connections that ended after both sides had everything", of.closed),
            ("reset", "Connections that one side reset", of.reset),
            ("connect_failures", "Connections to hosts that refused or could not be reached", of.connect_failed),
            ("connect_timeouts", "Connections to hosts that did not answer in time", of.connect_timeouts),
            ("idle_timeouts", "Connections without a byte for too long", of.idle_timeouts),
            ("half_closed_timeouts", "Half-closed connections without a byte for too long", of.half_closed_timeouts),
            ("other_port", "Connections that did not keep the client's port", of.other_port),
            ("not_ours", "Clients that were there when their server had gone", of.not_ours),
            ("lost_syns", "SYNs that got lost on their way to the proxy or from it", of.lost_syns),
            ("overloads", "How often new connections began to bypass the proxy", of.overloads),
            ("exhausted", "How often descriptors or memory ran out", of.exhausted),
            ("internal_errors", "Connections ended by an error in the proxy", of.internal_errors),
            ("unlogged", "Connections that ended and are not in the log of --connection-log", of.unlogged),
            ("exported", "Flow records of connections that ended, sent to the collector of --ipfix", of.exported),
            (
                "unexported",
                "Flow records that could not be sent to the collector of --ipfix, or were refused",
                of.unexported,
            ),
            ("starved", "Connections of the UEs that took most memory, reset because all took too much", of.starved),
        ] {
            page.counter(name, help, value as f64)?;
        }
        let sides = |label, [ran, wan]: [u64; 2]| [([(label, "ran")], ran), ([(label, "wan")], wan)];
        for (name, help, values) in [
            ("accepted", "Connections accepted from a side", sides("from", [of.from_ue, of.from_wan])),
            ("bytes", "Bytes that have arrived for a side", sides("to", [of.to_ue_bytes, of.from_ue_bytes])),
            (
                "quic_bytes",
                "Bytes of IP packets with UDP port 443 of servers, which pass beside the proxy to a side",
                sides("to", [of.quic_to_ue_bytes, of.quic_from_ue_bytes]),
            ),
            (
                "retransmissions",
                "Segments that were sent again to a side",
                sides("to", [of.retransmissions_to_ues, of.retransmissions_to_servers]),
            ),
        ] {
            page.counters(name, help, values)?;
        }
        let passed = |reason| of.bypassed.get(&reason).copied().unwrap_or_default();
        let help = "Connections that bypassed the proxy although it was asked";
        page.counters("bypassed", help, Reason::ALL.map(|reason| ([("reason", reason.name())], passed(reason))))?;
        self.encode_samples(&mut page)?;
        let of_trust = |trust| feeds.iter().filter(|feed| feed.trust == trust).count() as f64;
        let help = "Addresses of UEs with connections, by whether the reports on them are believed";
        page.gauges("feeds", help, Trust::ALL.map(|trust| ([("trust", trust.name())], of_trust(trust))))?;
        // Without a feed, there is no age.
        if let Some(oldest) = feeds.iter().map(|feed| feed.age_s).max_by(f64::total_cmp) {
            page.gauge("feed_age_seconds", "The greatest age of the latest report on a UE with connections", oldest)?;
        }
        let Unused { ahead, old, impossible, overtaken } = *unused;
        let why = [("ahead", ahead), ("old", old), ("impossible", impossible), ("overtaken", overtaken)];
        page.counters("reports_discarded", "Reports that were of no use", why.map(|(why, n)| ([("why", why)], n)))
    }
}

impl Told {
    fn encode_samples(&self, page: &mut Page) -> Result<(), std::fmt::Error> {
        let all = || self.workers.iter().map(|shared| &shared.counters.samples);
        let help = "Time from the first SYN to a server to its answer";
        page.histogram("handshake_seconds", help, &all().map(|of| &of.handshakes).collect::<Vec<_>>())?;
        let sides = [("ran", Side::Ran), ("wan", Side::Wan)];
        let rtts = sides.map(|(name, side)| ([("side", name)], all().map(|of| &of.rtts[side as usize]).collect()));
        let help = "Smoothed round-trip times between the proxy and hosts, of connections with bytes, once a second";
        page.histograms("rtt_seconds", help, rtts)?;
        let waits = sides.map(|(name, side)| ([("to", name)], all().map(|of| &of.waits[side as usize]).collect()));
        let help = "How long bytes wait in the proxy before they are sent, of connections with bytes, once a second";
        page.histograms("wait_seconds", help, waits)
    }
}

/// Returns the metrics of a proxy.
pub(super) fn text(workers: &[Arc<Shared>]) -> String {
    text_of(status(workers, false), workers.to_vec())
}

fn text_of(status: Status, workers: Vec<Arc<Shared>>) -> String {
    metrics::text("ranway_proxy", Told { status, workers })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::proxy::{Feed, Limits, Totals};

    /// The metrics of a proxy that has RAPID.
    pub(crate) fn example() -> String {
        let totals = Totals { open: 3, from_ue: 5, to_ue_bytes: 1 << 40, memory_bytes: 7, ..Totals::default() };
        let feed = |age_s, trust| Feed { ue: [10, 0, 0, 1].into(), age_s, trust };
        let feeds = vec![feed(0.5, Trust::Believed), feed(2.25, Trust::TooLow)];
        let unused_reports = Unused { old: 4, ..Unused::default() };
        let limits = Limits { connections: 20, memory_bytes: 1 << 30 };
        let bypass = Some(Bypass::Obstructed);
        let status = Status { totals, bypass, limits, feeds, unused_reports, ..Status::default() };
        text_of(status, Vec::new())
    }

    #[test]
    fn each_counter_is_in_the_text() {
        let text = example();
        for line in [
            "# TYPE ranway_proxy_connections gauge",
            "ranway_proxy_connections 3",
            "ranway_proxy_connections_limit 20",
            "ranway_proxy_accepting 0",
            "ranway_proxy_bypass{reason=\"obstructed\"} 1",
            "ranway_proxy_bypass{reason=\"full\"} 0",
            "ranway_proxy_memory_bytes 7",
            "ranway_proxy_memory_limit_bytes 1073741824",
            "ranway_proxy_retransmissions_total{to=\"wan\"} 0",
            "ranway_proxy_handshake_seconds_count 0",
            "ranway_proxy_rtt_seconds_bucket{le=\"+Inf\",side=\"wan\"} 0",
            "ranway_proxy_wait_seconds_sum{to=\"ran\"} 0.0",
            "ranway_proxy_accepted_total{from=\"ran\"} 5",
            "ranway_proxy_bytes_total{to=\"ran\"} 1099511627776",
            "ranway_proxy_reset_total 0",
            "ranway_proxy_bypassed_total{reason=\"half_open_ue\"} 0",
            "ranway_proxy_feeds{trust=\"too-low\"} 1",
            "ranway_proxy_feeds{trust=\"stale\"} 0",
            "ranway_proxy_feed_age_seconds 2.25",
            "ranway_proxy_reports_discarded_total{why=\"old\"} 4",
            "# EOF",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
