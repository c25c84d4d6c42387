//! What the modems of a MONROE node tell, in messages `MONROE.META.DEVICE.MODEM` as JSON.
//!
//! Read first: the README of MONROE-PROJECT/Experiments, and `metadata_writer_zeromq.c` in MONROE-PROJECT/data-exporter. Unknown
//! values are left out, 0, -1 or, of RSSI, -127. A message after a change tells little more than that change; all values come every
//! 30 s.

use std::collections::BTreeMap;

use observe::modem::{CellSample, Technology, rssi_dbm};
use rnis::event::Signal;
use rnis::identity::is_cell_identity;
use serde::Deserialize;
use units::{Span, Time};

/// Interval between messages with all values.
const UPDATES: Span = Span::from_secs(30);
/// Time after which a modem that tells nothing may be anywhere.
const FORGOTTEN: Span = Span::from_secs(60);
/// The most modems of a node.
const MOST_MODEMS: usize = 16;

/// What is read of a message. Identities are not.
#[derive(Clone, Debug, Default, Deserialize)]
struct Fields {
    #[serde(rename = "InternalInterface")]
    internal: Option<String>,
    #[serde(rename = "InterfaceName")]
    interface: Option<String>,
    #[serde(rename = "DeviceMode")]
    mode: Option<i64>,
    #[serde(rename = "CID")]
    cell: Option<i64>,
    #[serde(rename = "PCI")]
    pci: Option<i64>,
    #[serde(rename = "Band")]
    band: Option<i64>,
    #[serde(rename = "Frequency")]
    frequency: Option<f64>,
    #[serde(rename = "RSRP")]
    rsrp: Option<f64>,
    #[serde(rename = "RSRQ")]
    rsrq: Option<f64>,
    #[serde(rename = "RSSI")]
    rssi: Option<f64>,
}

/// What the modems of a node have told.
#[derive(Debug, Default)]
pub(crate) struct Modems {
    latest: BTreeMap<String, CellSample>,
}

impl Modems {
    /// Takes a message without its topic, and returns what is known of its modem then; `None` if it is about no modem. Times must not
    /// go back.
    pub(crate) fn take(&mut self, json: &str, now: Time) -> Option<CellSample> {
        let fields: Fields = serde_json::from_str(json).ok()?;
        let name = fields.internal.as_ref().or(fields.interface.as_ref())?;
        let modem: String = name.chars().filter(char::is_ascii_graphic).take(15).collect();
        let known = self.latest.remove(&modem).filter(|known| now.saturating_since(known.at) < FORGOTTEN);
        let mut sample = known.unwrap_or_else(|| CellSample { modem: modem.clone(), ..CellSample::default() });
        (sample.at, sample.source, sample.lag) = (now, "monroe", Some(UPDATES));
        fields.change(&mut sample);
        if self.latest.len() < MOST_MODEMS {
            self.latest.insert(modem, sample.clone());
        }
        Some(sample)
    }
}

