//! Nothing appears and nothing vanishes: packets on links, bytes of transfers, time of senders, in random small networks.

use crate::common::run;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use record::Tables;
use record::tables::FlowRow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Draws scenarios.
struct Draw(Xoshiro256PlusPlus);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }

    fn one_of(&mut self, choices: &[&str]) -> String {
        choices[self.below(choices.len() as u64) as usize].to_owned()
    }

    /// Mostly nothing, otherwise `key = value`.
    fn maybe(&mut self, key: &str, value: &str) -> String {
        if self.below(3) == 0 { format!("{key} = {value}\n") } else { String::new() }
    }
}

/// What is known of a drawn link.
struct LinkOf {
    /// Longest time from the start of service to delivery, in ns, if it is known.
    longest: Option<u64>,
}

/// A random tree of links with random flows. With `finite` each flow ends long before the run does.
fn scenario(seed: u64, finite: bool) -> (String, BTreeMap<String, LinkOf>) {
    let mut d = Draw(Xoshiro256PlusPlus::seed_from_u64(seed));
    let duration = if finite { "400 s" } else { "2.5 s" };
    // An odd interval, so that no sample is at the very moment of a packet.
    let mut text = format!("duration = \"{duration}\"\nseed = {seed}\n");
    text += if finite {
        "record = { samples = \"off\" }\n"
    } else {
        "record = { samples = \"97003 us\", events = true }\n"
    };
    let nodes = 2 + d.below(4);
    let mut links = BTreeMap::new();
    for node in 1..nodes {
        let (name, towards, delay) = (format!("l{node}"), d.below(node), d.below(25_000));
        let rate_kbit = 300 + d.below(9_000);
        let infinite = d.below(6) == 0;
        let trace_like = !infinite && d.below(8) == 0;
        let queue = d.one_of(&[
            "{ kind = \"drop-tail\", packets = 7 }",
            "{ kind = \"drop-tail\", bytes = \"40 kB\" }",
            "{ kind = \"pfifo-fast\", packets = 30 }",
            "{ kind = \"codel\", packets = 50 }",
            "\"codel\"",
            "{ kind = \"fq\", packets = 25 }",
            "{ kind = \"fq-codel\", packets = 60 }",
            "\"fq-codel\"",
        ]);
        write!(text, "[[links]]\nname = \"{name}\"\nfrom = \"n{node}\"\nto = \"n{towards}\"\ndelay = \"{delay} us\"\n")
            .unwrap();
        if trace_like {
            writeln!(text, "rate = {{ kind = \"synthetic\", mean = \"4 Mbit/s\", peak = \"9 Mbit/s\" }}").unwrap();
        } else if !infinite {
            writeln!(text, "rate = \"{rate_kbit} kbit/s\"").unwrap();
        }
        if !infinite {
            writeln!(text, "queue = {queue}").unwrap();
        }
        text += &d.maybe("loss", "0.01");
        text += &d.maybe("overhead", "\"14 B\"");
        text += &d.maybe("jitter", "\"2 ms\"");
        let jitter_us = 2_000;
        let transmission = if infinite { 0 } else { 1514 * 8 * 1_000_000 / rate_kbit };
        let longest = (delay + jitter_us) * 1000 + transmission;
        for name in [name.clone(), format!("{name}-reverse")] {
            links.insert(name, LinkOf { longest: (!trace_like).then_some(longest) });
        }
    }
    for flow in 0..1 + d.below(5) {
        let (from, mut to) = (d.below(nodes), d.below(nodes - 1));
        to += u64::from(to >= from);
        let magnitude = 12 + d.below(9);
        let size = 1 + d.below(1 << magnitude);
        let traffic = if finite || d.below(2) == 0 {
            match d.below(4) {
                0 => format!(
                    "{{ kind = \"short-flows\", size = \"{}\", interval = \"80 ms\", count = 7 }}",
                    size / 8 + 1
                )
                .replace("\", interval", " B\", interval"),
                1 => format!(
                    "{{ kind = \"pages\", objects = {}, object_size = \"{} B\", think = \"100 ms\", count = 2 }}",
                    1 + d.below(12),
                    size / 16 + 1
                ),
                _ => format!("{{ kind = \"transfer\", size = \"{size} B\" }}"),
            }
        } else {
            d.one_of(&[
                "\"bulk\"",
                "{ kind = \"on-off\", on = \"300 ms\", off = \"200 ms\" }",
                "{ kind = \"cbr\", rate = \"1 Mbit/s\", packet = \"700 B\" }",
                "{ kind = \"ppbp\", burst_rate = \"500 kbit/s\", mean_burst = \"200 ms\", arrival_rate = 5.0 }",
            ])
        };
        let cc = d.one_of(&["cubic", "new-reno", "bbr", "vegas", "westwood", "yeah", "scalable"]);
        let start = d.below(500_000);
        write!(
            text,
            "[[flows]]\nname = \"f{flow}\"\nfrom = \"n{from}\"\nto = \"n{to}\"\ncc = \"{cc}\"\nstart = \"{start} us\"\ntraffic = {traffic}\n"
        )
        .unwrap();
        match d.below(4) {
            0 => text += "tcp = { ecn = true }\n",
            1 => text += "tcp = { window_clamp = \"20 kB\", pacing = true }\n",
            2 => text += "tcp = { mss = 536, initial_window = 3 }\n",
            _ => {}
        }
        // Constant rates have no end of their own.
        if finite {
            text += "stop = \"200 s\"\n";
        }
    }
    (text, links)
}

