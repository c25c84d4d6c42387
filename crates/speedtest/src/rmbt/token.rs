//! Tokens: the right to measure during a minute and a half, signed with a key that servers share.
//!
//! Read first: `token-migration.md` in the repository rtr-nettest/open-rmbt-server. A control server sends both versions as one
//! string, `v1_#v2#v2`; old servers stop reading at the second underscore.
//!
//! Deviation: the reference server ignores the v1 part if there is a v2 part. Here, unless v2 is required, either suffices: a
//! client behind a translator with several addresses would fail otherwise, and who wants to get around v2 sends v1 alone anyway.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;
use std::fmt;
use std::net::IpAddr;

/// A token is valid from so many seconds before its time; the server waits then.
pub const EARLY: i64 = 20;
/// A token is valid until so many seconds after its time.
pub const LATE: i64 = 90;
/// The marker before the v2 part.
const MARKER: &str = "_#v2#";
/// The longest name of a test: a UUID.
const NAME: usize = 36;

/// A key that tokens are signed with.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Vec<u8>);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// The fewest bytes of a key.
    pub const SHORTEST: usize = 8;

    /// Creates a key of any bytes.
    pub fn new(bytes: &[u8]) -> Key {
        Key(bytes.to_vec())
    }

    /// Parses a file of keys: a key on each line, of at least [`Key::SHORTEST`] bytes, and a label after a space if any. Empty
    /// lines and those that start with `#` are comments.
    ///
    /// # Errors
    /// The number of the line and what is wrong with it; line 0 if there is no key.
    pub fn parse_file(text: &str) -> Result<Vec<Key>, (usize, &'static str)> {
        let mut keys = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = line.split_ascii_whitespace().next().unwrap_or_default();
            if key.len() < Key::SHORTEST {
                return Err((number + 1, "a key has at least 8 characters, as written by: openssl rand -hex 16"));
            }
            keys.push(Key::new(key.as_bytes()));
        }
        if keys.is_empty() { Err((0, "it has no key; write one with: openssl rand -hex 16")) } else { Ok(keys) }
    }

    fn sha1(&self, message: &[u8]) -> Hmac<Sha1> {
        Hmac::<Sha1>::new_from_slice(&self.0).expect("a key may have any length").chain_update(message)
    }

    fn sha256(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key may have any length");
        parts.iter().fold(mac, Mac::chain_update)
    }
}

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refusal {
    /// It is not a token.
    #[error("malformed token")]
    Malformed,
    /// No key has signed it.
    #[error("token signed with another key")]
    Forged,
    /// It was issued for another address (v2).
    #[error("token issued for another address")]
    OtherAddress,
    /// Its time has not come.
    #[error("token not valid yet")]
    TooEarly,
    /// Its time is over.
    #[error("token expired")]
    Expired,
    /// It has no v2 part, which the server requires.
    #[error("token without the v2 part, which this server requires")]
    NotV2,
}

/// A valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The test, as a UUID if the v1 part has one. Nobody has signed it if only the v2 part is valid.
    pub test: String,
    /// What the signature covers: equal tokens have equal ones, whatever unsigned text is around them.
    pub id: String,
    /// Unix time from which on the test may start, in seconds.
    pub start: i64,
}

/// Makes the v1 token of a test, which may start at `start` (Unix time in seconds).
pub fn make_v1(key: &Key, test: &str, start: i64) -> String {
    let message = format!("{test}_{start}");
    let tag = STANDARD.encode(key.sha1(message.as_bytes()).finalize().into_bytes());
    format!("{message}_{tag}")
}

/// Makes a v2 token for `address`, without the v1 part before it.
pub fn make_v2(key: &Key, address: IpAddr, start: i64) -> String {
    let time = (start as u32).to_be_bytes();
    let mut token = [0; 16];
    token[..4].copy_from_slice(&time);
    token[4..12].copy_from_slice(&key.sha256(&[&time]).finalize().into_bytes()[..8]);
    token[12..].copy_from_slice(&key.sha256(&[&time, &mapped(address)]).finalize().into_bytes()[..4]);
    STANDARD.encode(token)
}

