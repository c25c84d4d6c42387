//! Samples of each connection's state in the kernel, at fixed times.

use netio::sys::tcp_info;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::time::TimeSpec;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use units::{Rate, Span};
use wire::tcp_info::TcpInfo;

/// A connection's state that the two threads share.
pub(super) struct Shared {
    pub(super) sender: TcpStream,
    /// Bytes that the receiver has read.
    pub(super) received: AtomicU64,
    /// Whether it has started.
    pub(super) begun: AtomicBool,
    /// Whether it has ended, successfully or not.
    pub(super) ended: AtomicBool,
}

/// A sender's state at a moment, and the bytes that its receiver had read.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The moment, since the epoch.
    pub at: Span,
    /// The state of the connection, as in `enum` of `net/tcp_states.h`: 1 is established.
    pub state: u8,
    /// The state of congestion control: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss.
    pub ca_state: u8,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow-start threshold in segments; missing while infinite.
    pub ssthresh: Option<u32>,
    /// Payload of a full segment in bytes.
    pub mss: u32,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Span,
    /// Its mean deviation.
    pub rttvar: Span,
    /// Retransmission time-out.
    pub rto: Span,
    /// Smallest recent round-trip time.
    pub min_rtt: Option<Span>,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Of these, considered lost.
    pub lost: u32,
    /// Segments retransmitted and not acknowledged.
    pub retrans: u32,
    /// Segments that were selectively acknowledged.
    pub sacked: u32,
    /// Retransmissions so far.
    pub total_retrans: u32,
    /// Data segments sent so far, retransmissions included.
    pub data_segs_out: u32,
    /// Bytes that the application has written and that were not sent.
    pub notsent_bytes: u32,
    /// Bytes acknowledged so far; the SYN counts as one.
    pub bytes_acked: u64,
    /// Bytes that the receiving application has read so far.
    pub bytes_received: u64,
    /// The latest measure of the delivery rate.
    pub delivery_rate: Option<Rate>,
    /// The rate at which the kernel would pace; it does so with BBR, or if it is told to.
    pub pacing_rate: Option<Rate>,
    /// Total time with data to send or unacknowledged data.
    pub busy: Span,
    /// Of this, time limited by the receive window.
    pub rwnd_limited: Span,
    /// Of this, time limited by the send buffer.
    pub sndbuf_limited: Span,
    /// Time-outs so far, of kernels since 6.7.
    pub total_rto: Option<u32>,
}

impl Sample {
    /// Segments in flight, as `tcp_packets_in_flight` of the kernel counts them.
    pub fn in_flight(&self) -> u32 {
        self.sending().in_flight()
    }

    /// The part of the kernel's state that tells what held the sender back.
    pub(crate) fn sending(&self) -> TcpInfo {
        let micros = |total: Span| Some(total.as_micros());
        TcpInfo {
            snd_cwnd: self.cwnd,
            unacked: self.unacked,
            sacked: self.sacked,
            lost: self.lost,
            retrans: self.retrans,
            notsent_bytes: self.notsent_bytes,
            busy_time: micros(self.busy),
            rwnd_limited: micros(self.rwnd_limited),
            sndbuf_limited: micros(self.sndbuf_limited),
            ..TcpInfo::default()
        }
    }

    fn new(at: Span, info: &TcpInfo, bytes_received: u64) -> Sample {
        let micros = |n: u32| Span::from_micros(n.into());
        let total = |micros: Option<u64>| Span::from_micros(micros.unwrap_or(0));
        let rate = |n: u64| Rate::from_bits_per_sec(n.saturating_mul(8));
        Sample {
            at,
            state: info.state,
            ca_state: info.ca_state,
            cwnd: info.snd_cwnd,
            ssthresh: info.ssthresh(),
            mss: info.snd_mss,
            srtt: micros(info.rtt),
            rttvar: micros(info.rttvar),
            rto: micros(info.rto),
            min_rtt: info.min_rtt().map(micros),
            unacked: info.unacked,
            lost: info.lost,
            retrans: info.retrans,
            sacked: info.sacked,
            total_retrans: info.total_retrans,
            data_segs_out: info.data_segs_out,
            notsent_bytes: info.notsent_bytes,
            bytes_acked: info.bytes_acked,
            bytes_received,
            delivery_rate: Some(info.delivery_rate).filter(|&rate| rate != 0).map(rate),
            pacing_rate: info.pacing_rate().map(rate),
            busy: total(info.busy_time),
            rwnd_limited: total(info.rwnd_limited),
            sndbuf_limited: total(info.sndbuf_limited),
            total_rto: info.total_rto.map(u32::from),
        }
    }
}

/// Samples that are kept in all, of some 150 bytes each: then every second is dropped, and they are taken half as often.
const MOST: usize = 400_000;

/// Samples each connection at the multiples of `interval` after `epoch`, from its start until the first time after its end,
/// and at last when `stop` becomes readable. A time that has passed is left out rather than made up for.
pub(super) fn run(sources: &[Arc<Shared>], epoch: Instant, interval: Span, stop: &EventFd) -> Vec<Vec<Sample>> {
    let mut interval = Duration::from_nanos(interval.as_nanos()).max(Duration::from_millis(1));
    let mut samples = vec![Vec::new(); sources.len()];
    let mut over = vec![false; sources.len()];
    let mut tick = 0u32;
    loop {
        let last = stopped_before(stop, epoch + interval * tick);
        for ((source, samples), over) in sources.iter().zip(&mut samples).zip(&mut over) {
            if *over || !source.begun.load(Ordering::Acquire) {
                continue;
            }
            *over = source.ended.load(Ordering::Acquire);
            if let Ok(info) = tcp_info(source.sender.as_fd()) {
                let at = since(epoch, Instant::now());
                samples.push(Sample::new(at, &info, source.received.load(Ordering::Relaxed)));
            }
        }
        if last {
            return samples;
        }
        // What is counted in them counts up, so that nothing is lost with every second one.
        if samples.iter().map(Vec::len).sum::<usize>() > MOST {
            for samples in &mut samples {
                let mut number = 0;
                samples.retain(|_| {
                    number += 1;
                    number % 2 == 0
                });
            }
            interval *= 2;
            tick /= 2;
        }
        let passed = Instant::now().saturating_duration_since(epoch).as_nanos() / interval.as_nanos();
        tick = tick.max(u32::try_from(passed).unwrap_or(u32::MAX)).saturating_add(1);
    }
}

/// Waits until a moment, or until `stop` is readable. Returns whether it was.
fn stopped_before(stop: &EventFd, moment: Instant) -> bool {
    loop {
        let left = moment.saturating_duration_since(Instant::now());
        let mut wanted = [PollFd::new(stop.as_fd(), PollFlags::POLLIN)];
        // An interrupted wait is begun again.
        if ppoll(&mut wanted, Some(TimeSpec::from_duration(left)), None).is_ok_and(|ready| ready > 0) {
            return true;
        }
        if left.is_zero() {
            return false;
        }
    }
}

/// Returns the time from the epoch to a moment; zero before the epoch.
pub(super) fn since(epoch: Instant, moment: Instant) -> Span {
    Span::from_nanos(moment.saturating_duration_since(epoch).as_nanos().min(u64::MAX.into()) as u64)
}
