//! Traces: the format, its faults, recordings, and made-up ones.

use std::path::PathBuf;

use bolero::check;
use link::Random;
use link::trace::{Synthetic, Trace, TraceError, TraceFault, Variation, synthetic};
use rand_xoshiro::rand_core::SeedableRng;
use units::{Rate, Span};

#[test]
fn any_text_is_delays_or_a_fault() {
    let parse = |text: &str| {
        if let Ok(delays) = link::Delays::parse(text) {
            assert!(delays.period().is_none_or(|period| period > Span::ZERO));
        }
    };
    check!().for_each(|bytes: &[u8]| {
        parse(&String::from_utf8_lossy(bytes));
        // Once more as rows of numbers.
        let numbers = bytes.iter().map(|&byte| char::from(b"0123456789.,,\n\ne-"[usize::from(byte % 17)]));
        parse(&"time_ms,rtt_s\n".chars().chain(numbers).collect::<String>());
    });
}

#[test]
fn a_trace_is_read_and_written() {
    let trace = Trace::parse("0\n3\n3\n10\n").unwrap();
    assert_eq!((trace.opportunities(), trace.period()), (4, Span::from_millis(10)));
    assert_eq!(trace.mean_rate(), Rate::from_bits_per_sec(4 * 1500 * 8 * 100));
    assert_eq!(trace.to_string(), "0\n3\n3\n10\n");
    assert_eq!(Trace::parse("0\r\n3\r\n3\r\n10").unwrap(), trace);
    assert_eq!(Trace::parse("1").unwrap().mean_rate(), Rate::from_mbps(12));
}

#[test]
fn each_fault_is_named_with_its_line() {
    use TraceFault::{Decreasing, Empty, NotANumber, TooLarge, ZeroPeriod};
    for (text, line, what) in [
        ("", 1, Empty),
        ("\n", 1, Empty),
        ("0\n0\n", 2, ZeroPeriod),
        ("5\n7\n6\n", 3, Decreasing),
        ("5\n\n6\n", 2, NotANumber),
        ("5\n6\n\n", 3, NotANumber),
        ("5\nsix\n", 2, NotANumber),
        ("-5\n", 1, NotANumber),
        ("+5\n", 1, NotANumber),
        ("5.0\n", 1, NotANumber),
        (" 5\n", 1, NotANumber),
        ("5\r\r", 1, NotANumber),
        ("4294967295\n4294967296\n", 2, TooLarge),
        ("99999999999999999999999999\n", 1, TooLarge),
    ] {
        assert_eq!(Trace::parse(text).err(), Some(TraceError { line, what }), "{text:?}");
    }
    assert_eq!(
        Trace::parse("5\n7\n6\n").unwrap_err().to_string(),
        "line 3: earlier than the previous line; times must not decrease"
    );
}

#[test]
fn any_bytes_are_a_trace_or_a_fault() {
    check!().for_each(|bytes: &[u8]| {
        trace_or_fault(bytes);
        // Random bytes are hardly ever numbers: once more with digits and line ends only.
        let digits: Vec<u8> = bytes.iter().map(|&byte| b"0123456789\n\n\n\n"[usize::from(byte % 14)]).collect();
        trace_or_fault(&digits);
    });
}

fn trace_or_fault(text: &[u8]) {
    match Trace::parse(text) {
        Ok(trace) => {
            assert!(trace.period() > Span::ZERO);
            assert_eq!(Trace::parse(trace.to_string()).unwrap(), trace);
        }
        Err(error) => {
            let lines = 1 + text.iter().filter(|&&byte| byte == b'\n').count();
            assert!((1..=lines).contains(&error.line), "{error} in {lines} lines");
        }
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "recordings are files, and only a test reads them here")]
fn recordings_have_the_mean_rates_of_their_summary() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var("RANWAY_TRACES").map_or_else(|_| root.join("../shared/data/traces"), PathBuf::from);
    let Ok(summary) = std::fs::read_to_string(folder.join("traces_summary.csv")) else {
        eprintln!("SKIPPED: no recorded traces in {}; RANWAY_TRACES names their folder", folder.display());
        return;
    };
    let mut rows = summary.lines();
    let header = "file,bytes,opportunities_1500B,duration_s,mean_mbps,";
    assert!(rows.next().unwrap().starts_with(header), "another summary format");
    for row in rows {
        let fields: Vec<&str> = row.split(',').collect();
        let text = std::fs::read_to_string(folder.join(fields[0])).unwrap();
        let trace = Trace::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", fields[0]));
        assert_eq!(trace.opportunities(), fields[2].parse::<usize>().unwrap(), "{}", fields[0]);
        let published: f64 = fields[4].parse().unwrap();
        let mean = trace.mean_rate().as_mbps();
        assert!((mean - published).abs() < 0.002 + published * 0.001, "{}: {mean} not {published}", fields[0]);
        assert_eq!(trace.to_string(), text, "{}", fields[0]);
    }
}

