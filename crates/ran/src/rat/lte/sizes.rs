//! LTE: the sizes of uplink grants.

/// Returns the smallest valid number of blocks of an uplink grant from `n` on.
#[inline]
pub(crate) fn uplink_size_from(n: u16) -> u16 {
    UPLINK_SIZES_FROM[usize::from(n.min(108))].into()
}

const UPLINK_SIZES_FROM: [u8; 109] = {
    let mut sizes = [108; 109];
    let mut n = 108;
    while n > 0 {
        n -= 1;
        sizes[n] = if UPLINK_SIZES[n] as usize == n && n > 0 { n as u8 } else { sizes[n + 1] };
    }
    sizes
};

/// Returns the largest valid number of blocks of an uplink grant up to `n` (36.211 5.3.3: 2^a 3^b 5^c).
#[inline]
pub(crate) fn uplink_size(n: u16) -> u16 {
    UPLINK_SIZES[usize::from(n.min(110))].into()
}

const UPLINK_SIZES: [u8; 111] = {
    let mut sizes = [0; 111];
    let mut n = 1;
    while n < sizes.len() {
        let mut rest = n;
        while rest % 2 == 0 {
            rest /= 2;
        }
        while rest % 3 == 0 {
            rest /= 3;
        }
        while rest % 5 == 0 {
            rest /= 5;
        }
        sizes[n] = if rest == 1 { n as u8 } else { sizes[n - 1] };
        n += 1;
    }
    sizes
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uplink_sizes_have_the_factors_2_3_and_5_only() {
        for n in 1..=110u16 {
            let size = uplink_size(n);
            let allowed = |mut k: u16| {
                for p in [2, 3, 5] {
                    while k.is_multiple_of(p) {
                        k /= p;
                    }
                }
                k == 1
            };
            assert!(size <= n && allowed(size) && ((size + 1)..=n).all(|k| !allowed(k)), "{n}: {size}");
        }
    }
}
