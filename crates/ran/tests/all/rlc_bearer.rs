//! What a bearer does around RLC's procedures: discard, queue disciplines, long runs with losses, handover and failure.

use aqm::{DropReason, codel, drop_tail};
use channel::Direction::{self, Downlink, Uplink};
use ran::pdcp::{self, Keep, Times};
use ran::rlc::{Am, Bearer, Block, Config, Mode, SnLength, Um};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use testkit::queue::TestPacket;
use units::{Bytes, Span, Time};

const LEN: u32 = 98;
/// What an SDU of `LEN` bytes takes with the headers of PDCP and of AM or UM with long numbers.
const GRANT: u32 = LEN + pdcp::HEADER + 2;

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

/// Plays the part of the MAC; time is in milliseconds.
struct Story {
    bearer: Bearer<TestPacket>,
    sent: u64,
    delivered: Vec<(u64, Times)>,
    dropped: Vec<(u64, DropReason)>,
}

impl Story {
    fn new(mode: Mode, queue: aqm::Config, discard: Option<u64>) -> Story {
        let pdcp = pdcp::Config { queue, discard: discard.map(Span::from_millis) };
        let bearer = Bearer::new(&Config { mode, downlink: pdcp, uplink: pdcp::Config::default() });
        Story { bearer, sent: 0, delivered: Vec::new(), dropped: Vec::new() }
    }

    fn plain(mode: Mode) -> Story {
        Story::new(mode, aqm::Config::UNLIMITED, None)
    }

    fn enqueue(&mut self, ms: u64, sdus: u64) {
        for _ in 0..sdus {
            let packet = TestPacket::new(self.sent, 0, LEN);
            self.bearer.enqueue(Downlink, packet, at(ms), &mut |p: TestPacket, r| self.dropped.push((p.id, r)));
            self.sent += 1;
        }
    }

    fn build(&mut self, way: Direction, ms: u64, grant: u32) -> Block {
        let mut block = Block::default();
        self.bearer.build(way, grant, at(ms), &mut block, &mut |p: TestPacket, r| self.dropped.push((p.id, r)));
        assert!(block.bytes() <= grant);
        block
    }

    fn receive(&mut self, way: Direction, ms: u64, block: &Block) {
        let mut deliver = |_: Direction, p: TestPacket, times: Times| self.delivered.push((p.id, times));
        self.bearer.receive(way, block, at(ms), &mut deliver, &mut |p: TestPacket, r| self.dropped.push((p.id, r)));
    }

    fn time_out(&mut self, ms: u64) {
        if self.bearer.poll_timeout().is_some_and(|due| due <= at(ms)) {
            let mut deliver = |_: Direction, p: TestPacket, times: Times| self.delivered.push((p.id, times));
            self.bearer.handle_timeout(at(ms), &mut deliver, &mut |p: TestPacket, r| self.dropped.push((p.id, r)));
        }
    }

    fn reestablish(&mut self, ms: u64, keep: Keep) {
        let mut deliver = |_: Direction, p: TestPacket, times: Times| self.delivered.push((p.id, times));
        let mut drops = |p: TestPacket, r| self.dropped.push((p.id, r));
        self.bearer.reestablish(keep, Keep::All, at(ms), &mut deliver, &mut drops);
    }

    fn ids(&self) -> Vec<u64> {
        self.delivered.iter().map(|&(id, _)| id).collect()
    }

    fn lost(&self, reason: DropReason) -> Vec<u64> {
        self.dropped.iter().filter(|&&(_, r)| r == reason).map(|&(id, _)| id).collect()
    }
}

fn am() -> Mode {
    Mode::Am(Am { t_poll_retransmit: Span::from_millis(20), max_retx: 4, ..Am::default() })
}

fn um() -> Mode {
    Mode::Um(Um::default())
}