#[test]
fn made_up_traces_have_their_mean_and_their_outages() {
    let parameters = Synthetic {
        spread: 0.5,
        correlation: Span::from_millis(500),
        outage_every: Some(Span::from_secs(4)),
        outage: Span::from_secs(1),
        ..Synthetic::new(Rate::from_mbps(2), Rate::from_mbps(1000))
    };
    let duration = Span::from_secs(4000);
    let trace = synthetic(&parameters, duration, &mut Random::seed_from_u64(3));
    assert_eq!(trace.period(), duration);
    // Up for four fifths of the time. About 4000 independent half seconds: the mean is good to 2 %.
    let mean = trace.mean_rate().as_mbps();
    assert!((mean - 1.6).abs() < 0.1, "mean {mean} Mbit/s");
    // Between outages opportunities are 6 ms apart; 200 ms without one is an outage, longer than that in exp(-0.2).
    let times: Vec<u32> = trace.to_string().lines().map(|line| line.parse().unwrap()).collect();
    let gaps = times.windows(2).filter(|pair| pair[1] - pair[0] > 200).count() as f64;
    assert!((gaps - 800.0 * 0.819).abs() < 100.0, "{gaps} outages of more than 200 ms");
}

#[test]
fn a_made_up_trace_is_a_function_of_its_stream() {
    let parameters = Synthetic::new(Rate::from_mbps(10), Rate::from_mbps(75));
    let make = |seed| synthetic(&parameters, Span::from_secs(120), &mut Random::seed_from_u64(seed));
    assert_eq!(make(1), make(1));
    assert_ne!(make(1), make(2));
}

#[test]
fn a_made_up_trace_never_exceeds_its_peak_and_never_stops_without_capacity() {
    let outage_every = Some(Span::from_secs(5));
    let parameters =
        Synthetic { spread: 3.0, outage_every, ..Synthetic::new(Rate::from_mbps(10), Rate::from_mbps(24)) };
    let duration = Span::from_secs(20);
    let trace = synthetic(&parameters, duration, &mut Random::seed_from_u64(5));
    let times: Vec<u32> = trace.to_string().lines().map(|line| line.parse().unwrap()).collect();
    // 24 Mbit/s are two opportunities a millisecond; the remainder of one before may add a third.
    assert!(times.windows(4).all(|four| four[3] > four[0]));
    let silent = Synthetic { mean: Rate::from_mbps(0), ..parameters };
    let trace = synthetic(&silent, duration, &mut Random::seed_from_u64(5));
    assert_eq!((trace.opportunities(), trace.period()), (1, duration));
}

/// Without variation, capacity is the mean, and each full 1500 bytes are an opportunity in the millisecond that completes them.
#[test]
fn a_made_up_trace_without_variation_is_a_constant_rate() {
    let times = |mbps: f64, peak: u64, millis: u64| {
        let mean = Rate::from_bits_per_sec((mbps * 1e6) as u64);
        let parameters = Synthetic { spread: 0.0, ..Synthetic::new(mean, Rate::from_mbps(peak)) };
        let duration = Span::from_micros(millis * 1000 - 999);
        synthetic(&parameters, duration, &mut Random::seed_from_u64(7)).times().to_vec()
    };
    assert_eq!(times(12.0, 100, 4), [1, 2, 3, 4], "a duration is rounded up to a millisecond");
    let any = Synthetic::new(Rate::from_mbps(10), Rate::from_mbps(75));
    assert_eq!(
        synthetic(&any, Span::ZERO, &mut Random::seed_from_u64(7)).period(),
        Span::from_millis(1),
        "and is one at least"
    );
    assert_eq!(times(24.0, 100, 3), [1, 1, 2, 2, 3, 3]);
    assert_eq!(times(18.0, 100, 4), [1, 2, 2, 3, 4, 4]);
    assert_eq!(times(48.0, 12, 4), [1, 2, 3, 4], "the peak");
    assert_eq!(times(4.0, 100, 7), [3, 6, 7], "the last one ends the trace");
}

/// The same faults as of a file, in the same lines.
#[test]
fn a_trace_of_numbers_is_that_of_their_text() {
    for times in
        [vec![], vec![0], vec![0, 0], vec![0, 1], vec![1], vec![5, 5], vec![5, 4], vec![0, 7, 6, 5], vec![0, 3, 3, 10]]
    {
        let text: String = times.iter().map(|time| format!("{time}\n")).collect();
        assert_eq!(Trace::from_times(times), Trace::parse(&text), "{text:?}");
    }
}

/// Log-normal, as the module's text says: mean 1, and a logarithm of standard deviation 0.5, whose autocorrelation is 1/e after 20 steps.
#[test]
fn capacity_varies_with_its_spread_and_correlation() {
    let mut random = Random::seed_from_u64(11);
    let mut variation = Variation::new(0.5, Span::from_millis(20), &mut random);
    let factors: Vec<f64> = (0..400_000).map(|_| variation.next(&mut random)).collect();
    let mean = |values: &mut dyn Iterator<Item = f64>| {
        let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
        sum / f64::from(count)
    };
    // About 20 000 independent values.
    let average = mean(&mut factors.iter().copied());
    assert!((average - 1.0).abs() < 0.015, "{average}");
    let logs: Vec<f64> = factors.iter().map(|factor| factor.ln() + 0.125).collect();
    let correlation = |lag: usize| mean(&mut logs.iter().zip(&logs[lag..]).map(|(one, other)| one * other)) / 0.25;
    for (lag, wanted) in [(0, 1.0), (20, 0.368), (40, 0.135)] {
        let got = correlation(lag);
        assert!((got - wanted).abs() < 0.03, "after {lag} ms: {got}");
    }
    // It begins as it goes on: with a random value.
    let first = |seed| {
        Variation::new(1.0, Span::MAX, &mut Random::seed_from_u64(seed)).next(&mut Random::seed_from_u64(1)).ln() + 0.5
    };
    let square = mean(&mut (0..2_000).map(|seed| f64::powi(first(seed), 2)));
    assert!((square - 1.0).abs() < 0.15, "{square}");
}
