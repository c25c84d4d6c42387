//! Removes identities from what is published, and coarsens places.
//!
//! Removed are IP addresses, hardware addresses, addresses of e-mail, directories of paths (file names stay), and words: this
//! machine's name, the names of its users, the server's name, and what the campaign file lists.

use std::net::{IpAddr, SocketAddr};

use nix::unistd::{Uid, User, gethostname};
use serde_json::Value;

/// What stands for what was removed.
const REMOVED: &str = "[removed]";
/// Words of our own tables, which identify nobody even if they are the name of a machine.
const COMMON: [&str; 8] = ["client", "localhost", "root", "server", "sudo", "ue", "user", "users"];

/// Removes identities.
#[derive(Clone, Debug, Default)]
pub struct Scrub {
    /// In small letters, longest first, and what stands for each.
    words: Vec<(String, String)>,
}

impl Scrub {
    /// Removes these words.
    pub fn of(words: impl IntoIterator<Item = String>) -> Scrub {
        let mut words: Vec<String> = words.into_iter().map(|word| word.trim().to_ascii_lowercase()).collect();
        words.retain(|word| word.len() >= 2 && !COMMON.contains(&word.as_str()) && word.parse::<u64>().is_err());
        words.sort_by(|a, b| (b.len(), a).cmp(&(a.len(), b)));
        words.dedup();
        Scrub { words: words.into_iter().map(|word| (word, REMOVED.to_owned())).collect() }
    }

    /// Replaces these words, given first, by labels.
    pub fn with_labels(mut self, labels: impl IntoIterator<Item = (String, String)>) -> Scrub {
        for (word, label) in labels {
            let word = word.to_ascii_lowercase();
            self.words.retain(|(other, _)| *other != word);
            let place = self.words.partition_point(|(other, _)| other.len() > word.len());
            self.words.insert(place, (word, label));
        }
        self
    }

    /// Removes the names of this machine and of its users, and these words.
    pub fn of_this_machine(words: impl IntoIterator<Item = String>) -> Scrub {
        let mut all: Vec<String> = words.into_iter().collect();
        if let Ok(name) = gethostname() {
            let name = name.to_string_lossy().into_owned();
            all.extend(name.split('.').next().map(str::to_owned));
            all.push(name);
        }
        all.extend(["USER", "LOGNAME", "SUDO_USER"].iter().filter_map(|name| std::env::var(name).ok()));
        if let Ok(Some(user)) = User::from_uid(Uid::current()) {
            all.extend(user.dir.file_name().map(|name| name.to_string_lossy().into_owned()));
            all.push(user.name);
        }
        Scrub::of(all)
    }

    /// Returns a text without identities.
    pub fn text(&self, text: &str) -> String {
        let mut clean = String::with_capacity(text.len());
        let mut token = String::new();
        for c in text.chars() {
            if c.is_whitespace() || c.is_control() || "\"'`(),;<>{}|=".contains(c) {
                clean.push_str(&self.token(&token));
                token.clear();
                clean.push(c);
            } else {
                token.push(c);
            }
        }
        clean.push_str(&self.token(&token));
        self.without_words(&clean)
    }

    /// Removes identities from all texts of a value, keys included.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(map) => {
                let old = std::mem::take(map);
                for (key, mut value) in old {
                    self.value(&mut value);
                    map.insert(self.text(&key), value);
                }
            }
            _ => {}
        }
    }

    /// A part of a text without spaces and quotes.
    fn token(&self, token: &str) -> String {
        let bare = token.trim_end_matches(['.', ':', '!', '?']);
        let end = &token[bare.len()..];
        if is_address(bare) || bare.contains('@') {
            return format!("{REMOVED}{end}");
        }
        if let Some((_, name)) = bare.rsplit_once('/')
            && ["/", "./", "../", "~/"].iter().any(|start| bare.starts_with(start))
        {
            return format!("{name}{end}");
        }
        // Addresses inside of a longer part, such as `http://192.0.2.1/x` or `a-192.0.2.1`.
        let mut clean = String::with_capacity(token.len());
        let mut run = String::new();
        for c in token.chars().map(Some).chain([None]) {
            match c {
                Some(c) if c.is_ascii_hexdigit() || ".:%".contains(c) => run.push(c),
                other => {
                    let bare = run.trim_matches(['.', ':']);
                    if !bare.is_empty() && is_address(bare) {
                        clean.push_str(&run.replace(bare, REMOVED));
                    } else {
                        clean.push_str(&run);
                    }
                    run.clear();
                    clean.extend(other);
                }
            }
        }
        clean
    }

    fn without_words(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for (word, label) in &self.words {
            let lower = clean.to_ascii_lowercase();
            let (mut next, mut from) = (String::with_capacity(clean.len()), 0);
            for (at, _) in lower.match_indices(word.as_str()) {
                let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
                let to = at + word.len();
                if is_part(lower[..at].chars().next_back()) || is_part(lower[to..].chars().next()) {
                    continue;
                }
                next.push_str(&clean[from..at]);
                next.push_str(label);
                from = to;
            }
            next.push_str(&clean[from..]);
            clean = next;
        }
        clean
    }
}

