//! What is between a UE and the cells: path loss, shadowing, recorded channels and fading.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Span, kinds};

kinds! { "Channel",
    /// The propagation model between a UE and the cells.
    #[derive(Default)]
    pub enum Channel {
        /// Free space.
        #[default]
        Friis,
        /// A path loss that grows with the logarithm of the distance.
        LogDistance {
            /// The path loss exponent.
            exponent: f64,
            /// The path loss in dB at 1 m.
            at_1m_db: f64,
            /// Standard deviation of the shadowing in dB.
            #[serde(default)]
            shadowing_db: f64,
            /// Correlation distance of the shadowing in metres (correlation of 1/e).
            #[serde(default = "correlation")]
            correlation_m: f64,
        },
        /// Urban micro, street canyon (TR 38.901). For UEs 1.5 to 22.5 m high, up to 5 km from antennas of at most 30 m.
        Umi {
            /// Whether there is line of sight to the antenna.
            #[serde(default)]
            sight: Sight,
            /// Whether there is shadowing.
            #[serde(default = "yes")]
            shadowing: bool,
        },
        /// Urban macro, antennas above the roofs (TR 38.901). For antennas 25 m high.
        Uma {
            /// Whether there is line of sight to the antenna.
            #[serde(default)]
            sight: Sight,
            /// Whether there is shadowing.
            #[serde(default = "yes")]
            shadowing: bool,
        },
        /// Rural macro: open countryside and small towns (TR 38.901).
        Rma {
            /// Whether there is line of sight to the antenna.
            #[serde(default)]
            sight: Sight,
            /// Whether there is shadowing.
            #[serde(default = "yes")]
            shadowing: bool,
            /// Mean height of buildings in metres, 5 to 50.
            #[serde(default = "building")]
            building_m: f64,
            /// Mean width of streets in metres, 5 to 50.
            #[serde(default = "street")]
            street_m: f64,
        },
        /// An office with antennas on its ceiling (TR 38.901).
        Inh {
            /// Whether there is line of sight to the antenna.
            #[serde(default)]
            sight: Sight,
            /// Whether there is shadowing.
            #[serde(default = "yes")]
            shadowing: bool,
            /// The kind of office, for `sight = "random"`.
            #[serde(default)]
            office: Office,
        },
        /// COST 231's extension of Hata's model: 1500 to 2000 MHz, antennas 30 to 200 m high, 1 to 20 km away.
        #[serde(rename = "cost-231")]
        Cost231 {
            /// Whether the area is a metropolitan centre: 3 dB more than in medium cities and suburbs.
            #[serde(default)]
            metropolitan: bool,
            /// Standard deviation of the shadowing in dB.
            #[serde(default)]
            shadowing_db: f64,
            /// Correlation distance of the shadowing in metres (correlation of 1/e).
            #[serde(default = "correlation")]
            correlation_m: f64,
        },
        /// A constant path loss.
        Fixed {
            /// The path loss in dB.
            loss_db: f64,
        },
        /// A recorded channel: a CSV file for each cell, with the columns `time_s` (or `time_ms`) and `sinr_db` (or
        /// `cqi`, or `rsrp_dbm`, or `rsrp_dbm` and one of the others: the power then sets the losses of both directions).
        Recorded {
            /// Cell to file, relative to the scenario file. A cell without a file is not received.
            files: std::collections::BTreeMap<String, String>,
            /// The path loss of both directions in dB; required if a file has an SINR or CQI and no received power, from which
            /// the loss of the uplink cannot be derived. Files with a received power have their own.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            loss_db: Option<f64>,
            /// Time in the recording at which a run begins, before its end; its last value then holds without end. Default: its beginning
            /// if `runs` is 1, otherwise a random time in each run, the same for all recordings of the run, which then repeat.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            offset: Option<Span>,
        },
    }
}

/// The kind of an office (TR 38.901 table 7.4.2-1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Office {
    /// Rooms and open areas.
    #[default]
    Mixed,
    /// One open area.
    Open,
}

/// Line of sight between a UE and an antenna.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sight {
    /// Always line of sight.
    Los,
    /// Never line of sight.
    Nlos,
    /// If no building is in between. Only in networks with `buildings`.
    Buildings,
    /// Random, with a probability that falls with the distance.
    #[default]
    Random,
}

kinds! { "Fading",
    /// Fast fading with the profiles of 36.104 annex B.2, TR 38.901 7.7.2 and 38.104 annex G. A bare number is the speed
    /// for `epa`.
    #[derive(Copy)]
    pub enum Fading {
        /// Extended pedestrian A.
        Epa {
            /// Speed for the Doppler shift in km/h. Default: the UE's own speed.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            kmh: Option<f64>,
        },
        /// Extended vehicular A.
        Eva {
            /// Speed for the Doppler shift in km/h. Default: the UE's own speed.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            kmh: Option<f64>,
        },
        /// Extended typical urban.
        Etu {
            /// Speed for the Doppler shift in km/h. Default: the UE's own speed.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            kmh: Option<f64>,
        },
        /// A tapped delay line of TR 38.901.
        Tdl {
            /// The profile: A to C without line of sight, D and E with it.
            profile: Tdl,
            /// The delay spread.
            delay_spread: Span,
            /// Speed for the Doppler shift in km/h. Default: the UE's own speed.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            kmh: Option<f64>,
        },
        /// TDL-A with a delay spread of 30 ns, simplified.
        #[serde(rename = "tdla30")]
        TdlA30 {
            /// Speed for the Doppler shift in km/h. Default: the UE's own speed.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            kmh: Option<f64>,
        },
        /// TDL-B with a delay spread of 100 ns, simplified.
        #[serde(rename = "tdlb100")]
        TdlB100 {
            /// Speed for the Doppler shift in km/h. Default: the UE's own speed.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            kmh: Option<f64>,
        },
        /// TDL-C with a delay spread of 300 ns, simplified.
        #[serde(rename = "tdlc300")]
        TdlC300 {
            /// Speed for the Doppler shift in km/h. Default: the UE's own speed.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            kmh: Option<f64>,
        },
    }
}

/// A profile of TR 38.901 7.7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tdl {
    /// TDL-A.
    A,
    /// TDL-B.
    B,
    /// TDL-C.
    C,
    /// TDL-D.
    D,
    /// TDL-E.
    E,
}

fn yes() -> bool {
    true
}
fn correlation() -> f64 {
    50.0
}
fn building() -> f64 {
    5.0
}
fn street() -> f64 {
    20.0
}
