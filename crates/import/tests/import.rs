//! What others' files become, what is wrong with them, and that anything may be in them.

use std::time::Duration;

use bolero::check;
use channel::Recorded;
use channel::recorded::Quantity;
use import::buildings::{Block, Layout, Map, geojson};
use import::channel::{Channel, Ns3, Omnet, ns3, omnet};
use import::texture::USUAL;
use import::{Columns, Covers, Error, Noted, Unit, capture, mahimahi, rates};
use link::trace::Trace;
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};

fn rate(text: &str) -> Result<Trace, Error> {
    rates(text.as_bytes(), &Columns::default(), 0.0, None).map(|read| read.value)
}

fn fault<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_table_of_rates_becomes_as_many_opportunities_as_it_carries() {
    // 12 Mbit/s are an opportunity a millisecond, 6 Mbit/s one in two; the last line holds as long as the one before.
    let trace = rate("time_s,dl_mbps\n100.0,12\n100.5,0\n101,6\n").unwrap();
    assert_eq!(trace.opportunities(), 500 + 250);
}

#[test]
fn rates_come_in_the_units_that_their_column_names() {
    let wanted = rate("time_s,mbps\n0,12\n1,12\n").unwrap();
    assert_eq!((wanted.opportunities(), wanted.times()[..3].to_vec()), (2_000, vec![1, 2, 3]));
    for text in [
        "t_ms;kbit/s\n0;12000\n1000;12000\n",
        "timestamp_us\tx_bps\n5000000\t12e6\n6000000\t12e6\n",
        "# a comment\nTime,Throughput (Mbps)\n7, 12\n8, 12\n",
        "time_s,bytes\n0,0\n1,1500000\n2,1500000\n",
    ] {
        assert!(rate(text).unwrap() == wanted, "{text}");
    }
    let columns = Columns {
        time: Some("1".into()),
        rate: Some("b".into()),
        unit: Some(Unit::MBPS),
        seconds: Some(1e-3),
        covers: None,
        texture: None,
        ..Columns::default()
    };
    assert_eq!(rates(&b"a,b,c_mbps\n0,12,1\n1000,12,1\n"[..], &columns, 0.0, None).unwrap().value, wanted);
}

#[test]
fn a_part_of_a_recording_begins_at_zero() {
    let text = "time_s,mbps\n0,6\n10,12\n20,24\n30,24\n";
    let part = rates(text.as_bytes(), &Columns::default(), 10.0, Some(5.0)).unwrap().value;
    assert!(part == rate("time_s,mbps\n0,12\n2.5,12\n").unwrap(), "{}", part.opportunities());
    let part = mahimahi(&b"0\n500\n1000\n1500\n9000\n"[..], 0.5, Some(1.0)).unwrap();
    // The opportunity at 500 ms is the last one of the part before.
    assert_eq!(part.to_string(), "500\n1000\n");
}

#[test]
fn each_fault_of_a_table_says_where_it_is_and_what_would_be_valid() {
    for (text, wanted) in [
        (
            "a,b\n1,2\n",
            "no column has a name for a time with a known unit; select one of `a`, `b` with --time, and its unit with --time-unit \
             (s, ms, us or ns)",
        ),
        (
            "time,mb/s\n1,2\n",
            "no column has a name with a known unit of a rate; select one of `time`, `mb/s` with --rate, and its unit with --unit \
             (bps, kbps, Mbps, Gbps, B/s, kB/s, MB/s, KiB/s or MiB/s for a rate; bytes, kB, MB, KiB, MiB, kbit or Mbit for an amount)",
        ),
        (
            "time,dl_mbps,ul_mbps\n",
            "several columns may be the rate: select one with --rate; choose one of dl_mbps, ul_mbps",
        ),
        (
            "time_s,time_ms,mbps\n",
            "several columns may be the time: select one with --time; choose one of time_s, time_ms",
        ),
        ("time,mbps\n0,1\n1,fast\n", "line 3: the rate `fast` is not a number"),
        ("time,mbps\n0,1\n1\n", "line 3: has no column 2"),
        ("time,mbps\n0,-2\n", "line 2: the rate -2 must be from 0 to 10 Tbit/s"),
        ("time_s,mbps\n0,1\n5,1\n4,1\n", "line 4: is earlier than the previous line: times must not decrease"),
        ("time_s,mbps\n0,1\n-5,1\n", "line 3: is earlier than the first line"),
        ("time_s,mbps\n0,1\n5e6,1\n", "line 3: is more than 49 days after the first line"),
        ("time,mbps\n", "no lines after the header"),
        ("time,mbps\n0,nan\n1,-\n", "all its rows lack the time or the rate"),
        (
            "time_s,mbps\n0,0\n9,0\n",
            "the rates let no packet of 1500 bytes pass in that time: the trace would be empty",
        ),
        ("time_s,mbps\n0,1e7\n99,1\n", "more than 45 GB of data: import a shorter part with --begin and --length"),
        ("time,bytes\n0,1\n0,1e300\n", "more than 45 GB of data: import a shorter part with --begin and --length"),
        ("time_s,bytes\n0,1\n", "has one row only: what it covers began at a previous one"),
        (
            "time,rx_bytes_total\n0,5\n1,3\n",
            "line 3: the sum since the start is less than in the previous line: the counter began anew; import the parts singly",
        ),
        (
            "2020.02.14_09.38.22,1\n5,1\n",
            "the file has no header: select the column of rates by number, such as --rate 2 --unit mbps",
        ),
        ("time,mbps\n2020.02.14_09.38.22,1\n5,1\n", "line 3: a column has either numbers or dates for times"),
        (
            "time,mbps\n14.02.2020 09:38,1\n",
            "line 2: the time `14.02.2020 09:38` is neither a number, nor a date such as 2024-01-30T01:00:00Z or 2024.01.30_01.00.00",
        ),
    ] {
        assert_eq!(fault(rate(text)), wanted, "{text:?}");
    }
    let after = rates(&b"time_s,mbps\n0,12\n1,12\n"[..], &Columns::default(), 2.0, None);
    assert_eq!(fault(after), "nothing is behind --begin: the recording ends after 2.000 s");
}

