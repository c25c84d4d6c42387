//! Typed tables over Arrow columns and Parquet files.
//!
//! [`table!`](crate::tables) makes, from one description, the row (what a driver pushes), the table (struct of arrays,
//! what is kept), and the schema with each column's meaning and unit. Text columns are dictionaries: a row borrows its
//! texts, and pushing a known text allocates nothing.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::iter;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray,
    UInt32Array, UInt64Array, new_null_array,
};
use arrow_schema::{ArrowError, DataType, Field, Metadata, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::reader::ChunkReader;
use parquet::schema::types::ColumnPath;

use crate::Job;
use crate::caught::caught;

/// Rows that are turned into Arrow arrays at a time: bounds the memory that writing takes.
const BATCH_ROWS: usize = 1 << 16;
/// A table of fewer rows is not compressed.
const SMALL: usize = 1_000;

/// The values of one column.
pub trait Column: Default {
    /// One value.
    type Item<'a>: Copy;
    /// Whether a value may be missing.
    const NULLABLE: bool;
    /// The Arrow type.
    fn data_type() -> DataType;
    /// Appends a value.
    fn push(&mut self, item: Self::Item<'_>);
    /// Appends some values of `other`.
    fn push_rows(&mut self, other: &Self, rows: Range<usize>);
    /// The value of row `i`.
    fn get(&self, i: usize) -> Self::Item<'_>;
    /// Some rows as an Arrow array.
    fn array(&self, rows: Range<usize>) -> ArrayRef;
    /// Appends an Arrow array of this column's type.
    ///
    /// # Errors
    /// The types do not fit, or a value is missing where none may be.
    fn read(&mut self, array: &dyn Array) -> Result<(), ArrowError>;
    /// Replaces each text; columns without texts stay as they are.
    fn map_texts(&mut self, _: &dyn Fn(&str) -> String) {}
}

fn other_type(array: &dyn Array, wanted: &DataType) -> ArrowError {
    ArrowError::SchemaError(format!("a column is of type {}, not {wanted}", array.data_type()))
}

macro_rules! plain_columns {
    ($($native:ty, $array:ty, $data_type:ident;)+) => {$(
        impl Column for Vec<$native> {
            type Item<'a> = $native;
            const NULLABLE: bool = false;
            fn data_type() -> DataType {
                DataType::$data_type
            }
            #[inline]
            fn push(&mut self, item: $native) {
                self.push(item);
            }
            fn push_rows(&mut self, other: &Self, rows: Range<usize>) {
                self.extend_from_slice(&other[rows]);
            }
            fn get(&self, i: usize) -> $native {
                self[i]
            }
            fn array(&self, rows: Range<usize>) -> ArrayRef {
                Arc::new(<$array>::from(self[rows].to_vec()))
            }
            fn read(&mut self, array: &dyn Array) -> Result<(), ArrowError> {
                let array = array.as_any().downcast_ref::<$array>().ok_or_else(|| other_type(array, &Self::data_type()))?;
                if array.null_count() > 0 {
                    return Err(ArrowError::SchemaError("a value is missing".to_owned()));
                }
                self.extend((0..array.len()).map(|i| array.value(i)));
                Ok(())
            }
        }

        impl Column for Vec<Option<$native>> {
            type Item<'a> = Option<$native>;
            const NULLABLE: bool = true;
            fn data_type() -> DataType {
                DataType::$data_type
            }
            #[inline]
            fn push(&mut self, item: Option<$native>) {
                self.push(item);
            }
            fn push_rows(&mut self, other: &Self, rows: Range<usize>) {
                self.extend_from_slice(&other[rows]);
            }
            fn get(&self, i: usize) -> Option<$native> {
                self[i]
            }
            fn array(&self, rows: Range<usize>) -> ArrayRef {
                Arc::new(<$array>::from(self[rows].to_vec()))
            }
            fn read(&mut self, array: &dyn Array) -> Result<(), ArrowError> {
                let values = array.as_any().downcast_ref::<$array>();
                self.extend(values.ok_or_else(|| other_type(array, &Self::data_type()))?);
                Ok(())
            }
        }
    )+};
}
plain_columns! {
    bool, BooleanArray, Boolean;
    u32, UInt32Array, UInt32;
    u64, UInt64Array, UInt64;
    f64, Float64Array, Float64;
}

/// A column of texts, each distinct one kept once, numbered in the order of their first appearance.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strings {
    codes: Vec<u32>,
    texts: Vec<Arc<str>>,
    code_of: BTreeMap<Arc<str>, u32>,
}

impl Column for Strings {
    type Item<'a> = &'a str;
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
    }

    #[inline]
    fn push(&mut self, item: &str) {
        // Rows of one flow or link tend to follow each other.
        if let Some(&last) = self.codes.last()
            && &*self.texts[last as usize] == item
        {
            self.codes.push(last);
            return;
        }
        let code = self.code_of.get(item).copied().unwrap_or_else(|| {
            let (text, code) = (Arc::<str>::from(item), self.texts.len() as u32);
            self.texts.push(Arc::clone(&text));
            self.code_of.insert(text, code);
            code
        });
        self.codes.push(code);
    }

    fn push_rows(&mut self, other: &Self, rows: Range<usize>) {
        self.push_coded(other.codes[rows].iter().map(|&code| code as usize), other.texts.len(), |code| {
            &other.texts[code]
        });
    }

    fn get(&self, i: usize) -> &str {
        &self.texts[self.codes[i] as usize]
    }

    fn array(&self, rows: Range<usize>) -> ArrayRef {
        let keys: Int32Array = self.codes[rows].iter().map(|&code| code as i32).collect();
        let values = StringArray::from_iter_values(&self.texts);
        Arc::new(DictionaryArray::new(keys, Arc::new(values)))
    }

    fn read(&mut self, array: &dyn Array) -> Result<(), ArrowError> {
        let (codes, values) = dictionary(array)?;
        if codes.null_count() > 0 {
            return Err(missing_text());
        }
        self.push_coded(codes.values().iter().map(|&code| code as usize), values.len(), |code| values.value(code));
        Ok(())
    }

    fn map_texts(&mut self, map: &dyn Fn(&str) -> String) {
        let mapped: Vec<String> = self.texts.iter().map(|text| map(text)).collect();
        // Different texts may have become the same.
        let codes = core::mem::take(self).codes;
        codes.into_iter().for_each(|code| self.push(&mapped[code as usize]));
    }
}

