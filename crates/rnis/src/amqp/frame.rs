//! Frames, and the types of their contents (AMQP 0-9-1, sections 4.2.3 and 4.2.5).

use super::fault::Fault;
use core::fmt;

/// The longest frame, as RabbitMQ permits by default.
pub const MOST_FRAME: usize = 128 << 10;
/// Bytes of a frame beside its payload: type, channel, size; and the end.
pub(super) const OVERHEAD: usize = 8;
/// The last byte of a frame.
const END: u8 = 0xce;

/// A text of up to 255 bytes without control characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShortText(String);

impl ShortText {
    /// Returns the text, unless it is too long or contains control characters.
    pub fn new(text: &str) -> Option<ShortText> {
        let is_valid = text.len() <= 255 && !text.chars().any(char::is_control);
        is_valid.then(|| ShortText(text.to_owned()))
    }

    /// A text of this crate's, which is short.
    pub(super) fn of(text: &str) -> ShortText {
        debug_assert!(text.len() <= 255, "{text}");
        ShortText(text.to_owned())
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Display for ShortText {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) kind: u8,
    pub(super) channel: u16,
    pub(super) payload: &'a [u8],
}

/// Takes the next frame from `input`, if it is there as a whole.
pub(super) fn next_frame<'a>(input: &mut &'a [u8]) -> Result<Option<Frame<'a>>, Fault> {
    let Some((&[kind, high, low, ref size @ ..], rest)) = input.split_first_chunk::<7>() else {
        return Ok(None);
    };
    let size = u32::from_be_bytes(*size) as usize;
    if size > MOST_FRAME - OVERHEAD {
        return Err(Fault::Protocol("a frame is longer than permitted"));
    }
    let Some((payload, rest)) = rest.split_at_checked(size) else { return Ok(None) };
    let Some((&end, rest)) = rest.split_first() else { return Ok(None) };
    if end != END {
        return Err(Fault::Protocol("a frame has no end"));
    }
    *input = rest;
    Ok(Some(Frame { kind, channel: u16::from_be_bytes([high, low]), payload }))
}

/// Reads the fields of a method, in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.chunk().map(u8::from_be_bytes)
    }

    pub(super) fn short(&mut self) -> Option<u16> {
        self.chunk().map(u16::from_be_bytes)
    }

    pub(super) fn long(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_be_bytes)
    }

    pub(super) fn long_long(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_be_bytes)
    }

    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.byte()?;
        self.take(length.into())
    }

    /// A long text, or a field table: both have their length in front. A table is not looked into.
    pub(super) fn long_text(&mut self) -> Option<&'a [u8]> {
        let length = self.long()?;
        self.take(length as usize)
    }
}

/// Writes the payload of a frame.
#[derive(Debug, Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Writer {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(super) fn byte(&mut self, value: u8) -> &mut Writer {
        self.bytes(&[value])
    }

    pub(super) fn short(&mut self, value: u16) -> &mut Writer {
        self.bytes(&value.to_be_bytes())
    }

    pub(super) fn long(&mut self, value: u32) -> &mut Writer {
        self.bytes(&value.to_be_bytes())
    }

    pub(super) fn long_long(&mut self, value: u64) -> &mut Writer {
        self.bytes(&value.to_be_bytes())
    }

    pub(super) fn text(&mut self, text: &ShortText) -> &mut Writer {
        self.byte(text.as_bytes().len() as u8).bytes(text.as_bytes())
    }

    pub(super) fn long_text(&mut self, text: &[u8]) -> &mut Writer {
        self.long(text.len() as u32).bytes(text)
    }

    pub(super) fn table(&mut self, table: &Writer) -> &mut Writer {
        self.long_text(&table.0)
    }

    /// Begins a method.
    pub(super) fn method(class: u16, method: u16) -> Writer {
        let mut writer = Writer::default();
        writer.short(class).short(method);
        writer
    }

    /// Appends the frame to `output`.
    pub(super) fn send(&self, kind: u8, channel: u16, output: &mut Vec<u8>) {
        output.push(kind);
        output.extend(channel.to_be_bytes());
        output.extend((self.0.len() as u32).to_be_bytes());
        output.extend(&self.0);
        output.push(END);
    }
}
