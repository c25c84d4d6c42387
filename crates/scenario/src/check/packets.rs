//! Checks of packets' sizes over radio: what PDCP carries, and what the buffers on their way hold.

use super::*;
use crate::lte::ModemFull;
use ran::pdcp::{LONGEST_SDU, NR_LONGEST_SDU};
use traffic::cbr::Parameters as Cbr;
use traffic::ppbp::Parameters as Ppbp;

/// A full packet of real hosts.
const FULL: Bytes = Bytes::new(1500);
/// Headers of a TCP segment with timestamps.
const HEADERS: u64 = 52;

/// Checks that PDCP carries a flow's packets.
pub(super) fn check_flow(flow: &Flow, s: &Scenario, c: &mut Check) {
    let Some(radio) = &s.radio else { return };
    let packet = largest(flow);
    if packet <= LONGEST_SDU || !radio.ues.iter().any(|ue| ends(flow, radio).iter().any(|end| is_end(ue, end))) {
        return;
    }
    let has = |technology| radio.cells.iter().any(|cell| radio.technology(cell) == technology);
    let (most, source) = if has(Technology::Lte) {
        (LONGEST_SDU, "LTE's PDCP carries 8188 bytes at most, 36.323")
    } else {
        (NR_LONGEST_SDU, "NR's PDCP carries 9000 bytes at most, 38.323")
    };
    if packet <= most {
        return;
    }
    match flow.traffic {
        Traffic::Cbr(Cbr { packet, .. }) | Traffic::Ppbp(Ppbp { packet, .. }) => c.key("traffic", |c| {
            let [packet, most] = [packet, most].map(Bytes::get);
            c.key("packet", |c| c.wrong(format!("{packet} B do not pass a cell ({source}): must be at most {most} B")));
        }),
        _ => c.key("tcp", |c| {
            let (mss, most) = (flow.tcp.mss, most.get() - HEADERS);
            c.key("mss", |c| {
                c.wrong(format!(
                    "{mss}, with {HEADERS} bytes of headers, does not pass a cell ({source}): must be at most {most}"
                ));
            });
        }),
    }
}

/// Checks that the buffers of `ue` hold the largest packets of its flows.
pub(super) fn check_ue(ue: &Ue, radio: &Radio, flows: &[Flow], c: &mut Check) {
    let of = |end: usize| {
        let large = flows.iter().filter(|flow| largest(flow) > FULL && is_end(ue, ends(flow, radio)[end]));
        large.map(largest).fold(FULL, Bytes::max)
    };
    let [up, down] = [0, 1].map(of);
    let check_bearer = |bearer: &Bearer, c: &mut Check| {
        // The buffer below a queue takes a packet whenever it is empty.
        if let (None, Some(queue)) = (&bearer.above, &bearer.queue) {
            c.key("queue", |c| check_queue(queue, down, c));
        }
        c.key("nr", |c| check_holds("buffer", bearer.nr.buffer, down, c));
    };
    c.key("bearer", |c| check_bearer(&ue.bearer, c));
    for (i, dedicated) in ue.dedicated.iter().enumerate() {
        c.key("dedicated", |c| c.index(i, |c| c.key("bearer", |c| check_bearer(&dedicated.bearer, c))));
    }
    c.key("host_queue", |c| check_queue(&ue.host_queue, up, c));
    // A modem that lets the host wait takes a packet whenever it is empty.
    if ue.modem_full == ModemFull::Drop {
        check_holds("modem", ue.modem, up, c);
    }
}

fn check_queue(queue: &Queue, packet: Bytes, c: &mut Check) {
    if let Some(bytes) = queue.max_bytes() {
        check_holds("bytes", bytes, packet, c);
    }
}

/// Checks that a buffer holds a packet.
fn check_holds(key: &str, bytes: Bytes, packet: Bytes, c: &mut Check) {
    // The ranges are checked elsewhere.
    if bytes < packet && bytes > Bytes::ZERO {
        c.key(key, |c| c.wrong(format!("{bytes} is too small for a packet of {packet}: must be at least {packet}")));
    }
}

/// Returns the largest IP packet of a flow's data.
fn largest(flow: &Flow) -> Bytes {
    match flow.traffic {
        Traffic::Cbr(Cbr { packet, .. }) | Traffic::Ppbp(Ppbp { packet, .. }) => packet,
        _ => Bytes::new(u64::from(flow.tcp.mss) + HEADERS),
    }
}

/// Returns the ends of a flow, of which either may be left out.
fn ends<'a>(flow: &'a Flow, radio: &'a Radio) -> [&'a str; 2] {
    let or = |end: &'a String, first: Option<&'a String>| match first {
        Some(first) if end.is_empty() => first.as_str(),
        _ => end.as_str(),
    };
    [or(&flow.from, radio.servers.first()), or(&flow.to, radio.ues.first().map(|ue| &ue.name))]
}

/// Returns whether `end` of a flow is, or may include, `ue`.
fn is_end(ue: &Ue, end: &str) -> bool {
    let name = ue.name.as_str();
    match end.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix) || prefix.starts_with(name),
        None => end == name || ue.count > 1 && end.strip_prefix(name).is_some_and(|rest| rest.starts_with('-')),
    }
}