#[test]
fn an_sdu_that_waited_too_long_is_gone_and_no_longer_announced() {
    let mut story = Story::new(am(), aqm::Config::UNLIMITED, Some(50));
    story.enqueue(0, 2);
    story.enqueue(10, 1);
    assert_eq!(story.bearer.head_since(Downlink), Some(at(0)));
    assert_eq!(story.bearer.poll_timeout(), Some(at(50)));
    story.time_out(50);
    assert_eq!(story.lost(DropReason::Control), [0, 1]);
    assert_eq!(story.bearer.backlog(Downlink, at(50)).new, 100);
    let block = story.build(Downlink, 51, 500);
    story.receive(Downlink, 55, &block);
    assert_eq!(story.delivered, [(2, Times { first_sent: at(51), last_sent: at(51), decoded: None })]);
}

#[test]
fn an_sdu_that_is_partly_sent_is_not_discarded() {
    let mut story = Story::new(am(), aqm::Config::UNLIMITED, Some(50));
    story.enqueue(0, 2);
    let first = story.build(Downlink, 1, 60);
    story.time_out(50);
    assert_eq!(story.lost(DropReason::Control), [1]);
    let rest = story.build(Downlink, 70, 500);
    story.receive(Downlink, 71, &first);
    story.receive(Downlink, 72, &rest);
    assert_eq!(story.delivered, [(0, Times { first_sent: at(1), last_sent: at(70), decoded: None })]);
}

#[test]
fn a_full_buffer_loses_its_head_if_it_is_told_to() {
    let limit = drop_tail::Config { bytes: Some(Bytes::new(300)), packets: None, victim: drop_tail::Victim::Oldest };
    let mut story = Story::new(am(), aqm::Config::DropTail(limit), None);
    story.enqueue(0, 5);
    assert_eq!(story.lost(DropReason::Overflow), [0, 1]);
    assert_eq!(story.bearer.queue(Downlink).packets, 3);
}

#[test]
fn codel_in_front_of_rlc_holds_the_queue_of_a_greedy_flow_down() {
    // A grant of one SDU each TTI, and a flow that offers a quarter more but rests 20 ms after each loss.
    let run = |queue| {
        let mut story = Story::new(am(), queue, None);
        for ms in 0..4000 {
            let rested = ms >= story.dropped.len() as u64 * 20;
            story.enqueue(ms, 1 + u64::from(ms % 4 == 0 && rested));
            story.time_out(ms);
            let block = story.build(Downlink, ms, GRANT);
            story.receive(Downlink, ms, &block);
            let block = story.build(Uplink, ms, 100);
            story.receive(Uplink, ms, &block);
        }
        assert!(story.dropped.iter().all(|&(_, reason)| reason == DropReason::Control));
        (story.dropped.len(), story.bearer.queue(Downlink).packets)
    };
    let target = Span::from_millis(20);
    let (_, codel) = run(aqm::Config::Codel(codel::Config { target, packets: u32::MAX, ..codel::Config::default() }));
    assert_eq!(run(aqm::Config::UNLIMITED), (0, 1000));
    assert!(codel < 200, "{codel} SDUs wait");
}

