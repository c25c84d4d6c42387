//! Any sequence of calls, with any numbers.

use crate::fluid::report;
use crate::{Best, Config, Control, Policy, Published, Rapid, Sample};
use units::{Span, Time};

const POLICIES: [fn() -> Policy; 3] =
    [|| Policy::Published(Published::default()), || Policy::Best(Best::default()), || Policy::MilliProxy];

#[test]
fn no_report_and_no_sample_panics_or_starves_a_flow() {
    bolero::check!().with_type::<Vec<(u8, u32, u64, u32)>>().for_each(|operations| {
        for policy in POLICIES {
            let config = Config { policy: policy(), ..Config::default() };
            let floor = u64::from(2 * 1448u32);
            let mut rapid = Rapid::new(config);
            let (mut now, mut open, mut opened) = (Time::ZERO, Vec::new(), 0);
            for &(what, span, big, small) in operations {
                now += Span::from_micros(u64::from(span % 2_000_000));
                match what % 4 {
                    0 => {
                        open.push(opened);
                        rapid.open(opened, u32::from(what / 64), 1448, now);
                        opened += 1;
                    }
                    1 if !open.is_empty() => rapid.close(open.swap_remove(what as usize % open.len())),
                    2 => {
                        let mut report = report(now, Span::from_micros(u64::from(small % 3_000_000)), 0.0);
                        report.acked_bits = big;
                        report.n_prb = small as u16;
                        report.slots = small >> 4;
                        report.prbs = Some(big >> 7);
                        report.cell_prbs = (what & 16 == 0).then_some(big >> 9);
                        report.active_ues = (what & 32 == 0).then_some(small as u16 >> 3);
                        report.bits_per_prb = (what & 8 == 0).then(|| f64::from_bits(big)).filter(|b| *b >= 0.0);
                        (report.blocks, report.failed) = (small, span);
                        rapid.on_report(u32::from(what / 64), &report, now);
                    }
                    _ => {
                        let rtt = |n: u32| (n & 1 == 0).then(|| Span::from_micros(u64::from(n % 10_000_000)));
                        let sample = Sample {
                            arrived: big >> 16,
                            delivered: big >> 16 >> (small % 48),
                            in_flight: u64::from(small),
                            wan_rtt: rtt(span),
                            wan_min_rtt: rtt(small),
                            wan_receive_rtt: rtt(span >> 2),
                            ran_rtt: rtt(small >> 1),
                            ran_min_rtt: rtt(span >> 1),
                        };
                        open.iter().filter(|_| span & 1 == 0).for_each(|&flow| rapid.on_progress(flow));
                        rapid.update(now, &mut |_| sample, &mut |_, decision| {
                            for bytes in [decision.receive_window, decision.receive_buffer, decision.window] {
                                assert!(bytes.is_none_or(|bytes| bytes >= floor), "{decision:?}");
                            }
                        });
                    }
                }
            }
        }
    });
}
