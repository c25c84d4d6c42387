//! Length indicators: the ends of several SDUs in a PDU (36.322 6.2.1.3 to 6.2.1.5, 6.2.2.5).

use crate::pdcp::Concatenation;

/// Length indicators of 12 bits.
pub(crate) struct LengthIndicators;

impl Concatenation for LengthIndicators {
    /// An odd number of indicators has four bits of padding.
    #[inline]
    fn overhead(elements: u32) -> u32 {
        (3 * elements).div_ceil(2)
    }

    /// 6.2.2.5: the maximum length of an element that a length indicator can describe; a longer one is the last.
    const LONGEST: u64 = 2047;
}

/// Returns how many bytes of the elements that end at `ends` (ascending, the last may exceed `limit`) a PDU takes
/// starting at `start`, if data and length indicators have `room` bytes; and the number of length indicators.
pub(crate) fn fit(start: u64, limit: u64, room: u32, ends: impl Iterator<Item = u64>) -> (u32, u32) {
    let (mut at, mut elements) = (start, 0);
    for end in ends {
        let end = end.min(limit);
        let free = u64::from(room.saturating_sub(LengthIndicators::overhead(elements)));
        let used = at - start;
        if free <= used || at == limit {
            break;
        }
        let take = (end - at).min(free - used);
        at += take;
        elements += 1;
        if at < end || take > LengthIndicators::LONGEST {
            break;
        }
    }
    ((at - start) as u32, elements.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use channel::Direction;
    use testkit::queue::TestPacket;
    use units::Time;

    use super::*;
    use crate::pdcp::{Config, HEADER, Sdus};

    fn sdus(lengths: &[u32]) -> Sdus<TestPacket> {
        let mut sdus = Sdus::new(Direction::Downlink, &Config::default(), HEADER);
        for (id, len) in (0..).zip(lengths) {
            sdus.enqueue(TestPacket::new(id, 0, len - HEADER), Time::ZERO, &mut |_, _| panic!("there is room"));
        }
        sdus
    }

    fn map(sdus: &mut Sdus<TestPacket>, room: u32) -> (u32, u32) {
        let mapped = sdus.map::<LengthIndicators>(room, Time::ZERO, &mut |_, _| panic!("there is room"), |_| {});
        (mapped.len, mapped.borders)
    }

    #[test]
    fn a_second_element_needs_two_bytes_and_one_of_its_own() {
        for (room, mapped) in [(99, (99, 0)), (102, (100, 0)), (103, (101, 1)), (203, (200, 1)), (204, (201, 2))] {
            assert_eq!(map(&mut sdus(&[100, 100, 100]), room), mapped, "{room} bytes");
            let ends = [100, 200, 300].into_iter();
            assert_eq!(fit(0, 300, room, ends), mapped, "{room} bytes, sent again");
        }
    }

    #[test]
    fn an_element_longer_than_a_length_indicator_says_is_the_last() {
        let mut long = sdus(&[100, 2047, 2048, 100, 100]);
        assert_eq!(map(&mut long, 9000), (100 + 2047 + 2048, 2));
        assert_eq!(map(&mut long, 9000), (200, 1));
        assert_eq!(map(&mut long, 9000), (0, 0));
    }

    #[test]
    fn what_is_sent_again_ends_where_its_pdu_ended() {
        let ends = [100, 200, 300];
        assert_eq!(fit(50, 250, 1000, ends.into_iter()), (200, 2));
        assert_eq!(fit(50, 200, 1000, ends.into_iter()), (150, 1));
        assert_eq!(fit(50, 100, 1000, ends.into_iter()), (50, 0));
        assert_eq!(fit(50, 250, 0, ends.into_iter()), (0, 0));
    }
}
