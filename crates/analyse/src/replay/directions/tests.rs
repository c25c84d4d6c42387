use super::*;
use crate::why::Stretch;
use record::tables::PassageRow;

const BASE_MS: f64 = 40.0;
const NAMES: [&str; 2] = ["download", "upload"];

/// The tables of a download (forward) and an upload (backward), from and until these times. At any time, `at` tells each direction's
/// goodput in Mbit/s and how long its packets wait, in ms; nothing arrives at a goodput of 0.
fn tables(times: [(f64, f64); 2], has_owds: bool, at: impl Fn(f64) -> [(f64, f64); 2]) -> Tables {
    let mut tables = Tables::default();
    for (way, (from_s, to_s)) in times.into_iter().enumerate() {
        let (mut most, mut sum) = (0, Mean::default());
        for tick in (from_s * 10.0) as u32 + 1..=(to_s * 10.0) as u32 {
            let t_s = f64::from(tick) / 10.0;
            // A sample tells of the time before it.
            let at = at(t_s - 0.05);
            let (goodput_mbps, waited_ms) = at[way];
            let rtt_ms = BASE_MS + at[FORWARD].1 + at[BACKWARD].1;
            let in_flight = (goodput_mbps * 1e6 / 8.0 * rtt_ms / 1e3) as u64;
            most = in_flight.max(most);
            sum.add(goodput_mbps);
            tables.samples.push(&SampleRow {
                flow: NAMES[way],
                t_s,
                goodput_mbps,
                in_flight_bytes: Some(in_flight),
                rtt_ms: Some(rtt_ms),
                owd_ms: (has_owds && goodput_mbps > 0.0).then_some(BASE_MS / 2.0 + waited_ms),
                ..SampleRow::default()
            });
        }
        tables.flows.push(&FlowRow {
            flow: NAMES[way],
            transport: "tcp",
            start_s: from_s,
            measured_from_s: from_s,
            measured_to_s: to_s,
            bytes: 1,
            goodput_mbps: sum.get().unwrap_or(0.0),
            max_in_flight_bytes: Some(most),
            ..FlowRow::default()
        });
    }
    tables
}

