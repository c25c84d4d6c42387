//! Congestion controls with their parameters, as scenario files write them.

use crate::AnyController;
use crate::bbr::{Bbr, Version};
use crate::cubic::{Cubic, CubicConfig};
use crate::multi_domain::{Mode, MultiDomain, MultiDomainConfig};
use crate::new_reno::NewReno;
use crate::scalable::{Scalable, ScalableConfig};
use crate::vegas::{Vegas, VegasConfig};
use crate::westwood::Westwood;
use crate::yeah::Yeah;
use units::kinds;

kinds! { "Config" as "Cc",
    /// Congestion control.
    #[derive(Default)]
    pub enum Config {
        /// CUBIC (RFC 9438) as implemented in Linux, with HyStart.
        #[default]
        Cubic,
        /// `NewReno` (RFC 6582); also called `reno`.
        #[serde(alias = "reno")]
        NewReno,
        /// BBR version 1: sends at the measured delivery rate.
        Bbr {
            /// The version of Linux whose BBR to follow.
            #[serde(default, skip_serializing_if = "is_default")]
            linux: Version,
        },
        /// Vegas: keeps two to four packets in the queue.
        Vegas,
        /// Westwood+: reduces the window to the measured bandwidth-delay product after a loss.
        Westwood,
        /// Yet Another High-speed TCP.
        Yeah,
        /// Scalable TCP: grows in proportion to the window.
        Scalable {
            /// Growth of the window for each acknowledged segment, in segments.
            #[serde(default = "scalable_step")]
            step: f64,
            /// Fraction by which a loss reduces the window.
            #[serde(default = "scalable_decrease")]
            decrease: f64,
        },
        /// Multi-domain congestion control: CUBIC driven by the reports of a PEP (`pep = true` on a link, or in
        /// `[lte]`), and Scalable TCP driven by the receiver's acknowledgements; the smaller window applies. Without a
        /// PEP it behaves as CUBIC.
        Mdcc {
            /// How losses reduce the windows. Default: `safe`.
            #[serde(default, skip_serializing_if = "is_default")]
            mode: Mode,
            /// Scalable TCP: growth of the window for each acknowledgement, in segments.
            #[serde(default = "mdcc_step")]
            step: f64,
            /// Whether the window grows with each acknowledgement, as in Linux before 4.8, or with each segment it
            /// covers.
            #[serde(default = "on")]
            per_acknowledgement: bool,
            /// Scalable TCP: fraction by which a loss reduces the window.
            #[serde(default = "scalable_decrease")]
            decrease: f64,
            /// Whether losses announced by the PEP leave Scalable TCP's window unchanged.
            #[serde(default = "on")]
            loss_filter: bool,
            /// Whether segments that the PEP reports missing are retransmitted at once.
            #[serde(default = "on")]
            early_retransmission: bool,
        },
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn scalable_step() -> f64 {
    ScalableConfig::default().step()
}

fn scalable_decrease() -> f64 {
    ScalableConfig::default().decrease()
}

fn mdcc_step() -> f64 {
    MultiDomainConfig::default().scalable.step()
}

fn on() -> bool {
    true
}

impl Config {
    /// The names in files, one for each control.
    pub const NAMES: [&'static str; 8] = ["cubic", "new-reno", "bbr", "vegas", "westwood", "yeah", "scalable", "mdcc"];

    /// Returns the name as written in files.
    pub fn name(&self) -> &'static str {
        match self {
            Config::Cubic => "cubic",
            Config::NewReno => "new-reno",
            Config::Bbr { .. } => "bbr",
            Config::Vegas => "vegas",
            Config::Westwood => "westwood",
            Config::Yeah => "yeah",
            Config::Scalable { .. } => "scalable",
            Config::Mdcc { .. } => "mdcc",
        }
    }

    /// Creates the controller with an initial window in segments.
    pub fn controller(&self, initial_window: u32) -> AnyController {
        match *self {
            Config::Cubic => Cubic::new(CubicConfig::default(), initial_window).into(),
            Config::NewReno => NewReno::new(initial_window).into(),
            Config::Bbr { linux } => Bbr::of(linux, initial_window).into(),
            Config::Vegas => Vegas::new(VegasConfig::default(), initial_window).into(),
            Config::Westwood => Westwood::new(initial_window).into(),
            Config::Yeah => Yeah::new(initial_window).into(),
            Config::Scalable { step, decrease } => {
                Scalable::new(ScalableConfig::of(step, decrease, false), initial_window).into()
            }
            Config::Mdcc { mode, step, per_acknowledgement, decrease, loss_filter, early_retransmission } => {
                let scalable = ScalableConfig::of(step, decrease, per_acknowledgement);
                let default = MultiDomainConfig::default();
                let config = MultiDomainConfig { mode, scalable, loss_filter, early_retransmission, ..default };
                MultiDomain::new(config, initial_window).into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller as _;

    #[test]
    fn a_name_of_a_file_is_that_of_its_control() {
        for name in Config::NAMES {
            let config: Config = serde_json::from_value(serde_json::json!({ name: {} }))
                .or_else(|_| serde_json::from_value(name.into()))
                .expect("it is one");
            assert_eq!(config.name(), name);
            let own = if name == "new-reno" { "reno" } else { name };
            assert_eq!(config.controller(10).name(), own);
        }
        assert_eq!(Config::NAMES.len(), AnyController::NAMES.len());
    }

    #[test]
    fn the_defaults_of_files_are_those_of_the_controls() {
        let Ok(Config::Mdcc { mode, step, per_acknowledgement, decrease, loss_filter, early_retransmission }) =
            serde_json::from_value(serde_json::json!({ "mdcc": {} }))
        else {
            panic!("it has defaults for all");
        };
        let own = MultiDomainConfig::default();
        assert_eq!((step, decrease), (0.02, 0.125));
        assert_eq!(ScalableConfig::of(step, decrease, per_acknowledgement), own.scalable);
        assert_eq!((mode, loss_filter, early_retransmission), (own.mode, own.loss_filter, own.early_retransmission));
        assert_eq!(ScalableConfig::of(scalable_step(), scalable_decrease(), false), ScalableConfig::default());
        assert_eq!(scalable_step(), 0.01);
    }
}
