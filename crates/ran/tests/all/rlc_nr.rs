//! What a bearer of NR does, by hand-worked sizes and timelines: headers, segmentation, the repair of a gap, each timer,
//! the window, the limit, handovers and failure.

use std::collections::BTreeMap;

use aqm::{Completion, DropReason};
use channel::Direction::{self, Downlink, Uplink};
use ran::pdcp::{self, Keep, Nr, PdcpSn, Times};
use ran::rlc::{Am, AmSn, Bearer, Block, Config, Mode, NrAm, NrUm, UmSn};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use testkit::queue::TestPacket;
use units::{Span, Time};

/// The length of SDUs unless a test says otherwise, and what one takes with PDCP's 2, RLC's 2 and MAC's 2 bytes.
const LEN: u32 = 98;
const GRANT: u32 = LEN + 2 + 2 + 2;

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// Plays the part of the MAC; time is in milliseconds.
struct Story {
    bearer: Bearer<TestPacket>,
    sent: u64,
    delivered: Vec<(u64, Times)>,
    dropped: Vec<(u64, DropReason)>,
}

impl Story {
    fn new(mode: Mode) -> Story {
        let bearer = Bearer::new(&plain(mode));
        Story { bearer, sent: 0, delivered: Vec::new(), dropped: Vec::new() }
    }

    fn enqueue_len(&mut self, now: u64, sdus: u64, len: u32) {
        for _ in 0..sdus {
            let packet = TestPacket::new(self.sent, 0, len);
            self.bearer.enqueue(Downlink, packet, at(now), &mut |p: TestPacket, r| self.dropped.push((p.id, r)));
            self.sent += 1;
        }
    }

    fn enqueue(&mut self, now: u64, sdus: u64) {
        self.enqueue_len(now, sdus, LEN);
    }

    fn build(&mut self, way: Direction, now: u64, grant: u32) -> Block {
        let mut block = Block::default();
        self.bearer.build(way, grant, at(now), &mut block, &mut |p: TestPacket, r| self.dropped.push((p.id, r)));
        assert!(block.bytes() <= grant);
        block
    }

    fn receive(&mut self, way: Direction, now: u64, block: &Block) {
        let mut deliver = |_: Direction, p: TestPacket, times: Times| self.delivered.push((p.id, times));
        self.bearer.receive(way, block, at(now), &mut deliver, &mut |p: TestPacket, r| self.dropped.push((p.id, r)));
    }

    /// Sends a block of `grant` bytes that arrives at once; returns its bytes.
    fn pass(&mut self, way: Direction, now: u64, grant: u32) -> u32 {
        let block = self.build(way, now, grant);
        self.receive(way, now, &block);
        block.bytes()
    }

    /// Returns whether a timer had expired.
    fn time_out(&mut self, now: u64) -> bool {
        let due = self.bearer.poll_timeout().is_some_and(|due| due <= at(now));
        if due {
            let mut deliver = |_: Direction, p: TestPacket, times: Times| self.delivered.push((p.id, times));
            self.bearer.handle_timeout(at(now), &mut deliver, &mut |p: TestPacket, r| self.dropped.push((p.id, r)));
        }
        due
    }

    fn hand_over(&mut self, now: u64, to: Option<Mode>, keep: Keep) {
        let mut deliver = |_: Direction, p: TestPacket, times: Times| self.delivered.push((p.id, times));
        let mut drops = |p: TestPacket, r| self.dropped.push((p.id, r));
        match to {
            Some(mode) => {
                self.bearer.reconfigure(&plain(mode), keep, Keep::All, at(now), &mut deliver, &mut drops);
            }
            None => self.bearer.reestablish(keep, Keep::All, at(now), &mut deliver, &mut drops),
        }
    }

    fn ids(&self) -> Vec<u64> {
        self.delivered.iter().map(|&(id, _)| id).collect()
    }

    fn lost(&self, reason: DropReason) -> Vec<u64> {
        self.dropped.iter().filter(|&&(_, r)| r == reason).map(|&(id, _)| id).collect()
    }
}

fn plain(mode: Mode) -> Config {
    let pdcp = pdcp::Config::default();
    Config { mode, downlink: pdcp, uplink: pdcp }
}

/// SN lengths of 12 bits, no SDAP; PDCP waits for RLC.
fn am() -> NrAm {
    NrAm { t_reassembly: ms(30), pdcp: Nr { t_reordering: None, ..Nr::default() }, ..NrAm::default() }
}

