//! Lines out of a stream of bytes.

use super::LONGEST_LINE;

/// The start of a line that has not ended. It holds at most [`LONGEST_LINE`] bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    start: Vec<u8>,
}

/// A line that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("a line is longer than 1024 bytes")]
    TooLong,
    #[error("a line is not printable ASCII")]
    NotText,
}

impl Lines {
    /// Takes the rest of a line from `input`. Returns the number of bytes used, and the line if it is complete, without its end.
    pub(crate) fn take(&mut self, input: &[u8]) -> (usize, Result<Option<String>, Fault>) {
        let end = input.iter().position(|&byte| byte == b'\n');
        let part = &input[..end.unwrap_or(input.len())];
        if self.start.len() + part.len() >= LONGEST_LINE {
            self.start.clear();
            return (input.len(), Err(Fault::TooLong));
        }
        self.start.extend_from_slice(part);
        let Some(end) = end else { return (input.len(), Ok(None)) };
        let line = std::mem::take(&mut self.start);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        let zeros = line.iter().take_while(|&&byte| byte == 0).count();
        let line = &line[zeros..];
        if line.iter().any(|byte| !(b' '..=b'~').contains(byte)) {
            return (end + 1, Err(Fault::NotText));
        }
        (end + 1, Ok(Some(String::from_utf8_lossy(line).into_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut input: &[u8]) -> Vec<Result<String, Fault>> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        while !input.is_empty() {
            let (used, line) = lines.take(input);
            found.extend(line.transpose());
            input = &input[used..];
        }
        found
    }

    #[test]
    fn a_line_ends_with_a_newline_and_may_have_a_return_before_it() {
        assert_eq!(all(b"OK\nPING\r\nTI"), [Ok("OK".into()), Ok("PING".into())]);
    }

    #[test]
    fn zeros_before_a_line_are_dropped_as_the_c_server_sends_one() {
        assert_eq!(all(b"\0RMBTv1.3.5\n"), [Ok("RMBTv1.3.5".into())]);
    }

    #[test]
    fn a_line_has_at_most_1024_bytes_with_its_end() {
        let line = |n: usize| [vec![b'x'; n], vec![b'\n']].concat();
        assert_eq!(all(&line(1023))[0].as_ref().map(String::len), Ok(1023));
        assert_eq!(all(&line(1024)), [Err(Fault::TooLong)]);
        assert_eq!(all(&vec![b'x'; 1 << 20]), [Err(Fault::TooLong)]);
    }

    #[test]
    fn a_line_is_printable_ascii() {
        assert_eq!(all(b"P\x07NG\nOK\n"), [Err(Fault::NotText), Ok("OK".into())]);
        assert_eq!(all("gr\u{fc}n\n".as_bytes()), [Err(Fault::NotText)]);
    }
}
