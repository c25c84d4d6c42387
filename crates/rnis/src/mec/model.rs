//! The data types of the standard's clause 6 that the service sends, with its field names.

use crate::event::{Bearer, S1Bearer};
use crate::identity::{AssociateId, Ecgi, Nrcgi, Plmn, TempUeId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::Time;

/// A point in Unix time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TimeStamp {
    /// Whole seconds.
    pub seconds: u32,
    /// The rest. The examples of the standard's API description spell it `nanoseconds`, which is understood too.
    #[serde(rename = "nanoSeconds", alias = "nanoseconds")]
    pub nano_seconds: u32,
}

impl From<Time> for TimeStamp {
    fn from(time: Time) -> TimeStamp {
        let (seconds, nanos) = (time.as_nanos() / 1_000_000_000, time.as_nanos() % 1_000_000_000);
        TimeStamp { seconds: u32::try_from(seconds).unwrap_or(u32::MAX), nano_seconds: nanos as u32 }
    }
}

impl From<TimeStamp> for Time {
    fn from(stamp: TimeStamp) -> Time {
        Time::from_nanos(u64::from(stamp.seconds) * 1_000_000_000 + u64::from(stamp.nano_seconds))
    }
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkType {
    /// The URI.
    pub href: String,
}

/// The link of a notification to its subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotificationLinks {
    /// The subscription.
    pub subscription: LinkType,
}

/// What went wrong with a request (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProblemDetails {
    /// The kind of problem.
    pub r#type: String,
    /// The meaning of the status.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What went wrong with this request.
    pub detail: String,
}

/// The radio access bearers of UEs (6.2.3).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RabInfo {
    /// The application that asked.
    pub app_instance_id: String,
    /// The number of the request.
    pub request_id: String,
    /// When it was answered.
    pub time_stamp: TimeStamp,
    /// The cells.
    pub cell_user_info: Vec<CellUserInfo>,
}

/// The UEs of a cell and their bearers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CellUserInfo {
    /// The cell.
    pub ecgi: Ecgi,
    /// Its UEs.
    pub ue_info: Vec<UeInfo>,
}

/// A UE and its bearers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UeInfo {
    /// The UE's identifiers.
    pub associate_id: Vec<AssociateId>,
    /// Its bearers.
    pub erab_info: Vec<ErabInfo>,
}

/// A bearer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErabInfo {
    /// Its number.
    pub erab_id: u8,
    /// Its quality of service.
    pub erab_qos_parameters: ErabQos,
}

impl From<&Bearer> for ErabInfo {
    fn from(bearer: &Bearer) -> ErabInfo {
        ErabInfo { erab_id: bearer.erab, erab_qos_parameters: bearer.into() }
    }
}

/// The quality of service of a bearer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErabQos {
    /// Its class.
    pub qci: u8,
    /// Its rates, if they are guaranteed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qos_information: Option<QosInformation>,
}

/// The rates of a bearer in bit/s.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QosInformation {
    /// Maximum downlink rate.
    pub erab_mbr_dl: u64,
    /// Maximum uplink rate.
    pub erab_mbr_ul: u64,
    /// Guaranteed downlink rate.
    pub erab_gbr_dl: u64,
    /// Guaranteed uplink rate.
    pub erab_gbr_ul: u64,
}

impl From<&Bearer> for ErabQos {
    fn from(bearer: &Bearer) -> ErabQos {
        let qos_information = bearer.rates.map(|rates| QosInformation {
            erab_mbr_dl: rates.mbr_dl,
            erab_mbr_ul: rates.mbr_ul,
            erab_gbr_dl: rates.gbr_dl,
            erab_gbr_ul: rates.gbr_ul,
        });
        ErabQos { qci: bearer.qci, qos_information }
    }
}

/// The networks of an application (6.2.2).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlmnInfo {
    /// The application.
    pub app_instance_id: String,
    /// The networks.
    pub plmn: Vec<Plmn>,
    /// When it was answered.
    pub time_stamp: TimeStamp,
}

/// The S1 bearers of UEs (6.2.4).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct S1BearerInfo {
    /// The UEs, at least one.
    pub s1_ue_info: Vec<S1UeInfo>,
    /// When it was answered.
    pub time_stamp: TimeStamp,
}

/// The S1 bearers of a UE.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct S1UeInfo {
    /// The UE's temporary identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temp_ue_id: Option<TempUeId>,
    /// The UE's identifiers.
    pub associate_id: Vec<AssociateId>,
    /// The cells of the UE.
    pub ecgi: Vec<Ecgi>,
    /// The bearers, at least one.
    pub s1_bearer_info_detailed: Vec<S1BearerDetail>,
}

