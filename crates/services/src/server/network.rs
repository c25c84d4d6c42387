//! Networks that an operator names.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Addresses with the same leading bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(IpNet);

impl FromStr for Network {
    type Err = String;

    /// Parses an address, or an address and a number of bits, such as `10.0.0.0/8`.
    fn from_str(text: &str) -> Result<Network, String> {
        let address = || text.parse().map(|address: IpAddr| IpNet::from(address)).ok();
        let network = text.parse().ok().or_else(address);
        let network: IpNet = network
            .ok_or_else(|| format!("invalid network `{text}`: expected an address, or a network such as 10.0.0.0/8"))?;
        Ok(Network(network.trunc()))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(to)
    }
}

impl Network {
    /// A network of this crate's.
    pub(crate) const fn of(address: IpAddr, bits: u8) -> Network {
        Network(match address {
            IpAddr::V4(address) => IpNet::V4(Ipv4Net::new_assert(address, bits)),
            IpAddr::V6(address) => IpNet::V6(Ipv6Net::new_assert(address, bits)),
        })
    }

    /// Returns whether an address is in the network. An IPv4 address in IPv6 form counts as what it is.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    /// Whether its addresses are those of IPv6.
    pub(crate) fn is_ipv6(&self) -> bool {
        matches!(self.0, IpNet::V6(_))
    }

    /// Returns whether all addresses of the network are in `other`.
    pub(crate) fn is_in(&self, other: &Network) -> bool {
        other.0.contains(&self.0)
    }
}

/// Returns the address that stands for a host: its IPv4 address, or the first one of its IPv6 prefix of `bits` bits.
pub(crate) fn host(address: IpAddr, bits: u8) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Net::new(v6, bits.min(128)).map_or(v6, |net| net.network()).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_leading_bits() {
        let contains = |network: &str, address: &str| {
            network.parse::<Network>().expect("it is one").contains(address.parse().expect("an address"))
        };
        for (network, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("0.0.0.0/0", "11.0.0.1", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("2001:db8::/32", "2001:db8:1::", true),
            ("::/0", "2001:db8:1::", true),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
        ] {
            assert_eq!(contains(network, address), expected, "{network} {address}");
        }
        for text in ["10.0.0.0/33", "10.0.0.0/x", "10.0.0.0/+8", "", "a b", "any", "self", "host.example", "::/129"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
        let is_in = |one: &str, other: &str| one.parse::<Network>().expect("one").is_in(&other.parse().expect("one"));
        assert!(is_in("10.1.0.0/16", "10.0.0.0/8") && !is_in("0.0.0.0/0", "10.0.0.0/8"));
    }
}
