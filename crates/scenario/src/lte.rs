//! The carriers of LTE cells; cells, UEs and bearers of either technology.

use crate::Queue;
use crate::carrier::{Bandwidth, LteSecondary};
use crate::layout::Layout;
use crate::mobility::Mobility;
use crate::propagation::{Channel, Fading};
use crate::surroundings::{Array, Blockage, Car};
use crate::technology::Technology;
use aqm::{Limit, bql, drop_tail, fq_codel, pfifo_fast};
use ran::Discipline as Scheduler;
use ran::parameters::{Mac, NrBearer, Rlc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Span};

/// The carriers of LTE cells, and what LTE's own layers say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LteCarriers {
    /// Centre frequency of the downlink carrier in MHz.
    pub downlink_mhz: f64,
    /// Centre frequency of the uplink carrier in MHz.
    pub uplink_mhz: f64,
    /// Bandwidth of each carrier.
    pub bandwidth: Bandwidth,
    /// A second downlink carrier, which UEs receive together with the first (carrier aggregation). Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secondary: Option<LteSecondary>,
    /// Parameters of the MAC layer.
    pub mac: Mac,
}

impl Default for LteCarriers {
    fn default() -> LteCarriers {
        LteCarriers {
            downlink_mhz: 2120.0,
            uplink_mhz: 1930.0,
            bandwidth: Bandwidth::default(),
            secondary: None,
            mac: Mac::default(),
        }
    }
}

/// A cell, or several ones in a layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Name of the cell in results. Default: `cell-1`, `cell-2`, ... by position.
    #[serde(default)]
    pub name: String,
    /// Position of the antenna: metres east, north, and above ground.
    #[serde(default = "cell_position")]
    pub position: [f64; 3],
    /// Several such cells, named `NAME-SITE` or `NAME-SITE-SECTOR`, by number. Always absent after loading. Default: one
    /// cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// Transmit power in dBm over the whole carrier.
    #[serde(default = "cell_power")]
    pub power_dbm: f64,
    /// Noise figure of the receiver in dB.
    #[serde(default = "cell_noise")]
    pub noise_figure_db: f64,
    /// Direction of the antenna's main lobe, in degrees from east towards north. Default: omnidirectional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sector_deg: Option<f64>,
    /// Scheduler of the downlink.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// Scheduler of the uplink.
    #[serde(default)]
    pub uplink_scheduler: Scheduler,
    /// Interference with UEs of other cells in addition to that of its own transmissions: the fraction of the resource
    /// blocks without data on which it transmits nevertheless, 0 to 1.
    #[serde(default)]
    pub load: f64,
    /// The technology, in a network that has carriers of both. Default: NR if it has NR carriers, LTE otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rat: Option<Technology>,
    /// An antenna array with beams, instead of a sector's antenna. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Array>,
}

/// A UE, or several identical ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ue {
    /// The UE's node. Several identical UEs are named `NAME-1`, `NAME-2`, ...
    pub name: String,
    /// Number of identical UEs. Always 1 after loading.
    #[serde(default = "one")]
    pub count: u32,
    /// Position and movement. A bare position is a stationary UE.
    #[serde(default)]
    pub mobility: Mobility,
    /// The propagation model between the UE and the cells.
    #[serde(default)]
    pub channel: Channel,
    /// Fast fading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fading: Option<Fading>,
    /// Whether the downlink interference of other cells fades as well, each cell independently with the same profile and
    /// speed, instead of having its mean. It takes as much computation for each cell that interferes as for the serving
    /// one. Needs `fading`.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub interference_fading: bool,
    /// Noise figure of the receiver in dB.
    #[serde(default = "ue_noise")]
    pub noise_figure_db: f64,
    /// Antenna gain in dBi.
    #[serde(default)]
    pub gain_db: f64,
    /// An antenna array with beams, whose gain adds to `gain_db`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub array: Option<Array>,
    /// Direction of the UE, to which its array and its user's body are fixed, in degrees from east towards north.
    /// Default: that of its movement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orientation_deg: Option<f64>,
    /// Blockage by the user's body, people and vehicles. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blockage: Option<Blockage>,
    /// The car in which the UE is. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub car: Option<Car>,
    /// Maximum transmit power in dBm.
    #[serde(default = "ue_power")]
    pub power_dbm: f64,
    /// The initial cell. Default: the cell received best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// UE category, 1 to 12, which limits the bits per TTI, the layers, and 64QAM in the uplink (36.306 tables 4.1-1
    /// and 4.1-2, on each carrier) in cells of LTE. Default: no limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<u8>,
    /// Number of downlink carriers that it can receive at once, 1 or 2. Default: 2. In cells of LTE,
    /// UEs of categories 1 to 5 receive one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carriers: Option<u8>,
    /// Number of spatial layers in the downlink: 1 or 2, in NR up to 4.
    #[serde(default = "one_layer")]
    pub layers: u8,
    /// The default bearer.
    #[serde(default)]
    pub bearer: Bearer,
    /// Dedicated bearers, each for flows of certain priorities.
    #[serde(default)]
    pub dedicated: Vec<Dedicated>,
    /// Uplink buffer of the modem in bytes.
    #[serde(default = "modem")]
    pub modem: Bytes,
    /// What happens to further packets when the modem's buffer is full.
    #[serde(default)]
    pub modem_full: ModemFull,
    /// The queue in the host, above the modem.
    #[serde(default = "host_queue")]
    pub host_queue: Queue,
    /// Limit on the data that the host passes to the modem, in addition to the modem's buffer size.
    #[serde(default)]
    pub modem_limit: Limit,
    /// Whether the modem's buffer status reports include the host's queue, as is possible when host and modem
    /// cooperate. Otherwise grants follow the modem's backlog alone, and a small `modem_limit` keeps them small.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub reports_host: bool,
}

