//! The parts of a TCP header that several headers and options share.

/// Header flags in use, by their bits in the header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Push.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement field is significant.
    pub const ACK: Flags = Flags(0x10);
    /// ECN echo.
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced.
    pub const CWR: Flags = Flags(0x80);

    /// Whether all of `other`'s bits are set.
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl core::ops::BitOr for Flags {
    type Output = Flags;
    #[inline]
    fn bitor(self, rhs: Flags) -> Flags {
        Flags(self.0 | rhs.0)
    }
}

impl core::ops::BitOrAssign for Flags {
    #[inline]
    fn bitor_assign(&mut self, rhs: Flags) {
        self.0 |= rhs.0;
    }
}

/// A half-open range of sequence numbers, `start` inclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// First sequence number.
    pub start: u32,
    /// One past the last.
    pub end: u32,
}

/// Up to four SACK blocks (three beside timestamps). A D-SACK (RFC 2883) is the first.
#[derive(Clone, Copy, Default)]
pub struct Sack {
    blocks: [Block; 4],
    len: u8,
}

impl Sack {
    /// No blocks.
    pub const NONE: Sack = Sack { blocks: [Block { start: 0, end: 0 }; 4], len: 0 };

    /// Appends a block; a fifth is ignored, as an option has no room for it.
    pub fn push(&mut self, block: Block) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.len)) {
            *slot = block;
            self.len += 1;
        }
    }

    /// Forgets them.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Whether there are none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The blocks, in the option's order.
    #[inline]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks[..usize::from(self.len)]
    }
}

impl PartialEq for Sack {
    fn eq(&self, other: &Sack) -> bool {
        self.blocks() == other.blocks()
    }
}

impl Eq for Sack {}

impl core::fmt::Debug for Sack {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.blocks()).finish()
    }
}

/// The timestamps option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// `TSval`.
    pub value: u32,
    /// `TSecr`.
    pub echo: u32,
}
