//! Tables in text: their separator, whether their first line has names, their columns, and what is missing in them.

use std::borrow::Cow;

use csv::{ByteRecord, Reader, ReaderBuilder, Trim};

use crate::{Error, clock, shown};

/// Lines from which the separator is found.
const LINES: usize = 10;

/// A table, row by row.
pub(crate) struct Table<'a> {
    /// The names of the columns; empty if the first line has none.
    pub(crate) names: Vec<String>,
    /// The number of columns of the first line.
    width: usize,
    /// The name of the next row, if rows have a first cell that the header has not.
    row_name: Option<u64>,
    reader: Reader<Text<'a>>,
}

type Text<'a> = std::io::Cursor<Cow<'a, [u8]>>;

impl Table<'_> {
    /// Begins to read: columns are separated by commas, semicolons, tabs or blanks, and lines that begin with `#` are
    /// comments.
    pub(crate) fn new(text: &[u8]) -> Result<Table<'_>, Error> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let (text, separator) = separated(text);
        let mut build = ReaderBuilder::new();
        build.delimiter(separator).trim(Trim::All).comment(Some(b'#')).flexible(true).has_headers(false);
        let mut ahead = build.from_reader(&text[..]).into_byte_records();
        let mut row = || ahead.next().transpose().map_err(|error| Error::File(error.to_string()));
        let first = row()?.unwrap_or_default();
        let second = row()?.unwrap_or_default();
        let names = if has_names(&first, &second) { first.iter().map(name).collect() } else { Vec::new() };
        let has_row_names = !names.is_empty() && second.len() == first.len() + 1 && is_quoted(&text, separator);
        let row_name = has_row_names.then_some(1);
        let mut reader = build.from_reader(std::io::Cursor::new(text));
        if !names.is_empty() {
            reader.read_byte_record(&mut ByteRecord::new()).map_err(|error| Error::File(error.to_string()))?;
        }
        Ok(Table { names, width: first.len(), row_name, reader })
    }

    /// Reads the next row, and returns its line in the file; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Line`] if it has more cells than the first line, whose names are then those of other cells.
    pub(crate) fn next(&mut self, row: &mut ByteRecord) -> Result<Option<u64>, Error> {
        let is_row = self.reader.read_byte_record(row).map_err(|error| Error::File(error.to_string()))?;
        if !is_row {
            return Ok(None);
        }
        let line = row.position().map_or(0, csv::Position::line);
        match &mut self.row_name {
            Some(name) if row.len() == self.width + 1 && row[0] == *name.to_string().as_bytes() => {
                *name += 1;
                let position = row.position().cloned();
                *row = row.iter().skip(1).collect();
                row.set_position(position);
            }
            _ => as_wide(row, self.width, self.has_names(), line)?,
        }
        Ok(Some(line))
    }

    /// What to say of its form.
    pub(crate) fn note(&self) -> Option<String> {
        let what =
            "the header has no name for the first cell of each row, which is taken for the row's name, as R writes it";
        self.row_name.map(|_| what.to_owned())
    }

    /// Whether the first line has names.
    pub(crate) fn has_names(&self) -> bool {
        !self.names.is_empty()
    }

    /// The number of columns.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// The name of a column in a message.
    pub(crate) fn shown(&self, column: usize) -> String {
        match self.names.get(column) {
            Some(name) => format!("`{}`", shown(name.as_bytes())),
            None => format!("{}", column + 1),
        }
    }

    /// Returns the column with that name or number.
    pub(crate) fn column(&self, name: &str) -> Result<usize, Error> {
        let named = |exact: &dyn Fn(&str) -> bool| -> Vec<usize> {
            (0..self.names.len()).filter(|&column| exact(&self.names[column])).collect()
        };
        let mut found = named(&|one| one == name);
        if found.is_empty() {
            found = named(&|one| one.eq_ignore_ascii_case(name));
        }
        let by_number = || name.parse::<usize>().ok().and_then(|n| n.checked_sub(1)).filter(|&n| n < self.width);
        match found[..] {
            [one] => Ok(one),
            [] => by_number().ok_or_else(|| {
                let what = match self.has_names() {
                    true => format!("no column `{name}`; the columns are {}", self.all_names()),
                    false => format!(
                        "no column `{name}`: the file has no header; columns have the numbers 1 to {}",
                        self.width
                    ),
                };
                Error::File(what)
            }),
            _ => {
                let of = found.iter().map(|column| (column + 1).to_string()).collect();
                Err(crate::choose(&format!("several columns are called `{name}`: select one by its number"), of))
            }
        }
    }

    /// The names of the columns in a message.
    pub(crate) fn all_names(&self) -> String {
        let names: Vec<String> = (0..self.names.len().min(20)).map(|column| self.shown(column)).collect();
        names.join(", ")
    }
}

