//! The directory of a campaign: what has finished, what failed, and whether the campaign is still the same.
//!
//! | entry | contents |
//! | --- | --- |
//! | `campaign.json` | [`State`]: the campaign as it was read when it began, the scenario, this machine |
//! | `journal.json` | an [`Entry`] for each attempt |
//! | `tests/NNNN-…/` | the results of each finished test, the usual results directory |
//! | `work/`, `emulations/` | results of a test that runs; the emulator's own results |
//! | `summary.json` | [`crate::Summary`] |
//! | `report.html` | the report page |
//! | `publish/` | the export for others |
//!
//! Each is replaced by one rename, after its contents are on the disk. A test has finished if its directory is there, whatever the
//! journal says: a machine may stop between the two.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use disk::Dir;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::host::Host;
use crate::plan::Test;
use crate::{Error, Plan};

/// The version of the layout.
const FORMAT: u32 = 1;
/// The largest file of a campaign's own, in bytes.
const LARGEST: u64 = 256 << 20;
/// How often a test is tried.
pub(crate) const ATTEMPTS: usize = 2;

/// What a campaign is, recorded when it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The version of the layout.
    pub format: u32,
    /// The version of the program.
    pub version: String,
    /// When it began, in seconds since the Unix epoch.
    pub started_unix_s: u64,
    /// The campaign file as it was understood, with every default.
    pub campaign: Value,
    /// The scenario as it was understood; null against a server.
    pub scenario: Value,
    /// This machine.
    pub host: Host,
}

impl State {
    /// Describes a campaign that begins now.
    pub fn new(version: &str, started_unix_s: u64, campaign: Value, scenario: Value, host: Host) -> State {
        State { format: FORMAT, version: version.to_owned(), started_unix_s, campaign, scenario, host }
    }
}

/// An attempt at a test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The test's number.
    pub test: u32,
    /// When it began, in seconds since the Unix epoch.
    pub started_unix_s: f64,
    /// How long it took, in seconds.
    pub wall_s: f64,
    /// How it ended.
    pub outcome: Outcome,
    /// Whether the kernel's cached TCP metrics were flushed before, or why not.
    pub tcp_metrics: String,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It has results.
    Finished,
    /// It has none, for this reason.
    Failed(String),
}

/// The directory of a campaign, locked while it is open.
#[derive(Debug)]
pub struct Store {
    dir: Dir,
    path: PathBuf,
    state: State,
    journal: Vec<Entry>,
}

impl Store {
    /// Begins a campaign in the directory `path`, or resumes the one there. `warn` receives a line about what differs but may.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the campaign there is another one (with what changed), if something else is there, or if another
    /// process is at work there.
    pub fn open(path: &Path, state: State, warn: &mut dyn FnMut(String)) -> Result<Store, Error> {
        let (dir, made) = Dir::open_or_make(path)?;
        let shown = path.display();
        if !dir.lock() {
            return Err(Error::Invalid(format!(
                "{shown}: another campaign is at work there: wait for it, or choose another --out"
            )));
        }
        let state = if dir.look("campaign.json")?.is_some() {
            let before = state_in(&dir, path, ": choose another --out")?;
            for (what, old, new) in [
                ("the campaign file", &before.campaign, &state.campaign),
                ("the scenario", &before.scenario, &state.scenario),
            ] {
                if let Some(change) = difference(old, new) {
                    return Err(Error::Invalid(format!(
                        "{what} has changed since the campaign in {shown} began: {change}; restore it, or choose another --out"
                    )));
                }
            }
            if before.version != state.version {
                warn(format!("{shown}: the campaign began with version {}, this is {}", before.version, state.version));
            }
            if before.host.kernel != state.host.kernel {
                warn(format!(
                    "{shown}: the campaign began with another kernel; this one is {}",
                    state.host.kernel.as_deref().unwrap_or("unknown")
                ));
            }
            before
        } else {
            let is_draft = |name: &OsString| name.to_string_lossy().starts_with(".campaign.json.");
            if let Some(name) = dir.names()?.into_iter().find(|name| !is_draft(name)) {
                return Err(Error::Invalid(format!("{shown} holds {name:?}, but no campaign: choose another --out")));
            }
            dir.replace("campaign.json", &json(&state))?;
            state
        };
        made.keep();
        for folder in ["tests", "work"] {
            if dir.look(folder)?.is_none() {
                dir.make(folder, false)?;
            }
        }
        let journal = journal_in(&dir, path)?;
        Ok(Store { dir, path: path.to_owned(), state, journal })
    }