#[test]
fn a_bearer_that_never_rests_loses_nothing_in_am_and_keeps_order_in_um() {
    let modes = [
        Mode::Am(Am { max_retx: 1000, ..Am::default() }),
        um(),
        Mode::Um(Um { sn: SnLength::Five, t_reordering: Span::from_millis(45) }),
    ];
    for mode in modes {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut story = Story::plain(mode);
        let mut air: std::collections::BTreeMap<(u64, u64), (Direction, Block)> = Default::default();
        let (ttis, end) = (6000, 8000);
        let mut lost = 0;
        for ms in 0..end {
            story.time_out(ms);
            while let Some(entry) = air.first_entry().filter(|entry| entry.key().0 <= ms) {
                let (way, block) = entry.remove();
                story.receive(way, ms, &block);
            }
            if ms < ttis {
                story.enqueue(ms, 3);
            }
            for (way, grant) in [(Downlink, 310), (Uplink, 60)] {
                let block = story.build(way, ms, grant);
                // HARQ: four ms, 8 more for each of up to 3 retransmissions, and the rest is lost.
                let draw = random.next_u64() % 100;
                let retransmissions = [80, 92, 97, 99].into_iter().filter(|&n| draw >= n).count() as u64;
                if block.is_empty() || (retransmissions == 4 && ms < ttis) {
                    lost += u64::from(!block.is_empty());
                    continue;
                }
                air.insert((ms + 4 + 8 * retransmissions, 2 * ms + way as u64), (way, block));
            }
        }
        assert!(lost > 50 && story.bearer.stats(Downlink).pdus > 5 * 1024);
        assert!(story.ids().is_sorted_by(|a, b| a < b));
        if matches!(mode, Mode::Am(_)) {
            assert_eq!(story.delivered.len() as u64, story.sent);
            assert_eq!(story.bearer.poll_timeout(), None);
            assert!(story.bearer.stats(Downlink).retx_pdus >= 50);
        } else {
            // A block carries parts of up to five SDUs. Numbers of 5 bits are ambiguous 16 ms late, which costs more.
            let missing = story.sent as usize - story.delivered.len();
            let most = if mode == um() { 5 * lost as usize } else { story.sent as usize / 2 };
            assert!((lost as usize / 4..=most).contains(&missing), "{missing} SDUs of {lost} blocks");
        }
    }
}

/// Ten SDUs in blocks of their own, of which `lost` do not arrive, and ten that wait.
fn before_a_handover(mode: Mode, lost: &[usize]) -> (Story, Vec<Block>) {
    let mut story = Story::plain(mode);
    story.enqueue(0, 20);
    let blocks: Vec<Block> = (0..10).map(|ms| story.build(Downlink, ms, GRANT)).collect();
    for (n, block) in blocks.iter().enumerate().filter(|(n, _)| !lost.contains(n)) {
        story.receive(Downlink, 10 + n as u64, block);
    }
    (story, blocks)
}

#[test]
fn a_lossless_handover_sends_again_what_the_receiver_lacks_and_nothing_else() {
    let (mut story, blocks) = before_a_handover(am(), &[2, 5]);
    assert_eq!(story.ids(), [0, 1]);
    story.reestablish(30, Keep::All);
    assert_eq!(story.ids(), [0, 1], "what arrived behind a hole waits for it");
    assert_eq!(story.bearer.backlog(Downlink, at(30)).new, 12 * 100);
    story.receive(Downlink, 31, &blocks[2]);
    assert_eq!(story.ids(), [0, 1], "a block from before is void");
    let block = story.build(Downlink, 31, GRANT);
    story.receive(Downlink, 32, &block);
    assert_eq!(story.ids(), [0, 1, 2, 3, 4]);
    let block = story.build(Downlink, 32, 2000);
    story.receive(Downlink, 33, &block);
    assert_eq!(story.ids(), (0..20).collect::<Vec<_>>());
    assert!(story.dropped.is_empty());
}

#[test]
fn a_handover_that_keeps_the_queue_loses_what_was_on_its_way() {
    for mode in [am(), um()] {
        let (mut story, _) = before_a_handover(mode, &[2, 5]);
        story.reestablish(30, Keep::Queue);
        assert_eq!(story.ids(), [0, 1, 3, 4, 6, 7, 8, 9], "what is whole is delivered");
        assert_eq!(story.lost(DropReason::Loss), [2, 5]);
        let block = story.build(Downlink, 31, 2000);
        story.receive(Downlink, 32, &block);
        assert_eq!(story.delivered.len(), 18);
    }
}

#[test]
fn a_handover_without_forwarding_loses_the_queue() {
    let (mut story, _) = before_a_handover(am(), &[9]);
    story.reestablish(30, Keep::Nothing);
    assert_eq!(story.lost(DropReason::Loss), (9..20).collect::<Vec<_>>());
    assert!(story.bearer.backlog(Downlink, at(30)).is_empty());
    assert_eq!(story.bearer.poll_timeout(), None);
}

