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
