//! LTE's tables: transport blocks, MCS, CQI, buffer status, code blocks, bandwidths, UE categories, QoS classes.
//!
//! I_TBS, MCS, CQI and BSR indices are plain numbers as in the standards.

mod category;
mod mcs;
mod tbs;

pub use category::{CATEGORIES, Category};
pub use mcs::{CQI, DOWNLINK_MCS, Mcs, UPLINK_MCS, cqi_code_rate, cqi_efficiency, dl_mcs, mcs, ul_mcs};
pub use tbs::TBS;

/// Subcarriers of a resource block.
pub const SUBCARRIERS: u32 = 12;

/// Upper ends in bytes of the buffer sizes with indices 0 to 62; index 63 is open ended. 36.321 Table 6.1.3.1-1.
pub const BUFFER_SIZES: [u32; 63] = [
    0, 10, 12, 14, 17, 19, 22, 26, 31, 36, 42, 49, 57, 67, 78, 91, 107, 125, 146, 171, 200, 234, 274, 321, 376, 440,
    515, 603, 706, 826, 967, 1132, 1326, 1552, 1817, 2127, 2490, 2915, 3413, 3995, 4677, 5476, 6411, 7505, 8787, 10287,
    12043, 14099, 16507, 19325, 22624, 26487, 31009, 36304, 42502, 49759, 58255, 68201, 79846, 93479, 109_439, 128_125,
    150_000,
];

/// Bits of a transport block of `prbs` (1 to 110) resource blocks at I_TBS `i_tbs` (0 to 26) for one code word.
///
/// I_TBS 6 has 328 bits in one block, more than QPSK's coded bits there: such a block is not decoded before its first
/// retransmission, and schedulers should not send it.
#[inline]
pub fn tbs(i_tbs: u8, prbs: u16) -> u32 {
    TBS[usize::from(i_tbs)][usize::from(prbs) - 1]
}

/// The index that a buffer status report gives for `bytes`. 36.321 Table 6.1.3.1-1.
#[inline]
pub fn bsr_index(bytes: u32) -> u8 {
    BUFFER_SIZES.partition_point(|&upper| upper < bytes) as u8
}

/// The bytes that a scheduler takes a reported index (0 to 63) for: the upper end of its range. Index 63 is open
/// ended and stands for its lower end, 150,001 bytes.
#[inline]
pub fn bsr_bytes(index: u8) -> u32 {
    BUFFER_SIZES.get(usize::from(index)).copied().unwrap_or(BUFFER_SIZES[62] + 1)
}

/// The sizes of a turbo code block are the multiples of a step up to a bound, from one bound to the next:
/// `(bound, step)`. 36.212 Table 5.1.3-3, column K, from 40 on.
const TURBO_STEPS: [(u32, u32); 4] = [(512, 8), (1024, 16), (2048, 32), (6144, 64)];

/// The smallest size of a turbo code block, in bits.
pub const MIN_CODE_BLOCK: u32 = 40;

/// The largest size of a turbo code block, in bits.
pub const MAX_CODE_BLOCK: u32 = 6144;

/// The smallest size K of a turbo code block that holds `bits` (at most 6144). 36.212 Table 5.1.3-3.
#[inline]
pub fn code_block_size(bits: u32) -> u32 {
    debug_assert!(bits <= MAX_CODE_BLOCK, "{bits} bits do not fit into a code block");
    let bits = bits.max(MIN_CODE_BLOCK);
    let mut step = 64;
    for (bound, finer) in TURBO_STEPS.into_iter().rev() {
        if bits <= bound {
            step = finer;
        }
    }
    bits.next_multiple_of(step)
}

/// The next smaller size than `size`, or `size` itself if it is the smallest.
#[inline]
pub fn smaller_code_block_size(size: u32) -> u32 {
    if size <= MIN_CODE_BLOCK {
        return size;
    }
    let step = if size <= 512 {
        8
    } else if size <= 1024 {
        16
    } else if size <= 2048 {
        32
    } else {
        64
    };
    size - step
}

/// Returns the resource blocks of a resource block group of allocation type 0 on a carrier of `prbs`; the last group may
/// be smaller. 36.213 Table 7.1.6.1-1.
#[inline]
pub const fn rbg_size(prbs: u16) -> u16 {
    match prbs {
        0..=10 => 1,
        11..=26 => 2,
        27..=63 => 3,
        _ => 4,
    }
}

/// A channel bandwidth. 36.101 5.6.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bandwidth {
    /// 1.4 MHz.
    Mhz1_4,
    /// 3 MHz.
    Mhz3,
    /// 5 MHz.
    Mhz5,
    /// 10 MHz.
    #[default]
    Mhz10,
    /// 15 MHz.
    Mhz15,
    /// 20 MHz.
    Mhz20,
}

impl Bandwidth {
    /// All of them, from the narrowest.
    pub const ALL: [Bandwidth; 6] =
        [Bandwidth::Mhz1_4, Bandwidth::Mhz3, Bandwidth::Mhz5, Bandwidth::Mhz10, Bandwidth::Mhz15, Bandwidth::Mhz20];

    /// Resource blocks.
    #[inline]
    pub const fn prbs(self) -> u16 {
        [6, 15, 25, 50, 75, 100][self as usize]
    }

    /// Resource blocks of a resource block group of allocation type 0; the last group may be smaller.
    #[inline]
    pub const fn rbg_size(self) -> u16 {
        rbg_size(self.prbs())
    }

    /// Resource block groups.
    #[inline]
    pub const fn rbgs(self) -> u16 {
        self.prbs().div_ceil(self.rbg_size())
    }

    /// The channel's width in Hz.
    #[inline]
    pub const fn hz(self) -> u32 {
        [1_400_000, 3_000_000, 5_000_000, 10_000_000, 15_000_000, 20_000_000][self as usize]
    }
}

/// A QoS class of 23.203 Table 6.1.7.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Qci {
    /// The identifier, 1 to 9.
    pub qci: u8,
    /// Whether its bit rate is guaranteed.
    pub guaranteed: bool,
    /// The priority; 1 comes first.
    pub priority: u8,
    /// The packet delay budget in milliseconds.
    pub delay_budget_ms: u16,
    /// The packet error loss rate that it should keep.
    pub loss_rate: f64,
}

const fn class(qci: u8, guaranteed: bool, priority: u8, delay_budget_ms: u16, loss_rate: f64) -> Qci {
    Qci { qci, guaranteed, priority, delay_budget_ms, loss_rate }
}

/// The QoS classes 1 to 9. 23.203 Table 6.1.7.
pub const QCI: [Qci; 9] = [
    class(1, true, 2, 100, 1e-2),
    class(2, true, 4, 150, 1e-3),
    class(3, true, 3, 50, 1e-3),
    class(4, true, 5, 300, 1e-6),
    class(5, false, 1, 100, 1e-6),
    class(6, false, 6, 300, 1e-6),
    class(7, false, 7, 100, 1e-3),
    class(8, false, 8, 300, 1e-6),
    class(9, false, 9, 300, 1e-6),
];

/// The QoS class `qci`, if there is one.
pub fn qci(qci: u8) -> Option<&'static Qci> {
    QCI.get(usize::from(qci).checked_sub(1)?)
}
