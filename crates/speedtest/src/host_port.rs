//! Where a server is, as users write it.

use std::net::Ipv6Addr;

/// A server's host and port, and the interface of a link-local address (its zone, RFC 4007).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPort<'a> {
    /// The name or the address, without brackets and zone.
    pub host: &'a str,
    /// The interface of an IPv6 address, by its name or number.
    pub zone: Option<&'a str>,
    /// The port, if it is given.
    pub port: Option<u16>,
}

impl<'a> HostPort<'a> {
    /// Parses `HOST` or `HOST:PORT`, where an IPv6 address has brackets (`[::1]:5231`) or no port. It may have a zone: `fe80::1%eth0`,
    /// `[fe80::1%eth0]:5231`. What can be read as an address without a port is one: see [`written_as_port`].
    ///
    /// # Errors
    /// What is wrong, and what would be valid.
    pub fn parse(server: &'a str) -> Result<HostPort<'a>, String> {
        if let Some(inside) = server.strip_prefix('[') {
            let (address, after) = inside.split_once(']').ok_or("`]` is missing")?;
            let place = address_alone(address)?.ok_or_else(|| format!("`{address}` is no IPv6 address"))?;
            return match after.strip_prefix(':') {
                Some(port) => Ok(HostPort { port: Some(parse_port(port)?), ..place }),
                None if after.is_empty() => Ok(place),
                None => Err("expected nothing or :PORT behind `]`".into()),
            };
        }
        if let Some(place) = address_alone(server)? {
            return Ok(place);
        }
        let (host, port) = server.rsplit_once(':').map_or((server, None), |(host, port)| (host, Some(port)));
        if host.contains(':') {
            return Err(in_brackets(host, port.unwrap_or_default()));
        }
        if host.is_empty() {
            return Err("the host is missing".into());
        }
        if host.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return Err("a host's name has no spaces or control characters".into());
        }
        Ok(HostPort { host, zone: None, port: port.map(parse_port).transpose()? })
    }
}

/// Returns how a bare IPv6 address is to be written if its last group was meant as a port: `[::1]:5231` for `::1:5231`.
pub fn written_as_port(server: &str) -> Option<String> {
    let (address, port) = server.rsplit_once(':')?;
    let is_ambiguous = server.parse::<Ipv6Addr>().is_ok() && address.parse::<Ipv6Addr>().is_ok();
    (is_ambiguous && parse_port(port).is_ok()).then(|| format!("[{address}]:{port}"))
}

/// Parses an IPv6 address, perhaps with a zone; `None` if it is none.
fn address_alone(text: &str) -> Result<Option<HostPort<'_>>, String> {
    let Some((host, zone)) = split_zone(text) else { return Ok(None) };
    match zone {
        Some("") => Err("the interface is missing behind `%`".into()),
        // No interface has this in its name.
        Some(zone) if zone.contains(':') => {
            let (address, port) = text.rsplit_once(':').unwrap_or((text, ""));
            Err(in_brackets(address, port))
        }
        zone => Ok(Some(HostPort { host, zone, port: None })),
    }
}

/// Splits an IPv6 address from what follows a `%`; `None` if it is none.
fn split_zone(text: &str) -> Option<(&str, Option<&str>)> {
    let (host, zone) = text.split_once('%').map_or((text, None), |(host, zone)| (host, Some(zone)));
    host.parse::<Ipv6Addr>().is_ok().then_some((host, zone))
}

fn parse_port(text: &str) -> Result<u16, String> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&port| is_number && port > 0).ok_or_else(|| "invalid port; expected 1 to 65535".into())
}

fn in_brackets(address: &str, port: &str) -> String {
    let is_valid = |zone: &str| !zone.is_empty() && !zone.contains(':');
    let is_address = split_zone(address).is_some_and(|(_, zone)| zone.is_none_or(is_valid));
    let written =
        if is_address && parse_port(port).is_ok() { format!("[{address}]:{port}") } else { "[::1]:5231".into() };
    format!("an IPv6 address with a port has brackets, as {written}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_a_name_or_an_address_with_or_without_port_and_zone() {
        let of = |host, zone, port| Ok(HostPort { host, zone, port });
        for (server, expected) in [
            ("example.org", of("example.org", None, None)),
            ("example.org:80", of("example.org", None, Some(80))),
            ("192.0.2.1:5231", of("192.0.2.1", None, Some(5231))),
            ("::1", of("::1", None, None)),
            ("[::1]", of("::1", None, None)),
            ("[::1]:5231", of("::1", None, Some(5231))),
            ("::1:5231", of("::1:5231", None, None)),
            ("fe80::1%lo", of("fe80::1", Some("lo"), None)),
            ("fe80::1%2", of("fe80::1", Some("2"), None)),
            ("[fe80::1%eth0]", of("fe80::1", Some("eth0"), None)),
            ("[fe80::1%eth0.7]:5231", of("fe80::1", Some("eth0.7"), Some(5231))),
        ] {
            assert_eq!(HostPort::parse(server), expected, "{server}");
        }
    }

    #[test]
    fn what_is_no_server_has_one_line_that_tells_why() {
        let port = "invalid port; expected 1 to 65535";
        let brackets = |written: &str| format!("an IPv6 address with a port has brackets, as {written}");
        for (server, expected) in [
            ("h:0", port.to_owned()),
            ("h:65536", port.to_owned()),
            ("h:", port.to_owned()),
            ("[::1]:x", port.to_owned()),
            ("", "the host is missing".to_owned()),
            (":5231", "the host is missing".to_owned()),
            ("[::1", "`]` is missing".to_owned()),
            ("[h]:5231", "`h` is no IPv6 address".to_owned()),
            ("[::1]5231", "expected nothing or :PORT behind `]`".to_owned()),
            ("fe80::1%", "the interface is missing behind `%`".to_owned()),
            ("fe80::1%lo:5231", brackets("[fe80::1%lo]:5231")),
            ("1:2:3:4:5:6:7:8:5231", brackets("[1:2:3:4:5:6:7:8]:5231")),
            ("a:b:c", brackets("[::1]:5231")),
        ] {
            assert_eq!(HostPort::parse(server), Err(expected), "{server}");
        }
    }

    #[test]
    fn an_address_that_could_end_with_a_port_has_another_reading() {
        assert_eq!(written_as_port("::1:5231").as_deref(), Some("[::1]:5231"));
        assert_eq!(written_as_port("2001:db8::5:80").as_deref(), Some("[2001:db8::5]:80"));
        // Not a decimal number; no address before it; brackets; no address at all.
        for server in ["::1:abcd", "2001:db8::1", "1:2:3:4:5:6:7:8", "[::1:5231]", "[::1]:5231", "h:80"] {
            assert_eq!(written_as_port(server), None, "{server}");
        }
    }

    #[test]
    fn any_text_is_a_server_or_an_error() {
        bolero::check!().with_type::<String>().for_each(|server| {
            let _ = (HostPort::parse(server), written_as_port(server));
        });
    }
}
