//! An LTE network: cells, UEs, and the way from the hosts beyond the core to them.

use crate::handover::Handover;
use crate::kinds::kinds;
use crate::{Capacity, Drop, Queue};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Span};

/// An LTE network.
///
/// It stands for the nodes `core` and `ran`, the UEs, and the hosts beyond the core; for duplex links `internet-HOST`
/// from each of those to `core` and `s1` from `core` to `ran`; and for a radio hop `radio-UE` (with its way back,
/// `radio-UE-reverse`) from `ran` to each UE, whichever cell serves it. Flows that do not say so start at the first host
/// and end at the first UE; what UEs send to each other goes through the core. Further `[[links]]` may be attached to the
/// nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lte {
    /// The hosts beyond the core.
    #[serde(default = "one_server")]
    pub servers: Vec<String>,
    /// One-way delay between each host and the core.
    #[serde(default)]
    pub server_delay: Span,
    /// Rate of each host's link; infinite unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_rate: Option<Capacity>,
    /// Whether a lightweight PEP is at the core: it reports to the senders of what goes to the cells, if they understand it
    /// (`cc = "mdcc"`).
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub pep: bool,
    /// Probability that a report of this PEP is lost on its way to the sender, beside what the links lose.
    #[serde(default, skip_serializing_if = "crate::network::is_zero")]
    pub pep_report_loss: f64,
    /// One-way delay between the core and the cells.
    #[serde(default)]
    pub s1_delay: Span,
    /// Rate between the core and the cells; infinite unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s1_rate: Option<Capacity>,
    /// Centre of the downlink carrier in MHz.
    #[serde(default = "downlink_mhz")]
    pub downlink_mhz: f64,
    /// Centre of the uplink carrier in MHz.
    #[serde(default = "uplink_mhz")]
    pub uplink_mhz: f64,
    /// Width of each carrier.
    #[serde(default)]
    pub bandwidth: Bandwidth,
    /// The cells; one at the origin unless given.
    #[serde(default = "one_cell")]
    pub cells: Vec<Cell>,
    /// The UEs.
    pub ues: Vec<Ue>,
    /// With what power UEs send.
    #[serde(default)]
    pub power_control: PowerControl,
    /// What the MAC layer does.
    #[serde(default)]
    pub mac: Mac,
    /// How UEs change cells.
    #[serde(default)]
    pub handover: Handover,
}

impl Lte {
    /// The cells' names, the default ones too.
    pub(crate) fn cell_names(&self) -> Vec<String> {
        let name = |(i, cell): (usize, &Cell)| {
            if cell.name.is_empty() { format!("cell-{}", i + 1) } else { cell.name.clone() }
        };
        self.cells.iter().enumerate().map(name).collect()
    }
}

/// Width of a carrier (36.101 table 5.6-1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Bandwidth {
    /// 6 resource blocks.
    #[serde(rename = "1.4 MHz")]
    Mhz1_4,
    /// 15 resource blocks.
    #[serde(rename = "3 MHz")]
    Mhz3,
    /// 25 resource blocks.
    #[serde(rename = "5 MHz")]
    Mhz5,
    /// 50 resource blocks.
    #[default]
    #[serde(rename = "10 MHz")]
    Mhz10,
    /// 75 resource blocks.
    #[serde(rename = "15 MHz")]
    Mhz15,
    /// 100 resource blocks.
    #[serde(rename = "20 MHz")]
    Mhz20,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Its name in results. Unless given: `cell-1`, `cell-2`, ... by position.
    #[serde(default)]
    pub name: String,
    /// Where its antenna is: metres east, north, and above the ground.
    #[serde(default = "cell_position")]
    pub position: [f64; 3],
    /// Transmit power in dBm over the whole carrier.
    #[serde(default = "cell_power")]
    pub power_dbm: f64,
    /// Noise figure of its receiver in dB.
    #[serde(default = "cell_noise")]
    pub noise_figure_db: f64,
    /// Where its antenna's main lobe points to, in degrees from east towards north; in all directions unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sector_deg: Option<f64>,
    /// Who is served first in the downlink.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// Who is served first in the uplink.
    #[serde(default)]
    pub uplink_scheduler: Scheduler,
    /// Share of its resource blocks that UEs of other cells hear as interference, 0 to 1.
    #[serde(default)]
    pub load: f64,
}

