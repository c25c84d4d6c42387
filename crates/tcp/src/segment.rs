//! A TCP segment as the models see it: the header's fields, the options in use, and the length of a payload that does
//! not exist.

use crate::report::{ANNOUNCEMENT_LEN, Report};

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

/// The options of a SYN or SYN-ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynOptions {
    /// Maximum segment size.
    pub mss: u16,
    /// Window scale shift, if offered: at most 14 (RFC 7323).
    pub window_scale: Option<u8>,
    /// SACK-permitted.
    pub sack_permitted: bool,
    /// The sender understands a PEP's reports ([`crate::report`]).
    pub reports: bool,
}

/// The options beside timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Options {
    /// Of a SYN.
    Syn(SynOptions),
    /// Of any other segment of an endpoint: selective acknowledgements, often none.
    Sack(Sack),
    /// Of a segment that a PEP made.
    Report(Report),
    /// Of a data segment whose sender understands reports and hears none any more: no selective acknowledgements beside it.
    Announcement,
}

/// The timestamps option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// `TSval`.
    pub value: u32,
    /// `TSecr`.
    pub echo: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options::Sack(Sack::NONE)
    }
}

/// A TCP segment. `Copy`, so that queues and links carry it by value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first payload byte (or of SYN or FIN).
    pub seq: u32,
    /// Acknowledgement number, if [`Flags::ACK`].
    pub ack: u32,
    /// The window field as sent, scaled.
    pub window: u16,
    /// Payload bytes.
    pub len: u16,
    /// Flags.
    pub flags: Flags,
    /// Timestamps, if in use.
    pub timestamps: Option<Timestamps>,
    /// Other options.
    pub options: Options,
}

impl Segment {
    /// Bytes of TCP header with its options, padded to 4.
    #[inline]
    pub fn header_len(&self) -> u32 {
        let timestamps = if self.timestamps.is_some() { 12 } else { 0 };
        let others = match &self.options {
            Options::Syn(o) => {
                let optional = [o.window_scale.is_some(), o.sack_permitted, o.reports];
                4 + 4 * optional.into_iter().map(u32::from).sum::<u32>()
            }
            Options::Sack(s) if s.len == 0 => 0,
            Options::Sack(s) => 4 + 8 * u32::from(s.len),
            Options::Report(r) => r.option_len(),
            Options::Announcement => ANNOUNCEMENT_LEN as u32,
        };
        // With timestamps Linux packs SACK-permitted into the padding of the timestamps option.
        let packed = matches!(&self.options, Options::Syn(o) if o.sack_permitted && timestamps > 0);
        20 + timestamps + others - if packed { 4 } else { 0 }
    }

    /// Sequence space that the segment occupies: payload, SYN and FIN.
    #[inline]
    pub fn seq_len(&self) -> u32 {
        u32::from(self.len) + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }
}
