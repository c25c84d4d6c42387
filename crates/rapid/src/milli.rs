//! The window rule of milliProxy: a flow's rate times its round-trip time, less what the radio holds already.
//!
//! milliProxy does not split connections; it rewrites the receive window in acknowledgements. Here, its rule sets the wired
//! leg's window of a split proxy, and the radio leg may have as much in flight.

use crate::blocks::TransportBlocks;
use crate::decision::{Category, Decision, rate};
use crate::flow::{Flow, Ue};
use slab::Slab;
use units::{Span, Time};

/// Updates the flows of a UE.
pub(crate) fn update<F: Copy, U>(
    floor_segments: u32,
    ue: &Ue,
    flows: &Slab<Flow<F, U>>,
    now: Time,
    decide: &mut dyn FnMut(F, &Decision),
) {
    let Some((share, _)) = ue.equal_share(&TransportBlocks::Reported, flows, now) else {
        return ue.awake.iter().for_each(|&id| decide(flows[id].key, &Decision::UNLIMITED));
    };
    for &id in &ue.awake {
        let flow = &flows[id];
        let floor = f64::from(floor_segments * flow.mss);
        let seconds = |span: Option<Span>| span.unwrap_or_default().as_secs_f64();
        let round = seconds(flow.sample.wired_rtt()) + seconds(flow.sample.ran_min_rtt);
        let backlog = flow.sample.in_flight as f64 - share * seconds(flow.sample.ran_min_rtt);
        let window = (share * round - backlog.max(0.0)).max(floor);
        decide(
            flow.key,
            &Decision {
                rate: Some(rate(share)),
                receive_window: Some(window as u64),
                window: Some((share * round).max(floor) as u64),
                category: if flow.is_active(now) { Category::Fast } else { Category::Idle },
                ..Decision::UNLIMITED
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::fluid::{alone, together};
    use crate::{Category, Policy, Sample};

    /// A flow alone at 20 MB/s with `in_flight` bytes on the radio leg. Returns the windows of both legs.
    fn windows(in_flight: u64) -> (u64, u64) {
        let sample = |ms: u64| Sample { arrived: ms * 20_000, delivered: ms * 20_000, in_flight, ..Sample::default() };
        let decision = alone(Policy::MilliProxy, 200, sample);
        decision.receive_window.zip(decision.window).expect("a report has come")
    }

    /// 20 MB/s for 15 ms are 300 kB. The radio leg needs 100 kB of it in flight: more is a backlog, which the server's window
    /// makes room for, down to 10 segments.
    #[test]
    fn the_servers_window_is_the_product_less_the_radios_backlog() {
        for (in_flight, expected) in [(0, 300_000), (100_000, 300_000), (250_000, 150_000), (900_000, 14_480)] {
            let (receive, radio) = windows(in_flight);
            assert!(receive.abs_diff(expected) <= expected / 100, "{in_flight}: {receive}");
            assert!(radio.abs_diff(300_000) <= 3_000, "{radio}");
        }
    }

    /// Half of the radio's 20 MB/s for each of two, while the other one is active.
    #[test]
    fn a_silent_flow_has_no_share() {
        let bulk = |ms: u64| Sample { arrived: ms * 20_000, delivered: ms * 20_000, ..Sample::default() };
        let short = |ms: u64| bulk(ms.min(500));
        for (end, window, category) in [(1_500, 150_000, Category::Fast), (1_501, 300_000, Category::Idle)] {
            let [one, other] = together(Policy::MilliProxy, end, &[&bulk, &short])[..] else { panic!("there are two") };
            let windows = [one.receive_window, one.window, other.window].map(Option::unwrap_or_default);
            assert!(windows.iter().all(|got| got.abs_diff(window) <= window / 100), "{end} ms: {windows:?}");
            assert_eq!((one.category, other.category), (Category::Fast, category), "{end} ms");
            let rate = one.rate.expect("it is promised one").bits_per_sec();
            assert!(rate.abs_diff(window * 8_000 / 15) <= rate / 100, "{end} ms: {rate}");
        }
    }
}
