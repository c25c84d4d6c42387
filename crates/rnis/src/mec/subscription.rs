//! Subscriptions (6.3): parsing, checks, and which events they are about.

use super::model::TimeStamp;
use crate::event::{HandoverStatus, TRIGGERS_LTE, TRIGGERS_NR, What};
use crate::identity::{AssociateId, Ecgi, Network, Nrcgi, Plmn, Rat, parse_cell};
use crate::state::Occurrence;
use core::fmt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most entries in a list of a subscription.
const MOST_IN_LIST: usize = 64;
/// The longest URI and application identifier.
const LONGEST_TEXT: usize = 2048;

/// The types of subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Handovers.
    CellChange,
    /// Establishment of bearers.
    RabEst,
    /// Modification of bearers.
    RabMod,
    /// Release of bearers.
    RabRel,
    /// Measurement reports of UEs in LTE cells.
    MeasRepUe,
    /// Measurement reports of UEs in NR cells.
    NrMeasRepUe,
    /// Timing advance.
    MeasTa,
    /// Reconfiguration of carriers.
    CaReconf,
    /// S1 bearers.
    S1Bearer,
}

/// Each type with its name in subscriptions, the name of its criteria, its name in notifications, and its name in the
/// parameter `subscription_type`.
const NAMES: [(Kind, &str, &str, &str, &str); 9] = [
    (Kind::CellChange, "CellChangeSubscription", "filterCriteriaAssocHo", "CellChangeNotification", "cell_change"),
    (Kind::RabEst, "RabEstSubscription", "filterCriteriaQci", "RabEstNotification", "rab_est"),
    (Kind::RabMod, "RabModSubscription", "filterCriteriaQci", "RabModNotification", "rab_mod"),
    (Kind::RabRel, "RabRelSubscription", "filterCriteriaQci", "RabRelNotification", "rab_rel"),
    (Kind::MeasRepUe, "MeasRepUeSubscription", "filterCriteriaAssocTri", "MeasRepUeNotification", "meas_rep_ue"),
    (Kind::NrMeasRepUe, "NrMeasRepUeSubscription", "filterCriteriaNrMrs", "NrMeasRepUeNotification", "nr_meas_rep_ue"),
    (Kind::MeasTa, "MeasTaSubscription", "filterCriteriaAssoc", "MeasTaNotification", "timing_advance_ue"),
    // The standard's text (6.4.9) spells the notification differently from its schema's name.
    (Kind::CaReconf, "CaReconfSubscription", "filterCriteriaAssoc", "CaReConfNotification", "ca_reconf"),
    (Kind::S1Bearer, "S1BearerSubscription", "S1BearerSubscriptionCriteria", "S1BearerNotification", "s1_bearer"),
];

impl Kind {
    /// All types.
    pub const ALL: [Kind; 9] = [
        Kind::CellChange,
        Kind::RabEst,
        Kind::RabMod,
        Kind::RabRel,
        Kind::MeasRepUe,
        Kind::NrMeasRepUe,
        Kind::MeasTa,
        Kind::CaReconf,
        Kind::S1Bearer,
    ];

    fn names(self) -> (Kind, &'static str, &'static str, &'static str, &'static str) {
        NAMES[self as usize]
    }

    /// Returns the value of `subscriptionType`.
    pub fn subscription_type(self) -> &'static str {
        self.names().1
    }

    /// Returns the name of the member that holds the filter criteria.
    pub fn criteria_name(self) -> &'static str {
        self.names().2
    }

    /// Returns the value of `notificationType`.
    pub fn notification_type(self) -> &'static str {
        self.names().3
    }

    /// Returns the value of the query parameter `subscription_type`.
    pub fn query_name(self) -> &'static str {
        self.names().4
    }

    /// Returns the type with this value of the query parameter `subscription_type`.
    pub fn from_query_name(text: &str) -> Option<Kind> {
        NAMES.iter().find(|names| names.4 == text).map(|names| names.0)
    }
}

/// A subscription that was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Subscription {
    /// Its type.
    pub kind: Kind,
    /// Where notifications are posted to, if the consumer wants that.
    pub callback: Option<String>,
    /// The consumer wants notifications over a WebSocket.
    pub websocket: bool,
    /// The consumer wants a test notification.
    pub test: bool,
    /// When the subscription ends.
    pub expiry: Option<TimeStamp>,
    /// The subscription that the body says it is (`_links.self`).
    pub this: Option<String>,
    event_types: Vec<u8>,
    criteria: Criteria,
}

