//! Turns panics of the library that reads Parquet into errors: it panics for some files that are damaged.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use arrow_schema::ArrowError;

thread_local! {
    /// Whether a panic of this thread is caught, and says nothing.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Calls the library, and returns an error where it panics. Nothing that it was changing is used afterwards.
pub(crate) fn caught<T>(act: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |about| {
            if !CAUGHT.get() {
                before(about);
            }
        }));
    });
    let outer = CAUGHT.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(act));
    CAUGHT.set(outer);
    outcome.unwrap_or_else(|_| Err(ArrowError::ParquetError("a page of it is damaged".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        assert_eq!(caught(|| Ok(1)).ok(), Some(1));
        let error = caught::<()>(|| panic!("not seen")).expect_err("it panics").to_string();
        assert_eq!(error, "Parquet argument error: a page of it is damaged");
    }
}
