//! ICMP messages as bytes: echoes (RFC 792, RFC 4443), and "too big" (RFC 1191, RFC 4443 section 3.2).

use crate::checksum::Sum;
use crate::{Error, ip};
use core::net::IpAddr;

/// Bytes of a message's header.
pub const HEADER_LEN: usize = 8;

/// Types of echo request and reply.
const ECHO_V4: [u8; 2] = [8, 0];
const ECHO_V6: [u8; 2] = [128, 129];

/// An echo request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Whether it is the reply.
    pub reply: bool,
    /// Identifies the pinger.
    pub id: u16,
    /// Which of its requests.
    pub seq: u16,
}

impl Echo {
    /// The echo in bytes of ICMP or, with `v6`, of `ICMPv6`.
    ///
    /// # Errors
    /// [`Error::Truncated`]; [`Error::Malformed`] if it is another message.
    #[inline]
    pub fn parse(v6: bool, bytes: &[u8]) -> Result<Echo, Error> {
        let header: &[u8; HEADER_LEN] = bytes.first_chunk().ok_or(Error::Truncated)?;
        let [request, reply] = if v6 { ECHO_V6 } else { ECHO_V4 };
        // The code of both is 0.
        let &[kind, 0, _, _, i0, i1, s0, s1] = header else { return Err(Error::Malformed) };
        if kind != request && kind != reply {
            return Err(Error::Malformed);
        }
        Ok(Echo { reply: kind == reply, id: u16::from_be_bytes([i0, i1]), seq: u16::from_be_bytes([s0, s1]) })
    }

    /// The header before a payload of zeros. The checksum of `ICMPv6`, which covers the addresses, is left to the kernel
    /// (RFC 3542 section 3.1).
    pub fn header(&self, v6: bool) -> [u8; HEADER_LEN] {
        let kind = if v6 { ECHO_V6 } else { ECHO_V4 }[usize::from(self.reply)];
        let ([i0, i1], [s0, s1]) = (self.id.to_be_bytes(), self.seq.to_be_bytes());
        let mut bytes = [kind, 0, 0, 0, i0, i1, s0, s1];
        if !v6 {
            let checksum = Sum::default().with(&bytes).checksum();
            bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
        }
        bytes
    }
}

/// The header of "fragmentation needed" or "packet too big", from `source` to `destination`, before the bytes that it quotes.
///
/// # Errors
/// [`Error::TooLong`]; [`Error::MixedAddresses`].
pub fn too_big(source: IpAddr, destination: IpAddr, mtu: u16, quoted: &[u8]) -> Result<[u8; HEADER_LEN], Error> {
    let [a, b] = mtu.to_be_bytes();
    let len = u16::try_from(HEADER_LEN + quoted.len()).map_err(|_| Error::TooLong)?;
    let (mut bytes, sum) = match (source, destination) {
        (IpAddr::V4(_), IpAddr::V4(_)) => ([3, 4, 0, 0, 0, 0, a, b], Sum::default()),
        (IpAddr::V6(_), IpAddr::V6(_)) => {
            ([2, 0, 0, 0, 0, 0, a, b], Sum::pseudo_header(source, destination, ip::ICMP_V6, len))
        }
        _ => return Err(Error::MixedAddresses),
    };
    let checksum = sum.with(&bytes).with(quoted).checksum();
    bytes[2..4].copy_from_slice(&checksum.to_be_bytes());
    Ok(bytes)
}
