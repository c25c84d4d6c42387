//! Pages: `to` is a browser and `from` a server. For each page the browser opens parallel connections, requests the
//! page's objects in order, one request at a time on each connection, and closes a connection when no object is left to
//! request. The page is complete when all objects have been delivered; the load time starts with the request to
//! connect. After a think time, the browser requests the next page over new connections.
//!
//! Simplifications: no object depends on another one's content, sizes of requests and responses include headers, and
//! the server responds at once. A page is abandoned if one of its connections fails.

use crate::draw::after;
use crate::limits::MAX_COUNT;
use crate::{Action, Gap, Notice, RETRY_AFTER, Random, Side, Size, Transfer};
use std::collections::VecDeque;
use units::check::Range;
use units::{Bytes, Span, Time, parameters};

parameters! {
    /// Pages and the time between them.
    pub struct Parameters {
        /// Objects on a page.
        pub objects: u32, in 1..=10_000;
        /// Bytes of an object.
        pub object_size: Size, in Range::SIZE;
        /// Parallel connections.
        #[serde(default = "six")]
        pub connections: u32, in 1..=1_000;
        /// Bytes of the request for an object.
        #[serde(default = "request")]
        pub request: Bytes, in Range::SIZE;
        /// Time from the end of one page to the request for the next.
        pub think: Gap, in Range::SPAN;
        /// Number of pages. Default: unlimited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub count: Option<u32>, in 1..=MAX_COUNT;
    }
}

fn six() -> u32 {
    6
}

fn request() -> Bytes {
    Bytes::new(500)
}

/// The contents of a page.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) connections: u32,
    pub(crate) request: Bytes,
    pub(crate) objects: Vec<Size>,
}

/// Page loads with think times.
#[derive(Clone, Debug)]
pub struct Pages {
    page: Page,
    think: Gap,
    /// Number of pages still to start.
    left: u32,
    /// When the next page starts, or [`Time::MAX`] if one is loading or none is left.
    next: Time,
    stop: Time,
    /// The number of the next page.
    index: u32,
    loading: Option<Loading>,
    /// The connections of the page being loaded; `first` is the first one's number. Empty between pages.
    fetches: Vec<Fetch>,
    first: u32,
    /// Sizes of the objects of the page being loaded.
    sizes: Vec<u64>,
    finished: bool,
    out: VecDeque<Action>,
    random: Random,
}

#[derive(Clone, Copy, Debug)]
struct Loading {
    start: Time,
    /// The first object not yet requested.
    next_object: usize,
    /// Number of objects still missing.
    missing: usize,
    delivered: u64,
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fetch {
    Opening,
    /// The server has yet to receive `left` bytes of the request.
    Asking {
        object: u64,
        left: u64,
    },
    /// The browser has yet to receive `left` bytes of the object.
    Receiving {
        left: u64,
    },
    Closed,
}

impl Pages {
    pub(crate) fn new(page: Page, think: Gap, count: Option<u32>, start: Time, stop: Time, random: Random) -> Pages {
        Pages {
            page,
            think,
            left: count.unwrap_or(u32::MAX),
            next: start,
            stop,
            index: 0,
            loading: None,
            fetches: Vec::new(),
            first: 0,
            sizes: Vec::new(),
            finished: false,
            out: VecDeque::new(),
            random,
        }
    }

    #[inline]
    pub(crate) fn handle(&mut self, notice: Notice, now: Time) {
        match notice {
            Notice::Connected { conn, side: Side::To } => self.ask(conn),
            Notice::Connected { .. } => {}
            Notice::Delivered { conn, side: Side::From, bytes } => {
                let Some(fetch) = self.fetch(conn) else { return };
                let Fetch::Asking { object, left } = *fetch else { return };
                if bytes < left {
                    *fetch = Fetch::Asking { object, left: left - bytes };
                } else {
                    *fetch = Fetch::Receiving { left: object };
                    self.out.push_back(Action::Write { conn, side: Side::From, bytes: object });
                }
            }
            Notice::Delivered { conn, side: Side::To, bytes } => {
                let Some(fetch) = self.fetch(conn) else { return };
                let Fetch::Receiving { left } = *fetch else { return };
                let taken = bytes.min(left);
                *fetch = Fetch::Receiving { left: left - taken };
                let Some(loading) = &mut self.loading else { return };
                loading.delivered += taken;
                if taken == left {
                    loading.missing -= 1;
                    self.ask(conn);
                    self.complete_if_all_is_here(now);
                }
            }
            Notice::Closed { conn, side: Side::From } => self.out.push_back(Action::Close { conn, side: Side::From }),
            Notice::Closed { .. } => {}
            Notice::Failed { conn } => self.give_up(conn, now),
        }
    }