impl Fields {
    fn change(&self, sample: &mut CellSample) {
        let small = |value: Option<i64>| value.filter(|&value| value > 0).and_then(|value| u32::try_from(value).ok());
        if let Some(mode) = self.mode {
            // In CONNECTIVITY, LTE is 6; here it is 5.
            let technology = match mode {
                3 => Some(Technology::Gsm),
                4 => Some(Technology::Umts),
                5 => Some(Technology::Lte),
                _ => None,
            };
            if technology != sample.technology {
                let CellSample { at, source, lag, .. } = *sample;
                let modem = std::mem::take(&mut sample.modem);
                *sample = CellSample { at, source, lag, modem, technology, ..CellSample::default() };
            }
        }
        if let Some(cell) = small(self.cell).filter(|&cell| is_cell_identity(cell.into())) {
            if sample.cell.is_some_and(|before| before != u64::from(cell)) {
                (sample.pci, sample.band, sample.frequency_mhz) = (None, None, None);
            }
            sample.cell = Some(cell.into());
        }
        let keep = |known: &mut Option<u32>, told: Option<u32>| *known = told.or(*known);
        keep(&mut sample.pci, small(self.pci));
        keep(&mut sample.band, small(self.band));
        let positive = self.frequency.filter(|mhz| (1.0..100_000.0).contains(mhz));
        sample.frequency_mhz = positive.or(sample.frequency_mhz);
        let told = Signal::of_modem(self.rsrp, self.rsrq, None);
        sample.rsrp_dbm = told.rsrp_dbm.or(sample.rsrp_dbm);
        sample.rsrq_db = told.rsrq_db.or(sample.rsrq_db);
        sample.rssi_dbm = self.rssi.filter(|&told| told != -1.0).and_then(rssi_dbm).or(sample.rssi_dbm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPDATE: &str = r#"{"SequenceNumber":7,"Timestamp":1512345678.25,
        "DataVersion":3,"DataId":"MONROE.META.DEVICE.MODEM","CID":3262520,"DeviceMode":5,"DeviceSubmode":0,"DeviceState":3,
        "ICCID":"89480610500302602379","IMSI":"260060080260237","IMEI":"866948011255141","InterfaceName":"usb0",
        "InternalInterface":"op0","Operator":"Play","LAC":32,"RSRP":-96,"Frequency":1800,"RSRQ":-11,"Band":3,"PCI":13,
        "RSSI":-69,"NWMCCMNC":26006}"#;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn an_update_tells_all_and_a_change_the_rest() {
        let mut modems = Modems::default();
        let whole = modems.take(UPDATE, at(1)).expect("a modem");
        let expected = CellSample {
            at: at(1),
            source: "monroe",
            lag: Some(UPDATES),
            modem: "op0".into(),
            technology: Some(Technology::Lte),
            cell: Some(3_262_520),
            pci: Some(13),
            band: Some(3),
            frequency_mhz: Some(1800.0),
            rsrp_dbm: Some(-96.0),
            rsrq_db: Some(-11.0),
            rssi_dbm: Some(-69.0),
            ..CellSample::default()
        };
        assert_eq!(whole, expected);
        let kept = format!("{whole:?}");
        for identity in ["89480610500302602379", "260060080260237", "866948011255141", "Play"] {
            assert!(!kept.contains(identity), "{kept}");
        }
        let mut tell = |json: &str, seconds| modems.take(json, at(seconds));
        let weaker =
            tell(r#"{"InternalInterface":"op0","RSRP":-101,"RSSI":-127,"RSRQ":0,"PCI":-1}"#, 2).expect("a modem");
        assert_eq!(weaker, CellSample { at: at(2), rsrp_dbm: Some(-101.0), ..expected.clone() });
        let moved = tell(r#"{"InternalInterface":"op0","CID":3262521,"PCI":14}"#, 3).expect("a modem");
        assert_eq!((moved.cell, moved.pci, moved.band), (Some(3_262_521), Some(14), None));
        // 6 is LTE elsewhere in MONROE's metadata, and nothing here; without service nothing is known.
        let gone = tell(r#"{"InternalInterface":"op0","DeviceMode":6}"#, 4).expect("a modem");
        assert_eq!((gone.technology, gone.cell, gone.rsrp_dbm), (None, None, None));
        assert_eq!(
            tell(r#"{"InternalInterface":"op0","RSRP":-80}"#, 200).map(|sample| sample.lag),
            Some(Some(UPDATES))
        );
        assert_eq!(tell(r#"{"RSRP":-80}"#, 200), None);
    }

    #[test]
    fn any_message_is_a_sample_or_nothing() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let mut modems = Modems::default();
            modems.take(&String::from_utf8_lossy(bytes), at(1));
        });
        // Numbers at the ends of their ranges.
        for number in ["1e400", "-9223372036854775808", "9223372036854775807", "null", "0", "-1", "4294967296"] {
            let json = format!(r#"{{"InterfaceName":"a","CID":{number},"RSRP":{number},"Frequency":{number}}}"#);
            let sample = Modems::default().take(&json, at(1));
            assert!(sample.is_none_or(|one| one.cell.is_none() && one.rsrp_dbm.is_none()), "{number}");
        }
    }
}
