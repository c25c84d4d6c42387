//! Our table `tcp_info` alone: the kernel's state of connections as raw bytes, decoded again.
//!
//! The raw bytes decide, as far as the kernel has filled them in; the decoded columns beside them are not read, except for what BBR
//! tells, which is not part of `TCP_INFO`.

use std::path::Path;

use record::Table as _;
use record::tables::TcpInfos;
use units::{Span, Time};
use wire::tcp_info::{BbrInfo, LEAST, TcpInfo};

use crate::collector::{Collector, Error, open};
use crate::kernel::{self, Connection, MOST_STATES, States};

/// A connection: point, flow and number.
type Key = (u32, String, u32);
/// Connections that are read.
const MOST_CONNECTIONS: usize = 16_384;
/// Points that are read.
const MOST_POINTS: usize = 1_000;

/// Reads a table.
pub(crate) fn analyse(path: &Path, all: &mut Collector<'_>) -> Result<(), Error> {
    let invalid = |what: String| Error::Invalid(format!("{}: {what}", path.display()));
    let file = open(path)?;
    let size = file.metadata().map_err(Error::io(path))?.len();
    let (table, every) = TcpInfos::read_thinned(file, MOST_STATES)
        .map_err(|error| invalid(format!("no table tcp_info of ours: {}", error.to_string().escape_debug())))?;
    if every > 1 {
        all.note(path, format_args!("of every {every} moments one is shown: it is too long"));
    }
    let mut states: States<Key> = States::default();
    let (mut short, mut count) = (0u64, 0usize);
    let mut last: Option<Key> = None;
    for row in table.iter() {
        let Some(info) = TcpInfo::decode(row.raw) else {
            short += 1;
            continue;
        };
        if !(0.0..=1e9).contains(&row.t_s) {
            return Err(invalid(format!("a row at {} s: expected 0 to 10^9", row.t_s)));
        }
        if !all.options.wants(row.flow) {
            continue;
        }
        let is_same =
            last.as_ref().is_some_and(|key| (key.0, key.1.as_str(), key.2) == (row.point, row.flow, row.conn));
        let key = match last.take() {
            Some(key) if is_same => key,
            _ => (row.point, row.flow.to_owned(), row.conn),
        };
        let bbr = row.bbr_bw_mbps.filter(|bandwidth| (0.0..1e9).contains(bandwidth)).map(|bandwidth| BbrInfo {
            bandwidth: (bandwidth / 8e-6) as u64,
            min_rtt: row.bbr_min_rtt_us.and_then(|rtt| u32::try_from(rtt).ok()),
            pacing_gain: row.bbr_pacing_gain.filter(|gain| gain.is_finite()).unwrap_or(0.0),
            cwnd_gain: row.bbr_cwnd_gain.filter(|gain| gain.is_finite()).unwrap_or(0.0),
        });
        let mut state = kernel::state(Time::ZERO + Span::from_secs_f64(row.t_s), info, bbr);
        state.raw = row.raw.into();
        states.push(key.clone(), state);
        count += 1;
        last = Some(key);
    }
    if short > 0 {
        let what =
            format!("{short} rows have less than {LEAST} bytes of TCP_INFO (Linux before 4.9) and were left out");
        all.note(path, what);
    }
    if count == 0 {
        return Err(invalid("no row with a state that can be read".to_owned()));
    }
    if states.keys().count() > MOST_CONNECTIONS {
        return Err(invalid(format!("more than {MOST_CONNECTIONS} connections")));
    }
    let mut point = None;
    for ((number, flow, conn), mut states) in states.into_iter() {
        let point = match point {
            Some((known, point)) if known == number => point,
            _ if all.points.len() >= MOST_POINTS => {
                return Err(invalid(format!("more than {MOST_POINTS} points")));
            }
            _ => {
                let mut values = vec![("file", path.display().to_string())];
                if number > 0 || point.is_some() {
                    values.push(("load", number.to_string()));
                }
                point.insert((number, all.point(&values))).1
            }
        };
        states.sort_by_key(|state| state.at);
        states.dedup_by_key(|state| state.at);
        let at_sender = kernel::are_of_sender(&states);
        // A measurement's `upload-bbr` is an upload, too.
        let way = flow.split_once('-').map_or(flow.as_str(), |(way, _)| way);
        let (from, to) = match (way, at_sender) {
            ("upload", true) => ("client", "server"),
            ("download", false) => ("server", "client"),
            (_, true) => ("local", "peer"),
            (_, false) => ("peer", "local"),
        };
        // A receiver's own congestion control is not the one of what it receives.
        let is_bbr = at_sender && states.iter().any(|state| state.bbr.is_some());
        let congestion = if is_bbr { "bbr" } else { "" };
        let one = Connection {
            flow: &flow,
            conn,
            from,
            to,
            congestion,
            at_sender,
            has_senders_rtt: at_sender,
            is_whole: true,
            has_state: true,
            bytes: None,
        };
        all.measured_s += kernel::push(all, point, &one, states);
    }
    all.bytes += size;
    Ok(())
}
