//! TCP headers as bytes.
//!
//! Source: RFC 9293 section 3.1. Reading ignores the reserved bits, the urgent pointer and options that nothing here uses.

use crate::checksum::Sum;
use crate::fields::Flags;
use crate::report::Message;
use crate::segment::Segment;
use crate::{Error, ip, option};
use arrayvec::ArrayVec;
use core::net::SocketAddr;

/// Bytes of the longest header.
pub const MAX_HEADER_LEN: usize = 60;
/// Bytes of a header without options.
const MIN_HEADER_LEN: usize = 20;

/// A TCP header in bytes that come from anywhere.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    fixed: &'a [u8; MIN_HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> View<'a> {
    /// The header at the start of `bytes`, which are all that the IP packet carries.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the header does not end within `bytes`; [`Error::Malformed`] if it says that it is shorter than
    /// any header.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<View<'a>, Error> {
        let (fixed, _) = bytes.split_first_chunk().ok_or(Error::Truncated)?;
        let (header, payload) = bytes.split_at_checked(usize::from(bytes[12] >> 4) * 4).ok_or(Error::Truncated)?;
        let options = header.get(MIN_HEADER_LEN..).ok_or(Error::Malformed)?;
        Ok(View { fixed, options, payload })
    }

    /// The header at the start of `bytes`, of which only the first part may have been captured: options that were cut off
    /// are missing. Returns the header and the length that it gives itself.
    ///
    /// # Errors
    /// As [`View::parse`], but [`Error::Truncated`] only if the part without options is cut off.
    #[inline]
    pub fn parse_captured(bytes: &'a [u8]) -> Result<(View<'a>, usize), Error> {
        let (fixed, _) = bytes.split_first_chunk().ok_or(Error::Truncated)?;
        let len = usize::from(bytes[12] >> 4) * 4;
        let (header, payload) = bytes.split_at(len.min(bytes.len()));
        let options = header.get(MIN_HEADER_LEN..).ok_or(Error::Malformed)?;
        Ok((View { fixed, options, payload }, len))
    }

    /// The source port.
    #[inline]
    pub fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.fixed[0], self.fixed[1]])
    }

    /// The destination port.
    #[inline]
    pub fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.fixed[2], self.fixed[3]])
    }

    /// The checksum field.
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.fixed[16], self.fixed[17]])
    }

    /// Bytes of the header.
    #[inline]
    pub fn header_len(&self) -> usize {
        MIN_HEADER_LEN + self.options.len()
    }

    /// What follows the header.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The announcement or report among the options, if there is one.
    pub fn message(&self) -> Option<Message> {
        Message::find(self.options)
    }

    /// The header as a segment. A SYN without a maximum segment size has the default of 536 bytes (RFC 9293 section 3.7.1); a
    /// segment with both SACK blocks and a message of this project has the message.
    #[inline]
    pub fn segment(&self) -> Segment {
        let number = |at: usize| {
            let [a, b, c, d] = [0, 1, 2, 3].map(|byte| self.fixed[at + byte]);
            u32::from_be_bytes([a, b, c, d])
        };
        let flags = Flags(self.fixed[13]);
        let (timestamps, options) = option::read(self.options, flags);
        Segment {
            seq: number(4),
            ack: number(8),
            window: u16::from_be_bytes([self.fixed[14], self.fixed[15]]),
            // An IP packet carries no more.
            len: self.payload.len().min(usize::from(u16::MAX)) as u16,
            flags,
            timestamps,
            options,
        }
    }
}

/// The bytes of a segment's header. `payload` begins the payload of [`Segment::len`] bytes; whatever it leaves out is summed
/// up as zeros.
///
/// # Errors
/// [`Error::TooLong`] if options or segment are longer than headers can say; [`Error::MixedAddresses`].
pub fn header(
    segment: &Segment,
    source: SocketAddr,
    destination: SocketAddr,
    payload: &[u8],
) -> Result<ArrayVec<u8, MAX_HEADER_LEN>, Error> {
    if source.is_ipv4() != destination.is_ipv4() {
        return Err(Error::MixedAddresses);
    }
    let options = option::write(segment)?;
    let header_len = MIN_HEADER_LEN + options.len();
    let len = u16::try_from(header_len + usize::from(segment.len)).map_err(|_| Error::TooLong)?;
    let mut fixed = [0; MIN_HEADER_LEN];
    fixed[0..2].copy_from_slice(&source.port().to_be_bytes());
    fixed[2..4].copy_from_slice(&destination.port().to_be_bytes());
    fixed[4..8].copy_from_slice(&segment.seq.to_be_bytes());
    fixed[8..12].copy_from_slice(&segment.ack.to_be_bytes());
    fixed[12] = ((header_len / 4) << 4) as u8;
    fixed[13] = segment.flags.0;
    fixed[14..16].copy_from_slice(&segment.window.to_be_bytes());
    let sum = Sum::pseudo_header(source.ip(), destination.ip(), ip::TCP, len).with(&fixed).with(&options);
    fixed[16..18].copy_from_slice(&sum.with(payload).checksum().to_be_bytes());
    Ok(fixed.into_iter().chain(options).collect())
}
