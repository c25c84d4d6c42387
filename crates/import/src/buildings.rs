//! Buildings from a map in GeoJSON (RFC 7946), such as an extract of OpenStreetMap.
//!
//! Each polygon becomes the smallest box around its outer ring with sides to the cardinal directions: the scenario's
//! buildings are boxes. Coordinates are longitude and latitude on the WGS 84 ellipsoid, and become metres on the plane
//! that touches it at the origin; a kilometre away that is off by less than a metre below 60 degrees of latitude.

use std::io::Read;

use geojson::{Feature, GeoJson, GeometryValue, JsonObject, JsonValue, LineStringType};

use crate::{Error, read_up_to};

/// Maximum number of buildings.
pub const MAX_BUILDINGS: usize = 10_000;
/// Maximum size in bytes of a map.
const MAX_MAP: u64 = 64 << 20;
/// Sides in metres below which a building is left out, and heights that are not known: posts and walls.
const LEAST_M: f64 = 0.5;
/// Height in metres of a storey.
const STOREY_M: f64 = 3.0;
/// The height in metres above which a value is not a building's.
const HIGHEST_M: f64 = 1000.0;

/// WGS 84: semi-major axis in metres, and the square of the first eccentricity.
const AXIS_M: f64 = 6_378_137.0;
const ECCENTRICITY: f64 = 0.006_694_379_990_14;

/// How a map becomes boxes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layout {
    /// Latitude and longitude in degrees of the point that becomes (0, 0); `None` is the middle of the map.
    pub origin: Option<[f64; 2]>,
    /// Degrees by which the map is turned counterclockwise around the origin, so that streets run in the cardinal directions.
    pub rotate_deg: f64,
    /// Height in metres of buildings without one.
    pub height_m: f64,
}

/// A box on the ground, in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// Its western and eastern side.
    pub x: [f64; 2],
    /// Its southern and northern side.
    pub y: [f64; 2],
    /// Its height.
    pub height: f64,
}

/// An imported map.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// The buildings.
    pub blocks: Vec<Block>,
    /// Latitude and longitude in degrees of the point at (0, 0).
    pub origin: [f64; 2],
    /// Number of buildings whose height the map does not have.
    pub without_height: usize,
    /// The area of the buildings over that of their boxes, 0 to 1.
    pub filled: f64,
}

impl Map {
    /// Returns the lines of a scenario file.
    pub fn to_toml(&self) -> String {
        let mut text = "[radio]\nbuildings = [\n".to_owned();
        for Block { x, y, height } in &self.blocks {
            text += &format!(
                "  {{ x = [{:.2}, {:.2}], y = [{:.2}, {:.2}], height = {height:.2} }},\n",
                x[0], x[1], y[0], y[1]
            );
        }
        text + "]\n"
    }
}

/// Reads a map. If any of its features has the property `building`, others are not buildings. A height comes from the
/// property `height` in metres, or from `building:levels`.
///
/// # Errors
/// [`Error::File`] if it is not GeoJSON, its coordinates are not longitudes and latitudes, it has no buildings or more than
/// [`MAX_BUILDINGS`]; [`Error::Io`].
pub fn geojson(from: impl Read, layout: &Layout) -> Result<Map, Error> {
    let mut text = read_up_to(MAX_MAP, from, "import a smaller area")?;
    // Some editors begin a file with a byte order mark.
    if text.starts_with(b"\xef\xbb\xbf") {
        text.drain(..3);
    }
    let text = String::from_utf8(text).map_err(|_| Error::File("not GeoJSON: not UTF-8".to_owned()))?;
    let features = features(&text)?;
    let is_building = |feature: &&Feature| {
        value(feature, "building").is_some_and(|value| !["no", "false", "0"].contains(&value.as_str()))
    };
    let marked = features.iter().any(|feature| value(feature, "building").is_some());
    let mut outlines = Vec::new();
    let mut without_height = 0;
    for feature in features.iter().filter(|feature| !marked || is_building(feature)) {
        let height = height(feature);
        let before = outlines.len();
        if let Some(geometry) = &feature.geometry {
            rings(&geometry.value, &mut |ring| outlines.push((ring.clone(), height.unwrap_or(layout.height_m))));
        }
        if height.is_none() {
            without_height += outlines.len() - before;
        }
        if outlines.len() > MAX_BUILDINGS {
            return Err(Error::File(format!("more than {MAX_BUILDINGS} buildings: import a smaller area")));
        }
    }
    let points = || outlines.iter().flat_map(|(ring, _)| ring.iter());
    for point in points() {
        let [east, north] = [point.as_slice().first(), point.as_slice().get(1)].map(|v| v.copied().unwrap_or(f64::NAN));
        if !(-180.0..=180.0).contains(&east) || !(-85.0..=85.0).contains(&north) {
            return Err(Error::File(format!(
                "({east}, {north}) is not a longitude and a latitude in degrees from -85 to 85 (RFC 7946, 3.1.1)"
            )));
        }
    }
    let origin = layout.origin.unwrap_or_else(|| {
        let east = ends(points().map(|p| p[0]));
        let across = || ends(points().map(|p| if p[0] < 0.0 { p[0] + 360.0 } else { p[0] }));
        // A map of more than half of the Earth is one on both sides of the antimeridian.
        let [west, east] = if east[1] - east[0] > 180.0 { across() } else { east };
        let [south, north] = ends(points().map(|p| p[1]));
        [f64::midpoint(south, north), nearest_turn(f64::midpoint(west, east))]
    });
    let plane = Plane::new(origin, layout.rotate_deg);
    let (mut blocks, mut area, mut boxed) = (Vec::new(), 0.0, 0.0);
    for (ring, height) in &outlines {
        let corners: Vec<[f64; 2]> = ring.iter().map(|point| plane.metres([point[1], point[0]])).collect();
        let sides = |axis: usize| ends(corners.iter().map(|corner| corner[axis]));
        let (x, y) = (sides(0), sides(1));
        if x[1] - x[0] >= LEAST_M && y[1] - y[0] >= LEAST_M {
            blocks.push(Block { x, y, height: *height });
            let whole = (x[1] - x[0]) * (y[1] - y[0]);
            // A ring that crosses itself may wind around an area several times.
            area += enclosed(&corners).min(whole);
            boxed += whole;
        }
    }
    if blocks.is_empty() {
        return Err(Error::File("contains no buildings: expected features with polygons".to_owned()));
    }
    if let Some(far) = blocks.iter().find(|b| b.x[0].abs().max(b.x[1].abs()).max(b.y[0].abs()).max(b.y[1].abs()) > 1e5)
    {
        let km = far.x[0].hypot(far.y[0]) / 1e3;
        let message = match layout.origin {
            Some(_) => format!("a building is {km:.0} km from the origin: check --origin"),
            None => format!("a building is {km:.0} km from the middle of the map: import a smaller area"),
        };
        return Err(Error::File(message));
    }
    Ok(Map { blocks, origin, without_height, filled: area / boxed })
}

