//! What several commands of `ranway import` share: arguments, and how inputs are read and notes printed.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use anyhow::Context;
use clap::{Args as ClapArgs, ValueEnum};
use import::{Noted, Unit, Where, texture};

use crate::failure::Failure;
use crate::terminal;

/// The part of a recording to import.
#[derive(ClapArgs)]
pub(crate) struct PartArgs {
    /// Skip this many seconds at the beginning
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = seconds)]
    pub(super) begin: f64,
    /// Maximum length in seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) length: Option<f64>,
}

/// How rates vary within rows.
#[derive(ClapArgs)]
pub(crate) struct TextureArgs {
    /// Let rates vary at random within rows, each of which keeps its amount of data. SPREAD is the standard deviation of the
    /// rate's natural logarithm; if left out, it is 0.7, about that of LTE's recordings within a second
    #[arg(long = "texture", value_name = "SPREAD", num_args = 0..=1, require_equals = true, value_parser = spread)]
    spread: Option<Option<f64>>,
}

impl TextureArgs {
    /// Returns the spread, if rates are to vary; with a spread of 0, they are not.
    pub(super) fn spread(&self) -> Option<f64> {
        self.spread.map(|spread| spread.unwrap_or(texture::USUAL)).filter(|spread| *spread > 0.0)
    }
}

/// The rows that count.
#[derive(ClapArgs)]
pub(crate) struct WhereArgs {
    /// Only rows with that value in a column, if the table has rows of several phones, operators, directions or others; may be
    /// repeated. `COLUMN=*` takes all rows as those of one
    #[arg(long = "where", value_name = "COLUMN=VALUE", value_parser = condition)]
    pub(super) only: Vec<Where>,
}

fn condition(text: &str) -> Result<Where, String> {
    Where::parse(text).ok_or_else(|| "expected a column and a value, such as device=phone1".to_owned())
}

/// The unit of a time.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum TimeUnit {
    /// seconds
    S,
    /// milliseconds
    Ms,
    /// microseconds
    Us,
    /// nanoseconds
    Ns,
}

impl TimeUnit {
    pub(super) fn seconds(self) -> f64 {
        match self {
            TimeUnit::S => 1.0,
            TimeUnit::Ms => 1e-3,
            TimeUnit::Us => 1e-6,
            TimeUnit::Ns => 1e-9,
        }
    }
}

pub(super) fn rate_unit(text: &str) -> Result<Unit, String> {
    Unit::parse(text).ok_or_else(|| format!("expected {}", Unit::VALID))
}

fn spread(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=3.0).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 3, such as 0.7".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=4_294_967.0).contains(number));
    number.ok_or_else(|| "expected a number of seconds, such as 30 or 0.5".to_owned())
}

pub(super) fn open(path: &Path) -> Result<BufReader<File>, Failure> {
    Ok(BufReader::new(File::open(path).with_context(|| path.display().to_string())?))
}

/// Returns a function that classifies errors: I/O errors are failures of the environment, all others are invalid input.
pub(super) fn at(path: &Path) -> impl Fn(import::Error) -> Failure + '_ {
    move |error| match error {
        import::Error::Io(error) => Failure::Failed(anyhow::Error::new(error).context(path.display().to_string())),
        error => Failure::Invalid(format!("{}: {error}", path.display())),
    }
}

/// Prints the notes, and returns what was read.
pub(super) fn noted<T>(read: Result<Noted<T>, import::Error>, path: &Path) -> Result<T, Failure> {
    let Noted { value, notes } = read.map_err(at(path))?;
    for note in notes {
        terminal::message!("note: {}: {note}", path.display());
    }
    Ok(value)
}
