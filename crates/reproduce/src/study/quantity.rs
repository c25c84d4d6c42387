//! What is taken of a test.

use super::tests_of::{Sample, Study, Test};
use serde::Deserialize;

/// A flow starves while it gets less than this part of its fair share,
const STARVING_SHARE: f64 = 0.25;
/// for at least so long, s.
const STARVING_S: f64 = 5.0;
/// The time around a handover that counts for it, s.
const AROUND_HANDOVER_S: f64 = 1.0;
/// The RSRP, in dBm, at which throughput counts as that inside a cell.
const INSIDE_DBM: core::ops::RangeInclusive<f64> = -75.0..=-70.0;

/// The interval at which the paper samples the sum of a test's flows, s.
const FIVE_SECONDS: f64 = 5.0;

/// Within so many dB an RSRP counts as the same.
const SAME_RSRP_DB: f64 = 2.0;

/// A quantity: one value a test, one a flow, or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Goodput of all flows, Mbit/s.
    #[default]
    Goodput,
    /// Goodput of each flow, Mbit/s.
    FlowGoodput,
    /// Payload that arrived of each flow, MB.
    FlowPayload,
    /// Mean of the flows' mean round-trip times, ms.
    Rtt,
    /// Mean round-trip time of each flow, ms.
    FlowRtt,
    /// Mean of the flows' mean data in flight, kB.
    InFlight,
    /// Mean data in flight of each flow, kB.
    FlowInFlight,
    /// Segments that were retransmitted, per cent of those sent.
    Retransmitted,
    /// Jain's index of the flows' goodputs.
    JainGoodput,
    /// Jain's index of the flows' mean round-trip times.
    JainRtt,
    /// 100 if a flow starved: had less than a quarter of its fair share for 5 s or longer; otherwise 0.
    Starved,
    /// Retransmission timeouts of all flows.
    Timeouts,
    /// Most duplicate acknowledgements in succession.
    DupAcks,
    /// Retransmission timeout less smoothed round-trip time, s, of each sample of each flow.
    RtoMargin,
    /// Retransmission timeout less the latest round-trip time, s, of each sample of each flow.
    RtoMarginLatest,
    /// Smoothed round-trip time, ms, of each sample of each flow.
    SampleSrtt,
    /// Time from one phase of BBR's `ProbeRTT` to the next, s, of each flow.
    ProbeInterval,
    /// The middle of each second since the beginning of the run, s.
    SecondTime,
    /// RSRP of the UE in each second, dBm.
    SecondRsrp,
    /// Goodput of all flows in each second, Mbit/s.
    SecondGoodput,
    /// Mean data in flight of a flow in each second, kB.
    SecondInFlight,
    /// Goodput of all flows in each interval of 5 s, Mbit/s.
    FiveSecondGoodput,
    /// Mean of all flows' round-trip times in each interval of 5 s, ms.
    FiveSecondRtt,
    /// Goodput of all flows within 1 s of each handover, Mbit/s.
    AtHandover,
    /// For each handover: mean goodput of all flows in the test's seconds with the same RSRP, to within 2 dB, and without a
    /// handover within 2 s, Mbit/s.
    SameRsrp,
    /// Goodput of all flows in each second with an RSRP of -75 to -70 dBm and no handover within 1 s, Mbit/s.
    InCell,
}

/// A second of a test.
struct Second {
    t_s: f64,
    rsrp_dbm: f64,
    goodput_mbps: f64,
    in_flight_kb: f64,
    /// The goodput of each flow.
    flows: Vec<f64>,
}

impl Quantity {
    /// Returns whether it is computed from samples; the others are figures of whole flows.
    pub(super) fn needs_samples(self) -> bool {
        !matches!(
            self,
            Quantity::Goodput
                | Quantity::FlowGoodput
                | Quantity::FlowPayload
                | Quantity::Rtt
                | Quantity::FlowRtt
                | Quantity::InFlight
                | Quantity::FlowInFlight
                | Quantity::Retransmitted
                | Quantity::JainGoodput
                | Quantity::JainRtt
                | Quantity::Timeouts
                | Quantity::DupAcks
        )
    }

