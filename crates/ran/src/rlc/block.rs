//! The part of a transport block that carries the PDUs of one direction of one bearer.

use super::lte;
use super::lte::pdu::{Pdu, Status};

/// The part of a transport block of one direction of one bearer: a STATUS PDU about the other direction, and data PDUs.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The number of re-establishments at the time it was built, which identifies its stream.
    pub(in crate::rlc) epoch: u32,
    bytes: u32,
    contents: lte::pdu::Contents,
}

impl Block {
    /// Returns its bytes, including all RLC headers and the MAC subheader of each PDU but the last, which MAC counts
    /// itself.
    #[inline]
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Returns whether it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns the number of its RLC PDUs, including STATUS PDUs.
    #[inline]
    pub fn pdus(&self) -> usize {
        self.contents.pdus()
    }

    #[inline]
    pub(in crate::rlc) fn clear(&mut self, epoch: u32) {
        (self.epoch, self.bytes) = (epoch, 0);
        self.contents.clear();
    }

    #[inline]
    pub(in crate::rlc) fn data(&self) -> &[Pdu] {
        self.contents.data()
    }

    #[inline]
    pub(in crate::rlc) fn status(&self) -> Option<&Status> {
        self.contents.status()
    }

    /// Returns how many of `grant` bytes are left for another PDU.
    #[inline]
    pub(in crate::rlc) fn room(&self, grant: u32) -> u32 {
        if self.contents.is_full() { 0 } else { grant.saturating_sub(self.bytes + self.subheader()) }
    }

    /// Returns the additional overhead of another PDU after its last, in bytes.
    #[inline]
    pub(crate) fn subheader(&self) -> u32 {
        self.contents.subheader()
    }

    #[inline]
    pub(in crate::rlc) fn push(&mut self, pdu: Pdu, header: u32) {
        self.bytes += self.contents.push(pdu, header + u32::from(pdu.len));
    }

    pub(in crate::rlc) fn set_status(&mut self, status: Status) {
        self.bytes += self.contents.set_status(status);
    }
}
