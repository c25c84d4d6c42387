//! ETSI GS MEC 012 v2.2.1, the radio network information API, without its transport: data types, answers to queries,
//! subscriptions and notifications.
//!
//! The order of calls: records go to [`crate::State::accept`], whose occurrences go to [`Book::matching`]; answers are built by
//! [`answer`]; [`Book::due`] returns the subscriptions that expire.
//!
//! Deviations from the standard:
//!
//! 1. A cell reports a UE's traffic as a whole. It is reported as traffic without guaranteed rate, unless the UE has a bearer
//!    with one; then the split is unknown and the values are left out, as the standard permits.
//! 2. Of the queries' parameters that name a layer 2 measurement, the presence selects the measurement; the number, for which
//!    the standard gives no meaning, is ignored.
//! 3. Signal strengths are the integers that 36.133 and 38.133 map them to.

pub mod answer;
mod book;
mod mapping;
mod model;
mod notification;
mod subscription;

pub use book::{Book, Delivery, Due, Entry, Id, MOST_PER_OWNER, MOST_SUBSCRIPTIONS, Refusal};
pub use model::*;
pub use notification::{Notification, notify};
pub use subscription::{Invalid, Kind, Subscription};