/// The numbers of the rows' texts in an Arrow array, and the texts.
fn dictionary(array: &dyn Array) -> Result<(&Int32Array, &StringArray), ArrowError> {
    let texts = array.as_dictionary_opt::<Int32Type>().and_then(DictionaryArray::downcast_dict::<StringArray>);
    let texts = texts.ok_or_else(|| other_type(array, &Strings::data_type()))?;
    let (codes, values) = (texts.keys(), texts.values());
    if values.null_count() > 0 { Err(missing_text()) } else { Ok((codes, values)) }
}

fn missing_text() -> ArrowError {
    ArrowError::SchemaError("a text is missing".to_owned())
}

/// A column of texts that may be missing. An empty text is a missing one: earlier versions wrote that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OptStrings(Strings);

impl Column for OptStrings {
    type Item<'a> = Option<&'a str>;
    const NULLABLE: bool = true;

    fn data_type() -> DataType {
        Strings::data_type()
    }

    #[inline]
    fn push(&mut self, item: Option<&str>) {
        self.0.push(item.unwrap_or_default());
    }

    fn push_rows(&mut self, other: &Self, rows: Range<usize>) {
        self.0.push_rows(&other.0, rows);
    }

    fn get(&self, i: usize) -> Option<&str> {
        Some(self.0.get(i)).filter(|text| !text.is_empty())
    }

    fn array(&self, rows: Range<usize>) -> ArrayRef {
        let missing = self.0.code_of.get("").copied();
        let keys = self.0.codes[rows].iter().map(|&code| (Some(code) != missing).then_some(code as i32));
        let values = StringArray::from_iter_values(&self.0.texts);
        Arc::new(DictionaryArray::new(keys.collect::<Int32Array>(), Arc::new(values)))
    }

