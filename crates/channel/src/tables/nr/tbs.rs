//! Transport block sizes: 38.214, 5.1.3.2.

use super::Mcs;

/// Resource elements of a resource block that count for a transport block's size, at most.
const MAX_RE: u32 = 156;

/// The largest number of information bits for which the size comes from [`SIZES`].
const SMALL: u32 = 3824;

/// Transport block sizes in bits for at most 3824 information bits. 38.214 Table 5.1.3.2-1.
pub(super) const SIZES: [u32; 93] = [
    24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176, 184, 192, 208, 224, 240,
    256, 272, 288, 304, 320, 336, 352, 368, 384, 408, 432, 456, 480, 504, 528, 552, 576, 608, 640, 672, 704, 736, 768,
    808, 848, 888, 928, 984, 1032, 1064, 1128, 1160, 1192, 1224, 1256, 1288, 1320, 1352, 1416, 1480, 1544, 1608, 1672,
    1736, 1800, 1864, 1928, 2024, 2088, 2152, 2216, 2280, 2408, 2472, 2536, 2600, 2664, 2728, 2792, 2856, 2976, 3104,
    3240, 3368, 3496, 3624, 3752, 3824,
];

/// The resources of a transport block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Resource blocks.
    pub prbs: u16,
    /// OFDM symbols, 1 to 14.
    pub symbols: u8,
    /// Resource elements of a resource block that are for DMRS, including CDM groups without data.
    pub dmrs: u8,
    /// Overhead in a resource block, from `xOverhead`: 0, 6, 12 or 18 resource elements.
    pub overhead: u8,
    /// MIMO layers, 1 to 4.
    pub layers: u8,
}

impl Allocation {
    /// Returns the resource elements that count for the size of a transport block.
    #[inline]
    pub fn resource_elements(&self) -> u32 {
        let of_block = (12 * u32::from(self.symbols)).saturating_sub(u32::from(self.dmrs) + u32::from(self.overhead));
        of_block.min(MAX_RE) * u32::from(self.prbs)
    }
}

/// Returns the bits of a transport block: 38.214, 5.1.3.2, in exact arithmetic.
///
/// For P-RNTI and RA-RNTI, `halvings` of the information bits are taken (1 or 2); otherwise it is 0.
pub fn tbs(mcs: Mcs, allocation: &Allocation, halvings: u32) -> u32 {
    // Step 2. N_info in 1/2048 bits, times 4 for the halvings.
    const UNIT: u64 = 4 * 2048;
    let elements = u64::from(allocation.resource_elements());
    let layers = u64::from(allocation.layers);
    let info = (elements * layers * u64::from(mcs.order) * u64::from(mcs.rate)) << 2 >> halvings.min(2);
    if info <= u64::from(SMALL) * UNIT {
        // Step 3.
        let whole = (info / UNIT) as u32;
        let step = whole.checked_ilog2().unwrap_or(0).saturating_sub(6).max(3);
        let quantised = ((whole >> step) << step).max(24);
        return SIZES[SIZES.partition_point(|&size| size < quantised)];
    }
    // Step 4. Ties are rounded up.
    let rest = info - 24 * UNIT;
    let step = (rest / UNIT).ilog2() - 5;
    let unit = UNIT << step;
    let quantised = (((rest + unit / 2) / unit) << step).max(3840);
    let blocks = if mcs.rate <= 2048 / 4 {
        (quantised + 24).div_ceil(3816)
    } else if quantised > 8424 {
        (quantised + 24).div_ceil(8424)
    } else {
        1
    };
    (8 * blocks * (quantised + 24).div_ceil(8 * blocks) - 24) as u32
}