#[test]
fn a_silence_at_the_end_is_in_the_trace() {
    let trace = rate("time_s,mbps\n0,12\n1,12\n2,0\n3,0\n4,0\n5,0\n").unwrap();
    assert_eq!((trace.period().as_millis(), trace.opportunities()), (6_000, 2_000));
    let text: String = (0..5_000).chain([20_000]).map(|ms| format!("{ms}\n")).collect();
    let part = mahimahi(text.as_bytes(), 0.0, Some(10.0)).unwrap();
    assert_eq!((part.period().as_millis(), part.opportunities()), (10_000, 5_000));
    // A recording that ends before the part does is no longer for it.
    assert_eq!(mahimahi(text.as_bytes(), 10.0, Some(60.0)).unwrap().to_string(), "10000\n");
}

#[test]
fn neighbouring_parts_share_no_opportunity() {
    let text: String = (0..=60).map(|n| format!("{}\n", n * 100)).collect();
    let whole = mahimahi(text.as_bytes(), 0.0, None).unwrap();
    let of = |begin, length| mahimahi(text.as_bytes(), begin, Some(length)).unwrap();
    for length in [0.1_f64, 0.3, 0.7, 3.0] {
        let parts = (6.0 / length).round() as u32;
        let count: usize = (0..parts).map(|n| of(f64::from(n) * length, length).opportunities()).sum();
        let covered = (f64::from(parts) * length * 10.0).round() as usize;
        assert_eq!(count, 1 + covered.min(60), "parts of {length} s of {}", whole.opportunities());
    }
}

#[test]
fn a_unit_that_is_not_recognised_is_an_error_that_names_the_valid_ones() {
    let time_unit = |column: &str| {
        format!("the unit of the times in column `{column}` is unknown: set it with --time-unit (s, ms, us or ns)")
    };
    for (text, column) in
        [("time,mbps\n0,12\n1000,12\n2000,12\n", "time"), ("time (ticks),mbps\n0,12\n1,12\n", "time (ticks)")]
    {
        let columns = Columns { time: Some("1".into()), ..Columns::default() };
        assert_eq!(fault(rates(text.as_bytes(), &columns, 0.0, None)), time_unit(column), "{text}");
    }
    let late = fault(rate("timestamp_s,mbps\n1700000000000,12\n1700000001000,12\n"));
    assert_eq!(
        late,
        "line 2: the time 1700000000000 is in the year 2099 or later by the unit of its name: set --time-unit (s, ms, us or ns)"
    );
    for name in ["DL_bitrate", "rate [mb/s]", "throughput_bytes", "linkbps", "packets"] {
        let columns = Columns { rate: Some("2".into()), ..Columns::default() };
        let error = fault(rates(format!("time_s,{name}\n0,1\n1,1\n").as_bytes(), &columns, 0.0, None));
        let wanted = format!("the unit of column `{name}` is unknown: set it with --unit (bps, kbps, Mbps, ");
        assert!(error.starts_with(&wanted), "{error}");
    }
}

#[test]
fn times_are_numbers_dates_or_seconds_since_1970_and_what_was_assumed_is_said() {
    let wanted = rate("time_s,mbps\n0,12\n1,12\n2,12\n").unwrap();
    let smooth = |step: &str| {
        let what = "the trace is smooth within that time, which no cell is: short queues and delays are those of a constant rate (a texture makes it vary at random)";
        format!("the rows are {step} s apart: {what}")
    };
    for (text, notes) in [
        ("Time (ms),Mbps\n0,12\n1000,12\n2000,12\n", &[][..]),
        ("TIME_MS,Mbps\n0,12\n1000,12\n2000,12\n", &[]),
        ("timestamp_ms_utc,Mbps\n0,12\n1000,12\n2000,12\n", &[]),
        ("time (\u{b5}s),Mbps\n0,12\n1000000,12\n2000000,12\n", &[]),
        (
            "timestamp,mbps\n1700000000000,12\n1700000001000,12\n1700000002000,12\n",
            &["the times in column `timestamp` are ms since 1970, by their size"],
        ),
        (
            "timestamp,mbps\n1700000000,12\n1700000001,12\n1700000002,12\n",
            &["the times in column `timestamp` are s since 1970, by their size"],
        ),
        ("Timestamp,mbps\n2024-01-30T23:59:59Z,12\n2024-01-31T00:00:00Z,12\n2024-01-31T00:00:01Z,12\n", &[]),
        ("Timestamp,mbps\n2020.02.28_23.59.59,12\n2020.02.29_00.00.00,12\n2020.02.29_00.00.01,12\n", &[]),
        ("t,mbps\n7,12\n8,12\n9,12\n", &["the times in column `t` are assumed to be in seconds (--time-unit)"]),
        ("time_s,mbps\n0,12\n1,-\n1,12\n2,12\n2,\n", &["2 rows without a time or a rate are left out"]),
        // Each of four rows in three seconds counts the same.
        (
            "time_s,mbps\n0,6\n0,18\n1,12\n2,12\n",
            &[
                "1 rows have the time of another, in whole seconds: all rows are spread evenly, which moves them by up to 0.8 s",
            ],
        ),
        (
            "t_s,mbps\n0,6\n1,18\n0,12\n2,12\n",
            &[
                "1 rows are up to 2 s earlier than the previous one, and have its time",
                "1 rows have the time of another, in whole seconds: all rows are spread evenly, which moves them by up to 0.5 s",
            ],
        ),
    ] {
        let read = rates(text.as_bytes(), &Columns::default(), 0.0, None).unwrap();
        let spread = notes.last().is_some_and(|note| note.contains("spread"));
        let smooth = smooth(if spread { "0.75" } else { "1" });
        assert_eq!(read.notes, [notes, &[smooth.as_str()]].concat(), "{text}");
        assert_eq!(read.value.opportunities(), wanted.opportunities(), "{text}");
        assert_eq!(read.value.period(), wanted.period(), "{text}");
    }
    // Where times are not whole seconds of a logger, the last row of a time holds.
    let steps = rates(&b"time_s,mbps\n0,12\n10,99\n10,12\n20,12\n"[..], &Columns::default(), 0.0, Some(20.0)).unwrap();
    assert_eq!(
        (steps.value.opportunities(), steps.notes[0].as_str()),
        (20_000, "1 rows have the time of the next, and last for no time")
    );
    let gap = rates(&b"t_s,mbps\n0,12\n1,12\n2,12\n60,12\n61,12\n"[..], &Columns::default(), 0.0, None).unwrap();
    assert_eq!(
        gap.notes[0],
        "1 long gaps between rows, the longest of 58 s at 2 s: the value before it holds for all of it"
    );
}

