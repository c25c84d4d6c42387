//! Power delay profiles of fading channels.
//!
//! Sources: 3GPP TS 36.104 Tables B.2-2 to B.2-4 (EPA, EVA, ETU); TR 38.901 Tables 7.7.2-1 to 7.7.2-5 (TDL-A to TDL-E)
//! and 7.7.3 (their delay spread); TS 38.104 Tables G.2.1.1-2 to G.2.1.1-4 (TDLA30, TDLB100, TDLC300, which are TDL-A to
//! TDL-C with taps merged on a grid of 5 ns).

/// A tapped delay line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Profile {
    /// Extended Pedestrian A.
    #[default]
    Epa,
    /// Extended Vehicular A.
    Eva,
    /// Extended Typical Urban.
    Etu,
    /// A channel of TR 38.901 7.7.2.
    Tdl {
        /// The normalised profile.
        model: Tdl,
        /// The delay spread by which its delays are multiplied, in nanoseconds.
        delay_spread_ns: f64,
    },
    /// TDL-A with 30 ns, simplified.
    TdlA30,
    /// TDL-B with 100 ns, simplified.
    TdlB100,
    /// TDL-C with 300 ns, simplified.
    TdlC300,
}

/// A normalised profile of TR 38.901 7.7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tdl {
    /// Without line of sight.
    A,
    /// Without line of sight.
    B,
    /// Without line of sight.
    C,
    /// With line of sight: K of 13.3 dB in the first tap.
    D,
    /// With line of sight: K of 22 dB in the first tap.
    E,
}

impl Profile {
    /// Returns the excess delay and the relative power in dB of each Rayleigh tap. Delays are in units of
    /// [`Profile::delay_unit_ns`].
    pub const fn taps(self) -> &'static [(f64, f64)] {
        match self {
            Profile::Epa => &EPA,
            Profile::Eva => &EVA,
            Profile::Etu => &ETU,
            Profile::Tdl { model: Tdl::A, .. } => &TDL_A,
            Profile::Tdl { model: Tdl::B, .. } => &TDL_B,
            Profile::Tdl { model: Tdl::C, .. } => &TDL_C,
            Profile::Tdl { model: Tdl::D, .. } => &TDL_D,
            Profile::Tdl { model: Tdl::E, .. } => &TDL_E,
            Profile::TdlA30 => &TDL_A30,
            Profile::TdlB100 => &TDL_B100,
            Profile::TdlC300 => &TDL_C300,
        }
    }

    /// Returns the unit of the delays of [`Profile::taps`] in nanoseconds: the delay spread of a normalised profile,
    /// otherwise 1.
    pub const fn delay_unit_ns(self) -> f64 {
        match self {
            Profile::Tdl { delay_spread_ns, .. } => delay_spread_ns,
            _ => 1.0,
        }
    }

    /// Returns the power in dB, relative like those of [`Profile::taps`], of a constant path in addition to the first
    /// tap.
    pub const fn line_of_sight_db(self) -> Option<f64> {
        match self {
            Profile::Tdl { model: Tdl::D, .. } => Some(-0.2),
            Profile::Tdl { model: Tdl::E, .. } => Some(-0.03),
            _ => None,
        }
    }

    /// Returns the power of all paths, in the unit of their relative powers.
    pub(super) fn power(self) -> f64 {
        let taps: f64 = self.taps().iter().map(|&(_, db)| crate::linear(db)).sum();
        taps + self.line_of_sight_db().map_or(0.0, crate::linear)
    }

    /// Returns the root mean square delay spread in nanoseconds.
    pub fn delay_spread_ns(self) -> f64 {
        let power = self.power();
        // A line of sight has a delay of zero.
        let moment = |order: f64| {
            let sum: f64 = self.taps().iter().map(|&(delay, db)| crate::linear(db) * libm::pow(delay, order)).sum();
            sum / power
        };
        libm::sqrt(moment(2.0) - moment(1.0) * moment(1.0)) * self.delay_unit_ns()
    }
}

const EPA: [(f64, f64); 7] =
    [(0.0, 0.0), (30.0, -1.0), (70.0, -2.0), (90.0, -3.0), (110.0, -8.0), (190.0, -17.2), (410.0, -20.8)];
