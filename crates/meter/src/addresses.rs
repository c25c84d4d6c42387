//! The addresses of servers, and the interfaces to them.

use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

use netio::socket::bind_device;
use nix::net::if_::{if_nameindex, if_nametoindex};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use speedtest::host_port::HostPort;

/// Returns the addresses of a server, at `port`. Asks the resolver for those of a name.
///
/// # Errors
/// The name has none, there is no such interface, or a link-local address lacks its interface.
pub fn addresses(server: &HostPort<'_>, port: u16) -> Result<Vec<SocketAddr>, String> {
    let Ok(address) = server.host.parse::<Ipv6Addr>() else {
        return (server.host, port).to_socket_addrs().map(Iterator::collect).map_err(|why| why.to_string());
    };
    let scope = server.zone.map(interface).transpose()?;
    let is_local = address.is_unicast_link_local() || address.is_loopback();
    if let Some(zone) = server.zone.filter(|_| !is_local) {
        return Err(format!("`%{zone}` belongs to link-local addresses: --interface chooses the way to others"));
    }
    if scope.is_none() && address.is_unicast_link_local() {
        return Err(format!("a link-local address needs its interface, as {address}%eth0"));
    }
    Ok(vec![SocketAddrV6::new(address, port, 0, scope.unwrap_or(0)).into()])
}

/// Checks that there is an interface of this name, and that this process may bind sockets to it. Sends nothing.
///
/// # Errors
/// Which interfaces there are, or what is missing.
pub fn check_interface(name: &str) -> Result<(), String> {
    if if_nametoindex(name).is_err() {
        let all = if_nameindex()
            .map(|all| all.iter().map(|one| one.name().to_string_lossy().into_owned()).collect::<Vec<_>>().join(", "));
        let others = all.map(|all| format!("; there are {all}")).unwrap_or_default();
        return Err(format!("there is no interface `{name}`{others}"));
    }
    // Without a socket nothing can be said: the measurement tells why there is none.
    let Ok(socket) = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None) else { return Ok(()) };
    bind_device(&socket, Some(name)).map_err(|why| not_bound(name, &why))
}

/// Says why sockets cannot be bound to an interface.
fn not_bound(name: &str, why: &io::Error) -> String {
    match why.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("to choose the interface `{name}` takes the capability CAP_NET_RAW before Linux 5.7")
        }
        _ => format!("the interface `{name}` cannot be used: {why}"),
    }
}

/// Returns the number of an interface, which is given by its name or its number.
fn interface(zone: &str) -> Result<u32, String> {
    // `if_indextoname` of nix reports no error for the number 2^32 - 1.
    let has = |number: &u32| if_nameindex().is_ok_and(|all| all.iter().any(|one| one.index() == *number));
    if_nametoindex(zone)
        .ok()
        .or_else(|| zone.parse().ok().filter(has))
        .ok_or_else(|| format!("there is no interface `{zone}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_cannot_be_chosen_is_told_with_what_can() {
        assert_eq!(check_interface("lo"), Ok(()));
        let why = check_interface("nosuch0").expect_err("there is none");
        let (what, others) = why.split_once("; there are ").expect("those that there are");
        assert_eq!(what, "there is no interface `nosuch0`");
        assert!(others.split(", ").any(|name| name == "lo"), "{others}");
        let old = not_bound("wwan0", &io::ErrorKind::PermissionDenied.into());
        assert_eq!(old, "to choose the interface `wwan0` takes the capability CAP_NET_RAW before Linux 5.7");
    }

    #[test]
    fn a_zone_is_the_name_or_the_number_of_an_interface() {
        let of = |server: &str| addresses(&HostPort::parse(server).expect("it is valid"), 7);
        let lo = if_nametoindex("lo").expect("there is loopback");
        let address = "fe80::1".parse().expect("an address");
        let expected = Ok(vec![SocketAddr::V6(SocketAddrV6::new(address, 7, 0, lo))]);
        assert_eq!(of("fe80::1%lo"), expected);
        assert_eq!(of(&format!("[fe80::1%{lo}]:5231")), expected);
        assert_eq!(of("::1"), Ok(vec!["[::1]:7".parse().expect("an address")]));
        assert_eq!(of("192.0.2.1"), Ok(vec!["192.0.2.1:7".parse().expect("an address")]));
        let none = |zone: &str| Err(format!("there is no interface `{zone}`"));
        assert_eq!((of("fe80::1%nosuch"), of("[fe80::1%4294967295]")), (none("nosuch"), none("4294967295")));
        let why = "`%lo` belongs to link-local addresses: --interface chooses the way to others";
        assert_eq!(of("2001:db8::1%lo"), Err(why.to_owned()));
        let why = "a link-local address needs its interface, as fe80::1%eth0";
        assert_eq!(of("fe80::1"), Err(why.to_owned()));
    }
}