#[test]
fn a_texture_varies_within_rows_and_keeps_what_each_carries() {
    let rows = [24.0, 6.0, 60.0, 0.0, 12.0, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0];
    let mut text = "time_s,mbps\n".to_owned();
    for (second, mbps) in rows.iter().enumerate() {
        text += &format!("{second},{mbps}\n");
    }
    let of = |texture| rates(text.as_bytes(), &Columns { texture, ..Columns::default() }, 0.0, None).unwrap();
    let (steady, varied) = (of(None), of(Some(USUAL)));
    assert!(steady.notes[0].contains("smooth within that time"), "{:?}", steady.notes);
    assert!(varied.notes[0].contains("at random, which was not recorded"), "{:?}", varied.notes);
    let (steady, varied) = (steady.value, varied.value);
    assert_eq!((varied.period(), of(Some(USUAL)).value), (steady.period(), varied.clone()));
    let within = |trace: &Trace, from: u32, to: u32| {
        trace.times().iter().filter(|&&time| from < time && time <= to).count() as f64
    };
    for (second, mbps) in (0..).zip(&rows[..11]) {
        let passed = within(&varied, 1000 * second, 1000 * (second + 1));
        assert!((passed - mbps * 1e6 / 12_000.0).abs() <= 1.0, "second {second}: {passed} opportunities");
    }
    // The coefficient of variation of 20 ms within seconds: that of mahimahi's LTE recordings is 0.34 to 0.65.
    let variation = |trace: &Trace| {
        let parts: Vec<f64> = (250..550).map(|n| within(trace, 20 * n, 20 * n + 20)).collect();
        let mean = parts.iter().sum::<f64>() / parts.len() as f64;
        (parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / parts.len() as f64).sqrt() / mean
    };
    assert!(variation(&steady) < 0.01, "{}", variation(&steady));
    assert!((0.34..0.65).contains(&variation(&varied)), "{}", variation(&varied));
}

#[test]
fn a_file_without_a_header_is_data_from_its_first_line_on() {
    let numbered = |time: &str, rate: &str, unit| Columns {
        time: Some(time.into()),
        rate: Some(rate.into()),
        unit: Some(unit),
        ..Columns::default()
    };
    for text in [
        "0,120\n1,12\n2,12\n3,12\n",
        "0 120\n1 12\n2 12\n3 12\n",
        "  0.0   120\n  1.0    12\n  2.0    12\n  3.0    12\n",
        "0\t120\n1\t12\n2\t12\n3\t12\n",
        "0;120\n1;12\n2;12\n3;12\n",
        "# seconds, Mbit/s\n0,120\n1,12\n2,12\n3,12\n",
        "0,120,LTE\n1,12,LTE\n2,12,LTE\n3,12,-\n",
        "2020.02.14_09.38.22 120\n2020.02.14_09.38.23 12\n2020.02.14_09.38.24 12\n2020.02.14_09.38.25 12\n",
    ] {
        let read = rates(text.as_bytes(), &numbered("1", "2", Unit::MBPS), 0.0, None).unwrap();
        assert_eq!((read.value.period().as_millis(), read.value.mean_rate().as_mbps()), (4_000, 39.0), "{text}");
        assert_eq!(read.notes[0], "the file has no header: its first line is data", "{text}");
    }
    // A header may have numbers for names; they come before numbers of columns.
    let read = rates(&b"time,1,2\n0,12,6\n1,12,6\n"[..], &numbered("time", "2", Unit::MBPS), 0.0, None).unwrap();
    assert_eq!((read.value.period().as_millis(), read.value.mean_rate().as_mbps()), (2_000, 6.0));
    assert_eq!(
        fault(rate("0,120,1\n1,12,1\n")),
        "the file has no header: select columns by number, such as --time 1 --rate 2 --unit mbps"
    );
    let error = fault(rates(&b"0 120\n1 12\n"[..], &numbered("1", "3", Unit::MBPS), 0.0, None));
    assert_eq!(error, "no column `3`: the file has no header; columns have the numbers 1 to 2");
}

#[test]
fn amounts_cover_the_time_since_the_previous_row_until_the_next_or_since_the_start() {
    // 1.5 MB in the first second, in the ten that follow, and in each of two more.
    let text = "ms,bytes\n0,0\n1000,1500000\n11000,1500000\n12000,1500000\n13000,1500000\n";
    let of = |text: &str, covers| rates(text.as_bytes(), &Columns { covers, ..Columns::default() }, 0.0, None).unwrap();
    let by = |trace: &Trace| -> Vec<usize> {
        [0, 1_000, 11_000, 13_000, 14_000]
            .windows(2)
            .map(|two| trace.times().iter().filter(|&&ms| two[0] < ms && ms <= two[1]).count())
            .collect()
    };
    let read = of(text, None);
    assert_eq!((by(&read.value), read.value.period().as_millis()), (vec![1_000, 1_000, 2_000, 0], 13_000));
    assert!(read.notes[0].starts_with("the amounts in column `bytes` are assumed to have come since the previous row"));
    assert_eq!(of(text, Some(Covers::SincePrevious)).value, read.value);
    let next = of(text, Some(Covers::UntilNext)).value;
    assert_eq!((by(&next), next.period().as_millis()), (vec![0, 1_000, 2_000, 1_000], 14_000));
    let sums = "ms,rx_bytes_total\n0,70\n1000,1500070\n11000,3000070\n12000,4500070\n13000,6000070\n";
    assert_eq!(of(sums, None).value, read.value);
    assert!(
        of(sums, None).notes[0]
            .starts_with("the amounts in column `rx_bytes_total` are assumed to be sums since the start")
    );
    // A counter that its name does not tell.
    let sent = sums.replace("rx_bytes_total", "Sent Bytes");
    let error = fault(rate(&sent));
    assert!(error.starts_with("the values of column `Sent Bytes` only grow: say whether they are sums"), "{error}");
    assert_eq!(of(&sent, Some(Covers::SinceStart)).value, read.value);
    // A rate may be that of the time before, too.
    let rates_before = "time_s,mbps\n0,0\n1,12\n11,1.2\n13,12\n";
    assert_eq!(of(rates_before, Some(Covers::SincePrevious)).value, read.value);
}

