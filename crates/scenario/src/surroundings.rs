//! What is around UEs, and antenna arrays.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::kinds;

/// A building: a box on the ground with sides to the cardinal directions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Building {
    /// Its western and eastern side, in metres east.
    pub x: [f64; 2],
    /// Its southern and northern side, in metres north.
    pub y: [f64; 2],
    /// Its height in metres.
    pub height: f64,
    /// Its outer walls.
    #[serde(default)]
    pub wall: Wall,
}

/// The outer walls of a building (TR 38.901 table 7.4.3-2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Wall {
    /// Multi-pane glass and concrete: old and residential buildings.
    #[default]
    LowLoss,
    /// Infrared reflecting glass and concrete: insulated buildings.
    HighLoss,
}

/// An array of antenna elements at half a wavelength, with beams (TR 38.901 7.3).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Array {
    /// Elements of a panel on top of each other.
    pub rows: u8,
    /// Elements of a panel side by side.
    pub columns: u8,
    /// Number of panels around a vertical axis, at equal angles; the best one is in use.
    pub panels: u8,
    /// Whether elements are directional, with 8 dBi and a beamwidth of 65 degrees; otherwise they have 0 dBi in all
    /// directions.
    pub directional: bool,
    /// How beams are formed.
    pub beams: Beams,
    /// Direction of the first panel in degrees from east towards north; of a UE's array, from the UE's orientation.
    pub azimuth_deg: f64,
    /// Degrees by which it points below the horizon.
    pub downtilt_deg: f64,
}

impl Default for Array {
    fn default() -> Array {
        Array {
            rows: 8,
            columns: 8,
            panels: 1,
            directional: true,
            beams: Beams::default(),
            azimuth_deg: 0.0,
            downtilt_deg: 0.0,
        }
    }
}

/// How an array forms its beams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Beams {
    /// Exactly towards the other end, at any time.
    Ideal,
    /// The beams of a DFT codebook, one for each element, held from one sweep to the next.
    #[default]
    Codebook,
    /// The same with twice as many beams along each axis.
    Oversampled,
}

kinds! { "Blockage",
    /// Blockage by the user's body, people and vehicles (TR 38.901 7.6.4.1, model A).
    #[derive(Copy)]
    pub enum Blockage {
        /// Vehicles and people outdoors, 10 m away.
        Outdoor {
            /// How the user holds the UE.
            #[serde(default)]
            grip: Grip,
            /// Number of blockers other than the user.
            #[serde(default = "four")]
            blockers: u8,
            /// Speed of the blockers in km/h.
            #[serde(default = "walking")]
            kmh: f64,
        },
        /// People in rooms, 2 m away.
        Indoor {
            /// How the user holds the UE.
            #[serde(default)]
            grip: Grip,
            /// Number of blockers other than the user.
            #[serde(default = "four")]
            blockers: u8,
            /// Speed of the blockers in km/h.
            #[serde(default = "walking")]
            kmh: f64,
        },
    }
}

/// How the user holds a UE (TR 38.901 table 7.6.4.1-1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Grip {
    /// Not at all: the body blocks nothing.
    None,
    /// Upright.
    #[default]
    Portrait,
    /// Sideways.
    Landscape,
}

/// The car in which a UE is (TR 38.901 7.4.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Car {
    /// Plain windows: 9 dB on average.
    Plain,
    /// Metallised windows: 20 dB on average.
    Metallised,
}

/// The model of the loss from outdoors to a UE in a building (TR 38.901 7.4.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Penetration {
    /// By the building's walls.
    #[default]
    Materials,
    /// The same for all walls, for comparisons with studies of carriers below 6 GHz.
    #[serde(rename = "below-6-ghz")]
    Below6Ghz,
}

fn four() -> u8 {
    4
}
fn walking() -> f64 {
    3.0
}
