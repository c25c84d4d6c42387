//! A split proxy at the core, and the radio reports that it receives.

use crate::{Cc, ProxyPolicy};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Span};

/// A proxy at the core that splits the TCP connections between hosts and UEs. With a policy other than `split`, it is RAPID:
/// it divides among the flows of a UE what the cell reports that the UE can receive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Proxy {
    /// How the proxy sets receive windows of the wired leg, and windows and pacing of the radio leg.
    pub policy: ProxyPolicy,
    /// Interval between two updates of the windows.
    pub tick: Span,
    /// Congestion control of the proxy's own connections. On the radio leg, it rules where the policy does not.
    pub cc: Cc,
    /// Bytes that the proxy holds at most of each connection and direction.
    pub buffer: Bytes,
    /// The cell's reports to the proxy.
    pub reports: Reports,
}

impl Default for Proxy {
    fn default() -> Proxy {
        Proxy {
            policy: ProxyPolicy::default(),
            tick: Span::from_millis(1),
            cc: Cc::default(),
            buffer: Bytes::new(16_000_000),
            reports: Reports::default(),
        }
    }
}

impl Proxy {
    /// Returns whether there is one.
    pub fn exists(&self) -> bool {
        self.policy != ProxyPolicy::None
    }
}

/// The reports of cells on the UEs that they serve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reports {
    /// Interval between two reports on a UE.
    pub period: Span,
    /// Time that a report takes to the proxy.
    pub delay: Span,
    /// Probability that a report is lost.
    pub loss: f64,
    /// The reported capacity as a multiple of the true one, to see what wrong reports cost.
    pub factor: f64,
}

impl Default for Reports {
    fn default() -> Reports {
        Reports { period: Span::from_millis(1), delay: Span::ZERO, loss: 0.0, factor: 1.0 }
    }
}
