//! Built-in scenarios and presets.

/// A built-in file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// Its name, used in place of a file's path; a preset is written `preset:NAME` in an `include`.
    pub name: &'static str,
    /// A one-line description: the file's first comment.
    pub about: &'static str,
    /// The file's text.
    pub text: &'static str,
}

macro_rules! files {
    ($directory:literal, $($name:literal),*) => {
        &[$(Builtin::new($name, include_str!(concat!("../builtin/", $directory, $name, ".toml")))),*]
    };
}

const SCENARIOS: &[Builtin] = files!(
    "",
    "dumbbell",
    "bufferbloat",
    "aqm-compare",
    "cc-compare",
    "loss-sweep",
    "capacity-step",
    "trace",
    "page-load",
    "parking-lot",
    "lte-download",
    "lte-cell",
    "lte-drive",
    "lte-20mhz-vehicular",
    "nr-fr2-200mhz",
    "nr-street",
    "nr-drive"
);

const PRESETS: &[Builtin] = files!(
    "presets/",
    "lte-like",
    "nr-like",
    "wired",
    "lte-5mhz",
    "lte-10mhz",
    "lte-20mhz",
    "lte-pedestrian",
    "lte-vehicular",
    "lte-drive",
    "nr-fr1-100mhz",
    "nr-fr2-200mhz",
    "nr-street",
    "nr-drive",
    "nr-ns3-mmwave",
    "nr-lte"
);

impl Builtin {
    const fn new(name: &'static str, text: &'static str) -> Builtin {
        // The first line is `# ABOUT`.
        let (line, _) = text.as_bytes().split_at(end_of_line(text.as_bytes()));
        let (_, about) = line.split_at(2);
        match core::str::from_utf8(about) {
            Ok(about) => Builtin { name, about, text },
            Err(_) => panic!("a built-in file is UTF-8"),
        }
    }
}

const fn end_of_line(text: &[u8]) -> usize {
    let mut end = 0;
    while end < text.len() && text[end] != b'\n' {
        end += 1;
    }
    end
}

/// The built-in scenarios, simplest first. Those at the end have no flows ([`crate::Scenario::load_for_emulation`]).
pub fn list() -> &'static [Builtin] {
    SCENARIOS
}

/// Returns the presets: networks to include.
pub fn presets() -> &'static [Builtin] {
    PRESETS
}

pub(crate) fn find(name: &str) -> Option<&'static str> {
    SCENARIOS.iter().find(|b| b.name == name).map(|b| b.text)
}

pub(crate) fn find_preset(name: &str) -> Option<&'static str> {
    PRESETS.iter().find(|b| b.name == name).map(|b| b.text)
}
