//! NR's tables: numerologies, bandwidths, MCS, CQI, transport blocks, buffer status.

mod buffer;
mod mcs;
mod segmentation;
mod tbs;

pub use buffer::{LONG_LEVELS, SHORT_LEVELS, bytes, level};
pub use mcs::{Mcs, McsTable};
pub(crate) use segmentation::has_base_graph_2;
pub use segmentation::{CodeBlocks, code_blocks};
pub use tbs::{Allocation, tbs};

use units::Span;

/// OFDM symbols of a slot with the normal cyclic prefix. 38.211 Table 4.3.2-1.
pub const SYMBOLS: u8 = 14;

/// The fewest bits of a block: MAC and RLC headers and, in the uplink, a report leave room for data.
pub const LEAST_BITS: u32 = 80;

/// Returns the fewest symbols that data is sent on (a mapping of type B, 38.214 Table 5.1.2.1-1), of which `dmrs` symbols of
/// reference signals and `overhead` resource elements per resource block leave room for data.
pub const fn fewest_symbols(dmrs: u8, overhead: u8) -> u8 {
    let fewest = dmrs + overhead / 12 + 1;
    if fewest > 2 { fewest } else { 2 }
}

/// A numerology µ. 38.211 Table 4.2-1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Numerology {
    /// µ = 0: 15 kHz.
    #[default]
    Khz15,
    /// µ = 1: 30 kHz.
    Khz30,
    /// µ = 2: 60 kHz.
    Khz60,
    /// µ = 3: 120 kHz.
    Khz120,
    /// µ = 4: 240 kHz.
    Khz240,
}

impl Numerology {
    /// All numerologies, in the order of µ.
    pub const ALL: [Numerology; 5] =
        [Numerology::Khz15, Numerology::Khz30, Numerology::Khz60, Numerology::Khz120, Numerology::Khz240];

    /// Returns µ.
    #[inline]
    pub const fn mu(self) -> u32 {
        self as u32
    }

    /// Returns the subcarrier spacing in Hz.
    #[inline]
    pub const fn subcarrier_hz(self) -> u32 {
        15_000 << self.mu()
    }

    /// Returns the length of a slot: a whole number of nanoseconds for every numerology.
    #[inline]
    pub const fn slot(self) -> Span {
        Span::from_nanos(1_000_000 >> self.mu())
    }
}

/// A frequency range. 38.104 Table 5.1-1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrequencyRange {
    /// 410 MHz to 7.125 GHz.
    Fr1,
    /// 24.25 GHz to 52.6 GHz.
    Fr2,
}

/// Resource blocks by channel bandwidth in MHz. 38.104 Tables 5.3.2-1 and -2.
type Bandwidths = &'static [(u16, u16)];

const FR1_KHZ15: Bandwidths =
    &[(5, 25), (10, 52), (15, 79), (20, 106), (25, 133), (30, 160), (35, 188), (40, 216), (45, 242), (50, 270)];
const FR1_KHZ30: Bandwidths = &[
    (5, 11),
    (10, 24),
    (15, 38),
    (20, 51),
    (25, 65),
    (30, 78),
    (35, 92),
    (40, 106),
    (45, 119),
    (50, 133),
    (60, 162),
    (70, 189),
    (80, 217),
    (90, 245),
    (100, 273),
];
const FR1_KHZ60: Bandwidths = &[
    (10, 11),
    (15, 18),
    (20, 24),
    (25, 31),
    (30, 38),
    (35, 44),
    (40, 51),
    (45, 58),
    (50, 65),
    (60, 79),
    (70, 93),
    (80, 107),
    (90, 121),
    (100, 135),
];
const FR2_KHZ60: Bandwidths = &[(50, 66), (100, 132), (200, 264)];
const FR2_KHZ120: Bandwidths = &[(50, 32), (100, 66), (200, 132), (400, 264)];

/// Returns the channel bandwidths in MHz that a numerology permits in a frequency range, each with its number of resource
/// blocks, N_RB. There are none for data at 240 kHz. 38.104 Tables 5.3.2-1 and -2.
#[inline]
pub const fn bandwidths(range: FrequencyRange, numerology: Numerology) -> Bandwidths {
    match (range, numerology) {
        (FrequencyRange::Fr1, Numerology::Khz15) => FR1_KHZ15,
        (FrequencyRange::Fr1, Numerology::Khz30) => FR1_KHZ30,
        (FrequencyRange::Fr1, Numerology::Khz60) => FR1_KHZ60,
        (FrequencyRange::Fr2, Numerology::Khz60) => FR2_KHZ60,
        (FrequencyRange::Fr2, Numerology::Khz120) => FR2_KHZ120,
        _ => &[],
    }
}

/// Returns the number of resource blocks of a channel of `mhz`, or `None` if the standard has no such channel.
#[inline]
pub fn resource_blocks(range: FrequencyRange, numerology: Numerology, mhz: u16) -> Option<u16> {
    let row = bandwidths(range, numerology).iter().find(|(width, _)| *width == mhz);
    row.map(|&(_, blocks)| blocks)
}
