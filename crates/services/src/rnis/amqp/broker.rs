//! Where a broker is, who logs in, and which authorities are trusted.

use super::super::settings::Error;
use rnis::amqp::{Login, ShortText};
use std::fmt;
use std::net::Ipv6Addr;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::ServerName;

/// The ports of brokers, without and with TLS.
const PORTS: [u16; 2] = [5672, 5671];
/// The user of a broker that knows no other, and its password.
const GUEST: &str = "guest";
/// The longest file of credentials, in bytes.
const LONGEST_CREDENTIALS: u64 = 1024;

/// A broker.
#[derive(Clone)]
pub struct Broker {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) login: Login,
    pub(super) tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl fmt::Debug for Broker {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("Broker").field(&self.name()).finish()
    }
}

impl PartialEq for Broker {
    fn eq(&self, other: &Broker) -> bool {
        (&self.host, self.port, &self.login) == (&other.host, other.port, &other.login)
            && self.tls.is_some() == other.tls.is_some()
    }
}

/// A user and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    user: ShortText,
    password: ShortText,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Credentials(..)")
    }
}

impl Credentials {
    /// Parses `USER:PASSWORD`.
    pub fn parse(text: &str) -> Option<Credentials> {
        let (user, password) = text.split_once(':')?;
        let credentials = Credentials { user: ShortText::new(user)?, password: ShortText::new(password)? };
        (!user.is_empty()).then_some(credentials)
    }

    /// Reads a file with a line `USER:PASSWORD`, which others than its owner and its group cannot read.
    ///
    /// # Errors
    /// What is wrong with the file; its contents are not repeated.
    pub fn read(path: &Path) -> Result<Credentials, Error> {
        let wrong = |why: String| Error(format!("credentials {}: {why}", path.display()));
        let text = disk::secret(path, LONGEST_CREDENTIALS).map_err(|why| wrong(why.to_string()))?;
        Credentials::parse(&text).ok_or_else(|| wrong("expected one line with USER:PASSWORD".into()))
    }
}

impl Broker {
    /// Parses `amqp://HOST[:PORT][/VHOST]`, or the same with `amqps` for TLS. The user is `guest` until there are credentials.
    /// A password in a URL is refused: others on this machine can read command lines, and URLs are copied into logs.
    ///
    /// # Errors
    /// What is wrong, without the text: it may contain a password.
    pub fn parse(text: &str) -> Result<Broker, Error> {
        let form = "expected amqp://HOST[:PORT][/VHOST] or amqps://HOST[:PORT][/VHOST]";
        let invalid = |why: &str| Error(format!("invalid AMQP URL: {why}"));
        let (scheme, rest) = text.split_once("://").ok_or_else(|| invalid(form))?;
        let is_tls = match scheme {
            "amqp" => false,
            "amqps" => true,
            _ => return Err(invalid(form)),
        };
        if rest.contains('@') {
            return Err(invalid(
                "user and password belong in a file that others cannot read; give its name with --amqp-credentials",
            ));
        }
        let (authority, vhost) = rest.split_once('/').map_or((rest, None), |(host, vhost)| (host, Some(vhost)));
        let (host, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => {
                host.parse::<Ipv6Addr>().map_err(|_| invalid(form))?;
                (host, if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or_else(|| invalid(form))?) })
            }
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_plain) {
            return Err(invalid(form));
        }
        let port = match port {
            None => PORTS[usize::from(is_tls)],
            Some(port) => port.parse().ok().filter(|&port| port > 0).ok_or_else(|| invalid("the port is invalid"))?,
        };
        let vhost = vhost.map_or_else(|| Some("/".to_owned()), decoded);
        let vhost = vhost.and_then(|vhost| ShortText::new(&vhost)).ok_or_else(|| invalid("the VHOST is invalid"))?;
        let tls = is_tls.then(|| {
            let name = ServerName::try_from(host.to_owned());
            name.map(|name| (connector(None), name)).map_err(|_| invalid("the host cannot be a name in a certificate"))
        });
        let (user, password) = (guest(), guest());
        Ok(Broker { host: host.to_owned(), port, login: Login { user, password, vhost }, tls: tls.transpose()? })
    }

    /// Logs in with these credentials.
    #[must_use]
    pub fn with_credentials(mut self, credentials: Credentials) -> Broker {
        (self.login.user, self.login.password) = (credentials.user, credentials.password);
        self
    }

    /// Loads the authorities that may sign the broker's certificate: those in a file, or else those that the system trusts.
    ///
    /// # Errors
    /// A file that has none, a system without authorities, or a file for a broker without TLS.
    pub fn with_authorities(mut self, file: Option<&Path>) -> Result<Broker, Error> {
        let Some((connector, _)) = &mut self.tls else {
            return match file {
                None => Ok(self),
                Some(_) => Err(Error("--amqp-ca has no effect without amqps://".into())),
            };
        };
        let roots = match file {
            Some(path) => {
                let wrong = |why: String| Error(format!("--amqp-ca: {}: {why}", path.display()));
                let pem = disk::read(path, netio::tls::LARGEST).map_err(|why| wrong(why.to_string()))?;
                netio::tls::authorities(&pem).map_err(wrong)?
            }
            None => netio::tls::system_authorities().ok_or_else(|| {
                let what = "this system has no certificates of authorities (Debian's package ca-certificates has them)";
                Error(format!("{what}; give the broker's with --amqp-ca"))
            })?,
        };
        *connector = self::connector(Some(roots));
        Ok(self)
    }

    /// The broker without user and password.
    pub(in super::super) fn name(&self) -> String {
        let scheme = if self.tls.is_some() { "amqps" } else { "amqp" };
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        format!("{scheme}://{host}:{}", self.port)
    }
}

