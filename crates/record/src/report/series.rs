//! The series that the report plots: columns over a common first one, thinned.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::Tables;

/// Approximate size of a number in the report, with its comma.
const NUMBER_BYTES: usize = 7;

/// Maximum number of points of a distribution over all copies and runs; that of a single copy may have twice as many.
const DISTRIBUTION_POINTS: usize = 200;

/// Number of windows over which a flow's goodput is averaged. A receiver delivers all data behind a hole at once, and the
/// mean over a single sample would show these bursts instead of the rate.
const GOODPUT_WINDOWS: usize = 120;

/// The subject of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Of<'a> {
    /// The goodput of a flow's copy over time.
    Goodput(&'a str, u32),
    /// The samples of a flow's copy over time.
    Samples(&'a str, u32),
    /// The round-trip time distribution of a flow's copy.
    Rtts(&'a str, u32),
    /// The one-way delay distribution of a flow's copy.
    Owds(&'a str, u32),
    /// The round-trip time distribution of a flow at a point: of all its copies and runs together.
    AllRtts(&'a str),
    /// The one-way delay distribution, likewise.
    AllOwds(&'a str),
    /// The sequence numbers of a flow's copy over time, of a capture.
    Sequence(&'a str, u32),
    /// What a proxy promises a flow's copy and holds for it, over time.
    Proxy(&'a str, u32),
    /// A link's queue over time.
    Queue(&'a str),
    /// The completion times of a flow's transfers, of all copies and runs together.
    Transfers(&'a str),
    /// A UE's measurements, grants and queues over time.
    Radio(&'a str),
    /// The resource blocks of a cell granted to its UEs, over time.
    Cell(&'a str),
    /// The round-trip times of a kind of probe, with its hop limit if it has one.
    Latency(&'a str, Option<u64>),
    /// Where packets waited, over time.
    Waits,
    /// What a real modem tells about its cell of a technology, over time.
    Modem(&'a str, &'a str),
}

/// The kinds of series that the page tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Kind"))]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Goodput,
    Samples,
    Rtts,
    Owds,
    Sequence,
    Proxy,
    Queue,
    Transfers,
    Radio,
    Cell,
    Latency,
    Waits,
    Modem,
}

impl Kind {
    /// What a series of this kind is about.
    pub(super) fn subject(self) -> &'static str {
        match self {
            Kind::Goodput | Kind::Samples | Kind::Rtts | Kind::Owds => "flow",
            Kind::Sequence | Kind::Proxy | Kind::Transfers => "flow",
            Kind::Queue => "link",
            Kind::Radio => "ue",
            Kind::Cell => "cell",
            Kind::Latency => "probe",
            Kind::Waits => "wait",
            Kind::Modem => "modem",
        }
    }

    /// Whether a series of this kind is not over time.
    pub(super) fn is_distribution(self) -> bool {
        matches!(self, Kind::Rtts | Kind::Owds | Kind::Transfers)
    }
}

/// What tells a series from others of its point and run.
pub(super) struct Identity<'a> {
    pub(super) kind: Kind,
    pub(super) name: &'a str,
    pub(super) conn: Option<u32>,
    pub(super) technology: Option<&'a str>,
}

/// A series as the page embeds it. Distributions whose `conn` is null, and transfers, are those of all copies and runs
/// together, under run 0.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Series"))]
pub(super) struct Embedded<'a> {
    point: u32,
    run: u32,
    kind: Kind,
    /// The flow, link, UE, cell, kind of probe or modem.
    name: &'a str,
    /// The copy of the flow, or the hop limit of probes.
    conn: Option<u32>,
    /// The radio access technology of a real modem's cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    technology: Option<&'a str>,
    /// Transfers that began, of a distribution of completion times.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    begun: Option<usize>,
    /// The cells that the column `cell` numbers, of a UE.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    cells: Option<&'a [&'a str]>,
    /// Columns of equal length over `t` or, in a distribution, over `x`; those without any value are left out.
    #[cfg_attr(test, ts(type = "Record<string, (number | null)[]>"))]
    columns: BTreeMap<&'static str, Vec<Option<f64>>>,
}

/// A few columns over the first one.
pub(super) struct Series<'a> {
    pub(super) point: u32,
    pub(super) run: u32,
    of: Of<'a>,
    pub(super) names: &'static [&'static str],
    pub(super) columns: Vec<Vec<Option<f64>>>,
    /// Transfers that began, in a distribution of completion times.
    pub(super) begun: usize,
    /// The cells that a UE's column `cell` numbers.
    pub(super) cells: Vec<&'a str>,
}

const GOODPUT: &[&str] = &["t", "goodput_mbps"];

impl<'a> Embedded<'a> {
    /// The series of a point and run with these columns, of which those without any value are left out; with the transfers that
    /// began or the cells of a UE, if it has them.
    pub(super) fn new<C: AsRef<[Option<f64>]>>(
        (point, run): (u32, u32),
        identity: &Identity<'a>,
        (begun, cells): (Option<usize>, Option<&'a [&'a str]>),
        columns: impl Iterator<Item = (&'static str, C)>,
    ) -> Embedded<'a> {
        let Identity { kind, name, conn, technology } = *identity;
        let shortened = |column: C| column.as_ref().iter().map(|value| value.map(short)).collect();
        Embedded {
            point,
            run,
            kind,
            name,
            conn,
            technology,
            begun,
            cells,
            columns: columns
                .filter(|(_, column)| column.as_ref().iter().any(Option::is_some))
                .map(|(name, column)| (name, shortened(column)))
                .collect(),
        }
    }
}

/// Returns all series of `tables`, with goodput as means over windows.
pub(super) fn of(tables: &Tables) -> Vec<Series<'_>> {
    let all = whole(tables);
    let of_goodput = all.iter().filter(|series| matches!(series.of, Of::Goodput(..)));
    let longest = of_goodput.map(|series| series.columns[0].len()).max().unwrap_or(0);
    let window = longest.div_ceil(GOODPUT_WINDOWS).max(1);
    all.into_iter().map(|series| series.averaged(window)).collect()
}

/// Returns all series of `tables` with every sample.
pub(super) fn whole(tables: &Tables) -> Vec<Series<'_>> {
    let mut all = Collector::default();
    const SAMPLE: &[&str] = &["t", "cwnd_bytes", "ssthresh_bytes", "in_flight_bytes", "srtt_ms", "owd_ms", "lost"];
    for row in tables.samples.iter() {
        let goodput = [Some(row.t_s), Some(row.goodput_mbps)];
        all.push((row.point, row.run, Of::Goodput(row.flow, row.conn)), GOODPUT, &goodput);
        let values = [
            Some(row.t_s),
            row.cwnd_bytes.map(|bytes| bytes as f64),
            row.ssthresh_bytes.map(|bytes| bytes as f64),
            row.in_flight_bytes.map(|bytes| bytes as f64),
            row.srtt_ms,
            row.owd_ms,
            row.lost.filter(|lost| *lost > 0).map(|lost| lost as f64),
        ];
        all.push((row.point, row.run, Of::Samples(row.flow, row.conn)), SAMPLE, &values);
    }
    for row in tables.queues.iter() {
        let values = [
            Some(row.t_s),
            Some(row.packets as f64),
            Some(row.bytes as f64),
            Some(row.dropped as f64),
            Some(row.marked as f64),
            row.capacity_mbps,
            row.sojourn_ms,
            row.sojourn_max_ms,
        ];
        const QUEUE: &[&str] =
            &["t", "packets", "bytes", "dropped", "marked", "capacity_mbps", "sojourn_ms", "sojourn_max_ms"];
        all.push((row.point, row.run, Of::Queue(row.link)), QUEUE, &values);
    }
    const PROXY: &[&str] = &["t", "promised_mbps", "held_bytes"];
    for row in tables.proxies.iter() {
        let values = [Some(row.t_s), row.promised_mbps, Some(row.held_bytes as f64)];
        all.push((row.point, row.run, Of::Proxy(row.flow, row.conn)), PROXY, &values);
    }
    const DISTRIBUTION: &[&str] = &["x", "share"];
    for row in tables.rtts.iter() {
        let values = [Some(row.rtt_ms), Some(row.count as f64)];
        all.push((row.point, row.run, Of::Rtts(row.flow, row.conn)), DISTRIBUTION, &values);
        all.push((row.point, 0, Of::AllRtts(row.flow)), DISTRIBUTION, &values);
    }
    for row in tables.owds.iter() {
        let values = [Some(row.owd_ms), Some(row.count as f64)];
        all.push((row.point, row.run, Of::Owds(row.flow, row.conn)), DISTRIBUTION, &values);
        all.push((row.point, 0, Of::AllOwds(row.flow)), DISTRIBUTION, &values);
    }
    for row in tables.transfers.iter() {
        let values = [row.completion_s, Some(1.0)];
        all.push((row.point, 0, Of::Transfers(row.flow)), DISTRIBUTION, &values);
    }
    push_segments(tables, &mut all);
    push_radio(tables, &mut all);
    push_measured(tables, &mut all);
    all.sorted().into_iter().map(Series::accumulated).collect()
}

/// Adds the series of the table `segments`, in megabytes: what was sent and acknowledged, the window, and where what was sent
/// again, overtaken or selectively acknowledged begins and ends.
fn push_segments<'a>(tables: &'a Tables, all: &mut Collector<'a>) {
    const SEQUENCE: &[&str] =
        &["t", "sent", "acked", "window", "again_from", "again_to", "late_from", "late_to", "sack_from", "sack_to"];
    for row in tables.segments.iter() {
        let (start, end) = (Some(row.start as f64 / 1e6), Some(row.end as f64 / 1e6));
        let mut values = [None; SEQUENCE.len()];
        values[0] = Some(row.t_s);
        match row.kind {
            "data" => values[1] = end,
            "ack" => (values[2], values[3]) = (start, end),
            "retransmission" => (values[4], values[5]) = (start, end),
            "out-of-order" => (values[6], values[7]) = (start, end),
            _ => (values[8], values[9]) = (start, end),
        }
        all.push((row.point, row.run, Of::Sequence(row.flow, row.conn)), SEQUENCE, &values);
    }
}

/// Adds the series of the table `radio`: those of the UEs, and the sums over the UEs of each cell.
fn push_radio<'a>(tables: &'a Tables, all: &mut Collector<'a>) {
    const RADIO: &[&str] = &[
        "t",
        "cell",
        "rsrp_dbm",
        "sinr_db",
        "dl_mcs",
        "ul_mcs",
        "dl_mbps",
        "ul_mbps",
        "dl_queue_bytes",
        "ul_queue_bytes",
        "host_queue_bytes",
        "dl_above_bytes",
        "dl_prbs",
        "dl_bler",
        "ul_bler",
        "dl_buffer_bytes",
        "los",
        "cell_beam",
        "ue_beam",
    ];
    const CELL: &[&str] = &["t", "dl_prbs", "ul_prbs"];
    /// Of each cell; a share is missing while it is not known of any UE.
    type Shares<'a> = BTreeMap<&'a str, (Option<f64>, f64)>;
    // Keyed by the bits of the time, which is never negative, so that the keys are in the order of time.
    let mut moments: BTreeMap<(u32, u32), BTreeMap<u64, Shares<'a>>> = BTreeMap::new();
    for row in tables.radio.iter() {
        let key = (row.point, row.run, Of::Radio(row.ue));
        let cell = (!row.cell.is_empty()).then(|| all.cell(key, RADIO, row.cell) as f64);
        let values = [
            Some(row.t_s),
            cell,
            Some(row.rsrp_dbm),
            row.sinr_db,
            row.dl_mcs,
            row.ul_mcs,
            Some(row.dl_mbps),
            Some(row.ul_mbps),
            row.dl_queue_bytes.map(|bytes| bytes as f64),
            Some(row.ul_queue_bytes as f64),
            Some(row.host_queue_bytes as f64),
            Some(row.dl_above_bytes as f64),
            row.dl_prbs,
            row.dl_bler,
            row.ul_bler,
            Some(row.dl_buffer_bytes as f64),
            Some(f64::from(u8::from(row.los))),
            row.cell_beam.map(|beam| beam as f64),
            row.ue_beam.map(|beam| beam as f64),
        ];
        all.push(key, RADIO, &values);
        let shares = moments.entry((row.point, row.run)).or_default().entry(row.t_s.to_bits()).or_default();
        if cell.is_some() {
            let (dl, ul) = shares.entry(row.cell).or_default();
            *dl = dl.map_or(row.dl_cell_prbs, |sum| Some(sum + row.dl_cell_prbs.unwrap_or(0.0)));
            *ul += row.ul_prbs;
        }
    }
    for ((point, run), moments) in moments {
        let cells: BTreeSet<&str> = moments.values().flat_map(|shares| shares.keys().copied()).collect();
        for (t, shares) in moments {
            for &cell in &cells {
                // A cell without a UE uses none.
                let (dl, ul) = shares.get(cell).copied().unwrap_or((Some(0.0), 0.0));
                all.push((point, run, Of::Cell(cell)), CELL, &[Some(f64::from_bits(t)), dl, Some(ul)]);
            }
        }
    }
}

/// Adds the series of the tables of measurements.
fn push_measured<'a>(tables: &'a Tables, all: &mut Collector<'a>) {
    // `load` is 1 while flows run, so that the page knows when.
    const LATENCY: &[&str] = &["t", "rtt_ms", "lost", "load"];
    const WAITS: &[&str] = &["t", "host_ms", "modem_ms", "network_ms", "total_ms"];
    // With the cell's identity and its physical one, which name the first cell: events are changes alone.
    const MODEM: &[&str] = &["t", "rsrp_dbm", "rsrq_db", "rssi_dbm", "sinr_db", "cell_id", "pci"];
    for row in tables.latencies.iter() {
        let load = f64::from(u8::from(row.phase == "during"));
        let values = [Some(row.t_s), row.rtt_ms, row.rtt_ms.is_none().then_some(1.0), Some(load)];
        all.push((row.point, row.run, Of::Latency(row.probe, row.hop)), LATENCY, &values);
    }
    for row in tables.waits.iter() {
        let values = [Some(row.t_s), row.host_ms, row.modem_ms, row.network_ms, row.total_ms];
        all.push((row.point, row.run, Of::Waits), WAITS, &values);
    }
    for row in tables.modem.iter() {
        let names = [row.cell, row.pci].map(|number| number.map(|number| number as f64));
        let values = [Some(row.t_s), row.rsrp_dbm, row.rsrq_db, row.rssi_dbm, row.sinr_db, names[0], names[1]];
        all.push((row.point, row.run, Of::Modem(row.modem, row.technology)), MODEM, &values);
    }
}

