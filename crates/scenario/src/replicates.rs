//! Checks whether the repetitions of a scenario can differ.

use crate::error::Fault;
use crate::{Capacity, Channel, Delay, Flow, Jitter, Loss, Scenario, Ue};
use units::Span;

/// Returns a warning for a scenario with several runs if nothing in its network and traffic is random at any point: the
/// runs then differ at most in random choices of the congestion control, and a confidence interval over them means
/// little.
pub(crate) fn warning(points: &[&Scenario]) -> Option<Fault> {
    let runs = points.iter().map(|point| point.runs).max().unwrap_or(1);
    let with_flows = points.iter().any(|point| !point.flows.is_empty());
    (runs > 1 && with_flows && !points.iter().any(|point| varies(point))).then(|| {
        let message = format!(
            "{runs} runs, but nothing in the network or the traffic is random: they are (nearly) identical and not \
             repetitions. Vary them, for example with `start_jitter = \"100 ms\"` in [[flows]], or leave out `runs`"
        );
        Fault::new(None, "runs", message)
    })
}

/// Returns whether anything in the network or the traffic is random.
fn varies(scenario: &Scenario) -> bool {
    scenario.radio.as_ref().is_some_and(|radio| radio.ues.iter().any(ue))
        || scenario.links.iter().any(|link| {
            link.rate.as_ref().is_some_and(capacity)
                // Of a single row, the recordings are not known here.
                || matches!(link.delay, Delay::Trace { offset: None, .. })
                || link.loss.is_some_and(loss)
                || link.jitter.is_some_and(jitter)
        })
        || scenario.flows.iter().any(flow)
}

fn capacity(capacity: &Capacity) -> bool {
    matches!(capacity, Capacity::Synthetic(_) | Capacity::Trace { offset: None, .. })
}

/// Whether a UE's channel or its place differs; what follows a recording from a given moment differs at most in the errors of
/// single blocks.
fn ue(ue: &Ue) -> bool {
    ue.fading.is_some() || !matches!(ue.channel, Channel::Recorded { offset: Some(_), .. })
}

fn loss(loss: Loss) -> bool {
    match loss {
        Loss::Random { probability } => probability > 0.0 && probability < 1.0,
        Loss::GilbertElliott { .. } => true,
    }
}

fn jitter(jitter: Jitter) -> bool {
    let (Jitter::Uniform { max: span } | Jitter::HalfNormal { sigma: span }) = jitter;
    span > Span::ZERO
}

fn flow(flow: &Flow) -> bool {
    flow.start_jitter > Span::ZERO || flow.traffic.varies()
}
