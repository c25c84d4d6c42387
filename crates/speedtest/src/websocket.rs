//! Frames of the WebSocket protocol (RFC 6455), decoded as they arrive.
//!
//! A message of ndt7 has up to 16 MiB, of which only the length matters. Libraries collect messages before they return them, which
//! would cost that much memory per flow and hide when the bytes arrived; this decoder passes on what there is. The tests compare it
//! with `tungstenite`.

use arrayvec::ArrayVec;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

/// The longest header of a frame.
const LONGEST_HEADER: usize = 14;
/// The longest payload of a control frame (section 5.5).
pub const LONGEST_CONTROL: usize = 125;
/// What is appended to a key before it is hashed (section 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// Continues the message.
    Continuation,
    /// A message of text.
    Text,
    /// A message of bytes.
    Binary,
    /// The end.
    Close,
    /// Asks for a pong.
    Ping,
    /// Answers a ping.
    Pong,
}

impl Opcode {
    fn parse(code: u8) -> Option<Opcode> {
        match code {
            0 => Some(Opcode::Continuation),
            1 => Some(Opcode::Text),
            2 => Some(Opcode::Binary),
            8 => Some(Opcode::Close),
            9 => Some(Opcode::Ping),
            10 => Some(Opcode::Pong),
            _ => None,
        }
    }

    fn code(self) -> u8 {
        match self {
            Opcode::Continuation => 0,
            Opcode::Text => 1,
            Opcode::Binary => 2,
            Opcode::Close => 8,
            Opcode::Ping => 9,
            Opcode::Pong => 10,
        }
    }

    fn is_control(self) -> bool {
        self.code() >= 8
    }
}

/// Which side sends: a client masks its frames, a server does not (section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Frames are masked.
    Client,
    /// Frames are not masked.
    Server,
}

/// A frame that RFC 6455 does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A reserved bit or an unknown opcode.
    #[error("a WebSocket frame has a reserved bit or opcode")]
    Reserved,
    /// Masked by a server, or not masked by a client.
    #[error("a WebSocket frame is masked by a server or not masked by a client")]
    Mask,
    /// A control frame that is fragmented or too long.
    #[error("a WebSocket control frame is fragmented or too long")]
    Control,
    /// A message within a message, or a continuation of none.
    #[error("a WebSocket message is fragmented in the wrong way")]
    Fragment,
    /// A length with its highest bit set, or in more bytes than it needs.
    #[error("a WebSocket frame has an invalid length")]
    Length,
}

/// Returns the value of `Sec-WebSocket-Accept` for a key (section 4.2.2).
pub fn accept(key: &str) -> String {
    let hash = Sha1::new().chain_update(key.trim()).chain_update(GUID).finalize();
    STANDARD.encode(hash)
}

/// Returns the header of an unfragmented frame with `length` bytes of payload. A client passes a mask; with a mask of zeros the
/// payload stays as it is, which section 5.3 forbids for data that a third party chose.
pub fn header(opcode: Opcode, length: u64, mask: Option<[u8; 4]>) -> ArrayVec<u8, LONGEST_HEADER> {
    let mut header = ArrayVec::new();
    header.push(0x80 | opcode.code());
    let masked = if mask.is_some() { 0x80 } else { 0 };
    match length {
        0..126 => header.push(masked | length as u8),
        126..=0xffff => {
            header.push(masked | 126);
            header.extend((length as u16).to_be_bytes());
        }
        _ => {
            header.push(masked | 127);
            header.extend(length.to_be_bytes());
        }
    }
    header.extend(mask.into_iter().flatten());
    header
}

/// Returns an unfragmented frame. The payload of a client's frame is masked.
pub fn frame(opcode: Opcode, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
    let mut frame = header(opcode, payload.len() as u64, mask).to_vec();
    let start = frame.len();
    frame.extend_from_slice(payload);
    if let Some(mask) = mask {
        apply_mask(&mut frame[start..], mask, 0);
    }
    frame
}

/// A part of a payload.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The kind of its message; never a continuation.
    pub opcode: Opcode,
    /// The payload, unmasked. Empty for an empty frame.
    pub payload: &'a [u8],
    /// Whether the message ends with it.
    pub ends: bool,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: Opcode,
    fin: bool,
    mask: [u8; 4],
    length: u64,
    done: u64,
}