/// Series by point, run and subject.
#[derive(Default)]
struct Collector<'a> {
    series: Vec<Series<'a>>,
    places: BTreeMap<(u32, u32, Of<'a>), usize>,
    /// The places of the last two series: rows of a table alternate between few.
    recent: [usize; 2],
}

impl<'a> Collector<'a> {
    fn push(&mut self, key: (u32, u32, Of<'a>), names: &'static [&'static str], values: &[Option<f64>]) {
        for (column, value) in self.series(key, names).columns.iter_mut().zip(values) {
            column.push(*value);
        }
    }

    /// Returns the number of the cell `name` within a UE's series.
    fn cell(&mut self, key: (u32, u32, Of<'a>), names: &'static [&'static str], name: &'a str) -> usize {
        let cells = &mut self.series(key, names).cells;
        cells.iter().position(|cell| *cell == name).unwrap_or_else(|| {
            cells.push(name);
            cells.len() - 1
        })
    }

    fn series(&mut self, key: (u32, u32, Of<'a>), names: &'static [&'static str]) -> &mut Series<'a> {
        let Collector { series, places, recent } = self;
        let (point, run, of) = key;
        let is_there = |place: &usize| series.get(*place).is_some_and(|s| (s.point, s.run, s.of) == key);
        let place = recent.iter().copied().find(is_there).unwrap_or_else(|| {
            let place = *places.entry(key).or_insert(series.len());
            if place == series.len() {
                let columns = vec![Vec::new(); names.len()];
                series.push(Series { point, run, of, names, columns, begun: 0, cells: Vec::new() });
            }
            *recent = [place, recent[0]];
            place
        });
        &mut series[place]
    }

    /// Returns the series in the order of their keys.
    fn sorted(mut self) -> Vec<Series<'a>> {
        self.series.sort_by_key(|series| (series.point, series.run, series.of));
        self.series
    }
}

impl<'a> Series<'a> {
    /// The goodput of something that is like a flow.
    pub(super) fn of_goodput((point, run): (u32, u32), name: &'a str, columns: Vec<Vec<Option<f64>>>) -> Series<'a> {
        Series { point, run, of: Of::Goodput(name, 0), names: GOODPUT, columns, begun: 0, cells: Vec::new() }
    }

    pub(super) fn is_distribution(&self) -> bool {
        self.identity().kind.is_distribution()
    }

    pub(super) fn identity(&self) -> Identity<'a> {
        let (kind, name, conn) = match self.of {
            Of::Goodput(flow, conn) => (Kind::Goodput, flow, Some(conn)),
            Of::Samples(flow, conn) => (Kind::Samples, flow, Some(conn)),
            Of::Rtts(flow, conn) => (Kind::Rtts, flow, Some(conn)),
            Of::Owds(flow, conn) => (Kind::Owds, flow, Some(conn)),
            Of::Sequence(flow, conn) => (Kind::Sequence, flow, Some(conn)),
            Of::AllRtts(flow) => (Kind::Rtts, flow, None),
            Of::AllOwds(flow) => (Kind::Owds, flow, None),
            Of::Proxy(flow, conn) => (Kind::Proxy, flow, Some(conn)),
            Of::Queue(link) => (Kind::Queue, link, None),
            Of::Transfers(flow) => (Kind::Transfers, flow, None),
            Of::Radio(ue) => (Kind::Radio, ue, None),
            Of::Cell(cell) => (Kind::Cell, cell, None),
            Of::Latency(probe, hop) => (Kind::Latency, probe, hop.map(|hop| hop as u32)),
            Of::Waits => (Kind::Waits, "", None),
            Of::Modem(modem, _) => (Kind::Modem, modem, None),
        };
        let technology = match self.of {
            Of::Modem(_, technology) => Some(technology),
            _ => None,
        };
        Identity { kind, name, conn, technology }
    }

    /// Returns the flow and the copy that the series describes.
    pub(super) fn copy(&self) -> Option<(&str, u32)> {
        match self.of {
            Of::Goodput(flow, conn)
            | Of::Samples(flow, conn)
            | Of::Rtts(flow, conn)
            | Of::Owds(flow, conn)
            | Of::Sequence(flow, conn)
            | Of::Proxy(flow, conn) => Some((flow, conn)),
            // Ranked like the flow's first copy.
            Of::AllRtts(flow) | Of::AllOwds(flow) => Some((flow, 0)),
            Of::Queue(_) | Of::Transfers(_) | Of::Radio(_) | Of::Cell(_) => None,
            Of::Latency(..) | Of::Waits | Of::Modem(..) => None,
        }
    }

    /// Returns the UE that the series describes.
    pub(super) fn ue(&self) -> Option<&str> {
        match self.of {
            Of::Radio(ue) => Some(ue),
            _ => None,
        }
    }

    /// Returns the approximate size of [`Series::embedded`].
    pub(super) fn estimated_bytes(&self, points: usize) -> usize {
        let columns = self.columns.iter().filter(|column| column.iter().any(Option::is_some)).count();
        200 + self.columns[0].len().min(self.most(points)) * columns * NUMBER_BYTES
    }

    /// Returns the number of points that the series may have: fewer for distributions, which are smooth and may be many.
    fn most(&self, points: usize) -> usize {
        match self.of {
            Of::Rtts(..) | Of::Owds(..) => points.min(DISTRIBUTION_POINTS * 2),
            Of::AllRtts(_) | Of::AllOwds(_) => points.min(DISTRIBUTION_POINTS),
            _ => points,
        }
    }

    /// Returns the series with at most `points` points.
    pub(super) fn embedded(&self, points: usize) -> Embedded<'_> {
        let columns = self.names.iter().copied().zip(thinned(&self.columns, self.most(points)));
        let begun = matches!(self.of, Of::Transfers(_)).then_some(self.begun);
        let cells = matches!(self.of, Of::Radio(_)).then_some(&self.cells[..]);
        Embedded::new((self.point, self.run), &self.identity(), (begun, cells), columns)
    }

    /// Averages goodput over `window` samples each; returns other series unchanged.
    fn averaged(mut self, window: usize) -> Self {
        if matches!(self.of, Of::Goodput(..)) {
            let ends = self.columns[0].chunks(window).filter_map(|t| t.last().copied()).collect();
            let mean = |y: &[Option<f64>]| Some(y.iter().flatten().sum::<f64>() / y.len() as f64);
            let means = self.columns[1].chunks(window).map(mean).collect();
            self.columns = vec![ends, means];
        }
        self
    }

    /// Turns a distribution's counts into the share of samples at or below each value; returns other series unchanged. A
    /// sample without a value, such as a transfer that did not finish, counts as larger than any.
    fn accumulated(mut self) -> Self {
        if self.is_distribution() {
            let mut buckets: Vec<(f64, f64)> = self.columns[0]
                .iter()
                .zip(&self.columns[1])
                .map(|(x, n)| (x.unwrap_or(f64::INFINITY), n.unwrap_or(0.0)))
                .collect();
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            let total: f64 = buckets.iter().map(|bucket| bucket.1).sum();
            self.begun = total as usize;
            buckets.retain(|bucket| bucket.0.is_finite());
            let mut seen = 0.0;
            self.columns = vec![Vec::new(); 2];
            for same in buckets.chunk_by(|a, b| a.0 == b.0) {
                seen += same.iter().map(|bucket| bucket.1).sum::<f64>();
                self.columns[0].push(Some(same[0].0));
                self.columns[1].push(Some(seen / total));
            }
        }
        self
    }
}

/// Thins `columns` to at most `points` points: neighbouring rows form groups, and each column keeps the smallest and the
/// largest value of each group, in their order, over the group's first and last value of column 0. That column, and
/// any other that only rises, keeps its ends.
pub(super) fn thinned(columns: &[Vec<Option<f64>>], points: usize) -> Vec<Vec<Option<f64>>> {
    let rows = columns[0].len();
    let groups = (points / 2).max(1);
    if rows <= groups * 2 {
        return columns.to_vec();
    }
    let thin = |column: &Vec<Option<f64>>| {
        let mut kept = Vec::with_capacity(groups * 2);
        for group in 0..groups {
            let group = &column[group * rows / groups..(group + 1) * rows / groups];
            let values = || group.iter().enumerate().filter_map(|(i, value)| value.map(|value| (i, value)));
            let low = values().reduce(|a, b| if b.1 < a.1 { b } else { a });
            let high = values().reduce(|a, b| if b.1 >= a.1 { b } else { a });
            let (Some(low), Some(high)) = (low, high) else {
                kept.extend([None, None]);
                continue;
            };
            let (first, second) = if low.0 <= high.0 { (low, high) } else { (high, low) };
            kept.extend([Some(first.1), Some(second.1)]);
        }
        kept
    };
    columns.iter().map(thin).collect()
}

/// The least number with more digits than the report shows.
const DIGITS: f64 = 1e5;

/// Rounds `x` to five significant digits.
pub(super) fn short(x: f64) -> f64 {
    let size = x.abs();
    if size < DIGITS && x.fract() == 0.0 {
        return x;
    }
    // Within these powers of ten, the quotient of two exact numbers is the one nearest to the decimal number.
    let scale = (0..=15).map(|power| 10f64.powi(power)).find(|scale| size * scale >= DIGITS / 10.0);
    if let Some(scale) = scale.filter(|_| size < DIGITS) {
        let digits = x * scale;
        let rest = (digits - digits.floor() - 0.5).abs();
        if rest > 1e-6 {
            return digits.round() / scale;
        }
        // Halfway between two numbers, the exact digits decide; if they are exactly halfway, it is the even one.
        if rest == 0.0 && x.mul_add(scale, -digits) == 0.0 {
            return digits.round_ties_even() / scale;
        }
    }
    format!("{x:.4e}").parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_every_peak_and_the_ends() {
        let t: Vec<Option<f64>> = (0..100_000).map(|i| Some(f64::from(i) / 10.0)).collect();
        let mut y: Vec<Option<f64>> = (0..100_000).map(|i| Some(f64::from(i % 50))).collect();
        y[31_415] = Some(1e6);
        y[27_182] = Some(-1e6);
        let thin = thinned(&[t, y], 1_500);
        assert_eq!((thin[0].len(), thin[1].len()), (1_500, 1_500));
        assert!(thin[1].contains(&Some(1e6)) && thin[1].contains(&Some(-1e6)));
        assert_eq!((thin[0][0], thin[0][1_499]), (Some(0.0), Some(9_999.9)));
        assert!(thin[0].is_sorted_by(|a, b| a.unwrap() < b.unwrap()), "time goes forward");
        let peak = thin[1].iter().position(|y| *y == Some(1e6)).unwrap();
        assert!((thin[0][peak].unwrap() - 3_141.5).abs() < 14.0, "the peak stays in its place");
    }

    #[test]
    fn numbers_are_rounded_as_their_decimals_are() {
        let mut x = 1.234_567_891e-14f64;
        while x < 1e12 {
            for x in [x, -x, x.floor(), x.floor() + 0.5, short(x)] {
                assert_eq!(short(x).to_bits(), format!("{x:.4e}").parse::<f64>().unwrap().to_bits(), "{x}");
            }
            x *= 1.000_37;
        }
        assert_eq!([0.0, -0.0, 12_345.5, 99_999.6, 0.1].map(short), [0.0, -0.0, 12_346.0, 100_000.0, 0.1]);
        assert!(short(f64::NAN).is_nan() && short(f64::INFINITY).is_infinite());
    }

    #[test]
    fn segments_become_lines_and_strokes_of_their_connection() {
        let mut tables = Tables::default();
        for (kind, start, end) in
            [("data", 0, 1_000_000), ("ack", 500_000, 2_000_000), ("retransmission", 0, 500_000), ("dsack", 0, 250_000)]
        {
            let row =
                crate::tables::SegmentRow { flow: "a", conn: 2, t_s: 1.5, kind, start, end, ..Default::default() };
            tables.segments.push(&row);
        }
        let all = of(&tables);
        assert_eq!((all.len(), all[0].copy()), (1, Some(("a", 2))));
        let columns = all[0].embedded(1_500).columns;
        let value = |name: &str| columns[name].iter().flatten().copied().collect::<Vec<_>>();
        assert_eq!([value("sent"), value("acked"), value("window")], [[1.0], [0.5], [2.0]]);
        assert_eq!([value("again_from"), value("again_to"), value("sack_to")], [[0.0], [0.5], [0.25]]);
        assert!(!columns.contains_key("late_from"));
    }

    #[test]
    fn a_short_series_is_kept_as_it_is() {
        let columns = vec![vec![Some(0.0), Some(1.0)], vec![None, Some(2.0)]];
        assert_eq!(thinned(&columns, 1_500), columns);
    }

    #[test]
    fn thinning_bridges_no_gap() {
        let t: Vec<Option<f64>> = (0..1_000).map(|i| Some(f64::from(i))).collect();
        let y: Vec<Option<f64>> = (0..1_000).map(|i| (i < 500).then_some(1.0)).collect();
        let thin = thinned(&[t, y], 100);
        assert_eq!(thin[1].iter().filter(|y| y.is_none()).count(), 50);
    }
}
