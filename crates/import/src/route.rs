//! Routes of a UE: recorded tracks (GPX 1.0 and 1.1), and trips of timetables (GTFS).
//!
//! Both become waypoints: places with the times at which they are reached, from which speeds and stops follow. Places less
//! than [`NEAR_M`] apart are one, so that the noise of a receiver at rest is a stop. A timetable has stops alone; between two
//! of them the trip follows its shape at a constant speed. Stops without a time, or with that of the stop before (many
//! timetables have whole minutes), are passed without a stop.
//!
//! GTFS is read a row at a time, and of each table only the rows of the trip are kept: feeds of countries have tables of
//! gigabytes.

#![allow(clippy::disallowed_methods)] // A feed is several files, which are found by its directory.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use csv::{ByteRecord, ReaderBuilder, Trim};
use gtfs_structures::{RawStopTime, RawTrip, Shape};
use zip::ZipArchive;

use crate::buildings::{Plane, nearest_turn};
use crate::gpx::{self, Point, Track};
use crate::{Error, Noted, choose, read_up_to, shown};

/// Maximum size in bytes of a GPX file.
const MAX_GPX: u64 = 16 << 20;
/// Maximum size in bytes of a zipped feed, and of a table of a feed.
const MAX_ZIP: u64 = 256 << 20;
const MAX_TABLE: u64 = 16 << 30;
/// Maximum number of files in a zipped feed.
const MAX_ENTRIES: u16 = 1_000;
/// Maximum number of stops of a trip, and of points of its shape.
const MAX_STOPS: usize = 10_000;
const MAX_SHAPE: usize = 200_000;
/// Maximum number of waypoints: more do not fit into a file of a scenario.
pub const MAX_WAYPOINTS: usize = 20_000;
/// Distance in metres below which two places are one.
const NEAR_M: f64 = 5.0;
/// Speed in m/s below which a UE has stopped.
const STOPPED: f64 = 0.5;
/// Distance in metres from the origin beyond which a plane is too wrong.
const FAR_M: f64 = 200_000.0;
/// Metres and speed in m/s above which a step is a fault of the receiver or the timetable: nothing that carries a UE flies that fast.
const JUMP_M: f64 = 1_000.0;
const FASTEST: f64 = 350.0;
/// Maximum length of a route in seconds.
const MAX_SECONDS: f64 = 86_400.0 * 7.0;

/// How a route becomes waypoints.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Latitude and longitude in degrees of the point that becomes (0, 0); `None` is the beginning of the route.
    pub origin: Option<[f64; 2]>,
    /// Degrees by which the map is turned counterclockwise around the origin.
    pub rotate_deg: f64,
    /// Height in metres above ground.
    pub height_m: f64,
    /// Speed in m/s of a GPX file without times.
    pub speed: Option<f64>,
}

/// An imported route.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Seconds since the beginning, increasing, and metres east and north.
    pub points: Vec<(f64, [f64; 2])>,
    /// Latitude and longitude in degrees of the point at (0, 0).
    pub origin: [f64; 2],
    /// Height in metres above ground.
    pub height_m: f64,
}

impl Route {
    /// Metres from the beginning to the end.
    pub fn length_m(&self) -> f64 {
        self.points.windows(2).map(|two| distance(two[0].1, two[1].1)).sum()
    }

    /// Seconds from the beginning to the end.
    pub fn seconds(&self) -> f64 {
        self.points.last().map_or(0.0, |last| last.0)
    }

    /// How often it stops on the way.
    pub fn stops(&self) -> usize {
        self.points.windows(2).filter(|two| two[0].1 == two[1].1).count()
    }

    /// Returns the lines of a scenario file: the parameter `name`, which is a mobility.
    pub fn to_toml(&self, name: &str) -> String {
        let mut text = format!("[parameters.{name}]\nkind = \"waypoints\"\npoints = [\n");
        for (at, [x, y]) in &self.points {
            writeln!(text, "  [\"{at:.2} s\", [{x:.1}, {y:.1}, {}]],", self.height_m).expect("a text takes everything");
        }
        text + "]\n"
    }
}

fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    libm::hypot(a[0] - b[0], a[1] - b[1])
}

/// A place on the Earth in degrees north and east, and when it was reached, in seconds.
type Fix = ([f64; 2], Option<f64>);

/// Reads a track of a GPX file, or, if it has none, a route: the one with the number (from 1) or name `which`, or `all` one
/// after the other.
///
/// # Errors
/// [`Error::Choose`] if there are several and none was selected; [`Error::File`] if it is not GPX, has fewer than two places
/// or no times (and no speed is given); [`Error::Io`].
pub fn gpx(from: impl Read, which: Option<&str>, layout: &Layout) -> Result<Noted<Route>, Error> {
    let text = read_up_to(MAX_GPX, from, "import a shorter part")?;
    let tracks = selected(gpx::tracks(&text)?, which)?;
    drop(text);
    let segments: Vec<&Vec<Point>> = tracks.iter().flat_map(|track| &track.segments).collect();
    let mut fixes: Vec<Fix> =
        segments.iter().flat_map(|points| *points).map(|point| (point.place, point.time)).collect();
    if fixes.len() < 2 {
        return Err(Error::File("contains no track or route of at least two points".to_owned()));
    }
    let mut notes = Vec::new();
    if segments.len() > 1 {
        let plane = plane(&fixes, layout)?.0;
        let ends = segments.windows(2).map(|two| [two[0][two[0].len() - 1].place, two[1][0].place]);
        let metres: f64 = ends.map(|[from, to]| distance(plane.metres(from), plane.metres(to))).sum();
        let (pieces, km) = (segments.len(), metres / 1e3);
        notes.push(format!("{pieces} segments are joined by straight lines of {km:.2} km in all"));
    }
    let Some(speed) = layout.speed else {
        let without = fixes.iter().filter(|fix| fix.1.is_none()).count();
        if without + 2 > fixes.len() {
            let what =
                if without == fixes.len() { "has points without a time" } else { "has hardly a point with a time" };
            return Err(Error::File(format!("{what}: give the speed with --speed")));
        }
        if without > 0 {
            fixes.retain(|fix| fix.1.is_some());
            notes.push(format!("{without} points without a time are left out"));
        }
        if let Some(back) = fixes.windows(2).position(|two| two[1].1 < two[0].1) {
            let ([north, east], seconds) =
                (fixes[back + 1].0, fixes[back].1.unwrap_or(0.0) - fixes[0].1.unwrap_or(0.0));
            return Err(Error::File(format!(
                "goes back in time {seconds:.0} s after its beginning, at {north:.6},{east:.6}: --speed replaces the times"
            )));
        }
        return Ok(Noted { value: finish(&fixes, layout, &mut notes)?, notes });
    };
    let plane = plane(&fixes, layout)?.0;
    let mut timed: Vec<Fix> = Vec::new();
    let (mut at, mut before): (f64, Option<[f64; 2]>) = (0.0, None);
    for &(place, _) in &fixes {
        let here = plane.metres(place);
        let moved = before.map_or(f64::INFINITY, |before| distance(before, here));
        if moved >= NEAR_M {
            at += if before.is_some() { moved / speed } else { 0.0 };
            timed.push((place, Some(at)));
            before = Some(here);
        }
    }
    Ok(Noted { value: finish(&timed, layout, &mut notes)?, notes })
}