/// Decodes the frames of one side.
#[derive(Clone, Debug)]
pub struct Decoder {
    sender: Sender,
    header: ArrayVec<u8, LONGEST_HEADER>,
    frame: Option<Frame>,
    /// The kind of the message that has begun.
    message: Option<Opcode>,
}

impl Decoder {
    /// Decodes what `sender` sends.
    pub fn new(sender: Sender) -> Decoder {
        Decoder { sender, header: ArrayVec::new(), frame: None, message: None }
    }

    /// Takes the next piece from `input`, which is unmasked in place and shortened by what was used. `None` if more input is needed.
    ///
    /// # Errors
    /// What the sender did wrong; the connection has to be closed then.
    pub fn decode<'a>(&mut self, input: &mut &'a mut [u8]) -> Result<Option<Piece<'a>>, Fault> {
        let mut frame = match self.frame.take() {
            Some(frame) => frame,
            None => match self.read_header(input)? {
                Some(frame) => frame,
                None => return Ok(None),
            },
        };
        if input.is_empty() && frame.done < frame.length {
            self.frame = Some(frame);
            return Ok(None);
        }
        let part = (frame.length - frame.done).min(input.len() as u64) as usize;
        let (payload, rest) = std::mem::take(input).split_at_mut(part);
        *input = rest;
        if frame.mask != [0; 4] {
            apply_mask(payload, frame.mask, frame.done);
        }
        frame.done += part as u64;
        let ended = frame.done == frame.length;
        if !ended {
            self.frame = Some(frame);
        }
        let opcode = if frame.opcode.is_control() { frame.opcode } else { self.message.unwrap_or(frame.opcode) };
        let ends = ended && frame.fin;
        if ends && !opcode.is_control() {
            self.message = None;
        }
        Ok(Some(Piece { opcode, payload, ends }))
    }

    fn read_header(&mut self, input: &mut &mut [u8]) -> Result<Option<Frame>, Fault> {
        loop {
            let needed = match self.header.get(1) {
                None => 2,
                Some(second) => {
                    let length = match second & 0x7f {
                        126 => 2,
                        127 => 8,
                        _ => 0,
                    };
                    2 + length + if second & 0x80 == 0 { 0 } else { 4 }
                }
            };
            if self.header.len() == needed {
                break;
            }
            let Some((&mut byte, rest)) = std::mem::take(input).split_first_mut() else { return Ok(None) };
            *input = rest;
            self.header.push(byte);
        }
        let bytes = std::mem::take(&mut self.header);
        let (first, second) = (bytes[0], bytes[1]);
        let opcode = Opcode::parse(first & 0x0f).filter(|_| first & 0x70 == 0).ok_or(Fault::Reserved)?;
        let fin = first & 0x80 != 0;
        if (second & 0x80 != 0) != (self.sender == Sender::Client) {
            return Err(Fault::Mask);
        }
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum: u64, &byte| sum << 8 | u64::from(byte));
        let (length, shortest, mask_at) = match second & 0x7f {
            126 => (number(&bytes[2..4]), 126, 4),
            127 => (number(&bytes[2..10]), 1 << 16, 10),
            length => (length.into(), 0, 2),
        };
        if length < shortest || length >> 63 != 0 {
            return Err(Fault::Length);
        }
        if opcode.is_control() && (!fin || length > LONGEST_CONTROL as u64) {
            return Err(Fault::Control);
        }
        match (opcode, self.message) {
            (Opcode::Text | Opcode::Binary, None) => self.message = Some(opcode),
            (Opcode::Text | Opcode::Binary, Some(_)) | (Opcode::Continuation, None) => return Err(Fault::Fragment),
            _ => {}
        }
        let mask = bytes[mask_at..].try_into().unwrap_or_default();
        Ok(Some(Frame { opcode, fin, mask, length, done: 0 }))
    }
}