    #[inline]
    pub(crate) fn poll_action(&mut self, now: Time) -> Option<Action> {
        if self.out.is_empty() {
            if self.next != Time::MAX {
                if now >= self.next {
                    self.begin();
                }
            } else if self.loading.is_none() && !self.finished {
                self.finished = true;
                return Some(Action::Finished);
            }
        }
        self.out.pop_front()
    }

    pub(crate) fn poll_timeout(&self) -> Time {
        self.next
    }

    pub(crate) fn in_progress(&self, now: Time) -> Option<Transfer> {
        self.loading.map(|loading| self.transfer(loading, now))
    }

    /// Returns the state of a connection of the page being loaded.
    fn fetch(&mut self, conn: u32) -> Option<&mut Fetch> {
        self.fetches.get_mut(conn.checked_sub(self.first)? as usize)
    }

    fn begin(&mut self) {
        self.sizes.clear();
        self.sizes.extend(self.page.objects.iter().map(|size| size.draw(&mut self.random).get()));
        let objects = self.sizes.len();
        self.loading = Some(Loading { start: self.next, next_object: 0, missing: objects, delivered: 0 });
        let connections = u32::try_from(objects).unwrap_or(u32::MAX).min(self.page.connections);
        for conn in self.first..self.first + connections {
            self.fetches.push(Fetch::Opening);
            self.out.push_back(Action::Connect { conn, opener: Side::To });
        }
        self.left -= 1;
        self.next = Time::MAX;
    }

    /// Requests the next object on an idle connection, or closes it if there is none. A connection established after
    /// its page was completed over the others is closed as well.
    fn ask(&mut self, conn: u32) {
        let request = self.page.request.get();
        let object = self.loading.and_then(|loading| self.sizes.get(loading.next_object)).copied();
        let (state, action) = match object {
            Some(object) if conn >= self.first => {
                (Fetch::Asking { object, left: request }, Action::Write { conn, side: Side::To, bytes: request })
            }
            _ => (Fetch::Closed, Action::Close { conn, side: Side::To }),
        };
        self.out.push_back(action);
        if let Some(fetch) = self.fetch(conn) {
            *fetch = state;
            if let (Some(loading), Fetch::Asking { .. }) = (&mut self.loading, state) {
                loading.next_object += 1;
            }
        }
    }

    fn complete_if_all_is_here(&mut self, now: Time) {
        if let Some(loading) = self.loading.take_if(|loading| loading.missing == 0) {
            let transfer = self.transfer(loading, now);
            self.out.push_back(Action::Completed(transfer));
            self.schedule(now, Span::ZERO);
        }
    }

    fn give_up(&mut self, failed: u32, now: Time) {
        // The failure of a connection that has done its work, or of an earlier page, has no effect.
        if self.fetch(failed).is_none_or(|fetch| *fetch == Fetch::Closed) {
            return;
        }
        let Some(loading) = self.loading.take() else { return };
        for (conn, fetch) in (self.first..).zip(&self.fetches) {
            if conn != failed && *fetch != Fetch::Closed {
                self.out.push_back(Action::Abort { conn });
            }
        }
        let transfer = self.transfer(loading, now);
        self.out.push_back(Action::Failed(transfer));
        self.schedule(now, RETRY_AFTER);
    }

    fn transfer(&self, loading: Loading, now: Time) -> Transfer {
        Transfer { index: self.index, start: loading.start, end: now, bytes: loading.delivered }
    }

