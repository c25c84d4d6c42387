//! SipHash-2-4, the keyed hash that authenticates reports.
//!
//! Source: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF" (INDOCRYPT 2012). The twin of
//! `crates/ebpf/src/bpf/siphash.h`.

/// A key that an operator's PEPs and senders share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u64; 2]);

impl core::fmt::Debug for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// The key with these bytes.
    pub const fn new(bytes: [u8; 16]) -> Key {
        let number = u128::from_le_bytes(bytes);
        Key([number as u64, (number >> 64) as u64])
    }
}

/// SipHash-2-4 of whole words.
pub(crate) fn sip_hash(key: Key, words: &[u64]) -> u64 {
    let Key([low, high]) = key;
    let mut v = [
        low ^ 0x736f_6d65_7073_6575,
        high ^ 0x646f_7261_6e64_6f6d,
        low ^ 0x6c79_6765_6e65_7261,
        high ^ 0x7465_6462_7974_6573,
    ];
    let length = (words.len() as u64 * 8) << 56;
    for &word in words.iter().chain([&length]) {
        v[3] ^= word;
        round(&mut v);
        round(&mut v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    for _ in 0..4 {
        round(&mut v);
    }
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

#[inline]
fn round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[1]);
    v[0] = v[0].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);

    #[test]
    fn the_hash_is_that_of_the_reference_implementation() {
        // `vectors_sip64` of the authors' C code: the messages are the bytes 0, 1, 2, ...
        let words: Vec<u64> =
            (0..7_u8).map(|w| u64::from_le_bytes(core::array::from_fn(|i| 8 * w + i as u8))).collect();
        assert_eq!(sip_hash(KEY, &[]).to_le_bytes(), [0x31, 0x0e, 0x0e, 0xdd, 0x47, 0xdb, 0x6f, 0x72]);
        assert_eq!(sip_hash(KEY, &words[..1]).to_le_bytes(), [0x62, 0x24, 0x93, 0x9a, 0x79, 0xf5, 0xf5, 0x93]);
    }
}