fn um(t_reassembly: u64, t_reordering: u64) -> NrUm {
    let pdcp = Nr { t_reordering: Some(ms(t_reordering)), ..Nr::default() };
    NrUm { t_reassembly: ms(t_reassembly), pdcp, ..NrUm::default() }
}

/// 37.324 6.2.2.2: SDAP 1; 38.323 6.2.2.2, 6.2.2.3: PDCP 2 or 3; 38.322 6.2.2.3, 6.2.2.4: RLC UM 1, AM 2 or 3;
/// 38.321 6.1.2: MAC 2 below 256 bytes, otherwise 3.
#[test]
fn a_packet_costs_the_headers_of_four_layers() {
    let nr = |sn, sdap| Nr { sn, sdap, ..Nr::default() };
    let am = |sn, pdcp| Mode::NrAm(NrAm { sn, pdcp, ..NrAm::default() });
    let um = |sn, pdcp| Mode::NrUm(NrUm { sn, pdcp, ..NrUm::default() });
    let (short, long) = (nr(PdcpSn::Twelve, false), nr(PdcpSn::Eighteen, true));
    for (mode, headers) in [
        (am(AmSn::Eighteen, long), 1 + 3 + 3),
        (am(AmSn::Twelve, long), 1 + 3 + 2),
        (am(AmSn::Twelve, short), 2 + 2),
        (um(UmSn::Twelve, short), 2 + 1),
        (um(UmSn::Six, long), 1 + 3 + 1),
    ] {
        for (len, subheader) in [(1500, 3), (40, 2), (255 - headers, 2), (256 - headers, 3)] {
            let mut story = Story::new(mode);
            story.enqueue_len(0, 9, len);
            let block = story.build(Downlink, 0, 20_000);
            assert_eq!((block.bytes(), block.pdus()), (9 * (len + headers + subheader), 9), "{mode:?}");
            story.receive(Downlink, 0, &block);
            assert_eq!(story.ids(), (0..9).collect::<Vec<_>>());
        }
    }
}

#[test]
fn only_the_sdu_that_does_not_fit_is_segmented() {
    // SDUs of 100 bytes with PDCP. AM: 104, then 46: 42 of data behind 2 + 2; then 58 behind 2 + 2 + 2 of SO.
    // UM: 103, since a complete SDU has no SN, then 47: 43 of data behind 2 + 2; then 57 behind 2 + 2 + 2.
    for (mode, rest) in [(Mode::NrAm(am()), 58 + 6), (Mode::NrUm(um(30, 30)), 57 + 6)] {
        let mut story = Story::new(mode);
        story.enqueue(0, 2);
        for (now, size) in [(0, (150, 2)), (1, (rest, 1))] {
            let block = story.build(Downlink, now, 150);
            assert_eq!((block.bytes(), block.pdus()), size);
            story.receive(Downlink, now, &block);
        }
        assert_eq!(story.ids(), [0, 1]);
    }
}

#[test]
fn tiny_grants_carry_a_byte_at_a_time() {
    // AM: 2 of subheader and 2 of header, then 2 of SO; UM with an SN of 6 bits: one less.
    let um6 = Mode::NrUm(NrUm { sn: UmSn::Six, ..um(30, 30) });
    for (mode, headers) in [(Mode::NrAm(am()), 4), (Mode::NrUm(um(30, 30)), 4), (um6, 3)] {
        let mut story = Story::new(mode);
        story.enqueue_len(0, 1, 3);
        let mut used = Vec::new();
        for n in 0..20 {
            used.push((n, story.pass(Downlink, u64::from(n), n)));
        }
        used.retain(|&(_, bytes)| bytes > 0);
        let first = headers + 1;
        // The first byte, then as many as fit: 1, 2, and the last.
        assert_eq!(used, [(first, first), (first + 2, first + 2), (first + 3, first + 3), (first + 4, first + 2)]);
        assert_eq!(story.ids(), [0]);
    }
}

