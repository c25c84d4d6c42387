//! Checks of the table `[radio]`: ranges, names of cells, and bearers.

mod propagation;

use super::*;
use crate::layout::Layout;
use crate::lte::Cell;
use crate::placement::{placed, placed_count};
use crate::propagation::Channel;
use aqm::drop_tail::{self, Victim};

/// Maximum number of bearers of a UE, including the default one (36.300, 9.3: eight data radio bearers).
const MAX_BEARERS: usize = 8;

/// Metres from the origin; larger than any country.
pub(super) const METRES: RangeInclusive<f64> = -1e6..=1e6;
/// Metres per second; several times the speed of sound.
const SPEED: RangeInclusive<f64> = -1000.0..=1000.0;
/// Metres between the crossings of a grid of streets.
const BLOCK: RangeInclusive<f64> = 1.0..=10_000.0;
const DBM: RangeInclusive<f64> = -50.0..=80.0;
const GAIN_DB: RangeInclusive<f64> = -50.0..=50.0;
const NOISE_DB: RangeInclusive<f64> = 0.0..=50.0;
/// From no loss to far more than hides a cell.
const LOSS_DB: RangeInclusive<f64> = 0.0..=300.0;

/// Longer than any useful timer of the radio protocols.
const MAX_TIMER: Span = Span::from_secs(100);
const MILLISECOND: Span = Span::from_millis(1);
/// Categories whose parameters are common to uplink and downlink (36.306 table 4.1-1).
const CATEGORIES: RangeInclusive<u8> = 1..=12;

/// Maximum number of buildings.
const MAX_BUILDINGS: usize = 10_000;

pub(super) fn check(radio: &Radio, s: &Scenario, c: &mut Check) {
    c.span("core_delay", radio.core_delay);
    if let Some(rate) = &radio.core_rate {
        check_capacity("core_rate", rate, c);
    }
    check_pep(radio.pep, radio.pep_report_loss, c);
    check_pep_at(radio.pep, radio.pep_at, c);
    proxy::check(radio.proxy.as_ref(), radio.pep, c);
    c.key("carriers", |c| check_carriers(&radio.carriers, c));
    if radio.buildings.len() > MAX_BUILDINGS {
        c.key("buildings", |c| c.wrong(format!("more than {MAX_BUILDINGS} buildings")));
    }
    for (i, building) in radio.buildings.iter().enumerate().take(MAX_BUILDINGS) {
        c.key("buildings", |c| c.index(i, |c| check_building(building, c)));
    }
    c.range("beam_sweep", radio.beam_sweep, Span::from_millis(5)..=Span::from_millis(160));
    for (key, empty) in
        [("servers", radio.servers.is_empty()), ("cells", radio.cells.is_empty()), ("ues", radio.ues.is_empty())]
    {
        if empty {
            c.key(key, |c| c.wrong("at least one is required"));
        }
    }
    for (i, server) in radio.servers.iter().enumerate() {
        c.key("servers", |c| c.index(i, |c| c.is_name(server)));
    }
    c.span("server_delay", radio.server_delay);
    if let Some(rate) = &radio.server_rate {
        check_capacity("server_rate", rate, c);
    }
    if let Some(loss) = &radio.server_loss {
        loss.check("server_loss", c);
    }
    check_cells(radio, c);
    // Too many are not placed.
    let placed = if placed_count(&radio.cells) > MAX_CELLS { Vec::new() } else { placed(&radio.cells) };
    let mut names: Vec<String> = Vec::with_capacity(placed.len());
    let mut told = None;
    for (entry, cell) in &placed {
        // One message says all about the cells of an entry.
        if told != Some(*entry)
            && let Some(first) = names.iter().position(|name| *name == cell.name)
        {
            told = Some(*entry);
            check_duplicate(&radio.cells, [placed[first].0, *entry], &cell.name, c);
        }
        names.push(cell.name.clone());
    }
    let cells: Vec<Cell> = placed.into_iter().map(|(_, cell)| cell).collect();
    let mut ues = 0;
    for (i, ue) in radio.ues.iter().enumerate() {
        c.key("ues", |c| {
            c.index(i, |c| {
                check_ue(ue, &names, radio, c);
                packets::check_ue(ue, radio, &s.flows, c);
                secondary::check_ue(ue, radio, c);
                check_sight(&ue.channel, radio, c);
                c.key("channel", |c| propagation::check(ue, radio, &cells, s.duration, c));
            });
        });
        ues += u64::from(ue.count);
        if ues > MAX_UES {
            c.key("ues", |c| c.index(i, |c| c.wrong(format!("more than {MAX_UES} UEs"))));
            break;
        }
    }
    c.key("power_control", |c| radio.power_control.check(c));
    c.key("handover", |c| radio.handover.check(c));
}

