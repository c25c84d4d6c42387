//! Who counts as one client.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What limits count: an IPv4 address or an IPv6 /64, which one host can have all addresses of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Site {
    V4(u32),
    V6(u64),
}

impl Site {
    pub(crate) fn of(address: IpAddr) -> Site {
        match address.to_canonical() {
            IpAddr::V4(address) => Site::V4(address.to_bits()),
            IpAddr::V6(address) => Site::V6((address.to_bits() >> 64) as u64),
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Site::V4(bits) => Ipv4Addr::from_bits(bits).fmt(to),
            Site::V6(bits) => write!(to, "{}/64", Ipv6Addr::from_bits(u128::from(bits) << 64)),
        }
    }
}