    /// Looks at the campaign in the directory `path` without changing it; another process may be at work there. `None` if there is no
    /// campaign.
    ///
    /// # Errors
    /// It cannot be read, or has another layout.
    pub fn look(path: &Path) -> Result<Option<Store>, Error> {
        let dir = Dir::open(path)?;
        if dir.look("campaign.json")?.is_none() {
            return Ok(None);
        }
        let (state, journal) = (state_in(&dir, path, "")?, journal_in(&dir, path)?);
        Ok(Some(Store { dir, path: path.to_owned(), state, journal }))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The campaign as it began.
    pub fn state(&self) -> &State {
        &self.state
    }

    pub(crate) fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Where the results of a test are, or will be.
    pub fn results(&self, test: &Test) -> PathBuf {
        self.path.join("tests").join(test.name())
    }

    /// Where a program puts the results of a test while it is not known whether they are valid.
    pub fn work(&self, test: &Test) -> PathBuf {
        self.path.join("work").join(test.name())
    }

    /// Puts the results of [`Store::work`] in place.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn accept(&self, test: &Test) -> Result<(), Error> {
        let (from, to) = (self.work(test), self.results(test));
        std::fs::rename(&from, &to).map_err(Error::io("put results in place at", &to))?;
        Ok(self.dir.sub("tests")?.sync()?)
    }

    /// Whether a test has results.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn has_finished(&self, test: &Test) -> Result<bool, Error> {
        let tests = self.dir.sub("tests")?;
        let name = test.name();
        Ok(tests.look(&name)?.is_some() && tests.sub(&name)?.look("meta.json")?.is_some())
    }

    /// The last attempt at a test, if the journal has any.
    pub fn last(&self, test: &Test) -> Option<&Entry> {
        self.journal.iter().rfind(|entry| entry.test == test.number)
    }

    /// How often a test has failed.
    pub fn failures(&self, test: &Test) -> usize {
        let failed = |entry: &&Entry| entry.test == test.number && entry.outcome != Outcome::Finished;
        self.journal.iter().filter(failed).count()
    }

    /// The next test: the first that was never tried, then the first that failed once.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn next<'a>(&self, plan: &'a Plan) -> Result<Option<&'a Test>, Error> {
        for failures in 0..ATTEMPTS {
            for test in &plan.tests {
                if self.failures(test) == failures && !self.has_finished(test)? {
                    return Ok(Some(test));
                }
            }
        }
        Ok(None)
    }

    /// Notes an attempt.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn note(&mut self, entry: Entry) -> Result<(), Error> {
        self.journal.push(entry);
        Ok(self.dir.replace("journal.json", &json(&self.journal))?)
    }

    /// Writes a file of the campaign.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        self.write_bytes(name, &json(value))
    }

    pub(crate) fn write_bytes(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.dir.replace(name, bytes)?)
    }
}

/// Reads the state of the campaign in `dir`; `advice` ends the error about another layout.
fn state_in(dir: &Dir, path: &Path, advice: &str) -> Result<State, Error> {
    let state: State = read(dir, path, "campaign.json")?;
    if state.format != FORMAT {
        let what = format!("its layout has version {}, this program reads {FORMAT}", state.format);
        return Err(Error::Invalid(format!("{}: {what}{advice}", path.display())));
    }
    Ok(state)
}