    fn read(&mut self, array: &dyn Array) -> Result<(), ArrowError> {
        let (codes, values) = dictionary(array)?;
        codes.iter().for_each(|code| self.push(code.map(|code| values.value(code as usize))));
        Ok(())
    }

    fn map_texts(&mut self, map: &dyn Fn(&str) -> String) {
        self.0.map_texts(&|text| if text.is_empty() { String::new() } else { map(text) });
    }
}

impl Strings {
    /// Appends texts that another column, or a dictionary, has numbered below `codes`.
    fn push_coded<'a>(
        &mut self,
        rows: impl ExactSizeIterator<Item = usize>,
        codes: usize,
        text: impl Fn(usize) -> &'a str,
    ) {
        if rows.len() < codes {
            return rows.for_each(|code| self.push(text(code)));
        }
        // Each text is looked up once.
        let mut own = vec![None; codes];
        self.codes.reserve(rows.len());
        for code in rows {
            if let Some(own) = own[code] {
                self.codes.push(own);
            } else {
                self.push(text(code));
                own[code] = self.codes.last().copied();
            }
        }
    }
}

/// A column of byte strings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blobs {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Column for Blobs {
    type Item<'a> = &'a [u8];
    const NULLABLE: bool = false;

    fn data_type() -> DataType {
        DataType::Binary
    }

    fn push(&mut self, item: &[u8]) {
        self.bytes.extend_from_slice(item);
        self.ends.push(self.bytes.len());
    }

    fn push_rows(&mut self, other: &Self, rows: Range<usize>) {
        rows.for_each(|i| self.push(other.get(i)));
    }

    fn get(&self, i: usize) -> &[u8] {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[i]]
    }

    fn array(&self, rows: Range<usize>) -> ArrayRef {
        Arc::new(BinaryArray::from_iter_values(rows.map(|i| self.get(i))))
    }

    fn read(&mut self, array: &dyn Array) -> Result<(), ArrowError> {
        let values = array.as_any().downcast_ref::<BinaryArray>();
        for value in values.ok_or_else(|| other_type(array, &Self::data_type()))? {
            self.push(value.ok_or_else(|| ArrowError::SchemaError("a value is missing".to_owned()))?);
        }
        Ok(())
    }
}

/// A typed table. Made by the macro of [`crate::tables`]; the methods here are for generic code.
pub trait Table: Default {
    /// The name, and the stem of the file's name.
    const NAME: &'static str;
    /// The number of rows.
    fn len(&self) -> usize;
    /// Whether there is no row.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The Arrow schema, with `doc` and `unit` in each field's metadata.
    fn schema() -> SchemaRef;
    /// Some rows as an Arrow batch.
    fn batch(&self, rows: Range<usize>) -> RecordBatch;
    /// Appends some rows of `other`.
    fn push_rows(&mut self, other: &Self, rows: Range<usize>);
    /// Appends an Arrow batch; columns are found by name, and further ones are ignored. Columns that are not there have no values, if
    /// their values may be missing.
    ///
    /// # Errors
    /// A column is missing or does not fit.
    fn read_batch(&mut self, batch: &RecordBatch) -> Result<(), ArrowError>;
    /// Replaces each text, as to publish results without addresses.
    fn map_texts(&mut self, map: &dyn Fn(&str) -> String);
    /// Adds `by` to the number of each row's point, as to put results beside others.
    ///
    /// # Errors
    /// A row is of none of the first `points` points.
    fn shift_points(&mut self, by: u32, points: u32) -> Result<(), ArrowError>;

    /// Gives all rows to a job, as to put results of single runs together.
    fn set_job(&mut self, point: u32, run: u32);

    /// Writes the table as Parquet.
    ///
    /// # Errors
    /// `to` could not be written.
    fn write_parquet(&self, mut to: impl Write + Send) -> io::Result<()> {
        let (schema, rows) = (Self::schema(), self.len());
        write_batches(&mut to, schema, properties(rows), rows, &|rows| self.batch(rows))
    }

