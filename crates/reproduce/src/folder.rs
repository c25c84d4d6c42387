//! The folders from which papers' files are read.

use include_dir::{Dir, include_dir};
use std::io;

/// The built-in papers, by folder name.
pub(crate) static PAPERS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../papers");

/// The error of an unusable paper's folder: the file and the problem, in one line.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {what}")]
pub struct Error {
    /// The file as named by the user, with a line number if there is one.
    pub(crate) file: String,
    /// The problem, and what would be valid.
    pub(crate) what: String,
}

/// The location of a paper's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Folder {
    /// The folder of this name in `papers/`, embedded when the program was built.
    BuiltIn(String),
    /// A directory.
    Directory(String),
}

impl Default for Folder {
    fn default() -> Folder {
        Folder::BuiltIn(String::new())
    }
}

impl Folder {
    /// Returns the path of `file` in it, for [`Folder::read`].
    pub(crate) fn path(&self, file: &str) -> String {
        match self {
            Folder::BuiltIn(at) | Folder::Directory(at) => format!("{at}/{file}"),
        }
    }

    /// Reads the text at `path`, which begins with the folder's own path.
    pub(crate) fn read(&self, path: &str) -> io::Result<String> {
        match self {
            Folder::BuiltIn(_) => {
                let file = PAPERS.get_file(without_parents(path)).and_then(|f| f.contents_utf8());
                file.map(str::to_owned).ok_or_else(|| io::ErrorKind::NotFound.into())
            }
            Folder::Directory(_) => scenario::read_file(path),
        }
    }

    pub(crate) fn error(&self, file: &str, line: Option<u64>, what: impl Into<String>) -> Error {
        let line = line.map_or_else(String::new, |line| format!(":{line}"));
        Error { file: format!("{}{line}", self.path(file)), what: what.into() }
    }

    pub(crate) fn file(&self, file: &str) -> Result<String, Error> {
        self.read(&self.path(file)).map_err(|e| {
            let what = match e.kind() {
                io::ErrorKind::NotFound => "no such file; a paper's folder has `paper.toml` (its experiments) \
                                            and `published.csv` (the published rows)"
                    .to_owned(),
                _ => format!("cannot be read: {e}"),
            };
            self.error(file, None, what)
        })
    }
}

/// Resolves `a/../b` to `b`: one paper's scenario may include another's.
fn without_parents(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}
