//! Default links, the names of reverse links, and which links can have their queue in a host.

use crate::faults::Check;
use crate::{Delay, Flow, Link, Queue};

pub(super) fn reverse_name(name: &str) -> String {
    format!("{name}-reverse")
}

/// Returns a duplex link without delay and loss.
pub(super) fn plain_link(name: String, from: &str, to: &str) -> Link {
    Link {
        name,
        from: from.to_owned(),
        to: to.to_owned(),
        duplex: true,
        rate: None,
        delay: Delay::default(),
        jitter: None,
        reordering: None,
        loss: None,
        queue: Queue::default(),
        queue_in_host: false,
        overhead: Default::default(),
        pep: false,
        pep_report_loss: 0.0,
        reverse: None,
    }
}

/// Checks that every route over `link`, whose queue is in a host, begins with it. It is the link `index` of the file.
pub(super) fn check_queue_in_host(link: &str, flows: &[Flow], index: usize, c: &mut Check) {
    let not_first = |route: &[String]| route.iter().skip(1).any(|name| name == link);
    let routes = flows.iter().flat_map(|flow| [(flow, &flow.from, &flow.route), (flow, &flow.to, &flow.return_route)]);
    for (flow, host, route) in routes {
        if not_first(route) {
            let message = format!(
                "the route of flow `{}` from `{host}` comes to `{link}` over `{}`, but a queue in a host is that of the first \
                 link of all routes over it; use a link that begins at the host, or remove `queue_in_host`",
                flow.name, route[0]
            );
            return c.key("links", |c| c.index(index, |c| c.key("queue_in_host", |c| c.wrong(message))));
        }
    }
}