/// An IPv4 UDP packet of `len` bytes between two ports, captured as far as its headers.
fn udp(from: (u8, u16), to: (u8, u16), len: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend(len.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from.0, 10, 0, 0, to.0]);
    packet.extend(from.1.to_be_bytes());
    packet.extend(to.1.to_be_bytes());
    packet.extend((len - 20).to_be_bytes());
    packet.extend([0, 0]);
    packet
}

fn captured(link: DataLink, packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let header = PcapHeader { datalink: link, ..PcapHeader::default() };
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    for (ms, data) in packets {
        writer.write_packet(&PcapPacket::new(Duration::from_millis(1_000_000 + ms), 1_500, data)).unwrap();
    }
    writer.into_writer()
}

#[test]
fn a_captures_flow_becomes_the_opportunities_at_which_it_was_delivered() {
    let mut packets: Vec<(u64, Vec<u8>)> = (0..100).map(|i| (i * 10, udp((1, 80), (2, 5000), 1_500))).collect();
    packets.extend((0..100).map(|i| (i * 10 + 1, udp((2, 5000), (1, 80), 40))));
    packets.extend((0..30).map(|i| (i * 10 + 5, udp((3, 53), (2, 6000), 500))));
    packets.sort_by_key(|&(at, _)| at);
    let ethernet = |packet: &[u8]| [&[0; 12][..], &[8, 0], packet].concat();
    let sll = |packet: &[u8]| [&[0; 14][..], &[8, 0], packet].concat();
    for (link, frames) in [
        (DataLink::RAW, packets.clone()),
        (DataLink::ETHERNET, packets.iter().map(|(at, data)| (*at, ethernet(data))).collect()),
        (DataLink::LINUX_SLL, packets.iter().map(|(at, data)| (*at, sll(data))).collect()),
    ] {
        let capture = capture::read(&captured(link, &frames)[..]).unwrap();
        let flows: Vec<String> =
            capture.flows().iter().map(|one| format!("{} {} {}", one.flow, one.packets, one.bytes)).collect();
        let wanted = [
            "udp 10.0.0.1:80 > 10.0.0.2:5000 100 150000",
            "udp 10.0.0.3:53 > 10.0.0.2:6000 30 15000",
            "udp 10.0.0.2:5000 > 10.0.0.1:80 100 4000",
        ];
        assert_eq!(flows, wanted, "{link:?}");
        let of = |which: &capture::Which| capture.trace(which, 0.0, None).map(|read| read.value);
        let flow = capture::Which { flow: Some("udp 10.0.0.1:80 > 10.0.0.2:5000".into()), ..Default::default() };
        let trace = of(&flow).unwrap();
        assert_eq!(
            (trace.opportunities(), &trace.times()[..3], trace.period().as_millis()),
            (100, &[0, 10, 20][..], 990)
        );
        let all = capture::Which { to: Some([10, 0, 0, 2].into()), ..Default::default() };
        assert_eq!(of(&all).unwrap().opportunities(), 110, "and a third of the smaller ones");
        assert!(fault(of(&capture::Which::default())).starts_with(
            "several flows in the capture: select one with --flow, or --from and --to; choose one of `udp 10.0.0.1:80 > 10.0.0.2:5000`"
        ));
        let none = capture::Which { from: Some([9, 9, 9, 9].into()), ..Default::default() };
        assert!(fault(of(&none)).starts_with("no packet matches"));
    }
    let left_out =
        capture::read(&captured(DataLink::RAW, &[(0, vec![0xff; 40]), (1, udp((1, 1), (2, 2), 100))])[..]).unwrap();
    assert_eq!(left_out.notes, ["1 frames have no IP packet and are left out (not IP 1)"]);
    assert_eq!(fault(capture::read(&captured(DataLink::RAW, &[])[..])), "contains no IP packet");
    assert_eq!(fault(capture::read(&b"\xd4"[..])), "not a capture: too short");
}

const NS3: &str = "% time\tcellId\tIMSI\tRNTI\trsrp\tsinr\tComponentCarrierId
0.000214\t1\t1\t0\t0\t0\t0
0.1\t1\t1\t1\t1e-12\t10\t0
0.1002\t1\t1\t1\t1e-12\t10\t0
0.2\t1\t1\t1\t1e-13\t1\t0
0.2\t1\t2\t2\t1e-10\t100\t0
";