fn dropped(row: &record::tables::LinkRow<'_>) -> u64 {
    row.dropped_overflow + row.dropped_control + row.dropped_loss
}

/// What holds of every flow at the end of every run.
fn check_flow(f: &FlowRow<'_>, mss: u64, text: &str) {
    let shares = [f.limited_app, f.limited_cwnd, f.limited_rwnd, f.limited_pacing, f.limited_sndbuf, f.limited_other];
    if f.transport == "udp" {
        assert_eq!(shares, [None; 6], "{text}");
    } else {
        let shares = shares.map(|share| share.expect("TCP knows"));
        assert!(shares.iter().all(|s| (0.0..=1.0 + 1e-9).contains(s)), "{shares:?}\n{text}");
        let sum: f64 = shares.iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "the shares of {} sum to {sum}\n{text}", f.flow);
    }
    let payload = if f.transport == "udp" { 1472 } else { mss };
    // After a timeout, SYNs are sent again, too, which are no data.
    let fresh = f.segments_sent.unwrap() - f.retrans_fast.unwrap() - f.retrans_tlp.unwrap();
    assert!(f.bytes <= fresh * payload, "{f:?}\n{text}");
}

/// The flows' losses are the links' drops.
fn check_losses(tables: &Tables, text: &str) {
    let links: u64 = tables.links.iter().map(|l| dropped(&l)).sum();
    let flows: u64 = tables.flows.iter().map(|f| f.lost_packets.unwrap()).sum();
    assert_eq!(links, flows, "\n{text}");
}

#[test]
fn a_drained_network_holds_nothing_and_every_transfer_has_exactly_its_size() {
    let (mut transfers, mut drops) = (0, 0);
    for seed in 0..60 {
        let (text, _) = scenario(seed, true);
        let tables = run(&text);
        for l in tables.links.iter() {
            assert_eq!(l.packets_in, l.packets_out + dropped(&l), "{}\n{text}", l.link);
            drops += dropped(&l);
        }
        check_losses(&tables, &text);
        for f in tables.flows.iter() {
            check_flow(&f, 1448, &text);
            let own = || tables.transfers.iter().filter(|t| t.flow == f.flow);
            assert!(own().next().is_some() && own().all(|t| t.completion_s.is_some()), "{}\n{text}", f.flow);
            assert_eq!(own().map(|t| t.bytes).sum::<u64>(), f.bytes, "{}\n{text}", f.flow);
            assert!(f.completed, "{}\n{text}", f.flow);
            transfers += own().count();
        }
        // What the scenario says is what came.
        for (flow, size) in sizes(&text) {
            assert_eq!(crate::common::flow(&tables, &flow).bytes, size, "\n{text}");
        }
    }
    println!("{transfers} transfers, {drops} drops");
    assert!(transfers > 300 && drops > 1000);
}

