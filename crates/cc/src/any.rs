//! All controllers as one type, with static dispatch.

use crate::bbr::Bbr;
use crate::cubic::{Cubic, CubicConfig};
use crate::multi_domain::{MultiDomain, MultiDomainConfig};
use crate::new_reno::NewReno;
use crate::scalable::{Scalable, ScalableConfig};
use crate::vegas::{Vegas, VegasConfig};
use crate::westwood::Westwood;
use crate::yeah::Yeah;
use crate::{AckSample, Congestion, Controller, Ctx, Limits, Listens, Sent, Signal};

/// The table of controllers: name, variant, type, and constructor with default parameters from an initial window.
macro_rules! controllers {
    ($d:tt $($name:literal => $variant:ident($type:ty), $new:expr;)*) => {
        /// Any controller.
        pub enum AnyController {
            $(#[doc = concat!("`", $name, "`.")] $variant($type),)*
            /// A controller that is not in the table, for experiments.
            Boxed(Box<dyn Controller + Send>),
        }

        impl AnyController {
            /// The names accepted by [`AnyController::by_name`].
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// Returns the controller of this name with default parameters and an initial window in segments; `None` if
            /// the name is unknown.
            pub fn by_name(name: &str, initial_window: u32) -> Option<AnyController> {
                match if name == "new-reno" { "reno" } else { name } {
                    $($name => { let new: fn(u32) -> $type = $new; Some(new(initial_window).into()) })*
                    _ => None,
                }
            }
        }

        $(impl From<$type> for AnyController {
            fn from(controller: $type) -> AnyController {
                AnyController::$variant(controller)
            }
        })*

        impl From<Box<dyn Controller + Send>> for AnyController {
            fn from(controller: Box<dyn Controller + Send>) -> AnyController {
                AnyController::Boxed(controller)
            }
        }

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

controllers! { $
    "reno" => NewReno(NewReno), NewReno::new;
    "cubic" => Cubic(Cubic), |w| Cubic::new(CubicConfig::default(), w);
    "bbr" => Bbr(Bbr), Bbr::new;
    "vegas" => Vegas(Vegas), |w| Vegas::new(VegasConfig::default(), w);
    "westwood" => Westwood(Westwood), Westwood::new;
    "yeah" => Yeah(Yeah), Yeah::new;
    "scalable" => Scalable(Scalable), |w| Scalable::new(ScalableConfig::default(), w);
    "mdcc" => MultiDomain(MultiDomain), |w| MultiDomain::new(MultiDomainConfig::default(), w);
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
