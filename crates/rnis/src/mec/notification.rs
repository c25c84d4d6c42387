//! Notifications (6.4).

use super::mapping;
use super::model::{
    ErabQos, EutranNeighbour, LinkType, NewRadioNeighbour, NotificationLinks, NrCellResults, NrNCellInfo,
    NrNeighCellMeasInfo, QuantityResultsNr, S1BearerDetail, ServCellMeasInfo, TimeStamp,
};
use super::subscription::Kind;
use crate::event::{Bearer, Event, Measurement, Neighbour, Signal, What};
use crate::identity::{AssociateId, Ecgi, Network, Rat, TempUeId};
use crate::state::Occurrence;
use serde::Serialize;

/// A notification.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Notification {
    /// Its type.
    pub notification_type: &'static str,
    /// When the event happened.
    pub time_stamp: TimeStamp,
    /// The subscription.
    #[serde(rename = "_links")]
    pub links: NotificationLinks,
    /// What the type adds.
    #[serde(flatten)]
    content: Content,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
enum Content {
    CellChange {
        associate_id: Vec<AssociateId>,
        src_ecgi: Ecgi,
        trg_ecgi: Vec<Ecgi>,
        ho_status: u8,
        #[serde(skip_serializing_if = "Option::is_none")]
        temp_ue_id: Option<TempUeId>,
    },
    /// A bearer was established or modified.
    Rab {
        associate_id: Vec<AssociateId>,
        ecgi: Ecgi,
        erab_id: u8,
        erab_qos_parameters: ErabQos,
        #[serde(skip_serializing_if = "Option::is_none")]
        temp_ue_id: Option<TempUeId>,
    },
    RabRelease {
        associate_id: Vec<AssociateId>,
        ecgi: Ecgi,
        erab_release_info: Release,
    },
    Measurement {
        associate_id: Vec<AssociateId>,
        ecgi: Ecgi,
        trigger: u8,
        rsrp: i32,
        rsrq: i32,
        #[serde(skip_serializing_if = "Option::is_none")]
        sinr: Option<i32>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        eutran_neighbour_cell_meas_info: Vec<EutranNeighbour>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        new_radio_meas_nei_info: Vec<NewRadioNeighbour>,
    },
    NrMeasurement {
        associate_id: Vec<AssociateId>,
        trigger_nr: u8,
        serv_cell_meas_info: Vec<ServCellMeasInfo>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        nr_neigh_cell_meas_info: Vec<NrNeighCellMeasInfo>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        eutra_neigh_cell_meas_info: Vec<EutranNeighbour>,
    },
    TimingAdvance {
        associate_id: Vec<AssociateId>,
        ecgi: Ecgi,
        timing_advance: i32,
    },
    Carriers {
        associate_id: Vec<AssociateId>,
        ecgi: Ecgi,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        secondary_cell_add: Vec<SecondaryCell>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        secondary_cell_remove: Vec<SecondaryCell>,
    },
    S1Bearer {
        s1_event: u8,
        s1_ue_info: S1Ue,
    },
    Expiry {
        expiry_deadline: TimeStamp,
    },
    Test {},
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Release {
    erab_id: u8,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct SecondaryCell {
    ecgi: Ecgi,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct S1Ue {
    associate_id: Vec<AssociateId>,
    ecgi: Vec<Ecgi>,
    s1_bearer_info: Vec<S1BearerDetail>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temp_ue_id: Option<TempUeId>,
}

impl Notification {
    fn new(notification_type: &'static str, time: TimeStamp, subscription: &str, content: Content) -> Notification {
        let links = NotificationLinks { subscription: LinkType { href: subscription.to_owned() } };
        Notification { notification_type, time_stamp: time, links, content }
    }

    /// Creates the notification that a subscription has expired (6.4.10).
    pub fn expiry(subscription: &str, deadline: TimeStamp, now: TimeStamp) -> Notification {
        Notification::new("ExpiryNotification", now, subscription, Content::Expiry { expiry_deadline: deadline })
    }

    /// Creates a notification that tests whether the consumer can be reached (6.4.11).
    pub fn test(subscription: &str, now: TimeStamp) -> Notification {
        Notification::new("TestNotification", now, subscription, Content::Test {})
    }
}

/// Creates the notification of an event for the subscription with this link.
///
/// Returns `None` for events of which there are no notifications, and for measurements that lack a value that the
/// notification requires.
pub fn notify(occurrence: &Occurrence, network: &Network, subscription: &str) -> Option<Notification> {
    let Occurrence { event, ids, .. } = occurrence;
    let Event { cell, temp_ue_id, .. } = event;
    let (associate_id, ecgi, temp_ue_id) = (ids.clone(), network.ecgi(*cell), temp_ue_id.clone());
    let rab = |bearer: &Bearer, temp_ue_id| Content::Rab {
        associate_id: ids.clone(),
        ecgi: network.ecgi(*cell),
        erab_id: bearer.erab,
        erab_qos_parameters: bearer.into(),
        temp_ue_id,
    };
    let (kind, content) = match &event.what {
        What::CellChange { status, targets } => {
            let trg_ecgi = targets.iter().map(|&target| network.ecgi(target)).collect();
            let ho_status = *status as u8;
            let content = Content::CellChange { associate_id, src_ecgi: ecgi, trg_ecgi, ho_status, temp_ue_id };
            (Kind::CellChange, content)
        }
        What::BearerEstablished(bearer) => (Kind::RabEst, rab(bearer, temp_ue_id)),
        What::BearerModified(bearer) => (Kind::RabMod, rab(bearer, None)),
        What::BearerReleased { erab } => {
            let erab_release_info = Release { erab_id: *erab };
            (Kind::RabRel, Content::RabRelease { associate_id, ecgi, erab_release_info })
        }
        What::Measurement(measurement) => match network.rat {
            Rat::Lte => (Kind::MeasRepUe, lte_measurement(measurement, associate_id, ecgi, network)?),
            Rat::Nr => (Kind::NrMeasRepUe, nr_measurement(measurement, associate_id, *cell, network)),
        },
        What::TimingAdvance { timing_advance } => {
            let timing_advance = i32::try_from(*timing_advance).ok()?;
            (Kind::MeasTa, Content::TimingAdvance { associate_id, ecgi, timing_advance })
        }
        What::CarrierReconfigured { added, removed } => {
            let [secondary_cell_add, secondary_cell_remove] = [added, removed]
                .map(|cells| cells.iter().map(|&cell| SecondaryCell { ecgi: network.ecgi(cell) }).collect());
            (Kind::CaReconf, Content::Carriers { associate_id, ecgi, secondary_cell_add, secondary_cell_remove })
        }
        What::S1Bearer { action, bearer } => {
            let s1_bearer_info = vec![S1BearerDetail::from(bearer)];
            let s1_ue_info = S1Ue { associate_id, ecgi: vec![ecgi], s1_bearer_info, temp_ue_id };
            (Kind::S1Bearer, Content::S1Bearer { s1_event: *action as u8, s1_ue_info })
        }
        What::Layer2(_) | What::Left => return None,
    };
    Some(Notification::new(kind.notification_type(), event.time.into(), subscription, content))
}

fn lte_measurement(
    measurement: &Measurement,
    associate_id: Vec<AssociateId>,
    ecgi: Ecgi,
    network: &Network,
) -> Option<Content> {
    let Signal { rsrp_dbm, rsrq_db, sinr_db } = measurement.serving;
    let (mut lte, mut nr) = (Vec::new(), Vec::new());
    for neighbour in &measurement.neighbours {
        match neighbour.rat.unwrap_or(Rat::Lte) {
            Rat::Lte => lte.push(lte_neighbour(neighbour, network)),
            Rat::Nr => nr.push(NewRadioNeighbour {
                nr_n_cell_info: vec![NrNCellInfo {
                    id: format!("{:09X}", neighbour.cell),
                    plmn: vec![network.plmn.clone()],
                }],
                nr_n_cell_rsrp: neighbour.signal.rsrp_dbm.map(mapping::nr_rsrp),
                nr_n_cell_rsrq: neighbour.signal.rsrq_db.map(mapping::nr_rsrq),
            }),
        }
    }
    Some(Content::Measurement {
        associate_id,
        ecgi,
        trigger: measurement.trigger,
        rsrp: mapping::lte_rsrp(rsrp_dbm?),
        rsrq: mapping::lte_rsrq(rsrq_db?),
        sinr: sinr_db.map(mapping::sinr),
        eutran_neighbour_cell_meas_info: lte,
        new_radio_meas_nei_info: nr,
    })
}

fn nr_measurement(measurement: &Measurement, associate_id: Vec<AssociateId>, cell: u64, network: &Network) -> Content {
    let results = |signal: &Signal| NrCellResults {
        meas_quantity_results_ssb_cell: QuantityResultsNr {
            rsrp: signal.rsrp_dbm.map(mapping::nr_rsrp),
            rsrq: signal.rsrq_db.map(mapping::nr_rsrq),
            sinr: signal.sinr_db.map(mapping::sinr),
        },
    };
    let (mut lte, mut nr) = (Vec::new(), Vec::new());
    for neighbour in &measurement.neighbours {
        match neighbour.rat.unwrap_or(Rat::Nr) {
            Rat::Lte => lte.push(lte_neighbour(neighbour, network)),
            Rat::Nr => nr.push(NrNeighCellMeasInfo {
                nrcgi: network.nrcgi(neighbour.cell),
                results: results(&neighbour.signal),
            }),
        }
    }
    Content::NrMeasurement {
        associate_id,
        trigger_nr: measurement.trigger,
        serv_cell_meas_info: vec![ServCellMeasInfo {
            nrcgi: network.nrcgi(cell),
            s_cell: results(&measurement.serving),
        }],
        nr_neigh_cell_meas_info: nr,
        eutra_neigh_cell_meas_info: lte,
    }
}

fn lte_neighbour(neighbour: &Neighbour, network: &Network) -> EutranNeighbour {
    EutranNeighbour {
        ecgi: Ecgi { plmn: network.plmn.clone(), cell_id: format!("{:07X}", neighbour.cell) },
        rsrp: neighbour.signal.rsrp_dbm.map(mapping::lte_rsrp),
        rsrq: neighbour.signal.rsrq_db.map(mapping::lte_rsrq),
        sinr: neighbour.signal.sinr_db.map(mapping::sinr),
    }
}
