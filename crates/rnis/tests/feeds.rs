//! Each kind of feed: its sample becomes the records that it means, and any bytes become records or a fault.

use bolero::check;
use rnis::event::{Event, HandoverStatus, Measurement, What};
use rnis::feed::flexric::Flexric;
use rnis::feed::kpm::Kpm;
use rnis::feed::modem::Modem;
use rnis::feed::srsran::Srsran;
use rnis::feed::{Carrier, Parser, recording};
use rnis::{AddressMap, FeedError, Network, RadioReport, Record, State};
use units::{Span, Time};

const NOW: Time = Time::from_nanos(1_700_000_100_000_000_000);

fn carrier() -> Carrier {
    Carrier { cell: 7, n_prb: 106, slots_per_second: 1400, period: Span::from_secs(1) }
}

fn parse(parser: &mut Parser, text: &[u8]) -> Result<Vec<Record>, FeedError> {
    let mut records = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        records.extend(parser.parse(line, NOW)?);
    }
    Ok(records)
}

fn sample(mut parser: Parser, text: &str) -> Vec<Record> {
    parse(&mut parser, text.as_bytes()).expect("the sample is valid")
}

fn reports(records: &[Record]) -> Vec<&RadioReport> {
    records.iter().filter_map(|record| if let Record::Report(report) = record { Some(report) } else { None }).collect()
}

fn events(records: &[Record]) -> Vec<&Event> {
    records.iter().filter_map(|record| if let Record::Event(event) = record { Some(event) } else { None }).collect()
}

#[test]
fn a_recording_has_reports_and_all_kinds_of_events() {
    let text = include_str!("feeds/recording.jsonl");
    let records = sample(Parser::Recording, text);
    assert_eq!((reports(&records).len(), events(&records).len()), (1, 9));
    let change = What::CellChange { status: HandoverStatus::Completed, targets: vec![2] };
    assert_eq!(events(&records)[1].what, change);
    for record in &records {
        let line = recording::format_line(record);
        assert_eq!(recording::parse_line(line.as_bytes()).as_ref(), Ok(record));
    }
}

#[test]
fn impossible_reports_of_a_recording_are_faults() {
    let line = include_str!("feeds/recording.jsonl").lines().next().expect("there is one");
    for (from, to, message) in [
        ("\"failed\":0", "\"failed\":3", "`failed` is greater than `blocks`"),
        ("\"prbs\":100", "\"prbs\":265", "`prbs` is greater than `n_prb` times `slots`"),
        ("\"cell_prbs\":200", "\"cell_prbs\":265", "`cell_prbs` is greater than `n_prb` times `slots`"),
        ("800.0", "-1.0", "`bits_per_prb` is not in 0 to 1000000"),
    ] {
        let fault = recording::parse_line(line.replace(from, to).as_bytes()).expect_err(message);
        assert_eq!(fault.to_string(), message);
    }
}

#[test]
fn srsran_reports_rates_and_the_cells_blocks() {
    let records = sample(Parser::Srsran(Srsran::new(carrier())), include_str!("feeds/srsran.json"));
    let [first, second] = reports(&records)[..] else { panic!("{records:?}") };
    assert_eq!((first.cell, first.ue.rnti, first.time, first.interval), (1, 17_921, NOW, Span::from_secs(1)));
    assert_eq!((first.acked_bits, first.blocks, first.failed), (11_312_392, 630, 3));
    assert_eq!((first.mcs, first.layers, first.cqi, first.queue_bytes), (Some(27), Some(1), Some(14), Some(3008)));
    // 63 blocks in a pattern of 10 slots of 0.5 ms.
    assert_eq!((first.slots, first.cell_prbs, first.active_ues), (1400, Some(12_600), Some(1)));
    assert_eq!((second.cqi, second.layers), (None, None));
    // The first had the cell's blocks, of which it used 8 %: 11 Mbit in 12,600 are 898 bits each, and 7.4 bits in 120 elements 889.
    assert_eq!((first.prbs, first.bits_per_prb), (Some(12_600), Some(888.75)));
    assert_eq!((second.prbs, second.bits_per_prb), (Some(0), None));
}

#[test]
fn srsrans_interval_is_the_time_between_messages_and_sums_of_blocks_are_recognised() {
    let mut parser = Srsran::new(carrier());
    let text = include_str!("feeds/srsran.json").replace("[12,4,", "[1200,400,");
    parser.parse(text.as_bytes(), NOW).expect("it is valid");
    let records = parser.parse(text.as_bytes(), NOW + Span::from_millis(100)).expect("it is valid");
    let report = reports(&records)[0];
    assert_eq!((report.interval, report.slots, report.acked_bits), (Span::from_millis(100), 140, 1_131_239));
    assert_eq!(report.cell_prbs, Some(1647));
}