/// Makes a token with both parts, as a control server sends it.
pub fn make(key: &Key, test: &str, address: IpAddr, start: i64) -> String {
    format!("{}{MARKER}{}", make_v1(key, test, start), make_v2(key, address, start))
}

/// Checks a token that came from `address` at `now` (Unix time in seconds), against each key.
///
/// # Errors
/// Why it is refused. Tags are compared in constant time.
pub fn check(text: &str, keys: &[Key], address: IpAddr, now: i64, require_v2: bool) -> Result<Token, Refusal> {
    let (v1, v2) = match text.split_once(MARKER) {
        Some((v1, v2)) => (v1, Some(v2)),
        None => (text, None),
    };
    let test = v1.split('_').next().filter(|test| is_name(test)).unwrap_or_default().to_owned();
    let result = match v2 {
        Some(v2) => check_v2(v2, keys, address, now),
        None if require_v2 => Err(Refusal::NotV2),
        None => check_v1(v1, keys),
    };
    let signed_v1 = if v2.is_some() { check_v1(v1, keys) } else { result };
    let start = match (result, signed_v1) {
        (Ok(start), _) => start,
        (Err(_), Ok(start)) if !require_v2 => start,
        // Why the v2 part is refused says more.
        (Err(refusal), _) => return Err(refusal),
    };
    // Tests of one address in the same second have equal v2 parts.
    let id = match (signed_v1, v2) {
        (Err(_), Some(v2)) => v2.to_owned(),
        _ => format!("{test}_{start}"),
    };
    if start.saturating_sub(now) > EARLY {
        return Err(Refusal::TooEarly);
    }
    if now.saturating_sub(start) > LATE {
        return Err(Refusal::Expired);
    }
    Ok(Token { test, id, start })
}

