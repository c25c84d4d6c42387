//! Handover between cells, and radio link failure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Span};

/// Handover between cells by event A3 (36.331 5.5.4.4), and radio link failure (36.331 5.3.11).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Handover {
    /// Whether UEs change cells.
    pub enabled: bool,
    /// Offset in dB by which a neighbour must be better than the serving cell.
    pub offset_db: f64,
    /// Hysteresis in dB: added to `offset_db` for a neighbour to be reported, and subtracted for its reports to end.
    pub hysteresis_db: f64,
    /// How long either condition must hold continuously.
    pub time_to_trigger: Span,
    /// Interval between reports while a neighbour is better (`reportInterval`).
    pub report_interval: Span,
    /// Interval between measurements of signal strength and radio link quality.
    pub measurement_period: Span,
    /// Coefficient k of the layer-3 filter (36.331 5.5.3.2), 0 to 19: for measurements 200 ms apart, a new one has the
    /// weight 2^(-k/4). The filter's time constant does not depend on `measurement_period`.
    pub filter: u8,
    /// Time from the arrival of the UE's report until the cell sends the handover command.
    pub preparation: Span,
    /// Size of that command, an `RRCConnectionReconfiguration`. It depends on the operator's configuration.
    pub command_size: Bytes,
    /// Time from the command's arrival until the target cell serves the UE; in between, no cell does.
    pub interruption: Span,
    /// Whether the source cell forwards data that the UE has not received to the target.
    pub forwarding: bool,
    /// How long the UE tries to reach the target before the handover fails.
    pub t304: Span,
    /// Duration of a re-establishment after a radio link failure or a failed handover.
    pub reestablishment: Span,
    /// Qout: below this SINR in dB the radio link is out of sync, and a cell cannot be accessed.
    pub q_out_db: f64,
    /// Qin: above this SINR in dB the radio link is in sync; at least `q_out_db`.
    pub q_in_db: f64,
    /// N310: consecutive out-of-sync measurements that start T310, 1 to 20.
    pub n310: u8,
    /// N311: consecutive in-sync measurements that stop T310, 1 to 10.
    pub n311: u8,
    /// T310: the radio link has failed when this timer expires.
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