    /// Returns the values of a test.
    pub(super) fn values(self, _study: &Study, test: &Test) -> Vec<f64> {
        let flows = |of: fn(&super::tests_of::OneFlow) -> f64| test.copies.iter().map(of).collect::<Vec<f64>>();
        let sum = |values: Vec<f64>| values.iter().sum::<f64>();
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        match self {
            Quantity::Goodput => vec![sum(flows(|flow| flow.goodput_mbps))],
            Quantity::FlowGoodput => flows(|flow| flow.goodput_mbps),
            Quantity::FlowPayload => flows(|flow| flow.payload_mb),
            Quantity::Rtt => vec![mean(flows(|flow| flow.rtt_ms))],
            Quantity::FlowRtt => flows(|flow| flow.rtt_ms),
            Quantity::InFlight => vec![mean(flows(|flow| flow.in_flight_kb))],
            Quantity::FlowInFlight => flows(|flow| flow.in_flight_kb),
            Quantity::Retransmitted => {
                let (again, all) = (sum(flows(|flow| flow.retransmitted)), sum(flows(|flow| flow.sent)));
                vec![again / all * 100.0]
            }
            Quantity::JainGoodput => vec![jain(&flows(|flow| flow.goodput_mbps))],
            Quantity::JainRtt => vec![jain(&flows(|flow| flow.rtt_ms))],
            Quantity::Starved => vec![if starves(&seconds(test)) { 100.0 } else { 0.0 }],
            Quantity::Timeouts => vec![sum(flows(|flow| flow.timeouts))],
            Quantity::DupAcks => vec![flows(|flow| flow.dup_acks).into_iter().fold(0.0, f64::max)],
            Quantity::RtoMargin => {
                let samples = test.copies.iter().flat_map(|flow| &flow.samples);
                samples.map(|sample| (sample.rto_ms - sample.srtt_ms) / 1e3).collect()
            }
            Quantity::RtoMarginLatest => {
                let samples = test.copies.iter().flat_map(|flow| &flow.samples);
                samples.map(|sample| (sample.rto_ms - sample.latest_rtt_ms) / 1e3).collect()
            }
            Quantity::SampleSrtt => {
                let samples = test.copies.iter().flat_map(|flow| &flow.samples);
                samples.map(|sample| sample.srtt_ms).collect()
            }
            Quantity::ProbeInterval => test.copies.iter().flat_map(|flow| probe_intervals(&flow.samples)).collect(),
            Quantity::SecondTime => seconds(test).iter().map(|second| second.t_s).collect(),
            Quantity::SecondRsrp => seconds(test).iter().map(|second| second.rsrp_dbm).collect(),
            Quantity::SecondGoodput => seconds(test).iter().map(|second| second.goodput_mbps).collect(),
            Quantity::SecondInFlight => seconds(test).iter().map(|second| second.in_flight_kb).collect(),
            Quantity::FiveSecondGoodput => five_seconds(test).into_iter().map(|(goodput, _)| goodput).collect(),
            Quantity::FiveSecondRtt => five_seconds(test).into_iter().map(|(_, rtt)| rtt).collect(),
            Quantity::AtHandover => test.handovers.iter().filter_map(|&at| at_handover(test, at)).collect(),
            Quantity::SameRsrp => {
                let all = seconds(test);
                test.handovers.iter().filter_map(|&at| same_rsrp(test, &all, at)).collect()
            }
            Quantity::InCell => {
                let near = |t: f64| is_near_handover(test, t);
                let all = seconds(test);
                let inside = all.iter().filter(|second| INSIDE_DBM.contains(&second.rsrp_dbm) && !near(second.t_s));
                inside.map(|second| second.goodput_mbps).collect()
            }
        }
    }
}

/// Jain's index.
fn jain(values: &[f64]) -> f64 {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (values.len() as f64 * squares)
}

/// Goodput of all flows within a second of a moment.
fn at_handover(test: &Test, at: f64) -> Option<f64> {
    let near = test.moments().filter(|flows| (flows[0].t_s - at).abs() <= AROUND_HANDOVER_S);
    let goodputs: Vec<f64> = near.map(|flows| flows.iter().map(|flow| flow.goodput_mbps).sum()).collect();
    (!goodputs.is_empty()).then(|| goodputs.iter().sum::<f64>() / goodputs.len() as f64)
}

fn is_near_handover(test: &Test, t: f64) -> bool {
    test.handovers.iter().any(|at| (at - t).abs() <= AROUND_HANDOVER_S + 1.0)
}

/// Mean goodput of the seconds away from handovers that have the RSRP of the second of a handover.
fn same_rsrp(test: &Test, seconds: &[Second], at: f64) -> Option<f64> {
    let rsrp = seconds.iter().find(|second| (second.t_s - at).abs() <= 0.5)?.rsrp_dbm;
    let alike =
        |second: &&Second| (second.rsrp_dbm - rsrp).abs() <= SAME_RSRP_DB && !is_near_handover(test, second.t_s);
    let goodputs: Vec<f64> = seconds.iter().filter(alike).map(|second| second.goodput_mbps).collect();
    (!goodputs.is_empty()).then(|| goodputs.iter().sum::<f64>() / goodputs.len() as f64)
}

