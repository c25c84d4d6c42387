//! Reads the recorded traces and channels that a scenario names.

use crate::error::Error;
use channel::Recorded;
use link::Trace;
use scenario::{Capacity, Loaded};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The recorded traces that a scenario's links name, by the name that they use.
pub(crate) type Traces = BTreeMap<String, Arc<Trace>>;

/// The recorded channels that a scenario's UEs name, by the name that they use.
pub(crate) type Channels = BTreeMap<String, Arc<Recorded>>;

/// Everything recorded that a scenario names.
pub(crate) struct Recordings {
    pub(crate) traces: Traces,
    pub(crate) channels: Channels,
}

/// Reads everything recorded that `loaded` names.
pub(crate) fn load(loaded: &Loaded) -> Result<Recordings, Error> {
    Ok(Recordings { traces: load_traces(loaded)?, channels: load_channels(loaded)? })
}

/// The texts of everything recorded that `loaded` names, in the order of the points.
pub(crate) fn texts(loaded: &Loaded) -> impl Iterator<Item = &str> {
    let of_point = |point: &scenario::Point| {
        let links = point.scenario.links.iter().filter_map(|link| match &link.rate {
            Some(Capacity::Trace { file, .. }) => Some(file.clone()),
            _ => None,
        });
        let ues = point.scenario.radio().into_iter().flat_map(|radio| radio.ues);
        let channels = ues.filter_map(|ue| match &ue.channel {
            scenario::Channel::Recorded { files } => Some(files.values().cloned().collect::<Vec<String>>()),
            _ => None,
        });
        links.chain(channels.flatten()).collect::<Vec<String>>()
    };
    let files: std::collections::BTreeSet<String> = loaded.points().iter().flat_map(of_point).collect();
    let texts = files.into_iter().map(|file| loaded.trace(&file).or_else(|| loaded.channel(&file)));
    texts.flatten().collect::<Vec<&str>>().into_iter()
}

/// The traces that the links of `loaded` name.
fn load_traces(loaded: &Loaded) -> Result<Traces, Error> {
    let mut traces = Traces::new();
    for link in loaded.points().iter().flat_map(|p| &p.scenario.links) {
        let Some(Capacity::Trace { file, .. }) = &link.rate else { continue };
        if !traces.contains_key(file) {
            let text = loaded.trace(file).expect("a loaded scenario's traces were read");
            let trace = Trace::parse(text).map_err(|e| Error::Trace { file: file.clone(), what: e.to_string() })?;
            traces.insert(file.clone(), Arc::new(trace));
        }
    }
    Ok(traces)
}

/// The recorded channels that the UEs of `loaded` name.
fn load_channels(loaded: &Loaded) -> Result<Channels, Error> {
    let mut channels = Channels::new();
    let networks = loaded.points().iter().filter_map(|point| point.scenario.radio());
    for ue in networks.flat_map(|radio| radio.ues) {
        let scenario::Channel::Recorded { files } = &ue.channel else { continue };
        for file in files.values().filter(|file| !file.is_empty()) {
            if !channels.contains_key(file) {
                let text = loaded.channel(file).expect("a loaded scenario's channels were read");
                let channel =
                    Recorded::parse(text).map_err(|e| Error::Channel { file: file.clone(), what: e.to_string() })?;
                channels.insert(file.clone(), Arc::new(channel));
            }
        }
    }
    Ok(channels)
}