#[test]
fn an_ns_3_log_becomes_the_channel_of_one_ue() {
    let one = Ns3 { imsi: Some(1), ..Ns3::default() };
    let Noted { value: channel, notes } = ns3(NS3.as_bytes(), &one).unwrap();
    assert_eq!(
        notes,
        [
            "1 rows have no SINR or power (0 or less, as before a UE is scheduled) and are left out",
            "1 values are of the same millisecond as another, and averaged"
        ]
    );
    let powers = Some(vec![-90.0, -100.0]);
    assert_eq!(channel, Channel { quantity: Quantity::Sinr, samples: vec![(0.1, 10.0), (0.2, 0.0)], powers });
    assert_eq!(channel.to_csv(), "time_s,sinr_db,rsrp_dbm\n0.100,10.000,-90.000\n0.200,0.000,-100.000\n");
    // 1e-12 W are -90 dBm.
    let power = ns3(NS3.as_bytes(), &Ns3 { rsrp: true, ..one }).unwrap().value;
    assert_eq!(power.to_csv(), "time_s,rsrp_dbm\n0.100,-90.000\n0.200,-100.000\n");
    let uplink = "% time\tcellId\tIMSI\tRNTI\tsinrLinear\tcomponentCarrierId\n0.5\t1\t1\t1\t1000\t0\n";
    assert!(fault(ns3(uplink.as_bytes(), &Ns3::default())).starts_with("it has the SINR or CQI of the uplink"));
    assert_eq!(
        fault(ns3(NS3.as_bytes(), &Ns3::default())),
        "several UEs or cells in the log; choose one of --imsi 1 --cell 1, --imsi 2 --cell 1"
    );
    assert_eq!(fault(ns3(NS3.as_bytes(), &Ns3 { cell: Some(9), ..Ns3::default() })), "no line matches the UE and cell");
    assert!(fault(ns3(&b"a\tb\n"[..], &Ns3::default())).starts_with("line 1: the first line has no column `time`"));
    assert!(
        fault(ns3(NS3.replace("\t10\t", "\tx\t").as_bytes(), &Ns3 { imsi: Some(1), ..Ns3::default() }))
            .starts_with("line 3: the value is not a number")
    );
    assert!(fault(ns3(NS3.as_bytes(), &Ns3 { rnti: Some(1), ..Ns3::default() })).contains("select a UE with --imsi"));
}

#[test]
fn carriers_of_an_ns_3_log_are_not_averaged() {
    let rows = |head: &str, carriers: [&str; 2]| {
        let row = |(n, carrier): (usize, &str)| format!("0.1\t1\t1\t{carrier}\t{}\n", 20 - 10 * n);
        let rows: String = carriers.into_iter().enumerate().map(row).collect();
        format!("Time\tCellId\tRNTI\t{head}\tSINR(dB)\n{rows}")
    };
    for head in ["BWPId", "bwpId", "ccId", "cc_id", "ComponentCarrierId", "carrier"] {
        let two = rows(head, ["0", "1"]);
        assert_eq!(
            fault(ns3(two.as_bytes(), &Ns3::default())),
            "several component carriers or bandwidth parts in the log, each of which is a channel; choose one of \
             --rnti 1 --cell 1 --carrier 0, --rnti 1 --cell 1 --carrier 1"
        );
        let one = Ns3 { carrier: Some("1".into()), ..Ns3::default() };
        assert_eq!(ns3(two.as_bytes(), &one).unwrap().value.samples, [(0.1, 10.0)]);
        let none = Ns3 { carrier: Some("7".into()), ..Ns3::default() };
        let wanted = "no line of the UE and cell is of the carrier `7`; choose one of 0, 1";
        assert_eq!(fault(ns3(two.as_bytes(), &none)), wanted);
        let same = ns3(rows(head, ["0", "0"]).as_bytes(), &Ns3::default()).unwrap();
        assert_eq!(same.value.samples, [(0.1, 15.0)]);
        assert_eq!(same.notes[1], "1 values are of the same millisecond as another, and averaged");
    }
    let none = Ns3 { carrier: Some("1".into()), ..Ns3::default() };
    let error = fault(ns3(&b"Time\tCellId\tRNTI\tSINR(dB)\n0\t1\t1\t3\n"[..], &none));
    assert!(error.starts_with("--carrier: the log has no column"), "{error}");
}

#[test]
fn rows_of_the_uplink_are_counted_and_other_directions_refused() {
    let log = |ways: [&str; 3]| {
        let rows: String = ways.iter().map(|way| format!("{way}\t0.1\t1\t1\t3\n")).collect();
        format!("direction\tTime\tCellId\tRNTI\tSINR(dB)\n{rows}")
    };
    let read = |ways| ns3(log(ways).as_bytes(), &Ns3::default());
    assert_eq!(read(["DL", "UL", "UL"]).unwrap().notes, ["2 rows are of the uplink and left out"]);
    assert!(fault(read(["UL", "UL", "UL"])).starts_with("it has the SINR or CQI of the uplink"));
    assert_eq!(fault(read(["DL", "2", "UL"])), "line 3: the direction `2` is neither DL nor UL");
}

/// The heads are those that 5G-LENA's `NrPhyRxTrace` and ns3-mmwave's `MmWavePhyTrace` write.
#[test]
fn logs_of_5g_lena_and_ns3_mmwave_become_the_channel_of_one_ue() {
    let sinr = "Time\tCellId\tRNTI\tBWPId\tSINR(dB)\n0.278214\t1\t1\t0\t52.1445\n0.278214\t1\t2\t0\t32.7601\n0.28\t1\t1\t0\t-3.5\n";
    let of = |text: &str, which: &Ns3| ns3(text.as_bytes(), which).unwrap().value.samples;
    let one = Ns3 { rnti: Some(1), ..Ns3::default() };
    assert_eq!(of(sinr, &one), [(0.278, 52.1445), (0.28, -3.5)]);
    assert_eq!(
        fault(ns3(sinr.as_bytes(), &Ns3::default())),
        "several UEs or cells in the log; choose one of --rnti 1 --cell 1, --rnti 2 --cell 1"
    );
    assert!(fault(ns3(sinr.as_bytes(), &Ns3 { imsi: Some(1), ..Ns3::default() })).contains("select a UE with --rnti"));
    assert!(fault(ns3(sinr.as_bytes(), &Ns3 { rsrp: true, ..one.clone() })).contains("no column `rsrp`"));
    // The SINR of the uplink is the base station's.
    let lena = "Time\tdirection\tframe\tsubF\tslot\t1stSym\tnSymbol\tcellId\tbwpId\tstreamId\trnti\ttbSize\tmcs\trv\tSINR(dB)\tCQI\tcorrupt\tTBler
0.4\tDL\t40\t0\t0\t1\t12\t2\t0\t0\t1\t1256\t28\t0\t25.5\t15\t0\t0
0.401\tUL\t40\t1\t0\t1\t12\t2\t0\t0\t1\t1256\t28\t0\t-9\t15\t0\t0
";
    assert_eq!(of(lena, &Ns3::default()), [(0.4, 25.5)]);
    let mmwave =
        "DL/UL\ttime\tframe\tsubF\tslot\t1stSym\tsymbol#\tcellId\trnti\tccId\ttbSize\tmcs\trv\tSINR(dB)\tcorrupt\tTBler
UL\t0.3001\t30\t0\t1\t1\t1\t1\t1\t0\t40\t0\t0\t7\t0\t0
DL\t0.3002\t30\t0\t1\t1\t22\t1\t1\t0\t3000\t28\t0\t31.25\t0\t0
";
    assert_eq!(of(mmwave, &one), [(0.3, 31.25)]);
}