#[test]
fn a_status_repairs_a_gap() {
    let mut story = Story::new(Mode::NrAm(am()));
    story.enqueue(0, 10);
    let blocks: Vec<Block> = (0..3).map(|n| story.build(Downlink, n, 250)).collect();
    // SDUs 0 and 1 in 104 each, and 38 of SDU 2 in 42. Its other 62 in 68, SDU 3 in 104, and 74 of SDU 4 in 78. Its
    // other 26 in 32, SDUs 5 and 6, and 6 of SDU 7 in 10.
    let sizes: Vec<_> = blocks.iter().map(|block| (block.bytes(), block.pdus())).collect();
    assert_eq!(sizes, [(250, 3), (250, 3), (250, 4)]);
    story.receive(Downlink, 4, &blocks[0]);
    assert_eq!(story.ids(), [0, 1]);
    // The second block is lost, and the third starts t-Reassembly.
    story.receive(Downlink, 6, &blocks[2]);
    assert_eq!(story.bearer.poll_timeout(), Some(at(36)));
    assert_eq!(story.pass(Uplink, 10, 100), 0);
    assert!(story.time_out(36));
    // SDUs 2 to 4 are one NACK with offsets and a range.
    assert_eq!(story.bearer.backlog(Uplink, at(36)).status, 3 + 2 + 4 + 1);
    assert_eq!(story.pass(Uplink, 40, 100), 10 + 2);
    assert_eq!(story.bearer.backlog(Downlink, at(40)).retx, 62 + 100 + 74);
    // 62 in 68, and 48 of SDU 3 in 52.
    assert_eq!(story.pass(Downlink, 41, 120), 120);
    assert_eq!(story.ids(), [0, 1, 2]);
    assert_eq!(story.bearer.backlog(Downlink, at(41)).retx, 52 + 74);
    // The other 52 in 58, and the beginning of SDU 4 in 78; then 94 of SDU 7 in 100, and SDUs 8 and 9.
    assert_eq!(story.pass(Downlink, 42, 2000), 58 + 78 + 100 + 2 * 104);
    assert_eq!(story.ids(), (0..10).collect::<Vec<_>>());
    let stats = story.bearer.stats(Downlink);
    assert_eq!((stats.pdus, stats.retx_pdus, stats.retx_bytes, stats.statuses), (13, 4, 62 + 100 + 74, 1));
    let decoded: Vec<_> = story.delivered[2..8].iter().map(|(_, times)| times.decoded).collect();
    assert_eq!(decoded, [None, None, None, Some(at(6)), Some(at(6)), None]);
    // The last PDU polled, and t-StatusProhibit ends.
    assert_eq!(story.pass(Uplink, 49, 100), 0);
    assert_eq!(story.pass(Uplink, 50, 100), 5);
    assert_eq!((story.bearer.occupancy(Downlink), story.bearer.poll_timeout()), (0, None));
}

#[test]
fn polls_go_with_each_poll_pdu_and_poll_byte_and_the_last() {
    // Without STATUS PDUs, t-PollRetransmit runs from the last poll.
    let polls = |config: NrAm, sdus| {
        let mut story = Story::new(Mode::NrAm(config));
        story.enqueue(0, sdus);
        let mut polls = Vec::new();
        for now in 0..sdus {
            let before = story.bearer.poll_timeout();
            story.build(Downlink, now, GRANT);
            if story.bearer.poll_timeout() != before {
                polls.push(now);
            }
        }
        polls
    };
    assert_eq!(polls(am(), 7), [6]);
    assert_eq!(polls(NrAm { poll_pdu: Some(3), ..am() }, 8), [2, 5, 7]);
    assert_eq!(polls(NrAm { poll_byte: Some(250), ..am() }, 8), [2, 5, 7]);
    assert_eq!(polls(am(), 130), [63, 127, 129]);
}

#[test]
fn polls_inside_a_block_are_answered() {
    let mut story = Story::new(Mode::NrAm(NrAm { poll_pdu: Some(4), ..am() }));
    story.enqueue(0, 20);
    // Six SDUs: the fourth polls, and SDU 3 is acknowledged with all.
    assert_eq!(story.pass(Downlink, 0, 6 * GRANT), 6 * GRANT);
    assert_eq!(story.pass(Uplink, 1, 100), 5);
    assert_eq!(story.bearer.occupancy(Downlink), 14 * u64::from(LEN));
}

#[test]
fn a_poll_without_an_answer_retransmits_the_last_sdu_until_the_link_fails() {
    let mut story = Story::new(Mode::NrAm(NrAm { t_poll_retransmit: ms(20), ..am() }));
    story.enqueue(0, 2);
    let mut sent = Vec::new();
    for now in 0..200 {
        story.time_out(now);
        if story.bearer.failed().is_some() {
            // RETX_COUNT is 0 with the first retransmission, and 4 when the fifth is due.
            assert_eq!((now, sent), (101, vec![(0, 1), (1, 1), (21, 1), (41, 1), (61, 1), (81, 1)]));
            assert_eq!(story.bearer.failed(), Some(Downlink));
            story.hand_over(now, None, Keep::All);
            assert_eq!(story.bearer.failed(), None);
            assert_eq!(story.bearer.backlog(Downlink, at(now)).new, 200);
            return;
        }
        let block = story.build(Downlink, now, GRANT);
        if !block.is_empty() {
            sent.push((now, block.pdus()));
        }
    }
    panic!("the link did not fail");
}

