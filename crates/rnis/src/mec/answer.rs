//! Answers to queries (7.2 to 7.6).

use super::model::{
    CellInfo, CellUeInfo, CellUserInfo, ErabInfo, L2Meas, PlmnInfo, RabInfo, S1BearerDetail, S1BearerInfo, S1UeInfo,
    TimeStamp, UeInfo,
};
use crate::event::{Bearer, Layer2};
use crate::identity::{AssociateId, Network, TempUeId};
use crate::state::{Cell, State, Ue};
use std::collections::{BTreeMap, BTreeSet};
use units::{Span, Time};

/// The names of the layer 2 measurements, as of the parameters that select them.
pub const LAYER2_NAMES: &[&str] = &[
    "dl_gbr_prb_usage_cell",
    "ul_gbr_prb_usage_cell",
    "dl_nongbr_prb_usage_cell",
    "ul_nongbr_prb_usage_cell",
    "dl_total_prb_usage_cell",
    "ul_total_prb_usage_cell",
    "received_dedicated_preambles_cell",
    "received_randomly_selected_preambles_low_range_cell",
    "received_randomly_selected_preambles_high_range_cell",
    "number_of_active_ue_dl_gbr_cell",
    "number_of_active_ue_ul_gbr_cell",
    "number_of_active_ue_dl_nongbr_cell",
    "number_of_active_ue_ul_nongbr_cell",
    "dl_gbr_pdr_cell",
    "ul_gbr_pdr_cell",
    "dl_nongbr_pdr_cell",
    "ul_nongbr_pdr_cell",
    "dl_gbr_delay_ue",
    "ul_gbr_delay_ue",
    "dl_nongbr_delay_ue",
    "ul_nongbr_delay_ue",
    "dl_gbr_pdr_ue",
    "ul_gbr_pdr_ue",
    "dl_nongbr_pdr_ue",
    "ul_nongbr_pdr_ue",
    "dl_gbr_throughput_ue",
    "ul_gbr_throughput_ue",
    "dl_nongbr_throughput_ue",
    "ul_nongbr_throughput_ue",
    "dl_gbr_data_volume_ue",
    "ul_gbr_data_volume_ue",
    "dl_nongbr_data_volume_ue",
    "ul_nongbr_data_volume_ue",
];

/// Which UEs a query is about. An absent list selects all, an empty one none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Cells.
    pub cells: Option<Vec<u64>>,
    /// Identifiers of UEs.
    pub ids: Option<BTreeSet<AssociateId>>,
    /// Temporary identities of UEs: MMEC and M-TMSI in one text, or the M-TMSI alone.
    pub temp_ue_ids: Option<BTreeSet<String>>,
}

impl Selection {
    fn takes_cell(&self, cell: u64) -> bool {
        self.cells.as_ref().is_none_or(|cells| cells.contains(&cell))
    }

    fn takes(&self, cell: u64, ue: &Ue) -> bool {
        let by_id = self.ids.as_ref().is_none_or(|ids| ue.ids.iter().any(|id| ids.contains(id)));
        let by_temp = self.temp_ue_ids.as_ref().is_none_or(|texts| {
            let whole = |id: &TempUeId| [id.mmec.as_str(), &id.mtmsi].concat();
            ue.temp_ue_id.as_ref().is_some_and(|id| texts.contains(&id.mtmsi) || texts.contains(&whole(id)))
        });
        self.takes_cell(cell) && by_id && by_temp
    }

    fn names_ues(&self) -> bool {
        self.ids.is_some() || self.temp_ue_ids.is_some()
    }
}

/// Which bearers a query is about; each condition that is present must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BearerSelection {
    /// The bearer's number.
    pub erab: Option<u64>,
    /// Its class.
    pub qci: Option<u64>,
    /// Its maximum downlink rate.
    pub mbr_dl: Option<u64>,
    /// Its maximum uplink rate.
    pub mbr_ul: Option<u64>,
    /// Its guaranteed downlink rate.
    pub gbr_dl: Option<u64>,
    /// Its guaranteed uplink rate.
    pub gbr_ul: Option<u64>,
}

