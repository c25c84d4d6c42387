//! Reservations of interfaces: one program at a time looks after an interface.
//!
//! A reservation is a packet socket (packet(7)) that is bound to the interface and, for each role, to a protocol that no frame has. The
//! kernel lists packet sockets to everybody in the network namespace (`/proc/net/packet`), so containers that share it see each other's
//! reservations whatever they have mounted, and it frees them when the process ends, in whatever way. Only who has `CAP_NET_RAW` there
//! can make one: no other user can take or block a reservation.
//!
//! Whoever reserves an interface binds first, and then looks for others. Of two that do so at the same time, at least one sees the
//! other and gives up.

use crate::{Error, sys};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// What an interface is reserved for. Programs with different roles can share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A lightweight PEP looks at its packets.
    Pep,
    /// Its packets go through a program: an emulated network or a queue.
    Packets,
    /// Its TCP connections go through a split proxy.
    Proxy,
}

impl Role {
    /// Values below 0x600 are lengths in frames (IEEE 802.3), which the kernel gives to other protocols; it uses none of these itself
    /// (`include/uapi/linux/if_ether.h`).
    const fn protocol(self) -> u16 {
        match self {
            Role::Pep => 0x0451,
            Role::Packets => 0x0452,
            Role::Proxy => 0x0453,
        }
    }

    /// What the holder does, and what can be done about it.
    const fn reason(self) -> &'static str {
        match self {
            Role::Pep => "already runs a PEP on it; --take-over replaces that",
            Role::Packets => "already handles its packets",
            Role::Proxy => "already proxies its connections; --take-over replaces that",
        }
    }
}

/// An interface of this thread's network namespace that is reserved until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    socket: OwnedFd,
}

impl Reservation {
    /// Reserves an interface.
    ///
    /// # Errors
    /// [`Error::Wrong`] if there is no such interface, or if another process has reserved it, which is named; [`Error::Missing`]
    /// without `CAP_NET_RAW`.
    pub fn new(role: Role, interface: &str) -> Result<Reservation, Error> {
        let index = nix::net::if_::if_nametoindex(interface)
            .map_err(|_| Error::Wrong(format!("there is no interface `{interface}`")))?;
        Reservation::by_index(role, interface, index)
    }

    /// Reserves the interface with this number.
    ///
    /// # Errors
    /// As [`Reservation::new`].
    pub fn by_index(role: Role, interface: &str, index: u32) -> Result<Reservation, Error> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => Error::Missing(format!(
                "`{interface}` cannot be reserved without CAP_NET_RAW in its network namespace: use sudo"
            )),
            _ => Error::system(format!("to reserve `{interface}`"))(error),
        };
        let socket = socket_with(AddressFamily::PACKET, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
        let socket = socket.map_err(|error| failed(error.into()))?;
        sys::bind_packet_of(socket.as_fd(), role.protocol(), index).map_err(failed)?;
        let own = rustix::fs::fstat(&socket).map_err(|error| failed(error.into()))?.st_ino;
        let all = fs::read_to_string("/proc/thread-self/net/packet").map_err(failed)?;
        match holders(&all, role, index).find(|other| other.inode != own) {
            None => Ok(Reservation { socket }),
            Some(other) => Err(Error::Wrong(format!("`{interface}` is in use: {} {}", other.name(), role.reason()))),
        }
    }
}

impl Reservation {
    /// Goes on with the reservation of another process, by its [`Reservation::descriptor`].
    pub fn inherited(socket: OwnedFd) -> Reservation {
        Reservation { socket }
    }

    /// What another process needs to go on with it.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Returns the process of this thread's network namespace that has reserved an interface for a role, such as `process 77`, as far as this
/// one may know.
pub fn holder_of(role: Role, interface: &str) -> Option<String> {
    let index = nix::net::if_::if_nametoindex(interface).ok()?;
    let all = fs::read_to_string("/proc/thread-self/net/packet").ok()?;
    holders(&all, role, index).next().map(Holder::name)
}

/// Who has reserved an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holder {
    user: u32,
    inode: u64,
}