/// Reads the journal in `dir`, which may not have begun.
fn journal_in(dir: &Dir, path: &Path) -> Result<Vec<Entry>, Error> {
    if dir.look("journal.json")?.is_some() { read(dir, path, "journal.json") } else { Ok(Vec::new()) }
}

fn read<T: serde::de::DeserializeOwned>(dir: &Dir, path: &Path, name: &str) -> Result<T, Error> {
    let place = path.join(name);
    let mut bytes = Vec::new();
    dir.read(name)?.take(LARGEST).read_to_end(&mut bytes).map_err(Error::io("read", &place))?;
    serde_json::from_slice(&bytes)
        .map_err(|why| Error::Invalid(format!("{}: it is damaged: {why}: choose another --out", place.display())))
}

pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).expect("string keys and plain values");
    text.push(b'\n');
    text
}

/// Returns the first difference between two values, as "`flows[1]` was 4 and is 8".
pub fn difference(old: &Value, new: &Value) -> Option<String> {
    fn at(path: &str, old: Option<&Value>, new: Option<&Value>) -> Option<String> {
        let nothing = Value::Null;
        let (a, b) = (old.unwrap_or(&nothing), new.unwrap_or(&nothing));
        match (a, b) {
            (a, b) if a == b => None,
            (Value::Object(a), Value::Object(b)) => {
                a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))).find_map(|key| {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    at(&path, a.get(key), b.get(key))
                })
            }
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                (0..a.len()).find_map(|i| at(&format!("{path}[{i}]"), a.get(i), b.get(i)))
            }
            (a, b) => Some(format!("`{path}` was {} and is {}", short(a), short(b))),
        }
    }
    at("", Some(old), Some(new))
}

fn short(value: &Value) -> String {
    if value.is_null() {
        return "absent".to_owned();
    }
    let text = value.to_string();
    if text.chars().count() <= 60 { text } else { text.chars().take(57).collect::<String>() + "..." }
}

/// A folder in the making below a campaign's directory, which appears whole or not at all, with the checksums of its files.
pub(crate) struct Folder<'a> {
    parent: &'a Dir,
    name: &'static str,
    hidden: String,
    dir: Dir,
    path: PathBuf,
    sums: Vec<(String, String)>,
}

