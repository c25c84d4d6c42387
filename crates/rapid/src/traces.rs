//! Each policy over networks that change at random, as tables of what it decides in each 400 ms. The other tests say what is
//! right; a change that none of them is about shows here, and from which moment on.

use std::fmt::Write;

use crate::fluid::{Draw, Lab, Reports};
use crate::{Best, Policy, Published};
use units::Span;

const LINES: u64 = 30;

/// Capacities, demands, traffic of others, round-trip times and reports change now and then; flows open, pause and close.
fn table(policy: Policy, seed: u64) -> String {
    let mut draw = Draw(seed);
    let mut lab = Lab::new(policy, Reports { queue: seed.is_multiple_of(2), ..Reports::default() });
    let most = [40.0, 400.0, 6.0][seed as usize % 3];
    let ues = [most, most / 3.0].map(|capacity| lab.ue(capacity));
    let mut open = Vec::new();
    let mut out = String::new();
    for line in 1..=LINES {
        lab.begin();
        for _ in 0..4 {
            let ue = draw.one_of(&ues);
            match draw.below(12) {
                0 => lab.set_capacity(ue, most * (0.05 + draw.below(100) as f64 / 50.0)),
                1 => lab.unseen(ue, most * draw.one_of(&[0.0, 0.0, 0.1, 0.5])),
                2 => lab.set_reports(Reports {
                    period: Span::from_millis(draw.one_of(&[1, 10, 20, 40, 200, 1000])),
                    factor: draw.one_of(&[1.0, 1.0, 0.8, 1.3, 0.4, 3.0, 0.05, 20.0]),
                    bits: draw.below(4) > 0,
                    queue: draw.below(2) == 0,
                    ..Reports::default()
                }),
                3 if open.len() > 3 => {
                    let flow = open.swap_remove(draw.below(open.len() as u64) as usize);
                    lab.close(flow);
                }
                4..8 if !open.is_empty() => {
                    let flow = draw.one_of(&open);
                    lab.write(
                        flow,
                        draw.one_of(&[None, Some(0.0), Some(0.01), Some(0.1), Some(0.4)]).map(|part| part * most),
                    );
                }
                _ if open.len() < 8 => {
                    let flow = lab.flow(ue, draw.one_of(&[2, 20, 50, 120]), draw.one_of(&[None, Some(most / 10.0)]));
                    if draw.below(2) == 0 {
                        lab.in_segments(flow);
                    }
                    open.push(flow);
                }
                _ => {}
            }
            lab.run(0.1);
        }
        let doubts = ues.map(|ue| lab.doubt(ue).map_or("-".to_owned(), |doubt| format!("{doubt:?}")));
        let [count, receive_window, receive_buffer, unsent, window, pacing, rate] = lab.decided;
        writeln!(
            out,
            "{:>5} ms  decisions {count}  receive {receive_window} {receive_buffer}  unsent {unsent}  window {window}  pacing \
             {pacing}  rate {rate}  delay {} us  doubt {} {}",
            line * 400,
            lab.delay.as_micros(),
            doubts[0],
            doubts[1]
        )
        .expect("a string takes it");
    }
    out
}

macro_rules! traces {
    ($($name:ident: $policy:expr;)*) => {$(
        #[test]
        fn $name() {
            let tables: Vec<String> = (1..=6).map(|seed| table($policy, seed)).collect();
            insta::assert_snapshot!(stringify!($name), tables.join("\n"));
        }
    )*};
}

traces! {
    best: Policy::Best(Best::default());
    published: Policy::Published(Published::default());
    published_as_in_the_simulator: Policy::Published(Published::simulator());
    published_as_in_the_kernel_module: Policy::Published(Published::kernel_module());
    milli_proxy: Policy::MilliProxy;
}