impl BearerSelection {
    fn takes(&self, bearer: &Bearer) -> bool {
        let same = |wanted: Option<u64>, value: Option<u64>| wanted.is_none_or(|wanted| value == Some(wanted));
        let rates = bearer.rates;
        same(self.erab, Some(bearer.erab.into()))
            && same(self.qci, Some(bearer.qci.into()))
            && same(self.mbr_dl, rates.map(|rates| rates.mbr_dl))
            && same(self.mbr_ul, rates.map(|rates| rates.mbr_ul))
            && same(self.gbr_dl, rates.map(|rates| rates.gbr_dl))
            && same(self.gbr_ul, rates.map(|rates| rates.gbr_ul))
    }
}

/// Answers `rab_info` with the bearers that are selected; UEs without such a bearer are left out.
pub fn rab_info(
    (state, network): (&State, &Network),
    selection: &Selection,
    bearers: &BearerSelection,
    (app_instance_id, request_id): (String, String),
    now: Time,
) -> RabInfo {
    let mut cells: BTreeMap<u64, Vec<UeInfo>> = BTreeMap::new();
    for (cell, _, ue) in state.ues().filter(|(cell, _, ue)| selection.takes(*cell, ue)) {
        let erab_info: Vec<ErabInfo> =
            ue.bearers.values().filter(|bearer| bearers.takes(bearer)).map(ErabInfo::from).collect();
        if !erab_info.is_empty() {
            cells.entry(cell).or_default().push(UeInfo { associate_id: ue.ids.clone(), erab_info });
        }
    }
    let cell_user_info =
        cells.into_iter().map(|(cell, ue_info)| CellUserInfo { ecgi: network.ecgi(cell), ue_info }).collect();
    RabInfo { app_instance_id, request_id, time_stamp: now.into(), cell_user_info }
}

/// Answers `plmn_info`: each application has the one network.
pub fn plmn_info(network: &Network, app_instance_ids: Vec<String>, now: Time) -> Vec<PlmnInfo> {
    app_instance_ids
        .into_iter()
        .map(|app_instance_id| PlmnInfo { app_instance_id, plmn: vec![network.plmn.clone()], time_stamp: now.into() })
        .collect()
}

/// Answers `s1_bearer_info`, or returns `None` if no S1 bearer is selected: the standard has no empty answer.
pub fn s1_bearer_info(
    (state, network): (&State, &Network),
    selection: &Selection,
    erabs: Option<&[u64]>,
    now: Time,
) -> Option<S1BearerInfo> {
    let mut s1_ue_info = Vec::new();
    for (cell, _, ue) in state.ues().filter(|(cell, _, ue)| selection.takes(*cell, ue)) {
        let taken = |erab: u8| erabs.is_none_or(|erabs| erabs.contains(&erab.into()));
        let bearers: Vec<S1BearerDetail> =
            ue.s1.values().filter(|bearer| taken(bearer.erab)).map(S1BearerDetail::from).collect();
        if !bearers.is_empty() {
            s1_ue_info.push(S1UeInfo {
                temp_ue_id: ue.temp_ue_id.clone(),
                associate_id: ue.ids.clone(),
                ecgi: vec![network.ecgi(cell)],
                s1_bearer_info_detailed: bearers,
            });
        }
    }
    (!s1_ue_info.is_empty()).then(|| S1BearerInfo { s1_ue_info, time_stamp: now.into() })
}

