//! UE categories: 36.306 Tables 4.1-1 and 4.1-2.

/// What a UE of a category can receive and send on one carrier, with 64QAM and at most two layers in the downlink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Category {
    /// Most bits of transport blocks in a TTI of the downlink, over all its layers and carriers.
    pub downlink_bits: u32,
    /// Most bits of one transport block of the downlink.
    pub downlink_block_bits: u32,
    /// Most layers that it receives, in a numbered category up to two.
    pub layers: u8,
    /// Most bits of a transport block of the uplink: what a carrier carries in a TTI.
    pub uplink_block_bits: u32,
    /// Whether it sends with 64QAM.
    pub uplink_64qam: bool,
    /// Whether it receives two carriers, as those of release 10, from category 6 on, do.
    pub aggregates: bool,
}

const fn category(
    downlink_bits: u32,
    downlink_block_bits: u32,
    layers: u8,
    uplink_block_bits: u32,
    uplink_64qam: bool,
    aggregates: bool,
) -> Category {
    Category { downlink_bits, downlink_block_bits, layers, uplink_block_bits, uplink_64qam, aggregates }
}

/// Categories 1 to 12. The numbers are those of 36.306 (release 12), clause 4.1: the downlink's columns "Maximum number of
/// DL-SCH transport block bits received within a TTI", "Maximum number of bits of a DL-SCH transport block received within
/// a TTI" and "Maximum number of supported layers" from Table 4.1-1, the uplink's "Maximum number of bits of an UL-SCH
/// transport block transmitted within a TTI" and "Support for 64QAM in UL" from Table 4.1-2.
///
/// Where the block's bits depend on the layers (categories 6, 7 and 9 to 12), they are those with two layers and 64QAM.
/// The uplinks of categories 7, 10 and 12 have two blocks in a TTI (102048 bits), and that of category 8 has ten (1497760
/// bits): on two and more carriers or layers, which do not exist here.
pub const CATEGORIES: [Category; 12] = [
    category(10_296, 10_296, 1, 5160, false, false),
    category(51_024, 51_024, 2, 25_456, false, false),
    category(102_048, 75_376, 2, 51_024, false, false),
    category(150_752, 75_376, 2, 51_024, false, false),
    category(299_552, 149_776, 2, 75_376, true, false),
    category(301_504, 75_376, 2, 51_024, false, true),
    category(301_504, 75_376, 2, 51_024, false, true),
    category(2_998_560, 299_856, 2, 149_776, true, true),
    category(452_256, 75_376, 2, 51_024, false, true),
    category(452_256, 75_376, 2, 51_024, false, true),
    category(603_008, 75_376, 2, 51_024, false, true),
    category(603_008, 75_376, 2, 51_024, false, true),
];

impl Category {
    /// A UE that can receive and send whatever carriers carry.
    pub const UNLIMITED: Category = category(u32::MAX, u32::MAX, u8::MAX, u32::MAX, true, true);

    /// Category `number`, 1 to 12.
    pub fn numbered(number: u8) -> Option<Category> {
        CATEGORIES.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Most bits of each of `layers` code words of a TTI of the downlink.
    #[inline]
    pub fn downlink_word_bits(&self, layers: u8) -> u32 {
        self.downlink_block_bits.min(self.downlink_bits / u32::from(layers.max(1)))
    }
}

impl Default for Category {
    fn default() -> Category {
        Category::UNLIMITED
    }
}
