//! Routes: the links and radio hops that packets pass, in order.

use channel::Direction;

/// One step of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// The index of a link.
    Link(u32),
    /// The radio hop of a UE.
    Radio(u32, Direction),
}

/// All routes of a network.
#[derive(Default)]
pub(crate) struct Routes(Vec<Box<[Hop]>>);

impl Routes {
    /// Adds a route and returns its number.
    pub(crate) fn add(&mut self, hops: Box<[Hop]>) -> u32 {
        self.0.push(hops);
        self.0.len() as u32 - 1
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The hops of a route.
    #[inline]
    pub(crate) fn hops(&self, route: u32) -> &[Hop] {
        &self.0[route as usize]
    }

    /// The hop of a route after `passed` others; `None` at its end.
    #[inline]
    pub(crate) fn hop(&self, route: u32, passed: u16) -> Option<Hop> {
        self.hops(route).get(usize::from(passed)).copied()
    }

    /// The hop that everything takes after `hop`, if there is just one and no route ends there.
    pub(crate) fn only_next(&self, hop: Hop) -> Option<Hop> {
        only(self.0.iter().flat_map(|route| {
            let places = (0..route.len()).filter(move |&i| route[i] == hop);
            places.map(|i| route.get(i + 1).copied())
        }))
    }

    /// The hop that everything takes before `hop`, if there is just one and no route begins there.
    pub(crate) fn only_before(&self, hop: Hop) -> Option<Hop> {
        only(self.0.iter().flat_map(|route| {
            let places = (0..route.len()).filter(move |&i| route[i] == hop);
            places.map(|i| i.checked_sub(1).map(|before| route[before]))
        }))
    }
}

/// The element that all are equal to, if they are all equal.
fn only(mut all: impl Iterator<Item = Option<Hop>>) -> Option<Hop> {
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}