const OMNET: &str = "run,type,module,name,attrname,attrvalue,value,vectime,vecvalue
General-0,runattr,,,network,Cells,,,
General-0,vector,Cells.ue[0].cellularNic.channelModel,measuredSinrDl:vector,,,,\"0.01 0.02 0.03\",\"10.5 11 -2\"
General-0,vector,Cells.ue[1].cellularNic.channelModel,measuredSinrDl:vector,,,,0.01,7
General-0,vector,Cells.ue[0].cellularNic.phy,averageCqiDl:vector,,,,0.01 0.02,7 9
General-0,vector,Cells.ue[0].app[0],throughput:vector,,,,1 2,7 9
";

#[test]
fn an_omnet_vector_becomes_a_channel() {
    let of = |module: &str, vector: &str| {
        omnet(OMNET.as_bytes(), &Omnet { module: Some(module.into()), vector: Some(vector.into()), run: None })
    };
    let sinr = of("ue[0]", "measuredSinrDl").unwrap().value;
    assert_eq!(sinr.to_csv(), "time_s,sinr_db\n0.010,10.500\n0.020,11.000\n0.030,-2.000\n");
    assert_eq!(of("ue[0]", "averageCqiDl:vector").unwrap().value.to_csv(), "time_s,cqi\n0.010,7\n0.020,9\n");
    let all = fault(omnet(OMNET.as_bytes(), &Omnet::default()));
    assert!(all.starts_with("several vectors match; choose one of --run General-0 --module Cells.ue[0].cellularNic.channelModel --vector measuredSinrDl,"), "{all}");
    assert!(!all.contains("throughput"), "{all}");
    assert_eq!(fault(of("ue[7]", "measuredSinrDl")), "contains no matching vector of SINR, CQI or RSRP");
    let short = OMNET.replace("10.5 11 -2", "10.5 11");
    let which = Omnet { module: Some("ue[0]".into()), vector: Some("measuredSinrDl".into()), run: None };
    assert_eq!(fault(omnet(short.as_bytes(), &which)), "line 3: has 3 times and 2 values");
    assert!(fault(omnet(&b"a,b\n"[..], &which)).contains("opp_scavetool export -F CSV-R"));
}

#[test]
fn vectors_of_the_uplink_and_of_other_units_are_refused() {
    let export = |names: &[&str], unit: &str| {
        let rows: String = names
            .iter()
            .map(|name| {
                format!("r,vector,N.ue[0],{name}:vector,,,,0 1,5 6\nr,attr,N.ue[0],{name}:vector,unit,{unit},,,\n")
            })
            .collect();
        format!("run,type,module,name,attrname,attrvalue,value,vectime,vecvalue\n{rows}")
    };
    let read = |names: &[&str], unit: &str, vector: Option<&str>| {
        let which = Omnet { vector: vector.map(str::to_owned), ..Omnet::default() };
        omnet(export(names, unit).as_bytes(), &which)
    };
    for name in ["measuredSinrUl", "averageCqiUl", "rcvdSinrUl"] {
        for vector in [None, Some(name)] {
            let error = fault(read(&[name], "dB", vector));
            assert!(error.starts_with(&format!("{name}: it has the SINR or CQI of the uplink")), "{error}");
        }
    }
    assert!(fault(read(&["rcvdSinrD2D"], "dB", None)).contains("it is of a sidelink"));
    let both = read(&["measuredSinrUl", "measuredSinrDl"], "dB", None).unwrap();
    assert_eq!(both.notes, ["1 vectors of the uplink or of sidelinks are left out"]);
    assert!(read(&["measuredSinrDl"], "dB", None).unwrap().notes.is_empty());
    assert_eq!(
        fault(read(&["measuredSinrDl"], "linear", None)),
        "measuredSinrDl: its unit is `linear`, and must be dB"
    );
    assert_eq!(
        read(&["snir"], "", None).unwrap().notes,
        [
            "snir: the export names no unit: its values are assumed to be an SINR in dB",
            "snir: its name has no direction: it is assumed to be of the downlink"
        ]
    );
}

const LAYOUT: Layout = Layout { origin: None, rotate_deg: 0.0, height_m: 10.0 };

