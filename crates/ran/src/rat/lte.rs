//! LTE in FDD: 36.211, 36.213, 36.321.

pub(crate) mod carrier;
pub(crate) mod formats;
pub(crate) mod reports;
pub(crate) mod sizes;
pub(crate) mod timing;