/// Selects tracks by number or name.
fn selected(mut tracks: Vec<Track>, which: Option<&str>) -> Result<Vec<Track>, Error> {
    let names = |tracks: &[Track]| {
        let list = |(number, track): (usize, &Track)| {
            let points: usize = track.segments.iter().map(Vec::len).sum();
            let name =
                if track.name.is_empty() { String::new() } else { format!("`{}`, ", shown(track.name.as_bytes())) };
            format!("{} ({name}{points} points)", number + 1)
        };
        tracks.iter().enumerate().map(list).collect::<Vec<String>>()
    };
    match which {
        None if tracks.len() > 1 => {
            let what = "several tracks: select one with --track, by its number or name, or all to join them";
            Err(choose(what, names(&tracks)))
        }
        None | Some("all") => Ok(tracks),
        Some(name) => {
            let named: Vec<usize> = (0..tracks.len()).filter(|&number| tracks[number].name == name).collect();
            let number = || name.parse::<usize>().ok().and_then(|n| n.checked_sub(1)).filter(|&n| n < tracks.len());
            let found = match named[..] {
                [one] => Some(one),
                [] => number(),
                _ => return Err(choose("several tracks have that name: select one by its number", names(&tracks))),
            };
            let what = || format!("no track `{}`", shown(name.as_bytes()));
            let found = found.ok_or_else(|| choose(&what(), names(&tracks)))?;
            Ok(vec![tracks.swap_remove(found)])
        }
    }
}

/// The plane of a route, and its origin.
fn plane(fixes: &[Fix], layout: &Layout) -> Result<(Plane, [f64; 2]), Error> {
    for (place, _) in fixes {
        if !(-85.0..=85.0).contains(&place[0]) || !(-180.0..=180.0).contains(&place[1]) {
            return Err(Error::File(format!(
                "({}, {}) is not a latitude from -85 to 85 and a longitude",
                place[0], place[1]
            )));
        }
    }
    let origin = layout.origin.unwrap_or([fixes[0].0[0], nearest_turn(fixes[0].0[1])]);
    Ok((Plane::new(origin, layout.rotate_deg), origin))
}

/// Makes waypoints of places with times, in their order.
fn finish(fixes: &[Fix], layout: &Layout, notes: &mut Vec<String>) -> Result<Route, Error> {
    let (plane, origin) = plane(fixes, layout)?;
    let begin = fixes.iter().find_map(|fix| fix.1).unwrap_or(0.0);
    let mut timed: Vec<(f64, [f64; 2])> = Vec::new();
    let mut at_once = 0u64;
    for (place, time) in fixes {
        let (Some(at), here) = (time.map(|time| time - begin), plane.metres(*place)) else { continue };
        if !(0.0..=MAX_SECONDS).contains(&at) {
            let what = if at < 0.0 { "goes back in time" } else { "lasts for more than a week" };
            return Err(Error::File(format!("the route {what}")));
        }
        if here[0].abs().max(here[1].abs()) > FAR_M {
            let what = "a place is more than 200 km from the origin: check --origin, or import a shorter part";
            return Err(Error::File(what.to_owned()));
        }
        // Hundredths of a second are written.
        match timed.last() {
            Some(last) if at < last.0 + 0.01 => at_once += u64::from(here != last.1),
            _ => timed.push((at, here)),
        }
    }
    if at_once > 0 {
        notes.push(format!("{at_once} places have the time of another one before, and are left out"));
    }
    let mut near = NEAR_M;
    let mut points = thinned(&timed, near);
    while points.len() > MAX_WAYPOINTS {
        near *= 2.0;
        points = thinned(&timed, near);
    }
    for two in points.windows(2) {
        let (moved, took) = (distance(two[0].1, two[1].1), two[1].0 - two[0].0);
        if moved > JUMP_M && moved > FASTEST * took {
            let (km, after) = (moved / 1e3, two[0].0);
            return Err(Error::File(format!(
                "{after:.0} s after its beginning, the route moves {km:.1} km in {took:.1} s: remove the place that is wrong"
            )));
        }
    }
    if timed.len() == 1 && fixes.iter().any(|fix| fix.1.is_some() && fix.0 != fixes[0].0) {
        return Err(Error::File("all its places have the same time".to_owned()));
    }
    if points.iter().all(|point| point.1 == points[0].1) {
        return Err(Error::File("does not move: all its places are one".to_owned()));
    }
    Ok(Route { points, origin, height_m: layout.height_m })
}

