//! Links that reorder, and what TCP makes of it: RACK's window widens, and needless reactions are undone.

use crate::common::{flow, run};
use record::tables::FlowRow;

/// What became of a download of 30 s at 20 Mbit/s and 50 ms, as (goodput in Mbit/s, retransmitted share in %, undone
/// reactions).
fn download(link: &str, cc: &str) -> (f64, f64, u64) {
    let tables = run(&format!(
        "duration = \"33 s\"\nwarmup = \"3 s\"\n[dumbbell]\nrate = \"20 Mbit/s\"\nrtt = \"50 ms\"\n\
         queue = {{ kind = \"drop-tail\", bytes = \"1 MB\" }}\n{link}\n[[flows]]\nname = \"f\"\ncc = \"{cc}\"\n\
         [tcp]\nreceive_buffer = \"400 kB\"\n"
    ));
    let f: FlowRow<'_> = flow(&tables, "f");
    let share = 100.0 * f.retransmitted.unwrap() as f64 / f.segments_sent.unwrap() as f64;
    let all = (f.goodput_mbps, share, f.undos.unwrap());
    println!("{cc} {link}: {all:?}");
    all
}

#[test]
fn reordering_within_a_quarter_of_the_round_trip_costs_little() {
    for cc in ["cubic", "new-reno"] {
        let (goodput, retransmitted, _) = download("reordering = { share = 0.01, delay = \"5 ms\" }", cc);
        assert!(goodput > 18.0, "{goodput}");
        assert!(retransmitted < 0.05, "{retransmitted}");
    }
}

#[test]
fn beyond_it_d_sacks_widen_the_window_and_reactions_are_undone() {
    // Later than a quarter of the round trip, and within all of it: D-SACKs for the first late packets are enough.
    let (goodput, retransmitted, undos) = download("reordering = { share = 0.01, delay = \"30 ms\" }", "cubic");
    assert!(undos > 0);
    assert!(retransmitted < 0.05, "{retransmitted}");
    assert!(goodput > 17.0, "{goodput}");
    // RACK's window ends at a round trip, so packets that are later are sent again, and the reaction is undone each time.
    let (_, retransmitted, undos) = download("reordering = { share = 0.01, delay = \"60 ms\" }", "cubic");
    assert!(undos > 20);
    assert!((0.05..0.7).contains(&retransmitted), "{retransmitted}");
}

#[test]
fn packets_that_overtake_are_delivered_once_and_nothing_is_lost() {
    let tables = run(
        "duration = \"10 s\"\n[[links]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\nrate = \"8 Mbit/s\"\ndelay = \"5 ms\"\n\
         reordering = { share = 1, spread = \"20 ms\" }\n[[flows]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n\
         traffic = { kind = \"cbr\", rate = \"6 Mbit/s\", packet = \"1000 B\" }\n",
    );
    let f = flow(&tables, "f");
    assert_eq!(f.lost_packets, Some(0));
    // One-way delays are uniform over 20 ms from 6 ms on.
    let off = |ms: Option<f64>, wanted: f64| assert!((ms.unwrap() - wanted).abs() < 0.5, "{ms:?} for {wanted}");
    off(f.owd_p5_ms, 7.0);
    off(f.owd_p50_ms, 16.0);
    off(f.owd_p95_ms, 25.0);
}
