//! The list of options in a TCP header (RFC 9293 section 3.1).

const END: u8 = 0;
pub(crate) const NOP: u8 = 1;

/// The options of a header one by one, from the kind on. Ends at the end of the list, and before the first option with an
/// invalid length.
#[derive(Clone, Debug)]
pub(crate) struct List<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for List<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            match *self.0 {
                [NOP, ref rest @ ..] => self.0 = rest,
                [END, ..] | [] | [_] | [_, 0 | 1, ..] => return None,
                [_, len, ..] => {
                    let (option, rest) = self.0.split_at_checked(usize::from(len))?;
                    self.0 = rest;
                    return Some(option);
                }
            }
        }
    }
}
