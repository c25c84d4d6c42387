//! The kernel's state of all flows, at fixed times.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use observe::kernel::{State, Way};
use observe::progress::Samples;
use units::Span;

use crate::flow::Shared;
use crate::line::Clock;

/// Samples that are kept in all, of some 400 bytes each: then every second is dropped, and they are taken half as often.
const MOST: usize = 400_000;

/// Samples the flows from their beginning until their end: the first and the last sample of a flow are of just these moments. A time
/// that has passed is left out rather than made up for. Each sample of an upload asks for a stamp. Whoever sets `stop` wakes this
/// thread, which then does not wait for the next sample.
pub(crate) fn run(flows: &[Arc<Shared>], interval: Span, clock: Clock, stop: &AtomicBool) -> Vec<Vec<State>> {
    let mut interval = Duration::from_nanos(interval.as_nanos()).max(Duration::from_millis(1));
    let mut samples = vec![Vec::new(); flows.len()];
    let mut over = vec![false; flows.len()];
    let mut due = Instant::now();
    loop {
        let last = stop.load(Relaxed);
        for ((flow, samples), over) in flows.iter().zip(&mut samples).zip(&mut over) {
            let Some(begun) = flow.begun().filter(|_| !*over) else { continue };
            if samples.is_empty() {
                samples.extend(begun.state.clone());
            } else if flow.ended().is_none() {
                samples.extend(flow.sample(|| clock.now()));
            }
            if let Some(ended) = flow.ended() {
                // It may have ended while it was sampled.
                while samples.last().is_some_and(|last| last.at >= ended.at) {
                    samples.pop();
                }
                samples.extend(ended.state.clone());
                *over = true;
            }
            flow.wants_stamp.store(true, Relaxed);
        }
        if last || over.iter().all(|&over| over) {
            return samples;
        }
        if samples.iter().map(Vec::len).sum::<usize>() > MOST {
            for samples in &mut samples {
                let mut keep = false;
                samples.retain(|_| {
                    keep = !keep;
                    keep
                });
            }
            interval *= 2;
        }
        due = (due + interval).max(Instant::now());
        rest(due, stop);
    }
}

/// Waits until `due`, or until `stop` is set and the thread is woken.
fn rest(due: Instant, stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::park_timeout(left);
    }
}

/// Returns the bytes of a transfer over time as this end counts them, complete or not: of a download those that arrived, of an
/// upload those that were acknowledged. Empty if the transfer did not begin, or the kernel tells nothing of an upload.
pub(crate) fn counted(flow: &Shared, samples: &[State]) -> Samples {
    let mut bytes = Samples::default();
    let (Some(begun), Some(ended)) = (flow.begun(), flow.ended()) else { return bytes };
    let count = |delivered: u64, acked: Option<u64>| match flow.way {
        Way::Down => Some(delivered),
        Way::Up => Some(acked?.saturating_sub(begun.acked()?)),
    };
    let sampled = samples.iter().filter(|sample| sample.at < ended.at);
    let sampled = sampled.map(|sample| (sample.at, count(sample.delivered, Some(sample.info.bytes_acked))));
    for (at, count) in sampled.chain([(ended.at, count(flow.delivered(), ended.acked()))]) {
        if let Some(count) = count {
            bytes.finish(at.saturating_since(begun.at), count);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use units::Time;
    use wire::tcp_info::TcpInfo;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn sampled(ms: u64, delivered: u64) -> State {
        State { at: at(ms), raw: Box::default(), info: TcpInfo::default(), bbr: None, delivered }
    }

    #[test]
    fn a_download_that_ends_early_has_what_arrived() {
        let flow = Shared::new(Way::Down, 0);
        assert_eq!(counted(&flow, &[]), Samples::default());
        flow.begin(at(1_000));
        flow.moved.store(900, Relaxed);
        flow.end(at(1_500));
        // The last sample is later than the end, with the same bytes.
        let bytes = counted(&flow, &[sampled(1_100, 0), sampled(1_200, 500), sampled(1_510, 900)]);
        let expected = [(100, 0), (200, 500), (500, 900)].map(|(ms, bytes)| (Span::from_millis(ms), bytes));
        assert_eq!(bytes.as_slice(), expected);
    }

    #[test]
    fn an_upload_that_ends_early_has_what_was_acknowledged_since_its_beginning() {
        let flow = Shared::new(Way::Up, 0);
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let mut client = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (mut server, _) = listener.accept().expect("a client");
        flow.connected(client.try_clone().expect("a copy"));
        let mut send = |bytes: usize| {
            client.write_all(&vec![0; bytes]).expect("there is room");
            server.read_exact(&mut vec![0; bytes]).expect("it arrives");
            // An acknowledgement may be delayed by 200 ms.
            std::thread::sleep(Duration::from_millis(400));
        };
        send(300);
        flow.begin(at(1_000));
        send(5_000);
        flow.end(at(2_000));
        assert_eq!(counted(&flow, &[]).as_slice(), [(Span::from_secs(1), 5_000)]);
    }

    #[test]
    fn an_upload_of_which_the_kernel_tells_nothing_has_no_bytes_rather_than_zero() {
        let flow = Shared::new(Way::Up, 0);
        flow.begin(at(1_000));
        flow.end(at(2_000));
        assert_eq!(counted(&flow, &[]).last(), None);
    }
}
