//! What metrics tell of connections beyond counters: samples that a worker takes once a second, so that no packet costs more.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::flow::{Flow, Observation};
use crate::metrics::Histogram;

/// Connections that a worker samples in a sweep, about: each takes two calls of the kernel. With more, each is sampled more seldom.
const MOST: usize = 2_000;

/// The samples of a worker since its start. Arrays are by [`super::Side`].
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// From the first SYN to a server to its answer.
    pub(super) handshakes: Histogram,
    /// Smoothed round-trip times of legs on whose connection bytes passed.
    pub(super) rtts: [Histogram; 2],
    /// How long a byte that came then had to wait in the proxy before it was sent to this side.
    pub(super) waits: [Histogram; 2],
    /// Segments that were sent again to this side.
    pub(super) retransmissions: [AtomicU64; 2],
}

/// What is known of a connection from the sample before.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sampled {
    taken: [u64; 2],
    retransmissions: [u32; 2],
}

/// Whether it is a connection's turn in the sweep with this number, of a worker that has so many.
pub(super) fn is_due(connection: u64, sweep: u64, connections: usize) -> bool {
    let turns = connections.div_ceil(MOST).max(1) as u64;
    connection % turns == sweep % turns
}

impl Samples {
    /// Takes a sample of a connection, if bytes have passed since the one before.
    pub(super) fn take(&self, flow: &Flow, before: &mut Sampled) {
        let taken = flow.taken();
        if std::mem::replace(&mut before.taken, taken) == taken {
            return;
        }
        let Ok(seen) = flow.observe() else { return };
        for (side, info) in [&seen.radio, &seen.wired].into_iter().enumerate() {
            if info.rtt > 0 {
                self.rtts[side].add(Duration::from_micros(info.rtt.into()));
            }
            self.count(side, info.total_retrans, before);
        }
        for (side, wait) in waits(&seen).into_iter().enumerate() {
            wait.into_iter().for_each(|wait| self.waits[side].add(wait));
        }
    }

    /// Counts what a connection that ends has sent again since its last sample.
    pub(super) fn end(&self, seen: Option<&Observation>, mut before: Sampled) {
        let legs = seen.into_iter().flat_map(|seen| [&seen.radio, &seen.wired]);
        legs.enumerate().for_each(|(side, info)| self.count(side, info.total_retrans, &mut before));
    }

    fn count(&self, side: usize, again: u32, before: &mut Sampled) {
        let new = again.saturating_sub(std::mem::replace(&mut before.retransmissions[side], again));
        if new > 0 {
            self.retransmissions[side].fetch_add(new.into(), Relaxed);
        }
    }
}

/// Returns how long a byte that arrives now will wait in the proxy, towards the UE and towards the server: the bytes queued before
/// it, divided by the rate at which that host has acknowledged lately (`tcpi_delivery_rate`). Unknown until it acknowledges.
fn waits(seen: &Observation) -> [Option<Duration>; 2] {
    let to_ue = seen.unread() + seen.held + u64::from(seen.radio.notsent_bytes);
    let unread_from_ue = seen.radio.bytes_received.saturating_sub(seen.taken_from_ue);
    let to_server = unread_from_ue + seen.held_from_ue + u64::from(seen.wired.notsent_bytes);
    let wait =
        |bytes: u64, rate: u64| (rate > 0).then(|| Duration::from_secs_f64((bytes as f64 / rate as f64).min(1e6)));
    [wait(to_ue, seen.radio.delivery_rate), wait(to_server, seen.wired.delivery_rate)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::Side;
    use crate::proxy::settings::Settings;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Instant;

    /// A flow of two connections over loopback, with the ends of its UE and its server.
    fn flow() -> (Flow, TcpStream, TcpStream) {
        let pair = || {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let one = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
            (one, listener.accept().expect("it has connected").0)
        };
        let ((ue, radio), (wired, server)) = (pair(), pair());
        let ends = (ue.local_addr().expect("an address"), server.local_addr().expect("an address"));
        let settings = Settings::new(&["wan"], &["ran"]);
        let flow = Flow::new(Side::Ran, ends, [radio.into(), wired.into()], &settings, 0, Instant::now());
        (flow, ue, server)
    }

    fn count(histogram: &Histogram) -> (u64, f64) {
        let (sum_s, count, _) = Histogram::total(&[histogram]);
        (count, sum_s)
    }

    #[test]
    fn connections_are_sampled_when_bytes_have_passed_and_only_then() {
        let (flow, mut ue, mut server) = flow();
        let (samples, mut sampled) = (Samples::default(), Sampled::default());
        samples.take(&flow, &mut sampled);
        assert_eq!(count(&samples.rtts[0]).0, 0);
        // The proxy has taken 10,000 bytes from the server and given all to the UE.
        server.write_all(&[7; 10_000]).expect("it is open");
        let mut bytes = [0; 10_000];
        let [radio, wired] =
            [flow.radio(), flow.wired()].map(|leg| TcpStream::from(leg.try_clone_to_owned().expect("open")));
        (&wired).read_exact(&mut bytes).expect("they come");
        (&radio).write_all(&bytes).expect("it is open");
        ue.read_exact(&mut bytes).expect("they come");
        flow.to_ue.taken.store(10_000, Relaxed);
        for _ in 0..2 {
            samples.take(&flow, &mut sampled);
            assert_eq!([0, 1].map(|side| count(&samples.rtts[side]).0), [1, 1]);
            let (waits, sum_s) = count(&samples.waits[0]);
            assert!(waits == 1 && sum_s < 0.001, "{waits} {sum_s}");
            // Nothing has been sent to the server, so its rate is unknown.
            assert_eq!(count(&samples.waits[1]).0, 0);
        }
        // 5 MB wait in the proxy.
        flow.to_ue.taken.store(5_010_000, Relaxed);
        flow.to_ue.held.store(5_000_000, Relaxed);
        samples.take(&flow, &mut sampled);
        let rate = flow.observe().expect("it is open").radio.delivery_rate as f64;
        let (waits, sum_s) = count(&samples.waits[0]);
        assert!(waits == 2 && (sum_s - 5e6 / rate).abs() < 0.001, "{sum_s} s at {rate} B/s");
    }

    #[test]
    fn what_is_sent_again_counts_once() {
        let samples = Samples::default();
        let mut sampled = Sampled::default();
        for again in [3, 3, 5] {
            samples.count(1, again, &mut sampled);
        }
        assert_eq!(samples.retransmissions.each_ref().map(|count| count.load(Relaxed)), [0, 5]);
    }

    #[test]
    fn many_connections_take_turns() {
        let sampled =
            |sweep, connections: u64| (0..connections).filter(|&id| is_due(id, sweep, connections as usize)).count();
        assert_eq!((sampled(0, 5), sampled(7, 2_000)), (5, 2_000));
        assert_eq!((0..5).map(|sweep| sampled(sweep, 10_000)).collect::<Vec<_>>(), [2_000; 5]);
    }
}
