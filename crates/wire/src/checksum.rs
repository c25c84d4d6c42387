//! The Internet checksum (RFC 1071) and its incremental update (RFC 1624).

use core::net::IpAddr;
use etherparse::checksum::Sum16BitWords;

/// A running sum of 16-bit words. Order does not matter, but of all slices only the last one added may have an odd length.
#[derive(Clone, Debug, Default)]
pub struct Sum(Sum16BitWords);

impl Sum {
    /// The sum over a pseudo-header (RFC 9293 section 3.1, RFC 8200 section 8.1); `len` is the length of the transport
    /// header and its payload.
    pub fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, len: u16) -> Sum {
        let sum = Sum::default().address(source).address(destination);
        Sum(sum.0.add_2bytes([0, protocol]).add_2bytes(len.to_be_bytes()))
    }

    fn address(mut self, address: IpAddr) -> Sum {
        match address {
            IpAddr::V4(v4) => Sum(self.0.add_4bytes(v4.octets())),
            IpAddr::V6(v6) => Sum(self.0.add_16bytes(v6.octets())),
        }
    }

    /// Adds bytes, the last of an odd number padded with zero.
    #[must_use]
    pub fn with(self, bytes: &[u8]) -> Sum {
        Sum(self.0.add_slice(bytes))
    }

    /// The checksum: the complement of the sum.
    pub fn checksum(self) -> u16 {
        // The library sums in the machine's byte order.
        self.0.ones_complement().to_be()
    }

    /// The checksum for TCP and UDP: all ones in place of zero, which in UDP stands for none. Both mean the same.
    pub fn nonzero_checksum(self) -> u16 {
        match self.checksum() {
            0 => 0xffff,
            checksum => checksum,
        }
    }
}

/// The checksum of a header in which the word `old` has become `new`: HC' = ~(~HC + ~m + m') (RFC 1624, equation 3).
#[inline]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use bolero::check;

    /// RFC 1071, word by word.
    fn reference(bytes: &[u8]) -> u16 {
        let word = |pair: &[u8]| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u64::from(low));
        let mut sum: u64 = bytes.chunks(2).map(word).sum();
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        !(sum as u16)
    }

    #[test]
    fn the_sum_is_that_of_rfc_1071() {
        // Section 3 of the RFC: the words sum up to ddf2.
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::default().with(&bytes).checksum(), !0xddf2);
        assert_eq!(Sum::default().checksum(), 0xffff);
        assert_eq!(Sum::default().with(&[0xff; 2]).nonzero_checksum(), 0xffff);
    }

    #[test]
    fn any_bytes_sum_up_as_word_by_word() {
        check!().with_iterations(20_000).for_each(|bytes: &[u8]| {
            assert_eq!(Sum::default().with(bytes).checksum(), reference(bytes));
            let (words, rest) = bytes.split_at(bytes.len() / 4 * 2);
            assert_eq!(Sum::default().with(words).with(rest).checksum(), reference(bytes));
        });
    }

    #[test]
    fn an_update_gives_the_checksum_of_the_changed_bytes() {
        // RFC 1624 section 4: the field goes from 5555 to 3285, and the checksum from dd2f to zero.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0);
        check!().with_type::<([u8; 8], u16)>().with_iterations(20_000).for_each(|&(mut bytes, new)| {
            let before = reference(&bytes);
            let old = u16::from_be_bytes([bytes[2], bytes[3]]);
            bytes[2..4].copy_from_slice(&new.to_be_bytes());
            // All zeros have two representations of their sum; no IPv4 header is all zeros.
            if bytes != [0; 8] {
                assert_eq!(update(before, old, new), reference(&bytes));
            }
        });
    }
}
