//! The places of the cells of a [`Layout`].

use crate::layout::Layout;
use crate::lte::Cell;

/// Direction of the first sector in degrees, between two neighbouring sites.
const FIRST_DEG: f64 = 30.0;

/// Returns the cells made from `cell`, named `NAME-SITE` or `NAME-SITE-SECTOR`.
fn place(layout: Layout, cell: &Cell) -> Vec<Cell> {
    let base = if cell.name.is_empty() { "cell" } else { &cell.name };
    let at = |[x, y]: [f64; 2]| [cell.position[0] + x, cell.position[1] + y, cell.position[2]];
    let one = Cell { layout: None, ..cell.clone() };
    match layout {
        Layout::Row { sites, spacing_m, bearing_deg } => {
            let (sin, cos) = (libm::sin(bearing_deg.to_radians()), libm::cos(bearing_deg.to_radians()));
            let step = |n: u32| [spacing_m * f64::from(n) * cos, spacing_m * f64::from(n) * sin];
            let site = |n| Cell { name: format!("{base}-{}", n + 1), position: at(step(n)), ..one.clone() };
            (0..sites).map(site).collect()
        }
        Layout::Hexagonal { sites, spacing_m, sectors } => {
            let mut cells = Vec::new();
            for (site, place) in (1..).zip(hexagons(sites)) {
                let position = at(place.map(|x| x * spacing_m));
                if sectors == 1 {
                    cells.push(Cell { name: format!("{base}-{site}"), position, ..one.clone() });
                    continue;
                }
                for sector in 0..sectors {
                    let turn = 360.0 / f64::from(sectors) * f64::from(sector);
                    let mut cell = Cell { name: format!("{base}-{site}-{}", sector + 1), position, ..one.clone() };
                    match &mut cell.array {
                        Some(array) => array.azimuth_deg = wrapped(array.azimuth_deg + turn),
                        None => cell.sector_deg = Some(wrapped(cell.sector_deg.unwrap_or(FIRST_DEG) + turn)),
                    }
                    cells.push(cell);
                }
            }
            cells
        }
    }
}

/// Returns the first `count` places of a hexagonal grid with a spacing of 1.
fn hexagons(count: u32) -> impl Iterator<Item = [f64; 2]> {
    // Steps along the axes of the grid, which are 60 degrees apart.
    const SIDES: [[i32; 2]; 6] = [[-1, 1], [-1, 0], [0, -1], [1, -1], [1, 0], [0, 1]];
    let ring = |ring: i32| {
        let mut place = [ring, 0];
        (0..6 * ring).map(move |step| {
            let here = place;
            let [east, northeast] = SIDES[(step / ring) as usize];
            place = [place[0] + east, place[1] + northeast];
            here
        })
    };
    let metres = |[east, northeast]: [i32; 2]| {
        let (east, northeast) = (f64::from(east), f64::from(northeast));
        [east + 0.5 * northeast, northeast * (0.5 * 3f64.sqrt())]
    };
    core::iter::once([0, 0]).chain((1..).flat_map(ring)).take(count as usize).map(metres)
}

/// Returns an angle in degrees from -180 to 360, as cells may have.
fn wrapped(degrees: f64) -> f64 {
    if degrees > 360.0 { degrees - 360.0 } else { degrees }
}

/// Returns the number of cells with all layouts.
pub(crate) fn placed_count(cells: &[Cell]) -> u64 {
    cells.iter().map(|cell| cell.layout.map_or(1, |layout| layout.cells())).sum()
}

/// Returns `cells` with each layout replaced by its cells and names for those without, each with the index of its entry.
pub(crate) fn placed(cells: &[Cell]) -> Vec<(usize, Cell)> {
    let each = |(entry, cell): (usize, &Cell)| {
        let cells = cell.layout.map_or_else(|| vec![cell.clone()], |layout| place(layout, cell));
        cells.into_iter().map(move |cell| (entry, cell))
    };
    let mut all: Vec<_> = cells.iter().enumerate().flat_map(each).collect();
    for (number, (_, cell)) in (1..).zip(&mut all) {
        if cell.name.is_empty() {
            cell.name = format!("cell-{number}");
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_fill_rings_at_equal_distances() {
        let all: Vec<[f64; 2]> = hexagons(37).collect();
        let apart = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).hypot(a[1] - b[1]);
        for (ring, sites) in [(1, 1..7), (2, 7..19), (3, 19..37)] {
            let far = all[sites.clone()].iter().map(|at| apart(*at, [0.0; 2]));
            let (least, most) = (f64::from(ring) * 0.75f64.sqrt() - 1e-9, f64::from(ring) + 1e-9);
            assert!(far.into_iter().all(|far| (least..=most).contains(&far)), "ring {ring}");
            assert!((all[sites.start][0] - f64::from(ring)).abs() < 1e-9, "it begins in the east");
        }
        for (i, at) in all.iter().enumerate() {
            let near = all.iter().filter(|other| (apart(*at, **other) - 1.0).abs() < 1e-9).count();
            assert!(all.iter().enumerate().all(|(j, other)| i == j || apart(*at, *other) > 1.0 - 1e-9));
            assert!(i >= 19 || near == 6, "site {i} has {near} neighbours");
        }
    }
}