/// The filter criteria of all types; a type uses some of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Criteria {
    #[serde(skip_serializing_if = "Option::is_none")]
    app_instance_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    associate_id: Option<Vec<AssociateId>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ecgi: Option<Vec<Ecgi>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nrcgi: Option<Vec<Nrcgi>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ho_status: Option<Vec<u8>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<Vec<u8>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger_nr: Option<Vec<u8>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    qci: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    erab_id: Option<Erab>,
}

/// The bearers of a subscription: one, or for S1 bearers a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Erab {
    One(u8),
    Many(Vec<u8>),
}

/// The body of a request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    subscription_type: String,
    callback_reference: Option<String>,
    websock_notif_config: Option<Websock>,
    request_test_notification: Option<bool>,
    expiry_deadline: Option<TimeStamp>,
    event_type: Option<Vec<u8>>,
    #[serde(rename = "_links")]
    links: Option<Links>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Websock {
    request_websocket_uri: Option<bool>,
}

#[derive(Deserialize)]
struct Links {
    #[serde(rename = "self")]
    this: super::model::LinkType,
}

/// The reason why a body is not a valid subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(pub String);

impl fmt::Display for Invalid {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl core::error::Error for Invalid {}

impl Subscription {
    /// Parses and checks the body of a request.
    pub fn parse(body: &[u8]) -> Result<Subscription, Invalid> {
        let invalid = |why: serde_json::Error| Invalid(format!("the body is not a subscription: {why}"));
        let mut members: Map<String, Value> = serde_json::from_slice(body).map_err(invalid)?;
        let kind = match members.get("subscriptionType") {
            Some(Value::String(text)) => NAMES.iter().find(|names| names.1 == text).map(|names| names.0),
            _ => return Err(Invalid("`subscriptionType` is missing".into())),
        };
        let Some(kind) = kind else {
            let known = NAMES.map(|names| names.1).join(", ");
            return Err(Invalid(format!("unknown `subscriptionType`; known are {known}")));
        };
        let criteria = members.remove(kind.criteria_name());
        let criteria = criteria.ok_or_else(|| Invalid(format!("`{}` is missing", kind.criteria_name())))?;
        let criteria = Criteria::parse(kind, criteria)?;
        let body: Body = serde_json::from_value(Value::Object(members)).map_err(invalid)?;
        debug_assert_eq!(body.subscription_type, kind.subscription_type());
        let websocket = body.websock_notif_config.is_some_and(|config| config.request_websocket_uri == Some(true));
        let callback = body.callback_reference.filter(|uri| !uri.is_empty());
        if callback.is_none() && !websocket {
            let why = "`callbackReference` or `websockNotifConfig.requestWebsocketUri` is required";
            return Err(Invalid(why.into()));
        }
        if callback.as_ref().is_some_and(|uri| uri.len() > LONGEST_TEXT) {
            return Err(Invalid(format!("`callbackReference` is longer than {LONGEST_TEXT} bytes")));
        }
        if body.expiry_deadline.is_some_and(|stamp| stamp.nano_seconds >= 1_000_000_000) {
            return Err(Invalid("`nanoSeconds` is not less than 1000000000".into()));
        }
        let event_types = body.event_type.unwrap_or_default();
        if kind == Kind::S1Bearer {
            check_list("eventType", Some(&event_types), |event| (1..=3).contains(event))?;
            if event_types.is_empty() {
                return Err(Invalid("`eventType` is missing".into()));
            }
        }
        Ok(Subscription {
            kind,
            callback,
            websocket,
            test: body.request_test_notification == Some(true),
            expiry: body.expiry_deadline,
            this: body.links.map(|links| links.this.href),
            event_types,
            criteria,
        })
    }

