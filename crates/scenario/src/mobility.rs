//! Where UEs are, and how they move.

use units::{Span, kinds};

kinds! { "Mobility",
    /// Position and movement of a UE; positions are metres east, north, and above ground.
    pub enum Mobility {
        /// Stationary.
        Still {
            /// The position.
            position: [f64; 3],
        },
        /// Moves in a straight line without end.
        Line {
            /// Initial position.
            from: [f64; 3],
            /// Velocity in metres per second east, north and up.
            velocity: [f64; 3],
        },
        /// Moves from point to point, reaching each at its time; stays at the last.
        Waypoints {
            /// `[["0 s", [0, 0, 1.5]], ["10 s", [100, 0, 1.5]]]`.
            points: Vec<(Span, [f64; 3])>,
        },
        /// Moves along a route, with a speed for each leg; stays at the end.
        Route {
            /// The endpoints of the legs.
            points: Vec<[f64; 3]>,
            /// Speed on each leg in metres per second; the last one applies to all further legs.
            speeds: Vec<f64>,
        },
        /// Stationary at a random place on a disc, another one for each UE and run.
        Disc {
            /// The centre of the disc.
            centre: [f64; 3],
            /// Its radius in metres.
            radius_m: f64,
        },
        /// Stationary at a random place on the streets of a grid, another one for each UE and run.
        Streets {
            /// The western and the eastern side of the grid, in metres east.
            x: [f64; 2],
            /// The southern and the northern side, in metres north.
            y: [f64; 2],
            /// Metres above ground.
            #[serde(default = "ue_height")]
            height: f64,
            /// Distance between crossings in metres, from the south-western corner.
            block_m: f64,
        },
        /// Moves from one random place of a rectangle to the next (random waypoint). After 100,000 legs it stays.
        RandomWaypoint {
            /// The western and the eastern side of the rectangle, in metres east.
            x: [f64; 2],
            /// The southern and the northern side, in metres north.
            y: [f64; 2],
            /// Metres above ground.
            #[serde(default = "ue_height")]
            height: f64,
            /// The least and the greatest speed of a leg in km/h.
            kmh: [f64; 2],
            /// How long it stays at each place.
            #[serde(default)]
            pause: Span,
        },
        /// Moves along the streets of a grid. After 100,000 blocks it stays.
        Manhattan {
            /// The western and the eastern side of the grid, in metres east.
            x: [f64; 2],
            /// The southern and the northern side, in metres north.
            y: [f64; 2],
            /// Metres above ground.
            #[serde(default = "ue_height")]
            height: f64,
            /// Distance between crossings in metres, from the south-western corner.
            block_m: f64,
            /// Probability of turning at a crossing, to either side.
            #[serde(default = "half")]
            turn: f64,
            /// The least and the greatest speed between crossings in km/h.
            kmh: [f64; 2],
        },
    }
}

impl Default for Mobility {
    fn default() -> Mobility {
        Mobility::Still { position: [100.0, 0.0, 1.5] }
    }
}

fn ue_height() -> f64 {
    1.5
}

fn half() -> f64 {
    0.5
}
