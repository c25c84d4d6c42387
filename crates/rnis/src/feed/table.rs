//! Tables as CSV: names in the first line, numbers below.

use crate::error::FeedError;

/// The most columns.
const MOST_COLUMNS: usize = 512;

/// The head of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    names: Vec<String>,
}

/// One row.
#[derive(Debug)]
pub(super) struct Row<'a> {
    names: &'a [String],
    values: Vec<&'a str>,
}

impl Table {
    /// Takes in a line: returns a row, or `None` for the head. A line whose first entry is not a number is a head; a file may
    /// hold several tables.
    pub(super) fn line<'a>(&'a mut self, line: &'a [u8]) -> Result<Option<Row<'a>>, FeedError> {
        let text = core::str::from_utf8(line).map_err(FeedError::new)?;
        let values: Vec<&str> =
            text.split(',').map(|value| value.trim().trim_matches('"')).take(MOST_COLUMNS + 1).collect();
        if values.len() > MOST_COLUMNS {
            return Err(FeedError::new(format_args!("more than {MOST_COLUMNS} columns")));
        }
        let is_number = |value: &str| value.parse::<f64>().is_ok() || crate::addresses::number(value).is_some();
        if values.first().is_some_and(|first| !first.is_empty() && !is_number(first)) {
            self.names = values.into_iter().map(ToOwned::to_owned).collect();
            return Ok(None);
        }
        if self.names.is_empty() {
            return Err(FeedError::new("the first line does not name the columns"));
        }
        if values.len() != self.names.len() {
            return Err(FeedError::new(format_args!("{} values for {} columns", values.len(), self.names.len())));
        }
        Ok(Some(Row { names: &self.names, values }))
    }
}

impl Row<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        let index = self.names.iter().position(|column| column == name)?;
        self.values.get(index).copied().filter(|value| !value.is_empty())
    }

    /// Returns whether there is a column with this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|column| column == name)
    }

    /// Returns a whole number in the range of `T`, in decimal or as `0x1a2b`.
    pub(super) fn integer<T: TryFrom<u64>>(&self, name: &str) -> Result<Option<T>, FeedError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = crate::addresses::number(text).and_then(|number| T::try_from(number).ok());
        number.map(Some).ok_or_else(|| FeedError::new(format_args!("invalid {name} `{text}`")))
    }

    /// Returns a whole number that must be there.
    pub(super) fn required<T: TryFrom<u64>>(&self, name: &str) -> Result<T, FeedError> {
        self.integer(name)?.ok_or_else(|| FeedError::new(format_args!("{name} is missing")))
    }

    /// Returns the names and values.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().map(String::as_str).zip(self.values.iter().copied())
    }
}