    /// Writes the table as Parquet that is soon read again and removed: in less time, but into a longer file.
    ///
    /// # Errors
    /// `to` could not be written.
    fn write_for_now(&self, mut to: impl Write + Send) -> io::Result<()> {
        let (schema, rows) = (Self::schema(), self.len());
        let properties = properties_for_now(&schema, rows);
        write_batches(&mut to, schema, properties, rows, &|rows| self.batch(rows))
    }

    /// Reads a table from Parquet.
    ///
    /// # Errors
    /// `from` is not Parquet, or a column is missing or does not fit.
    fn read_parquet(from: impl ChunkReader + 'static) -> Result<Self, ArrowError> {
        Ok(Self::read_thinned(from, usize::MAX)?.0)
    }

    /// Reads a table from Parquet, but not much more than `most` rows of it: of a table over time the rows of every n-th
    /// moment, as few as that takes. Returns n as well.
    ///
    /// # Errors
    /// As [`Table::read_parquet`]; also if there are more rows in a table that is not over time.
    fn read_thinned(from: impl ChunkReader + 'static, most: usize) -> Result<(Self, usize), ArrowError> {
        let mut table = Self::default();
        let every = read_batches(from, most, &mut |batch| table.read_batch(batch))?;
        Ok((table, every))
    }
}

// What follows is not generic over tables, of which there are many: that would take long to compile.

/// Writes the batches of a table of so many rows.
fn write_batches(
    to: &mut (dyn Write + Send),
    schema: SchemaRef,
    how: WriterProperties,
    all: usize,
    batch: &dyn Fn(Range<usize>) -> RecordBatch,
) -> io::Result<()> {
    let mut writer = parquet_writer(to, schema, how)?;
    for start in (0..all).step_by(BATCH_ROWS) {
        writer.write(&batch(start..all.min(start + BATCH_ROWS))).map_err(into_io)?;
    }
    writer.close().map_err(into_io)?;
    Ok(())
}

/// Writes a batch that is a whole table.
pub(crate) fn write_batch(mut to: impl Write + Send, batch: &RecordBatch) -> io::Result<()> {
    let (rows, schema) = (batch.num_rows(), batch.schema());
    write_batches(&mut to, schema, properties(rows), rows, &|range| batch.slice(range.start, range.len()))
}

/// Reads the batches of a table, as [`Table::read_thinned`] does, and returns the same number.
fn read_batches(
    from: impl ChunkReader + 'static,
    most: usize,
    take: &mut dyn FnMut(&RecordBatch) -> Result<(), ArrowError>,
) -> Result<usize, ArrowError> {
    let builder = caught(|| Ok(ParquetRecordBatchReaderBuilder::try_new(from)?))?;
    check_places(builder.metadata())?;
    let rows = usize::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or(usize::MAX);
    let every = rows.div_ceil(most.max(1)).max(1);
    let (mut moment, mut last) = (0, f64::NAN);
    let mut batches = caught(|| Ok(builder.with_batch_size(BATCH_ROWS).build()?))?;
    while let Some(batch) = caught(|| batches.next().transpose())? {
        if every == 1 {
            take(&batch)?;
            continue;
        }
        let times = batch.column_by_name("t_s").and_then(|times| times.as_any().downcast_ref::<Float64Array>());
        let Some(times) = times else {
            let what = format!("it has {rows} rows, and {most} are the most that can be read");
            return Err(ArrowError::InvalidArgumentError(what));
        };
        let mut start = 0;
        for (row, &time) in times.values().iter().enumerate() {
            let is_next = time.to_bits() != last.to_bits();
            if is_next && moment % every == 1 {
                // The moment that was to be kept is over.
                take(&batch.slice(start, row - start))?;
            }
            if is_next {
                (start, last) = (row, time);
                moment += 1;
            }
        }
        if moment % every == 1 {
            take(&batch.slice(start, batch.num_rows() - start))?;
        }
    }
    Ok(every)
}

