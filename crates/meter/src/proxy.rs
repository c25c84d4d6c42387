//! Signs of a split proxy: of something on the path, such as an operator's PEP, that answers TCP in the server's place.
//!
//! Three comparisons, each of what a proxy cannot keep equal at both of its sides:
//!
//! 1. The round trips of TCP and of the server's program on the same connection. The shortest ones are compared, so that neither jitter
//!    nor queues matter, and the kernel's include the handshake, which no delayed acknowledgement prolongs. RMBT's requests are measured
//!    by both ends, and the shorter time counts: a server that takes long to answer does not take long to see the client's confirmation.
//!    The program of an HTTP server has no such second time, so more is demanded ([`HTTP_EXCESS`]).
//! 2. The shortest round trips of a download in the kernels of both ends. The server's first one is of its handshake alone, which a
//!    radio's scheduling may prolong, so the longer one must be twice as long ([`ENDS_EXCESS`]).
//! 3. The bytes of an upload that were acknowledged, beside those that the server had by its own clock. A server that counts whole
//!    chunks is behind by a chunk, and a program that is interrupted for a moment by its receive buffer; both are excluded by the median
//!    over the whole transfer, an amount ([`LEAST_AHEAD`]) and a time ([`LEAST_LATE`]). What is left is a program that reads more slowly
//!    than the network delivers, all the time: the finding names it.

use std::fmt;

use observe::kernel::{Flow, State, Way};
use units::stats::upper_median;
use units::{Bytes, Span};

use crate::kinds::{Latency, Probe};
use crate::outcome::Outcome;

/// Requests of RMBT, and of HTTP with its handshakes, of which the shortest is the path's.
const REQUESTS: usize = 10;
const HTTP_REQUESTS: usize = 3;
/// By how much the server's program must be later than TCP: a time, and a share of TCP's.
const EXCESS: (Span, f64) = (Span::from_millis(10), 0.2);
/// The same of HTTP.
const HTTP_EXCESS: (Span, f64) = (Span::from_millis(25), 0.5);
/// By how much the round trips of the two ends must differ: a time, and a share of the shorter one.
const ENDS_EXCESS: (Span, f64) = (Span::from_millis(30), 1.0);
/// Of acknowledged bytes, those that are surely payload: WebSocket and TLS add less than 0.5 %.
const PAYLOAD: f64 = 0.99;
/// Bytes that are acknowledged and not yet at the server: more than two of the largest chunks of a client here.
const LEAST_AHEAD: f64 = (512 << 10) as f64;
/// How much later the server has them.
const LEAST_LATE: Span = Span::from_millis(500);

/// A sign that a proxy on the path answers for the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProxySign {
    /// The server's program answers much later than TCP: the shortest round trips of both.
    Answers {
        /// Of TCP, by this end's kernel.
        acknowledged: Span,
        /// Of a request to the server's program.
        answered: Span,
    },
    /// The kernels at the two ends of a download measure different paths: the shortest round trips of both.
    Ends {
        /// By this end's.
        here: Span,
        /// By the server's.
        there: Span,
    },
    /// Bytes of an upload are acknowledged long before the server has them: the medians of the flow for which this is most.
    Data {
        /// Bytes that were acknowledged, and that the server did not have.
        ahead: Bytes,
        /// How much later it had them, at the flow's mean rate.
        late: Span,
    },
}

impl ProxySign {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            ProxySign::Answers { .. } => "answers",
            ProxySign::Ends { .. } => "ends",
            ProxySign::Data { .. } => "data",
        }
    }
}

impl fmt::Display for ProxySign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |span: &Span| span.as_secs_f64() * 1e3;
        match self {
            ProxySign::Answers { acknowledged, answered } => write!(
                f,
                "TCP is answered within {:.1} ms, and requests to the server's program within {:.1} ms at best",
                ms(acknowledged),
                ms(answered)
            ),
            ProxySign::Ends { here, there } => write!(
                f,
                "the shortest round trip of downloads is {:.1} ms at this end, and {:.1} ms at the server's",
                ms(here),
                ms(there)
            ),
            ProxySign::Data { ahead, late } => write!(
                f,
                "{:.1} MB of an upload are acknowledged {:.1} s before the server has them, unless its program reads that slowly",
                ahead.get() as f64 / 1e6,
                late.as_secs_f64()
            ),
        }
    }
}

/// Whether a time is longer than another one by more than an excess.
fn exceeds(long: Span, short: Span, (least, share): (Span, f64)) -> bool {
    let excess = long.saturating_sub(short);
    excess >= least && excess.as_secs_f64() >= short.as_secs_f64() * share
}