#[test]
fn a_full_window_polls_stalls_and_holds_back() {
    for (sn, window) in [(AmSn::Twelve, 2048), (AmSn::Eighteen, 131_072)] {
        let (header, config) = (if sn == AmSn::Twelve { 2 } else { 3 }, NrAm { poll_pdu: None, sn, ..am() });
        let mut story = Story::new(Mode::NrAm(NrAm { poll_byte: None, ..config }));
        story.enqueue_len(0, window + 10, 8);
        // The first SDU is lost, and the last of the window is cut.
        let sdu = 10 + header + 2;
        let first = story.build(Downlink, 0, sdu);
        let bytes = (window as u32 - 1) * sdu - 1;
        assert_eq!(story.pass(Downlink, 1, bytes), bytes);
        let backlog = story.bearer.backlog(Downlink, at(1));
        assert_eq!((backlog.new, backlog.held_back), (1, 100));
        assert_eq!(story.pass(Downlink, 2, 1000), 1 + 2 + header + 2);
        let backlog = story.bearer.backlog(Downlink, at(2));
        assert!(backlog.is_empty() && backlog.held_back == 100);
        assert_eq!(story.pass(Downlink, 3, 1000), 0);
        assert_eq!((story.delivered.len(), story.bearer.occupancy(Downlink)), (0, 8 * (window + 10)));
        // The last PDU of the window polled: t-PollRetransmit runs; t-Reassembly ends first.
        assert!(story.time_out(31));
        // 3 bytes, one NACK of 2 or 3; ACK_SN follows the SDU that started the timer, and what was complete behind it.
        assert_eq!(story.pass(Uplink, 32, 100), 3 + header + 2);
        assert_eq!(story.bearer.occupancy(Downlink), 8 * 11);
        assert_eq!(story.bearer.backlog(Downlink, at(32)).retx, 10);
        assert_eq!(story.pass(Downlink, 33, sdu), sdu);
        assert_eq!(story.delivered.len() as u64, window);
        story.receive(Downlink, 33, &first);
        // The window polled again, and moves on.
        assert_eq!(story.pass(Uplink, 50, 100), 5);
        assert_eq!(story.pass(Downlink, 51, 1000), 10 * sdu);
        assert_eq!(story.pass(Uplink, 61, 100), 5);
        assert!(story.ids().into_iter().eq(0..window + 10));
        assert_eq!((story.bearer.occupancy(Downlink), story.bearer.poll_timeout()), (0, None));
    }
}

#[test]
fn a_retransmission_of_more_gaps_than_a_block_holds_takes_several() {
    let mut story = Story::new(Mode::NrAm(am()));
    story.enqueue(0, 60);
    let blocks: Vec<Block> = (0..60).map(|_| story.build(Downlink, 0, GRANT)).collect();
    blocks.iter().skip(1).step_by(2).for_each(|block| story.receive(Downlink, 1, block));
    assert!(story.time_out(31) && story.time_out(61));
    assert_eq!(story.pass(Uplink, 62, 1000), 3 + 30 * 2 + 2);
    let pdus: Vec<usize> = (0..4)
        .map(|n| {
            let block = story.build(Downlink, 63 + n, 100_000);
            story.receive(Downlink, 63 + n, &block);
            block.pdus()
        })
        .collect();
    assert_eq!(pdus, [12, 12, 6, 0]);
    assert!(story.ids().into_iter().eq(0..60));
}

#[test]
fn a_grant_for_what_is_announced_empties_the_buffers() {
    for (mode, len) in [(Mode::NrAm(am()), 40), (Mode::NrAm(am()), 1400), (Mode::NrUm(um(30, 30)), 40)] {
        let mut story = Story::new(mode);
        story.enqueue_len(0, 50, len);
        story.pass(Downlink, 0, 3 * len);
        let backlog = story.bearer.backlog(Downlink, at(1));
        let block = story.build(Downlink, 1, backlog.with_headers() as u32);
        assert!(story.bearer.backlog(Downlink, at(1)).is_empty());
        // At most a byte in each subheader and the header of a segment too much.
        assert!(u64::from(block.bytes()) + block.pdus() as u64 + 3 >= backlog.with_headers());
    }
}

