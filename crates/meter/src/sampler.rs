//! The kernel's state of all flows, at fixed times.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use netio::sys;
use units::{Span, Time};
use wire::tcp_info::{self, BbrInfo, TcpInfo};

use crate::flow::Shared;
use crate::line::Clock;

/// Samples that are kept in all, of some 400 bytes each: then every second is dropped, and they are taken half as often.
const MOST: usize = 400_000;

/// The state of a flow at a moment.
#[derive(Clone, Debug)]
pub struct Sample {
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

/// Samples the flows from their beginning until their end, and at last when `stop` is set. A time that has passed is left out
/// rather than made up for. Each sample of an upload asks for a stamp.
pub(crate) fn run(flows: &[Arc<Shared>], interval: Span, clock: Clock, stop: &AtomicBool) -> Vec<Vec<Sample>> {
    let mut interval = Duration::from_nanos(interval.as_nanos()).max(Duration::from_millis(1));
    let mut samples = vec![Vec::new(); flows.len()];
    let mut over = vec![false; flows.len()];
    let mut due = Instant::now();
    loop {
        let last = stop.load(Relaxed);
        for ((flow, samples), over) in flows.iter().zip(&mut samples).zip(&mut over) {
            if *over || !flow.begun.load(Relaxed) {
                continue;
            }
            *over = flow.ended.load(Relaxed);
            samples.extend(sample(flow, clock));
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
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

fn sample(flow: &Shared, clock: Clock) -> Option<Sample> {
    let mut buffer = [0; tcp_info::MOST];
    let socket = flow.socket()?;
    let raw = sys::tcp_info_bytes(socket, &mut buffer).ok()?;
    let info = TcpInfo::decode(raw)?;
    let bbr = sys::bbr_info(socket).ok().flatten();
    Some(Sample { at: clock.now(), raw: raw.into(), info, bbr, delivered: flow.delivered() })
}