/// A replay of `seconds` from the beginning.
fn measured<'a>(tables: &'a Tables, seconds: f64, flows: Vec<(FlowRow<'a>, usize)>, held: Vec<Held>) -> Measured<'a> {
    Measured { tables, point: 0, run: 0, start_s: 0.0, seconds, base_ms: BASE_MS, flows, held }
}

fn directions(tables: &Tables) -> Directions {
    let flows = tables.flows.iter().map(|row| (row, usize::from(row.flow == NAMES[BACKWARD]))).collect();
    let seconds = tables.flows.iter().map(|row| row.measured_to_s).fold(0.0, f64::max);
    Directions::of(&measured(tables, seconds, flows, Vec::new()))
}

fn buffer(directions: &Directions, way: usize) -> (f64, Basis) {
    let Buffer { bytes, basis, .. } = directions.ways[way].buffer.expect("a buffer");
    (bytes as f64, basis)
}

/// A queue that fills and drains at a constant pace.
fn triangle(t_s: f64, period_s: f64, most_ms: f64) -> f64 {
    let phase = t_s / period_s % 1.0;
    most_ms * (1.0 - (2.0 * phase - 1.0).abs())
}

/// Bytes a second of a direction with this goodput, beside the acknowledgements of the other direction's.
fn rate(own_mbps: f64, other_mbps: f64) -> f64 {
    (own_mbps * OVERHEAD + other_mbps * ACKS) * 1e6 / 8.0
}

fn is_about(value: f64, expected: f64, within: f64) -> bool {
    (value / expected - 1.0).abs() < within
}

const BOTH: [(f64, f64); 2] = [(0.0, 40.0), (0.0, 40.0)];
const ONE: [(f64, f64); 2] = [(0.0, 40.0), (0.0, 0.0)];

/// The same flows of which each has retransmitted so many segments. What is lost counts as in flight until the sender knows.
fn with_losses(mut tables: Tables, retransmitted: u64) -> Tables {
    let mut flows = record::tables::Flows::default();
    for row in tables.flows.iter() {
        let max_in_flight_bytes = row.max_in_flight_bytes.map(|most| if retransmitted > 0 { 2 * most } else { most });
        flows.push(&FlowRow { retransmitted: Some(retransmitted), max_in_flight_bytes, ..row });
    }
    tables.flows = flows;
    tables
}

fn two_queues(t_s: f64) -> [(f64, f64); 2] {
    [(8.0, triangle(t_s, 4.0, 200.0)), (2.0, triangle(t_s, 7.0, 300.0))]
}

#[test]
fn one_way_delays_tell_the_buffer_of_each_direction() {
    let directions = directions(&tables(BOTH, true, two_queues));
    // Samples every 0.1 s miss 5 ms of a queue that takes 2 s for 200 ms, at its top and at its bottom.
    for (way, expected) in [(FORWARD, rate(8.0, 2.0) * 0.2), (BACKWARD, rate(2.0, 8.0) * 0.3)] {
        let (bytes, basis) = buffer(&directions, way);
        assert!(basis == Basis::OneWay && is_about(bytes, expected, 0.06), "{way}: {bytes}, expected {expected}");
    }
    assert!(directions.buffer_notes().is_empty() && directions.capacity_notes().is_empty());
}

#[test]
fn the_capacity_has_room_for_the_acknowledgements_of_the_other_direction() {
    for has_owds in [true, false] {
        let directions = directions(&tables(BOTH, has_owds, two_queues));
        for (way, expected) in [(FORWARD, rate(8.0, 2.0)), (BACKWARD, rate(2.0, 8.0))] {
            let mbps = directions.ways[way].capacity_mbps.as_deref().expect("it has flows");
            assert_eq!(mbps.len(), 400);
            assert!(mbps.iter().all(|mbps| is_about(mbps * 1e6 / 8.0, expected, 1e-6)), "{way}: {mbps:?}, {expected}");
        }
    }
}

#[test]
fn buffers_that_nothing_tells_apart_are_of_the_same_size_and_explain_the_delay_together() {
    let directions = directions(&tables(BOTH, false, two_queues));
    let [(forward, basis), (backward, same)] = [FORWARD, BACKWARD].map(|way| buffer(&directions, way));
    assert_eq!([basis, same], [Basis::Assumed; 2]);
    // Bytes in flight are payload; the rates are of packets, and of acknowledgements.
    assert!(is_about(forward, backward, 0.1), "{forward}, {backward}");
    let most_ms = (0..400).map(|tick| two_queues(f64::from(tick) / 10.0 + 0.05)).map(|at| at[0].1 + at[1].1);
    let most_s = most_ms.fold(0.0, f64::max) / 1e3;
    let explained_s = forward / rate(8.0, 2.0) + backward / rate(2.0, 8.0);
    assert!(is_about(explained_s, most_s, 0.12), "{explained_s}, {most_s}");
    let notes = directions.buffer_notes();
    assert!(notes.len() == 1 && notes[0].contains("nothing tells in which direction"), "{notes:?}");
}

#[test]
fn a_direction_that_was_loaded_alone_tells_its_buffer_and_the_rest_is_the_other_ones() {
    let times = [(20.0, 30.0), (0.0, 40.0)];
    let at = |t_s: f64| {
        let forward = if (20.0..30.0).contains(&t_s) { triangle(t_s, 10.0, 200.0) } else { 0.0 };
        [(8.0, forward), (2.0, triangle(t_s, 10.0, 300.0))]
    };
    let directions = directions(&tables(times, false, at));
    let (backward, basis) = buffer(&directions, BACKWARD);
    assert!(basis == Basis::Alone && is_about(backward, 2e6 / 8.0 * 0.3, 0.05), "{backward} {basis:?}");
    // The two are full at once. Bytes in flight leave out headers, and acknowledgements of the other direction's data.
    let (forward, basis) = buffer(&directions, FORWARD);
    assert!(basis == Basis::Rest && is_about(forward, rate(8.0, 2.0) * 0.2, 0.15), "{forward} {basis:?}");
    assert!(directions.buffer_notes().is_empty());
    // While one direction carries load alone, what it got is its capacity.
    let mbps = directions.ways[BACKWARD].capacity_mbps.as_deref().expect("it has flows");
    assert!(is_about(mbps[100] * 1e6 / 8.0, rate(2.0, 0.0), 1e-6), "{}", mbps[100]);
}

#[test]
fn what_waited_in_the_host_of_a_sender_waited_in_its_direction() {
    let at = |t_s: f64| [(4.0, 0.0), (4.0, 50.0 + triangle(t_s, 5.0, 300.0))];
    let mut tables = tables(BOTH, false, at);
    for tick in 1..400 {
        let t_s = f64::from(tick) / 10.0;
        let host_ms = Some(at(t_s - 0.05)[BACKWARD].1);
        tables.passages.push(&PassageRow { flow: NAMES[BACKWARD], t_s, host_ms, ..PassageRow::default() });
    }
    let directions = directions(&tables);
    // Half would be assumed otherwise.
    let (backward, basis) = buffer(&directions, BACKWARD);
    assert!(basis == Basis::Assumed && is_about(backward, 4e6 / 8.0 * 0.35, 0.05), "{backward} {basis:?}");
    assert_eq!(buffer(&directions, FORWARD), (LEAST_BUFFER, Basis::Assumed));
}

#[test]
fn a_direction_whose_acknowledgements_were_held_up_had_its_capacity_nevertheless() {
    // From 10 s on, the upload's queue keeps the download from filling its direction. At 5 s the direction stands still, at 15 s its
    // sender does.
    let at = |t_s: f64| {
        let stops = (5.0..5.5).contains(&t_s) || (15.0..15.5).contains(&t_s);
        let forward = if t_s < 10.0 { (8.0, triangle(t_s, 20.0, 100.0)) } else { (3.0, 0.0) };
        [(if stops { 0.0 } else { forward.0 }, forward.1), (2.0, if t_s < 10.0 { 0.0 } else { 300.0 })]
    };
    let mbps = |tables: &Tables| -> (Vec<f64>, Vec<String>) {
        let mut directions = directions(tables);
        let notes = directions.capacity_notes();
        (directions.ways[FORWARD].capacity_mbps.take().expect("it has flows"), notes)
    };
    let (known, notes) = mbps(&tables(BOTH, true, at));
    let full = rate(8.0, 2.0) * 8e-6;
    for (bin, expected) in [(30, full), (120, full), (152, full), (300, full)] {
        assert!(is_about(known[bin], expected, 0.001), "{bin}: {}, expected {expected}", known[bin]);
    }
    assert!(known[52] < 0.1 * full, "{}", known[52]);
    let is_told = |notes: &[String], from: &str| {
        notes.iter().any(|note| note.contains("the forward direction had no queue") && note.contains(from))
    };
    assert!(is_told(&notes, "the nearest times with a queue"), "{notes:?}");
    // If it never had a queue, it could do at least what it did in its best second.
    let never = |t_s: f64| [(if t_s < 12.0 { 5.0 } else { 3.0 }, 0.0), (2.0, triangle(t_s, 80.0, 300.0))];
    let (known, notes) = mbps(&tables(BOTH, true, never));
    assert!(is_about(known[300], rate(5.0, 2.0) * 8e-6, 0.001), "{}", known[300]);
    assert!(is_told(&notes, "the best second's"), "{notes:?}");
    // Nothing is known without one-way delays.
    let (unknown, notes) = mbps(&tables(BOTH, false, at));
    assert!(is_about(unknown[300], rate(3.0, 2.0) * 8e-6, 0.001), "{}", unknown[300]);
    assert!(notes.len() == 1 && notes[0].contains("averaged over 1 s"), "{notes:?}");
}

#[test]
fn a_trickle_in_the_other_direction_does_not_share_the_queue() {
    let with = |backward_mbps: f64, limited_app: Option<f64>| {
        let at = |t_s: f64| [(8.0, triangle(t_s, 4.0, 200.0)), (backward_mbps, 0.0)];
        let mut tables = tables(BOTH, false, at);
        let rows: Vec<FlowRow<'_>> = tables.flows.iter().collect();
        let mut flows = record::tables::Flows::default();
        for row in rows {
            let limited_app = limited_app.filter(|_| row.flow == NAMES[BACKWARD]);
            flows.push(&FlowRow { limited_app, ..row });
        }
        tables.flows = flows;
        buffer(&directions(&tables), FORWARD)
    };
    for (backward_mbps, limited_app) in [(0.1, None), (1.0, Some(0.9))] {
        let (bytes, basis) = with(backward_mbps, limited_app);
        assert!(basis == Basis::InFlight && is_about(bytes, 8e6 / 8.0 * 0.2, 0.05), "{bytes} {basis:?}");
    }
    assert_eq!(with(1.0, Some(0.1)).1, Basis::Assumed);
}

#[test]
fn bursts_behind_acknowledgements_are_no_capacity() {
    let at = |t_s: f64| {
        let bursts = if ((t_s * 10.0) as u32).is_multiple_of(2) { 16.0 } else { 0.0 };
        [(bursts, 50.0), (2.0, 300.0)]
    };
    let directions = directions(&tables(BOTH, false, at));
    let mbps = directions.ways[FORWARD].capacity_mbps.as_deref().expect("it has flows");
    // Of 11 intervals of 0.1 s, 5 or 6 have a burst.
    assert!(mbps[20..380].iter().all(|mbps| is_about(mbps * 1e6 / 8.0, rate(8.0, 2.0), 0.1)), "{mbps:?}");
}

#[test]
fn a_buffer_in_which_nothing_was_lost_holds_more_than_what_was_in_it() {
    let at = |t_s: f64| [(8.0, triangle(t_s, 4.0, 200.0)), (0.0, 0.0)];
    let of = |tables: &Tables| directions(tables).ways[FORWARD].buffer.expect("a buffer");
    let none = of(&with_losses(tables(ONE, false, at), 0));
    assert!(none.basis == Basis::InFlight && is_about(none.bytes as f64, 8e6 / 8.0 * 0.2, 0.05), "{none:?}");
    assert_eq!(none.size(), 2 * none.bytes);
    let comment =
        format!("# nothing was lost: at least {} B, the most bytes in flight, less those without a queue", none.bytes);
    assert_eq!(none.comment(), format!("{comment}; not measured"));
    // After a loss, bytes in flight are too many, and round trips tell. If nobody tells of losses, nothing says that there was room.
    let some = of(&with_losses(tables(ONE, false, at), 3));
    assert!(some.basis == Basis::RoundTrip && is_about(some.size() as f64, rate(8.0, 0.0) * 0.2, 0.05), "{some:?}");
    assert!(some.comment().ends_with(", by round-trip times"), "{}", some.comment());
    let unknown = of(&tables(ONE, false, at));
    assert_eq!((unknown.size(), unknown.basis), (none.bytes, Basis::InFlight));
    // The same of directions that carried load at once.
    let both = directions(&with_losses(tables(BOTH, true, two_queues), 0));
    for way in &both.ways {
        let buffer = way.buffer.expect("a buffer");
        assert!(buffer.basis == Basis::OneWay && buffer.size() == 2 * buffer.bytes, "{buffer:?}");
    }
}

#[test]
fn flows_that_have_not_filled_a_direction_yet_do_not_tell_its_capacity() {
    // It is filled from 0.3 s on, and not for half a second after 10 s.
    let at = |t_s: f64| {
        let forward = match t_s {
            t_s if t_s < 0.3 => (2.0, 0.0),
            t_s if (10.0..10.5).contains(&t_s) => (4.0, 0.0),
            _ => (8.0, 100.0),
        };
        [forward, (0.0, 0.0)]
    };
    let mbps = |tables: &Tables| -> (Vec<f64>, Vec<String>) {
        let mut directions = directions(tables);
        let notes = directions.capacity_notes();
        let full = directions.ways[FORWARD].full_mbps.expect("it was filled");
        assert!(is_about(full, rate(8.0, 0.0) * 8e-6, 0.001), "{full}");
        (directions.ways[FORWARD].capacity_mbps.take().expect("it has flows"), notes)
    };
    let full = rate(8.0, 0.0) * 8e-6;
    for (retransmitted, later) in [(Some(0), full), (Some(5), full / 2.0), (None, full / 2.0)] {
        let tables = tables(ONE, false, at);
        let (known, notes) =
            mbps(&retransmitted.map_or_else(|| tables.clone(), |count| with_losses(tables.clone(), count)));
        for (bin, expected) in [(0, full), (2, full), (3, full), (50, full), (102, later), (200, full)] {
            assert!(
                is_about(known[bin], expected, 0.001),
                "{retransmitted:?}: {bin}: {}, expected {expected}",
                known[bin]
            );
        }
        assert!(notes.len() == 1 && notes[0].contains("the forward direction had filled it"), "{notes:?}");
    }
    // Without any queue, nothing tells that there was more.
    let never = |t_s: f64| [(if t_s < 5.0 { 2.0 } else { 4.0 }, 0.0), (0.0, 0.0)];
    let directions = directions(&with_losses(tables(ONE, false, never), 0));
    let known = directions.ways[FORWARD].capacity_mbps.as_deref().expect("it has flows");
    assert!(
        is_about(known[10], rate(2.0, 0.0) * 8e-6, 0.001) && directions.capacity_notes().is_empty(),
        "{}",
        known[10]
    );
    assert_eq!(directions.ways[FORWARD].full_mbps, None);
}

/// What held back a flow all the time, in steps of 0.1 s.
fn held(hold: Hold, row: &FlowRow<'_>) -> Held {
    let count = ((row.measured_to_s - row.start_s) * 10.0).round() as u32;
    let at = |n: u32| row.start_s + f64::from(n) / 10.0;
    let stretch = |n| Stretch { from_s: at(n), to_s: at(n + 1), bytes: 1.0, hold, queued: Some(false) };
    Held { stretches: (0..count).map(stretch).collect(), ..Held::default() }
}

#[test]
fn what_an_application_left_tells_neither_capacity_nor_buffer() {
    // A download fills 10 Mbit/s for 10 s; after it, an application sends 1 Mbit/s the same way.
    let at = |t_s: f64| if t_s < 10.0 { [(10.0, 100.0), (0.0, 0.0)] } else { [(0.0, 0.0), (1.0, 0.0)] };
    let tables = tables([(0.0, 10.0), (10.0, 40.0)], false, at);
    let of = |flows: Vec<(FlowRow<'_>, usize)>, holds: &[Hold]| {
        let held = flows.iter().zip(holds).map(|((row, _), hold)| held(*hold, row)).collect();
        let tables = &tables;
        Directions::of(&measured(tables, 40.0, flows, held))
    };
    let flows: Vec<_> = tables.flows.iter().map(|row| (row, FORWARD)).collect();
    let both = of(flows.clone(), &[Hold::Cwnd, Hold::App]);
    let mbps = both.ways[FORWARD].capacity_mbps.as_ref().expect("the download filled it");
    // The bin in which the application begins has no download any more.
    assert!(mbps[20..95].iter().chain(&mbps[105..]).all(|mbps| is_about(*mbps, 10.0 * OVERHEAD, 0.01)), "{mbps:?}");
    let (bytes, basis) = buffer(&both, FORWARD);
    assert!(is_about(bytes, 125e3, 0.05) && basis == Basis::InFlight, "{bytes} {basis:?}");
    // As far as anybody knows, an application that fills it is bulk; the buffer has to hold what both had in flight.
    let bulk = of(flows.clone(), &[Hold::Cwnd, Hold::Cwnd]);
    assert!(is_about(bulk.ways[FORWARD].capacity_mbps.as_ref().expect("used")[300], OVERHEAD, 0.01));
    // The application alone tells what the direction carried at least.
    let alone = of(flows[1..].to_vec(), &[Hold::App]);
    let way = &alone.ways[FORWARD];
    assert!(way.capacity_mbps.is_none() && way.buffer.is_none());
    assert!(way.least_mbps.is_some_and(|mbps| is_about(mbps, OVERHEAD, 0.1)), "{:?}", way.least_mbps);
    assert!(alone.capacity_notes().iter().any(|note| note.contains("forward direction, whose capacity is therefore")));
}

#[test]
fn flows_one_after_the_other_fill_the_same_buffer() {
    let at = |t_s: f64| if t_s < 20.0 { [(10.0, 100.0), (0.0, 0.0)] } else { [(0.0, 0.0), (10.0, 100.0)] };
    let tables = tables([(0.0, 20.0), (20.0, 40.0)], false, at);
    let flows = tables.flows.iter().map(|row| (row, FORWARD)).collect();
    let (bytes, _) = buffer(&Directions::of(&measured(&tables, 40.0, flows, Vec::new())), FORWARD);
    assert!(is_about(bytes, 125e3, 0.05), "{bytes}");
}