/// Who is served first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// Everybody in turn.
    RoundRobin,
    /// Whose channel is best beside what it got before.
    #[default]
    ProportionalFair,
    /// Whose channel is best.
    MaxThroughput,
}

/// A UE, or several alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ue {
    /// The UE's node. Of several alike, `NAME-1`, `NAME-2`, ...
    pub name: String,
    /// How many such UEs there are. After loading, always 1.
    #[serde(default = "one")]
    pub count: u32,
    /// Where it is and how it moves. A bare position is for one that stands still.
    #[serde(default)]
    pub mobility: Mobility,
    /// What lies between it and the cells.
    #[serde(default)]
    pub channel: Channel,
    /// Fast fading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fading: Option<Fading>,
    /// Noise figure of its receiver in dB.
    #[serde(default = "ue_noise")]
    pub noise_figure_db: f64,
    /// Gain of its antenna in dBi.
    #[serde(default)]
    pub gain_db: f64,
    /// Its greatest transmit power in dBm.
    #[serde(default = "ue_power")]
    pub power_dbm: f64,
    /// The cell that it starts in; the one that it hears best unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// Its category, 1 to 12, which limits the bits of a TTI, the layers, and 64QAM in the uplink (36.306 tables 4.1-1 and
    /// 4.1-2, on one carrier); without limits unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<u8>,
    /// Spatial layers in the downlink, 1 or 2.
    #[serde(default = "one_layer")]
    pub layers: u8,
    /// Its default bearer.
    #[serde(default)]
    pub bearer: Bearer,
    /// Dedicated bearers, each for the flows of some priorities.
    #[serde(default)]
    pub dedicated: Vec<Dedicated>,
    /// What its modem holds of the packets that it is to send, in bytes; the host's queue keeps the rest.
    #[serde(default = "modem")]
    pub modem: Bytes,
    /// The queue of the host above the modem.
    #[serde(default = "host_queue")]
    pub host_queue: Queue,
    /// What limits what the host hands down to the modem, beside the modem's room.
    #[serde(default)]
    pub modem_limit: Limit,
    /// Whether the modem's buffer status reports count what waits in the host's queue too, as a host that works together
    /// with its modem can have it. If not, grants follow what is in the modem, and a small `modem_limit` keeps them small.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub reports_host: bool,
}

kinds! { "Mobility",
    /// Where a UE is and how it moves; positions are metres east, north, and above the ground.
    pub enum Mobility {
        /// It stands still.
        Still {
            /// Where.
            position: [f64; 3],
        },
        /// A straight line without end.
        Line {
            /// Where it starts.
            from: [f64; 3],
            /// Metres a second east, north and up.
            velocity: [f64; 3],
        },
        /// From point to point, at each at its time; it stays at the last.
        Waypoints {
            /// `[["0 s", [0, 0, 1.5]], ["10 s", [100, 0, 1.5]]]`.
            points: Vec<(Span, [f64; 3])>,
        },
        /// Along a way, each leg at its speed; it stays at the end.
        Route {
            /// The ends of the legs.
            points: Vec<[f64; 3]>,
            /// Metres a second on each leg; the last holds for the rest.
            speeds: Vec<f64>,
        },
    }
}

impl Default for Mobility {
    fn default() -> Mobility {
        Mobility::Still { position: [100.0, 0.0, 1.5] }
    }
}