/// Refuses columns at negative places, with which the reader of pages panics.
fn check_places(metadata: &ParquetMetaData) -> Result<(), ArrowError> {
    for column in metadata.row_groups().iter().flat_map(RowGroupMetaData::columns) {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        if start < 0 || column.compressed_size() < 0 || start.checked_add(column.compressed_size()).is_none() {
            return Err(ArrowError::ParquetError("a column's place in the file is impossible".to_owned()));
        }
    }
    Ok(())
}

/// Opens the writer of a table.
fn parquet_writer<W: Write + Send>(to: W, schema: SchemaRef, how: WriterProperties) -> io::Result<ArrowWriter<W>> {
    ArrowWriter::try_new(to, schema, Some(how)).map_err(into_io)
}

/// How a table of so many rows, or more, is written.
fn properties(rows: usize) -> WriterProperties {
    WriterProperties::builder().set_compression(compression(rows, 3)).build()
}

/// How a table of so many rows is written that is soon read again: numbers as they are, without statistics.
fn properties_for_now(schema: &Schema, rows: usize) -> WriterProperties {
    let texts = schema.fields().iter().filter(|field| matches!(field.data_type(), DataType::Dictionary(..)));
    let plain = WriterProperties::builder()
        .set_compression(compression(rows, 1))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None);
    let dictionary = |to: WriterPropertiesBuilder, field: &Arc<Field>| {
        to.set_column_dictionary_enabled(ColumnPath::from(field.name().as_str()), true)
    };
    texts.fold(plain, dictionary).build()
}

fn compression(rows: usize, level: i32) -> Compression {
    // A compressor for each column takes longer than a small table is worth.
    if rows < SMALL {
        return Compression::UNCOMPRESSED;
    }
    Compression::ZSTD(ZstdLevel::try_new(level).expect("a zstd level"))
}

/// A table that is written as Parquet while its rows arrive, in bounded memory. The file is, byte for byte, that of
/// [`Table::write_parquet`] with all rows together.
pub(crate) struct Appender<T, W: Write + Send> {
    /// The rows that are not written yet, fewer than [`BATCH_ROWS`].
    pending: T,
    /// The file, until the writer is opened.
    file: Option<W>,
    writer: Option<ArrowWriter<W>>,
}

impl<T: Table, W: Write + Send> Appender<T, W> {
    pub(crate) fn new(file: W) -> Appender<T, W> {
        Appender { pending: T::default(), file: Some(file), writer: None }
    }

    /// Appends all rows of `table`.
    ///
    /// # Errors
    /// The file could not be written.
    pub(crate) fn append(&mut self, table: &T) -> io::Result<()> {
        let mut start = 0;
        while start < table.len() {
            let end = table.len().min(start + BATCH_ROWS - self.pending.len());
            self.pending.push_rows(table, start..end);
            start = end;
            if self.pending.len() == BATCH_ROWS {
                self.write()?;
            }
        }
        Ok(())
    }

    /// Writes the pending rows.
    fn write(&mut self) -> io::Result<()> {
        let rows = self.pending.len();
        if let Some(file) = self.file.take() {
            self.writer = Some(parquet_writer(file, T::schema(), properties(rows))?);
        }
        let batch = mem::take(&mut self.pending).batch(0..rows);
        self.writer.as_mut().map_or(Ok(()), |writer| writer.write(&batch).map_err(into_io))
    }

    /// Ends the table and returns its file.
    ///
    /// # Errors
    /// The file could not be written.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        if !self.pending.is_empty() || self.file.is_some() {
            self.write()?;
        }
        self.writer.expect("it was opened to write").into_inner().map_err(into_io)
    }
}

/// The system's own error, where there is one, so that the caller sees a full disk as a full disk.
fn into_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}

