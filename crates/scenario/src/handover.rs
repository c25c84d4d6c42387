//! How UEs change cells, and when they have lost one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Span};

/// How UEs change cells: event A3 (36.331 5.5.4.4). And when they have lost theirs (36.331 5.3.11).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Handover {
    /// Whether they change cells.
    pub enabled: bool,
    /// By how many dB a neighbour has to be better than the serving cell.
    pub offset_db: f64,
    /// By how many dB more than `offset_db` a neighbour has to be better to be reported, and by how many less for its
    /// reports to end.
    pub hysteresis_db: f64,
    /// For how long either has to hold without a break.
    pub time_to_trigger: Span,
    /// From one report to the next while a neighbour is better (`reportInterval`).
    pub report_interval: Span,
    /// From one measurement of signal strengths and of the radio link to the next.
    pub measurement_period: Span,
    /// Coefficient k of the layer-3 filter (36.331 5.5.3.2), 0 to 19: of measurements 200 ms apart a new one has the share
    /// 2^(-k/4). Its time constant is the same with any `measurement_period`.
    pub filter: u8,
    /// From the arrival of the UE's report until the cell sends the command to change.
    pub preparation: Span,
    /// Length of that command, an `RRCConnectionReconfiguration`. It depends on the operator's configuration.
    pub command_size: Bytes,
    /// From the command's arrival until the target serves the UE: so long no cell does.
    pub interruption: Span,
    /// Whether the source cell hands to the target what the UE has not got.
    pub forwarding: bool,
    /// How long the UE tries to reach the target before the handover has failed.
    pub t304: Span,
    /// How long a re-establishment takes after a lost link or a failed handover.
    pub reestablishment: Span,
    /// Qout: below this SINR in dB the radio link is out of sync, and a cell cannot be reached.
    pub q_out_db: f64,
    /// Qin: above this SINR in dB it is in sync; at least `q_out_db`.
    pub q_in_db: f64,
    /// N310: out-of-sync measurements in a row that start T310, 1 to 20.
    pub n310: u8,
    /// N311: in-sync measurements in a row that stop it, 1 to 10.
    pub n311: u8,
    /// T310: after this the radio link is lost.
    pub t310: Span,
}

impl Default for Handover {
    fn default() -> Handover {
        Handover {
            enabled: true,
            offset_db: 0.0,
            hysteresis_db: 3.0,
            time_to_trigger: Span::from_millis(256),
            report_interval: Span::from_millis(240),
            measurement_period: Span::from_millis(40),
            filter: 4,
            preparation: Span::from_millis(30),
            command_size: Bytes::new(150),
            interruption: Span::from_millis(30),
            forwarding: true,
            t304: Span::from_millis(500),
            reestablishment: Span::from_millis(150),
            q_out_db: -5.0,
            q_in_db: -3.9,
            n310: 6,
            n311: 2,
            t310: Span::from_secs(1),
        }
    }
}