/// Refuses a row with more cells than the first line has, but for an empty one at the end.
pub(crate) fn as_wide(row: &ByteRecord, width: usize, has_names: bool, line: u64) -> Result<(), Error> {
    let cells = row.len();
    if cells <= width || cells == width + 1 && row[width].is_empty() {
        return Ok(());
    }
    let first = if has_names { "the header" } else { "the first line" };
    let what = format!("has {cells} cells, and {first} has {width}: expected a name for each column");
    let valid = "(R: `write.table(..., row.names = FALSE)`), and values with decimal commas or separators in quotes, or \
                 separated by `;`";
    Err(Error::line(line, format!("{what} {valid}")))
}

/// Whether the first two lines begin as R writes them: with a name in quotes, and with `"1"`.
fn is_quoted(text: &[u8], separator: u8) -> bool {
    let is_data = |line: &&[u8]| !line.starts_with(b"#") && !line.trim_ascii().is_empty();
    let mut lines = text.split(|&byte| byte == b'\n').filter(is_data);
    let (first, second) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    first.starts_with(b"\"") && second.strip_prefix(b"\"1\"").is_some_and(|rest| rest.first() == Some(&separator))
}

/// Decodes a name: UTF-8, or else Latin-1, which has `µ` too.
fn name(bytes: &[u8]) -> String {
    str::from_utf8(bytes).map_or_else(|_| bytes.iter().map(|&byte| char::from(byte)).collect(), str::to_owned)
}

/// Whether a cell is empty or says that its value is missing.
pub(crate) fn is_missing(cell: &[u8]) -> bool {
    const MISSING: [&str; 14] =
        ["", "-", "--", "---", "?", "na", "n/a", "nan", "null", "none", "nil", "unknown", "unavailable", "invalid"];
    str::from_utf8(cell).is_ok_and(|cell| MISSING.iter().any(|one| cell.trim().eq_ignore_ascii_case(one)))
}

/// Whether a rate or an amount stands for an unknown one: -1, or the least or the most that an integer of 32 or 64 bits holds, such
/// as `CellInfo.UNAVAILABLE` and `TrafficStats.UNSUPPORTED` of Android.
pub(crate) fn is_sentinel(value: f64) -> bool {
    const MOST: [f64; 4] = [i32::MAX as f64, u32::MAX as f64, i64::MAX as f64, u64::MAX as f64];
    const LEAST: [f64; 3] = [-1.0, i32::MIN as f64, i64::MIN as f64];
    MOST.contains(&value) || LEAST.contains(&value)
}

/// What to say of so many rows without a value, one of which is `example`.
pub(crate) fn sentinels(count: u64, example: f64) -> String {
    format!("{count} rates or amounts stand for unknown ones, such as {example}, and are left out")
}

/// Whether the first line has names: none of its cells is a number or a date, or a cell is text above one that is.
fn has_names(first: &ByteRecord, second: &ByteRecord) -> bool {
    let is_value = |cell: &[u8]| clock::moment(cell).is_some();
    let is_text = |cell: &[u8]| !is_value(cell) && !is_missing(cell);
    !first.is_empty() && !first.iter().any(is_value)
        || first.iter().zip(second).any(|(above, below)| is_text(above) && is_value(below))
}

/// Returns a text with a separator that is one byte, and that byte.
fn separated(text: &[u8]) -> (Cow<'_, [u8]>, u8) {
    let lines =
        || text.split(|&byte| byte == b'\n').filter(|line| !line.starts_with(b"#") && !line.trim_ascii().is_empty());
    let count = |line: &[u8], of: u8| line.iter().filter(|&&byte| byte == of).count();
    let first = lines().next().unwrap_or_default();
    // Commas may be decimal marks where semicolons or tabs separate, and semicolons be in text.
    let is_everywhere = |of: &u8| {
        let columns = count(first, *of);
        columns > 0 && lines().take(LINES).all(|line| count(line, *of) == columns)
    };
    if let Some(separator) = [b'\t', b';'].into_iter().find(is_everywhere) {
        return (Cow::Borrowed(text), separator);
    }
    if let Some(separator) =
        [b'\t', b';', b','].into_iter().filter(|&of| count(first, of) > 0).max_by_key(|&of| count(first, of))
    {
        return (Cow::Borrowed(text), separator);
    }
    // Runs of blanks are one separator.
    let mut joined = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        if line.starts_with(b"#") {
            joined.extend_from_slice(line);
            continue;
        }
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        joined.extend_from_slice(words.next().unwrap_or_default());
        for word in words {
            joined.push(b'\t');
            joined.extend_from_slice(word);
        }
        joined.push(b'\n');
    }
    (Cow::Owned(joined), b'\t')
}
