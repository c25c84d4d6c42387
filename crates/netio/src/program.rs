//! Programs of the system: finding them, and running `ip`.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use nix::unistd::AccessFlags;

use crate::Error;

/// Returns where `program` is: the path itself if it has a slash, or the first executable file of that name in `PATH`.
pub fn find_program(program: &OsStr) -> Option<PathBuf> {
    let runs = |path: &PathBuf| path.is_file() && nix::unistd::access(path, AccessFlags::X_OK).is_ok();
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program)).filter(runs);
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|directory| directory.join(program)).find(runs)
}

/// Runs `ip` with `options` on `commands`, one a line, up to the first that fails. Returns what it prints.
///
/// # Errors
/// [`Error::System`].
pub fn ip(options: &[&str], commands: &str) -> Result<String, Error> {
    let what = || "run `ip`".to_owned();
    let mut child = Command::new("ip")
        .args(options)
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::system(what()))?;
    // If it goes away before it has read everything, it says why.
    let _ = child.stdin.take().expect("it is piped").write_all(commands.as_bytes());
    let output = child.wait_with_output().map_err(Error::system(what()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    // "Command failed -:3" tells which line of ours it was.
    let line = said.rsplit_once("-:").and_then(|(_, n)| n.trim().parse::<usize>().ok());
    let command = line.and_then(|n| commands.lines().nth(n.checked_sub(1)?)).unwrap_or("-batch");
    let source = io::Error::other(said.lines().next().unwrap_or("it failed").to_owned());
    Err(Error::System { what: [&["ip"], options, &[command]].concat().join(" "), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_name_and_by_path() {
        assert!(find_program("sh".as_ref()).is_some_and(|path| path.is_absolute()));
        assert_eq!(find_program("/bin/sh".as_ref()), Some("/bin/sh".into()));
        for absent in ["no-such-program", "/etc", "/etc/passwd", "./sh", ""] {
            assert_eq!(find_program(absent.as_ref()), None, "{absent}");
        }
    }
}
