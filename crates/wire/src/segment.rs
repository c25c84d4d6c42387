//! A TCP segment as the models see it: the header's fields, the options in use, and the length of a payload that does
//! not exist.

use crate::fields::{Flags, Sack, Timestamps};
use crate::report::{ANNOUNCEMENT_LEN, Report};

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
    /// Of any other segment of an endpoint: selective acknowledgements, often none. Also of a captured SYN whose options were cut
    /// off.
    Sack(Sack),
    /// Of a segment that a PEP made.
    Report(Report),
    /// Of a data segment whose sender understands reports and hears none any more: no selective acknowledgements beside it.
    Announcement,
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

/// Queues, links and hosts carry segments by value: a larger one costs every simulated packet.
const _: () = assert!(size_of::<Segment>() <= 80);

impl Segment {
    /// Returns the reset that answers this segment where its connection does not exist, unless it is a reset itself (RFC 9293,
    /// 3.10.7.1).
    pub fn refusal(&self) -> Option<Segment> {
        let (seq, ack, flags) = if self.flags.has(Flags::ACK) {
            (self.ack, 0, Flags::RST)
        } else {
            (0, self.seq.wrapping_add(self.seq_len()), Flags::RST | Flags::ACK)
        };
        let refusal =
            Segment { seq, ack, window: 0, len: 0, flags, timestamps: None, options: Options::Sack(Sack::NONE) };
        (!self.flags.has(Flags::RST)).then_some(refusal)
    }

    /// Bytes of TCP header with its options, padded to 4.
    #[inline]
    pub fn header_len(&self) -> u32 {
        let timestamps = if self.timestamps.is_some() { 12 } else { 0 };
        let others = match &self.options {
            Options::Syn(o) => {
                let optional = [o.window_scale.is_some(), o.sack_permitted, o.reports];
                4 + 4 * optional.into_iter().map(u32::from).sum::<u32>()
            }
            Options::Sack(s) if s.is_empty() => 0,
            Options::Sack(s) => 4 + 8 * s.blocks().len() as u32,
            Options::Report(r) => r.option_len(),
            Options::Announcement => ANNOUNCEMENT_LEN as u32,
        };
        // With timestamps Linux packs SACK-permitted into the padding of the timestamps option.
        let packed = matches!(&self.options, Options::Syn(o) if o.sack_permitted && timestamps > 0);
        20 + timestamps + others - if packed { 4 } else { 0 }
    }

    /// The end of the first SACK block, which contains the segment that arrived last (RFC 2018 section 4).
    #[inline]
    pub fn first_sacked(&self) -> Option<u32> {
        match &self.options {
            Options::Sack(sack) => sack.blocks().first().map(|block| block.end),
            _ => None,
        }
    }

    /// Sequence space that the segment occupies: payload, SYN and FIN.
    #[inline]
    pub fn seq_len(&self) -> u32 {
        u32::from(self.len) + u32::from(self.flags.has(Flags::SYN)) + u32::from(self.flags.has(Flags::FIN))
    }
}
