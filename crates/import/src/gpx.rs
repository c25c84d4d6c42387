//! The places and times in GPX files (1.0 and 1.1): tracks and routes. Other elements, of the schema or not, are skipped.

use xml::attribute::OwnedAttribute;
use xml::reader::{EventReader, XmlEvent};

use crate::{Error, clock, shown};

/// Elements within each other; a file with more is not GPX.
const MAX_DEPTH: usize = 64;
/// Maximum number of tracks and routes.
const MAX_TRACKS: usize = 10_000;

/// A place in degrees north and east, and its time in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) place: [f64; 2],
    pub(crate) time: Option<f64>,
}

/// A track, or a route, which has one segment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Track {
    pub(crate) name: String,
    /// Segments with at least one point.
    pub(crate) segments: Vec<Vec<Point>>,
}

/// Reads the tracks of a file; its routes, if it has no tracks with points.
pub(crate) fn tracks(text: &[u8]) -> Result<Vec<Track>, Error> {
    let mut file = GpxFile::default();
    let mut path: Vec<String> = Vec::new();
    for event in EventReader::new(text) {
        let event = event.map_err(|error| not_gpx(&error.to_string()))?;
        match event {
            XmlEvent::StartElement { name, attributes, .. } => {
                if path.is_empty() && name.local_name != "gpx" {
                    return Err(not_gpx("its first element is not `gpx`"));
                }
                path.push(name.local_name);
                if path.len() > MAX_DEPTH {
                    return Err(not_gpx("its elements are too deep within each other"));
                }
                file.open(&path, &attributes)?;
            }
            XmlEvent::Characters(text) | XmlEvent::CData(text) => file.text(&path, &text)?,
            XmlEvent::EndElement { .. } => {
                path.pop();
            }
            _ => {}
        }
    }
    let mut found = if file.tracks.iter().any(|track| !track.segments.is_empty()) { file.tracks } else { file.routes };
    found.retain(|track| !track.segments.is_empty());
    Ok(found)
}

fn not_gpx(what: &str) -> Error {
    Error::File(format!("not GPX: {}", shown(what.as_bytes())))
}

/// What was read of a file.
#[derive(Default)]
struct GpxFile {
    tracks: Vec<Track>,
    routes: Vec<Track>,
    /// Whether the latest segment is that of a track before.
    begins_segment: bool,
}

impl GpxFile {
    /// Begins an element.
    fn open(&mut self, path: &[String], attributes: &[OwnedAttribute]) -> Result<(), Error> {
        match names(path)[..] {
            ["gpx", "trk"] => self.tracks.push(Track::default()),
            ["gpx", "rte"] => {
                self.routes.push(Track::default());
                self.begins_segment = true;
            }
            ["gpx", "trk", "trkseg"] => self.begins_segment = true,
            ["gpx", "trk", "trkseg", "trkpt"] => Self::add(&mut self.tracks, &mut self.begins_segment, attributes)?,
            ["gpx", "rte", "rtept"] => Self::add(&mut self.routes, &mut self.begins_segment, attributes)?,
            _ => {}
        }
        match self.tracks.len().max(self.routes.len()) > MAX_TRACKS {
            true => Err(Error::File(format!("more than {MAX_TRACKS} tracks: split the file"))),
            false => Ok(()),
        }
    }

    /// Adds a point to the latest of `tracks`.
    fn add(tracks: &mut [Track], begins_segment: &mut bool, attributes: &[OwnedAttribute]) -> Result<(), Error> {
        let degrees = |name: &str, most: f64| {
            let text = attributes.iter().find(|one| one.name.local_name == name).map(|one| one.value.trim());
            let degrees = text.and_then(|text| text.parse::<f64>().ok()).filter(|degrees| degrees.abs() <= most);
            degrees.ok_or_else(|| {
                let text = text.map_or_else(|| "none".to_owned(), |text| format!("`{}`", shown(text.as_bytes())));
                not_gpx(&format!("a point needs `{name}` in degrees from -{most} to {most}, and has {text}"))
            })
        };
        let point = Point { place: [degrees("lat", 90.0)?, degrees("lon", 180.0)?], time: None };
        if let Some(track) = tracks.last_mut() {
            if std::mem::take(begins_segment) || track.segments.is_empty() {
                track.segments.push(Vec::new());
            }
            track.segments.last_mut().expect("one was pushed").push(point);
        }
        Ok(())
    }

    /// Takes the text of an element.
    fn text(&mut self, path: &[String], text: &str) -> Result<(), Error> {
        let time = match names(path)[..] {
            ["gpx", "trk", "trkseg", "trkpt", "time"] => latest(&mut self.tracks),
            ["gpx", "rte", "rtept", "time"] => latest(&mut self.routes),
            ["gpx", "trk", "name"] => {
                self.tracks.last_mut().into_iter().for_each(|track| text.trim().clone_into(&mut track.name));
                None
            }
            ["gpx", "rte", "name"] => {
                self.routes.last_mut().into_iter().for_each(|track| text.trim().clone_into(&mut track.name));
                None
            }
            _ => None,
        };
        let Some(time) = time.filter(|_| !text.trim().is_empty()) else { return Ok(()) };
        let read = clock::date(text.as_bytes());
        *time = Some(read.ok_or_else(|| not_gpx(&format!("the time `{}` is no date of ISO 8601", text.trim())))?);
        Ok(())
    }
}

/// The time of the latest point.
fn latest(tracks: &mut [Track]) -> Option<&mut Option<f64>> {
    let point = tracks.last_mut()?.segments.last_mut()?.last_mut()?;
    Some(&mut point.time)
}

/// The names of a path.
fn names(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}
