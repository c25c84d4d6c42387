//! UDP headers as bytes (RFC 768).

use crate::checksum::Sum;
use crate::{Error, ip};
use core::net::SocketAddr;
use etherparse::UdpHeaderSlice;

/// Bytes of a header.
pub const HEADER_LEN: usize = 8;

/// A UDP header in bytes that come from anywhere. Its length field is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The source port.
    pub source_port: u16,
    /// The destination port.
    pub destination_port: u16,
}

impl View {
    /// The header at the start of `bytes`.
    ///
    /// # Errors
    /// [`Error::Truncated`].
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<View, Error> {
        let udp = UdpHeaderSlice::from_slice(bytes).map_err(|_| Error::Truncated)?;
        Ok(View { source_port: udp.source_port(), destination_port: udp.destination_port() })
    }
}

/// The bytes of the header before `len` bytes of payload. `payload` begins it; whatever it leaves out is summed up as zeros.
///
/// # Errors
/// [`Error::TooLong`]; [`Error::MixedAddresses`].
pub fn header(
    source: SocketAddr,
    destination: SocketAddr,
    len: u16,
    payload: &[u8],
) -> Result<[u8; HEADER_LEN], Error> {
    if source.is_ipv4() != destination.is_ipv4() {
        return Err(Error::MixedAddresses);
    }
    let len = len.checked_add(HEADER_LEN as u16).ok_or(Error::TooLong)?;
    let mut bytes = [0; HEADER_LEN];
    bytes[0..2].copy_from_slice(&source.port().to_be_bytes());
    bytes[2..4].copy_from_slice(&destination.port().to_be_bytes());
    bytes[4..6].copy_from_slice(&len.to_be_bytes());
    let sum = Sum::pseudo_header(source.ip(), destination.ip(), ip::UDP, len).with(&bytes).with(payload);
    bytes[6..8].copy_from_slice(&sum.nonzero_checksum().to_be_bytes());
    Ok(bytes)
}
