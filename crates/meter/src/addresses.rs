//! The addresses of servers.

use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

use measure::host_port::HostPort;
use nix::net::if_::{if_indextoname, if_nametoindex};

/// Returns the addresses of a server, at `port`. Asks the resolver for those of a name.
///
/// # Errors
/// The name has none, there is no such interface, or a link-local address lacks its interface.
pub fn addresses(server: &HostPort<'_>, port: u16) -> Result<Vec<SocketAddr>, String> {
    let Ok(address) = server.host.parse::<Ipv6Addr>() else {
        return (server.host, port).to_socket_addrs().map(Iterator::collect).map_err(|why| why.to_string());
    };
    let scope = server.zone.map(interface).transpose()?;
    if scope.is_none() && address.is_unicast_link_local() {
        return Err(format!("a link-local address needs its interface, as {address}%eth0"));
    }
    Ok(vec![SocketAddrV6::new(address, port, 0, scope.unwrap_or(0)).into()])
}

/// Returns the number of an interface, which is given by its name or its number.
fn interface(zone: &str) -> Result<u32, String> {
    let numbered = || zone.parse().ok().filter(|&number| if_indextoname(number).is_ok());
    if_nametoindex(zone).ok().or_else(numbered).ok_or_else(|| format!("there is no interface `{zone}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let why = "a link-local address needs its interface, as fe80::1%eth0";
        assert_eq!(of("fe80::1"), Err(why.to_owned()));
    }
}
