//! Who may see the page and give commands.
//!
//! On the loopback interface everybody on this machine may look, unless what is shown is not everybody's; commands need the
//! token. Beyond it, everything needs the token. Two things keep scripts of other pages in the same browser out:
//! the token's cookie is `SameSite=Strict`, and on the loopback interface the request must name an address or `localhost`, so
//! that a name which somebody else's DNS leads here does not help. But a browser sends the cookie to other ports of the same
//! host, too.

use crate::secret;
use crate::server::Hosts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use netio::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The environment variable that gives the token, for a page or a scraper that outlives a run.
pub const TOKEN_VARIABLE: &str = "RANWAY_DASHBOARD_TOKEN";
/// The shortest token that is accepted from there.
const SHORTEST_TOKEN: usize = 16;
/// The header that a command needs: no form of another page can add it.
pub(super) const COMMAND_HEADER: &str = "x-ranway";

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To see the page, its data and the metrics, whose labels are names on the page.
    See,
    /// To give a command.
    Command,
}

/// Who may do what.
#[derive(Debug)]
pub(super) struct Access {
    address: SocketAddr,
    token: String,
    is_private: bool,
}

impl Access {
    /// The rules at `address`. Without a `token`, one is made; what is private (`is_private`) is shown with the token alone.
    ///
    /// # Errors
    /// [`Error::Wrong`] for a token that is too short or cannot be sent.
    pub(super) fn new(address: SocketAddr, token: Option<&str>, is_private: bool) -> Result<Access, Error> {
        let token = match token {
            None => random()?,
            Some(token) if token.len() < SHORTEST_TOKEN || !token.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                return Err(Error::Wrong(format!(
                    "invalid token (--dashboard-token or {TOKEN_VARIABLE}): use {SHORTEST_TOKEN} or more letters and digits"
                )));
            }
            Some(token) => token.to_owned(),
        };
        Ok(Access { address, token, is_private })
    }

    /// Returns the page's address, with the token if anything needs it (`is_needed`).
    pub(super) fn url(&self, is_needed: bool) -> String {
        let host = match self.address.ip() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) | IpAddr::V6(Ipv6Addr::UNSPECIFIED) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            ip => ip,
        };
        let address = SocketAddr::new(host, self.address.port());
        if is_needed || self.is_private || !self.is_local() {
            format!("http://{address}/?token={}", self.token)
        } else {
            format!("http://{address}/")
        }
    }

    fn is_local(&self) -> bool {
        self.address.ip().is_loopback()
    }

    /// Returns the cookie that lets a browser in. Cookies do not know ports, so its name does:
    /// several dashboards do not replace each other's.
    pub(super) fn cookie(&self) -> HeaderValue {
        let text = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name(), self.token);
        HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
    }

    fn cookie_name(&self) -> String {
        format!("ranway-{}", self.address.port())
    }

    /// Whether `token` is the right one, in a time that does not tell how much of it is.
    pub(super) fn is_token(&self, token: &str) -> bool {
        secret::is_same(&self.token, token)
    }

    /// Checks a request.
    ///
    /// # Errors
    /// The status and the text of the refusal.
    pub(super) fn check(&self, headers: &HeaderMap, purpose: Purpose) -> Result<(), (StatusCode, &'static str)> {
        let hosts = Hosts::default();
        if self.is_local() && !hosts.accept(headers) {
            return Err((StatusCode::FORBIDDEN, "the page is at 127.0.0.1 or localhost, not at this name\n"));
        }
        let bearer = secret::bearer(headers);
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let name = self.cookie_name();
        let mut cookies = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let has_token = bearer.is_some_and(|token| self.is_token(token))
            || cookies.any(|(of, token)| of == name && self.is_token(token));
        let needs_token = !self.is_local()
            || match purpose {
                Purpose::See => self.is_private,
                Purpose::Command => true,
            };
        if needs_token && !has_token {
            return Err((
                StatusCode::UNAUTHORIZED,
                "a token is needed: open the address that the command printed, or /?token=TOKEN, or send `Authorization: \
                 Bearer TOKEN`\n",
            ));
        }
        if purpose == Purpose::Command && (headers.get(COMMAND_HEADER).is_none() || !hosts.is_own(headers)) {
            return Err((StatusCode::FORBIDDEN, "commands come from the page: the header `X-Ranway` is missing\n"));
        }
        Ok(())
    }
}

/// Returns 128 random bits as text.
pub(super) fn random() -> Result<String, Error> {
    let bytes = secret::random().map_err(|why| Error::Wrong(format!("no random numbers: {why}")))?;
    Ok(secret::hexadecimal(&bytes))
}

