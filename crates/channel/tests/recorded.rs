//! Recorded channels: what is read, and what is not.

use bolero::check;
use channel::Recorded;
use channel::recorded::{Quantity, RecordedError, RecordedFault};
use units::{Span, Time};

fn ms(n: u64) -> Time {
    Time::ZERO + Span::from_millis(n)
}

#[test]
fn a_value_holds_until_the_next_one() {
    let record = Recorded::parse("time_s,sinr_db\n0.5,10\n1,-3.5\n2.25,7e0\n").unwrap();
    assert_eq!((record.quantity(), record.samples(), record.end()), (Quantity::Sinr, 3, ms(2250)));
    // The first one holds before its time, too.
    assert_eq!(record.at(Time::ZERO), (Time::ZERO, 10.0, ms(1000)));
    assert_eq!(record.at(ms(500)), (Time::ZERO, 10.0, ms(1000)));
    assert_eq!(record.at(ms(999)), (Time::ZERO, 10.0, ms(1000)));
    assert_eq!(record.at(ms(1000)), (ms(1000), -3.5, ms(2250)));
    assert_eq!(record.at(ms(2250)), (ms(2250), 7.0, Time::MAX));
    assert_eq!(record.at(Time::MAX), (ms(2250), 7.0, Time::MAX));
}

#[test]
fn each_quantity_and_each_unit_of_time_is_read() {
    let record = Recorded::parse(" time_ms , cqi \r\n0, 0\r\n 40 ,15\r\n\r\n").unwrap();
    assert_eq!((record.quantity(), record.at(ms(39)).1, record.at(ms(40)).1), (Quantity::Cqi, 0.0, 15.0));
    let record = Recorded::parse("time_ms,rsrp_dbm\n0.25,-112.5").unwrap();
    assert_eq!((record.quantity(), record.at(ms(0)).1), (Quantity::Rsrp, -112.5));
    assert_eq!(record.end(), Time::from_nanos(250_000));
    assert_eq!(record.power_dbm(ms(0)), None);
    let record = Recorded::parse("time_s,rsrp_dbm,cqi\n1,-90,3\n2,-95.5,4\n").unwrap();
    assert_eq!(
        (record.quantity(), record.at(ms(0)), record.power_dbm(ms(0))),
        (Quantity::Cqi, (Time::ZERO, 3.0, ms(2000)), Some(-90.0))
    );
    assert_eq!((record.at(ms(2000)).1, record.power_dbm(ms(2000))), (4.0, Some(-95.5)));
}

#[test]
fn a_fault_names_its_line() {
    use RecordedFault::*;
    let cases: [(&[u8], usize, RecordedFault); 24] = [
        (b"", 1, Header),
        (b"\n", 1, Header),
        (b"0,10\n1,11\n", 1, Header),
        (b"time,sinr_db\n0,1\n", 1, Header),
        (b"time_s,snr\n0,1\n", 1, Header),
        (b"time_s,sinr_db,cqi\n0,1,1\n", 1, Header),
        (b"time_s,rsrp_dbm,rsrp_dbm\n0,1,1\n", 1, Header),
        (b"time_s,rsrp_dbm,cqi,sinr_db\n0,1,1,1\n", 1, Header),
        (b"time_s,rsrp_dbm,cqi\n0,-90\n", 2, Fields),
        (b"time_s,cqi,rsrp_dbm\n0,5,60\n", 2, BadValue(Quantity::Rsrp)),
        (b"time_s,cqi", 2, Empty),
        (b"time_s,cqi\n\n\n", 2, Empty),
        (b"time_s,cqi\n0,1\n1\n", 3, Fields),
        (b"time_s,cqi\n0,1\n\n2,3\n", 3, Fields),
        (b"time_s,cqi\n0,1,2\n", 2, Fields),
        (b"time_s,cqi\nx,1\n", 2, BadTime),
        (b"time_s,cqi\n-1,1\n", 2, BadTime),
        (b"time_s,cqi\nNaN,1\n", 2, BadTime),
        (b"time_s,cqi\n1e10,1\n", 2, BadTime),
        (b"time_s,cqi\n0,1\n0.0000000001,1\n", 3, NotLater),
        (b"time_s,cqi\n0,16\n", 2, BadValue(Quantity::Cqi)),
        (b"time_s,cqi\n0,1.5\n", 2, BadValue(Quantity::Cqi)),
        (b"time_s,sinr_db\n0,inf\n", 2, BadValue(Quantity::Sinr)),
        (b"time_s,rsrp_dbm\n0,\xff\n", 2, BadValue(Quantity::Rsrp)),
    ];
    for (text, line, what) in cases {
        let text_shown = String::from_utf8_lossy(text);
        assert_eq!(Recorded::parse(text), Err(RecordedError { line, what }), "{text_shown:?}");
    }
    let error = Recorded::parse("time_s,cqi\n0,16\n").unwrap_err();
    assert_eq!(error.to_string(), "line 2: the CQI must be a whole number from 0 to 15");
}

#[test]
fn any_bytes_are_a_record_or_a_fault() {
    check!().for_each(|bytes: &[u8]| {
        record_or_fault(bytes);
        // Random bytes are hardly ever a record: once more with a header, and with what numbers are made of.
        let digits = bytes.iter().map(|&byte| b"0123456789.-e, \n\n\n,,"[usize::from(byte % 20)]);
        record_or_fault(&b"time_ms,sinr_db\n".iter().copied().chain(digits).collect::<Vec<u8>>());
    });
}

fn record_or_fault(bytes: &[u8]) {
    let lines = bytes.split(|&byte| byte == b'\n').count();
    match Recorded::parse(bytes) {
        Err(error) => assert!((1..=lines.max(2)).contains(&error.line), "{error}"),
        Ok(record) => {
            assert!(record.samples() < lines);
            // Walking from value to value meets every sample once, in order, and ends.
            let (mut now, mut steps) = (Time::ZERO, 1);
            loop {
                let (_, value, next) = record.at(now);
                assert!(value.is_finite());
                if next == Time::MAX {
                    break;
                }
                assert!(next > now);
                (now, steps) = (next, steps + 1);
            }
            assert_eq!(steps, record.samples());
            assert!(now <= record.end());
        }
    }
}