/// A field with its meaning and unit.
pub(crate) fn field<C: Column>(name: &str, docs: &[&str], unit: &str) -> Field {
    let doc = docs.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    let mut metadata = vec![("doc".to_owned(), doc)];
    if !unit.is_empty() {
        metadata.push(("unit".to_owned(), unit.to_owned()));
    }
    Field::new(name, C::data_type(), C::NULLABLE).with_metadata(metadata.into_iter().collect::<Metadata>())
}

/// Appends a batch's column `name`. If its values may be missing, so may the column, as in results of earlier versions.
pub(crate) fn read_column<C: Column>(column: &mut C, batch: &RecordBatch, name: &str) -> Result<(), ArrowError> {
    let array = match batch.column_by_name(name) {
        Some(array) => Arc::clone(array),
        None if C::NULLABLE => new_null_array(&C::data_type(), batch.num_rows()),
        None => return Err(ArrowError::SchemaError(format!("the column {name} is missing"))),
    };
    column.read(&array).map_err(|error| ArrowError::SchemaError(format!("column {name}: {error}")))
}

/// The jobs of rows, with the rows of each that follow one another.
pub(crate) fn stretches(points: &[u32], runs: &[u32]) -> impl Iterator<Item = (Job, Range<usize>)> {
    let mut start = 0;
    iter::from_fn(move || {
        let (&point, &run) = (points.get(start)?, runs.get(start)?);
        let same = points[start..].iter().zip(&runs[start..]).take_while(|at| *at == (&point, &run));
        let rows = start..start + same.count();
        start = rows.end;
        Some((Job { point, run }, rows))
    })
}

/// Adds `by` to numbers below `below`.
pub(crate) fn shift(numbers: &mut [u32], by: u32, below: u32) -> Result<(), ArrowError> {
    for number in numbers {
        let shifted = number.checked_add(by).filter(|_| *number < below);
        *number = shifted.ok_or_else(|| {
            ArrowError::InvalidArgumentError(format!("a row is of point {number}, and there are {below} points"))
        })?;
    }
    Ok(())
}

/// The type that keeps a column of a kind.
macro_rules! column_of {
    (str) => { $crate::table::Strings };
    (opt_str) => { $crate::table::OptStrings };
    (bytes) => { $crate::table::Blobs };
    (opt_f64) => { Vec<Option<f64>> };
    (opt_u64) => { Vec<Option<u64>> };
    ($native:ident) => { Vec<$native> };
}

/// The type of a kind's value in a row.
macro_rules! item_of {
    (str, $lt:lifetime) => { &$lt str };
    (opt_str, $lt:lifetime) => { Option<&$lt str> };
    (bytes, $lt:lifetime) => { &$lt [u8] };
    (opt_f64, $lt:lifetime) => { Option<f64> };
    (opt_u64, $lt:lifetime) => { Option<u64> };
    ($native:ident, $lt:lifetime) => { $native };
}

