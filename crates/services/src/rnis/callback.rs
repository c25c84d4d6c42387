//! Posting notifications to the URIs that subscribers named.
//!
//! A subscriber chooses where this service connects to. So that nobody can use it to reach hosts that only the service reaches
//! (server-side request forgery), a [`CallbackPolicy`] restricts the addresses. The name of a host is resolved once per
//! delivery, the resolved address is checked, and the connection is made to that address. Redirects are not followed. The reply
//! is read up to a bound and thrown away.

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request, Uri, header};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Names of hosts that are looked up at a time. Each takes a thread of the runtime's, and inputs read files and standard input on
/// such threads, too: name servers that do not answer must not take them all.
static LOOKUPS: Semaphore = Semaphore::const_new(64);

/// The most bytes of a reply that are read.
const LONGEST_REPLY: usize = 16 * 1024;

/// Which hosts notifications may be posted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackPolicy {
    rules: Vec<Rule>,
}

/// A host that is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// Every host.
    Any,
    /// The host that subscribed, by its own address.
    Requester,
    /// A host by name, whatever address it has.
    Host(String),
    /// Addresses with these leading bits.
    Network(IpAddr, u8),
}

impl Default for CallbackPolicy {
    /// Allows the host that subscribed, and no other.
    fn default() -> CallbackPolicy {
        CallbackPolicy { rules: vec![Rule::Requester] }
    }
}

impl CallbackPolicy {
    /// Parses rules: `self` (the host that subscribed), `any`, `10.0.0.0/8`, `2001:db8::1` or a host name. Without a rule, the
    /// default applies.
    pub fn parse<S: AsRef<str>>(rules: &[S]) -> Result<CallbackPolicy, String> {
        if rules.is_empty() {
            return Ok(CallbackPolicy::default());
        }
        let rules: Result<_, String> = rules.iter().map(|rule| rule.as_ref().parse()).collect();
        Ok(CallbackPolicy { rules: rules? })
    }

    fn allows(&self, host: &str, address: IpAddr, requester: IpAddr) -> bool {
        let address = address.to_canonical();
        self.rules.iter().any(|rule| match rule {
            Rule::Any => true,
            Rule::Requester => address == requester.to_canonical(),
            Rule::Host(name) => name.eq_ignore_ascii_case(host),
            Rule::Network(network, bits) => is_in(address, *network, *bits),
        })
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Rule, String> {
        let invalid = || format!("invalid callback rule `{text}`: expected self, any, an address, a network or a host");
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| invalid())?)),
            None => (text, None),
        };
        if let Ok(address) = address.parse::<IpAddr>() {
            let all = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.unwrap_or(all);
            return if bits <= all { Ok(Rule::Network(address, bits)) } else { Err(invalid()) };
        }
        let is_name =
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        match text {
            "any" => Ok(Rule::Any),
            "self" => Ok(Rule::Requester),
            name if is_name => Ok(Rule::Host(name.to_owned())),
            _ => Err(invalid()),
        }
    }
}

/// Returns whether an address has the leading bits of a network.
fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            address.to_bits() & mask == network.to_bits() & mask
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            address.to_bits() & mask == network.to_bits() & mask
        }
        _ => false,
    }
}

/// A callback URI that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    host: String,
    port: u16,
    authority: String,
    path: String,
    requester: IpAddr,
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
            Undelivered::Forbidden(host) => write!(to, "the host {host} is not allowed (--allow-callback)"),
            Undelivered::Unresolved(host) => write!(to, "the host {host} has no address"),
            Undelivered::Unreachable(why) => why.fmt(to),
            Undelivered::Http(why) => why.fmt(to),
            Undelivered::Status(status) => write!(to, "the reply was {status} instead of 204"),
            Undelivered::TimedOut => to.write_str("timed out"),
        }
    }
}

impl Target {
    /// Checks the URI that a `requester` named. The address of a host name is checked at each delivery.
    pub(super) fn parse(uri: &str, requester: IpAddr, policy: &CallbackPolicy) -> Result<Target, Refused> {
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
        if host.is_empty() {
            return Err(Refused::Invalid("`callbackReference` has no host"));
        }
        if let Ok(address) = host.parse::<IpAddr>()
            && !policy.allows(&host, address, requester)
        {
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
        Ok(Target { host, port, authority: authority.to_string(), path, requester })
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
        let allowed = addresses.into_iter().find(|to| policy.allows(&self.host, to.ip(), self.requester));
        let address = allowed.ok_or_else(|| Undelivered::Forbidden(self.host.clone()))?;
        let stream = TcpStream::connect(address).await.map_err(Undelivered::Unreachable)?;
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

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 5));

