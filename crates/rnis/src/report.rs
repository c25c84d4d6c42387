//! The report of one UE in one cell over one interval.

use core::net::IpAddr;
use serde::{Deserialize, Serialize};
use units::{Span, Time};

/// Identifies a UE.
///
/// A cell knows its UEs by RNTI, which is unique in the cell and changes at a handover. Consumers know them by address; a
/// cell that is told the address includes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UeId {
    /// The temporary identifier in its cell (36.321 7.1, 38.321 7.1).
    pub rnti: u16,
    /// Its address, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Its address of the other IP version, if it has one and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_address: Option<IpAddr>,
}

impl UeId {
    /// A UE without known addresses.
    pub fn new(rnti: u16) -> UeId {
        UeId { rnti, address: None, second_address: None }
    }

    /// The same UE at this address.
    pub fn at(self, address: impl Into<IpAddr>) -> UeId {
        UeId { address: Some(address.into()), ..self }
    }
}

/// What a cell did for a UE in the downlink during an interval.
///
/// Resource blocks are counted in block-slots: one block of the carrier in one slot. A field that the cell does not report is
/// `None`. In JSON, times are microseconds since an epoch on which both sides agree; for a live cell the Unix epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RadioReport {
    /// The end of the interval.
    #[serde(rename = "time_us", with = "micros_time")]
    pub time: Time,
    /// The length of the interval.
    #[serde(rename = "interval_us", with = "micros_span")]
    pub interval: Span,
    /// The cell: its identity in the network.
    pub cell: u64,
    /// The UE.
    #[serde(flatten)]
    pub ue: UeId,
    /// Resource blocks of the carrier.
    pub n_prb: u16,
    /// Downlink slots in the interval, those that the duplexing pattern permits.
    pub slots: u32,
    /// Block-slots that all UEs together used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_prbs: Option<u64>,
    /// UEs that had data in the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_ues: Option<u16>,
    /// Block-slots that this UE used, retransmissions included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prbs: Option<u64>,
    /// Bits of transport blocks that the UE decoded in the interval.
    pub acked_bits: u64,
    /// Transport blocks sent for the first time, and those of them that were not decoded.
    pub blocks: u32,
    /// See `blocks`.
    pub failed: u32,
    /// The latest modulation and coding scheme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcs: Option<u8>,
    /// The latest rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layers: Option<u8>,
    /// The latest channel quality indicator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cqi: Option<u8>,
    /// Bits that one block-slot would carry now, at the latest MCS and rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits_per_prb: Option<f64>,
    /// Bytes that wait in PDCP and RLC for their first transmission at the end of the interval. What RLC keeps until it is
    /// acknowledged does not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_bytes: Option<u64>,
}

impl RadioReport {
    /// Returns how old the report is at `now`; zero if its clock is ahead.
    pub fn age(&self, now: Time) -> Span {
        now.saturating_since(self.time)
    }

    /// Returns the block-slots of the carrier in the interval.
    pub fn all_prbs(&self) -> u64 {
        u64::from(self.n_prb) * u64::from(self.slots)
    }
}

pub(crate) mod micros_time {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use units::Time;

    pub(crate) fn serialize<S: Serializer>(time: &Time, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(time.as_nanos() / 1000)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
        let micros = u64::deserialize(from)?;
        let nanos = micros.checked_mul(1000).ok_or_else(|| Error::custom("the time is beyond the year 2554"))?;
        Ok(Time::from_nanos(nanos))
    }
}

pub(crate) mod micros_span {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use units::Span;

    pub(crate) fn serialize<S: Serializer>(span: &Span, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(span.as_micros())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Span, D::Error> {
        let micros = u64::deserialize(from)?;
        if micros > 3_600_000_000 {
            return Err(Error::custom("an interval may be an hour long at most"));
        }
        Ok(Span::from_micros(micros))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> RadioReport {
        RadioReport {
            time: Time::from_nanos(1_700_000_000_123_456_000),
            interval: Span::from_millis(1),
            cell: 7,
            ue: UeId::new(61).at([10, 45, 0, 2]),
            n_prb: 132,
            slots: 8,
            cell_prbs: Some(1056),
            active_ues: Some(2),
            prbs: Some(528),
            acked_bits: 426_304,
            blocks: 4,
            failed: 0,
            mcs: Some(28),
            layers: Some(1),
            cqi: Some(15),
            bits_per_prb: Some(807.4),
            queue_bytes: Some(150_000),
        }
    }

    #[test]
    fn a_report_survives_json() {
        let text = serde_json::to_string(&report()).expect("it can be written");
        assert_eq!(serde_json::from_str::<RadioReport>(&text).expect("it can be read"), report());
        assert!(text.contains("\"time_us\":1700000000123456"), "{text}");
    }

    #[test]
    fn unknown_fields_of_a_cell_may_be_left_out() {
        let text = r#"{"time_us":5000,"interval_us":1000,"cell":1,"rnti":61,"n_prb":25,"slots":1,"acked_bits":0,"blocks":0,"failed":0}"#;
        let report: RadioReport = serde_json::from_str(text).expect("it can be read");
        assert_eq!((report.queue_bytes, report.ue.address, report.all_prbs()), (None, None, 25));
        assert_eq!(report.age(Time::from_nanos(9_000_000)), Span::from_millis(4));
        assert_eq!(report.age(Time::ZERO), Span::ZERO);
    }

    #[test]
    fn impossible_times_are_errors() {
        let text = serde_json::to_string(&report()).expect("it can be written");
        for (field, value) in
            [("1700000000123456", "18446744073709551615"), ("\"interval_us\":1000", "\"interval_us\":3600000001")]
        {
            assert!(serde_json::from_str::<RadioReport>(&text.replace(field, value)).is_err(), "{field}");
        }
    }
}
