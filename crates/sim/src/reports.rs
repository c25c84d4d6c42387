//! The cells' reports and events, written to a file as lines of JSON.

use std::io::{self, Write};
use std::path::Path;

use disk::Draft;
use rnis::feed::recording;
use rnis::{Record, UeId};

/// Why a scenario without cells has no reports.
pub const NO_CELLS: &str = "there are no reports: the scenario has no cells (no table [radio])";

/// A recording: a file of reports and events, which is complete or not there.
pub struct Recording {
    file: io::BufWriter<Draft>,
    /// The first failure; nothing is written after it.
    failure: Option<io::Error>,
}

impl Recording {
    /// Creates a recording at `path`.
    ///
    /// # Errors
    /// [`disk::Error`] for a path that cannot be written.
    pub fn create(path: &Path) -> Result<Recording, disk::Error> {
        Ok(Recording { file: io::BufWriter::new(Draft::create(path)?), failure: None })
    }

    /// Writes a report or an event.
    pub fn write(&mut self, record: &Record) {
        if self.failure.is_none() {
            self.failure = writeln!(self.file, "{}", recording::format_line(record)).err();
        }
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// What could not be written; then there is no file.
    pub fn finish(self) -> Result<(), String> {
        let fail = |why: &dyn std::fmt::Display| format!("the recording of reports cannot be written: {why}");
        if let Some(why) = self.failure {
            return Err(fail(&why));
        }
        let draft = self.file.into_inner().map_err(|why| fail(why.error()))?;
        draft.commit().map_err(|why| fail(&why))
    }
}

/// Adds the UE's addresses to a report or an event. In an emulation they are its host's.
pub fn add_addresses(record: &mut Record, ue: u32) {
    let (v4, v6) = scenario::host_addresses(ue as usize + 1);
    let id = match record {
        Record::Report(report) => &mut report.ue,
        Record::Event(event) => &mut event.ue,
    };
    *id = UeId { second_address: Some(v6.into()), ..id.at(v4) };
}
