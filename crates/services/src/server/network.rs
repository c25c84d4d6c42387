//! Networks that an operator names.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Addresses with the same leading bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl FromStr for Network {
    type Err = String;

    /// Parses an address, or an address and a number of bits, such as `10.0.0.0/8`.
    fn from_str(text: &str) -> Result<Network, String> {
        let invalid = || format!("invalid network `{text}`: expected an address, or a network such as 10.0.0.0/8");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let is_number = |bits: &str| bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits = match bits {
            Some(bits) => bits.parse().ok().filter(|&number| is_number(bits) && number <= all).ok_or_else(invalid)?,
            None => all,
        };
        Ok(Network { address, bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}/{}", self.address, self.bits)
    }
}

impl Network {
    /// A network of this crate's.
    pub(crate) const fn of(address: IpAddr, bits: u8) -> Network {
        Network { address, bits }
    }

    /// Returns whether an address is in the network. An IPv4 address in IPv6 form counts as what it is.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (address.to_canonical(), self.address) {
            (IpAddr::V4(address), IpAddr::V4(network)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                address.to_bits() & mask == network.to_bits() & mask
            }
            (IpAddr::V6(address), IpAddr::V6(network)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                address.to_bits() & mask == network.to_bits() & mask
            }
            _ => false,
        }
    }

    /// Returns whether all addresses of the network are in `other`.
    pub(crate) fn is_in(&self, other: &Network) -> bool {
        self.bits >= other.bits && other.contains(self.address)
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
