//! The scenarios that are compared; they are embedded in the program.

use include_dir::{Dir, include_dir};
use scenario::{Loaded, Scenario};
use std::io;
use std::path::{Path, PathBuf};

static CASES: Dir = include_dir!("$CARGO_MANIFEST_DIR/cases");
/// Recordings that cases use and that are not distributed with Ranway.
const RECORDINGS: [(&str, &str); 1] = [("trace", "TMobile-LTE-short.down")];
/// The case that is short enough to run for every change.
const SHORT: &str = "short";

/// A scenario of `cases/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The file name without its extension.
    pub name: String,
}

/// Returns all cases, ordered by name.
pub fn cases() -> Vec<Case> {
    let toml = CASES.files().filter(|file| file.path().extension().is_some_and(|ending| ending == "toml"));
    let mut names: Vec<String> =
        toml.filter_map(|file| Some(file.path().file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names.into_iter().map(|name| Case { name }).collect()
}

impl Case {
    /// Returns whether it is the case for CI, which takes less than a minute.
    pub fn is_short(&self) -> bool {
        self.name == SHORT
    }

    /// Returns the recording that the case needs, if it is not in `recordings`; without it, the case cannot be loaded.
    pub fn missing(&self, recordings: &Path) -> Option<PathBuf> {
        let (_, file) = RECORDINGS.iter().find(|(case, _)| *case == self.name)?;
        Some(recordings.join(file)).filter(|path| !path.exists())
    }

    /// Loads the scenario with `overrides`; recordings are read from the directory `recordings`.
    ///
    /// # Errors
    /// A recording cannot be read, or an override is invalid.
    pub fn load(&self, recordings: &Path, overrides: &[String]) -> Result<Loaded, scenario::Error> {
        let read = |path: &str| {
            if RECORDINGS.iter().any(|(_, file)| *file == path) {
                return scenario::read_file(&recordings.join(path).to_string_lossy());
            }
            let file = CASES.get_file(path).and_then(|file| file.contents_utf8());
            file.map(str::to_owned).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        };
        Scenario::load(&format!("{}.toml", self.name), overrides, &read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_can_be_loaded_and_samples_each_10_ms() {
        let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/traces");
        let mut points = 0;
        for case in cases() {
            if let Some(path) = case.missing(&recordings) {
                eprintln!("SKIPPED: case {}: there is no {}", case.name, path.display());
                continue;
            }
            let loaded = case.load(&recordings, &[]).unwrap_or_else(|error| panic!("{}: {error}", case.name));
            assert!(loaded.warnings().is_empty(), "{}: {:?}", case.name, loaded.warnings());
            for point in loaded.points() {
                assert_eq!(
                    point.scenario.record.samples.interval(),
                    Some(units::Span::from_millis(10)),
                    "{}",
                    case.name
                );
            }
            points += loaded.points().len();
        }
        assert!(points > 80, "{points}");
    }

    #[test]
    fn the_short_case_is_six_runs_of_8_s() {
        let short: Vec<Case> = cases().into_iter().filter(Case::is_short).collect();
        let loaded = short[0].load(Path::new(""), &[]).unwrap();
        assert_eq!((short.len(), loaded.points().len()), (1, 6));
        assert!(loaded.points().iter().all(|point| point.scenario.duration == units::Span::from_secs(8)));
    }

    #[test]
    fn a_missing_recording_is_named() {
        let trace = Case { name: "trace".to_owned() };
        assert_eq!(trace.missing(Path::new("/nowhere")), Some("/nowhere/TMobile-LTE-short.down".into()));
    }
}