/// Leaves out places that are nearer than `near` metres to the one before; if that took longer than moving does, it was a stop.
fn thinned(all: &[(f64, [f64; 2])], near: f64) -> Vec<(f64, [f64; 2])> {
    let mut kept: Vec<(f64, [f64; 2])> = Vec::new();
    let mut latest = 0.0;
    for (number, &(at, here)) in all.iter().enumerate() {
        let Some(&(since, place)) = kept.last() else {
            kept.push((at, here));
            latest = at;
            continue;
        };
        let moved = distance(place, here);
        if moved >= near || number + 1 == all.len() {
            if moved >= near && latest - since > near / STOPPED {
                kept.push((latest, place));
            }
            // The end of a route at rest is where it rests.
            kept.push((at, if moved >= near { here } else { place }));
        }
        latest = at;
    }
    kept
}

/// Reads a trip of a GTFS feed, a directory or a zip file. If no trip is named, there must be one only.
///
/// # Errors
/// [`Error::Choose`] if there are several trips, or none of that name; [`Error::Line`] with the table in its text;
/// [`Error::File`] if it is no feed; [`Error::Io`].
pub fn gtfs(path: &Path, trip: Option<&str>, layout: &Layout) -> Result<Noted<Route>, Error> {
    let mut feed = Feed::open(path)?;
    let trip = feed.trip(trip)?;
    let mut stops = feed.stop_times(&trip.id)?;
    if stops.len() < 2 {
        return Err(Error::File(format!(
            "trip `{}` has fewer than two stops in stop_times.txt",
            shown(trip.id.as_bytes())
        )));
    }
    stops.sort_by_key(|stop| stop.stop_sequence);
    let places = feed.places(&stops)?;
    let shape = match &trip.shape_id {
        Some(shape) => feed.shape(shape)?,
        None => Vec::new(),
    };
    let mut notes = Vec::new();
    let fixes = along(&stops, &places, &shape, layout, &mut notes)?;
    Ok(Noted { value: finish(&fixes, layout, &mut notes)?, notes })
}

/// Where the stops are along a shape, in metres, according to `shape_dist_traveled` of both tables, which may be in any unit.
/// `None` for a stop without, and for all of them if the shape has none or they do not lead to the stops.
fn told(stops: &[RawStopTime], shape: &[Shape], metres: &[[f64; 2]], sums: &[f64], places: &[[f64; 2]]) -> Told {
    /// Metres that a stop may be from the shape: not more than a platform, a wide road and their surveys.
    const FAR_M: f64 = 500.0;
    let mut told = Told { along: vec![None; stops.len()], fault: None };
    let of_stops: Vec<Option<f64>> =
        stops.iter().map(|stop| stop.shape_dist_traveled.map(f64::from).filter(|far| far.is_finite())).collect();
    if of_stops.iter().all(Option::is_none) {
        return told;
    }
    let of_shape: Option<Vec<f64>> = shape.iter().map(|point| point.dist_traveled.map(f64::from)).collect();
    let Some(of_shape) = of_shape.filter(|all| all.len() == metres.len() && all.iter().all(|far| far.is_finite()))
    else {
        told.fault = Some("stop_times.txt has shape_dist_traveled, but shapes.txt has not");
        return told;
    };
    let present = || of_stops.iter().flatten();
    if of_shape.windows(2).any(|two| two[1] < two[0]) || present().zip(present().skip(1)).any(|(a, b)| b < a) {
        told.fault = Some("shape_dist_traveled decreases");
        return told;
    }
    let last = of_shape.len() - 1;
    let along = |far: f64| {
        let next = of_shape.partition_point(|one| *one < far).clamp(1, last);
        let width = of_shape[next] - of_shape[next - 1];
        let share = if width > 0.0 { ((far - of_shape[next - 1]) / width).clamp(0.0, 1.0) } else { 0.0 };
        let place = [0, 1].map(|axis| metres[next - 1][axis] + share * (metres[next][axis] - metres[next - 1][axis]));
        (sums[next - 1] + share * (sums[next] - sums[next - 1]), place)
    };
    for ((into, far), place) in told.along.iter_mut().zip(&of_stops).zip(places) {
        let Some((reached, here)) = far.map(along) else { continue };
        if distance(here, *place) > FAR_M {
            told.fault = Some("shape_dist_traveled leads to places that are more than 500 m from the stops");
            break;
        }
        *into = Some(reached);
    }
    if told.fault.is_some() {
        told.along.fill(None);
    }
    told
}

