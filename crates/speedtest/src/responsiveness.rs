//! Responsiveness under working conditions, as round trips per minute (RPM).
//!
//! Read first: draft-ietf-ippm-responsiveness, "Responsiveness under Working Conditions". Report milliseconds beside RPM: a
//! reciprocal hides how few round trips were slow.

use units::Span;

/// The share of the shortest round trips that counts (TM: the slowest 5 % are dropped).
const TRIM: f64 = 0.95;

/// Returns the mean of the shortest 95 % of round trips, at least one of them.
pub fn trimmed_mean(spans: &[Span]) -> Option<Span> {
    let mut sorted = spans.to_vec();
    sorted.sort_unstable();
    let count = ((sorted.len() as f64 * TRIM).floor() as usize).max(1).min(sorted.len());
    let sum: f64 = sorted[..count].iter().map(|span| span.as_secs_f64()).sum();
    (count > 0).then(|| Span::from_secs_f64(sum / count as f64))
}

/// Round trips measured while the network is loaded.
#[derive(Clone, Debug, Default)]
pub struct Probes {
    /// TCP handshakes of separate connections.
    pub tcp: Vec<Span>,
    /// TLS handshakes of separate connections, a round trip each.
    pub tls: Vec<Span>,
    /// Requests and responses on separate connections.
    pub http: Vec<Span>,
    /// Requests and responses on connections that carry load.
    pub loaded: Vec<Span>,
}

/// The result in both units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Responsiveness {
    /// Round trips per minute, foreign and loaded with equal weight.
    pub rpm: f64,
    /// The mean round trip on separate connections: of TCP, TLS and HTTP with equal weight.
    pub foreign: Span,
    /// The mean round trip on connections that carry load.
    pub loaded: Span,
}

impl Probes {
    /// Returns the responsiveness: with F = 60 000 / ((TM(tcp) + TM(tls) + TM(http)) / 3) and L = 60 000 / TM(loaded), in
    /// milliseconds, (F + L) / 2. Without TLS, which the draft always has, F is of two terms. `None` if another kind of probe
    /// is missing.
    pub fn responsiveness(&self) -> Option<Responsiveness> {
        let loaded = trimmed_mean(&self.loaded)?;
        let terms = [Some(trimmed_mean(&self.tcp)?), trimmed_mean(&self.tls), Some(trimmed_mean(&self.http)?)];
        let known = terms.iter().flatten();
        let foreign = known.clone().map(|span| span.as_secs_f64()).sum::<f64>() / known.count() as f64;
        let per_minute = |seconds: f64| 60.0 / seconds;
        let rpm = (per_minute(foreign) + per_minute(loaded.as_secs_f64())) / 2.0;
        rpm.is_finite().then(|| Responsiveness { rpm, foreign: Span::from_secs_f64(foreign), loaded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(values: &[u64]) -> Vec<Span> {
        values.iter().map(|&ms| Span::from_millis(ms)).collect()
    }

    #[test]
    fn the_slowest_twentieth_is_dropped() {
        let mut values = vec![10; 19];
        values.push(5_000);
        assert_eq!(trimmed_mean(&ms(&values)), Some(Span::from_millis(10)));
        assert_eq!(trimmed_mean(&ms(&[30])), Some(Span::from_millis(30)));
        // floor(2 * 0.95) = 1: the slower one of two is dropped.
        assert_eq!(trimmed_mean(&ms(&[30, 90])), Some(Span::from_millis(30)));
        assert_eq!(trimmed_mean(&[]), None);
    }

    #[test]
    fn foreign_and_loaded_round_trips_have_equal_weight() {
        let probes = Probes { tcp: ms(&[20]), tls: ms(&[30]), http: ms(&[40]), loaded: ms(&[60]) };
        // F = 60 000 / 30 = 2000, L = 60 000 / 60 = 1000.
        let result = probes.responsiveness().expect("all kinds");
        assert!((result.rpm - 1_500.0).abs() < 1e-6, "{result:?}");
        assert_eq!((result.foreign, result.loaded), (Span::from_millis(30), Span::from_millis(60)));
        let plain = Probes { tls: Vec::new(), ..probes };
        // F = 60 000 / 30 again: (20 + 40) / 2.
        assert!((plain.responsiveness().expect("without TLS").rpm - 1_500.0).abs() < 1e-6);
    }

    #[test]
    fn without_probes_of_a_kind_there_is_no_result() {
        let probes = Probes { tcp: ms(&[20]), tls: ms(&[30]), http: ms(&[40]), loaded: Vec::new() };
        assert_eq!(probes.responsiveness(), None);
        assert_eq!(
            Probes { tcp: ms(&[0]), http: ms(&[0]), loaded: ms(&[0]), ..Probes::default() }.responsiveness(),
            None
        );
    }
}
