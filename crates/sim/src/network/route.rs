//! Routes: the links, radio hops and middleboxes that packets pass, in order.

use super::medium::interface::Port;

/// One step of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// The index of a link.
    Link(u32),
    /// The index of a medium, and a port of it.
    Medium(u16, Port),
    /// A middlebox: the number of the route's passage through it.
    Middlebox(u32),
}

/// All routes of a network.
#[derive(Default)]
pub(crate) struct Routes {
    ways: Vec<Box<[Hop]>>,
    /// The index of the radio network among the media.
    pub(super) radio: Option<u16>,
}

impl Routes {
    /// Adds a route and returns its number.
    pub(crate) fn add(&mut self, hops: Box<[Hop]>) -> u32 {
        self.ways.push(hops);
        self.ways.len() as u32 - 1
    }

    /// Inserts a hop into a route that nothing travels on yet.
    pub(crate) fn insert(&mut self, route: u32, at: usize, hop: Hop) {
        let hops = &mut self.ways[route as usize];
        let mut longer = std::mem::take(hops).into_vec();
        longer.insert(at, hop);
        *hops = longer.into();
    }

    /// Returns the number of hops of `route` up to and including `hop`.
    ///
    /// # Panics
    /// If the route does not lead over it.
    pub(crate) fn behind(&self, route: u32, hop: Hop) -> u16 {
        let at = self.hops(route).iter().position(|&other| other == hop).expect("the route leads over the hop");
        at as u16 + 1
    }

    /// Returns the UE of a hop, if it is one of the radio network.
    pub(crate) fn ue(&self, hop: Hop) -> Option<u32> {
        match hop {
            Hop::Medium(medium, port) if self.radio == Some(medium) => Some(port.ue().0),
            Hop::Link(_) | Hop::Medium(..) | Hop::Middlebox(_) => None,
        }
    }

    /// Returns the hops of a route.
    #[inline]
    pub(crate) fn hops(&self, route: u32) -> &[Hop] {
        &self.ways[route as usize]
    }

    /// Returns the hop of a route after `passed` others; `None` at its end.
    #[inline]
    pub(crate) fn hop(&self, route: u32, passed: u16) -> Option<Hop> {
        self.hops(route).get(usize::from(passed)).copied()
    }

    /// Returns whether `hop` is the first one of all routes that lead over it.
    pub(crate) fn is_always_first(&self, hop: Hop) -> bool {
        self.ways.iter().all(|route| route.iter().skip(1).all(|&other| other != hop))
    }

    /// Returns the only hop that follows `hop` on all routes, if there is one and no route ends there.
    pub(crate) fn only_next(&self, hop: Hop) -> Option<Hop> {
        only(self.ways.iter().flat_map(|route| {
            let places = (0..route.len()).filter(move |&i| route[i] == hop);
            places.map(|i| route.get(i + 1).copied())
        }))
    }

    /// Returns the only hop that precedes `hop` on all routes, if there is one and no route begins there.
    pub(crate) fn only_before(&self, hop: Hop) -> Option<Hop> {
        only(self.ways.iter().flat_map(|route| {
            let places = (0..route.len()).filter(move |&i| route[i] == hop);
            places.map(|i| i.checked_sub(1).map(|before| route[before]))
        }))
    }
}

/// Returns the common value of all elements, if they are equal.
fn only(mut all: impl Iterator<Item = Option<Hop>>) -> Option<Hop> {
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}
