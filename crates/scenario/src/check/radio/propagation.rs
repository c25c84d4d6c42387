//! Where a path loss model holds: carriers, heights, distances.

use super::*;
use crate::propagation::Sight;

/// Where a model holds.
struct Validity {
    /// The model's key and its source.
    model: &'static str,
    source: &'static str,
    mhz: RangeInclusive<f64>,
    /// Heights in metres.
    antenna: RangeInclusive<f64>,
    ue: RangeInclusive<f64>,
    /// Along the ground, in metres.
    distance: RangeInclusive<f64>,
}

impl Validity {
    fn of(channel: &Channel) -> Option<Validity> {
        let tr_38_901 = "TR 38.901 table 7.4.1-1";
        let wide = 500.0..=100_000.0;
        Some(match channel {
            Channel::Umi { .. } => Validity {
                model: "umi",
                source: "TR 38.901 table 7.4.1-1, continued from its antennas of 10 m",
                mhz: wide,
                // Above the traffic, as UEs are, up to the height that cells have by default.
                antenna: 1.5..=30.0,
                ue: 1.5..=22.5,
                // Nearer than the table's 10 m, the loss is that at 10 m.
                distance: 0.0..=5000.0,
            },
            Channel::Uma { .. } => Validity {
                model: "uma",
                source: tr_38_901,
                mhz: wide,
                antenna: 25.0..=25.0,
                // The table goes up to 22.5 m, with a random height of the environment from 13 m on.
                ue: 1.5..=13.0,
                distance: 10.0..=5000.0,
            },
            Channel::Rma { sight, .. } => Validity {
                model: "rma",
                source: tr_38_901,
                mhz: 500.0..=30_000.0,
                antenna: 10.0..=150.0,
                ue: 1.0..=10.0,
                distance: 10.0..=if *sight == Sight::Los { 10_000.0 } else { 5000.0 },
            },
            Channel::Inh { .. } => Validity {
                model: "inh",
                source: tr_38_901,
                mhz: 500.0..=100_000.0,
                antenna: 1.0..=10.0,
                ue: 0.5..=5.0,
                distance: 0.0..=150.0,
            },
            Channel::Cost231 { .. } => Validity {
                model: "cost-231",
                source: "COST 231 final report, 4.4.1",
                mhz: 1500.0..=2000.0,
                antenna: 30.0..=200.0,
                ue: 1.0..=10.0,
                distance: 1000.0..=20_000.0,
            },
            _ => return None,
        })
    }

    fn wrong(&self, what: &str, range: &RangeInclusive<f64>, unit: &str, but: &str, c: &mut Check) {
        let (low, high) = (range.start(), range.end());
        let holds = if low == high { format!("{low} {unit}") } else { format!("{low} to {high} {unit}") };
        let Validity { model, source, .. } = self;
        c.wrong(format!("`{model}` holds for {what} {holds} ({source}), but {but}"));
    }
}

/// Whether the channel of `ue` holds where it is used. Of a UE that moves, the points that the file names are looked at, of a
/// line also where it is after `duration`, and of a random place the edges of the area: UEs that come too near have the path
/// loss of the least distance.
pub(super) fn check(ue: &Ue, radio: &Radio, cells: &[Cell], duration: Span, c: &mut Check) {
    let Some(validity) = Validity::of(&ue.channel) else { return };
    let lte = radio.carriers.lte.as_ref().map(|lte| {
        let second = lte.secondary.as_ref().map(|second| second.downlink_mhz);
        [
            ("downlink_mhz", Some(lte.downlink_mhz)),
            ("uplink_mhz", Some(lte.uplink_mhz)),
            ("secondary.downlink_mhz", second),
        ]
    });
    let nr = radio.carriers.nr.as_ref().map(|nr| {
        let second = nr.secondary.as_ref().map(|second| second.frequency_mhz);
        [
            ("frequency_mhz", Some(nr.frequency_mhz)),
            ("uplink_mhz", Some(nr.uplink_mhz())),
            ("secondary.frequency_mhz", second),
        ]
    });
    for (key, mhz) in lte.into_iter().chain(nr).flatten() {
        if let Some(mhz) = mhz
            && !validity.mhz.contains(&mhz)
        {
            validity.wrong("carriers of", &validity.mhz, "MHz", &format!("`{key}` is {}", shown(mhz)), c);
        }
    }
    for cell in cells {
        if !validity.antenna.contains(&cell.position[2]) {
            let but = format!("cell `{}` is at {} m", cell.name, shown(cell.position[2]));
            validity.wrong("antennas at a height of", &validity.antenna, "m", &but, c);
        }
    }
    let limit = *validity.distance.start();
    // A random area may surround a mast.
    let (points, least): (Vec<[f64; 3]>, f64) = match &ue.mobility {
        Mobility::Still { position } => (vec![*position], limit),
        Mobility::Line { from, velocity } => {
            let seconds = duration.as_secs_f64();
            let [x, y, z] = [0, 1, 2].map(|axis| from[axis] + velocity[axis] * seconds);
            (vec![*from, [x, y, z]], limit)
        }
        Mobility::Waypoints { points } => (points.iter().map(|(_, point)| *point).collect(), limit),
        Mobility::Route { points, .. } => (points.clone(), limit),
        Mobility::Disc { centre: [x, y, z], radius_m } => {
            let edges = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)];
            (edges.map(|(east, north)| [x + radius_m * east, y + radius_m * north, *z]).to_vec(), 0.0)
        }
        Mobility::Streets { x, y, height, .. }
        | Mobility::RandomWaypoint { x, y, height, .. }
        | Mobility::Manhattan { x, y, height, .. } => {
            (x.iter().flat_map(|x| y.iter().map(|y| [*x, *y, *height])).collect(), 0.0)
        }
    };
    for point in points {
        let [x, y, z] = point;
        if !validity.ue.contains(&z) {
            validity.wrong("UEs at a height of", &validity.ue, "m", &format!("this one is at {} m", shown(z)), c);
            return;
        }
        let distance = |cell: &&Cell| {
            let (east, north) = (cell.position[0] - x, cell.position[1] - y);
            (east * east + north * north).sqrt()
        };
        let nearest = cells.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        if let Some(cell) = nearest
            && !(least..=*validity.distance.end()).contains(&distance(&cell))
        {
            let (x, y, metres) = (shown(x), shown(y), shown(format_args!("{:.0}", distance(&cell))));
            let but = format!("the nearest cell, `{}`, is {metres} m from ({x}, {y})", cell.name);
            validity.wrong("distances of", &validity.distance, "m", &but, c);
            return;
        }
    }
}
