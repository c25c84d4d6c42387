//! The part of a transport block that carries the PDUs of one direction of one bearer.

use super::lte::pdu::{Pdu, Status};
use super::nr::pdu::{Report, Run};
use super::{lte, nr};

/// The part of a transport block of one direction of one bearer: a STATUS PDU about the other direction, and data PDUs.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The number of re-establishments at the time it was built, which identifies its stream.
    pub(in crate::rlc) epoch: u32,
    bytes: u32,
    contents: Contents,
}

#[derive(Clone, Debug)]
enum Contents {
    Lte(lte::pdu::Contents),
    Nr(nr::pdu::Contents),
}

impl Default for Contents {
    fn default() -> Self {
        Contents::Lte(lte::pdu::Contents::default())
    }
}

impl Block {
    /// Returns its bytes with all RLC headers. In LTE, these include the MAC subheader of each PDU but the last, which
    /// MAC counts itself; in NR, where a subheader precedes every PDU, those of all of them.
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
        match &self.contents {
            Contents::Lte(contents) => contents.pdus(),
            Contents::Nr(contents) => contents.pdus(),
        }
    }

    /// Empties it for PDUs of LTE.
    #[inline]
    pub(in crate::rlc) fn clear(&mut self, epoch: u32) {
        (self.epoch, self.bytes) = (epoch, 0);
        match &mut self.contents {
            Contents::Lte(contents) => contents.clear(),
            Contents::Nr(_) => self.contents = Contents::default(),
        }
    }

    /// Empties it and returns the contents for PDUs of NR, and the bytes that they take with MAC subheaders.
    #[inline]
    pub(in crate::rlc) fn clear_nr(&mut self, epoch: u32) -> (&mut nr::pdu::Contents, &mut u32) {
        (self.epoch, self.bytes) = (epoch, 0);
        if let Contents::Lte(_) = self.contents {
            self.contents = Contents::Nr(nr::pdu::Contents::default());
        }
        let Contents::Nr(contents) = &mut self.contents else { unreachable!("it was set above") };
        contents.clear();
        (contents, &mut self.bytes)
    }

    #[inline]
    pub(in crate::rlc) fn data(&self) -> &[Pdu] {
        match &self.contents {
            Contents::Lte(contents) => contents.data(),
            Contents::Nr(_) => &[],
        }
    }

    #[inline]
    pub(in crate::rlc) fn status(&self) -> Option<&Status> {
        match &self.contents {
            Contents::Lte(contents) => contents.status(),
            Contents::Nr(_) => None,
        }
    }

    /// Returns the runs of NR's data PDUs.
    #[inline]
    pub(in crate::rlc) fn runs(&self) -> &[Run] {
        match &self.contents {
            Contents::Lte(_) => &[],
            Contents::Nr(contents) => contents.runs(),
        }
    }

    /// Returns NR's STATUS PDU.
    #[inline]
    pub(in crate::rlc) fn report(&self) -> Option<&Report> {
        match &self.contents {
            Contents::Lte(_) => None,
            Contents::Nr(contents) => contents.report(),
        }
    }

    /// Returns how many of `grant` bytes are left for another PDU of LTE.
    #[inline]
    pub(in crate::rlc) fn room(&self, grant: u32) -> u32 {
        match &self.contents {
            Contents::Lte(contents) if !contents.is_full() => grant.saturating_sub(self.bytes + contents.subheader()),
            _ => 0,
        }
    }

    /// Returns the overhead in bytes of what follows its last PDU: in LTE, whose last subheader has no length, a length
    /// field; in NR none.
    #[inline]
    pub(crate) fn subheader(&self) -> u32 {
        match &self.contents {
            Contents::Lte(contents) => contents.subheader(),
            Contents::Nr(_) => 0,
        }
    }

    #[inline]
    pub(in crate::rlc) fn push(&mut self, pdu: Pdu, header: u32) {
        if let Contents::Lte(contents) = &mut self.contents {
            self.bytes += contents.push(pdu, header + u32::from(pdu.len));
        }
    }

    pub(in crate::rlc) fn set_status(&mut self, status: Status) {
        if let Contents::Lte(contents) = &mut self.contents {
            self.bytes += contents.set_status(status);
        }
    }
}