impl Outcome {
    /// Returns the signs that a proxy on the path answers for the server: none if nothing points to one. `None` if there is no sign and
    /// no round trips could be compared.
    pub fn proxy_signs(&self) -> Option<Vec<ProxySign>> {
        let (answers, ends) = (self.answers(), self.ends());
        let has_compared = answers.is_some() || ends.is_some();
        let answers = answers.filter(|&(acknowledged, answered, excess)| exceeds(answered, acknowledged, excess));
        let answers = answers.map(|(acknowledged, answered, _)| ProxySign::Answers { acknowledged, answered });
        let differ = |&(here, there): &(Span, Span)| exceeds(here.max(there), here.min(there), ENDS_EXCESS);
        let ends = ends.filter(differ).map(|(here, there)| ProxySign::Ends { here, there });
        let uploads = self.loads.iter().flat_map(|load| &load.flows).filter_map(ahead);
        let data = uploads.max_by_key(|&(_, late)| late).map(|(ahead, late)| ProxySign::Data { ahead, late });
        let signs: Vec<ProxySign> = answers.into_iter().chain(ends).chain(data).collect();
        (has_compared || !signs.is_empty()).then_some(signs)
    }

    /// The shortest round trips of TCP and of requests, and by how much they differ at most without a proxy.
    fn answers(&self) -> Option<(Span, Span, (Span, f64))> {
        if let Some(requests) = &self.requests {
            let acknowledged = requests.acknowledged.filter(|_| requests.count >= REQUESTS)?;
            return Some((acknowledged, requests.answered, EXCESS));
        }
        let of = |wanted: Probe| {
            let found = self.latencies.iter().filter(move |latency: &&Latency| latency.probe == wanted);
            found.filter_map(|latency| latency.rtt)
        };
        // Each request of HTTP follows a handshake, on its connection.
        let has_enough = of(Probe::Request).count() >= HTTP_REQUESTS;
        let (handshake, request) = (of(Probe::Handshake).min()?, of(Probe::Request).min()?);
        has_enough.then_some((handshake, request, HTTP_EXCESS))
    }

    /// The shortest round trips of downloads in the kernels of this end and of the server's, if that tells them.
    fn ends(&self) -> Option<(Span, Span)> {
        let downloads = || self.loads.iter().flat_map(|load| &load.flows).filter(|flow| flow.way == Way::Down);
        let least = |sample: &State| sample.info.min_rtt().map(|micros| Span::from_micros(micros.into()));
        let there = downloads().flat_map(|flow| &flow.remote.samples).filter_map(least).min()?;
        let handshakes = self.latencies.iter().filter(|latency| latency.probe == Probe::Handshake);
        let here = downloads().flat_map(|flow| &flow.samples).filter_map(least);
        let here = here.chain(handshakes.filter_map(|latency| latency.rtt)).min()?;
        Some((here, there))
    }
}

