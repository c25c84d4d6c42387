//! Identities: networks, cells and UEs, as MEC 012 writes them.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use serde::{Deserialize, Serialize};

/// The longest text that an identity may have; longer ones are rejected.
const LONGEST_TEXT: usize = 64;

/// The most that the fields hold in which modems, Android and tools keep identities of cells: 16 bits in GSM, 28 in LTE and UMTS, 36 in
/// NR, and integers of 32 and 64 bits with a sign and without.
const FIELDS: [u64; 7] =
    [0xffff, (1 << 28) - 1, i32::MAX as u64, u32::MAX as u64, (1 << 36) - 1, i64::MAX as u64, u64::MAX];
/// The highest physical cell identity (TS 38.211, 7.4.2.1); that of LTE is 503 (TS 36.211, 6.11).
pub const MAX_PHYSICAL: u64 = 1_007;

/// Whether a number can be the identity of a cell in its network. Modems and tools tell an unknown one as 0 or as the most that a
/// field holds: `CellInfo.UNAVAILABLE` of Android, all ones of `ModemManager`.
pub fn is_cell_identity(identity: u64) -> bool {
    identity > 0 && !FIELDS.contains(&identity)
}

/// Whether a number can be a physical cell identity, of which 0 is one.
pub fn is_physical_identity(identity: u64) -> bool {
    identity <= MAX_PHYSICAL
}

/// A public land mobile network (MEC 012 6.5.5).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Plmn {
    /// Mobile country code: three digits.
    pub mcc: String,
    /// Mobile network code: two or three digits.
    pub mnc: String,
}

impl Plmn {
    /// Parses `MCC-MNC`, such as `001-01`.
    pub fn parse(text: &str) -> Option<Plmn> {
        let (mcc, mnc) = text.split_once('-')?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let valid = mcc.len() == 3 && (2..=3).contains(&mnc.len()) && digits(mcc) && digits(mnc);
        valid.then(|| Plmn { mcc: mcc.to_owned(), mnc: mnc.to_owned() })
    }
}

/// The radio access technology of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rat {
    /// LTE: 28-bit cell identities.
    #[default]
    Lte,
    /// NR: 36-bit cell identities.
    Nr,
}

/// The global identity of an LTE cell (MEC 012 6.5.3).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ecgi {
    /// The network.
    pub plmn: Plmn,
    /// The cell identity in hexadecimal digits.
    #[serde(rename = "cellId")]
    pub cell_id: String,
}

/// The global identity of an NR cell (MEC 012 6.5.7).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Nrcgi {
    /// The network.
    pub plmn: Plmn,
    /// The cell identity in hexadecimal digits.
    #[serde(rename = "nrcellId")]
    pub nr_cell_id: String,
}

/// The network that the cells belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its identity.
    pub plmn: Plmn,
    /// The technology of its cells.
    pub rat: Rat,
}

impl Default for Network {
    /// The test network 001-01 with LTE cells.
    fn default() -> Network {
        Network { plmn: Plmn { mcc: "001".into(), mnc: "01".into() }, rat: Rat::Lte }
    }
}

impl Network {
    /// Returns the text of a cell identity: 7 hexadecimal digits (28 bits) for LTE, 9 (36 bits) for NR.
    pub fn cell_text(&self, cell: u64) -> String {
        match self.rat {
            Rat::Lte => format!("{cell:07X}"),
            Rat::Nr => format!("{cell:09X}"),
        }
    }

    /// Returns the global identity of `cell`, in the form that MEC 012 uses for cells of either technology.
    pub fn ecgi(&self, cell: u64) -> Ecgi {
        Ecgi { plmn: self.plmn.clone(), cell_id: self.cell_text(cell) }
    }

    /// Returns the global identity of `cell` as an NR cell.
    pub fn nrcgi(&self, cell: u64) -> Nrcgi {
        Nrcgi { plmn: self.plmn.clone(), nr_cell_id: self.cell_text(cell) }
    }

    /// Returns the cell of this network with an identity, or `None` if it belongs to another network.
    pub fn cell(&self, plmn: &Plmn, text: &str) -> Option<u64> {
        if *plmn == self.plmn { parse_cell(text) } else { None }
    }
}

/// Parses a cell identity in hexadecimal digits.
pub fn parse_cell(text: &str) -> Option<u64> {
    let valid = (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if valid { u64::from_str_radix(text, 16).ok() } else { None }
}

/// An identifier by which a consumer knows a UE or a flow of it (MEC 012 6.5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "AssociateText", into = "AssociateText")]
pub enum AssociateId {
    /// The UE's IPv4 address.
    Ipv4(Ipv4Addr),
    /// The UE's IPv6 address.
    Ipv6(Ipv6Addr),
    /// The address that network address translation gives the UE.
    Nated(IpAddr),
    /// The tunnel endpoint identifier of a GTP tunnel of the UE.
    GtpTeid(u32),
}

impl From<IpAddr> for AssociateId {
    fn from(address: IpAddr) -> AssociateId {
        match address {
            IpAddr::V4(address) => AssociateId::Ipv4(address),
            IpAddr::V6(address) => AssociateId::Ipv6(address),
        }
    }
}

/// An [`AssociateId`] as it is sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct AssociateText {
    r#type: u8,
    value: String,
}