#[test]
fn pdcp_gives_up_when_t_reordering_ends() {
    let mut story = Story::new(Mode::NrUm(um(20, 50)));
    story.enqueue(0, 6);
    let blocks: Vec<Block> = (0..6).map(|n| story.build(Downlink, n, GRANT - 1)).collect();
    for (now, n) in [(0, 0), (10, 2), (20, 4)] {
        story.receive(Downlink, now, &blocks[n]);
    }
    assert_eq!((story.ids(), story.bearer.in_transit(Downlink)), (vec![0], 5));
    assert_eq!(story.bearer.poll_timeout(), Some(at(60)), "complete SDUs of UM have no timer in RLC");
    assert!(story.time_out(60));
    // RX_REORD is 3: SDU 3 has until the timer expires again.
    assert_eq!((story.ids(), story.lost(DropReason::Loss)), (vec![0, 2], vec![1]));
    assert_eq!(story.bearer.poll_timeout(), Some(at(110)));
    story.receive(Downlink, 70, &blocks[1]);
    story.receive(Downlink, 80, &blocks[3]);
    assert_eq!(story.ids(), [0, 2, 3, 4], "SDU 1 is too late");
    assert_eq!(story.bearer.poll_timeout(), None);
    story.receive(Downlink, 90, &blocks[5]);
    assert_eq!((story.ids(), story.bearer.in_transit(Downlink)), (vec![0, 2, 3, 4, 5], 0));
}

#[test]
fn am_retransmits_what_pdcp_has_given_up() {
    let mut story = Story::new(Mode::NrAm(NrAm { pdcp: Nr { t_reordering: Some(ms(5)), ..am().pdcp }, ..am() }));
    story.enqueue(0, 3);
    let blocks: Vec<Block> = (0..3).map(|n| story.build(Downlink, n, GRANT)).collect();
    story.receive(Downlink, 3, &blocks[1]);
    assert!(story.time_out(8));
    assert_eq!((story.ids(), story.lost(DropReason::Loss)), (vec![1], vec![0]));
    story.receive(Downlink, 9, &blocks[2]);
    assert!(story.time_out(33));
    assert_eq!(story.pass(Uplink, 34, 100), 3 + 2 + 2);
    assert_eq!(story.pass(Downlink, 35, 500), GRANT);
    assert_eq!((story.ids(), story.dropped.len()), (vec![1, 2], 1));
    assert_eq!(story.pass(Uplink, 44, 100), 5);
    assert_eq!((story.bearer.occupancy(Downlink), story.bearer.in_transit(Downlink)), (0, 0));
}

#[test]
fn a_limit_counts_what_waits_and_what_is_not_acknowledged() {
    let limit = [Some(10 * u64::from(LEN)), None];
    let limited = |mut pdcp: Nr| {
        pdcp.limit = limit;
        pdcp
    };
    let mut story = Story::new(Mode::NrAm(NrAm { pdcp: limited(am().pdcp), ..am() }));
    story.enqueue(0, 12);
    assert_eq!(story.lost(DropReason::Overflow), [10, 11]);
    story.pass(Downlink, 1, 4 * GRANT);
    assert_eq!(story.bearer.occupancy(Downlink), 10 * u64::from(LEN), "nothing is acknowledged");
    assert_eq!(story.bearer.held(Downlink, Completion::Sent).bytes, 6 * u64::from(LEN));
    story.pass(Downlink, 2, 6 * GRANT);
    story.enqueue(2, 1);
    assert_eq!(story.lost(DropReason::Overflow), [10, 11, 12]);
    story.pass(Uplink, 3, 100);
    assert_eq!(story.bearer.occupancy(Downlink), 0);
    story.enqueue(4, 10);
    assert_eq!(story.dropped.len(), 3);

    let mut story = Story::new(Mode::NrUm(NrUm { pdcp: limited(Nr::default()), ..um(30, 30) }));
    story.enqueue(0, 12);
    story.pass(Downlink, 1, 4 * (GRANT - 1));
    assert_eq!(story.bearer.occupancy(Downlink), 6 * u64::from(LEN));
}

