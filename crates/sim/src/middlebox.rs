//! Middleboxes: what watches and answers packets between two hops.

pub(crate) mod pep;