/// An S1 bearer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct S1BearerDetail {
    /// Its number.
    #[serde(rename = "erabId")]
    pub erab_id: u8,
    /// The base station's end.
    #[serde(rename = "enbInfo")]
    pub enb_info: TunnelInfo,
    /// The gateway's end.
    #[serde(rename = "sGwInfo")]
    pub sgw_info: TunnelInfo,
}

/// One end of a tunnel.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TunnelInfo {
    /// Its transport address.
    pub ip_address: String,
    /// Its tunnel endpoint identifier.
    pub tunnel_id: String,
}

impl From<&S1Bearer> for S1BearerDetail {
    fn from(bearer: &S1Bearer) -> S1BearerDetail {
        let [enb_info, sgw_info] = [bearer.enb, bearer.sgw]
            .map(|end| TunnelInfo { ip_address: end.address.to_string(), tunnel_id: end.teid.to_string() });
        S1BearerDetail { erab_id: bearer.erab, enb_info, sgw_info }
    }
}

/// Layer 2 measurements (6.2.5).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct L2Meas {
    /// The measurements of cells.
    #[serde(rename = "cellInfo")]
    pub cell_info: Vec<CellInfo>,
    /// The measurements of UEs.
    #[serde(rename = "cellUEInfo")]
    pub cell_ue_info: Vec<CellUeInfo>,
    /// When they were made, or when there are none, the time of the answer.
    #[serde(rename = "timeStamp")]
    pub time_stamp: TimeStamp,
}

/// The measurements of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellInfo {
    /// The cell.
    pub ecgi: Ecgi,
    /// The measurements by name.
    #[serde(flatten)]
    pub values: BTreeMap<&'static str, u64>,
}

/// The measurements of a UE.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellUeInfo {
    /// The UE.
    #[serde(rename = "associateId")]
    pub associate_id: AssociateId,
    /// The cell.
    pub ecgi: Ecgi,
    /// The measurements by name.
    #[serde(flatten)]
    pub values: BTreeMap<&'static str, u64>,
}

/// The list of subscriptions (6.3.10).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubscriptionLinkList {
    /// The links.
    #[serde(rename = "_links")]
    pub links: SubscriptionLinks,
}

/// The links of a [`SubscriptionLinkList`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubscriptionLinks {
    /// The list itself.
    #[serde(rename = "self")]
    pub this: LinkType,
    /// The subscriptions.
    pub subscription: Vec<SubscriptionLink>,
}

/// The link of a subscription.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SubscriptionLink {
    /// The subscription.
    pub href: String,
    /// Its type.
    #[serde(rename = "subscriptionType")]
    pub subscription_type: &'static str,
}

/// The measured quantities of an NR cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct QuantityResultsNr {
    /// Received power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rsrp: Option<i32>,
    /// Received quality.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rsrq: Option<i32>,
    /// Signal to interference and noise ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sinr: Option<i32>,
}

/// A serving NR cell and its signal.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServCellMeasInfo {
    /// The cell.
    pub nrcgi: Nrcgi,
    /// Its signal.
    pub s_cell: NrCellResults,
}

/// A neighbouring NR cell and its signal.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NrNeighCellMeasInfo {
    /// The cell.
    pub nrcgi: Nrcgi,
    /// Its signal.
    #[serde(flatten)]
    pub results: NrCellResults,
}

/// The signal of an NR cell, measured on its synchronisation signal blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NrCellResults {
    /// The quantities.
    pub meas_quantity_results_ssb_cell: QuantityResultsNr,
}

/// A neighbouring LTE cell and its signal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EutranNeighbour {
    /// The cell.
    pub ecgi: Ecgi,
    /// Received power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rsrp: Option<i32>,
    /// Received quality.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rsrq: Option<i32>,
    /// Signal to interference and noise ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sinr: Option<i32>,
}

/// A neighbouring NR cell as an LTE cell's measurement report has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewRadioNeighbour {
    /// The cell.
    pub nr_n_cell_info: Vec<NrNCellInfo>,
    /// Received power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nr_n_cell_rsrp: Option<i32>,
    /// Received quality.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nr_n_cell_rsrq: Option<i32>,
}

/// The identity of an NR neighbour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NrNCellInfo {
    /// The cell.
    #[serde(rename = "nrNCellGId")]
    pub id: String,
    /// Its networks.
    #[serde(rename = "nrNCellPlmn")]
    pub plmn: Vec<Plmn>,
}