    fn parse(uri: &str, rules: &[&str]) -> Result<Target, Refused> {
        Target::parse(uri, PEER, &CallbackPolicy::parse(rules).expect("the rules are valid"))
    }

    #[test]
    fn by_default_a_host_may_name_itself_only() {
        assert!(parse("http://10.0.0.5:8080/x", &[]).is_ok());
        for uri in ["http://169.254.169.254/latest", "http://127.0.0.1/", "http://[::1]/", "http://10.0.0.6/"] {
            assert_eq!(parse(uri, &[]), Err(Refused::Forbidden), "{uri}");
        }
        assert!(parse("http://[::ffff:10.0.0.5]/", &[]).is_ok());
    }

    #[test]
    fn rules_are_networks_names_or_any() {
        for (rule, uri, allowed) in [
            ("10.0.0.0/8", "http://10.255.0.1/", true),
            ("10.0.0.0/8", "http://11.0.0.1/", false),
            ("0.0.0.0/0", "http://11.0.0.1/", true),
            ("2001:db8::/32", "http://[2001:db8:1::]/", true),
            ("::/0", "http://[2001:db8:1::]/", true),
            ("192.0.2.1", "http://192.0.2.1/", true),
            ("any", "http://192.0.2.2/", true),
            ("192.0.2.0/24", "http://10.0.0.5/", false),
        ] {
            assert_eq!(parse(uri, &[rule]).is_ok(), allowed, "{rule} {uri}");
        }
        for rule in ["10.0.0.0/33", "10.0.0.0/x", "", "a b", "http://x"] {
            assert!(CallbackPolicy::parse(&[rule]).is_err(), "{rule}");
        }
    }

    #[test]
    fn only_plain_http_uris_are_callbacks() {
        for uri in ["https://10.0.0.5/", "ftp://10.0.0.5/", "/x", "http://user:secret@10.0.0.5/", "x"] {
            assert!(matches!(parse(uri, &[]), Err(Refused::Invalid(_))), "{uri}");
        }
        for port in ["0", "65536", "99999", "x", "+80", "-1"] {
            for host in ["10.0.0.5", "[::ffff:10.0.0.5]", "localhost"] {
                let refused = parse(&format!("http://{host}:{port}/x"), &[]);
                assert!(matches!(refused, Err(Refused::Invalid(_))), "{host}:{port}: {refused:?}");
            }
        }
        let port = |uri| parse(uri, &[]).expect("it is valid").port;
        assert_eq!(["http://10.0.0.5", "http://10.0.0.5:/", "http://10.0.0.5:65535/"].map(port), [80, 80, 65_535]);
    }

    #[test]
    fn no_rule_and_no_uri_leads_to_a_host_outside_of_the_rule() {
        bolero::check!().with_iterations(5000).with_type::<(String, [u8; 4], u8, u16, String)>().for_each(
            |(rule, host, bits, port, rest)| {
                let _ = CallbackPolicy::parse(&[rule]);
                let bits = bits % 33;
                let policy = CallbackPolicy::parse(&[format!("10.0.0.5/{bits}")]).expect("it is a network");
                let address = IpAddr::from(*host);
                let is_inside = is_in(address, PEER, bits);
                for uri in [
                    format!("http://{address}:{port}/{rest}"),
                    format!("http://[::ffff:{address}]{rest}"),
                    format!("http://{rest}@{address}/"),
                    rest.clone(),
                ] {
                    if let Ok(target) = Target::parse(&uri, PEER, &policy)
                        && let Ok(named) = target.host.parse::<IpAddr>()
                    {
                        assert!(policy.allows(&target.host, named, PEER), "{uri}");
                        assert!(is_inside || named.to_canonical() != address, "{uri}");
                    }
                }
            },
        );
    }

    #[tokio::test]
    async fn a_name_that_resolves_to_a_forbidden_address_is_refused_at_delivery() {
        let policy = CallbackPolicy::default();
        let target = Target::parse("http://localhost:9/", PEER, &policy).expect("the name is not resolved yet");
        let fault = target.post("{}".into(), &policy, Duration::from_secs(5)).await.expect_err("it is forbidden");
        assert!(matches!(fault, Undelivered::Forbidden(_)), "{fault}");
    }
}