/// The flows of a scenario's text that are single transfers, and their sizes.
fn sizes(text: &str) -> Vec<(String, u64)> {
    let flows = text.split("[[flows]]").skip(1);
    let size = |flow: &str| {
        let (_, rest) = flow.split_once("kind = \"transfer\", size = \"")?;
        let name = flow.split('"').nth(1)?.to_owned();
        Some((name, rest.split_once(" B\"")?.0.parse().ok()?))
    };
    flows.filter_map(size).collect()
}

/// Times of what happened on one link, in order.
#[derive(Default)]
struct Story {
    entered: Vec<u64>,
    refused: Vec<u64>,
    lost: Vec<u64>,
    left: Vec<u64>,
}

#[test]
fn what_entered_a_link_left_it_was_dropped_or_is_in_its_queue_or_on_its_wire() {
    let mut looks = 0;
    for seed in 1000..1060 {
        let (text, links) = scenario(seed, false);
        let tables = run(&text);
        let mut stories: BTreeMap<&str, Story> = BTreeMap::new();
        let events: Vec<_> = tables.events.iter().collect();
        for e in events.iter().filter(|e| !e.link.is_empty()) {
            let story = stories.entry(e.link).or_default();
            match (e.kind, e.detail) {
                ("enqueue", _) => story.entered.push(e.t_ns),
                ("drop", "loss") => story.lost.push(e.t_ns),
                ("drop", _) => story.refused.push(e.t_ns),
                ("deliver", _) => story.left.push(e.t_ns),
                other => panic!("{other:?} happened on a link"),
            }
        }
        let by = |times: &[u64], t: u64| times.partition_point(|&at| at <= t) as u64;
        for l in tables.links.iter() {
            let Some(s) = stories.get(l.link) else {
                assert_eq!((l.packets_in, l.packets_out), (0, 0));
                continue;
            };
            // The counters are what happened.
            let told = (s.entered.len(), s.left.len(), s.lost.len(), s.refused.len());
            let counted = (l.packets_in, l.packets_out, l.dropped_loss, l.dropped_overflow + l.dropped_control);
            assert_eq!((told.0 as u64, told.1 as u64, told.2 as u64, told.3 as u64), counted, "{}\n{text}", l.link);
            assert!(l.packets_in >= l.packets_out + dropped(&l), "{}\n{text}", l.link);
            let Some(longest) = links[l.link].longest else { continue };
            for q in tables.queues.iter().filter(|q| q.link == l.link) {
                let t = (q.t_s * 1e9).round() as u64;
                let (entered, refused) = (by(&s.entered, t), by(&s.refused, t));
                assert!(entered >= refused + q.packets, "{} at {t}\n{text}", l.link);
                // What is no longer in the queue was served: it is lost, has left, or is on the wire and leaves in time.
                let on_the_wire_or_out = entered - refused - q.packets - by(&s.lost, t);
                assert!(on_the_wire_or_out >= by(&s.left, t), "{} at {t}\n{text}", l.link);
                if t + longest < 2_500_000_000 {
                    assert!(
                        by(&s.left, t + longest) >= on_the_wire_or_out,
                        "{} at {t}: a packet is missing\n{text}",
                        l.link
                    );
                }
                looks += 1;
            }
        }
        check_losses(&tables, &text);
        tables.flows.iter().for_each(|f| check_flow(&f, 1448, &text));
    }
    assert!(looks > 1000, "{looks}");
}
