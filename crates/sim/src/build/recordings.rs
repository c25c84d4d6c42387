//! Reads the recorded traces and channels that a scenario names.

use crate::error::Error;
use channel::Recorded;
use des::Streams;
use link::{Delays, Trace};
use scenario::{Capacity, Delay, Loaded, Scenario};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use units::Span;

/// The recorded traces that a scenario's links name, by the name that they use.
pub(crate) type Traces = BTreeMap<String, Arc<Trace>>;

/// The recorded delays that a scenario's links name, by the name that they use.
pub(crate) type DelayTraces = BTreeMap<String, Arc<Delays>>;

/// The recorded channels that a scenario's UEs name, by the name that they use.
pub(crate) type Channels = BTreeMap<String, Arc<Recorded>>;

/// Everything recorded that a scenario names.
pub(crate) struct Recordings {
    pub(crate) traces: Traces,
    pub(crate) delays: DelayTraces,
    pub(crate) channels: Channels,
}

/// The recorded channels of a run.
#[derive(Clone, Copy)]
pub(super) struct Playback<'a> {
    pub(super) channels: &'a Channels,
    /// The moment at which those begin that have no offset of their own, and repeat.
    pub(super) begin: Option<Span>,
}

impl Recordings {
    /// The moment of the recordings at which a run begins: a random whole millisecond, another one in each run; `None` in a
    /// scenario of a single run, which begins at their beginning.
    ///
    /// It is the same for all links and UEs of a run, so that what was recorded together, as both directions of a link, stays
    /// together.
    pub(super) fn begin(&self, scenario: &Scenario, streams: &Streams) -> Option<Span> {
        use rand_xoshiro::rand_core::Rng;
        if scenario.runs < 2 {
            return None;
        }
        let traces = scenario.links.iter().filter_map(|link| match &link.rate {
            Some(Capacity::Trace { file, offset: None, .. }) => Some(self.traces[file].period()),
            _ => None,
        });
        let delays = scenario.links.iter().filter_map(|link| match &link.delay {
            Delay::Trace { file, offset: None } => self.delays[file].period(),
            _ => None,
        });
        let ues = scenario.radio.as_ref().map_or(&[][..], |radio| &radio.ues);
        let channels = ues.iter().filter_map(|ue| match &ue.channel {
            scenario::Channel::Recorded { files, offset: None, .. } => period(files, &self.channels),
            _ => None,
        });
        let longest = traces.chain(delays).chain(channels).map(Span::as_millis).max().unwrap_or(0);
        let draw = streams.named("trace offset").next_u64();
        // The high half of a product is below `longest`, and equally likely each.
        Some(Span::from_millis(((u128::from(draw) * u128::from(longest)) >> 64) as u64))
    }
}

/// The time after which the recorded channels of a UE, by cell, repeat together.
pub(super) fn period(files: &BTreeMap<String, String>, channels: &Channels) -> Option<Span> {
    files.values().filter_map(|file| channels[file].period()).max()
}

/// Reads everything recorded that `loaded` names.
pub(crate) fn load(loaded: &Loaded) -> Result<Recordings, Error> {
    let traces = load_files(loaded, trace_files(loaded), |text| Trace::parse(text))?;
    let delays = load_files(loaded, delay_files(loaded), Delays::parse)?;
    Ok(Recordings { traces, delays, channels: load_channels(loaded)? })
}

/// The texts of everything recorded that `loaded` names, each once.
pub(crate) fn texts(loaded: &Loaded) -> impl Iterator<Item = &str> {
    let traces = trace_files(loaded).chain(delay_files(loaded)).map(|file| (file, text_of_trace(loaded, file)));
    let channels = channel_files(loaded).map(|file| (file, text_of_channel(loaded, file)));
    traces.chain(channels).collect::<BTreeMap<&str, &str>>().into_values()
}