fn is_name(text: &str) -> bool {
    text.len() == NAME && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Returns the start that a v1 token names, if it is signed.
fn check_v1(text: &str, keys: &[Key]) -> Result<i64, Refusal> {
    let mut parts = text.splitn(3, '_');
    let (Some(test), Some(start), Some(tag)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(Refusal::Malformed);
    };
    let digits = !start.is_empty() && start.len() <= 12 && start.bytes().all(|byte| byte.is_ascii_digit());
    let tag = STANDARD.decode(tag).map_err(|_| Refusal::Malformed)?;
    let time = start.parse().map_err(|_| Refusal::Malformed)?;
    if !is_name(test) || !digits || tag.len() != 20 {
        return Err(Refusal::Malformed);
    }
    let message = format!("{test}_{start}");
    if keys.iter().any(|key| key.sha1(message.as_bytes()).verify_slice(&tag).is_ok()) {
        Ok(time)
    } else {
        Err(Refusal::Forged)
    }
}

/// Returns the start that a v2 token names, if it is signed and issued for `address`.
fn check_v2(text: &str, keys: &[Key], address: IpAddr, now: i64) -> Result<i64, Refusal> {
    let token: [u8; 16] =
        STANDARD.decode(text).ok().and_then(|token| token.try_into().ok()).ok_or(Refusal::Malformed)?;
    let (time, tags) = token.split_at(4);
    let signer = keys.iter().find(|key| key.sha256(&[time]).verify_truncated_left(&tags[..8]).is_ok());
    let key = signer.ok_or(Refusal::Forged)?;
    key.sha256(&[time, &mapped(address)]).verify_truncated_left(&tags[8..]).map_err(|_| Refusal::OtherAddress)?;
    // The low 32 bits of a time, of which the nearest to now is meant.
    let low = u32::from_be_bytes(time.try_into().expect("four bytes"));
    Ok(now.saturating_add(i64::from(low.wrapping_sub(now as u32).cast_signed())))
}

/// Returns an address as 16 bytes, IPv4 mapped into IPv6.
fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEST: &str = "8723358c-2037-4029-a70c-91e5d9d35cf3";
    const START: i64 = 1_700_000_000;
    /// Vectors of the reference server, `src/protocol/token.rs`, made by its `makeToken.py` from the key `topsecret`.
    const V1: &str = "8723358c-2037-4029-a70c-91e5d9d35cf3_1700000000_Q+55pZ/JOQgjMe49FlelxsfCxqA=";
    const V2: &str = "ZVPxAEzErM6+VBk3HmTzPw==";

    fn address() -> IpAddr {
        [62, 1, 2, 3].into()
    }

    fn key() -> Key {
        Key::new(b"topsecret")
    }

    fn valid() -> Token {
        Token { test: TEST.into(), id: format!("{TEST}_{START}"), start: START }
    }

    fn checked(text: &str, now: i64) -> Result<Token, Refusal> {
        check(text, &[Key::new(b"old secret"), key()], address(), now, false)
    }

    #[test]
    fn tokens_are_those_of_the_reference() {
        assert_eq!(make_v1(&key(), TEST, START), V1);
        assert_eq!(make_v2(&key(), address(), START), V2);
        assert_eq!(make(&key(), TEST, address(), START), format!("{V1}_#v2#{V2}"));
    }

    #[test]
    fn a_token_is_valid_from_20_s_before_its_time_to_90_s_after_it() {
        let valid = Ok(valid());
        for token in [V1.to_owned(), format!("{V1}_#v2#{V2}")] {
            assert_eq!(checked(&token, START - 21), Err(Refusal::TooEarly));
            assert_eq!(checked(&token, START - 20), valid);
            assert_eq!(checked(&token, START + 90), valid);
            assert_eq!(checked(&token, START + 91), Err(Refusal::Expired));
        }
    }

    #[test]
    fn a_v2_part_suffices_and_is_bound_to_the_address() {
        let token = format!("garbage_#v2#{V2}");
        assert_eq!(checked(&token, START), Ok(Token { test: String::new(), id: V2.into(), start: START }));
        let other = check(&token, &[key()], [9, 9, 9, 9].into(), START, false);
        assert_eq!(other, Err(Refusal::OtherAddress));
        let six: IpAddr = "2001:db8::1".parse().expect("an address");
        let token = format!("x_#v2#{}", make_v2(&key(), six, START));
        assert!(check(&token, &[key()], six, START, true).is_ok());
        let mapped: IpAddr = "::ffff:62.1.2.3".parse().expect("an address");
        assert!(check(&format!("x_#v2#{V2}"), &[key()], mapped, START, true).is_ok());
    }

    #[test]
    fn a_valid_v1_part_counts_unless_v2_is_required() {
        let token = format!("{V1}_#v2#{V2}");
        let other = |required| check(&token, &[key()], [9, 9, 9, 9].into(), START, required);
        assert_eq!(other(false), Ok(valid()));
        assert_eq!(other(true), Err(Refusal::OtherAddress));
        assert_eq!(check(V1, &[key()], address(), START, true), Err(Refusal::NotV2));
    }

    #[test]
    fn a_changed_token_is_refused() {
        let forged = V1.replace("1700000000", "1700000060");
        assert_eq!(checked(&forged, START), Err(Refusal::Forged));
        assert_eq!(check(V1, &[Key::new(b"another key")], address(), START, false), Err(Refusal::Forged));
        assert_eq!(checked(&format!("x_#v2#{}", V2.replace('Z', "Y")), START), Err(Refusal::Forged));
        for text in ["", "_", "a_b_c", "__", &V1[..70], &V1.replace('_', "-"), "x_#v2#", "x_#v2#AAAA"] {
            assert_eq!(checked(text, START), Err(Refusal::Malformed), "{text}");
        }
    }

    #[test]
    fn the_32_bits_of_a_v2_time_mean_the_nearest_time() {
        let start = (1 << 32) + 5;
        let token = format!("x_#v2#{}", make_v2(&key(), address(), start));
        for now in [start - 10, start + 10] {
            assert_eq!(checked(&token, now).map(|token| token.start), Ok(start));
        }
    }

    #[test]
    fn a_file_has_a_key_on_each_line_and_comments() {
        let keys = Key::parse_file("# rotation\n\n0123456789abcdef production\nfedcba9876543210\n");
        assert_eq!(keys, Ok(vec![Key::new(b"0123456789abcdef"), Key::new(b"fedcba9876543210")]));
        assert_eq!(Key::parse_file("# none\n").map_err(|(line, _)| line), Err(0));
        assert_eq!(Key::parse_file("\nshort\n").map_err(|(line, _)| line), Err(2));
    }
}