/// Answers `layer2_meas` with the measurements named in `names`, or all if there is none.
///
/// A UE without identifier is left out: nobody could tell whose measurements they are.
pub fn layer2_meas(
    (state, network): (&State, &Network),
    selection: &Selection,
    names: &[&'static str],
    now: Time,
) -> L2Meas {
    let named = |values: BTreeMap<&'static str, u64>| -> BTreeMap<&'static str, u64> {
        values.into_iter().filter(|(name, _)| names.is_empty() || names.contains(name)).collect()
    };
    let mut latest = None;
    let mut cell_ue_info = Vec::new();
    let mut cells_of_ues = Vec::new();
    let mut guaranteed = BTreeMap::new();
    for (cell, _, ue) in state.ues() {
        *guaranteed.entry(cell).or_insert(false) |= ue.has_guaranteed_bearer();
        if !selection.takes(cell, ue) {
            continue;
        }
        cells_of_ues.push(cell);
        let wanted = |id: &&AssociateId| selection.ids.as_ref().is_none_or(|ids| ids.contains(id));
        let Some(&associate_id) = ue.ids.iter().find(wanted) else { continue };
        let values = named(ue_values(ue, &mut latest));
        if !values.is_empty() {
            cell_ue_info.push(CellUeInfo { associate_id, ecgi: network.ecgi(cell), values });
        }
    }
    let mut cell_info = Vec::new();
    for (cell, entry) in state.cells() {
        // A query that names UEs is about their cells only.
        let relevant = !selection.names_ues() || cells_of_ues.contains(&cell);
        if !selection.takes_cell(cell) || !relevant {
            continue;
        }
        let mixed = guaranteed.get(&cell).is_some_and(|&mixed| mixed);
        let values = named(cell_values(entry, mixed));
        if !values.is_empty() {
            latest = latest.max(Some(entry.time));
            cell_info.push(CellInfo { ecgi: network.ecgi(cell), values });
        }
    }
    // A cell that was only heard in events has no time of a report.
    let made = latest.filter(|&time| time != Time::ZERO).unwrap_or(now);
    L2Meas { cell_info, cell_ue_info, time_stamp: TimeStamp::from(made) }
}

/// The values of a cell; `mixed`: its traffic with and without guaranteed rate cannot be told apart.
fn cell_values(cell: &Cell, mixed: bool) -> BTreeMap<&'static str, u64> {
    let mut values = BTreeMap::new();
    let used = cell.prbs.filter(|&(_, all)| all > 0).map(|(used, all)| used as f64 * 100.0 / all as f64);
    if let Some(percent) = used.or(cell.dl_prb_percent).and_then(as_percent) {
        values.insert("dl_total_prb_usage_cell", percent);
        if !mixed {
            values.insert("dl_nongbr_prb_usage_cell", percent);
        }
    }
    if let Some(percent) = cell.ul_prb_percent.and_then(as_percent) {
        values.insert("ul_total_prb_usage_cell", percent);
        if !mixed {
            values.insert("ul_nongbr_prb_usage_cell", percent);
        }
    }
    if let Some(ues) = cell.active_ues
        && !mixed
    {
        values.insert("number_of_active_ue_dl_nongbr_cell", ues.into());
    }
    values
}

/// The values of a UE; `latest` becomes the time of the latest.
fn ue_values(ue: &Ue, latest: &mut Option<Time>) -> BTreeMap<&'static str, u64> {
    let mut values = BTreeMap::new();
    if ue.has_guaranteed_bearer() {
        return values;
    }
    let mut put = |name, value: Option<u64>| value.map(|value| values.insert(name, value));
    if let Some((time, layer2)) = &ue.layer2 {
        *latest = (*latest).max(Some(*time));
        let Layer2 { interval, dl_delay_ms, dl_discard_percent, dl_bits, ul_bits, .. } = layer2;
        put("dl_nongbr_delay_ue", dl_delay_ms.and_then(as_count));
        put("dl_nongbr_pdr_ue", dl_discard_percent.and_then(as_percent));
        put("dl_nongbr_throughput_ue", dl_bits.and_then(|bits| kbit_per_s(bits, *interval)));
        put("dl_nongbr_data_volume_ue", dl_bits.map(|bits| bits / 1000));
        put("ul_nongbr_throughput_ue", ul_bits.and_then(|bits| kbit_per_s(bits, *interval)));
        put("ul_nongbr_data_volume_ue", ul_bits.map(|bits| bits / 1000));
    }
    if let Some(report) = &ue.report {
        *latest = (*latest).max(Some(report.time));
        put("dl_nongbr_throughput_ue", kbit_per_s(report.acked_bits, report.interval));
        put("dl_nongbr_data_volume_ue", Some(report.acked_bits / 1000));
    }
    values
}

/// Rounds a share to whole percent.
fn as_percent(value: f64) -> Option<u64> {
    as_count(value).map(|percent| percent.min(100))
}

fn as_count(value: f64) -> Option<u64> {
    (value.is_finite() && value >= 0.0).then_some((value + 0.5) as u64)
}

fn kbit_per_s(bits: u64, interval: Span) -> Option<u64> {
    let rate = u128::from(bits) * 1_000_000 / u128::from(interval.as_nanos()).max(1);
    (interval != Span::from_nanos(0)).then(|| u64::try_from(rate).unwrap_or(u64::MAX))
}
