//! DynRLC: how many SDUs may wait in RLC so that they wait about as long as they should (Kumar, Francini, Panwar, Sharma:
//! Dynamic control of RLC buffer size for latency minimization in mobile RAN, WCNC 2018).
//!
//! The paper's pseudo-code is not public. This is what its public descriptions and a re-implementation by authors who
//! compare themselves with it agree on: SDUs go down while fewer than a threshold are in RLC; at the end of each interval
//! the mean time that SDUs spent there is compared with a target; above it the threshold shrinks by a tenth of what it is
//! above its minimum, otherwise it grows by a tenth of what it is below its maximum, by one at least.
//!
//! The method is patented (US 11,425,592 B2). It is here for comparison, in simulations; nothing that is deployed offers it.

use std::collections::VecDeque;

use units::{Span, Time};

/// The threshold at first, in SDUs: the re-implementation's.
const INITIAL: u32 = 10;

/// Parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The delay threshold, DLT: how long an SDU should spend in RLC at most.
    pub target: Span,
    /// From one change of the threshold to the next.
    pub interval: Span,
    /// The threshold's lowest value, in SDUs,
    pub min: u32,
    /// and its highest.
    pub max: u32,
}

impl Default for Config {
    /// The re-implementation's interval and limits at the bottom; at the top, 500 kB of full packets; the target is 003's
    /// lower one.
    fn default() -> Self {
        Config { target: Span::from_millis(20), interval: Span::from_millis(200), min: 2, max: 333 }
    }
}

/// The threshold, and what it is learnt from.
#[derive(Clone, Debug)]
pub struct DynRlc {
    config: Config,
    threshold: u32,
    /// What is in RLC: bytes, and since when.
    inside: VecDeque<(u64, Time)>,
    /// The time that those spent there which left in this interval, and how many they are.
    spent: (Span, u64),
    /// When the interval ends.
    ends: Time,
}

impl DynRlc {
    /// A threshold that knows nothing yet.
    pub fn new(config: Config) -> DynRlc {
        DynRlc {
            config,
            threshold: INITIAL.clamp(config.min, config.max),
            inside: VecDeque::new(),
            spent: (Span::ZERO, 0),
            ends: Time::ZERO + config.interval,
        }
    }

    /// The threshold in SDUs.
    pub fn threshold(&self) -> u32 {
        self.threshold
    }

    /// Whether nothing more may be put in before something has left.
    pub fn is_stopped(&self) -> bool {
        self.inside.len() >= self.threshold as usize
    }

    /// An SDU of `bytes` was put in.
    pub fn queued(&mut self, bytes: u64, now: Time) {
        self.inside.push_back((bytes, now));
    }

    /// `bytes` have left, the oldest first.
    pub fn completed(&mut self, mut bytes: u64, now: Time) {
        while let Some((length, since)) = self.inside.front_mut() {
            if *length > bytes {
                *length -= bytes;
                break;
            }
            bytes -= *length;
            self.spent.0 += now.saturating_since(*since);
            self.spent.1 += 1;
            self.inside.pop_front();
        }
        if now >= self.ends && self.spent.1 > 0 {
            let Config { target, min, max, .. } = self.config;
            let mean = self.spent.0 / self.spent.1;
            self.threshold = if mean > target {
                self.threshold.saturating_sub((self.threshold.saturating_sub(min) / 10).max(1)).max(min)
            } else {
                (self.threshold + (max.saturating_sub(self.threshold) / 10).max(1)).min(max)
            };
            self.spent = (Span::ZERO, 0);
            self.ends = now + self.config.interval;
        }
    }
}