const EVA: [(f64, f64); 9] = [
    (0.0, 0.0),
    (30.0, -1.5),
    (150.0, -1.4),
    (310.0, -3.6),
    (370.0, -0.6),
    (710.0, -9.1),
    (1090.0, -7.0),
    (1730.0, -12.0),
    (2510.0, -16.9),
];
const ETU: [(f64, f64); 9] = [
    (0.0, -1.0),
    (50.0, -1.0),
    (120.0, -1.0),
    (200.0, 0.0),
    (230.0, 0.0),
    (500.0, 0.0),
    (1600.0, -3.0),
    (2300.0, -5.0),
    (5000.0, -7.0),
];
#[rustfmt::skip]
const TDL_A: [(f64, f64); 23] = [
    (0.0, -13.4), (0.3819, 0.0), (0.4025, -2.2), (0.5868, -4.0), (0.461, -6.0), (0.5375, -8.2), (0.6708, -9.9),
    (0.575, -10.5), (0.7618, -7.5), (1.5375, -15.9), (1.8978, -6.6), (2.2242, -16.7), (2.1718, -12.4),
    (2.4942, -15.2), (2.5119, -10.8), (3.0582, -11.3), (4.081, -12.7), (4.4579, -16.2), (4.5695, -18.3),
    (4.7966, -18.9), (5.0066, -16.6), (5.3043, -19.9), (9.6586, -29.7),
];
#[rustfmt::skip]
const TDL_B: [(f64, f64); 23] = [
    (0.0, 0.0), (0.1072, -2.2), (0.2155, -4.0), (0.2095, -3.2), (0.287, -9.8), (0.2986, -1.2), (0.3752, -3.4),
    (0.5055, -5.2), (0.3681, -7.6), (0.3697, -3.0), (0.57, -8.9), (0.5283, -9.0), (1.1021, -4.8), (1.2756, -5.7),
    (1.5474, -7.5), (1.7842, -1.9), (2.0169, -7.6), (2.8294, -12.2), (3.0219, -9.8), (3.6187, -11.4), (4.1067, -14.9),
    (4.279, -9.2), (4.7834, -11.3),
];
#[rustfmt::skip]
#[allow(clippy::approx_constant, reason = "a delay that happens to be near 2 / pi")]
const TDL_C: [(f64, f64); 24] = [
    (0.0, -4.4), (0.2099, -1.2), (0.2219, -3.5), (0.2329, -5.2), (0.2176, -2.5), (0.6366, 0.0), (0.6448, -2.2),
    (0.656, -3.9), (0.6584, -7.4), (0.7935, -7.1), (0.8213, -10.7), (0.9336, -11.1), (1.2285, -5.1), (1.3083, -6.8),
    (2.1704, -8.7), (2.7105, -13.2), (4.2589, -13.9), (4.6003, -13.9), (5.4902, -15.8), (5.6077, -17.1),
    (6.3065, -16.0), (6.6374, -15.7), (7.0427, -21.6), (8.6523, -22.8),
];
#[rustfmt::skip]
const TDL_D: [(f64, f64); 13] = [
    (0.0, -13.5), (0.035, -18.8), (0.612, -21.0), (1.363, -22.8), (1.405, -17.9), (1.804, -20.1), (2.596, -21.9),
    (1.775, -22.9), (4.042, -27.8), (7.937, -23.6), (9.424, -24.8), (9.708, -30.0), (12.525, -27.7),
];
#[rustfmt::skip]
const TDL_E: [(f64, f64); 14] = [
    (0.0, -22.03), (0.5133, -15.8), (0.544, -18.1), (0.563, -19.8), (0.544, -22.9), (0.7112, -22.4), (1.9092, -18.6),
    (1.9293, -20.8), (1.9589, -22.6), (2.6426, -22.3), (3.7136, -25.6), (5.4524, -20.2), (12.0034, -29.8),
    (20.6519, -29.2),
];
#[rustfmt::skip]
const TDL_A30: [(f64, f64); 12] = [
    (0.0, -15.5), (10.0, 0.0), (15.0, -5.1), (20.0, -5.1), (25.0, -9.6), (50.0, -8.2), (65.0, -13.1), (75.0, -11.5),
    (105.0, -11.0), (135.0, -16.2), (150.0, -16.6), (290.0, -26.2),
];
#[rustfmt::skip]
const TDL_B100: [(f64, f64); 12] = [
    (0.0, 0.0), (10.0, -2.2), (20.0, -0.6), (30.0, -0.6), (35.0, -0.3), (45.0, -1.2), (55.0, -5.9), (120.0, -2.2),
    (170.0, -0.8), (245.0, -6.3), (330.0, -7.5), (480.0, -7.1),
];
#[rustfmt::skip]
const TDL_C300: [(f64, f64); 12] = [
    (0.0, -6.9), (65.0, 0.0), (70.0, -7.7), (190.0, -2.5), (195.0, -2.4), (200.0, -9.9), (240.0, -8.0), (325.0, -6.6),
    (520.0, -7.1), (1045.0, -13.0), (1510.0, -14.2), (2595.0, -16.0),
];