    /// Schedules the next page after the think time, and at least `at_least` later.
    fn schedule(&mut self, now: Time, at_least: Span) {
        self.index += 1;
        self.first += self.fetches.len() as u32;
        self.fetches.clear();
        if self.left > 0 {
            let next = after(now, self.think.draw(&mut self.random).max(at_least));
            self.next = if next < self.stop { next } else { Time::MAX };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::App;
    use crate::story::{HALF, Story, ms};

    fn app(connections: u32, objects: &[u64], count: Option<u32>, stop: Time) -> Pages {
        let page = Page {
            connections,
            request: Bytes::new(400),
            objects: objects.iter().map(|&bytes| Size::Constant { size: Bytes::new(bytes) }).collect(),
        };
        let think = Gap::Constant { time: Span::from_millis(500) };
        Pages::new(page, think, count, ms(0), stop, rand_core::SeedableRng::seed_from_u64(11))
    }

    fn pages(connections: u32, objects: &[u64], count: Option<u32>, stop: Time) -> Story {
        Story::of(App::Pages(app(connections, objects, count, stop)))
    }

    #[test]
    fn seven_objects_over_three_connections_take_a_handshake_and_three_round_trips() {
        let story = pages(3, &[10_000; 7], Some(1), Time::MAX).run(ms(5000));
        let end = ms(0) + HALF * 2 * 4;
        assert_eq!(story.completed(), [Transfer { index: 0, start: ms(0), end, bytes: 70_000 }]);
        assert_eq!(story.moments(|action| matches!(action, Action::Connect { opener: Side::To, .. })).len(), 3);
        assert_eq!(story.finished(), Some(end));
        assert!(story.all_is_closed());
    }

    #[test]
    fn a_connection_has_one_request_outstanding_and_objects_are_asked_for_in_order() {
        let story = pages(1, &[1000, 2000, 3000], Some(1), Time::MAX).run(ms(5000));
        let responses: Vec<(Time, u64)> = story
            .log
            .iter()
            .filter_map(|(at, action)| match action {
                Action::Write { side: Side::From, bytes, .. } => Some((*at, *bytes)),
                _ => None,
            })
            .collect();
        assert_eq!(responses, [(ms(30), 1000), (ms(50), 2000), (ms(70), 3000)]);
    }

    #[test]
    fn no_more_connections_are_opened_than_there_are_objects() {
        let story = pages(6, &[1000, 1000], Some(1), Time::MAX).run(ms(5000));
        assert_eq!(story.moments(|action| matches!(action, Action::Connect { .. })).len(), 2);
    }

    #[test]
    fn the_next_page_follows_a_think_time_after_the_last_one_until_the_stop() {
        let story = pages(2, &[1000; 2], None, ms(1000)).run(ms(5000));
        let starts: Vec<(u32, Time)> = story.completed().iter().map(|page| (page.index, page.start)).collect();
        assert_eq!(starts, [(0, ms(0)), (1, ms(540))]);
        assert_eq!(story.finished(), Some(ms(580)));
        assert!(story.all_is_closed());
    }

    #[test]
    fn a_page_with_a_failed_connection_is_given_up_and_the_next_one_waits_a_second() {
        let mut story = pages(2, &[1000; 8], Some(2), Time::MAX);
        story.refused.insert(1);
        let story = story.run(ms(5000));
        let failed = Transfer { index: 0, start: ms(0), end: ms(20), bytes: 0 };
        assert!(story.log.contains(&(ms(20), Action::Failed(failed))));
        assert!(story.log.contains(&(ms(20), Action::Abort { conn: 0 })));
        assert_eq!(story.completed(), [Transfer { index: 1, start: ms(1020), end: ms(1120), bytes: 8000 }]);
    }

    #[test]
    fn a_connection_that_comes_up_after_its_page_is_complete_is_closed() {
        let mut app = app(2, &[1000; 2], Some(2), Time::MAX);
        let drain = |app: &mut Pages, now| -> Vec<Action> { core::iter::from_fn(|| app.poll_action(now)).collect() };
        drain(&mut app, ms(0));
        assert_eq!(app.in_progress(ms(1)), Some(Transfer { index: 0, start: ms(0), end: ms(1), bytes: 0 }));
        // Connection 0 fetches both objects before connection 1 is up.
        app.handle(Notice::Connected { conn: 0, side: Side::To }, ms(1));
        for _ in 0..2 {
            app.handle(Notice::Delivered { conn: 0, side: Side::From, bytes: 400 }, ms(2));
            app.handle(Notice::Delivered { conn: 0, side: Side::To, bytes: 1000 }, ms(3));
        }
        let done = drain(&mut app, ms(3));
        assert!(done.contains(&Action::Completed(Transfer { index: 0, start: ms(0), end: ms(3), bytes: 2000 })));
        assert_eq!(app.in_progress(ms(3)), None);
        drain(&mut app, ms(503));
        app.handle(Notice::Connected { conn: 1, side: Side::To }, ms(504));
        assert_eq!(drain(&mut app, ms(504)), [Action::Close { conn: 1, side: Side::To }]);
    }
}
