//! What limited each flow of a measurement, for people and for programs.

use observe::kernel::{Flow, Way};
use observe::limits::Limits;
use serde_json::{Value, json};

/// Where the time of each flow went: a line for those that are alike, which names them unless they are all.
pub(super) fn lines(flows: &[&Flow]) -> Vec<String> {
    let mut alike: Vec<((&str, String), Vec<String>)> = Vec::new();
    for flow in flows {
        let (what, number) = ((flow.congestion.as_str(), parts(flow)), flow.number.to_string());
        match alike.iter_mut().find(|(known, _)| *known == what) {
            Some((_, numbers)) => numbers.push(number),
            None => alike.push((what, vec![number])),
        }
    }
    if let [((_, parts), _)] = &alike[..] {
        return vec![parts.clone()];
    }
    let has_several = flows.windows(2).any(|two| two[0].congestion != two[1].congestion);
    let line = |((control, parts), numbers): ((&str, String), Vec<String>)| {
        let flows = if numbers.len() == 1 { "flow" } else { "flows" };
        let control = if has_several && !control.is_empty() { format!(" ({control})") } else { String::new() };
        format!("{flows} {}{control}: {parts}", numbers.join(", "))
    };
    alike.into_iter().map(line).collect()
}

/// Where a flow's time went, of those parts that had any.
fn parts(flow: &Flow) -> String {
    flow.limits().unwrap_or_default().words()
}

/// What a flow shows, for programs. Its bytes are null if nobody counted them, its congestion control if nobody told it. What limited it is null unless its sender's kernel
/// counts it, and is at this end or told by the server.
pub(super) fn describe(flow: &Flow) -> Value {
    let limits = flow.limits().filter(Limits::is_known);
    let counted_by = if flow.way == Way::Up && !flow.acknowledged { "server" } else { "client" };
    json!({
        "flow": flow.number,
        "cc": Some(flow.congestion.as_str()).filter(|name| !name.is_empty()),
        "bytes": flow.total(),
        "counted_by": flow.total().map(|_| counted_by),
        "limited": limits.map(|limits| json!({
            "app": limits.share(limits.app),
            "cwnd": limits.share(limits.cwnd),
            "rwnd": limits.share(limits.rwnd),
            "pacing": limits.share(limits.pacing),
            "sndbuf": limits.share(limits.buffer),
            "other": limits.share(limits.unknown),
        })),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use observe::kernel::{Remote, State};
    use observe::progress::Samples;
    use units::{Span, Time};
    use wire::tcp_info::TcpInfo;

    /// A flow of a second, of which its kernel counted so many milliseconds as busy, and of these so many as held back by the receive
    /// window.
    fn flow(number: usize, congestion: &str, counted: Option<[u64; 2]>) -> Flow {
        let sample = |ms: u64| {
            let [busy, rwnd] = counted.unwrap_or_default().map(|part| part * ms);
            let of = |micros: u64| counted.map(|_| micros);
            let info = TcpInfo {
                busy_time: of(busy),
                rwnd_limited: of(rwnd),
                sndbuf_limited: of(0),
                snd_cwnd: 10,
                notsent_bytes: 1,
                ..TcpInfo::default()
            };
            State { at: Time::from_nanos(ms * 1_000_000), raw: Box::default(), info, bbr: None, delivered: ms }
        };
        Flow {
            way: Way::Up,
            number,
            congestion: congestion.into(),
            start: Time::ZERO,
            bytes: Samples::default(),
            acknowledged: false,
            ended: None,
            before: None,
            samples: vec![sample(0), sample(1_000)],
            remote: Remote::default(),
            passages: Vec::new(),
            failure: None,
        }
    }

    fn lines_of(flows: &[Flow]) -> Vec<String> {
        lines(&flows.iter().collect::<Vec<_>>())
    }

    #[test]
    fn each_flow_that_differs_has_a_line() {
        let [window, receiver] = [Some([1_000, 0]), Some([1_000, 250])];
        let alike = [flow(0, "cubic", window), flow(1, "cubic", window)];
        assert_eq!(lines_of(&alike), ["congestion window 100 %"]);
        let controls = [flow(0, "cubic", window), flow(1, "bbr", window), flow(2, "cubic", window)];
        assert_eq!(lines_of(&controls), ["flows 0, 2 (cubic): congestion window 100 %", "flow 1 (bbr): pacing 100 %"]);
        let receivers = [flow(0, "cubic", window), flow(1, "cubic", receiver), flow(2, "cubic", None)];
        let expected = [
            "flow 0: congestion window 100 %",
            "flow 1: congestion window 75 %, receive window 25 %",
            "flow 2: unknown",
        ];
        assert_eq!(lines_of(&receivers), expected);
    }

    #[test]
    fn programs_get_the_shares_of_each_flow_or_null() {
        let shares = describe(&flow(1, "bbr", Some([500, 250])));
        assert_eq!((&shares["flow"], &shares["cc"]), (&json!(1), &json!("bbr")));
        assert_eq!(describe(&flow(0, "", None))["cc"], Value::Null);
        let expected = json!({ "app": 0.5, "cwnd": 0.0, "rwnd": 0.25, "pacing": 0.25, "sndbuf": 0.0, "other": 0.0 });
        assert_eq!(shares["limited"], expected);
        let mut stuck = flow(0, "cubic", Some([1_000, 250]));
        stuck.samples[1].info.sndbuf_limited = Some(500_000);
        let expected = json!({ "app": 0.0, "cwnd": 0.25, "rwnd": 0.25, "pacing": 0.0, "sndbuf": 0.5, "other": 0.0 });
        assert_eq!(describe(&stuck)["limited"], expected);
        assert_eq!(lines(&[&stuck]), ["congestion window 25 %, receive window 25 %, send buffer 50 %"]);
        assert_eq!(describe(&flow(0, "cubic", None))["limited"], Value::Null);
        let download = Flow { way: Way::Down, ..flow(0, "cubic", Some([500, 250])) };
        assert_eq!((&describe(&download)["limited"], lines(&[&download])), (&Value::Null, vec!["unknown".to_owned()]));
        let samples = flow(0, "cubic", Some([500, 250])).samples;
        let told = Flow { remote: Remote { samples, ..Remote::default() }, ..download };
        assert_eq!(describe(&told)["limited"]["rwnd"], json!(0.25));
    }

    #[test]
    fn programs_get_the_bytes_of_each_flow_and_who_counted_them_or_null() {
        let upload = flow(0, "cubic", None);
        let of = |flow: &Flow| {
            let described = describe(flow);
            (described["bytes"].clone(), described["counted_by"].clone())
        };
        assert_eq!(of(&upload), (Value::Null, Value::Null));
        let mut bytes = Samples::default();
        bytes.finish(Span::from_secs(1), 900);
        let upload = Flow { bytes, ..upload };
        assert_eq!(of(&upload), (json!(900), json!("server")));
        let cut = Flow { acknowledged: true, ..upload.clone() };
        assert_eq!(of(&cut), (json!(900), json!("client")));
        assert_eq!(of(&Flow { way: Way::Down, ..upload }), (json!(900), json!("client")));
    }
}
