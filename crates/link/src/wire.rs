//! The wire behind the server: loss, jitter and reordering.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use units::check::{Check, Range};
use units::{Span, Time, kinds, parameters};

/// The random stream used for loss, jitter and reordering. The driver names it, so that runs can be repeated.
pub type Random = Xoshiro256PlusPlus;

kinds! { "Loss",
    /// Random loss. A bare number is the probability of independent losses.
    #[derive(Copy)]
    pub enum Loss {
        /// Each packet is lost independently of the others.
        Random {
            /// Probability that a packet is lost.
            probability: f64,
        },
        /// Bursty losses: a Markov chain of a good and a bad state, which may change before each packet.
        // Elliott 1963; `tc netem loss gemodel p r 1-h 1-k`, with one step per packet: it is lost with the probability of the current
        // state, then the state may change. The chain begins in the good state.
        GilbertElliott {
            /// Transition probability from good to bad.
            good_to_bad: f64,
            /// Transition probability from bad to good; the mean burst is 1/this packets long.
            bad_to_good: f64,
            /// Loss probability in the good state.
            #[serde(default)]
            loss_good: f64,
            /// Loss probability in the bad state.
            #[serde(default = "one")]
            loss_bad: f64,
        },
    }
}

fn one() -> f64 {
    1.0
}

impl Loss {
    /// Checks that the probabilities of the value of `key` are valid.
    pub fn check(&self, key: &str, c: &mut Check) {
        match *self {
            Loss::Random { probability } => c.probability(key, probability),
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => c.key(key, |c| {
                c.probability("good_to_bad", good_to_bad);
                c.probability("bad_to_good", bad_to_good);
                c.probability("loss_good", loss_good);
                c.probability("loss_bad", loss_bad);
            }),
        }
    }
}

kinds! { "Jitter",
    /// Random additional delay of each packet. A bare time is the maximum of a uniform distribution.
    // Packets keep their order: one that would overtake arrives together with the previous one, so delays follow the given distribution
    // only if the spacing of packets exceeds its width.
    #[derive(Copy, Eq)]
    pub enum Jitter {
        /// Uniformly distributed from zero to a maximum.
        Uniform {
            /// The maximum additional delay.
            max: Span,
        },
        /// The absolute value of a normal variable with mean zero.
        HalfNormal {
            /// Standard deviation of the normal variable; the mean additional delay is 0.8 times this.
            sigma: Span,
        },
    }
}

impl Jitter {
    /// Checks the span of the value of `key`.
    pub fn check(&self, key: &str, c: &mut Check) {
        match *self {
            Jitter::Uniform { max } => c.span(key, max),
            Jitter::HalfNormal { sigma } => c.key(key, |c| c.span("sigma", sigma)),
        }
    }
}

parameters! {
    /// Packets that arrive later than some that were sent after them, as over a longer path. The others keep their order.
    // `tc netem delay D reorder P` sends the share `P` at once and delays the others by `D`: that is a link whose delay is shorter by
    // `D`, with a share of `1 - P` and a delay of `D`.
    #[derive(Copy, Default)]
    pub struct Reordering {
        /// Probability that a packet is delayed further, independently of the others.
        pub share: f64, in Range::PROBABILITY;
        /// Additional delay of such a packet.
        #[serde(default)]
        pub delay: Span, in Range::SPAN;
        /// A further delay of each such packet, uniformly distributed from zero to this. With a share of 1, it is a jitter whose
        /// packets may overtake each other.
        #[serde(default)]
        pub spread: Span, in Range::SPAN;
    } with check_delay()
}

impl Reordering {
    /// Checks that packets can be overtaken.
    fn check_delay(&self, c: &mut Check) {
        if (self.delay, self.spread) == (Span::ZERO, Span::ZERO) {
            c.key("delay", |c| c.wrong("nothing overtakes a packet that is not delayed; set `delay` or `spread`"));
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ReorderingSource {
    model: Option<Reordering>,
    random: Random,
    /// The additional delay of the last packet, if it was one of those.
    last: Option<Span>,
}

impl ReorderingSource {
    pub(crate) fn new(model: Option<Reordering>, random: Random) -> Self {
        ReorderingSource { model, random, last: None }
    }

    /// Returns the additional delay of the next packet, if it may be overtaken.
    #[inline]
    pub(crate) fn delay(&mut self) -> Option<Span> {
        if let Some(Reordering { share, delay, spread }) = self.model.filter(|model| model.share > 0.0) {
            let is_late = unit(&mut self.random) < share;
            self.last = is_late.then(|| delay + uniform(spread, &mut self.random));
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
    model: Option<Loss>,
    bad: bool,
    random: Random,
}

impl LossProcess {
    pub(crate) fn new(model: Option<Loss>, random: Random) -> Self {
        LossProcess { model, bad: false, random }
    }

    /// Continues with another model.
    pub(crate) fn set(&mut self, model: Option<Loss>) {
        (self.model, self.bad) = (model, false);
    }

    /// Returns whether the next packet is lost.
    #[inline]
    pub(crate) fn loses(&mut self) -> bool {
        self.model.is_some_and(|model| self.draw(model))
    }

    fn draw(&mut self, model: Loss) -> bool {
        match model {
            Loss::Random { probability } => unit(&mut self.random) < probability,
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                let (loss, change) = if self.bad { (loss_bad, bad_to_good) } else { (loss_good, good_to_bad) };
                let lost = unit(&mut self.random) < loss;
                self.bad ^= unit(&mut self.random) < change;
                lost
            }
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct JitterSource {
    model: Option<Jitter>,
    random: Random,
    /// The last value drawn.
    last: Span,
}

impl JitterSource {
    pub(crate) fn new(model: Option<Jitter>, random: Random) -> Self {
        JitterSource { model, random, last: Span::ZERO }
    }

    /// Adds jitter to `due`, the end of the next packet's delay.
    #[inline]
    pub(crate) fn delay(&mut self, due: Time) -> Time {
        let Some(model) = self.model else { return due };
        self.last = self.draw(model);
        self.delay_again(due)
    }

    /// Adds the same jitter as for the last packet to another end of its delay.
    pub(crate) fn delay_again(&self, due: Time) -> Time {
        after(due, self.last)
    }

    fn draw(&mut self, model: Jitter) -> Span {
        match model {
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
