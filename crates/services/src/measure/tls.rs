//! Certificates.

use super::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The longest file of certificates or of a key, in bytes.
const LONGEST: u64 = 1 << 20;

/// Where the certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Files in PEM form.
    Files {
        /// The certificate, and those that lead to an authority.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
    },
    /// A new certificate that nobody has signed, for tests.
    SelfSigned,
}

impl Tls {
    /// Loads or makes the certificate. TLS 1.2 and 1.3 are supported.
    pub(super) fn load(&self) -> Result<Arc<ServerConfig>, Error> {
        let (certificates, key) = match self {
            Tls::Files { certificate, key } => (read_certificates(certificate)?, read_key(key)?),
            Tls::SelfSigned => self_signed()?,
        };
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let config = builder.with_safe_default_protocol_versions().map_err(|why| Error(format!("TLS: {why}")))?;
        let config = config.with_no_client_auth().with_single_cert(certificates, key);
        let config = config.map_err(|why| match self {
            Tls::Files { certificate, .. } => Error(format!("certificate {}: {why}", certificate.display())),
            Tls::SelfSigned => Error(format!("certificate: {why}")),
        })?;
        Ok(Arc::new(config))
    }
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let wrong = |why: String| Error(format!("certificate {}: {why}", path.display()));
    let text = disk::read(path, LONGEST).map_err(|why| wrong(why.to_string()))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates.map_err(|why| wrong(why.to_string()))?;
    if certificates.is_empty() { Err(wrong("expected a certificate in PEM form".into())) } else { Ok(certificates) }
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    let wrong = |why: String| Error(format!("private key {}: {why}", path.display()));
    let text = disk::read(path, LONGEST).map_err(|why| wrong(why.to_string()))?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|_| wrong("expected a private key in PEM form".into()))
}

type Pair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn self_signed() -> Result<Pair, Error> {
    let names = ["localhost", "127.0.0.1", "::1"].map(ToOwned::to_owned).to_vec();
    let made = rcgen::generate_simple_self_signed(names).map_err(|why| Error(format!("certificate: {why}")))?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    Ok((vec![made.cert.der().clone()], key.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_none_are_named() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("there is room");
            path
        };
        let names = vec!["localhost".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let other = rcgen::generate_simple_self_signed(vec!["x".to_owned()]).expect("a certificate");
        let certificate = path("certificate", &made.cert.pem());
        let key = path("key", &made.signing_key.serialize_pem());
        let wrong = path("wrong", &other.signing_key.serialize_pem());
        let load = |certificate: &Path, key: &Path| {
            let tls = Tls::Files { certificate: certificate.to_owned(), key: key.to_owned() };
            tls.load().map(drop).map_err(|why| why.0)
        };
        assert_eq!(load(&certificate, &key), Ok(()));
        assert_eq!(
            load(Path::new("/nonexistent"), &key),
            Err("certificate /nonexistent: No such file or directory (os error 2)".into())
        );
        let text = |why: &str, path: &Path| Err(why.replace("PATH", &path.display().to_string()));
        assert_eq!(load(&key, &key), text("certificate PATH: expected a certificate in PEM form", &key));
        let expected = text("private key PATH: expected a private key in PEM form", &certificate);
        assert_eq!(load(&certificate, &certificate), expected);
        let mismatch = load(&certificate, &wrong).expect_err("another key");
        assert!(mismatch.starts_with("certificate ") && !mismatch.contains('\n'), "{mismatch}");
    }

    #[test]
    fn a_certificate_can_be_made() {
        assert!(Tls::SelfSigned.load().is_ok());
    }
}