/// Where stops are along a shape.
struct Told {
    along: Vec<Option<f64>>,
    /// Why the feed's distances are not used.
    fault: Option<&'static str>,
}

/// Places with times: stops with arrival and departure, and the points of the shape between them.
fn along(
    stops: &[RawStopTime],
    places: &[[f64; 2]],
    shape: &[Shape],
    layout: &Layout,
    notes: &mut Vec<String>,
) -> Result<Vec<Fix>, Error> {
    let mut line: Vec<[f64; 2]> = shape.iter().map(|point| [point.latitude, point.longitude]).collect();
    let has_shape = line.len() >= 2;
    if !has_shape {
        line = places.to_vec();
    }
    let fixes: Vec<Fix> = line.iter().chain(places).map(|place| (*place, None)).collect();
    let plane = plane(&fixes, layout)?.0;
    let metres: Vec<[f64; 2]> = line.iter().map(|place| plane.metres(*place)).collect();
    let mut sums = vec![0.0];
    for two in metres.windows(2) {
        sums.push(sums[sums.len() - 1] + distance(two[0], two[1]));
    }
    let at_stops: Vec<[f64; 2]> = places.iter().map(|place| plane.metres(*place)).collect();
    let told = told(stops, if has_shape { shape } else { &[] }, &metres, &sums, &at_stops);
    if let Some(fault) = told.fault.filter(|_| has_shape) {
        notes.push(format!("{fault}: stops are where the shape first comes near them"));
    }
    // Where along the line each stop with a time of its own is.
    let mut timed: Vec<(f64, f64, f64)> = Vec::new();
    let (mut from, mut unclear) = (0.0, 0);
    for ((stop, place), told) in stops.iter().zip(&at_stops).zip(&told.along) {
        let reached = match told {
            Some(reached) => reached.max(from),
            None => {
                unclear += u32::from(has_shape && passes(&metres, &sums, *place, from) > 1);
                nearest(&metres, &sums, *place, from)
            }
        };
        from = reached;
        let arrival = stop.arrival_time.or(stop.departure_time).map(f64::from);
        let Some(arrival) = arrival else { continue };
        let departure = stop.departure_time.map_or(arrival, f64::from).max(arrival);
        if timed.last().is_none_or(|last| arrival > last.2) {
            timed.push((reached, arrival, departure));
        } else if let Some(last) = timed.last_mut().filter(|last| departure > last.2 && reached <= last.0) {
            last.2 = departure;
        }
    }
    if timed.len() < 2 {
        return Err(Error::File("the trip has fewer than two stops at different times".to_owned()));
    }
    if unclear > 0 {
        let what = "stops are at places that the shape passes several times, and are taken to be at the first of them: the feed \
                    does not say where (shape_dist_traveled)";
        notes.push(format!("{unclear} {what}"));
    }
    let place_at = |along: f64| -> [f64; 2] {
        let next = sums.partition_point(|sum| *sum < along).clamp(1, sums.len() - 1);
        let width = sums[next] - sums[next - 1];
        let share = if width > 0.0 { ((along - sums[next - 1]) / width).clamp(0.0, 1.0) } else { 0.0 };
        [0, 1].map(|axis| line[next - 1][axis] + share * (line[next][axis] - line[next - 1][axis]))
    };
    let mut fixes: Vec<Fix> = Vec::new();
    let mut before: Option<(f64, f64)> = None;
    for &(reached, arrival, departure) in &timed {
        if let Some((left, then)) = before {
            let inner = sums.partition_point(|sum| *sum <= left)..sums.partition_point(|sum| *sum < reached);
            for index in inner {
                let share = (sums[index] - left) / (reached - left);
                fixes.push((line[index], Some(then + share * (arrival - then))));
            }
        }
        fixes.push((place_at(reached), Some(arrival)));
        if departure > arrival {
            fixes.push((place_at(reached), Some(departure)));
        }
        before = Some((reached, departure));
    }
    Ok(fixes)
}

