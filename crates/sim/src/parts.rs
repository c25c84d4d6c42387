//! The parts of the agenda.

use crate::network::packet::End;
use des::{Agenda, Part};

/// The component that an agenda entry calls.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Link(u32),
    /// One end of a connection.
    End(u32, End),
    Flow(u32),
    /// A host whose packets wait for their departure.
    Node(u32),
    Medium(u16),
    Middlebox(u32),
    /// The reports of the cells.
    Reports,
    /// The measurement reports of the UEs.
    Measurements,
    Sample,
    WarmedUp,
}

/// The agenda, and what each of its parts is.
pub(crate) struct Parts {
    pub(crate) agenda: Agenda,
    /// By part number.
    kinds: Vec<Kind>,
}

impl Parts {
    pub(crate) fn new() -> Parts {
        Parts { agenda: Agenda::new(), kinds: Vec::new() }
    }

    /// Adds a part.
    pub(crate) fn add(&mut self, kind: Kind) -> Part {
        let part = self.agenda.add_part();
        let place = part.0 as usize;
        if place == self.kinds.len() {
            self.kinds.push(kind);
        } else {
            self.kinds[place] = kind;
        }
        part
    }

    /// What `part` is.
    #[inline]
    pub(crate) fn kind(&self, part: Part) -> Kind {
        self.kinds[part.0 as usize]
    }
}