fn check_carriers(carriers: &Carriers, c: &mut Check) {
    if let Some(nr) = &carriers.nr {
        c.key("nr", |c| nr::check(nr, c));
    }
    if let Some(lte) = &carriers.lte {
        c.key("lte", |c| lte::check(lte, c));
    }
    if carriers.nr.is_none() && carriers.lte.is_none() {
        c.wrong("at least one technology is required: `lte = {}` or `nr = {}`");
    }
}

fn check_building(building: &Building, c: &mut Check) {
    check_rectangle(&building.x, &building.y, c);
    c.positive("height", building.height, 0.0, 1000.0);
}

fn check_cells(radio: &Radio, c: &mut Check) {
    if placed_count(&radio.cells) > MAX_CELLS {
        c.key("cells", |c| c.wrong(format!("more than {MAX_CELLS} cells")));
    }
    for (i, cell) in radio.cells.iter().enumerate() {
        c.key("cells", |c| {
            c.index(i, |c| {
                if !cell.name.is_empty() {
                    c.name("name", &cell.name);
                }
                if let Some(layout) = &cell.layout {
                    c.key("layout", |c| check_layout(layout, c));
                }
                c.key("position", |c| check_vector(&cell.position, METRES, c));
                c.range("power_dbm", cell.power_dbm, DBM);
                c.range("noise_figure_db", cell.noise_figure_db, NOISE_DB);
                c.range("sector_deg", cell.sector_deg.unwrap_or_default(), -360.0..=360.0);
                c.range("load", cell.load, 0.0..=1.0);
                if let Some(array) = &cell.array {
                    c.key("array", |c| check_array(array, c));
                    if cell.sector_deg.is_some() {
                        c.key("sector_deg", |c| c.wrong("an array has a direction of its own, `array.azimuth_deg`"));
                    }
                }
                let Carriers { lte, nr } = &radio.carriers;
                match radio.technology(cell) {
                    Technology::Lte if lte.is_none() && nr.is_some() => c.key("rat", |c| {
                        c.wrong("an LTE cell in a 5G network needs its carriers: add `[radio.carriers.lte]`");
                    }),
                    Technology::Nr if nr.is_none() && lte.is_some() => {
                        c.key("rat", |c| c.wrong("an NR cell needs its carriers: add `[radio.carriers.nr]`"));
                    }
                    _ => {}
                }
            });
        });
    }
}

/// Reports that two entries of `cells` both have a cell `name`.
fn check_duplicate(cells: &[Cell], [first, second]: [usize; 2], name: &str, c: &mut Check) {
    c.key("cells", |c| {
        c.index(second, |c| {
            let mut message = format!("duplicate cell `{name}`");
            let is_layout = cells[second].layout.is_some();
            if is_layout {
                message += &format!(", which `cells[{first}]` has too: give each layout a `name` of its own");
            }
            let is_unnamed = is_layout && cells[second].name.is_empty();
            c.key(if is_unnamed { "layout" } else { "name" }, |c| c.wrong(message));
        });
    });
}

fn check_layout(layout: &Layout, c: &mut Check) {
    let (Layout::Hexagonal { sites, spacing_m, .. } | Layout::Row { sites, spacing_m, .. }) = *layout;
    c.range("sites", u64::from(sites), 1..=MAX_CELLS);
    c.positive("spacing_m", spacing_m, 0.0, 100_000.0);
    match *layout {
        Layout::Hexagonal { sectors, .. } => c.range("sectors", sectors, 1..=6),
        Layout::Row { bearing_deg, .. } => c.range("bearing_deg", bearing_deg, -360.0..=360.0),
    }
}

