//! The cells of a network, and which of them have something to do: in a large network, few have at a time.

use core::ops::{Deref, DerefMut};

use channel::Direction;

use crate::mac::blocks::Blocks;
use crate::mac::cell::Cell;

/// See the module. It dereferences to all cells.
pub(crate) struct Cells {
    all: Vec<Cell>,
    /// In ascending order: at least all cells with active UEs or reserved resource blocks.
    attended: Vec<usize>,
}

impl Cells {
    /// Returns these cells, without anything to do.
    pub(crate) fn new(all: Vec<Cell>) -> Cells {
        Cells { all, attended: Vec::new() }
    }

    /// Marks `ue` as active in one direction of `cell`.
    #[inline]
    pub(crate) fn activate(&mut self, cell: usize, way: Direction, ue: u32) {
        self.all[cell].side(way).active.insert(ue);
        self.attend(cell);
    }

    /// Reserves these resource blocks of `cell` in the uplink of the slot for which it makes grants next.
    pub(crate) fn reserve(&mut self, cell: usize, blocks: Blocks) {
        let reserved = &mut self.all[cell].reserved;
        *reserved = reserved.and(blocks);
        self.attend(cell);
    }

    #[inline]
    fn attend(&mut self, cell: usize) {
        if let Err(place) = self.attended.binary_search(&cell) {
            self.attended.insert(place, cell);
        }
    }

    /// Returns the first cell from `cell` on that may have something to do in a slot that begins with `tick`, and the slot.
    #[inline]
    pub(crate) fn beginning(&self, cell: usize, tick: u64) -> Option<(usize, u64)> {
        let from = self.attended.partition_point(|attended| *attended < cell);
        self.attended[from..].iter().find_map(|&cell| {
            let slots = &self.all[cell].slots;
            slots.begins_at(tick).then(|| (cell, slots.next_at(tick)))
        })
    }

    /// Returns the cells with active UEs.
    #[inline]
    pub(crate) fn busy(&self) -> impl Iterator<Item = &Cell> {
        self.attended.iter().map(|cell| &self.all[*cell]).filter(|cell| cell.is_busy())
    }

    /// Forgets the cells that no longer have anything to do.
    #[inline]
    pub(crate) fn forget_idle(&mut self) {
        let Cells { all, attended } = self;
        attended.retain(|cell| all[*cell].is_busy() || all[*cell].reserved != Blocks::none());
    }
}

impl Deref for Cells {
    type Target = [Cell];

    #[inline]
    fn deref(&self) -> &[Cell] {
        &self.all
    }
}

impl DerefMut for Cells {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Cell] {
        &mut self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::CellConfig;
    use units::Span;

    #[test]
    fn cells_are_attended_in_order_while_they_have_active_ues_or_reserved_blocks() {
        let cell = || Cell::new(&CellConfig::default(), None, Span::from_millis(1));
        let mut cells = Cells::new((0..5).map(|_| cell()).collect());
        assert_eq!((cells.beginning(0, 0), cells.busy().count()), (None, 0));
        cells.activate(3, Direction::Uplink, 7);
        cells.activate(1, Direction::Downlink, 7);
        cells.activate(3, Direction::Downlink, 7);
        cells.reserve(4, Blocks::run(0, 2));
        let attended = |cells: &Cells| {
            let from = |cell| cells.beginning(cell, 0).map(|(cell, _)| cell);
            std::iter::successors(from(0), |cell| from(cell + 1)).collect::<Vec<_>>()
        };
        assert_eq!((attended(&cells), cells.busy().count()), (vec![1, 3, 4], 2));
        cells[3].downlink.remove(7);
        cells[1].downlink.remove(7);
        cells[4].reserved = Blocks::none();
        cells.forget_idle();
        assert_eq!((attended(&cells), cells.busy().count()), (vec![3], 1));
        cells[3].uplink.remove(7);
        cells.forget_idle();
        assert!(attended(&cells).is_empty());
    }
}