/// Ten SDUs in blocks of their own, of which `lost` do not arrive, and ten that wait.
fn before_a_handover(mode: Mode, lost: &[usize]) -> (Story, Vec<Block>) {
    let mut story = Story::new(mode);
    story.enqueue(0, 20);
    let blocks: Vec<Block> = (0..10).map(|now| story.build(Downlink, now, GRANT)).collect();
    for (n, block) in blocks.iter().enumerate().filter(|(n, _)| !lost.contains(n)) {
        story.receive(Downlink, 10 + n as u64, block);
    }
    (story, blocks)
}

#[test]
fn a_lossless_handover_sends_again_what_the_receiver_lacks_and_nothing_else() {
    let lte = Mode::Am(Am::default());
    let nr = Mode::NrAm(am());
    let other = Mode::NrAm(NrAm { sn: AmSn::Eighteen, pdcp: Nr { sdap: true, ..am().pdcp }, ..am() });
    for (from, to) in [(nr, None), (nr, Some(other)), (nr, Some(lte)), (lte, Some(nr))] {
        let (mut story, blocks) = before_a_handover(from, &[2, 5]);
        assert_eq!(story.ids(), [0, 1]);
        story.hand_over(30, to, Keep::All);
        assert_eq!(story.ids(), [0, 1], "what arrived behind a hole waits for it");
        assert_eq!(story.bearer.poll_timeout(), None, "t-Reordering starts again with the next SDU out of order");
        let header = u64::from(if to == Some(other) { 3 } else { 2u32 });
        assert_eq!(story.bearer.backlog(Downlink, at(30)).new, 12 * (u64::from(LEN) + header));
        assert_eq!(story.bearer.occupancy(Downlink), 12 * u64::from(LEN));
        for block in &blocks {
            story.receive(Downlink, 31, block);
        }
        assert_eq!(story.ids(), [0, 1], "blocks from before are void");
        let in_transit = story.bearer.in_transit(Downlink);
        assert_eq!(in_transit, 8);
        story.pass(Downlink, 31, GRANT + 3);
        assert_eq!(story.ids(), [0, 1, 2, 3, 4]);
        story.pass(Downlink, 32, 2000);
        assert_eq!(story.ids(), (0..20).collect::<Vec<_>>());
        assert!(story.dropped.is_empty());
    }
}

#[test]
fn sdus_that_wait_for_others_survive_several_handovers() {
    let (nr, lte) = (Mode::NrAm(am()), Mode::Am(Am::default()));
    let (mut story, _) = before_a_handover(nr, &[1, 2, 5]);
    for (n, to) in [Some(lte), None, Some(nr), None, Some(lte), Some(nr)].into_iter().enumerate() {
        story.hand_over(30 + n as u64, to, Keep::All);
        assert_eq!((story.ids(), story.bearer.in_transit(Downlink)), (vec![0], 9));
    }
    // SDU 1 is lost; 2 arrives, and 5 behind it.
    story.build(Downlink, 40, GRANT);
    story.pass(Downlink, 41, 2 * GRANT);
    assert_eq!(story.ids(), [0]);
    story.hand_over(42, Some(lte), Keep::All);
    story.pass(Downlink, 43, GRANT);
    assert_eq!(story.ids(), (0..10).collect::<Vec<_>>());
}

#[test]
fn a_handover_that_keeps_the_queue_loses_what_was_on_its_way() {
    let (nr, lte) = (Mode::NrAm(am()), Mode::Am(Am::default()));
    for (from, to, keep) in [
        (nr, None, Keep::Queue),
        (nr, Some(lte), Keep::Queue),
        (lte, Some(nr), Keep::Queue),
        (nr, Some(Mode::NrUm(um(30, 30))), Keep::All),
        (Mode::NrUm(um(30, 100)), Some(nr), Keep::All),
        (Mode::NrUm(um(30, 100)), None, Keep::All),
    ] {
        let (mut story, _) = before_a_handover(from, &[2, 5]);
        story.hand_over(30, to, keep);
        let held: Vec<u64> = story.ids();
        assert_eq!(held, [0, 1, 3, 4, 6, 7, 8, 9], "what is whole is delivered: {from:?}, {to:?}");
        assert_eq!(story.lost(DropReason::Loss), [2, 5]);
        story.pass(Downlink, 31, 2000);
        assert_eq!(story.delivered.len(), 18);
    }
}

#[test]
fn a_handover_without_forwarding_loses_the_queue() {
    let (mut story, _) = before_a_handover(Mode::NrAm(am()), &[9]);
    story.hand_over(30, None, Keep::Nothing);
    assert_eq!(story.lost(DropReason::Loss), (9..20).collect::<Vec<_>>());
    assert!(story.bearer.backlog(Downlink, at(30)).is_empty());
    assert_eq!((story.bearer.poll_timeout(), story.bearer.occupancy(Downlink)), (None, 0));
}