fn check_vector(vector: &[f64; 3], range: RangeInclusive<f64>, c: &mut Check) {
    for (i, x) in vector.iter().enumerate() {
        c.index(i, |c| c.within(*x, range.clone()));
    }
}

fn check_ue(ue: &Ue, cells: &[String], radio: &Radio, c: &mut Check) {
    c.name("name", &ue.name);
    c.range("count", ue.count, 1..=MAX_UES as u32);
    c.key("mobility", |c| check_mobility(&ue.mobility, c));
    c.key("channel", |c| check_channel(&ue.channel, cells, c));
    if let Some(fading) = ue.fading {
        let kmh = match fading {
            Fading::Epa { kmh } | Fading::Eva { kmh } | Fading::Etu { kmh } => kmh,
            Fading::TdlA30 { kmh } | Fading::TdlB100 { kmh } | Fading::TdlC300 { kmh } => kmh,
            Fading::Tdl { delay_spread, kmh, .. } => {
                let most = Span::from_micros(10);
                c.key("fading", |c| c.range("delay_spread", delay_spread, Span::ZERO..=most));
                kmh
            }
        };
        c.key("fading", |c| c.range("kmh", kmh.unwrap_or_default(), 0.0..=1000.0));
    }
    if ue.interference_fading && ue.fading.is_none() {
        c.key("interference_fading", |c| c.wrong("interference fades as the UE's own link does: add `fading`"));
    }
    if let Some(array) = &ue.array {
        c.key("array", |c| check_array(array, c));
    }
    c.range("orientation_deg", ue.orientation_deg.unwrap_or_default(), -360.0..=360.0);
    if let Some(Blockage::Outdoor { kmh, .. } | Blockage::Indoor { kmh, .. }) = ue.blockage {
        c.key("blockage", |c| c.range("kmh", kmh, 0.0..=1000.0));
    }
    c.range("noise_figure_db", ue.noise_figure_db, NOISE_DB);
    c.range("gain_db", ue.gain_db, GAIN_DB);
    c.range("power_dbm", ue.power_dbm, DBM);
    if let Some(cell) = &ue.cell {
        c.key("cell", |c| check_cell(cell, cells, c));
    }
    c.range("layers", ue.layers, 1..=if radio.carriers.nr.is_some() { 4 } else { 2 });
    if let Some(category) = ue.category {
        if radio.carriers.lte.is_none() {
            c.key("category", |c| c.wrong("UEs have categories in LTE only: leave it out"));
        } else {
            c.range("category", category, CATEGORIES);
        }
        if category == 1 && ue.layers > 1 && radio.carriers.nr.is_none() {
            c.key("layers", |c| c.wrong("a UE of category 1 supports one layer (36.306 table 4.1-1)"));
        }
    }
    c.key("bearer", |c| check_bearer(&ue.bearer, c));
    if ue.dedicated.len() >= MAX_BEARERS {
        let most = MAX_BEARERS - 1;
        c.key("dedicated", |c| {
            c.wrong(format!("a UE may have at most {most} dedicated bearers in addition to its default one"));
        });
    }
    let mut taken = [false; 16];
    for (i, dedicated) in ue.dedicated.iter().enumerate() {
        c.key("dedicated", |c| {
            c.index(i, |c| {
                c.key("priorities", |c| check_priorities(&dedicated.priorities, &mut taken, c));
                c.key("bearer", |c| check_bearer(&dedicated.bearer, c));
            });
        });
    }
    c.size("modem", ue.modem);
    c.key("host_queue", |c| ue.host_queue.check(c));
    c.key("modem_limit", |c| ue.modem_limit.check(c));
}

/// Line of sight by buildings needs buildings.
fn check_sight(channel: &Channel, radio: &Radio, c: &mut Check) {
    let (Channel::Umi { sight, .. }
    | Channel::Uma { sight, .. }
    | Channel::Rma { sight, .. }
    | Channel::Inh { sight, .. }) = channel
    else {
        return;
    };
    if *sight == Sight::Buildings && radio.buildings.is_empty() {
        c.key("channel", |c| c.key("sight", |c| c.wrong("there are no buildings: add `[[radio.buildings]]`")));
    }
}