/// By how much nearer, in metres, a later point of a line must be to be that at which a stop is.
const BETTER_M: f64 = 50.0;

/// Metres along the segments of a line, from `from` on, to their points that are nearest to a place, and how far these are.
fn near_points(line: &[[f64; 2]], sums: &[f64], place: [f64; 2], from: f64) -> impl Iterator<Item = (f64, f64)> {
    line.windows(2).enumerate().filter(move |(index, _)| sums[index + 1] >= from).map(move |(index, two)| {
        let (across, along) =
            ([two[1][0] - two[0][0], two[1][1] - two[0][1]], [place[0] - two[0][0], place[1] - two[0][1]]);
        let square = across[0] * across[0] + across[1] * across[1];
        let share =
            if square > 0.0 { ((across[0] * along[0] + across[1] * along[1]) / square).clamp(0.0, 1.0) } else { 0.0 };
        let at = sums[index] + share * (sums[index + 1] - sums[index]);
        (at, distance(place, [two[0][0] + share * across[0], two[0][1] + share * across[1]]))
    })
}

/// Metres along a line to its point that is nearest to a place, not before `from`. Of a line that passes the place several
/// times, it is the first time.
fn nearest(line: &[[f64; 2]], sums: &[f64], place: [f64; 2], from: f64) -> f64 {
    let (mut best, mut least) = (from, f64::INFINITY);
    for (at, far) in near_points(line, sums, place, from) {
        let is_next = at - best < 2.0 * BETTER_M || least.is_infinite();
        if at >= from && (far < least - BETTER_M || far < least && is_next) {
            (best, least) = (at, far);
        }
    }
    best.max(from)
}

/// How often a line passes a place from `from` on.
fn passes(line: &[[f64; 2]], sums: &[f64], place: [f64; 2], from: f64) -> usize {
    let points = || near_points(line, sums, place, from).filter(|(at, _)| *at >= from);
    let least = points().map(|(_, far)| far).fold(f64::INFINITY, f64::min);
    let (mut times, mut before) = (0, f64::NEG_INFINITY);
    for (at, _) in points().filter(|(_, far)| *far <= least + BETTER_M) {
        times += usize::from(at - before > 4.0 * BETTER_M);
        before = at;
    }
    times
}

/// Takes a row of a table: the head, the row, and the columns that were asked for.
type EachRow<'a> = &'a mut dyn FnMut(&ByteRecord, &ByteRecord, &[usize]) -> Result<(), Error>;

/// A feed.
enum Feed {
    Directory(std::path::PathBuf),
    Zip(Box<ZipArchive<BufReader<File>>>),
}

