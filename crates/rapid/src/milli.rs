//! The window rule of milliProxy: a flow's rate times its round-trip time, less what the radio holds already.
//!
//! milliProxy does not split connections; it rewrites the receive window in acknowledgements. Here, its rule sets the wired
//! leg's window of a split proxy, and the radio leg may have as much in flight.

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
    let Some((share, _)) = ue.equal_share(flows, now) else {
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
