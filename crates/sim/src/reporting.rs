//! The reports of all cells to the proxy: when they are made, and which are lost.

use crate::middlebox::ProxyBox;
use crate::network::radio::Radio;
use crate::network::reports::Reporter;
use units::Time;

/// The reports of all cells to the proxy.
pub(crate) struct Reports {
    reporter: Reporter,
    of: scenario::Reports,
    random: link::Random,
}

impl Reports {
    /// Sends reports as `of` says.
    pub(crate) fn new(reporter: Reporter, of: &scenario::Reports, random: link::Random) -> Reports {
        Reports { reporter, of: of.clone(), random }
    }

    /// Makes the reports that are due at `now`, passes those that are not lost to `proxy`, and returns when the next are due.
    pub(crate) fn send(&mut self, radio: &mut Radio, proxy: &mut ProxyBox, now: Time) -> Time {
        let Reports { reporter, of, random } = self;
        let mut reports = Vec::new();
        radio.report(reporter, now, |ue| proxy.wants(ue), |ue, report| reports.push((ue, report)));
        for (ue, report) in reports {
            if of.loss == 0.0 || link::unit(random) >= of.loss {
                proxy.send_report(now + of.delay, ue, report);
            }
        }
        now + of.period
    }
}