/// What a full modem does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModemFull {
    /// It stops the host: packets wait in the host's queue.
    #[default]
    Wait,
    /// It takes packets from the host at any time, and drops those that it has no room for.
    Drop,
}

/// A bearer: RLC, PDCP and the queues in front of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bearer {
    /// Quality-of-service class identifier (QCI), 1 to 9 (23.203 table 6.1.7). It orders the bearers of one UE; the scheduler
    /// of a cell does not prefer one UE to another for it.
    pub qci: u8,
    /// The RLC mode in LTE cells.
    pub rlc: Rlc,
    /// RLC and PDCP in NR cells.
    #[serde(skip_serializing_if = "is_default")]
    pub nr: NrBearer,
    /// The queue in front of RLC in the cell. In NR cells the limit `nr.buffer` applies as well, whichever is reached
    /// first. Default: a `drop-tail` queue of 1 MB in LTE cells; in NR cells, of `nr.buffer`, which then is the only limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// A queue above that one, which then serves as the buffer below it. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<Above>,
    /// How long a packet may wait in the queue before PDCP discards it. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard: Option<Span>,
}

impl Default for Bearer {
    fn default() -> Bearer {
        Bearer { qci: 9, rlc: Rlc::default(), nr: NrBearer::default(), queue: None, above: None, discard: None }
    }
}

impl Bearer {
    /// Returns the queue in front of RLC in the cells of a technology.
    pub fn queue(&self, technology: Technology) -> Queue {
        let bytes = if technology == Technology::Nr { self.nr.buffer } else { LTE_QUEUE };
        self.queue.unwrap_or(Queue::DropTail(drop_tail::Config { bytes: Some(bytes), ..drop_tail::Config::default() }))
    }
}

/// The bytes that the default queue of a bearer holds in LTE cells.
const LTE_QUEUE: Bytes = Bytes::new(1_000_000);

/// A queue above RLC's buffer in the eNodeB: packets wait in it, where a queue discipline applies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Above {
    /// The queue.
    pub queue: Queue,
    /// Limit on the data passed down to the buffer, in addition to the buffer's size.
    pub limit: Limit,
}

impl Default for Above {
    fn default() -> Above {
        Above { queue: Queue::FqCodel(fq_codel::Config::default()), limit: Limit::Bql(bql::Config::default()) }
    }
}

/// A dedicated bearer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dedicated {
    /// The priorities (0 to 15) of the flows that use this bearer.
    pub priorities: Vec<u8>,
    /// The bearer.
    #[serde(default)]
    pub bearer: Bearer,
}

fn is_default(bearer: &NrBearer) -> bool {
    *bearer == NrBearer::default()
}
fn one() -> u32 {
    1
}
fn one_layer() -> u8 {
    1
}
pub(crate) fn one_cell() -> Vec<Cell> {
    vec![Cell {
        name: "cell-1".into(),
        position: cell_position(),
        layout: None,
        power_dbm: cell_power(),
        noise_figure_db: cell_noise(),
        sector_deg: None,
        scheduler: Scheduler::default(),
        uplink_scheduler: Scheduler::default(),
        load: 0.0,
        rat: None,
        array: None,
    }]
}
fn cell_position() -> [f64; 3] {
    [0.0, 0.0, 30.0]
}
fn cell_power() -> f64 {
    30.0
}
fn cell_noise() -> f64 {
    5.0
}
fn ue_noise() -> f64 {
    9.0
}
fn ue_power() -> f64 {
    23.0
}
fn modem() -> Bytes {
    Bytes::new(500_000)
}
fn host_queue() -> Queue {
    Queue::PfifoFast(pfifo_fast::Config::default())
}