fn guest() -> ShortText {
    ShortText::new(GUEST).unwrap_or_default()
}

/// TLS 1.2 and 1.3 with these authorities; without any, no certificate is accepted.
fn connector(roots: Option<tokio_rustls::rustls::RootCertStore>) -> TlsConnector {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    // The provider has ciphers for both versions.
    let builder = builder.with_safe_default_protocol_versions().expect("the provider supports the default versions");
    let roots = roots.unwrap_or_else(tokio_rustls::rustls::RootCertStore::empty);
    Arc::new(builder.with_root_certificates(roots).with_no_client_auth()).into()
}

/// Decodes `%2f` and the like (RFC 3986, section 2.1).
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    loop {
        match rest {
            [] => return String::from_utf8(bytes).ok(),
            [b'%', high, low, more @ ..] => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                bytes.push((digit(*high)? * 16 + digit(*low)?) as u8);
                rest = more;
            }
            [b'%' | b'/' | b'?' | b'#', ..] => return None,
            [byte, more @ ..] => {
                bytes.push(*byte);
                rest = more;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_broker() {
        let vhost = |text: &str| Broker::parse(text).map(|broker| (broker.name(), broker.login.vhost.to_string()));
        for (url, name, expected) in [
            ("amqp://host", "amqp://host:5672", "/"),
            ("amqps://host", "amqps://host:5671", "/"),
            ("amqp://host:5673/%2f", "amqp://host:5673", "/"),
            ("amqp://10.0.0.1/", "amqp://10.0.0.1:5672", ""),
            ("amqps://[::1]:99/lab%20two", "amqps://[::1]:99", "lab two"),
        ] {
            assert_eq!(vhost(url), Ok((name.to_owned(), expected.to_owned())), "{url}");
        }
        for url in ["http://host", "host", "amqp://", "amqp://:5672", "amqp://h:0", "amqp://h:x", "amqp://h/a/b"]
            .into_iter()
            .chain(["amqp://h/%2", "amqp://h/%0a", "amqp://[::1", "amqp://[x]", "amqp://a b", "amqp://h?heartbeat=1"])
        {
            assert!(vhost(url).is_err_and(|why| why.0.starts_with("invalid AMQP URL: ")), "{url}");
        }
    }

    #[test]
    fn passwords_are_in_files_and_are_never_shown() {
        for url in ["amqp://user:secret@host", "amqps://user:secret@host", "http://user:secret@host", "user:secret"] {
            let fault = Broker::parse(url).expect_err(url).0;
            assert!(!fault.contains("secret"), "{fault}");
        }
        let fault = Broker::parse("amqp://user:secret@host").expect_err("it has a password").0;
        assert!(fault.contains("--amqp-credentials"), "{fault}");
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("credentials");
        std::fs::write(&path, "user:sec:ret\n").expect("there is room");
        let mode = |mode| std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode));
        mode(0o640).expect("it is ours");
        let credentials = Credentials::read(&path).expect("it is valid");
        let broker = Broker::parse("amqp://host").expect("it is valid").with_credentials(credentials.clone());
        assert_eq!(
            (broker.login.user.to_string(), broker.login.password.to_string()),
            ("user".into(), "sec:ret".into())
        );
        assert!(!format!("{broker:?} {credentials:?}").contains("ret"));
        mode(0o644).expect("it is ours");
        let why = Credentials::read(&path).expect_err("everybody can read it").0;
        assert!(why.contains("mode 0644") && !why.contains("ret"), "{why}");
        mode(0o600).expect("it is ours");
        for text in ["", "user", ":secret", "a\tb:c"] {
            std::fs::write(&path, text).expect("there is room");
            let why = Credentials::read(&path).expect_err(text).0;
            assert!(why.ends_with("expected one line with USER:PASSWORD"), "{why}");
        }
    }

    #[test]
    fn authorities_are_for_brokers_with_tls() {
        let fault = |url, file: &str| {
            let broker = Broker::parse(url).expect("it is valid");
            broker.with_authorities(Some(Path::new(file))).map(drop).map_err(|why| why.0)
        };
        assert_eq!(fault("amqp://h", "x"), Err("--amqp-ca has no effect without amqps://".into()));
        let none = "--amqp-ca: /nonexistent: No such file or directory (os error 2)";
        assert_eq!(fault("amqps://h", "/nonexistent"), Err(none.into()));
    }
}