/// Makes a row, its table, schema and reading back. Each column: doc, unit ("" for none), name, kind.
macro_rules! table {
    (
        $(#[doc = $table_doc:literal])+
        pub struct $row:ident<$lt:lifetime> in $table:ident $file:literal {
            $($(#[doc = $doc:literal])+ $unit:literal $name:ident: $kind:tt,)+
        }
    ) => {
        $(#[doc = $table_doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $row<$lt> {
            $($(#[doc = $doc])+ pub $name: item_of!($kind, $lt),)+
        }

        #[doc = concat!("[`", stringify!($row), "`]s, in the order in which they were pushed.")]
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $table {
            row_count: usize,
            $($name: column_of!($kind),)+
        }

        impl $table {
            /// Appends a row. Numbers must be finite.
            #[inline]
            pub fn push(&mut self, row: &$row<'_>) {
                self.row_count += 1;
                $($crate::table::Column::push(&mut self.$name, row.$name);)+
            }

            /// Row `i`.
            ///
            /// # Panics
            /// There is no such row.
            pub fn row(&self, i: usize) -> $row<'_> {
                $row { $($name: $crate::table::Column::get(&self.$name, i),)+ }
            }

            /// The jobs of the rows, with the rows of each that follow one another.
            pub(crate) fn stretches(&self) -> impl Iterator<Item = ($crate::Job, ::core::ops::Range<usize>)> {
                $crate::table::stretches(&self.point, &self.run)
            }

            /// The rows in order.
            pub fn iter(&self) -> impl ExactSizeIterator<Item = $row<'_>> {
                (0..self.row_count).map(|i| self.row(i))
            }

            /// Appends the rows of `other`, as from another run.
            pub fn append(&mut self, other: &$table) {
                $crate::table::Table::push_rows(self, other, 0..other.row_count);
            }
        }

        impl $crate::table::Table for $table {
            const NAME: &'static str = $file;

            fn len(&self) -> usize {
                self.row_count
            }

            fn schema() -> ::arrow_schema::SchemaRef {
                ::std::sync::Arc::new(::arrow_schema::Schema::new(vec![
                    $($crate::table::field::<column_of!($kind)>(stringify!($name), &[$($doc),+], $unit),)+
                ]))
            }

            fn batch(&self, rows: ::core::ops::Range<usize>) -> ::arrow_array::RecordBatch {
                let columns = vec![$($crate::table::Column::array(&self.$name, rows.clone()),)+];
                ::arrow_array::RecordBatch::try_new(Self::schema(), columns).expect("columns are made from the schema")
            }

            fn push_rows(&mut self, other: &Self, rows: ::core::ops::Range<usize>) {
                self.row_count += rows.len();
                $($crate::table::Column::push_rows(&mut self.$name, &other.$name, rows.clone());)+
            }

            fn read_batch(&mut self, batch: &::arrow_array::RecordBatch) -> Result<(), ::arrow_schema::ArrowError> {
                $($crate::table::read_column(&mut self.$name, batch, stringify!($name))?;)+
                self.row_count += batch.num_rows();
                Ok(())
            }

            fn map_texts(&mut self, map: &dyn Fn(&str) -> String) {
                $($crate::table::Column::map_texts(&mut self.$name, map);)+
            }

            fn shift_points(&mut self, by: u32, points: u32) -> Result<(), ::arrow_schema::ArrowError> {
                $crate::table::shift(&mut self.point, by, points)
            }

            fn set_job(&mut self, point: u32, run: u32) {
                self.point.fill(point);
                self.run.fill(run);
            }
        }
    };
}
pub(crate) use {column_of, item_of, table};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_may_be_missing_and_an_empty_one_of_earlier_versions_is() {
        let mut earlier = Strings::default();
        ["cubic", "", "cubic"].into_iter().for_each(|text| earlier.push(text));
        let mut read = OptStrings::default();
        read.read(&earlier.array(0..3)).expect("it is of this type");
        assert_eq!([0, 1, 2].map(|row| read.get(row)), [Some("cubic"), None, Some("cubic")]);
        let written = read.array(0..3);
        assert_eq!((written.null_count(), written.is_null(1)), (1, true));
        let mut back = OptStrings::default();
        back.read(&written).expect("it is of this type");
        assert_eq!(back, read);
        back.map_texts(&|text| format!("{text}2"));
        assert_eq!([0, 1, 2].map(|row| back.get(row)), [Some("cubic2"), None, Some("cubic2")]);
        // Of all other columns, no text is missing.
        assert!(Strings::default().read(&written).is_err());
    }

    #[test]
    fn columns_that_earlier_versions_did_not_have_are_read_without_values() {
        let numbers: ArrayRef = Arc::new(UInt32Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter([("number", numbers)]).expect("a column");
        let mut shares: Vec<Option<f64>> = vec![Some(0.5)];
        read_column(&mut shares, &batch, "share").expect("it may be missing");
        assert_eq!(shares, [Some(0.5), None, None]);
        let mut texts = OptStrings::default();
        read_column(&mut texts, &batch, "text").expect("it may be missing");
        assert_eq!([0, 1].map(|row| texts.get(row)), [None, None]);
        let why = read_column(&mut Vec::<f64>::new(), &batch, "time").expect_err("it may not").to_string();
        assert!(why.ends_with("the column time is missing"), "{why}");
    }
}