/// The median of the bytes of an upload that were acknowledged and that its server did not have, and how much later it had them; `None`
/// if that is too little to mean something, or if it is not known.
fn ahead(flow: &Flow) -> Option<(Bytes, Span)> {
    let (span, total) = flow.bytes.last().filter(|_| flow.way == Way::Up && !flow.acknowledged)?;
    let before = flow.before?.bytes_acked;
    // The server's clock begins with the request, so what it has at a time of this one is acknowledged later.
    let of = |sample: &State| {
        let acked = sample.info.bytes_acked.saturating_sub(before) as f64;
        acked * PAYLOAD - flow.bytes.bytes_at(sample.at.saturating_since(flow.start))
    };
    let mut ahead: Vec<f64> = flow.under_way().map(of).collect();
    let median = upper_median(&mut ahead)?;
    let late = Span::from_secs_f64((median / total.max(1) as f64).max(0.0) * span.as_secs_f64());
    (median >= LEAST_AHEAD && late >= LEAST_LATE).then_some((Bytes::new(median as u64), late))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Requests;
    use crate::outcome::{Load, LoadTimes};
    use observe::kernel::Remote;
    use observe::progress::Samples;
    use units::Time;
    use wire::tcp_info::TcpInfo;

    const MS: fn(u64) -> Span = Span::from_millis;

    fn requests(acknowledged: u64, answered: u64, count: usize) -> Outcome {
        let requests = Requests { acknowledged: Some(MS(acknowledged)), answered: MS(answered), count };
        Outcome { requests: Some(requests), ..Outcome::default() }
    }

    #[test]
    fn a_program_that_answers_later_than_tcp_is_behind_a_proxy() {
        let found = requests(20, 50, 10).proxy_signs();
        assert_eq!(found, Some(vec![ProxySign::Answers { acknowledged: MS(20), answered: MS(50) }]));
        // 9 ms may be the server's, 15 ms of 100 ms jitter; and few requests may all have waited.
        assert_eq!(requests(20, 29, 10).proxy_signs(), Some(Vec::new()));
        assert_eq!(requests(100, 115, 10).proxy_signs(), Some(Vec::new()));
        assert_eq!(requests(20, 50, 9).proxy_signs(), None);
        let silent = Requests { acknowledged: None, answered: MS(50), count: 10 };
        assert_eq!(Outcome { requests: Some(silent), ..Outcome::default() }.proxy_signs(), None);
    }

    #[test]
    fn requests_of_http_are_compared_with_handshakes() {
        let http = |handshakes: u64, requests: u64, count: u64| {
            let latency = |probe, rtt: u64| Latency { at: Time::ZERO, probe, rtt: Some(MS(rtt)) };
            let latencies = (0..count).flat_map(|more| {
                [latency(Probe::Handshake, handshakes + more), latency(Probe::Request, requests + more)]
            });
            Outcome { latencies: latencies.collect(), ..Outcome::default() }.proxy_signs()
        };
        let sign = ProxySign::Answers { acknowledged: MS(5), answered: MS(45) };
        assert_eq!(http(5, 45, 3), Some(vec![sign]));
        assert_eq!((http(5, 29, 3), http(5, 45, 2), http(0, 0, 0)), (Some(Vec::new()), None, None));
    }

    fn flow(way: Way, samples: Vec<State>, bytes: Samples) -> Flow {
        Flow {
            way,
            number: 0,
            congestion: "cubic".into(),
            start: Time::ZERO,
            bytes,
            acknowledged: false,
            ended: None,
            before: Some(TcpInfo { bytes_acked: 1_000, ..TcpInfo::default() }),
            samples,
            remote: Remote::default(),
            passages: Vec::new(),
            failure: None,
        }
    }

    fn sample(ms: u64, info: TcpInfo) -> State {
        State { at: Time::ZERO + MS(ms), raw: Box::default(), info, bbr: None, delivered: 0 }
    }

    fn of(flow: Flow, handshake: Option<u64>) -> Option<Vec<ProxySign>> {
        let times = LoadTimes::of_ms([0, 0, 0, 10_000, 10_000]);
        let latency = |ms| Latency { at: Time::ZERO, probe: Probe::Handshake, rtt: Some(MS(ms)) };
        let latencies = handshake.map(latency).into_iter().collect();
        Outcome { loads: vec![Load { times, flows: vec![flow] }], latencies, ..Outcome::default() }.proxy_signs()
    }

    #[test]
    fn kernels_that_measure_different_paths_have_a_proxy_between_them() {
        let ends = |here: u32, there: u32, handshake: Option<u64>| {
            let of_kernel = |ms: u32| sample(500, TcpInfo { min_rtt: ms * 1_000, ..TcpInfo::default() });
            let mut download = flow(Way::Down, vec![of_kernel(here)], Samples::default());
            download.remote.samples = vec![of_kernel(there)];
            of(download, handshake)
        };
        assert_eq!(ends(1, 40, None), Some(vec![ProxySign::Ends { here: MS(1), there: MS(40) }]));
        assert_eq!(ends(80, 5, None), Some(vec![ProxySign::Ends { here: MS(80), there: MS(5) }]));
        // A handshake that was quicker than the flow's is of the same path, and one of 50 ms may have waited for a grant.
        assert_eq!((ends(60, 20, Some(20)), ends(30, 50, None)), (Some(Vec::new()), Some(Vec::new())));
        // A server that does not tell, as with RMBT.
        assert_eq!(ends(1, 0, Some(20)), None);
    }

    /// An upload of 10 s at 1 MB/s, of which so many bytes are acknowledged before the server has them.
    fn upload(ahead: u64) -> Flow {
        let mut bytes = Samples::default();
        bytes.finish(MS(10_000), 10_000_000);
        let acked = |ms: u64| TcpInfo { bytes_acked: 1_000 + 1_000 * ms + ahead, ..TcpInfo::default() };
        flow(Way::Up, (0..1_000).map(|tick| sample(tick * 10, acked(tick * 10))).collect(), bytes)
    }

    #[test]
    fn bytes_that_are_acknowledged_long_before_the_server_has_them_are_those_of_a_proxy() {
        let signs = of(upload(2_000_000), None).expect("a sign");
        let [ProxySign::Data { ahead, late }] = signs[..] else { panic!("{signs:?}") };
        // Of 5 MB in the middle and 2 MB ahead, 1 % may be framing.
        assert!(
            (1_900_000..2_000_000).contains(&ahead.get()) && (1_900..2_000).contains(&late.as_millis()),
            "{ahead:?} {late:?}"
        );
        // Without round trips to compare, the absence of this sign means nothing.
        assert_eq!(of(upload(500_000), None), None);
        // Of what the server did not count, nothing is known.
        assert_eq!(of(Flow { acknowledged: true, ..upload(2_000_000) }, None), None);
        assert_eq!(of(Flow { before: None, ..upload(2_000_000) }, None), None);
    }

    #[test]
    fn signs_are_sentences_with_their_numbers() {
        let text = |sign: ProxySign| (sign.name(), sign.to_string());
        let (name, said) = text(ProxySign::Answers { acknowledged: MS(1), answered: MS(61) });
        assert_eq!(name, "answers");
        assert_eq!(said, "TCP is answered within 1.0 ms, and requests to the server's program within 61.0 ms at best");
        let (name, said) = text(ProxySign::Data { ahead: Bytes::new(2_000_000), late: MS(1_500) });
        assert_eq!((name, said.starts_with("2.0 MB of an upload are acknowledged 1.5 s before ")), ("data", true));
    }
}