/// Masks or unmasks a part of a payload that starts `offset` bytes after the payload's start.
fn apply_mask(payload: &mut [u8], mask: [u8; 4], offset: u64) {
    let turned: [u8; 4] = std::array::from_fn(|index| mask[((offset + index as u64) % 4) as usize]);
    let wide = u64::from_ne_bytes(std::array::from_fn(|index| turned[index % 4]));
    let (words, rest) = payload.as_chunks_mut::<8>();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(turned.iter().cycle()) {
        *byte ^= mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes `input` in parts of `step` bytes, and joins the pieces of each message.
    fn messages(sender: Sender, input: &[u8], step: usize) -> Result<Vec<(Opcode, Vec<u8>)>, Fault> {
        let (mut decoder, mut messages, mut open) = (Decoder::new(sender), Vec::new(), Vec::new());
        let mut input = input.to_vec();
        for part in input.chunks_mut(step.max(1)) {
            let mut part = part;
            while let Some(piece) = decoder.decode(&mut part)? {
                if piece.opcode.is_control() {
                    // Control frames may stand between the fragments of a message.
                    match messages.last_mut() {
                        Some((opcode, payload, false)) if *opcode == piece.opcode => {
                            Vec::extend(payload, piece.payload);
                        }
                        _ => messages.push((piece.opcode, piece.payload.to_vec(), false)),
                    }
                    if let Some((_, _, done)) = messages.last_mut() {
                        *done = piece.ends;
                    }
                    continue;
                }
                open.extend_from_slice(piece.payload);
                if piece.ends {
                    messages.push((piece.opcode, std::mem::take(&mut open), true));
                }
            }
        }
        Ok(messages.into_iter().filter(|message| message.2).map(|(opcode, payload, _)| (opcode, payload)).collect())
    }

    #[test]
    fn the_examples_of_rfc_6455_are_decoded() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let hello = |bytes: &[u8], sender| messages(sender, bytes, 1);
        let expected = Ok(vec![(Opcode::Text, b"Hello".to_vec())]);
        assert_eq!(hello(&[0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f], Sender::Server), expected);
        let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(hello(&masked, Sender::Client), expected);
        assert_eq!(frame(Opcode::Text, b"Hello", Some([0x37, 0xfa, 0x21, 0x3d])), masked);
        let fragments = [0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f];
        assert_eq!(hello(&fragments, Sender::Server), expected);
        assert_eq!(header(Opcode::Binary, 256, None).as_slice(), [0x82, 0x7e, 0x01, 0x00]);
        assert_eq!(header(Opcode::Binary, 65_536, None).as_slice(), [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn frames_that_the_rfc_forbids_are_faults() {
        for (bytes, sender, fault) in [
            (&[0xc1, 0x00][..], Sender::Server, Fault::Reserved),
            (&[0x83, 0x00], Sender::Server, Fault::Reserved),
            (&[0x81, 0x80, 0, 0, 0, 0], Sender::Server, Fault::Mask),
            (&[0x81, 0x00], Sender::Client, Fault::Mask),
            (&[0x09, 0x00], Sender::Server, Fault::Control),
            (&[0x89, 0x7e, 0x00, 0x7e], Sender::Server, Fault::Control),
            (&[0x80, 0x00], Sender::Server, Fault::Fragment),
            (&[0x01, 0x00, 0x81, 0x00], Sender::Server, Fault::Fragment),
            (&[0x82, 0x7e, 0x00, 0x7d], Sender::Server, Fault::Length),
            (&[0x82, 0x7f, 0, 0, 0, 0, 0, 0, 0xff, 0xff], Sender::Server, Fault::Length),
            (&[0x82, 0x7f, 0x80, 0, 0, 0, 0, 0, 0, 0], Sender::Server, Fault::Length),
        ] {
            assert_eq!(messages(sender, bytes, 3), Err(fault), "{bytes:x?}");
        }
    }

    #[test]
    fn tungstenite_reads_what_is_written_here_however_it_is_divided() {
        use tungstenite::protocol::{Role, WebSocketConfig};
        for length in [0, 1, 125, 126, 127, 65_535, 65_536, 70_001] {
            let payload: Vec<u8> = (0..length).map(|index| (index * 7 + 3) as u8).collect();
            for (mask, sender, role) in
                [(None, Sender::Server, Role::Client), (Some([1, 0x80, 0xff, 9]), Sender::Client, Role::Server)]
            {
                let bytes = frame(Opcode::Binary, &payload, mask);
                for step in [1, 3, 8, 4_096, bytes.len()] {
                    let read = messages(sender, &bytes, step);
                    assert_eq!(read, Ok(vec![(Opcode::Binary, payload.clone())]), "{length} {step}");
                }
                let config = WebSocketConfig::default();
                let stream = std::io::Cursor::new(bytes);
                let mut oracle = tungstenite::WebSocket::from_raw_socket(stream, role, Some(config));
                let message = oracle.read().expect("tungstenite reads it");
                assert_eq!(message.into_data().as_ref(), &payload[..], "{length}");
            }
        }
    }
}
