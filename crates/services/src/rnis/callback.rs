//! Posting notifications to the URIs that subscribers named.
//!
//! A subscriber chooses where this service connects to. So that nobody can use it to reach hosts that only the service reaches
//! (server-side request forgery), a [`CallbackPolicy`] restricts the addresses, by the operator's networks alone: where a request
//! comes from means nothing, since behind a reverse proxy all of them come from this machine. The name of a host is resolved once per
//! delivery, all its addresses are checked, and the connection is made to one of them. Redirects are not followed. The reply is read
//! up to a bound and thrown away.

use crate::server::Network;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request, Uri, header};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Names of hosts that are looked up at a time. Each takes a thread of the runtime's, and inputs read files and standard input on
/// such threads, too: name servers that do not answer must not take them all.
static LOOKUPS: Semaphore = Semaphore::const_new(64);

/// The longest name of a host (RFC 1035, section 2.3.4).
const LONGEST_HOST: usize = 253;
/// The most bytes of a reply that are read.
const LONGEST_REPLY: usize = 16 * 1024;

/// Networks that notifications may be posted to, none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallbackPolicy {
    networks: Vec<Network>,
}

/// Blocks that are not of the public Internet, or lead to such blocks (the registries of RFC 6890, and RFC 4291, section 2.5.5, for
/// the last one, to which unspecified and loopback addresses belong). A network that is larger than one of them does not include it:
/// `0.0.0.0/0` means all public addresses.
const SPECIAL: [Network; 30] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    // Cloud providers' metadata are at 169.254.169.254.
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
    // NAT64 (RFC 6052, RFC 8215), the discard prefix, Teredo and others, documentation, 6to4, segment routing.
    v6([0x64, 0xff9b, 0, 0], 96),
    v6([0x64, 0xff9b, 1, 0], 48),
    v6([0x100, 0, 0, 0], 64),
    v6([0x2001, 0, 0, 0], 23),
    v6([0x2001, 0xdb8, 0, 0], 32),
    v6([0x2002, 0, 0, 0], 16),
    v6([0x3fff, 0, 0, 0], 20),
    v6([0x5f00, 0, 0, 0], 16),
    v6([0xfc00, 0, 0, 0], 7),
    // Metadata of a cloud provider, among the unique local addresses.
    v6([0xfd00, 0xec2, 0, 0], 32),
    v6([0xfe80, 0, 0, 0], 10),
    v6([0xfec0, 0, 0, 0], 10),
    v6([0xff00, 0, 0, 0], 8),
    v6([0, 0, 0, 0], 96),
    v6([0, 0, 0, 0], 8),
];

const fn v4(address: [u8; 4], bits: u8) -> Network {
    let [a, b, c, d] = address;
    Network::of(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits)
}

const fn v6(begin: [u16; 4], bits: u8) -> Network {
    let [a, b, c, d] = begin;
    Network::of(IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)), bits)
}

impl CallbackPolicy {
    /// Allows these networks.
    pub fn new(networks: Vec<Network>) -> CallbackPolicy {
        CallbackPolicy { networks }
    }

    fn allows(&self, address: IpAddr) -> bool {
        let mut containing = self.networks.iter().filter(|network| network.contains(address));
        containing
            .any(|network| SPECIAL.iter().filter(|block| block.contains(address)).all(|block| network.is_in(block)))
    }
}

/// A callback URI that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    host: String,
    port: u16,
    authority: String,
    path: String,
}

/// The reason why a callback URI is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is no URI that notifications can be posted to.
    Invalid(&'static str),
    /// The operator does not allow its host.
    Forbidden,
}

/// The reason why a notification was not delivered.
#[derive(Debug)]
pub(super) enum Undelivered {
    Forbidden(String),
    Unresolved(String),
    Unreachable(std::io::Error),
    Http(hyper::Error),
    Status(u16),
    TimedOut,
}

impl fmt::Display for Undelivered {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Undelivered::Forbidden(host) => {
                write!(to, "an address of the host {host} is not allowed (--callback-network)")
            }
            Undelivered::Unresolved(host) => write!(to, "the host {host} has no address"),
            Undelivered::Unreachable(why) => why.fmt(to),
            Undelivered::Http(why) => why.fmt(to),
            Undelivered::Status(status) => write!(to, "the reply was {status} instead of 204"),
            Undelivered::TimedOut => to.write_str("timed out"),
        }
    }
}

