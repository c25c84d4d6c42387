//! A map with its entries in the order of their last use.

use std::collections::BTreeMap;

/// No entry.
const NIL: u32 = u32::MAX;

#[derive(Debug)]
struct Slot<K, V> {
    key: K,
    value: V,
    /// Neighbours in the order of last use: the older and the newer.
    older: u32,
    newer: u32,
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Table<K, V> {
    places: BTreeMap<K, u32>,
    slots: Vec<Slot<K, V>>,
    oldest: u32,
    newest: u32,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Table<K, V> {
        Table { places: BTreeMap::new(), slots: Vec::new(), oldest: NIL, newest: NIL }
    }
}

impl<K: Ord + Copy, V> Table<K, V> {
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the place of an entry. Packets of a flow often follow each other, so the newest is tried first.
    #[inline]
    fn place(&self, key: &K) -> Option<u32> {
        match self.slots.get(self.newest as usize) {
            Some(newest) if newest.key == *key => Some(self.newest),
            _ => self.places.get(key).copied(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.place(key).map(|place| &self.slots[place as usize].value)
    }

    /// Returns the entry and makes it the newest.
    #[inline]
    pub(crate) fn touch(&mut self, key: &K) -> Option<&mut V> {
        if self.slots.get(self.newest as usize).is_none_or(|newest| newest.key != *key) {
            self.renew(key)?;
        }
        self.newest()
    }

    fn renew(&mut self, key: &K) -> Option<()> {
        let place = *self.places.get(key)?;
        self.unlink(place);
        self.link(place);
        Some(())
    }

    /// Returns the entry that was used or added last.
    #[inline]
    pub(crate) fn newest(&mut self) -> Option<&mut V> {
        self.slots.get_mut(self.newest as usize).map(|slot| &mut slot.value)
    }

    /// Adds an entry, which must be new.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        let place = self.slots.len() as u32;
        self.slots.push(Slot { key, value, older: NIL, newer: NIL });
        let before = self.places.insert(key, place);
        debug_assert!(before.is_none(), "a key is in the table once");
        self.link(place);
    }

    pub(crate) fn remove(&mut self, key: &K) {
        let Some(place) = self.places.remove(key) else { return };
        self.unlink(place);
        let last = self.slots.len() as u32 - 1;
        self.slots.swap_remove(place as usize);
        if place != last {
            // The last one has moved here.
            let Slot { key, older, newer, .. } = self.slots[place as usize];
            self.places.insert(key, place);
            self.relate(older, place, newer);
        }
    }

    /// Returns the entry unused for longest.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<(&K, &V)> {
        self.slots.get(self.oldest as usize).map(|slot| (&slot.key, &slot.value))
    }

    fn link(&mut self, place: u32) {
        let newest = self.newest;
        let slot = &mut self.slots[place as usize];
        (slot.older, slot.newer) = (newest, NIL);
        self.relate(newest, place, NIL);
    }

    fn unlink(&mut self, place: u32) {
        let Slot { older, newer, .. } = self.slots[place as usize];
        match older {
            NIL => self.oldest = newer,
            older => self.slots[older as usize].newer = newer,
        }
        match newer {
            NIL => self.newest = older,
            newer => self.slots[newer as usize].older = older,
        }
    }

    /// Links the neighbours of `place` to it.
    fn relate(&mut self, older: u32, place: u32, newer: u32) {
        match older {
            NIL => self.oldest = place,
            older => self.slots[older as usize].newer = place,
        }
        match newer {
            NIL => self.newest = place,
            newer => self.slots[newer as usize].older = place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bolero::check;

    #[test]
    fn it_agrees_with_a_list() {
        check!().with_type::<Vec<(u8, u8)>>().with_iterations(2_000).for_each(|ops| {
            let (mut table, mut model) = (Table::default(), Vec::new());
            for &(op, key) in ops {
                let key = key % 16;
                match op % 3 {
                    0 if table.get(&key).is_none() => {
                        table.insert(key, key);
                        model.push(key);
                    }
                    1 => {
                        table.remove(&key);
                        model.retain(|&k| k != key);
                    }
                    _ => {
                        if table.touch(&key).is_some() {
                            model.retain(|&k| k != key);
                            model.push(key);
                        }
                    }
                }
                assert_eq!(table.len(), model.len());
                assert_eq!(table.oldest(), model.first().map(|k| (k, k)));
                assert!((0..16).all(|k| table.get(&k).is_some() == model.contains(&k)));
            }
        });
    }
}
