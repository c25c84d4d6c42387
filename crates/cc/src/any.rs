//! All controls with their parameters, as scenario files write them, and all controllers as one type, with static dispatch.

use crate::bbr::{self, Bbr};
use crate::cubic::{Cubic, CubicConfig};
use crate::multi_domain::{self, MultiDomain};
use crate::new_reno::NewReno;
use crate::scalable::{self, Scalable};
use crate::vegas::{Vegas, VegasConfig};
use crate::westwood::Westwood;
use crate::yeah::Yeah;
use crate::{AckSample, Congestion, Controller, Ctx, Limits, Listens, Sent, Signal};
use units::check::Check;
use units::kinds;

/// The table of controls: documentation for files, name there, variant, type, and how a controller is made from an initial window in
/// segments and the table of parameters, if it has one.
macro_rules! controls {
    ($d:tt $(
        $(#[$meta:meta])*
        $name:literal => $variant:ident($type:ty), |$w:ident $(, $p:ident: $parameters:ty)?| $new:expr;
    )*) => {
        kinds! { "Config" as "Cc",
            /// Congestion control.
            #[derive(Default)]
            pub enum Config {
                $($(#[$meta])* $variant $(($parameters))?,)*
            }
        }

        impl Config {
            /// The names in files, one for each control.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// Returns the control of this name with default parameters.
            pub fn named(name: &str) -> Option<Config> {
                match if name == "reno" { "new-reno" } else { name } {
                    $($name => Some(Config::$variant $((<$parameters>::default()))?),)*
                    _ => None,
                }
            }

            /// Returns the name as written in files.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Config::$variant { .. } => $name,)*
                }
            }

            /// Checks that each parameter is in its range.
            pub fn check(&self, c: &mut Check) {
                match self {
                    $(Config::$variant $(($p))? => { $($p.check(c);)? })*
                }
            }

            /// Creates the controller with an initial window in segments.
            pub fn controller(&self, initial_window: u32) -> AnyController {
                match self {
                    $(Config::$variant $(($p))? => {
                        let $w = initial_window;
                        AnyController::$variant($new)
                    })*
                }
            }
        }

        /// Any controller.
        pub enum AnyController {
            $(#[doc = concat!("`", $name, "`.")] $variant($type),)*
            /// A controller that is not in the table, for experiments.
            Boxed(Box<dyn Controller + Send>),
        }

        $(impl From<$type> for AnyController {
            fn from(controller: $type) -> AnyController {
                AnyController::$variant(controller)
            }
        })*

        /// Calls a method of the contained controller. (`$d` is a dollar sign of this inner macro.)
        macro_rules! dispatch {
            ($d self:expr, $d c:ident => $d call:expr) => {
                match $d self {
                    $(AnyController::$variant($d c) => $d call,)*
                    AnyController::Boxed($d c) => $d call,
                }
            };
        }
    };
}

controls! { $
    /// CUBIC (RFC 9438) as implemented in Linux, with HyStart.
    #[default]
    "cubic" => Cubic(Cubic), |w| Cubic::new(CubicConfig::default(), w);
    /// `NewReno` (RFC 6582); also called `reno`.
    #[serde(alias = "reno")]
    "new-reno" => NewReno(NewReno), |w| NewReno::new(w);
    /// BBR version 1: sends at the measured delivery rate.
    "bbr" => Bbr(Bbr), |w, p: bbr::Parameters| Bbr::of(p.linux, w);
    /// Vegas: keeps two to four packets in the queue.
    "vegas" => Vegas(Vegas), |w| Vegas::new(VegasConfig::default(), w);
    /// Westwood+: reduces the window to the measured bandwidth-delay product after a loss.
    "westwood" => Westwood(Westwood), |w| Westwood::new(w);
    /// Yet Another High-speed TCP.
    "yeah" => Yeah(Yeah), |w| Yeah::new(w);
    /// Scalable TCP: grows in proportion to the window.
    "scalable" => Scalable(Scalable), |w, p: scalable::Parameters| Scalable::new(p.into(), w);
    /// Multi-domain congestion control: CUBIC driven by the reports of a PEP (`pep = true` on a link, or in
    /// `[radio]`), and Scalable TCP driven by the receiver's acknowledgements; the smaller window applies. Without a
    /// PEP it behaves as CUBIC.
    "mdcc" => Mdcc(MultiDomain), |w, p: multi_domain::Parameters| MultiDomain::new(p.into(), w);
}

impl AnyController {
    /// Returns the controller of this name with default parameters and an initial window in segments; `None` if the name is
    /// unknown.
    pub fn by_name(name: &str, initial_window: u32) -> Option<AnyController> {
        Config::named(name).map(|control| control.controller(initial_window))
    }
}

impl From<Box<dyn Controller + Send>> for AnyController {
    fn from(controller: Box<dyn Controller + Send>) -> AnyController {
        AnyController::Boxed(controller)
    }
}

impl Controller for AnyController {
    #[inline]
    fn on_sent(&mut self, sent: &Sent, cx: &mut Ctx) {
        dispatch!(self, c => c.on_sent(sent, cx));
    }

    #[inline]
    fn on_ack(&mut self, ack: &AckSample, cx: &mut Ctx) {
        dispatch!(self, c => c.on_ack(ack, cx));
    }

    fn on_congestion(&mut self, congestion: &Congestion, cx: &mut Ctx) {
        dispatch!(self, c => c.on_congestion(congestion, cx));
    }

    fn on_undo(&mut self, cx: &mut Ctx) {
        dispatch!(self, c => c.on_undo(cx));
    }

    #[inline]
    fn on_signal(&mut self, signal: &Signal, cx: &mut Ctx) {
        dispatch!(self, c => c.on_signal(signal, cx));
    }

    fn listens(&self) -> Listens {
        dispatch!(self, c => c.listens())
    }

    fn gauges(&self, each: &mut dyn FnMut(&'static str, u64)) {
        dispatch!(self, c => c.gauges(each));
    }

    fn begin_at(&mut self, ssthresh: u32) {
        dispatch!(self, c => c.begin_at(ssthresh));
    }

    fn buffered_windows(&self) -> u32 {
        dispatch!(self, c => c.buffered_windows())
    }

    #[inline]
    fn limits(&self) -> Limits {
        dispatch!(self, c => c.limits())
    }

    fn name(&self) -> &'static str {
        dispatch!(self, c => c.name())
    }

    fn state(&self) -> &'static str {
        dispatch!(self, c => c.state())
    }
}

impl core::fmt::Debug for AnyController {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ({}, {:?})", self.name(), self.state(), self.limits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_file_is_that_of_its_control() {
        for &name in Config::NAMES {
            let config: Config = serde_json::from_value(serde_json::json!({ name: {} }))
                .or_else(|_| serde_json::from_value(name.into()))
                .expect("it is one");
            assert_eq!((config.name(), Some(&config)), (name, Config::named(name).as_ref()));
            let own = if name == "new-reno" { "reno" } else { name };
            assert_eq!(config.controller(10).name(), own);
        }
    }
}