impl Feed {
    fn open(path: &Path) -> Result<Feed, Error> {
        if path.is_dir() {
            return Ok(Feed::Directory(path.to_owned()));
        }
        let mut file = BufReader::new(File::open(path)?);
        let size = file.get_ref().metadata()?.len();
        if size > MAX_ZIP {
            return Err(Error::File(format!("more than {} MiB: unpack it and import the directory", MAX_ZIP >> 20)));
        }
        if entries(&mut file, size)?.is_none_or(|entries| entries > MAX_ENTRIES) {
            return Err(Error::File(
                "neither GPX (*.gpx) nor GTFS: expected a directory, or a zip file of up to 1000 files".to_owned(),
            ));
        }
        let archive = ZipArchive::new(file).map_err(|error| not_zip(&error))?;
        Ok(Feed::Zip(Box::new(archive)))
    }

    /// Passes the rows of a table to `each`, with their positions and the columns with these names. Returns whether the table exists.
    fn rows(&mut self, table: &str, names: &[&str], each: EachRow<'_>) -> Result<bool, Error> {
        match self {
            Feed::Directory(path) => match File::open(path.join(table)) {
                Ok(file) => read_rows(BufReader::new(file), table, names, each)?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error.into()),
            },
            Feed::Zip(archive) => {
                // Some feeds are in a folder of the archive.
                let found = archive.file_names().find(|name| name.rsplit('/').next() == Some(table)).map(str::to_owned);
                let Some(name) = found else { return Ok(false) };
                let file = archive.by_name(&name).map_err(|error| not_zip(&error))?;
                read_rows(file, table, names, each)?;
            }
        }
        Ok(true)
    }

    fn trip(&mut self, wanted: Option<&str>) -> Result<RawTrip, Error> {
        let (mut found, mut all) = (None, Vec::new());
        let mut count = 0u64;
        let exists = self.rows("trips.txt", &["trip_id"], &mut |head, row, columns| {
            let id = &row[columns[0]];
            count += 1;
            if all.len() <= 1_000 {
                all.push(shown(id));
            }
            if wanted.map_or(count == 1, |wanted| id == wanted.as_bytes()) {
                let trip = row.deserialize(Some(head)).map_err(|error| line("trips.txt", row, &error.to_string()))?;
                found = Some(trip);
            }
            Ok(())
        })?;
        if !exists {
            return Err(Error::File("not GTFS: it has no trips.txt".to_owned()));
        }
        match (wanted, found) {
            (None, _) if count > 1 => Err(choose("several trips: select one with --trip", all)),
            (_, Some(trip)) => Ok(trip),
            (Some(wanted), None) => Err(choose(&format!("no trip `{}`", shown(wanted.as_bytes())), all)),
            (None, None) => Err(Error::File("trips.txt has no trip".to_owned())),
        }
    }

    fn stop_times(&mut self, trip: &str) -> Result<Vec<RawStopTime>, Error> {
        let mut stops: Vec<RawStopTime> = Vec::new();
        self.rows("stop_times.txt", &["trip_id"], &mut |head, row, columns| {
            if &row[columns[0]] != trip.as_bytes() {
                return Ok(());
            }
            if stops.len() >= MAX_STOPS {
                return Err(Error::File(format!("the trip has more than {MAX_STOPS} stops")));
            }
            let stop = row.deserialize(Some(head)).map_err(|error| line("stop_times.txt", row, &error.to_string()))?;
            stops.push(stop);
            Ok(())
        })?;
        Ok(stops)
    }

    /// The places of stops.
    fn places(&mut self, stops: &[RawStopTime]) -> Result<Vec<[f64; 2]>, Error> {
        let mut places: BTreeMap<&str, Option<[f64; 2]>> =
            stops.iter().map(|stop| (stop.stop_id.as_str(), None)).collect();
        self.rows("stops.txt", &["stop_id", "stop_lat", "stop_lon"], &mut |_, row, columns| {
            let Ok(id) = str::from_utf8(&row[columns[0]]) else { return Ok(()) };
            let Some(place) = places.get_mut(id) else { return Ok(()) };
            let number = |column: usize| str::from_utf8(&row[columns[column]]).ok()?.trim().parse::<f64>().ok();
            *place = number(1).zip(number(2)).map(|(north, east)| [north, east]);
            Ok(())
        })?;
        stops
            .iter()
            .map(|stop| {
                let place = places.get(stop.stop_id.as_str()).copied().flatten();
                place.ok_or_else(|| {
                    Error::File(format!("stop `{}` has no place in stops.txt", shown(stop.stop_id.as_bytes())))
                })
            })
            .collect()
    }

    fn shape(&mut self, wanted: &str) -> Result<Vec<Shape>, Error> {
        let mut points: Vec<Shape> = Vec::new();
        self.rows("shapes.txt", &["shape_id"], &mut |head, row, columns| {
            if &row[columns[0]] != wanted.as_bytes() {
                return Ok(());
            }
            if points.len() >= MAX_SHAPE {
                return Err(Error::File(format!("the shape has more than {MAX_SHAPE} points")));
            }
            points.push(row.deserialize(Some(head)).map_err(|error| line("shapes.txt", row, &error.to_string()))?);
            Ok(())
        })?;
        points.sort_by_key(|point| point.sequence);
        Ok(points)
    }
}