#[test]
fn a_link_over_which_nothing_arrives_fails_after_max_retx_polls() {
    let mut story = Story::plain(am());
    story.enqueue(0, 1);
    let mut sent = Vec::new();
    for ms in 0..200 {
        story.time_out(ms);
        if story.bearer.failed().is_some() {
            // RETX_COUNT is 0 with the first retransmission, and 4 when the fifth is due.
            assert_eq!((ms, sent), (100, vec![0, 20, 40, 60, 80]));
            assert_eq!(story.bearer.failed(), Some(Downlink));
            story.reestablish(ms, Keep::All);
            assert_eq!(story.bearer.failed(), None);
            assert_eq!(story.bearer.backlog(Downlink, at(ms)).new, 100);
            return;
        }
        if !story.build(Downlink, ms, GRANT).is_empty() {
            sent.push(ms);
        }
    }
    panic!("the link did not fail");
}

#[test]
fn a_status_is_announced_in_the_other_direction_when_it_may_be_sent() {
    let mode = Mode::Am(Am { poll_pdu: Some(1), t_status_prohibit: Span::from_millis(50), ..Am::default() });
    let mut story = Story::plain(mode);
    story.enqueue(0, 2);
    for ms in [0, 1] {
        let block = story.build(Downlink, ms, GRANT);
        story.receive(Downlink, ms, &block);
        let status = story.build(Uplink, ms, 100);
        assert_eq!(status.bytes(), if ms == 0 { 2 } else { 0 });
        story.receive(Uplink, ms, &status);
    }
    assert!(story.bearer.backlog(Uplink, at(1)).is_empty(), "t-StatusProhibit runs");
    assert_eq!(story.bearer.poll_timeout(), Some(at(50)), "its end changes the backlog");
    story.time_out(50);
    let backlog = story.bearer.backlog(Uplink, at(50));
    assert_eq!((backlog.status, backlog.data(), backlog.with_headers()), (2, 2, 5));
    let status = story.build(Uplink, 50, 100);
    story.receive(Uplink, 54, &status);
    assert_eq!(story.bearer.stats(Downlink).statuses, 2);
    assert_eq!(story.bearer.poll_timeout(), None);
}

#[test]
fn the_transparent_mode_adds_nothing_and_cuts_nothing() {
    let mut story = Story::plain(Mode::Tm);
    story.enqueue(0, 3);
    assert_eq!(story.bearer.backlog(Downlink, at(0)).new, u64::from(3 * LEN));
    assert!(story.build(Downlink, 0, LEN - 1).is_empty());
    let (first, second) = (story.build(Downlink, 1, 2 * LEN), story.build(Downlink, 2, 3 * LEN));
    assert_eq!((first.bytes(), second.bytes(), second.pdus()), (LEN, 2 * LEN + 2, 2));
    story.receive(Downlink, 5, &second);
    story.bearer.lost(Downlink, &first, &mut |p: TestPacket, r| story.dropped.push((p.id, r)));
    assert_eq!((story.ids(), story.dropped), (vec![1, 2], vec![(0, DropReason::Loss)]));
}

#[test]
fn what_waited_in_rlc_is_told_from_what_was_on_its_way() {
    for mode in [am(), um()] {
        let mut story = Story::new(mode, aqm::Config::UNLIMITED, None);
        story.enqueue(0, 2);
        let (first, second) = (story.build(Downlink, 1, 103), story.build(Downlink, 2, 103));
        // HARQ repeats the first block, and the second overtakes it.
        story.receive(Downlink, 6, &second);
        assert!(story.ids().is_empty());
        story.receive(Downlink, 9, &first);
        let decoded: Vec<_> = story.delivered.iter().map(|(id, times)| (*id, times.decoded)).collect();
        assert_eq!(decoded, [(0, None), (1, Some(at(6)))]);
    }
}