kinds! { "Channel",
    /// What lies between a UE and the cells.
    #[derive(Default)]
    pub enum Channel {
        /// Free space.
        #[default]
        Friis,
        /// A loss that grows with the logarithm of the distance.
        LogDistance {
            /// The exponent.
            exponent: f64,
            /// The loss in dB at a metre.
            at_1m_db: f64,
            /// Standard deviation of the shadowing in dB.
            #[serde(default)]
            shadowing_db: f64,
            /// Metres in which the shadowing's correlation falls to 1/e.
            #[serde(default = "correlation")]
            correlation_m: f64,
        },
        /// Urban micro, street canyon (TR 38.901).
        Umi {
            /// Whether the UE sees the antenna.
            #[serde(default)]
            sight: Sight,
            /// Whether there is shadowing.
            #[serde(default = "yes")]
            shadowing: bool,
        },
        /// Urban macro, antennas above the roofs (TR 38.901). For antennas 25 m high.
        Uma {
            /// Whether the UE sees the antenna.
            #[serde(default)]
            sight: Sight,
            /// Whether there is shadowing.
            #[serde(default = "yes")]
            shadowing: bool,
        },
        /// Rural macro: open country and small towns (TR 38.901).
        Rma {
            /// Whether the UE sees the antenna.
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
        /// COST 231's extension of Hata's model: 1500 to 2000 MHz, antennas 30 to 200 m high, 1 to 20 km away.
        #[serde(rename = "cost-231")]
        Cost231 {
            /// The centre of a metropolis: 3 dB more than in medium cities and suburbs.
            #[serde(default)]
            metropolitan: bool,
            /// Standard deviation of the shadowing in dB.
            #[serde(default)]
            shadowing_db: f64,
            /// Metres in which the shadowing's correlation falls to 1/e.
            #[serde(default = "correlation")]
            correlation_m: f64,
        },
        /// The same loss everywhere.
        Fixed {
            /// The loss in dB.
            loss_db: f64,
        },
        /// A recorded channel: for each cell a CSV file of `time_s` (or `time_ms`) and `sinr_db` (or `cqi`, or `rsrp_dbm`).
        Recorded {
            /// Cell to file, relative to the scenario file that names it. A cell without one is not heard.
            files: std::collections::BTreeMap<String, String>,
        },
    }
}

/// Whether a UE sees an antenna.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sight {
    /// Always.
    Los,
    /// Never.
    Nlos,
    /// At random, the less the further away.
    #[default]
    Random,
}

kinds! { "Fading",
    /// Fast fading by the profiles of 36.104 annex B.2. A bare number is the speed of `epa`.
    #[derive(Copy)]
    pub enum Fading {
        /// Extended pedestrian A.
        Epa {
            /// Kilometres an hour for the Doppler shift; the UE's own speed unless given.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            kmh: Option<f64>,
        },
        /// Extended vehicular A.
        Eva {
            /// Kilometres an hour for the Doppler shift; the UE's own speed unless given.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            kmh: Option<f64>,
        },
        /// Extended typical urban.
        Etu {
            /// Kilometres an hour for the Doppler shift; the UE's own speed unless given.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            kmh: Option<f64>,
        },
    }
}

/// A bearer: RLC, PDCP and the queues in front of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bearer {
    /// Quality-of-service class, QCI, 1 to 9 (23.203 table 6.1.7).
    pub qci: u8,
    /// The RLC mode.
    pub rlc: Rlc,
    /// The queue in front of RLC in the eNodeB.
    pub queue: Queue,
    /// A queue above that one, which then is the buffer that it hands packets down to; none unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<Above>,
    /// How long a packet may wait in it before PDCP discards it; without end unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discard: Option<Span>,
}

impl Default for Bearer {
    fn default() -> Bearer {
        Bearer {
            qci: 9,
            rlc: Rlc::default(),
            queue: Queue::DropTail { packets: None, bytes: Some(Bytes::new(1_000_000)), drop: Drop::default() },
            above: None,
            discard: None,
        }
    }
}

/// A queue above RLC's buffer in the eNodeB: the backlog waits in it, where it can be scheduled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Above {
    /// The queue.
    pub queue: Queue,
    /// What limits what it hands down to the buffer, beside the buffer's room.
    pub limit: Limit,
}

impl Default for Above {
    fn default() -> Above {
        Above { queue: Queue::fq_codel(), limit: Limit::default_bql() }
    }
}