    /// Returns the subscription as it is sent, with its own link and, for a WebSocket, the URI to connect to.
    pub fn to_json(&self, this: &str, websocket_uri: Option<&str>) -> Value {
        let mut members = Map::new();
        let mut put = |name: &str, value: Value| members.insert(name.into(), value);
        put("subscriptionType", self.kind.subscription_type().into());
        put("_links", serde_json::json!({ "self": { "href": this } }));
        match (websocket_uri, &self.callback) {
            (Some(uri), _) => {
                let config = serde_json::json!({ "requestWebsocketUri": true, "websocketUri": uri });
                put("websockNotifConfig", config);
            }
            (None, Some(uri)) => {
                put("callbackReference", uri.clone().into());
            }
            (None, None) => {}
        }
        if self.test {
            put("requestTestNotification", true.into());
        }
        if let Some(stamp) = self.expiry {
            put("expiryDeadline", serde_json::json!(stamp));
        }
        if self.kind == Kind::S1Bearer {
            put("eventType", serde_json::json!(self.event_types));
        }
        put(self.kind.criteria_name(), serde_json::json!(self.criteria));
        Value::Object(members)
    }

    /// Returns whether an event is one that the subscription is about.
    pub fn matches(&self, occurrence: &Occurrence, network: &Network) -> bool {
        let Occurrence { event, ids, qci } = occurrence;
        let criteria = &self.criteria;
        let same_ue = is_any(criteria.associate_id.as_deref(), |id| ids.contains(id));
        if !same_ue
            || !self.is_kind_of(&event.what, network.rat)
            || !criteria.takes_cells(event.cell, &event.what, network)
        {
            return false;
        }
        let of_class = criteria.qci.is_none_or(|wanted| *qci == Some(wanted));
        match &event.what {
            What::CellChange { status, .. } => is_any(criteria.ho_status.as_deref(), |&wanted| wanted == *status as u8),
            // The number of a bearer says nothing in a subscription to bearers that do not exist yet.
            What::BearerEstablished(_) => of_class,
            What::BearerModified(bearer) => of_class && criteria.takes_bearer(bearer.erab),
            What::BearerReleased { erab } => of_class && criteria.takes_bearer(*erab),
            What::Measurement(measurement) => {
                let triggers = if self.kind == Kind::MeasRepUe { &criteria.trigger } else { &criteria.trigger_nr };
                is_any(triggers.as_deref(), |&wanted| wanted == measurement.trigger)
            }
            What::S1Bearer { action, bearer } => {
                self.event_types.contains(&(*action as u8)) && criteria.takes_bearer(bearer.erab)
            }
            _ => true,
        }
    }

    /// Returns whether an event is of the subscription's type, in a cell of this technology.
    fn is_kind_of(&self, what: &What, rat: Rat) -> bool {
        match what {
            What::Measurement(_) if rat == Rat::Nr => self.kind == Kind::NrMeasRepUe,
            What::Measurement(_) => self.kind == Kind::MeasRepUe,
            What::CellChange { .. } => self.kind == Kind::CellChange,
            What::BearerEstablished(_) => self.kind == Kind::RabEst,
            What::BearerModified(_) => self.kind == Kind::RabMod,
            What::BearerReleased { .. } => self.kind == Kind::RabRel,
            What::TimingAdvance { .. } => self.kind == Kind::MeasTa,
            What::CarrierReconfigured { .. } => self.kind == Kind::CaReconf,
            What::S1Bearer { .. } => self.kind == Kind::S1Bearer,
            What::Layer2(_) | What::Left => false,
        }
    }
}

impl Criteria {
    fn parse(kind: Kind, value: Value) -> Result<Criteria, Invalid> {
        let name = kind.criteria_name();
        let all: Criteria =
            serde_json::from_value(value).map_err(|why| Invalid(format!("`{name}` is invalid: {why}")))?;
        // Members that belong to other types are unknown ones of this type, which are ignored.
        let mut criteria = Criteria { app_instance_id: all.app_instance_id, ..Criteria::default() };
        if kind == Kind::NrMeasRepUe {
            criteria.nrcgi = all.nrcgi;
        } else {
            criteria.ecgi = all.ecgi;
        }
        match kind {
            Kind::RabEst => criteria.qci = all.qci,
            Kind::RabMod | Kind::RabRel => (criteria.qci, criteria.erab_id) = (all.qci, all.erab_id.clone()),
            _ => criteria.associate_id = all.associate_id,
        }
        match kind {
            // 6.3.2: completed handovers, if the subscription does not say.
            Kind::CellChange => {
                let completed = vec![HandoverStatus::Completed as u8];
                criteria.ho_status = Some(all.ho_status.filter(|list| !list.is_empty()).unwrap_or(completed));
            }
            Kind::MeasRepUe => criteria.trigger = all.trigger,
            Kind::NrMeasRepUe => criteria.trigger_nr = all.trigger_nr,
            Kind::S1Bearer => criteria.erab_id = all.erab_id,
            _ => {}
        }
        criteria.check(kind)?;
        Ok(criteria)
    }

