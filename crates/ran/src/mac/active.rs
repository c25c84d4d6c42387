//! Sets of active UEs.

/// UEs in ascending order, and a bit for each: adding one that is there already is by far the most frequent operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct ActiveUes {
    ues: Vec<u32>,
    /// Bit `ue % 64` of word `ue / 64`: the UE is in `ues`.
    bits: Vec<u64>,
}

impl ActiveUes {
    /// Returns the UEs in ascending order.
    #[inline]
    pub(crate) fn ues(&self) -> &[u32] {
        &self.ues
    }

    /// Adds `ue`.
    #[inline]
    pub(crate) fn insert(&mut self, ue: u32) {
        if self.bits.get(word(ue)).is_none_or(|bits| bits & bit(ue) == 0) {
            self.add(ue);
        }
    }

    /// Adds `ue`, which is not in the set.
    fn add(&mut self, ue: u32) {
        if self.bits.len() <= word(ue) {
            self.bits.resize(word(ue) + 1, 0);
        }
        self.bits[word(ue)] |= bit(ue);
        let place = self.ues.partition_point(|other| *other < ue);
        self.ues.insert(place, ue);
    }

    /// Removes `ue`, if it is in the set.
    pub(crate) fn remove(&mut self, ue: u32) {
        self.retain(|other| other != ue);
    }

    /// Keeps only the UEs for which `keep` returns true; calls it in ascending order.
    #[inline]
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        let ActiveUes { ues, bits } = self;
        let mut kept = 0;
        for place in 0..ues.len() {
            let ue = ues[place];
            if keep(ue) {
                ues[kept] = ue;
                kept += 1;
            } else {
                bits[word(ue)] &= !bit(ue);
            }
        }
        ues.truncate(kept);
    }
}

#[inline]
fn word(ue: u32) -> usize {
    ue as usize / 64
}

#[inline]
fn bit(ue: u32) -> u64 {
    1 << (ue % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_ue_is_in_the_set_once_and_in_order_until_it_is_removed() {
        let mut set = ActiveUes::default();
        [70, 3, 64, 3, 0, 70].into_iter().for_each(|ue| set.insert(ue));
        assert_eq!(set.ues(), [0, 3, 64, 70]);
        set.remove(64);
        set.remove(65);
        set.retain(|ue| ue != 0);
        assert_eq!(set.ues(), [3, 70]);
        [0, 64].into_iter().for_each(|ue| set.insert(ue));
        assert_eq!(set.ues(), [0, 3, 64, 70]);
    }
}