#[test]
fn a_handover_to_another_discipline_keeps_the_queue() {
    let mut story = Story::new(Mode::NrAm(am()));
    story.enqueue(5, 10);
    let codel = pdcp::Config { queue: aqm::Config::Codel(aqm::codel::Config::default()), discard: None };
    let config = Config { mode: Mode::Am(Am::default()), downlink: codel, uplink: codel };
    let mut none = |_: TestPacket, _| panic!("nothing is dropped");
    story.bearer.reconfigure(&config, Keep::All, Keep::All, at(9), &mut |_, _, _| {}, &mut none);
    story.pass(Downlink, 10, 2000);
    assert_eq!(story.ids(), (0..10).collect::<Vec<_>>());
}

#[test]
fn an_sdu_that_waited_too_long_is_discarded() {
    let pdcp = pdcp::Config { discard: Some(ms(50)), ..pdcp::Config::default() };
    let bearer = Bearer::new(&Config { mode: Mode::NrAm(am()), downlink: pdcp, uplink: pdcp });
    let mut story = Story { bearer, ..Story::new(Mode::Tm) };
    story.enqueue(0, 3);
    story.pass(Downlink, 1, 60);
    assert!(story.time_out(50));
    assert_eq!(story.lost(DropReason::Control), [1, 2], "SDU 0 is partly sent");
    story.pass(Downlink, 70, 500);
    assert_eq!(story.delivered, [(0, Times { first_sent: at(1), last_sent: at(70), decoded: None })]);
}

#[test]
fn sdus_that_expire_leave_nobody_without_a_poll() {
    let pdcp = pdcp::Config { discard: Some(ms(50)), ..pdcp::Config::default() };
    let bearer = Bearer::new(&Config { mode: Mode::NrAm(am()), downlink: pdcp, uplink: pdcp });
    let mut story = Story { bearer, ..Story::new(Mode::Tm) };
    story.enqueue(0, 2);
    assert_eq!(story.pass(Downlink, 1, GRANT), GRANT);
    // SDU 1, which would have carried the poll, is discarded when it would be sent.
    assert_eq!(story.pass(Downlink, 60, GRANT), 0);
    assert_eq!(story.lost(DropReason::Control), [1]);
    assert_eq!(story.pass(Downlink, 61, GRANT), GRANT);
    assert_eq!(story.pass(Uplink, 62, 100), 5);
    assert_eq!(story.bearer.occupancy(Downlink), 0);
}