kinds! { "Limit",
    /// What limits what a queue hands down to the buffer below it, beside the buffer's room. The last packet may exceed it.
    #[derive(Copy, Default)]
    pub enum Limit {
        /// Nothing.
        #[default]
        None,
        /// Byte queue limits, as Linux's dynamic queue limits: as few bytes as do not leave the buffer empty while more waits.
        Bql {
            /// The limit's lowest value.
            #[serde(default)]
            min: Bytes,
            /// Its highest.
            #[serde(default = "bql_max")]
            max: Bytes,
            /// For how long bytes have to be unneeded before the limit shrinks.
            #[serde(default = "bql_hold")]
            hold: Span,
            /// When a packet has left the buffer.
            #[serde(default)]
            completed: Completed,
        },
        /// DynRLC: as many packets as spend the target's time in the buffer. Patented; for comparison in simulations.
        DynRlc {
            /// The delay threshold: how long a packet should spend in the buffer at most.
            #[serde(default = "dyn_rlc_target")]
            target: Span,
            /// From one change of the limit to the next.
            #[serde(default = "dyn_rlc_interval")]
            interval: Span,
            /// The limit's lowest value, in packets.
            #[serde(default = "dyn_rlc_min")]
            min: u32,
            /// Its highest; 333 full packets are 500 kB.
            #[serde(default = "dyn_rlc_max")]
            max: u32,
            /// When a packet has left the buffer.
            #[serde(default)]
            completed: Completed,
        },
    }
}

impl Limit {
    fn default_bql() -> Limit {
        Limit::Bql { min: Bytes::ZERO, max: bql_max(), hold: bql_hold(), completed: Completed::default() }
    }
}

/// When a packet has left RLC's buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Completed {
    /// Its last byte was sent, for the first time.
    #[default]
    Sent,
    /// In AM, all of it was acknowledged; in UM and TM, which hear of nothing, as `sent`.
    Acknowledged,
}

/// A dedicated bearer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dedicated {
    /// The priorities (0 to 15) of the flows that it carries.
    pub priorities: Vec<u8>,
    /// The bearer.
    #[serde(default)]
    pub bearer: Bearer,
}

kinds! { "Rlc",
    /// The RLC mode (36.322) and its parameters.
    #[derive(Copy)]
    pub enum Rlc {
        /// Transparent: no segmentation, no numbering.
        Tm,
        /// Unacknowledged.
        Um {
            /// How long a missing PDU is waited for.
            #[serde(default = "um_reordering")]
            t_reordering: Span,
        },
        /// Acknowledged.
        Am {
            /// How long the answer to a poll is waited for.
            #[serde(default = "poll_retransmit")]
            t_poll_retransmit: Span,
            /// How long a missing PDU is waited for before it is reported.
            #[serde(default = "am_reordering")]
            t_reordering: Span,
            /// At least so long between two reports.
            #[serde(default = "status_prohibit")]
            t_status_prohibit: Span,
            /// New PDUs between polls.
            #[serde(default = "poll_pdu")]
            poll_pdu: u32,
            /// Retransmissions of a PDU after which the radio link is lost.
            #[serde(default = "max_retx")]
            max_retx: u32,
            /// Whether a STATUS PDU takes a whole transport block, as in ns-3, instead of sharing it with data. Unless given,
            /// as `mac.ideal`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            status_alone: Option<bool>,
        },
    }
}

impl Default for Rlc {
    fn default() -> Rlc {
        Rlc::Am {
            t_poll_retransmit: poll_retransmit(),
            t_reordering: am_reordering(),
            t_status_prohibit: status_prohibit(),
            poll_pdu: poll_pdu(),
            max_retx: max_retx(),
            status_alone: None,
        }
    }
}

/// What a CQI of the downlink is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CqiOf {
    /// The whole carrier.
    #[default]
    Carrier,
    /// The carrier's worst resource block group. ns-3's schedulers choose the scheme of a block by the worst group that it is
    /// sent on; this is the same where one UE has the carrier, and pessimistic where several share it.
    WorstGroup,
}