impl AssociateId {
    /// Parses the identifier `value` of a type (1 to 4).
    pub fn parse(kind: u8, value: &str) -> Result<AssociateId, InvalidIdentity> {
        let invalid = |what| InvalidIdentity { what, value: value.chars().take(LONGEST_TEXT).collect() };
        match kind {
            1 => value.parse().map(AssociateId::Ipv4).map_err(|_| invalid("IPv4 address")),
            2 => value.parse().map(AssociateId::Ipv6).map_err(|_| invalid("IPv6 address")),
            3 => value.parse().map(AssociateId::Nated).map_err(|_| invalid("NATed IP address")),
            4 => parse_teid(value).map(AssociateId::GtpTeid).ok_or_else(|| invalid("GTP TEID")),
            _ => Err(invalid("type of associateId (1 to 4) for")),
        }
    }
}

/// Parses a TEID in decimal digits, or in hexadecimal digits after `0x`.
pub fn parse_teid(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => u32::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

impl TryFrom<AssociateText> for AssociateId {
    type Error = InvalidIdentity;

    fn try_from(text: AssociateText) -> Result<AssociateId, InvalidIdentity> {
        AssociateId::parse(text.r#type, &text.value)
    }
}

impl From<AssociateId> for AssociateText {
    fn from(id: AssociateId) -> AssociateText {
        let (r#type, value) = match id {
            AssociateId::Ipv4(address) => (1, address.to_string()),
            AssociateId::Ipv6(address) => (2, address.to_string()),
            AssociateId::Nated(address) => (3, address.to_string()),
            AssociateId::GtpTeid(teid) => (4, teid.to_string()),
        };
        AssociateText { r#type, value }
    }
}

/// The temporary identity of a UE in its MME (36.413).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TempUeId {
    /// The code of the MME.
    pub mmec: String,
    /// The temporary mobile subscriber identity.
    pub mtmsi: String,
}

/// An identity that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidIdentity {
    what: &'static str,
    value: String,
}

impl fmt::Display for InvalidIdentity {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "invalid {} `{}`", self.what, self.value.escape_debug())
    }
}

impl core::error::Error for InvalidIdentity {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_identities_have_the_width_of_their_technology() {
        let lte = Network::default();
        assert_eq!(lte.ecgi(0x1A).cell_id, "000001A");
        let nr = Network { rat: Rat::Nr, ..Network::default() };
        assert_eq!(nr.nrcgi(0x1A).nr_cell_id, "00000001A");
        assert_eq!(lte.cell(&lte.plmn, "000001a"), Some(26));
        assert_eq!(lte.cell(&Plmn { mcc: "262".into(), mnc: "01".into() }, "000001A"), None);
        assert_eq!((parse_cell("+1"), parse_cell(""), parse_cell("11112222333344445")), (None, None, None));
    }

    #[test]
    fn associate_ids_survive_json_and_invalid_ones_are_errors() {
        for text in [
            r#"{"type":1,"value":"10.45.0.2"}"#,
            r#"{"type":2,"value":"2001:db8::1"}"#,
            r#"{"type":3,"value":"192.0.2.1"}"#,
            r#"{"type":4,"value":"123"}"#,
        ] {
            let id: AssociateId = serde_json::from_str(text).expect("it is valid");
            assert_eq!(serde_json::to_string(&id).expect("it can be written"), text);
        }
        for text in [r#"{"type":1,"value":"2001:db8::1"}"#, r#"{"type":0,"value":"1"}"#, r#"{"type":4,"value":"-1"}"#] {
            assert!(serde_json::from_str::<AssociateId>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn all_ones_of_a_field_are_no_identity_of_a_cell() {
        for unknown in [0, 65_535, 268_435_455, 2_147_483_647, 4_294_967_295, 68_719_476_735, u64::MAX / 2, u64::MAX] {
            assert!(!is_cell_identity(unknown), "{unknown}");
        }
        assert!([1, 255, 65_536, 11_016_972, 68_719_476_734].into_iter().all(is_cell_identity));
        assert_eq!([0, 1_007, 1_008, 65_535].map(is_physical_identity), [true, true, false, false]);
    }

    #[test]
    fn a_plmn_is_digits() {
        assert_eq!(Plmn::parse("001-01"), Some(Plmn { mcc: "001".into(), mnc: "01".into() }));
        assert_eq!((Plmn::parse("1-01"), Plmn::parse("00a-01"), Plmn::parse("00101")), (None, None, None));
    }
}
