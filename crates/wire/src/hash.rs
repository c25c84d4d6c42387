//! Hashes that tell flows apart.

use core::net::IpAddr;

/// Odd constants without pattern (the fraction of pi), for [`mix`].
const SALT: [u64; 4] = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7345, 0xa409_3822_299f_31d1, 0x082e_fa98_ec4e_6c89];

/// An address as a number; that of an IPv4 address is that of the IPv6 address that maps it.
#[inline]
pub fn address_bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// A hash of two addresses and what else tells a connection from others. The same on any machine and in any run.
#[inline]
pub fn hash(a: u128, b: u128, rest: u64) -> u64 {
    let halves = |n: u128| (n as u64, (n >> 64) as u64);
    let ((a0, a1), (b0, b1)) = (halves(a), halves(b));
    let ends = mix(a0 ^ SALT[0], a1 ^ SALT[1]) ^ mix(b0 ^ SALT[2], b1 ^ SALT[3]).rotate_left(32);
    mix(ends ^ SALT[1], rest ^ SALT[0])
}

/// Both halves of the product, one on the other: each bit of the two has a say in each bit of the result.
#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};

    /// Which flows share a bucket depends on it, and with that results: computed apart from this code.
    #[test]
    fn a_hash_is_the_same_on_any_machine_and_in_any_version() {
        let address = |last| address_bits(Ipv4Addr::new(10, 0, 0, last).into());
        let flow = |ports: u64| ports << 8 | 6;
        assert_eq!(hash(address(1), address(2), flow(41_234 << 16 | 80)), 0xbb81_3206_254a_a0e4);
        assert_eq!(hash(address(2), address(1), flow(80 << 16 | 41_234)), 0x23b4_8da5_7bf0_6d69);
        assert_eq!(hash(1, 2, 3), 0x4190_1de7_251e_9a9d);
        assert_eq!(hash(1 << 64, 2 << 64, 0), 0xc3c9_6f12_f69d_2d20);
    }

    #[test]
    fn an_ipv4_address_is_the_ipv6_address_that_maps_it() {
        let mapped = Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0x0a00, 0x0001);
        assert_eq!(address_bits(Ipv4Addr::new(10, 0, 0, 1).into()), address_bits(mapped.into()));
        assert_eq!(address_bits(mapped.into()), 0xffff_0a00_0001);
    }
}