fn check_array(array: &Array, c: &mut Check) {
    for (key, elements) in [("rows", array.rows), ("columns", array.columns)] {
        c.range(key, elements, 1..=64);
    }
    c.range("panels", array.panels, 1..=8);
    c.range("azimuth_deg", array.azimuth_deg, -360.0..=360.0);
    c.range("downtilt_deg", array.downtilt_deg, -90.0..=90.0);
}

fn check_cell(cell: &str, cells: &[String], c: &mut Check) {
    if !cells.iter().any(|name| name == cell) {
        c.wrong(unknown("cell", cell, cells.iter().map(String::as_str)));
    }
}

/// `taken` holds the priorities already assigned to a bearer.
fn check_priorities(priorities: &[u8], taken: &mut [bool; 16], c: &mut Check) {
    if priorities.is_empty() {
        c.wrong("at least one is required");
    }
    for (i, priority) in priorities.iter().enumerate() {
        c.index(i, |c| match taken.get_mut(usize::from(*priority)) {
            None => c.within(*priority, 0..=15),
            Some(true) => c.wrong(format!("priority {priority} is already assigned to a dedicated bearer")),
            Some(free) => *free = true,
        });
    }
}

fn check_mobility(mobility: &Mobility, c: &mut Check) {
    match mobility {
        Mobility::Still { position } => c.key("position", |c| check_vector(position, METRES, c)),
        Mobility::Line { from, velocity } => {
            c.key("from", |c| check_vector(from, METRES, c));
            c.key("velocity", |c| check_vector(velocity, SPEED, c));
        }
        Mobility::Waypoints { points } => c.key("points", |c| {
            if points.is_empty() {
                c.wrong("at least one is required");
            }
            for (i, (at, position)) in points.iter().enumerate() {
                c.index(i, |c| {
                    c.index(0, |c| c.within(*at, Span::ZERO..=MAX_SPAN));
                    c.index(1, |c| check_vector(position, METRES, c));
                });
            }
            for (i, pair) in points.windows(2).enumerate() {
                if pair[0].0 >= pair[1].0 {
                    let message = format!("{} must be later than the point before it, {}", pair[1].0, pair[0].0);
                    c.index(i + 1, |c| c.wrong(message));
                }
            }
        }),
        Mobility::Disc { centre, radius_m } => {
            c.key("centre", |c| check_vector(centre, METRES, c));
            c.positive("radius_m", *radius_m, 0.0, *METRES.end());
        }
        Mobility::Streets { x, y, height, block_m } => {
            check_area((x, y, *height), c);
            c.range("block_m", *block_m, BLOCK);
        }
        Mobility::RandomWaypoint { x, y, height, kmh, pause } => {
            check_area((x, y, *height), c);
            check_kmh(kmh, c);
            c.range("pause", *pause, Span::ZERO..=MAX_SPAN);
        }
        Mobility::Manhattan { x, y, height, block_m, turn, kmh } => {
            check_area((x, y, *height), c);
            c.range("block_m", *block_m, BLOCK);
            c.range("turn", *turn, 0.0..=1.0);
            check_kmh(kmh, c);
        }
        Mobility::Route { points, speeds } => {
            let legs = points.len().saturating_sub(1);
            c.key("points", |c| {
                if legs == 0 {
                    c.wrong("at least two are required");
                }
                for (i, point) in points.iter().enumerate() {
                    c.index(i, |c| check_vector(point, METRES, c));
                }
            });
            c.key("speeds", |c| {
                if speeds.is_empty() || speeds.len() > legs.max(1) {
                    let given = speeds.len();
                    c.wrong(format!("expected at most one speed for each leg, 1 to {}, found {given}", legs.max(1)));
                }
                for (i, speed) in speeds.iter().enumerate() {
                    if !(*speed > 0.0 && SPEED.contains(speed)) {
                        let (speed, most) = (shown(speed), SPEED.end());
                        c.index(i, |c| {
                            c.wrong(format!("{speed} is out of range: must be greater than 0 and at most {most}"));
                        });
                    }
                }
            });
        }
    }
}

