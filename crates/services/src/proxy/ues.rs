//! Which addresses belong to the same UE.
//!
//! A UE has an IPv4 address, an IPv6 prefix, or both, and may use any address in its prefix (TS 23.401, 5.3.1.2.2). The radio
//! carries all of them together, so their flows share what reports say of any.

use std::collections::BTreeMap;
use std::net::IpAddr;

use rnis::UeId;
use rnis::state::KEEP;
use units::{Span, Time};

use crate::server::host;

/// UEs with two addresses that are remembered. Those beyond count as two UEs.
const MOST: usize = 65_536;
/// The interval between checks. A UE is forgotten once no report has named both of its addresses for [`KEEP`].
const FORGET: Span = Span::from_secs(10);

/// Names UEs by one of their addresses, which for IPv6 is the first of the UE's prefix.
#[derive(Debug)]
pub(super) struct Ues {
    /// The number of bits of an IPv6 address that all addresses of a UE share.
    prefix_len: u8,
    /// By its second address: the name of a UE, and when a report had both last.
    seconds: BTreeMap<IpAddr, (IpAddr, Time)>,
    /// When stale ones were forgotten last.
    forgotten: Time,
}

impl Ues {
    /// UEs whose IPv6 prefixes have this length in bits, at most 128.
    pub(super) fn new(prefix_len: u8) -> Ues {
        Ues { prefix_len, seconds: BTreeMap::new(), forgotten: Time::ZERO }
    }

    /// Returns the name of the UE that has this address.
    pub(super) fn name(&self, address: IpAddr) -> IpAddr {
        let own = self.own_name(address);
        self.seconds.get(&own).map_or(own, |&(name, _)| name)
    }

    /// Takes note of the addresses of a UE in a report that came at `now`. Returns its name, and the former one if its flows have
    /// another by now.
    pub(super) fn learn(&mut self, ue: &UeId, now: Time) -> Option<(IpAddr, Option<IpAddr>)> {
        if now.saturating_since(self.forgotten) >= FORGET {
            self.forgotten = now;
            self.seconds.retain(|_, (_, last)| now.saturating_since(*last) < KEEP);
        }
        let name = self.own_name(ue.address?);
        // A second address that has become a first one is nobody's second any more.
        let separated = self.seconds.remove(&name).map(|(name, _)| name);
        let second = ue.second_address.map(|second| self.own_name(second)).filter(|&second| second != name);
        let joined = second.filter(|second| {
            let has_place = self.seconds.len() < MOST || self.seconds.contains_key(second);
            has_place && self.seconds.insert(*second, (name, now)).is_none_or(|(before, _)| before != name)
        });
        Some((name, joined.or(separated)))
    }

    fn own_name(&self, address: IpAddr) -> IpAddr {
        host(address, self.prefix_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    const NOW: Time = Time::from_nanos(100_000_000_000);

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn ue(first: &str, second: Option<&str>) -> UeId {
        UeId { second_address: second.map(ip), ..UeId::new(61).at(ip(first)) }
    }

    #[test]
    fn addresses_of_a_prefix_are_one_ue() {
        let ues = Ues::new(64);
        assert_eq!(ues.name(ip("2001:db8:1:2:a:b:c:d")), ip("2001:db8:1:2::"));
        assert_eq!(ues.name(ip("2001:db8:1:2::1")), ip("2001:db8:1:2::"));
        assert_ne!(ues.name(ip("2001:db8:1:3::1")), ip("2001:db8:1:2::"));
        assert_eq!(ues.name(ip("::ffff:10.0.0.1")), ip("10.0.0.1"));
        assert_eq!(Ues::new(128).name(ip("fd00::1:2")), ip("fd00::1:2"));
        assert_eq!(Ues::new(0).name(ip("fd00::1:2")), ip("::"));
    }

    #[test]
    fn a_second_address_is_the_same_ue_once_a_report_has_both() {
        let mut ues = Ues::new(64);
        let (v4, v6) = (ip("10.0.1.1"), ip("fd00:0:1:1::"));
        assert_eq!(ues.name(ip("fd00:0:1:1::1")), v6);
        assert_eq!(ues.learn(&ue("10.0.1.1", Some("fd00:0:1:1::1")), NOW), Some((v4, Some(v6))));
        assert_eq!(ues.name(ip("fd00:0:1:1::99")), v4);
        // The next report says nothing new.
        assert_eq!(ues.learn(&ue("10.0.1.1", Some("fd00:0:1:1::1")), NOW), Some((v4, None)));
        assert_eq!(ues.learn(&ue("10.0.1.1", None), NOW), Some((v4, None)));
        // The prefix is given to another UE.
        assert_eq!(ues.learn(&ue("10.0.1.2", Some("fd00:0:1:1::1")), NOW), Some((ip("10.0.1.2"), Some(v6))));
        // It is reported by itself.
        assert_eq!(ues.learn(&ue("fd00:0:1:1::1", None), NOW), Some((v6, Some(ip("10.0.1.2")))));
        assert_eq!(ues.name(v6), v6);
        assert_eq!(ues.learn(&UeId::new(7), NOW), None);
    }

    #[test]
    fn the_number_of_second_addresses_is_bounded() {
        let mut ues = Ues::new(64);
        for n in 0..MOST as u128 + 10 {
            let second: IpAddr = Ipv6Addr::from_bits((0xfd00 << 112) | (n << 64)).into();
            ues.learn(&UeId { second_address: Some(second), ..UeId::new(1).at([10, 0, 0, 1]) }, NOW);
        }
        assert_eq!(ues.seconds.len(), MOST);
    }

    #[test]
    fn second_addresses_that_no_report_names_are_forgotten() {
        let mut ues = Ues::new(64);
        let both = |n: u8| ue(&format!("10.0.1.{n}"), Some(&format!("fd00:0:1:{n}::1")));
        ues.learn(&both(1), NOW);
        ues.learn(&both(2), NOW);
        ues.learn(&both(2), NOW + Span::from_secs(50));
        ues.learn(&ue("10.0.1.1", None), NOW + KEEP);
        assert_eq!(ues.name(ip("fd00:0:1:1::1")), ip("fd00:0:1:1::"));
        assert_eq!(ues.name(ip("fd00:0:1:2::1")), ip("10.0.1.2"));
    }
}
