//! The options of a TCP header: reading them from any bytes, and writing a segment's.
//!
//! Source: RFC 9293 section 3.1, RFC 7323 (window scale, timestamps), RFC 2018 (SACK); order and padding are those of Linux's
//! `tcp_options_write`, and like `tcp_parse_options` the reader skips what it does not know.

use crate::Error;
use crate::fields::{Block, Flags, Sack, Timestamps};
use crate::list::{List, NOP};
use crate::report::{self, Message};
use crate::segment::{Options, Segment, SynOptions};
use arrayvec::ArrayVec;

const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

/// How Linux begins the options of a segment with timestamps.
const ALIGNED_TIMESTAMPS: [u8; 4] = [NOP, NOP, TIMESTAMPS, 10];
/// The maximum segment size of a peer that names none, over IPv4 (RFC 9293 section 3.7.1).
const DEFAULT_MSS: u16 = 536;
/// The largest window scale shift (RFC 7323 section 2.3).
const MAX_WINDOW_SCALE: u8 = 14;
/// Bytes that the options of a header take at most.
const MAX_LEN: usize = 40;

/// Timestamps and other options of a header with these flags.
#[inline]
pub(crate) fn read(options: &[u8], flags: Flags) -> (Option<Timestamps>, Options) {
    if options.is_empty() && !flags.has(Flags::SYN) {
        return (None, Options::default());
    }
    // Nearly all segments have timestamps alone.
    if let Ok(&[ref aligned @ .., v0, v1, v2, v3, e0, e1, e2, e3]) = <&[u8; 12]>::try_from(options)
        && *aligned == ALIGNED_TIMESTAMPS
        && !flags.has(Flags::SYN)
    {
        let (value, echo) = (u32::from_be_bytes([v0, v1, v2, v3]), u32::from_be_bytes([e0, e1, e2, e3]));
        return (Some(Timestamps { value, echo }), Options::default());
    }
    read_list(options, flags)
}

fn read_list(options: &[u8], flags: Flags) -> (Option<Timestamps>, Options) {
    let mut timestamps = None;
    let mut syn = SynOptions { mss: DEFAULT_MSS, window_scale: None, sack_permitted: false, reports: false };
    let mut sack = Sack::NONE;
    let mut message = None;
    for option in List(options) {
        match *option {
            [MSS, 4, a, b] => syn.mss = u16::from_be_bytes([a, b]),
            [WINDOW_SCALE, 3, shift] => syn.window_scale = Some(shift.min(MAX_WINDOW_SCALE)),
            [SACK_PERMITTED, 2] => syn.sack_permitted = true,
            [TIMESTAMPS, 10, v0, v1, v2, v3, e0, e1, e2, e3] => {
                let (value, echo) = (u32::from_be_bytes([v0, v1, v2, v3]), u32::from_be_bytes([e0, e1, e2, e3]));
                timestamps = Some(Timestamps { value, echo });
            }
            [SACK, _, ref blocks @ ..] => {
                if let (blocks, []) = blocks.as_chunks::<8>() {
                    sack.clear();
                    blocks.iter().for_each(|block| sack.push(read_block(*block)));
                }
            }
            _ => message = message.or_else(|| Message::parse(option)),
        }
    }
    let others = match message {
        _ if flags.has(Flags::SYN) => {
            Options::Syn(SynOptions { reports: message == Some(Message::Announcement), ..syn })
        }
        Some(Message::Announcement) => Options::Announcement,
        Some(Message::Report(report)) => Options::Report(report),
        None => Options::Sack(sack),
    };
    (timestamps, others)
}

fn read_block([s0, s1, s2, s3, e0, e1, e2, e3]: [u8; 8]) -> Block {
    Block { start: u32::from_be_bytes([s0, s1, s2, s3]), end: u32::from_be_bytes([e0, e1, e2, e3]) }
}

/// The bytes of a segment's options, a multiple of 4.
pub(crate) fn write(segment: &Segment) -> Result<ArrayVec<u8, MAX_LEN>, Error> {
    let mut bytes = Writer(ArrayVec::new());
    let timestamps = segment.timestamps;
    match &segment.options {
        Options::Syn(syn) => {
            bytes.add(&[MSS, 4])?;
            bytes.add(&syn.mss.to_be_bytes())?;
            // SACK-permitted takes the place of the padding, if there is any.
            match (syn.sack_permitted, timestamps) {
                (true, Some(timestamps)) => bytes.timestamps([SACK_PERMITTED, 2], timestamps)?,
                (true, None) => bytes.add(&[NOP, NOP, SACK_PERMITTED, 2])?,
                (false, Some(timestamps)) => bytes.timestamps([NOP, NOP], timestamps)?,
                (false, None) => {}
            }
            if let Some(shift) = syn.window_scale {
                bytes.add(&[NOP, WINDOW_SCALE, 3, shift])?;
            }
            if syn.reports {
                bytes.add(&report::announcement())?;
            }
        }
        others => {
            if let Some(timestamps) = timestamps {
                bytes.timestamps([NOP, NOP], timestamps)?;
            }
            match others {
                Options::Sack(sack) if !sack.is_empty() => {
                    bytes.add(&[NOP, NOP, SACK, 2 + 8 * sack.blocks().len() as u8])?;
                    for block in sack.blocks() {
                        bytes.add(&block.start.to_be_bytes())?;
                        bytes.add(&block.end.to_be_bytes())?;
                    }
                }
                Options::Report(report) => bytes.add(&report.to_bytes())?,
                Options::Announcement => bytes.add(&report::announcement())?,
                Options::Sack(_) | Options::Syn(_) => {}
            }
        }
    }
    Ok(bytes.0)
}

struct Writer(ArrayVec<u8, MAX_LEN>);

impl Writer {
    fn add(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.0.try_extend_from_slice(bytes).map_err(|_| Error::TooLong)
    }

    /// Adds timestamps behind two bytes that align them.
    fn timestamps(&mut self, [a, b]: [u8; 2], timestamps: Timestamps) -> Result<(), Error> {
        self.add(&[a, b, TIMESTAMPS, 10])?;
        self.add(&timestamps.value.to_be_bytes())?;
        self.add(&timestamps.echo.to_be_bytes())
    }
}
