//! Keys of tokens, and who needs none.

use super::error::{Error, fill_random};
use super::limits::Busy;
use speedtest::rmbt::token::{Key, Refusal};
use std::fmt::Write;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// The longest file of keys.
const LONGEST_FILE: u64 = 64 * 1024;

/// Who needs no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// All clients need one.
    Nobody,
    /// Clients on this host and in private networks need none; others are refused.
    Private,
    /// Nobody needs one. Anyone can use the server's capacity.
    Anyone,
}

/// The keys that tokens are checked with; the first one signs.
#[derive(Debug)]
pub(super) struct Keys(pub(super) Vec<Key>);

impl Keys {
    /// Reads a file, or makes a key that nobody else knows.
    pub(super) fn load(path: Option<&Path>) -> Result<Keys, Error> {
        let Some(path) = path else {
            let mut key = [0; 32];
            fill_random(&mut key)?;
            return Ok(Keys(vec![Key::new(&key)]));
        };
        let wrong = |why: String| Error(format!("key file {}: {why}", path.display()));
        let file = disk::regular(path).map_err(|why| wrong(why.to_string()))?;
        let mode = file.metadata().map_err(|why| wrong(why.to_string()))?.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(wrong(format!("accessible to others than its owner (mode {mode:04o}); use chmod 600")));
        }
        let mut text = String::new();
        let read = file.take(LONGEST_FILE + 1).read_to_string(&mut text).map_err(|why| wrong(why.to_string()))?;
        if read as u64 > LONGEST_FILE {
            return Err(wrong("longer than 64 KiB".into()));
        }
        let keys = Key::parse_file(&text)
            .map_err(|(line, why)| wrong(if line == 0 { why.to_owned() } else { format!("line {line}: {why}") }))?;
        Ok(Keys(keys))
    }
}

/// Why a client may not measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Denied {
    Token(Refusal),
    /// The server is open, but not to this client.
    Foreign,
    Busy(Busy),
}

impl std::fmt::Display for Denied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Denied::Token(refusal) => write!(f, "{refusal}"),
            Denied::Foreign => f.write_str("this server is for private networks"),
            Denied::Busy(busy) => write!(f, "{busy}"),
        }
    }
}

/// A client that may measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Admission {
    /// The test, as a UUID; empty if there is no name.
    pub(super) test: String,
    /// How long it has to wait.
    pub(super) wait: Duration,
}

/// Returns random bytes in hexadecimal digits.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_file_is_for_its_owner_alone_and_has_a_key() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("keys");
        let load = |text: &str, mode: u32| {
            std::fs::write(&path, text).expect("there is room");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
            Keys::load(Some(&path))
                .map(|keys| keys.0.len())
                .map_err(|why| why.0.replace(&path.display().to_string(), "F"))
        };
        assert_eq!(load("0123456789abcdef\n", 0o600), Ok(1));
        let others = "key file F: accessible to others than its owner (mode 0640); use chmod 600";
        assert_eq!(load("0123456789abcdef\n", 0o640), Err(others.into()));
        let short = "key file F: line 2: a key has at least 8 characters, as written by: openssl rand -hex 16";
        assert_eq!(load("\nshort\n", 0o600), Err(short.into()));
        let none = "key file F: it has no key; write one with: openssl rand -hex 16";
        assert_eq!(load("# none\n", 0o600), Err(none.into()));
        assert_eq!(load(&"x".repeat(70_000), 0o600), Err("key file F: longer than 64 KiB".into()));
    }

    #[test]
    fn a_key_that_is_made_differs_from_the_next() {
        let make = || Keys::load(None).expect("random numbers").0;
        assert_ne!(make(), make());
    }
}