impl Target {
    /// Checks a URI. The addresses of a host name are checked at each delivery; without a permitted network, it is refused at once.
    pub(super) fn parse(uri: &str, policy: &CallbackPolicy) -> Result<Target, Refused> {
        let uri: Uri = uri.parse().map_err(|_| Refused::Invalid("`callbackReference` is not a URI"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => {
                return Err(Refused::Invalid("`callbackReference` must be an http URI; https is not supported"));
            }
            _ => return Err(Refused::Invalid("`callbackReference` must be an http URI")),
        }
        let authority = uri.authority().ok_or(Refused::Invalid("`callbackReference` has no host"))?;
        if authority.as_str().contains('@') {
            return Err(Refused::Invalid("`callbackReference` must not contain a user name"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() || host.len() > LONGEST_HOST {
            return Err(Refused::Invalid("`callbackReference` has no host, or one that is too long"));
        }
        if policy.networks.is_empty() || host.parse().is_ok_and(|address| !policy.allows(address)) {
            return Err(Refused::Forbidden);
        }
        // `Authority::port` does not tell an invalid port from none.
        let port = match authority.as_str().strip_prefix(authority.host()) {
            Some("" | ":") => Some(80),
            Some(rest) => rest.strip_prefix(':').and_then(port),
            None => None,
        };
        let port = port.ok_or(Refused::Invalid("`callbackReference` has an invalid port: expected 1 to 65535"))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Ok(Target { host, port, authority: authority.to_string(), path })
    }

    /// Posts a notification and waits for the reply.
    pub(super) async fn post(&self, body: String, policy: &CallbackPolicy, limit: Duration) -> Result<(), Undelivered> {
        timeout(limit, self.exchange(body, policy)).await.unwrap_or(Err(Undelivered::TimedOut))
    }

    async fn exchange(&self, body: String, policy: &CallbackPolicy) -> Result<(), Undelivered> {
        let addresses = resolve(&self.host, self.port).await;
        if addresses.is_empty() {
            return Err(Undelivered::Unresolved(self.host.clone()));
        }
        if !addresses.iter().all(|to| policy.allows(to.ip())) {
            return Err(Undelivered::Forbidden(self.host.clone()));
        }
        // One after the other, until one accepts. Nothing is resolved again.
        let stream = TcpStream::connect(&addresses[..]).await.map_err(Undelivered::Unreachable)?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(Undelivered::Http)?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(&self.path)
            .header(header::HOST, &self.authority)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONNECTION, "close")
            .body(Full::new(Bytes::from(body)));
        let request = request.map_err(|_| Undelivered::Unresolved(self.host.clone()))?;
        let reply = async {
            let reply = sender.send_request(request).await.map_err(Undelivered::Http)?;
            let status = reply.status();
            // Some clients fail if the connection closes before their reply was read.
            let _ = Limited::new(reply.into_body(), LONGEST_REPLY).collect().await;
            if status.is_success() { Ok(()) } else { Err(Undelivered::Status(status.as_u16())) }
        };
        tokio::pin!(reply);
        // The connection makes progress here and ends with this call, so no task outlives it.
        tokio::select! {
            result = &mut reply => result,
            result = connection => match result {
                Ok(()) => reply.await,
                Err(why) => Err(Undelivered::Http(why)),
            },
        }
    }
}

/// Returns the addresses of a host, none if it is unknown.
async fn resolve(host: &str, port: u16) -> Vec<SocketAddr> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return vec![SocketAddr::new(address, port)];
    }
    let Ok(permit) = LOOKUPS.acquire().await else { return Vec::new() };
    let host = host.to_owned();
    let look = move || {
        // A thread may wait for a name server long after its delivery was given up.
        let _permit = permit;
        (host.as_str(), port).to_socket_addrs().map(Iterator::collect).unwrap_or_default()
    };
    spawn_blocking(look).await.unwrap_or_default()
}

/// Returns the port, if it is one.
fn port(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&port| is_number && port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [&str; 2] = ["10.0.0.0/8", "::/0"];

    fn policy(networks: &[&str]) -> CallbackPolicy {
        CallbackPolicy::new(networks.iter().map(|text| text.parse().expect("it is a network")).collect())
    }

    fn parse(uri: &str, networks: &[&str]) -> Result<Target, Refused> {
        Target::parse(uri, &policy(networks))
    }

    #[test]
    fn without_networks_there_are_no_callbacks() {
        for uri in ["http://192.0.2.1/", "http://127.0.0.1/", "http://[::1]/", "http://host.example/"] {
            assert_eq!(parse(uri, &[]), Err(Refused::Forbidden), "{uri}");
        }
    }

    #[test]
    fn a_network_includes_special_addresses_only_if_it_is_within_their_block() {
        let everything = ["0.0.0.0/0", "::/0"];
        for address in ["8.8.8.8", "[2606:4700::1]"] {
            assert!(parse(&format!("http://{address}/"), &everything).is_ok(), "{address}");
        }
        for (address, network) in [
            ("127.0.0.1", "127.0.0.0/8"),
            ("0.0.0.0", "0.0.0.0"),
            ("10.0.0.6", "10.0.0.0/8"),
            ("172.20.0.1", "172.16.0.0/12"),
            ("192.168.1.1", "192.168.1.0/24"),
            ("169.254.169.254", "169.254.169.254"),
            ("100.100.100.200", "100.64.0.0/10"),
            ("224.0.0.1", "224.0.0.0/4"),
            ("255.255.255.255", "255.255.255.255"),
            ("[::1]", "::1"),
            ("[::]", "::"),
            ("[::ffff:127.0.0.1]", "127.0.0.1"),
            ("[::127.0.0.1]", "::127.0.0.1"),
            ("[64:ff9b::7f00:1]", "64:ff9b::/96"),
            ("[64:ff9b:1::1]", "64:ff9b:1::/48"),
            ("[2002:7f00:1::1]", "2002::/16"),
            ("[fe80::1]", "fe80::/10"),
            ("[fd12::1]", "fd00::/8"),
            ("[fd00:ec2::254]", "fd00:ec2::/32"),
            ("[ff02::1]", "ff00::/8"),
        ] {
            let uri = format!("http://{address}/");
            assert_eq!(parse(&uri, &everything), Err(Refused::Forbidden), "{address}");
            assert!(parse(&uri, &[network]).is_ok(), "{network} {address}");
        }
        assert_eq!(parse("http://[fd00:ec2::254]/", &["fd00::/8"]), Err(Refused::Forbidden));
        assert_eq!(parse("http://10.0.0.5/", &["192.0.2.0/24"]), Err(Refused::Forbidden));
    }

    #[test]
    fn only_plain_http_uris_are_callbacks() {
        for uri in ["https://10.0.0.5/", "ftp://10.0.0.5/", "/x", "http://user:secret@10.0.0.5/", "x"] {
            assert!(matches!(parse(uri, &ALL), Err(Refused::Invalid(_))), "{uri}");
        }
        for port in ["0", "65536", "99999", "x", "+80", "-1"] {
            for host in ["10.0.0.5", "[::ffff:10.0.0.5]", "localhost"] {
                let refused = parse(&format!("http://{host}:{port}/x"), &ALL);
                assert!(matches!(refused, Err(Refused::Invalid(_))), "{host}:{port}: {refused:?}");
            }
        }
        let port = |uri| parse(uri, &ALL).expect("it is valid").port;
        assert_eq!(["http://10.0.0.5", "http://10.0.0.5:/", "http://10.0.0.5:65535/"].map(port), [80, 80, 65_535]);
    }

    #[test]
    fn no_uri_leads_to_a_host_outside_of_the_network() {
        bolero::check!().with_iterations(5000).with_type::<([u8; 4], u8, u16, String)>().for_each(
            |(host, bits, port, rest)| {
                // Within 10.0.0.0/8, so no special block is in the way.
                let network: Network = format!("10.0.0.5/{}", 8 + bits % 25).parse().expect("it is a network");
                let policy = CallbackPolicy::new(vec![network]);
                let address = IpAddr::from(*host);
                for uri in [
                    format!("http://{address}:{port}/{rest}"),
                    format!("http://[::ffff:{address}]{rest}"),
                    format!("http://{rest}@{address}/"),
                    rest.clone(),
                ] {
                    if let Ok(target) = Target::parse(&uri, &policy)
                        && let Ok(named) = target.host.parse::<IpAddr>()
                    {
                        assert!(network.contains(named), "{uri}");
                    }
                }
            },
        );
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_a_forbidden_address_is_refused_at_delivery() {
        for networks in [&["0.0.0.0/0", "::/0"][..], &["192.0.2.0/24"]] {
            let policy = policy(networks);
            let target = Target::parse("http://localhost:9/", &policy).expect("the name is not resolved yet");
            let fault = target.post("{}".into(), &policy, Duration::from_secs(5)).await.expect_err("it is forbidden");
            assert!(matches!(fault, Undelivered::Forbidden(_)), "{fault}");
        }
    }
}