/// The traces that the links of `loaded` name; one may be named several times.
fn trace_files(loaded: &Loaded) -> impl Iterator<Item = &str> {
    let links = loaded.points().iter().flat_map(|point| &point.scenario.links);
    links.filter_map(|link| match &link.rate {
        Some(Capacity::Trace { file, .. }) => Some(file.as_str()),
        _ => None,
    })
}

/// The recorded delays that the links of `loaded` name; one may be named several times.
fn delay_files(loaded: &Loaded) -> impl Iterator<Item = &str> {
    let links = loaded.points().iter().flat_map(|point| &point.scenario.links);
    links.filter_map(|link| match &link.delay {
        Delay::Trace { file, .. } => Some(file.as_str()),
        _ => None,
    })
}

/// The recorded channels that the UEs of `loaded` name; one may be named several times.
fn channel_files(loaded: &Loaded) -> impl Iterator<Item = &str> {
    channel_losses(loaded).map(|(file, _)| file)
}

/// The same, and whether the UE has a path loss for it.
fn channel_losses(loaded: &Loaded) -> impl Iterator<Item = (&str, bool)> {
    let networks = loaded.points().iter().filter_map(|point| point.scenario.radio.as_ref());
    let files = networks.flat_map(|radio| &radio.ues).filter_map(|ue| match &ue.channel {
        scenario::Channel::Recorded { files, loss_db, .. } => {
            Some(files.values().zip(std::iter::repeat(loss_db.is_some())))
        }
        _ => None,
    });
    files.flatten().map(|(file, has_loss)| (file.as_str(), has_loss)).filter(|(file, _)| !file.is_empty())
}

fn text_of_trace<'a>(loaded: &'a Loaded, file: &str) -> &'a str {
    loaded.trace(file).expect("a loaded scenario's traces were read")
}

fn text_of_channel<'a>(loaded: &'a Loaded, file: &str) -> &'a str {
    loaded.channel(file).expect("a loaded scenario's channels were read")
}

/// Reads each of the files once.
fn load_files<'a, T, E: Display>(
    loaded: &Loaded,
    files: impl Iterator<Item = &'a str>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<BTreeMap<String, Arc<T>>, Error> {
    let mut all = BTreeMap::new();
    for file in files {
        if !all.contains_key(file) {
            let read = parse(text_of_trace(loaded, file));
            let read = read.map_err(|e| Error::Trace { file: file.to_owned(), what: e.to_string() })?;
            all.insert(file.to_owned(), Arc::new(read));
        }
    }
    Ok(all)
}

fn load_channels(loaded: &Loaded) -> Result<Channels, Error> {
    let mut channels = Channels::new();
    for (file, has_loss) in channel_losses(loaded) {
        let wrong = |what: String| Error::Channel { file: file.to_owned(), what };
        if !channels.contains_key(file) {
            let channel = Recorded::parse(text_of_channel(loaded, file)).map_err(|e| wrong(e.to_string()))?;
            channels.insert(file.to_owned(), Arc::new(channel));
        }
        if !has_loss && !channels[file].has_loss() {
            let what = "an SINR or CQI alone does not tell the path loss of the uplink: add a column `rsrp_dbm`, or set the \
                        channel's `loss_db`";
            return Err(wrong(what.to_owned()));
        }
    }
    check_offsets(loaded, &channels)?;
    Ok(channels)
}

/// Checks that runs begin within recorded channels: behind its end, a recording is its last value without end.
fn check_offsets(loaded: &Loaded, channels: &Channels) -> Result<(), Error> {
    let networks = loaded.points().iter().filter_map(|point| point.scenario.radio.as_ref());
    for ue in networks.flat_map(|radio| &radio.ues) {
        if let scenario::Channel::Recorded { files, offset: Some(offset), .. } = &ue.channel
            && let Some(period) = period(files, channels)
            && *offset >= period
        {
            let file = files.values().next().cloned().unwrap_or_default();
            let what =
                format!("UE `{}`: the `offset` of {offset} must be before the recording's end, {period}", ue.name);
            return Err(Error::Channel { file, what });
        }
    }
    Ok(())
}
