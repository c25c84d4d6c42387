//! Named counters of nftables, by netlink.
//!
//! `nft` reads more than it shows: to list one table, version 1.0.6 gets all elements of its sets, and to list a counter, all rules of
//! this machine.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd;

use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket};

use crate::Error;
use crate::netlink::{OF_NETFILTER, attributes, failure, messages, request};

/// `NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWOBJ` and `… | NFT_MSG_GETOBJ`.
const OBJECT: u16 = 10 << 8 | 18;
const GET_OBJECT: u16 = 10 << 8 | 19;
/// `NFPROTO_INET`.
const INET: u8 = 1;
/// Attributes of an object (`enum nft_object_attributes`), and of a counter (`enum nft_counter_attributes`), which alone has these.
const TABLE: u16 = 1;
const NAME: u16 = 2;
const DATA: u16 = 4;
const BYTES: u16 = 1;
const PACKETS: u16 = 2;
/// The kernel's messages of a dump are no longer than this.
const LONGEST: usize = 32 << 10;

/// What a counter has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Returns the counters of a table of the family `inet` in this thread's network namespace, by their names. Without the table, there are
/// none.
///
/// # Errors
/// [`Error::System`] if the kernel refuses it.
pub fn of(table: &str) -> Result<BTreeMap<String, Count>, Error> {
    dump(table).map_err(Error::system("read counters of nftables"))
}

fn dump(table: &str) -> io::Result<BTreeMap<String, Count>> {
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkNetFilter)?;
    let name = [table.as_bytes(), &[0]].concat();
    let request = request(GET_OBJECT, libc::NLM_F_REQUEST | libc::NLM_F_DUMP, INET, 0, TABLE, &name);
    sendto(socket.as_raw_fd(), &request, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let (mut all, mut buffer) = (BTreeMap::new(), vec![0; LONGEST]);
    loop {
        let count = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
        for (kind, body) in messages(&buffer[..count]) {
            match i32::from(kind) {
                libc::NLMSG_DONE => return Ok(all),
                libc::NLMSG_ERROR => return Err(failure(body)),
                _ => all.extend(counter(kind, body)),
            }
        }
    }
}

/// Returns the name of a counter and what it has counted, if the message is of one.
fn counter(kind: u16, body: &[u8]) -> Option<(String, Count)> {
    let (mut name, mut count) = (None, None);
    for (attribute, value) in attributes(body.get(OF_NETFILTER..).filter(|_| kind == OBJECT)?) {
        match attribute {
            NAME => name = Some(String::from_utf8_lossy(value.split(|&byte| byte == 0).next()?).into_owned()),
            DATA => {
                let of = |wanted| attributes(value).find(|(attribute, _)| *attribute == wanted)?.1.first_chunk();
                let [packets, bytes] =
                    [PACKETS, BYTES].map(|wanted| of(wanted).map(|value| u64::from_be_bytes(*value)));
                count = packets.zip(bytes).map(|(packets, bytes)| Count { packets, bytes });
            }
            _ => {}
        }
    }
    name.zip(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::tests::message;

    #[test]
    fn counters_are_found_among_other_messages_and_attributes() {
        let nested = |packets: u64, bytes: u64| {
            let mut data = message(0, &[(BYTES, &bytes.to_be_bytes()), (3, &[0]), (PACKETS, &packets.to_be_bytes())]);
            data.drain(..20);
            data
        };
        let mut bytes = message(OBJECT, &[(TABLE, b"t\0"), (NAME, b"arrived\0"), (DATA | 0x8000, &nested(3, 1))]);
        bytes.extend(message(OBJECT, &[(NAME, b"steered\0"), (DATA, &nested(12, 960))]));
        // A quota has other data.
        bytes.extend(message(OBJECT, &[(NAME, b"quota\0"), (DATA, &[])]));
        bytes.extend(message(OBJECT + 1, &[(NAME, b"other\0"), (DATA, &nested(1, 1))]));
        let found: Vec<_> = messages(&bytes).filter_map(|(kind, body)| counter(kind, body)).collect();
        let named = |name: &str, packets, bytes| (name.to_owned(), Count { packets, bytes });
        assert_eq!(found, [named("arrived", 3, 1), named("steered", 12, 960)]);
    }

    #[test]
    fn any_bytes_are_counters_or_nothing() {
        bolero::check!().with_type::<Vec<u8>>().for_each(|bytes| drop(counter(OBJECT, bytes)));
    }
}
