//! Text files, plain or compressed with xz, in bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use lzma_rust2::XzReader;
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};

use crate::collector::{Error, open};

/// Bytes of the longest text, after decompression.
pub(crate) const LONGEST: u64 = 512 << 20;
/// Bytes of the longest line.
const LONGEST_LINE: u64 = 64 << 10;
/// Memory for decompression in KiB: the strongest preset of xz needs 65 MiB.
const XZ_MEMORY_KIB: u32 = 96 << 10;
/// The first bytes of a file that xz has compressed.
pub(crate) const XZ: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];

/// A reader that fails at the end of the longest text.
struct Limited<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let what = format!("more than {} MiB of text: split the file", LONGEST >> 20);
            io::Error::new(io::ErrorKind::FileTooLarge, what)
        })?;
        Ok(read)
    }
}

/// Opens a text, and unpacks it if need be.
pub(crate) fn open_text(path: &Path) -> Result<Box<dyn BufRead>, Error> {
    let mut file = BufReader::new(open(path)?);
    let is_packed = file.fill_buf().map_err(Error::io(path))?.starts_with(&XZ);
    Ok(match is_packed {
        true => Box::new(BufReader::new(Limited { from: unpacked(file), left: LONGEST })),
        false => Box::new(BufReader::new(Limited { from: file, left: LONGEST })),
    })
}

/// Unpacks xz.
pub(crate) fn unpacked(file: BufReader<File>) -> impl Read {
    XzReader::new_mem_limit(file, true, XZ_MEMORY_KIB)
}

/// The error of reading such a text: its content's fault, unless the system says otherwise.
pub(crate) fn failed(path: &Path) -> impl Fn(io::Error) -> Error + '_ {
    |source| match source.raw_os_error() {
        Some(_) => Error::Io { path: path.to_owned(), source },
        None => Error::Invalid(format!("{}: {}", path.display(), source.to_string().escape_debug())),
    }
}

/// The error of a text that is not the JSON of `what`.
pub(crate) fn not_json<'a>(path: &'a Path, what: &'a str) -> impl Fn(serde_json::Error) -> Error + 'a {
    move |error| match error.io_error_kind() {
        Some(_) => failed(path)(error.into()),
        None => Error::Invalid(format!("{}: not {what}: {}", path.display(), error.to_string().escape_debug())),
    }
}

/// The lines of a text.
pub(crate) struct Lines {
    from: Box<dyn BufRead>,
    line: Vec<u8>,
    /// The number of the latest line, from 1.
    pub(crate) number: u64,
}

impl Lines {
    pub(crate) fn open(path: &Path) -> Result<Lines, Error> {
        Ok(Lines { from: open_text(path)?, line: Vec::new(), number: 0 })
    }

    /// Returns the next line without its end. Bytes that are not UTF-8 are replaced.
    pub(crate) fn next(&mut self, path: &Path) -> Result<Option<String>, Error> {
        self.line.clear();
        let read = (&mut self.from).take(LONGEST_LINE).read_until(b'\n', &mut self.line).map_err(failed(path))?;
        self.number += 1;
        if read as u64 == LONGEST_LINE {
            let what = format!("line {}: longer than {} KiB", self.number, LONGEST_LINE >> 10);
            return Err(Error::Invalid(format!("{}: {what}", path.display())));
        }
        let text = String::from_utf8_lossy(&self.line);
        Ok((read > 0).then(|| text.trim_end().to_owned()))
    }
}

/// Reads a list of at most `N` items; a longer one is an error before it is in memory.
pub(crate) fn at_most<'de, const N: usize, T, D>(from: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    struct List<const N: usize, T>(std::marker::PhantomData<T>);
    impl<'de, const N: usize, T: Deserialize<'de>> Visitor<'de> for List<N, T> {
        type Value = Vec<T>;

        fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(to, "a list of at most {N} items")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while list.len() < N {
                let Some(item) = from.next_element()? else { return Ok(list) };
                list.push(item);
            }
            match from.next_element::<IgnoredAny>()? {
                None => Ok(list),
                Some(_) => Err(A::Error::custom(format!("more than {N} items"))),
            }
        }

        fn visit_unit<E>(self) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }
    }
    from.deserialize_any(List::<N, T>(std::marker::PhantomData))
}

/// Calls `each` with every item of a list, or with every value of a text of several values, none of which is kept.
pub(crate) fn each_value<T: for<'de> Deserialize<'de>>(
    mut from: impl BufRead,
    each: &mut dyn FnMut(T) -> Result<(), String>,
) -> Result<(), serde_json::Error> {
    struct Items<'a, T>(&'a mut dyn FnMut(T) -> Result<(), String>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Items<'_, T> {
        type Value = ();

        fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            to.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<(), A::Error> {
            while let Some(item) = from.next_element()? {
                (self.0)(item).map_err(A::Error::custom)?;
            }
            Ok(())
        }
    }
    let is_list = loop {
        match from.fill_buf().map_err(serde_json::Error::io)?.first() {
            Some(byte) if byte.is_ascii_whitespace() => from.consume(1),
            first => break first == Some(&b'['),
        }
    };
    if is_list {
        let mut from = serde_json::Deserializer::from_reader(from);
        from.deserialize_seq(Items(each))?;
        return from.end();
    }
    for value in serde_json::Deserializer::from_reader(from).into_iter::<T>() {
        each(value?).map_err(serde_json::Error::custom)?;
    }
    Ok(())
}