/// Times between the beginnings of phases of `ProbeRTT`.
fn probe_intervals(samples: &[Sample]) -> Vec<f64> {
    let begins = samples.windows(2).filter(|pair| pair[1].probes_rtt && !pair[0].probes_rtt);
    let begins: Vec<f64> = begins.map(|pair| pair[1].t_s).collect();
    begins.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Returns the number of moments in so many seconds; none without two moments.
fn moments_in(seconds: f64, moments: &[Vec<&Sample>]) -> Option<usize> {
    let [first, second, ..] = moments else { return None };
    let interval = second[0].t_s - first[0].t_s;
    Some(((seconds / interval).round() as usize).max(1))
}

/// Goodput of all flows, and the mean of their round-trip times, in each whole interval of 5 s. The latter is NaN if there is
/// no round-trip time in the interval.
fn five_seconds(test: &Test) -> Vec<(f64, f64)> {
    let moments: Vec<Vec<&Sample>> = test.moments().collect();
    let Some(n) = moments_in(FIVE_SECONDS, &moments) else { return Vec::new() };
    let intervals = moments.chunks_exact(n).map(|chunk| {
        let goodput = chunk.iter().flatten().map(|sample| sample.goodput_mbps).sum::<f64>() / n as f64;
        let rtts = chunk.iter().flatten().map(|sample| sample.rtt_ms).filter(|rtt| rtt.is_finite());
        let (sum, count) = rtts.fold((0.0, 0.0), |(sum, count), rtt| (sum + rtt, count + 1.0));
        (goodput, sum / count)
    });
    intervals.collect()
}

/// The whole seconds of a test: the means over the samples of each.
fn seconds(test: &Test) -> Vec<Second> {
    let moments: Vec<Vec<&Sample>> = test.moments().collect();
    let Some(n) = moments_in(1.0, &moments) else { return Vec::new() };
    let first = &moments[0];
    let mut radio = test.radio.iter().peekable();
    let mut rsrp = f64::NAN;
    let seconds = moments.chunks_exact(n).map(|chunk| {
        let end = chunk[n - 1][0].t_s;
        let (mut sum, mut count) = (0.0, 0);
        while let Some(sample) = radio.next_if(|sample| sample.t_s <= end + 1e-9) {
            sum += sample.rsrp_dbm;
            count += 1;
        }
        if count > 0 {
            rsrp = sum / f64::from(count);
        }
        let mean =
            |of: fn(&Sample) -> f64, flow: usize| chunk.iter().map(|flows| of(flows[flow])).sum::<f64>() / n as f64;
        let flows: Vec<f64> = (0..first.len()).map(|flow| mean(|sample| sample.goodput_mbps, flow)).collect();
        let in_flight: f64 = (0..first.len()).map(|flow| mean(|sample| sample.in_flight_kb, flow)).sum();
        Second {
            t_s: end - 0.5,
            rsrp_dbm: rsrp,
            goodput_mbps: flows.iter().sum(),
            in_flight_kb: in_flight / first.len() as f64,
            flows,
        }
    });
    seconds.collect()
}

/// Whether one of the flows gets less than a quarter of its share for 5 s on end. Seconds in which nothing arrives at all do
/// not count.
fn starves(seconds: &[Second]) -> bool {
    let flows = seconds.first().map_or(0, |second| second.flows.len());
    (0..flows).any(|flow| {
        let mut since = 0.0;
        seconds.iter().filter(|second| second.goodput_mbps > 0.0).any(|second| {
            let share = second.goodput_mbps / flows as f64;
            since = if second.flows[flow] < STARVING_SHARE * share { since + 1.0 } else { 0.0 };
            since >= STARVING_S
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::Study;
    use super::*;
    use record::Results;
    use record::tables::{FlowRow, MobilityRow, RadioRow, SampleRow};

    /// A test of two flows over 20 s, sampled twice a second: the first gets 9 Mbit/s, the second 1 Mbit/s in the seconds
    /// from `from` to `to` and 9 otherwise. The RSRP is -72 dBm for 10 s, then -90.
    fn results(from: f64, to: f64) -> Results {
        let mut results = Results::default();
        for conn in 0..2 {
            results.tables.flows.push(&FlowRow {
                flow: "up-1",
                from: "bus",
                conn,
                transport: "tcp",
                ..FlowRow::default()
            });
        }
        for i in 1..=40 {
            let t_s = f64::from(i) * 0.5;
            for conn in 0..2 {
                let low = conn == 1 && t_s > from && t_s <= to;
                let goodput_mbps = if low { 1.0 } else { 9.0 };
                let state = if i % 20 == 5 && conn == 0 { "probe-rtt" } else { "probe-bw" };
                let row =
                    SampleRow { flow: "up-1", conn, t_s, goodput_mbps, state, limit: "cwnd", ..SampleRow::default() };
                let row = SampleRow { rto_ms: Some(700.0), srtt_ms: Some(400.0), in_flight_bytes: Some(5_000), ..row };
                // The first flow has a round-trip time in the odd samples: 300 ms, and 500 ms from 10 s on.
                let rtt = if t_s <= 10.0 { 300.0 } else { 500.0 };
                let row = SampleRow { rtt_ms: (conn == 0 && i % 2 == 1).then_some(rtt), ..row };
                results.tables.samples.push(&row);
            }
            let rsrp_dbm = if t_s <= 10.0 { -72.0 } else { -90.0 };
            results.tables.radio.push(&RadioRow { ue: "bus", t_s, rsrp_dbm, ..RadioRow::default() });
        }
        let row = MobilityRow { ue: "bus", t_s: 15.2, event: "left", ..MobilityRow::default() };
        results.tables.mobility.push(&row);
        results
    }

    fn values(results: &Results, quantity: Quantity) -> Vec<f64> {
        let study = Study::new(results);
        let test = study.matching(0, "up-*").next().unwrap();
        quantity.values(&study, test)
    }

    #[test]
    fn a_flow_starves_after_five_seconds_below_a_quarter_of_its_share() {
        // 1 of 10 Mbit/s is a fifth of the share of 5.
        assert_eq!(values(&results(3.0, 8.0), Quantity::Starved), [100.0]);
        assert_eq!(values(&results(3.0, 7.0), Quantity::Starved), [0.0]);
    }

    #[test]
    fn seconds_have_the_means_of_their_samples() {
        let results = results(3.0, 8.0);
        let goodput = values(&results, Quantity::SecondGoodput);
        assert_eq!((goodput.len(), goodput[2], goodput[3], goodput[8]), (20, 18.0, 10.0, 18.0));
        assert_eq!(values(&results, Quantity::SecondRsrp)[9..11], [-72.0, -90.0]);
        assert_eq!(values(&results, Quantity::SecondInFlight)[0], 5.0);
        assert!((values(&results, Quantity::RtoMargin)[0] - 0.3).abs() < 1e-12);
    }

    #[test]
    fn the_latest_round_trip_time_lasts_until_the_next_one() {
        // 700 less 300 ms, and the sample after it has the same; the other flow never has one.
        let margins = values(&results(3.0, 8.0), Quantity::RtoMarginLatest);
        let (first, other) = margins.split_at(40);
        assert!(first[..20].iter().all(|margin| (margin - 0.4).abs() < 1e-12), "{first:?}");
        assert!(first[20..].iter().all(|margin| (margin - 0.2).abs() < 1e-12), "{first:?}");
        assert!(other.iter().all(|margin| margin.is_nan()), "{other:?}");
    }

    #[test]
    fn intervals_of_five_seconds_have_means_over_all_flows() {
        // 18 Mbit/s, and 10 for 2 s of the first interval and 3 s of the second.
        let results = results(3.0, 8.0);
        let goodput = values(&results, Quantity::FiveSecondGoodput);
        let expected = [18.0 - 8.0 * 0.4, 18.0 - 8.0 * 0.6, 18.0, 18.0];
        assert!(goodput.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-9) && goodput.len() == 4, "{goodput:?}");
        assert_eq!(values(&results, Quantity::FiveSecondRtt), [300.0, 300.0, 500.0, 500.0]);
    }

    #[test]
    fn handovers_and_the_inside_of_cells_are_apart() {
        let results = results(14.0, 15.0);
        // Samples at 14.5 and 15 have 10 Mbit/s, those at 15.5 and 16 have 18.
        assert_eq!(values(&results, Quantity::AtHandover), [14.0]);
        assert_eq!(values(&results, Quantity::InCell), [18.0; 10]);
        // At -90 dBm: all seconds from 10 s on except those around 15.2 s, which are the ones from 14.5 to 16.5 (14 and 17
        // s are 1.7 s and more away from the middle of the second).
        assert_eq!(values(&results, Quantity::SameRsrp), [18.0]);
    }

    #[test]
    fn probes_of_the_round_trip_time_are_ten_seconds_apart() {
        assert_eq!(values(&results(0.0, 0.0), Quantity::ProbeInterval), [10.0]);
    }
}
