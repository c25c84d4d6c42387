//! Why bytes are no header, or fields no bytes.

use core::fmt;

/// What is wrong with bytes from outside, or with what is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The bytes end before the header does, or before the packet's length field says.
    Truncated,
    /// A field has a value that no sound header has: a version, a header length, a type.
    Malformed,
    /// The packet does not fit its length field, or the options do not fit the header.
    TooLong,
    /// One address is IPv4 and the other IPv6.
    MixedAddresses,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Truncated => "the packet is shorter than its headers say",
            Error::Malformed => "a header field has an invalid value",
            Error::TooLong => "the packet is too long for its headers",
            Error::MixedAddresses => "an IPv4 packet needs two IPv4 addresses, an IPv6 packet two IPv6 addresses",
        })
    }
}

impl core::error::Error for Error {}
