//! Certificates of authorities that clients of TLS trust.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// The largest file of authorities, in bytes.
pub const LARGEST: u64 = 16 << 20;

/// Returns the authorities of this system, if it has any.
pub fn system_authorities() -> Option<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // A single one that is not understood is left out, as other programs do.
    roots.add_parsable_certificates(found.certs);
    (!roots.is_empty()).then_some(roots)
}

/// Returns the authorities in a text in PEM form.
///
/// # Errors
/// What is wrong with it, in one line.
pub fn authorities(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|why| why.to_string())?;
        roots.add(certificate).map_err(|why| why.to_string())?;
    }
    if roots.is_empty() { Err("expected a certificate in PEM form".into()) } else { Ok(roots) }
}
