//! Which hosts a request may name, and which pages of a browser may send it.
//!
//! A browser sends requests for any page that it shows. Two headers that pages cannot forge tell which one: `Host`, the name that the
//! page's address has, which somebody else's DNS may lead here (DNS rebinding), and `Origin`, the page's own address. An address in
//! `Host` is nobody's name, so it is always accepted.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use std::net::IpAddr;

/// The names under which a service is reached, beside addresses and `localhost`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hosts {
    names: Vec<String>,
    /// The origin of the API root that clients see.
    origin: Option<String>,
}

impl Hosts {
    /// Accepts these names, and that of a root such as `https://mec.example/lab`.
    pub(crate) fn new(names: &[String], root: Option<&str>) -> Hosts {
        let mut hosts = Hosts { names: names.to_vec(), origin: None };
        if let Some((scheme, rest)) = root.and_then(|root| root.split_once("://")) {
            let authority = rest.split('/').next().unwrap_or_default();
            hosts.names.extend(name(authority).map(str::to_owned));
            hosts.origin = Some(format!("{scheme}://{authority}"));
        }
        hosts
    }

    /// Returns whether the request names this service.
    pub(crate) fn accept(&self, headers: &HeaderMap) -> bool {
        let Some(name) = text(headers, header::HOST).and_then(name) else { return false };
        is_local(name) || self.names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Returns whether the request comes from a page of this service's, or from no page.
    pub(crate) fn is_own(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(header::ORIGIN) else { return true };
        let Ok(origin) = origin.to_str() else { return false };
        is_own_page(origin, text(headers, header::HOST))
            || self.origin.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(origin))
    }
}

/// Returns whether an `Origin` is that of a page of the host that the request names.
pub(crate) fn is_own_page(origin: &str, host: Option<&str>) -> bool {
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    authority.is_some() && authority == host
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok())
}

/// Returns the name in a `Host` header, without port and brackets.
pub(crate) fn name(host: &str) -> Option<&str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    if host.is_empty() || host.parse::<Authority>().is_err() || !host.bytes().all(plain) {
        return None;
    }
    match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(name, _)| name),
        None => host.split(':').next(),
    }
}

fn is_local(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// Parses a name under which a service is reached.
///
/// # Errors
/// What would be valid.
pub fn parse_host(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if text.is_empty() || text.len() > 253 || !text.bytes().all(is_plain) {
        return Err(format!("invalid host `{text}`: expected a name without a port, such as mec.example"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value"))).collect()
    }

    #[test]
    fn addresses_localhost_and_the_operators_names_are_accepted() {
        let hosts = Hosts::new(&["lab.example".to_owned()], Some("https://mec.example:444/lab"));
        let accepts = |host: &str| hosts.accept(&headers(&[("host", host)]));
        for host in ["127.0.0.1:8080", "10.0.0.1", "[::1]:8080", "LOCALHOST:1", "Lab.Example:80", "mec.example"] {
            assert!(accepts(host), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "a b", "[::1", "x@127.0.0.1"]
        {
            assert!(!accepts(host), "{host}");
        }
        assert!(!hosts.accept(&HeaderMap::new()));
    }

    #[test]
    fn a_page_of_another_origin_is_told_by_its_origin() {
        let hosts = Hosts::new(&[], Some("https://mec.example/lab"));
        let is_own = |origin: &str| hosts.is_own(&headers(&[("host", "localhost:8085"), ("origin", origin)]));
        assert!(hosts.is_own(&headers(&[("host", "localhost:8085")])));
        assert!(is_own("http://localhost:8085") && is_own("https://mec.example"));
        for origin in
            ["http://localhost:8086", "http://evil.example", "null", "", "localhost:8085", "http://mec.example"]
        {
            assert!(!is_own(origin), "{origin}");
        }
    }

    #[test]
    fn names_have_no_port() {
        assert_eq!(parse_host("mec.example").as_deref(), Ok("mec.example"));
        for text in ["", "mec.example:80", "http://mec.example", "a b", "*"] {
            assert!(parse_host(text).is_err(), "{text}");
        }
    }
}
