//! The subscriptions of a service.

use super::notification::{Notification, notify};
use super::subscription::{Kind, Subscription};
use crate::identity::Network;
use crate::state::Occurrence;
use core::fmt;
use std::collections::{BTreeMap, BTreeSet};
use units::Time;

/// The most subscriptions at a time.
pub const MOST_SUBSCRIPTIONS: usize = 1024;
/// The most subscriptions of one owner at a time.
pub const MOST_PER_OWNER: usize = 256;

/// The identifier of a subscription: 128 random bits, which only its owner knows. Who knows them may use the subscription.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(u128);

impl Id {
    /// Creates an identifier from random bytes.
    pub const fn new(random: [u8; 16]) -> Id {
        Id(u128::from_be_bytes(random))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{:032x}", self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Id(..)")
    }
}

impl core::str::FromStr for Id {
    type Err = Refusal;

    /// Parses 32 lower-case hexadecimal digits; anything else is the name of no subscription.
    fn from_str(text: &str) -> Result<Id, Refusal> {
        let id = u128::from_str_radix(text, 16).map(Id).ok();
        id.filter(|id| id.to_string() == text).ok_or(Refusal::Unknown)
    }
}

/// Subscriptions by identifier, without I/O, clock or randomness. `now` is an argument, in Unix time. Memory is bounded by
/// [`MOST_SUBSCRIPTIONS`], and by the checks of [`Subscription::parse`].
#[derive(Clone, Debug, Default)]
pub struct Book {
    entries: BTreeMap<Id, Entry>,
    by_expiry: BTreeSet<(Time, Id)>,
    owners: BTreeMap<String, usize>,
}

/// How notifications reach the consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// They are posted to the callback.
    Callback,
    /// The consumer connects a WebSocket.
    WebSocket,
}

/// A subscription, and what the service knows of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The subscription.
    pub subscription: Subscription,
    /// How notifications reach the consumer.
    pub delivery: Delivery,
    /// Its link.
    pub this: String,
    owner: String,
}

/// A subscription that has expired and was removed.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    /// The subscription's identifier.
    pub id: Id,
    /// What to tell its consumer.
    pub notification: Notification,
}

/// The reason why a subscription is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There are [`MOST_SUBSCRIPTIONS`].
    Full,
    /// The owner has [`MOST_PER_OWNER`].
    OwnerFull,
    /// The deadline has passed.
    Expired,
    /// There is no subscription with this identifier.
    Unknown,
    /// A subscription cannot change its type.
    OtherKind,
}

impl fmt::Display for Refusal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Full => write!(to, "the service has its maximum of {MOST_SUBSCRIPTIONS} subscriptions"),
            Refusal::OwnerFull => write!(to, "this client has its maximum of {MOST_PER_OWNER} subscriptions"),
            Refusal::Expired => to.write_str("`expiryDeadline` has passed"),
            Refusal::Unknown => to.write_str("there is no such subscription"),
            Refusal::OtherKind => to.write_str("the type of a subscription cannot be changed"),
        }
    }
}

impl core::error::Error for Refusal {}

impl Book {
    /// Adds a subscription of `owner` with a new identifier and the link that contains it.
    pub fn create(
        &mut self,
        (id, link): (Id, String),
        subscription: Subscription,
        delivery: Delivery,
        owner: &str,
        now: Time,
    ) -> Result<(), Refusal> {
        if is_past(&subscription, now) {
            return Err(Refusal::Expired);
        }
        if self.entries.len() >= MOST_SUBSCRIPTIONS {
            return Err(Refusal::Full);
        }
        let owned = self.owners.entry(owner.to_owned()).or_default();
        if *owned >= MOST_PER_OWNER {
            return Err(Refusal::OwnerFull);
        }
        *owned += 1;
        if let Some(expiry) = subscription.expiry {
            self.by_expiry.insert((expiry.into(), id));
        }
        let entry = Entry { subscription, delivery, this: link, owner: owner.to_owned() };
        self.entries.insert(id, entry);
        Ok(())
    }

    /// Replaces a subscription by another one of the same type.
    pub fn replace(
        &mut self,
        id: Id,
        subscription: Subscription,
        delivery: Delivery,
        now: Time,
    ) -> Result<&Entry, Refusal> {
        let entry = self.entries.get_mut(&id).ok_or(Refusal::Unknown)?;
        if entry.subscription.kind != subscription.kind {
            return Err(Refusal::OtherKind);
        }
        if is_past(&subscription, now) {
            return Err(Refusal::Expired);
        }
        if let Some(expiry) = entry.subscription.expiry {
            self.by_expiry.remove(&(expiry.into(), id));
        }
        if let Some(expiry) = subscription.expiry {
            self.by_expiry.insert((expiry.into(), id));
        }
        entry.subscription = subscription;
        entry.delivery = delivery;
        Ok(entry)
    }

    /// Returns a subscription.
    pub fn get(&self, id: Id) -> Option<&Entry> {
        self.entries.get(&id)
    }

    /// Removes a subscription.
    pub fn remove(&mut self, id: Id) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        if let Some(expiry) = entry.subscription.expiry {
            self.by_expiry.remove(&(expiry.into(), id));
        }
        if let Some(owned) = self.owners.get_mut(&entry.owner) {
            *owned -= 1;
            if *owned == 0 {
                self.owners.remove(&entry.owner);
            }
        }
        Some(entry)
    }

    /// Returns the subscriptions, those of one type or all.
    pub fn list(&self, kind: Option<Kind>) -> impl Iterator<Item = (Id, &Entry)> {
        let wanted = move |entry: &Entry| kind.is_none_or(|kind| entry.subscription.kind == kind);
        self.entries.iter().filter(move |(_, entry)| wanted(entry)).map(|(&id, entry)| (id, entry))
    }

    /// Returns the number of subscriptions.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there is no subscription.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the notifications of an event, with the identifiers of their subscriptions.
    pub fn matching(&self, occurrence: &Occurrence, network: &Network) -> Vec<(Id, Notification)> {
        let entries = self.entries.iter();
        entries
            .filter(|(_, entry)| entry.subscription.matches(occurrence, network))
            .filter_map(|(&id, entry)| Some((id, notify(occurrence, network, &entry.this)?)))
            .collect()
    }

    /// Removes the subscriptions that have expired by `now` and returns the notifications to send.
    pub fn due(&mut self, now: Time) -> Vec<Due> {
        let mut due = Vec::new();
        while let Some(&(deadline, id)) = self.by_expiry.first()
            && deadline <= now
        {
            self.by_expiry.pop_first();
            if let Some(entry) = self.remove(id) {
                let notification = Notification::expiry(&entry.this, deadline.into(), now.into());
                due.push(Due { id, notification });
            }
        }
        due
    }

    /// Returns when [`Book::due`] is to be called next.
    pub fn next_expiry(&self) -> Option<Time> {
        self.by_expiry.first().map(|&(deadline, _)| deadline)
    }
}

fn is_past(subscription: &Subscription, now: Time) -> bool {
    subscription.expiry.is_some_and(|expiry| Time::from(expiry) <= now)
}