/// A map of these features: properties, and the corners of a polygon.
fn map(features: &[(&str, &str)], layout: &Layout) -> Result<Map, Error> {
    let feature = |(properties, ring): &(&str, &str)| {
        format!(
            r#"{{"type":"Feature","properties":{properties},"geometry":{{"type":"Polygon","coordinates":[[{ring}]]}}}}"#
        )
    };
    let all: Vec<String> = features.iter().map(feature).collect();
    geojson(format!(r#"{{"type":"FeatureCollection","features":[{}]}}"#, all.join(",")).as_bytes(), layout)
}

#[test]
fn a_map_becomes_boxes_in_metres() {
    // On the equator, a thousandth of a degree is 111.320 m east and 110.574 m north (WGS 84).
    let square = "[0,0],[0.001,0],[0.001,0.001],[0,0.001],[0,0]";
    let one = map(&[("{}", square)], &LAYOUT).unwrap();
    let Block { x, y, height } = one.blocks[0];
    assert_eq!((height, one.without_height, one.origin), (10.0, 1, [0.0005, 0.0005]));
    assert!((x[1] - 111.320 / 2.0).abs() < 1e-2 && (y[1] - 110.574 / 2.0).abs() < 1e-2, "{x:?} {y:?}");
    assert!((x[0] + x[1]).abs() < 1e-9 && (one.filled - 1.0).abs() < 1e-9);
    // At 60 degrees, 55.800 m east and 111.412 m north.
    let helsinki = "[24,60],[24.001,60],[24.001,60.001],[24,60.001],[24,60]";
    let there = map(&[("{}", helsinki)], &Layout { origin: Some([60.0, 24.0]), ..LAYOUT }).unwrap().blocks[0];
    assert!((there.x[1] - 55.800).abs() < 1e-2 && (there.y[1] - 111.412).abs() < 1e-2, "{there:?}");
    assert!(there.x[0].abs() < 1e-9 && there.y[0].abs() < 1e-9);
    // A diamond fills half of its box, and all of it when it is turned by 45 degrees.
    let diamond = "[0.001,0],[0,0.00100675],[-0.001,0],[0,-0.00100675],[0.001,0]";
    let filled = |rotate_deg| map(&[("{}", diamond)], &Layout { rotate_deg, ..LAYOUT }).unwrap().filled;
    assert!((filled(0.0) - 0.5).abs() < 1e-6 && (filled(45.0) - 1.0).abs() < 1e-4);
    let east = map(
        &[("{}", "[0,0],[0.001,0],[0.001,0.0001],[0,0]")],
        &Layout { origin: Some([0.0; 2]), rotate_deg: 90.0, ..LAYOUT },
    );
    assert!((east.unwrap().blocks[0].y[1] - 111.320).abs() < 1e-2, "east becomes north");
}

#[test]
fn a_map_across_the_antimeridian_is_one_map() {
    let houses = ["[179.999,0],[180,0],[180,0.001],[179.999,0]", "[-180,0],[-179.999,0],[-179.999,0.001],[-180,0]"];
    let across = ["[179.9995,0],[-179.9995,0],[-179.9995,0.001],[179.9995,0]"];
    let sides = |rings: &[&str], origin| {
        let features: Vec<(&str, &str)> = rings.iter().map(|ring| ("{}", *ring)).collect();
        let map = map(&features, &Layout { origin, ..LAYOUT }).unwrap();
        (map.blocks.iter().map(|block| block.x.map(f64::round)).collect::<Vec<_>>(), map.origin[1].abs())
    };
    assert_eq!(sides(&houses, None), (vec![[-111.0, 0.0], [0.0, 111.0]], 180.0));
    assert_eq!(sides(&across, None), (vec![[-56.0, 56.0]], 180.0));
    assert_eq!(sides(&houses, Some([0.0, -179.999])), (vec![[-223.0, -111.0], [-111.0, 0.0]], 179.999));
}

#[test]
fn heights_and_buildings_are_those_that_the_map_marks() {
    let at = |n: u32| format!("[0,{n}e-3],[1e-4,{n}e-3],[1e-4,{n}.1e-3],[0,{n}.1e-3],[0,{n}e-3]");
    let places: Vec<String> = (0..7).map(at).collect();
    let properties = [
        r#"{"building":"yes","height":"12.5 m"}"#,
        r#"{"building":"yes","height":7}"#,
        r#"{"building":"yes","building:levels":"4"}"#,
        r#"{"tags":{"building":"house","height":"3"}}"#,
        r#"{"building":"yes","height":"tall"}"#,
        r#"{"building":"no","height":"8"}"#,
        r#"{"leisure":"park"}"#,
    ];
    let features: Vec<(&str, &str)> = properties.into_iter().zip(places.iter().map(String::as_str)).collect();
    let map = map(&features, &LAYOUT).unwrap();
    let heights: Vec<f64> = map.blocks.iter().map(|block| block.height).collect();
    assert_eq!((heights, map.without_height), (vec![12.5, 7.0, 12.0, 3.0, 10.0], 1));
    let toml = map.to_toml();
    assert!(toml.starts_with("[radio]\nbuildings = [\n  { x = [-5.57, 5.57], y = ["), "{toml}");
}

#[test]
fn each_fault_of_a_map_says_what_would_be_valid() {
    let of = |text: &str| fault(geojson(text.as_bytes(), &LAYOUT));
    for (text, wanted) in [
        ("", "not GeoJSON: "),
        ("{\"type\":\"Topology\"}", "not GeoJSON: "),
        ("[1,2]", "not GeoJSON: "),
        (r#"{"type":"Point","coordinates":[1,2]}"#, "contains no buildings: expected features with polygons"),
        (r#"{"type":"Polygon","coordinates":[]}"#, "contains no buildings"),
        (r#"{"type":"Polygon","coordinates":[[[0,0],[0,0],[0,0],[0,0]]]}"#, "contains no buildings"),
        (
            r#"{"type":"Polygon","coordinates":[[[385000,6672000],[385100,6672000],[385100,6672100],[385000,6672000]]]}"#,
            "(385000, 6672000) is not a longitude and a latitude",
        ),
    ] {
        assert!(of(text).contains(wanted), "{text}: {}", of(text));
    }
    let square = "[0,0],[0.001,0],[0.001,0.001],[0,0.001],[0,0]";
    let far = map(&[("{}", square)], &Layout { origin: Some([2.0, 0.0]), ..LAYOUT });
    assert!(fault(far).contains("221 km from the origin: check --origin"));
    let wide = map(&[("{}", square), ("{}", "[0,4],[0.001,4],[0.001,4.001],[0,4]")], &LAYOUT);
    assert!(fault(wide).contains("221 km from the middle of the map: import a smaller area"));
    let many: Vec<(&str, &str)> = vec![("{}", square); 10_001];
    assert!(fault(map(&many, &LAYOUT)).contains("more than 10000 buildings"));
}

fn sound_map(map: Result<Map, Error>) {
    match map {
        Ok(map) => {
            assert!(map.blocks.iter().all(|b| b.x[0] < b.x[1] && b.y[0] < b.y[1] && b.height > 0.0), "{map:?}");
            assert!((-1e-9..=1.0 + 1e-6).contains(&map.filled), "{map:?}");
        }
        Err(error) => assert!(error.to_string().len() < 4_000, "{error}"),
    }
}

/// What must hold of anything that was imported.
fn sound_trace(trace: Result<Trace, Error>) {
    match trace {
        Ok(trace) => assert_eq!(Trace::parse(trace.to_string()).unwrap(), trace),
        Err(error) => assert!(error.to_string().len() < 4_000, "{error}"),
    }
}

fn sound_channel(channel: Result<Noted<Channel>, Error>) {
    match channel {
        Ok(Noted { value: channel, .. }) => {
            assert_eq!(Recorded::parse(channel.to_csv()).unwrap().samples(), channel.samples.len());
        }
        Err(error) => assert!(error.to_string().len() < 4_000, "{error}"),
    }
}

#[test]
fn any_bytes_are_imported_or_a_fault() {
    check!().for_each(|bytes: &[u8]| {
        // Without a bound a single number would be 45 GB of opportunities; these have a test of their own.
        let part = Some(0.001);
        let table = |bytes: &[u8], columns: &Columns| rates(bytes, columns, 0.0, part).map(|read| read.value);
        sound_trace(table(bytes, &Columns::default()));
        let columns = Columns {
            time: Some("1".into()),
            rate: Some("2".into()),
            unit: Some(Unit::KBPS),
            seconds: Some(1.0),
            covers: None,
            texture: Some(1.5),
            ..Columns::default()
        };
        sound_trace(table(bytes, &columns));
        sound_trace(table(bytes, &Columns { unit: Some(Unit::BYTES), covers: Some(Covers::SinceStart), ..columns }));
        sound_trace(mahimahi(bytes, 0.0, None));
        sound_channel(ns3(bytes, &Ns3::default()));
        sound_channel(omnet(bytes, &Omnet::default()));
        // Random bytes are hardly ever a file: once more behind what such files begin with.
        let behind = |head: &str| [head.as_bytes(), bytes].concat();
        sound_trace(table(&behind("time_s,kbps\n0,8\n"), &Columns::default()));
        sound_trace(table(&behind("time bytes\n0 8\n"), &Columns::default()));
        sound_channel(ns3(&behind(NS3)[..], &Ns3 { imsi: Some(1), ..Ns3::default() }));
        sound_channel(omnet(&behind(OMNET)[..], &Omnet { module: Some("ue[1]".into()), ..Omnet::default() }));
        sound_map(geojson(bytes, &LAYOUT));
        let ring = bytes.chunks_exact(2).map(|at| format!("[{}e-4,{}e-4]", at[0], at[1])).collect::<Vec<_>>().join(",");
        sound_map(map(&[("{}", &ring)], &LAYOUT));
        any_capture(bytes);
        let link = if bytes.len().is_multiple_of(2) { DataLink::RAW } else { DataLink::ETHERNET };
        any_capture(&captured(link, &[(0, bytes.to_vec()), (5, udp((1, 1), (2, 2), 1_500))]));
    });
}

fn any_capture(bytes: &[u8]) {
    match capture::read(bytes) {
        Ok(capture) => {
            let to = capture.flows()[0].flow.to.ip();
            let trace = |which: &capture::Which| capture.trace(which, 0.0, None).map(|read| read.value);
            sound_trace(trace(&capture::Which { to: Some(to), ..Default::default() }));
            sound_trace(trace(&capture::Which::default()));
        }
        Err(error) => assert!(error.to_string().len() < 4_000, "{error}"),
    }
}

#[test]
fn a_cell_of_an_ns_3_log_is_not_held_over_while_another_one_serves() {
    let row = |at: u32, cell: u32, sinr: u32| format!("{}\t{cell}\t1\t1\t1e-12\t{sinr}\t0\n", f64::from(at) / 10.0);
    let of = |served: &[u32], which: &Ns3| {
        let rows: String = served.iter().enumerate().map(|(at, cell)| row(at as u32, *cell, 10)).collect();
        let head = NS3.lines().next().unwrap();
        ns3(format!("{head}\n{rows}").as_bytes(), which).unwrap()
    };
    let first = Ns3 { imsi: Some(1), cell: Some(1), ..Ns3::default() };
    let read = of(&[1, 1, 2, 2, 3, 3], &first);
    let both = "time_s,sinr_db,rsrp_dbm\n0.000,10.000,-90.000\n0.100,10.000,-90.000\n0.200,10.000,-96.000\n0.300,10.000,-96.000\n\
                0.400,-50.000,-140.000\n";
    assert_eq!(read.value.to_csv(), both);
    assert!(read.notes[0].starts_with("4 rows are of other cells that served the UE"), "{:?}", read.notes);
    let power = of(&[1, 2, 3, 1], &Ns3 { rsrp: true, ..first.clone() }).value;
    let samples = [(0.0, -90.0), (0.1, -96.0), (0.2, -96.0), (0.3, -90.0)];
    assert_eq!(power.samples.iter().map(|(at, dbm)| (*at, dbm.round())).collect::<Vec<_>>(), samples);
    assert_eq!(of(&[1, 1], &first).value.samples.len(), 2);
}

#[test]
fn a_run_or_a_module_with_the_whole_name_wins() {
    let rows: String = ["r1", "r10"]
        .iter()
        .flat_map(|run| {
            ["N.ue", "N.ue2"].map(|module| {
                format!("{run},vector,{module},sinrDl:vector,,,,0 1,{run_value} 6\n", run_value = &run[1..])
            })
        })
        .collect();
    let export = format!("run,type,module,name,attrname,attrvalue,value,vectime,vecvalue\n{rows}");
    let of = |run: &str, module: &str| {
        omnet(export.as_bytes(), &Omnet { run: Some(run.into()), module: Some(module.into()), vector: None })
    };
    assert_eq!(of("r1", "N.ue").unwrap().value.samples[0].1, 1.0);
    assert_eq!(of("r10", "N.ue2").unwrap().value.samples[0].1, 10.0);
    assert!(fault(of("r", "N.ue2")).starts_with("several vectors match"));
}