    fn check(&self, kind: Kind) -> Result<(), Invalid> {
        if self.app_instance_id.as_ref().is_some_and(|id| id.len() > LONGEST_TEXT) {
            return Err(Invalid(format!("`appInstanceId` is longer than {LONGEST_TEXT} bytes")));
        }
        check_list("associateId", self.associate_id.as_deref(), |_| true)?;
        check_list("ecgi", self.ecgi.as_deref(), |ecgi| is_global(&ecgi.plmn, &ecgi.cell_id))?;
        check_list("nrcgi", self.nrcgi.as_deref(), |nrcgi| is_global(&nrcgi.plmn, &nrcgi.nr_cell_id))?;
        check_list("hoStatus", self.ho_status.as_deref(), |status| (1..=5).contains(status))?;
        check_list("trigger", self.trigger.as_deref(), |trigger| TRIGGERS_LTE.contains(trigger))?;
        check_list("triggerNr", self.trigger_nr.as_deref(), |trigger| TRIGGERS_NR.contains(trigger))?;
        let numbered = matches!(kind, Kind::RabMod | Kind::RabRel);
        if (numbered || kind == Kind::RabEst) && self.qci.is_none() {
            return Err(Invalid("`filterCriteriaQci.qci` is missing".into()));
        }
        match &self.erab_id {
            None if numbered => Err(Invalid("`filterCriteriaQci.erabId` is missing".into())),
            Some(Erab::Many(_)) if numbered => Err(Invalid("`erabId` is not a number".into())),
            Some(Erab::One(_)) if kind == Kind::S1Bearer => Err(Invalid("`erabId` is not a list".into())),
            Some(Erab::Many(list)) => check_list("erabId", Some(list), |erab| *erab <= 15),
            Some(Erab::One(erab)) if *erab > 15 => Err(Invalid("`erabId` is greater than 15".into())),
            _ => Ok(()),
        }
    }

    fn takes_bearer(&self, erab: u8) -> bool {
        match &self.erab_id {
            None => true,
            Some(Erab::One(one)) => *one == erab,
            Some(Erab::Many(list)) => list.is_empty() || list.contains(&erab),
        }
    }

    /// Returns whether an event in `cell` is in one of the cells; a cell change also if a target is.
    fn takes_cells(&self, cell: u64, what: &What, network: &Network) -> bool {
        let is_here = |wanted: Option<u64>| match (wanted, what) {
            (None, _) => false,
            (Some(wanted), What::CellChange { targets, .. }) => wanted == cell || targets.contains(&wanted),
            (Some(wanted), _) => wanted == cell,
        };
        is_any(self.ecgi.as_deref(), |ecgi| is_here(network.cell(&ecgi.plmn, &ecgi.cell_id)))
            && is_any(self.nrcgi.as_deref(), |nrcgi| is_here(network.cell(&nrcgi.plmn, &nrcgi.nr_cell_id)))
    }
}

/// Returns whether an entry of a list fits; no list, or an empty one, is no restriction.
fn is_any<T>(list: Option<&[T]>, fits: impl Fn(&T) -> bool) -> bool {
    list.is_none_or(|list| list.is_empty() || list.iter().any(fits))
}

fn is_global(plmn: &Plmn, cell: &str) -> bool {
    Plmn::parse(&format!("{}-{}", plmn.mcc, plmn.mnc)).is_some() && parse_cell(cell).is_some()
}

fn check_list<T>(name: &str, list: Option<&[T]>, valid: impl Fn(&T) -> bool) -> Result<(), Invalid> {
    let list = list.unwrap_or_default();
    if list.len() > MOST_IN_LIST {
        return Err(Invalid(format!("`{name}` has more than {MOST_IN_LIST} entries")));
    }
    match list.iter().position(|entry| !valid(entry)) {
        Some(index) => Err(Invalid(format!("`{name}[{index}]` is invalid"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