/// Open-loop power control of the uplink (36.213 5.1.1.1), the same in all cells.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PowerControl {
    /// P0: the power in dBm that a resource block should arrive with if all of the path loss is made up for.
    pub p0_dbm: f64,
    /// The share of the path loss that is made up for: 0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9 or 1.
    pub alpha: f64,
}

impl Default for PowerControl {
    fn default() -> PowerControl {
        PowerControl { p0_dbm: -80.0, alpha: 1.0 }
    }
}

/// What the MAC layer does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mac {
    /// How often a transport block is sent before HARQ gives it up.
    pub harq_transmissions: u8,
    /// From the end of a transmission until RLC has it, at most 3 ms: then the acknowledgement is due.
    pub decoding: Span,
    /// From one report of channel quality to the next.
    pub cqi_period: Span,
    /// From the measurement until the scheduler has the report.
    pub cqi_delay: Span,
    /// What a CQI is about. It holds with `ideal` too.
    pub cqi: CqiOf,
    /// Step of the outer loop towards 10 % block errors, in dB; 0 is none.
    pub outer_loop_db: f64,
    /// Milliseconds between a UE's opportunities for scheduling requests: 1, 2, 5, 10, 20, 40 or 80.
    pub sr_period: u8,
    /// For how many of those a request holds back the next one, 0 to 7.
    pub sr_prohibit: u8,
    /// Requests before random access, 4 to 64.
    pub sr_maximum: u8,
    /// From one buffer status report to the next while data waits.
    pub bsr_period: Span,
    /// After so long without a grant a UE that has data asks again.
    pub bsr_retx: Span,
    /// Idealised as ns-3's LTE module is: buffer levels known at once, no requests, no MAC headers, no decoding delay.
    pub ideal: bool,
}

impl Default for Mac {
    fn default() -> Mac {
        Mac {
            harq_transmissions: 4,
            decoding: Span::from_millis(3),
            cqi_period: Span::from_millis(5),
            cqi_delay: Span::from_millis(6),
            cqi: CqiOf::Carrier,
            outer_loop_db: 0.1,
            sr_period: 10,
            sr_prohibit: 1,
            sr_maximum: 64,
            bsr_period: Span::from_millis(10),
            bsr_retx: Span::from_millis(320),
            ideal: false,
        }
    }
}

fn one() -> u32 {
    1
}
fn one_layer() -> u8 {
    1
}
fn yes() -> bool {
    true
}
fn one_server() -> Vec<String> {
    vec!["server".into()]
}
fn one_cell() -> Vec<Cell> {
    vec![Cell {
        name: "cell-1".into(),
        position: cell_position(),
        power_dbm: cell_power(),
        noise_figure_db: cell_noise(),
        sector_deg: None,
        scheduler: Scheduler::default(),
        uplink_scheduler: Scheduler::default(),
        load: 0.0,
    }]
}
fn downlink_mhz() -> f64 {
    2120.0
}
fn uplink_mhz() -> f64 {
    1930.0
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
fn correlation() -> f64 {
    50.0
}
fn building() -> f64 {
    5.0
}
fn street() -> f64 {
    20.0
}
fn modem() -> Bytes {
    Bytes::new(500_000)
}
fn host_queue() -> Queue {
    Queue::PfifoFast { packets: 1000 }
}
fn bql_max() -> Bytes {
    // Linux's DQL_MAX_LIMIT.
    Bytes::new((u32::MAX / 2 - u32::MAX / 16).into())
}
fn bql_hold() -> Span {
    Span::from_secs(1)
}
fn dyn_rlc_target() -> Span {
    Span::from_millis(20)
}
fn dyn_rlc_interval() -> Span {
    Span::from_millis(200)
}
fn dyn_rlc_min() -> u32 {
    2
}
fn dyn_rlc_max() -> u32 {
    333
}
fn um_reordering() -> Span {
    Span::from_millis(45)
}
fn am_reordering() -> Span {
    Span::from_millis(50)
}
fn poll_retransmit() -> Span {
    Span::from_millis(120)
}
fn status_prohibit() -> Span {
    Span::from_millis(50)
}
fn poll_pdu() -> u32 {
    64
}
fn max_retx() -> u32 {
    16
}
