//! Messages of netlink about the packet filter (`nfnetlink`), as far as they are read and written here.

use std::io;

/// The bits of an attribute's type that are none of it (`NLA_F_NESTED`, `NLA_F_NET_BYTEORDER`).
const TYPE: u16 = 0x3fff;
/// Lengths of `struct nlmsghdr`, of `struct nfgenmsg`, with which a body begins, and of `struct nlattr`.
const HEADER: usize = 16;
pub(crate) const OF_NETFILTER: usize = 4;
const ATTRIBUTE: usize = 4;

/// Returns a request with one attribute: its type (`NFNL_SUBSYS_… << 8 | …`), its flags, a family of addresses and a resource.
pub(crate) fn request(kind: u16, flags: i32, family: u8, resource: u16, attribute: u16, value: &[u8]) -> Vec<u8> {
    let total = HEADER + OF_NETFILTER + ATTRIBUTE + value.len().next_multiple_of(4);
    let mut request = Vec::with_capacity(total);
    request.extend((total as u32).to_ne_bytes());
    request.extend(kind.to_ne_bytes());
    request.extend((flags as u16).to_ne_bytes());
    // Sequence number, port.
    request.extend([0; 8]);
    // Version 0.
    request.extend([family, 0]);
    request.extend(resource.to_be_bytes());
    request.extend(((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
    request.extend(attribute.to_ne_bytes());
    request.extend(value);
    request.resize(total, 0);
    request
}

/// Returns what a message of the type `NLMSG_ERROR` says.
pub(crate) fn failure(body: &[u8]) -> io::Error {
    let code = body.first_chunk().map_or(-libc::EBADMSG, |code| i32::from_ne_bytes(*code));
    io::Error::from_raw_os_error(-code)
}

/// Returns the type and body of each netlink message, up to the first whose length makes no sense.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
        let message = bytes.get(..length)?;
        let body = message.get(HEADER..)?;
        let kind = u16::from_ne_bytes([message[4], message[5]]);
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// Returns the type and value of each attribute, up to the first whose length makes no sense.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (head, _) = bytes.split_first_chunk::<ATTRIBUTE>()?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let value = bytes.get(..length)?.get(ATTRIBUTE..)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([head[2], head[3]]) & TYPE, value))
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A message as the kernel of this machine's byte order writes it.
    pub(crate) fn message(kind: u16, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = vec![0; OF_NETFILTER];
        for (kind, value) in attributes {
            body.extend(((ATTRIBUTE + value.len()) as u16).to_ne_bytes());
            body.extend(kind.to_ne_bytes());
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend(body);
        bytes
    }
}
