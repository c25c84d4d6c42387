//! The wire behind the server: loss, jitter and reordering.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use units::{Span, Time};

/// The random stream used for loss, jitter and reordering. The driver names it, so that runs can be repeated.
pub type Random = Xoshiro256PlusPlus;

/// Losses on the wire. Probabilities below 0 (and NaN) count as 0, above 1 as 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// No loss.
    #[default]
    None,
    /// Each packet is lost with the same probability.
    Independent {
        /// The probability.
        probability: f64,
    },
    /// Gilbert-Elliott (Elliott 1963; `tc netem loss gemodel p r 1-h 1-k`): a Markov chain with two states and one step
    /// per packet. A packet is lost with the probability of the current state, then the state may change. The mean
    /// duration of the bad state is `1/to_good` packets, and the fraction of packets in the bad state is `to_bad /
    /// (to_bad + to_good)`. The chain begins in the good state.
    GilbertElliott {
        /// p: from good to bad.
        to_bad: f64,
        /// r: from bad to good.
        to_good: f64,
        /// 1-k: the loss probability in the good state.
        loss_good: f64,
        /// 1-h: the loss probability in the bad state.
        loss_bad: f64,
    },
}

/// Random additional delay. Packets keep their order: one that would overtake arrives together with the previous one,
/// so delays follow the given distribution only if the spacing of packets exceeds its width.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// None.
    #[default]
    None,
    /// Uniform over [0, `max`).
    Uniform {
        /// The upper end.
        max: Span,
    },
    /// The absolute value of a normal variable of mean zero; its mean is 0.798 `sigma`.
    HalfNormal {
        /// The standard deviation of the normal variable.
        sigma: Span,
    },
}

/// Packets that arrive later than some that were sent after them, as over a longer path. The others keep their order.
///
/// `tc netem delay D reorder P` sends the share `P` at once and delays the others by `D`: that is a link whose delay is
/// shorter by `D`, with a share of `1 - P` and a delay of `D`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reordering {
    /// Probability that a packet is delayed, independently of the others. Values below 0 (and NaN) count as 0, above 1 as 1.
    pub share: f64,
    /// Additional delay of such a packet.
    pub delay: Span,
    /// A further delay of each such packet, uniform over [0, `spread`): they may overtake each other, too.
    pub spread: Span,
}

#[derive(Clone, Debug)]
pub(crate) struct ReorderingSource {
    model: Reordering,
    random: Random,
    /// The additional delay of the last packet, if it was one of those.
    last: Option<Span>,
}

impl ReorderingSource {
    pub(crate) fn new(model: Reordering, random: Random) -> Self {
        ReorderingSource { model, random, last: None }
    }

    /// Returns the additional delay of the next packet, if it may be overtaken.
    #[inline]
    pub(crate) fn delay(&mut self) -> Option<Span> {
        if self.model.share > 0.0 {
            let is_late = unit(&mut self.random) < self.model.share;
            self.last = is_late.then(|| self.model.delay + uniform(self.model.spread, &mut self.random));
        }
        self.last
    }

    /// Returns the same delay as for the last packet.
    pub(crate) fn last(&self) -> Option<Span> {
        self.last
    }
}

#[derive(Clone, Debug)]
pub(crate) struct LossProcess {
    model: Loss,
    bad: bool,
    random: Random,
}

impl LossProcess {
    pub(crate) fn new(model: Loss, random: Random) -> Self {
        LossProcess { model, bad: false, random }
    }

    /// Continues with another model.
    pub(crate) fn set(&mut self, model: Loss) {
        (self.model, self.bad) = (model, false);
    }

    /// Returns whether the next packet is lost.
    #[inline]
    pub(crate) fn loses(&mut self) -> bool {
        !matches!(self.model, Loss::None) && self.draw()
    }

    fn draw(&mut self) -> bool {
        match self.model {
            Loss::None => false,
            Loss::Independent { probability } => unit(&mut self.random) < probability,
            Loss::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
                let (loss, change) = if self.bad { (loss_bad, to_good) } else { (loss_good, to_bad) };
                let lost = unit(&mut self.random) < loss;
                self.bad ^= unit(&mut self.random) < change;
                lost
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct JitterSource {
    model: Jitter,
    random: Random,
    /// The last value drawn.
    last: Span,
}

impl JitterSource {
    pub(crate) fn new(model: Jitter, random: Random) -> Self {
        JitterSource { model, random, last: Span::ZERO }
    }

    /// Adds jitter to `due`, the end of the next packet's delay.
    #[inline]
    pub(crate) fn delay(&mut self, due: Time) -> Time {
        if matches!(self.model, Jitter::None) {
            return due;
        }
        self.last = self.draw();
        self.delay_again(due)
    }

    /// Adds the same jitter as for the last packet to another end of its delay.
    pub(crate) fn delay_again(&self, due: Time) -> Time {
        after(due, self.last)
    }

    fn draw(&mut self) -> Span {
        match self.model {
            Jitter::None => Span::ZERO,
            Jitter::Uniform { max } => uniform(max, &mut self.random),
            Jitter::HalfNormal { sigma } => {
                Span::from_nanos((normal(&mut self.random).abs() * sigma.as_nanos() as f64) as u64)
            }
        }
    }
}

/// Returns a random number that is uniform over [0, 1) in steps of 2^-53.
#[inline]
pub fn unit(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Returns a random span that is uniform over [0, `max`).
fn uniform(max: Span, random: &mut Random) -> Span {
    Span::from_nanos((unit(random) * max.as_nanos() as f64) as u64)
}

/// A standard normal variable (Box and Muller 1958).
pub(crate) fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * libm::log(1.0 - unit(random))).sqrt();
    radius * libm::cos(core::f64::consts::TAU * unit(random))
}

/// `t + span`, or never.
#[inline]
pub(crate) fn after(t: Time, span: Span) -> Time {
    Time::from_nanos(t.as_nanos().saturating_add(span.as_nanos()))
}