/// Slots of 125 us for five seconds with random grants, SDUs, losses of HARQ, handovers to random configurations and
/// outages. Returns the delivered and the lost SDUs.
fn ordeal(seed: u64, configs: &[Mode], handovers: bool) -> (Story, u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut dice = move |below: u64| (random.next_u64() >> 11) % below;
    let slot = |n: u64| Time::from_nanos(n * 125_000);
    let mut story = Story::new(configs[0]);
    let mut air: BTreeMap<(u64, u64), (Direction, Block)> = BTreeMap::new();
    let (mut max_bytes, mut sdu, mut loss, mut built) = (14_000, 1500, 1, 0);
    let (end, rest) = (40_000, 48_000);
    for now in 0..rest {
        if now % 500 == 0 {
            max_bytes = [20, 300, 1600, 14_000, 60_000][dice(5) as usize];
            sdu = [40, 300, 1500, 9000][dice(4) as usize];
            // Per cent of blocks that HARQ abandons: nearly none, some, an outage.
            loss = if now + 2000 > end { 0 } else { [0, 1, 10, 50, 100][dice(5) as usize] };
        }
        if now + 2000 > end {
            (max_bytes, loss) = (60_000, 0);
        }
        while story.bearer.poll_timeout().is_some_and(|due| due <= slot(now)) {
            let due = story.bearer.poll_timeout();
            let mut deliver = |_: Direction, p: TestPacket, times: Times| story.delivered.push((p.id, times));
            let mut drops = |p: TestPacket, r| story.dropped.push((p.id, r));
            story.bearer.handle_timeout(slot(now), &mut deliver, &mut drops);
            assert_ne!((story.bearer.poll_timeout(), due), (due, None), "a timer that does not go off");
            assert!(story.bearer.poll_timeout().is_none_or(|due| due > slot(now)));
        }
        while let Some(entry) = air.first_entry().filter(|entry| entry.key().0 <= now) {
            let (way, block) = entry.remove();
            let mut deliver = |_: Direction, p: TestPacket, times: Times| story.delivered.push((p.id, times));
            let mut drops = |p: TestPacket, r| story.dropped.push((p.id, r));
            story.bearer.receive(way, &block, slot(now), &mut deliver, &mut drops);
        }
        if handovers && now < end && dice(2000) == 0 {
            let to = configs[dice(configs.len() as u64) as usize];
            let mut deliver = |_: Direction, p: TestPacket, times: Times| story.delivered.push((p.id, times));
            let mut drops = |p: TestPacket, r| story.dropped.push((p.id, r));
            story.bearer.reconfigure(&plain(to), Keep::All, Keep::All, slot(now), &mut deliver, &mut drops);
        }
        while now < end && story.bearer.queue(Downlink).bytes < 2 * max_bytes {
            let len = 1 + dice(sdu) as u32;
            let packet = TestPacket::new(story.sent, 0, len);
            story.bearer.enqueue(Downlink, packet, slot(now), &mut |_, _| panic!("there is no limit"));
            story.sent += 1;
        }
        for way in [Downlink, Uplink] {
            let grant = 1 + dice(if way == Downlink { max_bytes } else { 200 }) as u32;
            let mut block = Block::default();
            story.bearer.build(way, grant, slot(now), &mut block, &mut |_, _| panic!("nothing is dropped"));
            assert!(block.bytes() <= grant);
            if block.is_empty() || dice(100) < loss {
                continue;
            }
            // One retransmission in ten, after 2 ms each.
            let again = (0..3).find(|_| dice(10) > 0).unwrap_or(3);
            built += 1;
            air.insert((now + 4 + 16 * again, built), (way, block));
        }
        let inside = story.bearer.in_transit(Downlink) as u64 + story.bearer.queue(Downlink).packets;
        assert_eq!(story.sent, story.delivered.len() as u64 + story.dropped.len() as u64 + inside);
    }
    assert!(story.delivered.is_sorted_by(|a, b| a.0 < b.0), "out of order or twice");
    (story, built)
}

#[test]
fn am_survives_an_ordeal() {
    let poll = |t: u64| Span::from_micros(t);
    let am = NrAm { max_retx: u32::MAX, ..am() };
    let eighteen = NrAm {
        sn: AmSn::Eighteen,
        t_poll_retransmit: poll(5000),
        t_reassembly: poll(2000),
        t_status_prohibit: Span::ZERO,
        pdcp: Nr { sdap: true, sn: PdcpSn::Eighteen, ..am.pdcp },
        ..am
    };
    let lte = Mode::Am(Am { max_retx: u32::MAX, ..Am::default() });
    let configs = [Mode::NrAm(am), Mode::NrAm(eighteen), lte];
    for seed in 0..6 {
        let handovers = seed >= 2;
        let configs = if handovers { &configs[..] } else { &configs[seed as usize..=seed as usize] };
        let (story, _) = ordeal(seed, configs, handovers);
        assert!(story.sent > 50_000, "{} SDUs", story.sent);
        assert_eq!((story.delivered.len() as u64, story.dropped.len()), (story.sent, 0));
        assert_eq!((story.bearer.occupancy(Downlink), story.bearer.in_transit(Downlink)), (0, 0));
        assert_eq!(story.bearer.poll_timeout(), None);
    }
}

#[test]
fn um_and_an_impatient_pdcp_keep_order_in_an_ordeal() {
    let um = |sn, t| Mode::NrUm(NrUm { sn, ..um(10, t) });
    let impatient = NrAm { max_retx: u32::MAX, pdcp: Nr { t_reordering: Some(ms(20)), ..Nr::default() }, ..am() };
    let configs = [um(UmSn::Six, 20), um(UmSn::Twelve, 0), Mode::NrAm(impatient), Mode::Um(Default::default())];
    for seed in 0..6 {
        let handovers = seed >= 3;
        let configs = if handovers { &configs[..] } else { &configs[seed as usize..=seed as usize] };
        let (story, _) = ordeal(10 + seed, configs, handovers);
        let lost = story.sent - story.delivered.len() as u64;
        // A third of the blocks is lost in the mean, and AM repairs some of it in time.
        assert!(lost > story.sent / 100 && lost < story.sent / 4 * 3, "{lost} of {} SDUs", story.sent);
    }
}