fn features(text: &str) -> Result<Vec<Feature>, Error> {
    let not_geojson =
        |error: geojson::Error| Error::File(format!("not GeoJSON: {}", crate::shown(error.to_string().as_bytes())));
    Ok(match text.parse::<GeoJson>().map_err(not_geojson)? {
        GeoJson::FeatureCollection(all) => all.features,
        GeoJson::Feature(feature) => vec![feature],
        GeoJson::Geometry(geometry) => vec![Feature::from(geometry)],
    })
}

/// Passes the outer ring of each polygon to `add`.
fn rings(value: &GeometryValue, add: &mut impl FnMut(&LineStringType)) {
    match value {
        GeometryValue::Polygon { coordinates } => coordinates.first().into_iter().for_each(add),
        GeometryValue::MultiPolygon { coordinates } => coordinates.iter().filter_map(|p| p.first()).for_each(add),
        GeometryValue::GeometryCollection { geometries } => {
            geometries.iter().for_each(|geometry| rings(&geometry.value, add));
        }
        _ => {}
    }
}

/// Returns a property as text. Converters nest OpenStreetMap's tags in `tags`, or not.
fn value(feature: &Feature, name: &str) -> Option<String> {
    let properties: &JsonObject = feature.properties.as_ref()?;
    let nested = || properties.get("tags").and_then(|tags| tags.get(name));
    match properties.get(name).or_else(nested)? {
        JsonValue::String(text) => Some(text.clone()),
        JsonValue::Number(number) => Some(number.to_string()),
        JsonValue::Bool(yes) => Some(yes.to_string()),
        _ => None,
    }
}

/// Returns the height in metres.
fn height(feature: &Feature) -> Option<f64> {
    let number = |name: &str| value(feature, name)?.trim().trim_end_matches('m').trim_end().parse::<f64>().ok();
    let metres = number("height").or_else(|| number("building:levels").map(|levels| levels * STOREY_M));
    metres.filter(|metres| *metres >= LEAST_M && *metres <= HIGHEST_M)
}

/// Returns the area in square metres that a ring encloses.
fn enclosed(corners: &[[f64; 2]]) -> f64 {
    let next = corners.iter().cycle().skip(1);
    let twice: f64 = corners.iter().zip(next).map(|(a, b)| a[0] * b[1] - b[0] * a[1]).sum();
    twice.abs() / 2.0
}

/// Returns the least and the greatest value.
fn ends(values: impl Iterator<Item = f64>) -> [f64; 2] {
    values.fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], value| [least.min(value), most.max(value)])
}

/// Returns an angle in degrees, less any full turns: from -180 to 180.
pub(crate) fn nearest_turn(degrees: f64) -> f64 {
    degrees - 360.0 * libm::round(degrees / 360.0)
}

/// The plane that touches the ellipsoid at the origin.
pub(crate) struct Plane {
    origin: [f64; 2],
    /// Metres per degree north and east.
    scale: [f64; 2],
    turn: [f64; 2],
}

impl Plane {
    pub(crate) fn new(origin: [f64; 2], rotate_deg: f64) -> Plane {
        let latitude = origin[0].to_radians();
        let sine = libm::sin(latitude);
        let bend = 1.0 - ECCENTRICITY * sine * sine;
        let north = AXIS_M * (1.0 - ECCENTRICITY) / (bend * libm::sqrt(bend));
        let east = AXIS_M / libm::sqrt(bend) * libm::cos(latitude);
        let turn = rotate_deg.to_radians();
        Plane { origin, scale: [north, east].map(f64::to_radians), turn: [libm::sin(turn), libm::cos(turn)] }
    }

    /// Returns the metres east and north of a latitude and a longitude.
    pub(crate) fn metres(&self, place: [f64; 2]) -> [f64; 2] {
        // The other side of the antimeridian may be nearer.
        let degrees = [place[0] - self.origin[0], nearest_turn(place[1] - self.origin[1])];
        let [north, east] = [degrees[0] * self.scale[0], degrees[1] * self.scale[1]];
        let [sine, cosine] = self.turn;
        [east * cosine - north * sine, east * sine + north * cosine]
    }
}