/// Whether a text is an address: IP with or without port, zone or prefix length, or hardware.
fn is_address(text: &str) -> bool {
    let bare = text.trim_start_matches('[').split(['%', '/', ']']).next().unwrap_or_default();
    let is_hardware = |separator: char| {
        let mut count = 0;
        let fits = text.split(separator).all(|part| {
            count += 1;
            part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        });
        fits && count == 6
    };
    bare.parse::<IpAddr>().is_ok() || text.parse::<SocketAddr>().is_ok() || is_hardware(':') || is_hardware('-')
}

/// Returns the centre of the cell that holds a place, in degrees. Cells are `grid_m` high and at least as wide.
pub fn coarsen(latitude: f64, longitude: f64, grid_m: f64) -> (f64, f64) {
    /// Metres of a degree of latitude, of a sphere of 6371 km.
    const DEGREE: f64 = 111_194.9;
    let centre = |value: f64, step: f64| ((value / step).floor() + 0.5) * step;
    let step = grid_m / DEGREE;
    let row = centre(latitude, step).clamp(-90.0, 90.0);
    // The edge of the row that is closer to a pole is the shorter one.
    let edge = (row.abs() + step / 2.0).min(90.0);
    let width = (step / edge.to_radians().cos().max(1e-9)).min(360.0);
    let column = centre(longitude + 180.0, width) - 180.0;
    let rounded = |value: f64| (value * 1e4).round() / 1e4;
    (rounded(row), rounded(column.clamp(-180.0, 180.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_paths_and_words_are_removed_and_numbers_stay() {
        let scrub = Scrub::of(["Alices-Laptop".to_owned(), "alice".to_owned(), "server".to_owned()]);
        for (text, expected) in [
            ("no server at 192.0.2.1:5231: refused", "no server at [removed]: refused"),
            ("TCP 10.0.0.1:80 > [2001:db8::1]:443", "TCP [removed] > [removed]"),
            ("tcp fe80::1%eth0.", "tcp [removed]."),
            ("at 02:42:ac:11:00:02 and 02-42-ac-11-00-02", "at [removed] and [removed]"),
            ("http://198.51.100.7/x", "http://[removed]/x"),
            ("/home/alice/traces/a.down", "a.down"),
            ("../bob/cell.toml: line 3", "cell.toml: line 3"),
            ("alice@example.org wrote", "[removed] wrote"),
            ("on Alices-Laptop by ALICE, not malice", "on [removed] by [removed], not malice"),
            ("18.2 Mbit/s in 12:30:45, cwnd 10", "18.2 Mbit/s in 12:30:45, cwnd 10"),
            ("6.1.0-13-amd64", "6.1.0-13-amd64"),
            ("server > client", "server > client"),
        ] {
            assert_eq!(scrub.text(text), expected);
            assert_eq!(scrub.text(expected), expected, "it is done once");
        }
    }

    #[test]
    fn keys_and_nested_texts_of_values_are_cleaned() {
        let mut value = serde_json::json!({ "10.0.0.1": ["a", { "b": "192.0.2.9" }], "n": 4 });
        Scrub::default().value(&mut value);
        assert_eq!(value, serde_json::json!({ "[removed]": ["a", { "b": "[removed]" }], "n": 4 }));
    }

    #[test]
    fn words_with_labels_are_told_apart_and_go_before_words_that_are_removed() {
        let labels = [("wwx0a1b2c3d4e5f", "interface-1"), ("wwx0a1b2c3d4e60", "interface-2")];
        let scrub = Scrub::of(["wwx0a1b2c3d4e60".to_owned(), "pc".to_owned()]);
        let scrub = scrub.with_labels(labels.map(|(word, label)| (word.to_owned(), label.to_owned())));
        assert_eq!(scrub.text("0001-cubic-1-up-wwx0a1b2c3d4e5f"), "0001-cubic-1-up-interface-1");
        assert_eq!(scrub.text("WWX0A1B2C3D4E60 of pc"), "interface-2 of [removed]");
    }

    #[test]
    fn places_of_a_cell_become_the_same_place_close_by() {
        // Karlstad: a degree of latitude has 111 km, one of longitude 111 km * cos(59.38) = 56.6 km.
        let (latitude, longitude) = coarsen(59.3793, 13.5036, 1000.0);
        assert!((latitude - 59.3793).abs() * 111_194.9 <= 501.0 + 6.0);
        assert!((longitude - 13.5036).abs() * 56_600.0 <= 510.0 + 6.0);
        assert_eq!(coarsen(latitude, longitude, 1000.0), (latitude, longitude));
        assert_ne!((latitude, longitude), (59.3793, 13.5036));
        for place in [(90.0, 180.0), (-90.0, -180.0), (0.0, 0.0)] {
            let (latitude, longitude) = coarsen(place.0, place.1, 1000.0);
            assert!(latitude.abs() <= 90.0 && longitude.abs() <= 180.0);
        }
    }

    #[test]
    fn any_text_is_cleaned_once_and_for_all() {
        let scrub = Scrub::of(["laptop".to_owned()]);
        bolero::check!().with_iterations(2000).with_type::<String>().for_each(|text| {
            let clean = scrub.text(text);
            assert!(!clean.split_whitespace().any(|token| token.parse::<IpAddr>().is_ok()));
        });
    }
}
