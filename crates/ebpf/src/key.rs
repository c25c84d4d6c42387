//! The key shared by an operator's PEPs and senders, in a file readable only by its owner.

use crate::Error;
use std::fmt;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Hexadecimal digits of a key.
const DIGITS: usize = 32;

/// A key of 128 bits. `docs/src/pep-messages.md` describes its use.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Key([u8; 16]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Creates a key from its bytes.
    pub const fn new(bytes: [u8; 16]) -> Key {
        Key(bytes)
    }

    /// Reads a key from a file with 32 hexadecimal digits, as `openssl rand -hex 16` writes them.
    ///
    /// # Errors
    /// [`Error::Wrong`] if it is not a regular file, contains anything else, belongs to another user, or can be read or written by
    /// others than its owner; [`Error::System`] if it cannot be read.
    pub fn read(path: &Path) -> Result<Key, Error> {
        let wrong = |why: String| Error::Wrong(format!("the key file {}: {why}", path.display()));
        let what = || format!("read the key file {}", path.display());
        // Opening a pipe must not wait for its other end.
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
        let file = options.open(path).map_err(Error::system(what()))?;
        let metadata = file.metadata().map_err(Error::system(what()))?;
        if !metadata.is_file() {
            return Err(wrong("not a regular file".into()));
        }
        let (owner, user) = (metadata.uid(), nix::unistd::geteuid().as_raw());
        if owner != user && owner != 0 {
            return Err(wrong(format!("it belongs to user {owner}, who could replace it; chown it to user {user}")));
        }
        if metadata.mode() & 0o077 != 0 {
            let mode = metadata.mode() & 0o777;
            return Err(wrong(format!("accessible to others than its owner (mode {mode:04o}); use chmod 600")));
        }
        let mut text = String::new();
        let read = file.take(DIGITS as u64 + 3).read_to_string(&mut text);
        let key = read.ok().and_then(|_| parse(text.trim()));
        let example = "it holds 32 hexadecimal digits, as written by: openssl rand -hex 16";
        let key = key.ok_or_else(|| wrong(format!("invalid key; {example}")))?;
        if key == Key::default() {
            return Err(wrong(format!("a key of zeros is not secret; {example}")));
        }
        Ok(key)
    }

    /// Returns the key as the two words used by SipHash.
    pub(crate) fn words(self) -> [u64; 2] {
        let number = u128::from_le_bytes(self.0);
        [number as u64, (number >> 64) as u64]
    }
}

fn parse(text: &str) -> Option<Key> {
    if text.len() != DIGITS || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    Some(Key(u128::from_str_radix(text, 16).ok()?.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_file_is_read_if_it_is_the_owners_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        let digits = "000102030405060708090a0b0c0d0e0f";
        let read = |content: &str, mode| {
            fs::write(&path, content).expect("it is written");
            fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
            Key::read(&path).map_err(|why| why.to_string().replace(path.to_str().unwrap_or_default(), "K"))
        };
        let key = read(digits, 0o600).expect("it is one");
        assert_eq!(key.words(), [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        assert_eq!(read(&format!("{}\n", digits.to_uppercase()), 0o400), Ok(key));
        assert_eq!(format!("{key:?}"), "Key(..)");
        for mode in [0o640, 0o604, 0o620] {
            let said = read(digits, mode).unwrap_err();
            assert_eq!(
                said,
                format!("the key file K: accessible to others than its owner (mode {mode:04o}); use chmod 600")
            );
        }
        for bad in ["", "0001", &format!("{digits}00"), &digits.replace('a', "g"), "+00102030405060708090a0b0c0d0e0f"] {
            let said = read(bad, 0o600).unwrap_err();
            assert!(said.starts_with("the key file K: invalid key; it holds 32 hexadecimal digits"), "{bad}: {said}");
        }
        assert!(read(&"0".repeat(DIGITS), 0o600).unwrap_err().contains("a key of zeros is not secret"));
        let said = Key::read(directory.path()).unwrap_err().to_string();
        assert!(said.ends_with("not a regular file"), "{said}");
    }
}