fn line(table: &str, row: &ByteRecord, what: &str) -> Error {
    Error::line(row.position().map_or(0, csv::Position::line), format!("of {table}: {}", shown(what.as_bytes())))
}

fn not_zip(error: &zip::result::ZipError) -> Error {
    Error::File(format!("not GTFS: {}", shown(error.to_string().as_bytes())))
}

fn read_rows(from: impl Read, table: &str, names: &[&str], each: EachRow<'_>) -> Result<(), Error> {
    let failed = |error: csv::Error| Error::File(format!("{table}: {}", shown(error.to_string().as_bytes())));
    let mut reader =
        ReaderBuilder::new().trim(Trim::All).flexible(true).from_reader(Lines { from: from.take(MAX_TABLE), since: 0 });
    let mut head = reader.byte_headers().map_err(failed)?.clone();
    if let Some(first) = head.get(0).and_then(|name| name.strip_prefix(b"\xef\xbb\xbf")) {
        let rest = head.iter().skip(1).map(<[u8]>::to_owned);
        head = std::iter::once(first.to_owned()).chain(rest).collect();
    }
    let column = |name: &&str| {
        let place = head.iter().position(|one| one == name.as_bytes());
        place.ok_or_else(|| Error::File(format!("{table} has no column `{name}`")))
    };
    let columns = names.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    let last = columns.iter().copied().max().unwrap_or(0);
    let mut row = ByteRecord::new();
    while reader.read_byte_record(&mut row).map_err(failed)? {
        if row.len() > last {
            each(&head, &row, &columns)?;
        }
    }
    Ok(())
}

/// A reader that fails at a line that is too long to be kept.
struct Lines<R> {
    from: R,
    /// Bytes since the latest end of a line.
    since: u64,
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        const LONGEST: u64 = 1 << 20;
        let read = self.from.read(into)?;
        let tail = into[..read].iter().rev().position(|byte| *byte == b'\n');
        self.since = tail.map_or(self.since + read as u64, |tail| tail as u64);
        if self.since > LONGEST {
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "a line of more than 1 MiB"));
        }
        Ok(read)
    }
}

/// The number of files in a zip file, as its end tells: APPNOTE.TXT, 4.3.16.
fn entries(file: &mut (impl Read + Seek), size: u64) -> Result<Option<u16>, Error> {
    const LONGEST: u64 = 22 + 65_535;
    file.seek(SeekFrom::Start(size.saturating_sub(LONGEST)))?;
    let mut end = Vec::new();
    file.take(LONGEST).read_to_end(&mut end)?;
    file.seek(SeekFrom::Start(0))?;
    let place = end.windows(22).rposition(|part| part.starts_with(b"PK\x05\x06"));
    Ok(place.map(|place| u16::from_le_bytes([end[place + 10], end[place + 11]])))
}
