//! Layouts: several cells from one entry.

use units::kinds;

kinds! { "Layout",
    /// Several cells with the same parameters.
    #[derive(Copy)]
    pub enum Layout {
        /// Sites on a hexagonal grid: one at the position, and rings of 6, 12, 18, ... around it, each from the east
        /// counterclockwise. There are no sites beyond the last, so that outer cells have less interference.
        Hexagonal {
            /// Number of sites: 1, 7, 19, 37, ... fill the rings.
            sites: u32,
            /// Distance between neighbouring sites in metres.
            spacing_m: f64,
            /// Sectors of each site, at equal angles; 1 is an omnidirectional site. The first one points to the cell's
            /// `sector_deg` or its array's `azimuth_deg`, by default between two neighbouring sites, to 30 degrees.
            #[serde(default = "three")]
            sectors: u8,
        },
        /// Sites in a row that begins at the position.
        Row {
            /// Number of sites.
            sites: u32,
            /// Distance between neighbouring sites in metres.
            spacing_m: f64,
            /// Direction of the row in degrees from east towards north.
            #[serde(default)]
            bearing_deg: f64,
        },
    }
}

fn three() -> u8 {
    3
}

impl Layout {
    /// Returns the number of cells.
    pub(crate) fn cells(&self) -> u64 {
        match *self {
            Layout::Hexagonal { sites, sectors, .. } => u64::from(sites) * u64::from(sectors),
            Layout::Row { sites, .. } => u64::from(sites),
        }
    }
}
