//! TLS for connections to servers: who is trusted, and what an error means.
//!
//! Versions 1.2 and 1.3 (RFC 5246, RFC 8446), as the measurement server has them.

use std::path::PathBuf;
use std::sync::Arc;

use netio::tls::LARGEST;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::fault::Fault;

/// Names of a certificate that are shown, and the longest of them.
const NAMES: usize = 3;
const LONGEST_NAME: usize = 80;

/// Who may sign the certificates of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The authorities that this system trusts.
    System,
    /// The authorities in a file (PEM), and nobody else.
    File(PathBuf),
    /// Anyone. The connection is encrypted, and nobody knows with whom.
    Anyone,
}

/// The client's side of TLS.
#[derive(Clone, Debug)]
pub struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Loads the authorities.
    ///
    /// # Errors
    /// [`Fault::Option`]: a file that is none, or a system without authorities.
    pub fn new(trust: &Trust) -> Result<Tls, Fault> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().map_err(|why| Fault::Tls(format!("TLS: {why}")))?;
        let config = match trust {
            Trust::Anyone => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(NoVerifier(provider)))
                .with_no_client_auth(),
            Trust::System => builder.with_root_certificates(system()?).with_no_client_auth(),
            Trust::File(path) => builder.with_root_certificates(read(path)?).with_no_client_auth(),
        };
        Ok(Tls(Arc::new(config)))
    }

    /// Begins a connection with the server of this name or address.
    pub(crate) fn session(&self, name: &str) -> Result<ClientConnection, Fault> {
        let invalid = |_| Fault::Option(format!("`{name}` cannot be a name in a certificate"));
        let name = ServerName::try_from(name.to_owned()).map_err(invalid)?;
        ClientConnection::new(Arc::clone(&self.0), name).map_err(|why| Fault::Tls(explain(&why, true)))
    }
}

/// The authorities of this system.
fn system() -> Result<RootCertStore, Fault> {
    netio::tls::system_authorities().ok_or_else(|| {
        let what = "this system has no certificates of authorities (Debian's package ca-certificates has them)";
        Fault::Option(format!("{what}; give the server's with --ca"))
    })
}

/// The authorities in a file.
fn read(path: &std::path::Path) -> Result<RootCertStore, Fault> {
    let wrong = |why: &str| Fault::Option(format!("--ca: {}: {why}", path.display()));
    let text = disk::read(path, LARGEST).map_err(|why| wrong(&why.to_string()))?;
    netio::tls::authorities(&text).map_err(|why| wrong(&why))
}

/// Says in one line what an error means: during the handshake (`is_new`), or later.
pub(crate) fn explain(error: &rustls::Error, is_new: bool) -> String {
    use rustls::Error;
    match error {
        Error::InvalidCertificate(why) => format!("the server's certificate {}", refusal(why)),
        Error::InvalidMessage(_) if is_new => {
            "the server does not answer with TLS: measure without it, or ask for its port".into()
        }
        Error::AlertReceived(alert) => format!("the server refuses TLS: {alert:?}"),
        Error::PeerIncompatible(why) => format!("the server has no version or cipher of TLS that is safe: {why:?}"),
        other => format!("TLS: {other}"),
    }
}

/// What is wrong with a certificate.
fn refusal(why: &CertificateError) -> String {
    use CertificateError as Why;
    match why {
        // An authority of the same name that has not signed it is none.
        Why::UnknownIssuer | Why::BadSignature => {
            "is signed by no authority that is trusted here; give its authority with --ca, or do without any \
                               with --insecure"
                .into()
        }
        Why::NotValidForNameContext { expected, presented } => {
            let shown = |name: &String| {
                let name = name.trim_start_matches("DnsName(").trim_start_matches("IpAddress(").trim_end_matches(')');
                name.chars().filter(|c| c.is_ascii_graphic() && *c != '"').take(LONGEST_NAME).collect::<String>()
            };
            let names: Vec<String> = presented.iter().take(NAMES).map(shown).collect();
            let more = if presented.len() > NAMES { " and others" } else { "" };
            let valid = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
            format!("is not valid for `{}`, but for {valid}{more}", expected.to_str())
        }
        Why::NotValidForName => "is not valid for the server's name".into(),
        Why::Expired | Why::ExpiredContext { .. } => "has expired".into(),
        Why::NotValidYet | Why::NotValidYetContext { .. } => "is not valid yet; check this host's clock".into(),
        Why::Revoked => "was revoked".into(),
        other => {
            let why: String = other.to_string().chars().filter(|c| !c.is_control()).take(2 * LONGEST_NAME).collect();
            format!("is not valid: {why}; --insecure accepts it")
        }
    }
}

/// Accepts any certificate. The server still has to prove that it has the certificate's key.
#[derive(Debug)]
struct NoVerifier(Arc<CryptoProvider>);

impl ServerCertVerifier for NoVerifier {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_have_no_authorities_are_named() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let load = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("there is room");
            Tls::new(&Trust::File(path)).map(drop).map_err(|why| why.to_string())
        };
        let why = load("empty", "").expect_err("it has none");
        assert!(why.starts_with("--ca: ") && why.ends_with("empty: expected a certificate in PEM form"), "{why}");
        let damaged = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let why = load("damaged", damaged).expect_err("it is none");
        assert!(why.starts_with("--ca: ") && !why.contains('\n'), "{why}");
        let why = Tls::new(&Trust::File("/nonexistent".into())).map(drop).expect_err("there is none").to_string();
        assert_eq!(why, "--ca: /nonexistent: No such file or directory (os error 2)");
    }

    #[test]
    fn names_of_a_certificate_are_shown_in_one_line() {
        let expected = ServerName::try_from("a.example").expect("a name");
        let presented = ["DnsName(\"b.example\")", "evil\n\u{1b}[2J", "c", "d"].map(str::to_owned).to_vec();
        let why = refusal(&CertificateError::NotValidForNameContext { expected, presented });
        assert_eq!(why, "is not valid for `a.example`, but for b.example, evil[2J, c and others");
    }
}
