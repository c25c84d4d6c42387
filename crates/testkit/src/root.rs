//! Tests that need root, or a program of `tools/setup all`: skipped without it, or failed where root is required.
//!
//! [`granted`] takes the result of a check, such as whether namespaces can be made. If the check failed, the test is
//! skipped: one line on stderr names the test and the reason, and goes to `target/skipped.txt` too, which `cargo xtask ci`
//! counts at its end. With `RANWAY_REQUIRE_ROOT=1` the test fails instead, with one such line. `cargo xtask` sets this
//! when it runs as root. What is not part of the repository, and programs that other arguments of `tools/setup` install, may
//! be missing anywhere: [`has_data`] and [`has_program_of`] never fail a test.

use std::fmt::Display;
use std::io::{self, Write};
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

/// The payload of the panic that ends a test which needs root, but has none although it is required.
#[derive(Debug)]
pub struct Required;

/// Returns the value of `check`, or `None` after saying why the test is skipped.
///
/// # Panics
/// If the check failed and `RANWAY_REQUIRE_ROOT` is 1.
pub fn granted<T>(check: Result<T, impl Display>) -> Option<T> {
    granted_if(check, is_required())
}

fn is_required() -> bool {
    std::env::var_os("RANWAY_REQUIRE_ROOT").is_some_and(|value| value == "1")
}

/// Returns whether a program is there that `tools/setup all` installs, after saying why the test is skipped if not.
///
/// # Panics
/// If it is not and `RANWAY_REQUIRE_ROOT` is 1: what is tested completely has all programs.
pub fn has_program(is_there: bool, name: &str) -> bool {
    has_program_if(is_there, name, is_required())
}

/// Returns whether a program is there that only `tools/setup` with the argument `what` installs, after saying what is skipped if
/// not.
pub fn has_program_of(what: &str, is_there: bool, name: &str) -> bool {
    let check = if is_there { Ok(()) } else { Err(format!("{name} is missing (tools/setup {what})")) };
    granted_if(check, false).is_some()
}

/// Returns whether a file is there that is not part of the repository, after saying what is skipped if not.
pub fn has_data(path: &Path) -> bool {
    let check = if path.exists() { Ok(()) } else { Err(format!("{} is missing", path.display())) };
    granted_if(check, false).is_some()
}

fn has_program_if(is_there: bool, name: &str, required: bool) -> bool {
    let check = if is_there { Ok(()) } else { Err(format!("{name} is missing (tools/setup all)")) };
    granted_if(check, required).is_some()
}

fn granted_if<T>(check: Result<T, impl Display>, required: bool) -> Option<T> {
    let why = match check {
        Ok(value) => return Some(value),
        Err(why) => why,
    };
    let test = thread::current().name().unwrap_or("a test").to_owned();
    // Not by `eprintln`, whose output the test harness hides if the test passes.
    if required {
        let _ = writeln!(io::stderr(), "FAILED: {test}: {why}, and RANWAY_REQUIRE_ROOT=1 forbids to skip the test");
        // The line above has said it: without the panic hook's message.
        resume_unwind(Box::new(Required));
    }
    let line = format!("SKIPPED: {test}: {why}");
    let _ = writeln!(io::stderr(), "{line}");
    crate::remember("skipped.txt", &line);
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::catch_unwind;

    #[test]
    fn what_is_granted_is_returned() {
        for required in [false, true] {
            assert_eq!(granted_if(Ok::<_, String>(7), required), Some(7));
        }
    }

    #[test]
    fn a_test_fails_without_a_program_that_is_required() {
        assert!(has_program_if(true, "sh", true) && has_program_if(true, "sh", false));
        let panic = catch_unwind(|| has_program_if(false, "a program for the test of this", true)).unwrap_err();
        assert!(panic.is::<Required>());
    }

    #[test]
    fn a_program_of_another_setup_is_never_required() {
        assert!(has_program_of("docs", true, "sh") && !has_program_of("docs", false, "a program for the test of this"));
    }

    #[test]
    fn a_test_fails_where_root_is_required() {
        let panic = catch_unwind(|| granted_if(Err::<(), _>("for the test of this"), true)).unwrap_err();
        assert!(panic.is::<Required>());
    }
}
