//! Checks of the table `proxy` of a radio network.

use super::*;
use crate::proxy::{Proxy, ProxyPolicy, Reports};

/// The shortest interval between updates and between reports: one slot of the highest numerology.
const SHORTEST: Span = Span::from_nanos(62_500);
/// The least queue in the radio: a subframe of LTE. A cell that serves whole slots is idle in some of them below that.
const LEAST_QUEUE: Span = Span::from_millis(1);
/// Resource elements of a block that count for a transport block's size, at most (38.214 5.1.3.2).
const MOST_ELEMENTS: u8 = 156;
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
        c.key("policy", |c| policy(&proxy.policy, c));
        let Reports { period, delay, loss, factor } = proxy.reports;
        c.key("reports", |c| {
            c.range("period", period, SHORTEST..=SECOND * 10);
            c.range("delay", delay, Span::ZERO..=SECOND * 10);
            c.probability("loss", loss);
            c.range("factor", factor, 0.01..=100.0);
        });
    });
}

pub(crate) fn policy(of: &ProxyPolicy, c: &mut Check) {
    match *of {
        ProxyPolicy::Published { slow_threshold, alpha, blocks: _, elements } => {
            c.range("slow_threshold", slow_threshold, 0.0..=1.0);
            c.range("alpha", alpha, 0.0..=1.0);
            if let Some(elements) = elements {
                c.range("elements", elements, 1..=MOST_ELEMENTS);
            }
        }
        ProxyPolicy::Best { radio_target, proxy_target } => {
            c.range("radio_target", radio_target, LEAST_QUEUE..=SECOND);
            c.range("proxy_target", proxy_target, Span::ZERO..=SECOND);
        }
        ProxyPolicy::None | ProxyPolicy::Split | ProxyPolicy::Artefact { .. } | ProxyPolicy::MilliProxy => {}
    }
}