#[test]
fn older_srsran_releases_and_other_layers_are_understood() {
    let records = sample(Parser::Srsran(Srsran::new(carrier())), include_str!("feeds/srsran-old.json"));
    assert_eq!(reports(&records)[0].acked_bits, 2_000_000);
    let mut parser = Srsran::new(carrier());
    assert_eq!(parser.parse(br#"{"app_resource_usage":{"cpu_usage_percent":1}}"#, NOW), Ok(vec![]));
    assert!(parser.parse(br#"{"error":"unknown command"}"#, NOW).is_err());
    assert!(parser.parse(br#"{"cells":[{"ue_list":[{"rnti":70000}]}]}"#, NOW).is_err());
}

#[test]
fn kpm_measurements_become_reports_counters_and_measurements() {
    let records = sample(Parser::Kpm(Kpm::new(carrier())), include_str!("feeds/kpm.jsonl"));
    let [first, second] = reports(&records)[..] else { panic!("{records:?}") };
    assert_eq!((first.cell, first.acked_bits, first.cqi, first.slots), (7, 40_000_000, Some(13), 1400));
    // 80 of 106 blocks in each of 1400 slots.
    assert_eq!((first.cell_prbs, first.prbs), (Some(112_000), Some(93_333)));
    // Its CQI is unknown, so its blocks are taken to carry as much as the other one's.
    assert_eq!((second.ue.rnti, second.acked_bits, second.prbs), (1, 8_000_000, Some(18_667)));
    assert_eq!((first.active_ues, second.active_ues), (Some(2), Some(2)));
    let mut state = State::default();
    records.into_iter().for_each(|record| drop(state.accept(record, NOW)));
    let (_, _, ue) = state.ues().next().expect("there is one");
    let (_, layer2) = ue.layer2.expect("there are counters");
    assert_eq!(
        (layer2.dl_delay_ms, layer2.dl_discard_percent, layer2.ul_bits),
        (Some(12.4), Some(2.0), Some(1_000_000))
    );
}

#[test]
fn kpm_tables_are_understood_and_empty_values_left_out() {
    let records = sample(Parser::Kpm(Kpm::new(carrier())), include_str!("feeds/kpm.csv"));
    let [report] = reports(&records)[..] else { panic!("{records:?}") };
    assert_eq!((report.cell, report.ue.rnti, report.interval), (5, 0x4601, Span::from_millis(100)));
    assert_eq!((report.acked_bits, report.prbs), (4_000_000, Some(7000)));
    let measured = |event: &&Event| matches!(event.what, What::Measurement(_));
    assert_eq!(events(&records).into_iter().filter(measured).count(), 2);
}

#[test]
fn flexric_counters_become_differences_and_resets_begin_anew() {
    let mut parser = Parser::Flexric(Flexric::new(carrier()));
    parse(&mut parser, include_bytes!("feeds/flexric-rlc.csv")).expect("the sample is valid");
    let records = parse(&mut parser, include_bytes!("feeds/flexric-mac.csv")).expect("the sample is valid");
    let [first, wrapped, anew] = reports(&records)[..] else { panic!("{records:?}") };
    assert_eq!((first.acked_bits, first.prbs, first.blocks, first.failed), (440_000, Some(550), 8, 1));
    assert_eq!((first.bits_per_prb, first.queue_bytes), (Some(880.0), Some(15_500)));
    assert_eq!((first.interval, first.slots, first.mcs), (Span::from_millis(10), 14, Some(26)));
    // A 32-bit counter that wraps around is no reset.
    assert_eq!(
        (wrapped.ue.rnti, wrapped.prbs, wrapped.cell_prbs, wrapped.active_ues),
        (0x4602, Some(10), Some(560), Some(2))
    );
    // The third row went back, so the fourth is the next to compare with; the queue from before the reset is void.
    assert_eq!((anew.time.as_nanos(), anew.acked_bits, anew.queue_bytes), (1_700_000_000_030_000_000, 88_000, None));
}

#[test]
fn a_modems_signal_is_a_measurement_and_never_a_report() {
    let records = sample(Parser::Modem(Modem::new(carrier())), include_str!("feeds/mmcli.json"));
    assert_eq!(reports(&records), Vec::<&RadioReport>::new());
    let What::Measurement(Measurement { serving, .. }) = &events(&records)[0].what else { panic!("{records:?}") };
    assert_eq!((serving.rsrp_dbm, serving.rsrq_db, serving.sinr_db), (Some(-100.0), Some(-9.0), Some(19.0)));
    let none = include_str!("feeds/mmcli.json").replace("-100.00", "--").replace("-9.00", "--").replace("19.00", "--");
    assert_eq!(Modem::new(carrier()).parse(none.as_bytes(), NOW), Ok(vec![]));
    assert!(Modem::new(carrier()).parse(b"{}", NOW).is_err());
}

#[test]
fn what_a_modem_cannot_have_measured_is_unknown() {
    let file = include_str!("feeds/mmcli.json");
    let serving = |text: &str| {
        let records = Modem::new(carrier()).parse(text.as_bytes(), NOW).expect("it can be read");
        events(&records).first().map(|event| match &event.what {
            What::Measurement(Measurement { serving, .. }) => (serving.rsrp_dbm, serving.rsrq_db, serving.sinr_db),
            other => panic!("{other:?}"),
        })
    };
    let lte = r#""lte":{"rsrp":"-100.00","rsrq":"-9.00","snr":"19.00"}"#;
    let both = |rsrp: &str, rsrq: &str, snr: &str, lte: &str| {
        format!(r#"{{"modem":{{"signal":{{"5g":{{"rsrp":"{rsrp}","rsrq":"{rsrq}","snr":"{snr}"}},{lte}}}}}}}"#)
    };
    let anchor = Some((Some(-100.0), Some(-9.0), Some(19.0)));
    assert_eq!(serving(file), anchor);
    for [rsrp, rsrq, snr] in [
        ["-32768.00", "-32768.00", "-3276.80"],
        ["0.00", "0.00", "0.00"],
        ["-1.00", "-1.00", "-1.00"],
        ["32767.00", "32767.00", "32767.00"],
        ["--", "--", "18.5"],
    ] {
        assert_eq!(serving(&both(rsrp, rsrq, snr, lte)), anchor, "{rsrp}");
        let alone = if snr == "18.5" { Some((None, None, Some(18.5))) } else { None };
        assert_eq!(serving(&both(rsrp, rsrq, snr, r#""lte":{}"#)), alone, "{rsrp}");
    }
    assert_eq!(serving(&both("-90", "-11", "0", lte)), Some((Some(-90.0), Some(-11.0), Some(0.0))));
    assert_eq!(serving(&both("-90", "0", "41", lte)), Some((Some(-90.0), None, None)));
    assert_eq!(serving(&both("-157", "-44", "-24", lte)), anchor);
}

#[test]
fn a_fault_of_json_names_the_column_alone_since_its_line_is_known() {
    for mut parser in [Parser::Recording, Parser::Kpm(Kpm::new(carrier()))] {
        let fault = parse(&mut parser, b"{\"time_us\":x}").expect_err("it is no JSON");
        assert_eq!(fault.to_string(), "expected value at column 12");
    }
}

#[test]
fn faults_are_one_printable_line() {
    let mut parsers = all();
    for parser in &mut parsers {
        for text in [&b"\x1b[2J\n\"\x00"[..], b"[", b"{\"cells\":3", b"1,2,3", b"a,b\n1", b"\xff\xfe", b"{}"] {
            if let Err(fault) = parse(parser, text) {
                let line = fault.to_string();
                assert!(!line.contains(char::is_control) && line.len() < 1000, "{line}");
            }
        }
    }
    let long = vec![b' '; rnis::feed::LONGEST_MESSAGE + 1];
    assert!(Parser::Recording.parse(&long, NOW).is_err());
}

fn all() -> [Parser; 5] {
    [
        Parser::Recording,
        Parser::Srsran(Srsran::new(carrier())),
        Parser::Kpm(Kpm::new(carrier())),
        Parser::Flexric(Flexric::new(carrier())),
        Parser::Modem(Modem::new(carrier())),
    ]
}

/// The first byte selects the parser, the rest is its input. Whatever is accepted can be answered from, written and read.
#[test]
fn any_bytes_become_records_or_a_fault() {
    check!().for_each(|bytes: &[u8]| {
        let Some((kind, text)) = bytes.split_first() else { return };
        let mut parser = all()[usize::from(*kind) % 5].clone();
        let mut state = State::new(AddressMap::parse("0x4601 10.45.0.2").expect("it is valid"));
        let network = Network::default();
        for line in text.split(|&byte| byte == b'\n') {
            for record in parser.parse(line, NOW).unwrap_or_default() {
                let line = recording::format_line(&record);
                let read = recording::parse_line(line.as_bytes()).unwrap_or_else(|fault| panic!("{fault}: {line}"));
                assert_eq!(read.time().as_nanos() / 1000, record.time().as_nanos() / 1000);
                for occurrence in state.accept(record, NOW).occurrences {
                    rnis::mec::notify(&occurrence, &network, "http://host/subscription");
                }
            }
        }
        let answer = rnis::mec::answer::layer2_meas((&state, &network), &Default::default(), &[], NOW);
        assert!(
            answer.cell_info.iter().all(|cell| cell.values.get("dl_total_prb_usage_cell").is_none_or(|p| *p <= 100))
        );
        state.forget(NOW + Span::from_secs(3600));
        assert_eq!(state.ues().count(), 0);
    });
}

/// Bodies of subscriptions come from strangers.
#[test]
fn any_body_is_a_subscription_or_invalid() {
    check!().for_each(|bytes: &[u8]| {
        if let Ok(subscription) = rnis::mec::Subscription::parse(bytes) {
            let sent = subscription.to_json("http://host/1", None).to_string();
            if subscription.callback.is_some() {
                assert!(rnis::mec::Subscription::parse(sent.as_bytes()).is_ok(), "{sent}");
            }
        }
        if let Ok(text) = core::str::from_utf8(bytes) {
            let _ = AddressMap::parse(text);
        }
    });
}