impl Holder {
    /// The process, as far as this one may know.
    fn name(self) -> String {
        let process = process_of(self.inode);
        let process = process.map_or_else(|| "another process".to_owned(), |process| format!("process {process}"));
        let user = if self.user == 0 { String::new() } else { format!(" of user {}", self.user) };
        process + &user
    }
}

/// The reservations in the kernel's list of packet sockets, whose columns are: address, references, type, protocol, interface, running,
/// memory, user, inode.
fn holders(list: &str, role: Role, index: u32) -> impl Iterator<Item = Holder> {
    list.lines().skip(1).filter_map(move |line| {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, _, _, protocol, interface, _, _, user, inode] = columns[..] else { return None };
        let is_it = u16::from_str_radix(protocol, 16) == Ok(role.protocol()) && interface.parse() == Ok(index);
        is_it.then_some(Holder { user: user.parse().ok()?, inode: inode.parse().ok()? })
    })
}

/// Finds the process that has a socket.
fn process_of(inode: u64) -> Option<u32> {
    let wanted = format!("socket:[{inode}]");
    let has = |folder: &Path| {
        let files = fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|target| target.as_os_str() == wanted.as_str())
    };
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut numbered = processes.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())));
    numbered.find(|(_, folder)| has(folder)).map(|(process, _)| process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_reserved_once_for_each_role_and_the_holder_is_named() {
        let may = crate::rights::has(rustix::thread::CapabilitySet::NET_RAW);
        if testkit::root::granted(if may { Ok(()) } else { Err("reservations need CAP_NET_RAW") }).is_none() {
            let refused = Reservation::new(Role::Pep, "lo").map(drop).unwrap_err();
            assert!(matches!(refused, Error::Missing(_)), "{refused}");
            return;
        }
        let first = Reservation::new(Role::Pep, "lo").expect("nobody has it");
        let refused = Reservation::new(Role::Pep, "lo").map(drop).unwrap_err().to_string();
        let user = nix::unistd::getuid();
        let user = if user.is_root() { String::new() } else { format!(" of user {user}") };
        let holder = format!("process {}{user}", std::process::id());
        assert!(refused.starts_with(&format!("`lo` is in use: {holder} already runs a PEP on it")), "{refused}");
        assert!(Reservation::new(Role::Packets, "lo").is_ok());
        assert_eq!([Role::Pep, Role::Proxy].map(|role| holder_of(role, "lo")), [Some(holder), None]);
        drop(first);
        assert!(Reservation::new(Role::Pep, "lo").is_ok());
        let none = Reservation::new(Role::Pep, "none0").map(drop).unwrap_err().to_string();
        assert_eq!(none, "there is no interface `none0`");
    }

    #[test]
    fn sockets_with_the_names_of_reservations_before_are_in_nobodys_way() {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::net::{SocketAddr, UnixListener};
        if !crate::rights::has(rustix::thread::CapabilitySet::NET_RAW) {
            return;
        }
        let index = nix::net::if_::if_nametoindex("lo").expect("it is there");
        let name = SocketAddr::from_abstract_name(format!("ranway/proxy/{index}")).expect("a name");
        let _squatter = UnixListener::bind_addr(&name).expect("anybody may take it");
        assert!(Reservation::new(Role::Proxy, "lo").is_ok());
    }

    #[test]
    fn only_the_sockets_of_a_role_and_an_interface_count() {
        let list = "sk               RefCnt Type Proto  Iface R Rmem   User   Inode\n\
                    0000000000000000 3      2    0451   2     1 0      0      17\n\
                    0000000000000000 3      3    0003   2     1 0      0      18\n\
                    0000000000000000 3      2    0451   3     1 0      65534  19\n\
                    broken\n";
        let of = |role, index| holders(list, role, index).collect::<Vec<_>>();
        assert_eq!(of(Role::Pep, 2), [Holder { user: 0, inode: 17 }]);
        assert_eq!(of(Role::Pep, 3), [Holder { user: 65_534, inode: 19 }]);
        assert_eq!(of(Role::Packets, 2), []);
    }
}
