//! The operator's table of which UE has which address, for cells that do not know it.

use crate::error::FeedError;
use crate::identity::AssociateId;
use std::collections::BTreeMap;

/// The most entries of a table.
const MOST_ENTRIES: usize = 65_536;
/// The most identifiers of one UE.
pub(crate) const MOST_IDS: usize = 8;

/// Identifiers of UEs by cell and RNTI.
///
/// The text has one UE a line: `RNTI ADDRESS...` or `CELL/RNTI ADDRESS...`, numbers in decimal or as `0x1a2b`. An address may
/// be `nat=ADDRESS` (behind network address translation) or `teid=NUMBER` (a GTP tunnel). `#` begins a comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressMap {
    entries: BTreeMap<(Option<u64>, u16), Vec<AssociateId>>,
}

impl AddressMap {
    /// Parses a table.
    pub fn parse(text: &str) -> Result<AddressMap, FeedError> {
        let mut map = AddressMap::default();
        for (index, line) in text.lines().enumerate() {
            let error = |what: String| FeedError::at(index + 1, what);
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(ue) = words.next() else { continue };
            let (cell, rnti) = match ue.split_once('/') {
                Some((cell, rnti)) => (Some(cell), rnti),
                None => (None, ue),
            };
            let cell = match cell {
                Some(text) => Some(number(text).ok_or_else(|| error(format!("invalid cell `{text}`")))?),
                None => None,
            };
            let rnti = number(rnti).and_then(|rnti| u16::try_from(rnti).ok());
            let rnti = rnti.ok_or_else(|| error(format!("invalid RNTI in `{ue}`")))?;
            let mut ids = Vec::new();
            for word in words {
                let id = match word.split_once('=') {
                    Some(("nat", address)) => AssociateId::parse(3, address).ok(),
                    Some(("teid", teid)) => AssociateId::parse(4, teid).ok(),
                    _ => word.parse().ok().map(|address: core::net::IpAddr| address.into()),
                };
                ids.push(id.ok_or_else(|| error(format!("invalid address `{word}`")))?);
            }
            if ids.is_empty() || ids.len() > MOST_IDS {
                return Err(error(format!("a UE has 1 to {MOST_IDS} addresses")));
            }
            if map.entries.len() == MOST_ENTRIES {
                return Err(error(format!("more than {MOST_ENTRIES} UEs")));
            }
            if map.entries.insert((cell, rnti), ids).is_some() {
                return Err(error(format!("UE `{ue}` occurs twice")));
            }
        }
        Ok(map)
    }

    /// Returns the identifiers of a UE; an entry with its cell takes precedence.
    pub fn get(&self, cell: u64, rnti: u16) -> &[AssociateId] {
        let entry = self.entries.get(&(Some(cell), rnti)).or_else(|| self.entries.get(&(None, rnti)));
        entry.map_or(&[], |ids| ids)
    }
}

/// Parses a number in decimal, or in hexadecimal after `0x`.
pub(crate) fn number(text: &str) -> Option<u64> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    if digits.starts_with('+') { None } else { u64::from_str_radix(digits, radix).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_with_the_cell_takes_precedence() {
        let text = "# UEs\n0x4601 10.45.0.2 fd00::2\n7/0x4601 10.45.0.3 nat=192.0.2.1 teid=0x10 # in cell 7\n\n";
        let map = AddressMap::parse(text).expect("it is valid");
        assert_eq!(map.get(1, 0x4601)[0], AssociateId::Ipv4([10, 45, 0, 2].into()));
        assert_eq!(map.get(7, 0x4601)[2], AssociateId::GtpTeid(16));
        assert_eq!(map.get(7, 1), &[]);
    }

    #[test]
    fn faults_name_their_line() {
        for (text, message) in [
            ("1 10.0.0.1\nx 10.0.0.1", "line 2: invalid RNTI in `x`"),
            ("70000 10.0.0.1", "line 1: invalid RNTI in `70000`"),
            ("1", "line 1: a UE has 1 to 8 addresses"),
            ("1 10.0.0.1.2", "line 1: invalid address `10.0.0.1.2`"),
            ("1 10.0.0.1\n1 10.0.0.2", "line 2: UE `1` occurs twice"),
            ("z/1 10.0.0.1", "line 1: invalid cell `z`"),
        ] {
            assert_eq!(AddressMap::parse(text).expect_err(text).to_string(), message);
        }
    }
}