/// Parses the address of a dashboard: an address and a port, either of them alone, or `localhost` and a port.
///
/// # Errors
/// What would be valid.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let local = |port| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
    let plain = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let of_port = || text.strip_prefix("localhost:").unwrap_or(text).parse().ok().map(local);
    let of_ip = || plain.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 0));
    text.parse().ok().or_else(of_port).or_else(of_ip).ok_or_else(|| {
        format!(
            "`{text}` is not an address: use IP:PORT, IP or PORT, as in 127.0.0.1:8080; without one, put --dashboard after \
             the other arguments"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value"))).collect()
    }

    fn status(access: &Access, all: &[(&'static str, &str)], purpose: Purpose) -> u16 {
        access.check(&headers(all), purpose).map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn on_loopback_everybody_looks_and_the_token_commands() {
        let access = Access::new(([127, 0, 0, 1], 8080).into(), Some(TOKEN), false).expect("a token");
        let host = ("host", "localhost:8080");
        assert_eq!(status(&access, &[host], Purpose::See), 200);
        assert_eq!(status(&access, &[host, ("x-ranway", "1")], Purpose::Command), 401);
        let cookie = format!("other=1; ranway-8080={TOKEN}");
        let with = [host, ("cookie", cookie.as_str())];
        assert_eq!(status(&access, &with, Purpose::Command), 403, "the header is missing");
        let command = [with[0], with[1], ("x-ranway", "1")];
        assert_eq!(status(&access, &command, Purpose::Command), 200);
        let origin = |origin| [command[0], command[1], command[2], ("origin", origin)];
        assert_eq!(status(&access, &origin("http://localhost:8080"), Purpose::Command), 200);
        for other in ["http://evil.example", "null", "http://localhost:8081"] {
            assert_eq!(status(&access, &origin(other), Purpose::Command), 403, "{other}");
        }
        let other_port = format!("ranway-8081={TOKEN}");
        assert_eq!(status(&access, &[host, ("cookie", &other_port), ("x-ranway", "1")], Purpose::Command), 401);
        assert_eq!((access.url(false), access.url(true)), {
            let url = "http://127.0.0.1:8080/";
            (url.to_owned(), format!("{url}?token={TOKEN}"))
        });
    }

    #[test]
    fn a_name_that_is_not_this_machines_is_refused_on_loopback() {
        let access = Access::new(([127, 0, 0, 1], 8080).into(), None, false).expect("a token");
        for host in ["127.0.0.1:8080", "127.0.0.1", "[::1]:8080", "LOCALHOST:1"] {
            assert_eq!(status(&access, &[("host", host)], Purpose::See), 200, "{host}");
        }
        for host in ["evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "", "a b", "[::1"] {
            assert_eq!(status(&access, &[("host", host)], Purpose::See), 403, "{host}");
        }
        assert_eq!(status(&access, &[], Purpose::See), 403);
    }

    #[test]
    fn beyond_loopback_and_for_what_is_private_everything_needs_the_token() {
        let bearer = format!("Bearer {TOKEN}");
        for access in [
            Access::new(([0, 0, 0, 0], 80).into(), Some(TOKEN), false),
            Access::new(([127, 0, 0, 1], 80).into(), Some(TOKEN), true),
        ] {
            let (access, host) = (access.expect("a token"), ("host", "127.0.0.1"));
            assert_eq!(status(&access, &[host], Purpose::See), 401);
            for wrong in ["Bearer ", "Bearer 0", "Basic x", &bearer[..bearer.len() - 1], &format!("{bearer}0")] {
                assert_eq!(status(&access, &[host, ("authorization", wrong)], Purpose::See), 401, "{wrong}");
            }
            assert_eq!(status(&access, &[host, ("authorization", &bearer)], Purpose::See), 200);
            assert!(access.url(false).ends_with(&format!("/?token={TOKEN}")));
        }
        assert!(Access::new(([0, 0, 0, 0], 80).into(), Some("short"), false).is_err());
        assert!(Access::new(([0, 0, 0, 0], 80).into(), Some("0123456789abcde\r\n"), false).is_err());
    }

    #[test]
    fn addresses_are_whole_or_in_part() {
        for (text, address) in [
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("8080", "127.0.0.1:8080"),
            ("localhost:80", "127.0.0.1:80"),
            ("0.0.0.0", "0.0.0.0:0"),
            ("[::]:9", "[::]:9"),
            ("::1", "[::1]:0"),
            ("[::1]", "[::1]:0"),
        ] {
            assert_eq!(parse_address(text).map(|address| address.to_string()), Ok(address.to_owned()));
        }
        for text in ["", "dumbbell", "99999", "localhost", "1.2.3", "example.org:80", ":80"] {
            assert!(parse_address(text).is_err_and(|why| why.contains("IP:PORT")), "{text}");
        }
    }
}