impl<'a> Folder<'a> {
    pub(crate) fn create(store: &'a Store, name: &'static str) -> Result<Folder<'a>, Error> {
        let hidden = format!(".{name}.partial");
        let parent = store.dir();
        if parent.look(&hidden)?.is_some() {
            parent.remove_tree(&hidden)?;
        }
        let dir = parent.make(&hidden, true)?;
        Ok(Folder { parent, name, hidden, dir, path: store.path().join(name), sums: Vec::new() })
    }

    /// Writes a file; `name` may have folders.
    pub(crate) fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        use sha2::{Digest, Sha256};
        let mut dir = self.dir.try_clone()?;
        let (folders, file) = name.rsplit_once('/').map_or((None, name), |(folders, file)| (Some(folders), file));
        for folder in folders.into_iter().flat_map(|folders| folders.split('/')) {
            dir = if dir.look(folder)?.is_some() { dir.sub(folder)? } else { dir.make(folder, false)? };
        }
        let mut file = dir.create_new(file)?;
        let path = self.path.join(name);
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(Error::io("write", &path))?;
        let sum = Sha256::digest(bytes).iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        self.sums.push((name.to_owned(), sum));
        Ok(())
    }

    /// The files so far with their SHA-256, in the format of `sha256sum`.
    pub(crate) fn sums(&self) -> String {
        self.sums.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect()
    }

    /// Puts the folder in place of what an earlier export left there. Returns its path.
    pub(crate) fn commit(self) -> Result<PathBuf, Error> {
        self.dir.publish(0o777)?;
        self.dir.sync()?;
        if self.parent.look(self.name)?.is_some() {
            self.parent.remove_tree(self.name)?;
        }
        self.parent.rename(self.hidden.as_ref(), self.name.as_ref())?;
        self.parent.sync()?;
        Ok(self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn state(campaign: Value) -> State {
        State::new("1", 0, campaign, Value::Null, Host::default())
    }

    fn open(path: &Path, campaign: Value) -> Result<Store, Error> {
        Store::open(path, state(campaign), &mut |what| panic!("{what}"))
    }

    #[test]
    fn the_first_difference_is_named() {
        let of = |a: Value, b: Value| difference(&a, &b);
        assert_eq!(of(json!({"a": 1}), json!({"a": 1})), None);
        assert_eq!(of(json!({"a": [1, 4]}), json!({"a": [1, 8]})).as_deref(), Some("`a[1]` was 4 and is 8"));
        assert_eq!(of(json!({"a": [1]}), json!({"a": [1, 8]})).as_deref(), Some("`a` was [1] and is [1,8]"));
        assert_eq!(of(json!({"w": {}}), json!({"w": {"x": "y"}})).as_deref(), Some("`w.x` was absent and is \"y\""));
    }

    #[test]
    fn a_changed_campaign_is_refused_with_what_changed() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("c");
        drop(open(&path, json!({"seed": 1})).expect("it begins"));
        drop(open(&path, json!({"seed": 1})).expect("it resumes"));
        let error = open(&path, json!({"seed": 2})).expect_err("changed").to_string();
        assert!(error.starts_with("the campaign file has changed since the campaign in "), "{error}");
        assert!(error.contains("`seed` was 1 and is 2"), "{error}");
    }

    #[test]
    fn a_foreign_damaged_or_busy_directory_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("thesis.tex"), "").expect("written");
        let error = open(dir.path(), json!({})).expect_err("foreign").to_string();
        assert!(error.contains("holds \"thesis.tex\", but no campaign"), "{error}");
        let path = dir.path().join("c");
        let store = open(&path, json!({})).expect("it begins");
        assert!(open(&path, json!({})).expect_err("busy").to_string().contains("another campaign is at work"));
        drop(store);
        std::fs::write(path.join("journal.json"), "[{").expect("written");
        let error = open(&path, json!({})).expect_err("damaged").to_string();
        assert!(error.contains("journal.json: it is damaged") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn a_failed_test_is_tried_once_more_after_all_others() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut store = open(&dir.path().join("c"), json!({})).expect("it begins");
        let text = "title='t'\ncc=['cubic']\nrepetitions=3\ntime='1 s'\nwhere.simulation='x'";
        let plan = Plan::of(&crate::File::parse("c", text).expect("valid"));
        let mut order = Vec::new();
        while let Some(test) = store.next(&plan).expect("readable") {
            order.push(test.number);
            // The first fails always, the second once.
            let is_failure = test.number == 1 || (test.number == 2 && store.failures(test) == 0);
            let outcome = if is_failure { Outcome::Failed("why".into()) } else { Outcome::Finished };
            if !is_failure {
                std::fs::create_dir(store.results(test)).expect("made");
                std::fs::write(store.results(test).join("meta.json"), "{}").expect("written");
            }
            store
                .note(Entry {
                    test: test.number,
                    started_unix_s: 0.0,
                    wall_s: 0.0,
                    outcome,
                    tcp_metrics: String::new(),
                })
                .expect("noted");
        }
        assert_eq!(order, [1, 2, 3, 1, 2]);
        assert_eq!(store.failures(&plan.tests[0]), 2);
    }

    #[test]
    fn whatever_the_files_of_a_campaign_contain_it_is_read_or_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("c");
        drop(open(&path, json!({})).expect("it begins"));
        bolero::check!().with_iterations(300).for_each(|bytes: &[u8]| {
            std::fs::write(path.join("journal.json"), bytes).expect("written");
            if let Err(error) = open(&path, json!({})) {
                assert!(!error.to_string().contains('\n'));
            }
            if let Ok(text) = std::str::from_utf8(bytes)
                && let Err(error) = crate::File::parse("c.toml", text)
            {
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        });
    }
}
