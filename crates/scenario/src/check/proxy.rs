//! Checks of the table `proxy` of a radio network.

use super::*;
use crate::proxy::{Proxy, Reports};

/// The shortest interval between updates and between reports: one slot of the highest numerology.
const SHORTEST: Span = Span::from_nanos(62_500);
const SECOND: Span = Span::from_secs(1);

pub(super) fn check(proxy: Option<&Proxy>, pep: bool, c: &mut Check) {
    let Some(proxy) = proxy else { return };
    c.key("proxy", |c| {
        if pep && proxy.exists() {
            c.wrong("a proxy splits the connections that the PEP at the same node would report on; use one of `pep` and `proxy`");
        }
        c.range("tick", proxy.tick, SHORTEST..=SECOND);
        c.range("buffer", proxy.buffer, Bytes::new(65_536)..=Bytes::new(1 << 30));
        c.key("cc", |c| proxy.cc.check(c));
        c.key("policy", |c| proxy.policy.check(c));
        let Reports { period, delay, loss, factor } = proxy.reports;
        c.key("reports", |c| {
            c.range("period", period, SHORTEST..=SECOND * 10);
            c.range("delay", delay, Span::ZERO..=SECOND * 10);
            c.probability("loss", loss);
            c.range("factor", factor, 0.01..=100.0);
        });
    });
}