/// Checks the sides of the area in which UEs move, and their height.
fn check_area((x, y, height): (&[f64; 2], &[f64; 2], f64), c: &mut Check) {
    check_rectangle(x, y, c);
    c.range("height", height, 0.0..=1000.0);
}

/// Checks the sides of a rectangle.
pub(super) fn check_rectangle(x: &[f64; 2], y: &[f64; 2], c: &mut Check) {
    for (key, [from, to]) in [("x", x), ("y", y)] {
        c.key(key, |c| {
            c.index(0, |c| c.within(*from, METRES));
            c.index(1, |c| c.within(*to, METRES));
            if from >= to {
                let (from, to) = (shown(from), shown(to));
                c.wrong(format!("the second side, {to}, must be greater than the first, {from}"));
            }
        });
    }
}

/// Checks the least and the greatest speed.
fn check_kmh([least, most]: &[f64; 2], c: &mut Check) {
    c.key("kmh", |c| {
        c.index(0, |c| c.within(*least, 0.1..=1000.0));
        c.index(1, |c| c.within(*most, 0.1..=1000.0));
        if least > most {
            let (least, most) = (shown(least), shown(most));
            c.wrong(format!("the greatest speed, {most}, must not be less than the least, {least}"));
        }
    });
}

fn check_channel(channel: &Channel, cells: &[String], c: &mut Check) {
    match channel {
        Channel::Friis | Channel::Umi { .. } | Channel::Uma { .. } | Channel::Inh { .. } => {}
        Channel::Rma { building_m, street_m, .. } => {
            c.range("building_m", *building_m, 5.0..=50.0);
            c.range("street_m", *street_m, 5.0..=50.0);
        }
        Channel::Cost231 { shadowing_db, correlation_m, .. } => {
            c.range("shadowing_db", *shadowing_db, 0.0..=30.0);
            c.positive("correlation_m", *correlation_m, 0.0, *METRES.end());
        }
        Channel::LogDistance { exponent, at_1m_db, shadowing_db, correlation_m } => {
            c.positive("exponent", *exponent, 0.0, 10.0);
            c.range("at_1m_db", *at_1m_db, LOSS_DB);
            c.range("shadowing_db", *shadowing_db, 0.0..=30.0);
            c.positive("correlation_m", *correlation_m, 0.0, *METRES.end());
        }
        Channel::Fixed { loss_db } => c.range("loss_db", *loss_db, LOSS_DB),
        Channel::Recorded { files, loss_db, offset } => {
            c.range("offset", offset.unwrap_or_default(), Span::ZERO..=MAX_SPAN);
            if let Some(loss_db) = loss_db {
                c.range("loss_db", *loss_db, LOSS_DB);
            }
            c.key("files", |c| {
                if files.is_empty() {
                    c.wrong("at least one is required");
                }
                for (cell, file) in files {
                    c.key(cell, |c| {
                        check_cell(cell, cells, c);
                        if file.is_empty() {
                            c.wrong("a file name is required");
                        }
                    });
                }
            });
        }
    }
}

fn check_bearer(bearer: &Bearer, c: &mut Check) {
    c.range("qci", bearer.qci, 1..=9);
    c.key("rlc", |c| bearer.rlc.check(c));
    c.key("nr", |c| bearer.nr.check(c));
    if let Some(queue) = &bearer.queue {
        c.key("queue", |c| queue.check(c));
    }
    if let Some(above) = &bearer.above {
        c.key("above", |c| {
            c.key("queue", |c| above.queue.check(c));
            c.key("limit", |c| above.limit.check(c));
        });
        let drops_arriving =
            |queue| matches!(queue, Queue::DropTail(drop_tail::Config { victim: Victim::Arriving, .. }));
        if !bearer.queue.is_none_or(drops_arriving) {
            let what = "with `above`, RLC's buffer must be a `drop-tail` queue that drops arriving packets (`drop = \"tail\"`)";
            c.key("queue", |c| c.wrong(what));
        }
    }
    c.range("discard", bearer.discard.unwrap_or(MILLISECOND), MILLISECOND..=MAX_TIMER);
}
