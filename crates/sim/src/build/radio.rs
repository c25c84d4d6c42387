//! Builds the radio network of a scenario.

use super::links::queue;
use super::nr;
use super::recordings::{Playback, period};
use super::surroundings::{self, Surroundings};
use crate::network::medium::radio::Radio;
use crate::rows::RunId;
use crate::rows::radio::Recorder;
use aqm::drop_tail;
use channel::pathloss::{Office, Sight};
use channel::recorded::Start;
use channel::tables::lte::Category;
use channel::wandering::{self, Area, Pace};
use channel::{
    AirConfig, Carrier, Channel, Mobility, Orientation, PathLoss, Position, Recorded, Shadowing, Site, fading,
};
use des::Streams;
use ran::{Above, BearerConfig, CellConfig, Filter, MacConfig, Ran, Room, Secondary, Stream, UeConfig, rlc};
use scenario::{Limit, Queue, Scenario, Technology};
use std::sync::Arc;
use units::{Bytes, Span, Time};

/// The network, which is called as `part`.
pub(super) fn radio(
    scenario: &Scenario,
    network: &scenario::Radio,
    id: RunId,
    playback: Playback<'_>,
    streams: &Streams,
) -> Radio {
    let ues: Vec<String> = network.ues.iter().map(|ue| ue.name.clone()).collect();
    let config = config(network, playback, streams, Time::ZERO + scenario.duration);
    let stream = |stream: Stream| match stream {
        Stream::Air(ue) => streams.named(&format!("ue {} air", ues[ue as usize])),
        Stream::Decoding(ue) => streams.named(&format!("ue {} decoding", ues[ue as usize])),
    };
    let ran = Ran::new(&config, stream);
    let serving = (0..ran.ues()).map(|ue| ran.last_serving(ue));
    let cells = cell_names(network, &config);
    let recorder = Recorder::new(id, (ues, serving), cells, scenario.record.radio);
    Radio::new(ran, recorder)
}

/// The names of the cells, followed by those of their second carriers.
fn cell_names(network: &scenario::Radio, config: &ran::Config) -> Vec<String> {
    let names = network.cells.iter().map(|cell| cell.name.clone());
    let second = network.cells.iter().zip(&config.cells).filter(|(_, cell)| cell.secondary.is_some());
    names.chain(second.map(|(cell, _)| format!("{}/2", cell.name))).collect()
}

/// The network's settings.
fn config(network: &scenario::Radio, playback: Playback<'_>, streams: &Streams, end: Time) -> ran::Config {
    let surroundings = surroundings::of(network);
    let lte = network.carriers.lte.as_ref().map(|lte| (lte_carriers(lte), (&lte.mac).into()));
    let nr = network.carriers.nr.as_ref().map(|nr| (nr::carriers(nr), nr.mac.config(&nr.cell())));
    let of = |cell: &scenario::Cell| match network.technology(cell) {
        Technology::Lte => lte,
        Technology::Nr => nr,
    };
    let cell = |cell: &scenario::Cell| {
        let (carriers, mac) = of(cell).expect("a checked cell has a carrier");
        self::cell(cell, carriers, mac)
    };
    ran::Config {
        cells: network.cells.iter().map(cell).collect(),
        ues: network.ues.iter().map(|ue| ue_config(ue, network, playback, &surroundings, (streams, end))).collect(),
        handover: (&network.handover).into(),
    }
}

/// The carrier of LTE cells, and the second one.
fn lte_carriers(lte: &scenario::LteCarriers) -> (Carrier, Option<Carrier>) {
    let carrier = |downlink_mhz: f64, uplink_mhz: f64, of| Carrier {
        downlink_hz: downlink_mhz * 1e6,
        uplink_hz: uplink_mhz * 1e6,
        ..Carrier::lte(bandwidth(of))
    };
    // Nothing is sent in the uplink of the second one.
    let second =
        lte.secondary.as_ref().map(|second| carrier(second.downlink_mhz, second.downlink_mhz, second.bandwidth));
    (carrier(lte.downlink_mhz, lte.uplink_mhz, lte.bandwidth), second)
}

fn cell(cell: &scenario::Cell, (carrier, second): (Carrier, Option<Carrier>), mac: MacConfig) -> CellConfig {
    CellConfig {
        site: Site {
            position: position(cell.position),
            antenna: match (&cell.array, cell.sector_deg) {
                (Some(array), _) => channel::Antenna::Array(surroundings::array(array)),
                (None, Some(degrees)) => channel::Antenna::sector(degrees),
                (None, None) => channel::Antenna::default(),
            },
            power_dbm: cell.power_dbm,
            noise_figure_db: cell.noise_figure_db,
            carrier,
        },
        mac,
        downlink: cell.scheduler,
        uplink: cell.uplink_scheduler,
        load: cell.load as f32,
        secondary: second.map(|carrier| Secondary { carrier, power_dbm: cell.power_dbm }),
    }
}

fn ue_config(
    ue: &scenario::Ue,
    network: &scenario::Radio,
    playback: Playback<'_>,
    surroundings: &Surroundings,
    (streams, end): (&Streams, Time),
) -> UeConfig {
    let index = |name: &String| network.cells.iter().position(|cell| cell.name == *name);
    // Logical channel groups: the default bearer's is the last, as eNodeBs commonly have it. With NR each bearer has its own.
    let scenario::Carriers { lte, nr } = &network.carriers;
    let last = if nr.is_some() { 7 } else { 3 };
    let bearer = |of: &scenario::Bearer, filter, group: u8, name: &str| BearerConfig {
        qci: of.qci,
        filter,
        group,
        rlc: rlc::Config {
            mode: of.rlc.mode(lte.as_ref().is_some_and(|lte| lte.mac.ideal)),
            downlink: ran::pdcp::Config {
                // Below another queue, it is the other's to keep to the limit.
                queue: match of.above {
                    None => queue(of.queue(Technology::Lte), streams, name),
                    Some(_) => Queue::UNLIMITED,
                },
                discard: of.discard,
            },
            uplink: ran::pdcp::Config { queue: Queue::UNLIMITED, discard: of.discard },
        },
        nr: nr.as_ref().map(|_| (&of.nr).into()),
        nr_buffer: nr.as_ref().filter(|_| of.queue.is_none()).map(|_| {
            let own = of.queue(Technology::Nr);
            ran::Buffer {
                queue: if of.above.is_none() { queue(own, streams, name) } else { Queue::UNLIMITED },
                room: room(&own),
            }
        }),
        above: of.above.as_ref().map(|above| {
            let waiting = queue(above.queue, streams, &format!("above {name}"));
            self::above(waiting, above.limit, room(&of.queue(Technology::Lte)))
        }),
    };
    let mut bearers = vec![bearer(&ue.bearer, Filter::All, last, &format!("bearer {}", ue.name))];
    for (i, dedicated) in (0..).zip(&ue.dedicated) {
        let set = dedicated.priorities.iter().fold(0, |set, priority| set | 1 << priority);
        let name = format!("bearer {} {}", ue.name, i + 1);
        bearers.push(bearer(&dedicated.bearer, Filter::Priorities(set), i.min(last - 1), &name));
    }
    UeConfig {
        air: AirConfig {
            mobility: mobility(ue, streams, end),
            channel: channel(&ue.channel, network, playback),
            fading: ue.fading.map(|fading| self::fading(fading, downlink_mhz(network))),
            interference_fades: ue.interference_fading,
            gain_db: ue.gain_db,
            noise_figure_db: ue.noise_figure_db,
            power: network.power_control.of_ue(ue.power_dbm),
            buildings: surroundings.buildings.clone(),
            penetration: surroundings.penetration,
            car: ue.car.map(surroundings::car),
            blockage: ue.blockage.map(surroundings::blockage),
            array: ue.array.as_ref().map(surroundings::array),
            orientation: ue.orientation_deg.map_or(Orientation::Movement, Orientation::Fixed),
            sweep: surroundings.sweep,
        },
        cell: ue.cell.as_ref().and_then(index),
        // A recording is of one carrier.
        aggregates: ue.carriers != Some(1) && !matches!(ue.channel, scenario::Channel::Recorded { .. }),
        layers: ue.layers,
        category: ue.category.and_then(Category::numbered).unwrap_or_default(),
        bearers,
        host: above(
            queue(ue.host_queue, streams, &format!("host {}", ue.name)),
            ue.modem_limit,
            Room { packets: None, bytes: Some(ue.modem.get()) },
        ),
        reports_host: ue.reports_host,
        modem_drops: ue.modem_full == scenario::ModemFull::Drop,
    }
}

/// Returns the size of a buffer below another queue.
fn room(buffer: &Queue) -> Room {
    let Queue::DropTail(drop_tail::Config { packets, bytes, victim: _ }) = buffer else {
        unreachable!("a checked buffer is drop-tail")
    };
    Room { packets: packets.map(u64::from), bytes: bytes.map(Bytes::get) }
}

fn above(queue: Queue, limit: Limit, room: Room) -> Above {
    Above { gate: aqm::gate::Config { queue, limit }, room }
}

/// Returns the centre frequency of the downlink that a Doppler shift is for.
fn downlink_mhz(network: &scenario::Radio) -> f64 {
    let scenario::Carriers { lte, nr } = &network.carriers;
    let lte = lte.as_ref().map(|lte| lte.downlink_mhz);
    nr.as_ref().map(|nr| nr.frequency_mhz).or(lte).expect("a network has a carrier")
}

fn channel(channel: &scenario::Channel, network: &scenario::Radio, playback: Playback<'_>) -> Channel {
    let modelled = |path_loss, shadowing| Channel::Modelled { path_loss, shadowing };
    match channel {
        scenario::Channel::Friis => modelled(PathLoss::Friis, None),
        scenario::Channel::LogDistance { exponent, at_1m_db, shadowing_db, correlation_m } => {
            let loss = PathLoss::LogDistance { exponent: *exponent, reference_m: 1.0, reference_db: *at_1m_db };
            modelled(loss, (*shadowing_db > 0.0).then(|| Shadowing::uniform(*shadowing_db, *correlation_m)))
        }
        scenario::Channel::Umi { sight, shadowing } => {
            modelled(PathLoss::UmiStreetCanyon(self::sight(*sight)), shadowing.then_some(Shadowing::UMI))
        }
        scenario::Channel::Uma { sight, shadowing } => {
            modelled(PathLoss::UrbanMacro(self::sight(*sight)), shadowing.then_some(Shadowing::UMA))
        }
        scenario::Channel::Rma { sight, shadowing, building_m, street_m } => {
            let sight = self::sight(*sight);
            let loss = PathLoss::RuralMacro { sight, building_m: *building_m, street_m: *street_m };
            modelled(loss, shadowing.then_some(Shadowing::RMA))
        }
        scenario::Channel::Inh { sight, shadowing, office } => {
            let office = match office {
                scenario::Office::Mixed => Office::Mixed,
                scenario::Office::Open => Office::Open,
            };
            let loss = PathLoss::IndoorOffice { sight: self::sight(*sight), office };
            modelled(loss, shadowing.then_some(Shadowing::INH))
        }
        scenario::Channel::Cost231 { metropolitan, shadowing_db, correlation_m } => {
            let loss = PathLoss::Cost231Hata { metropolitan: *metropolitan };
            modelled(loss, (*shadowing_db > 0.0).then(|| Shadowing::uniform(*shadowing_db, *correlation_m)))
        }
        scenario::Channel::Fixed { loss_db } => modelled(PathLoss::Fixed(*loss_db), None),
        scenario::Channel::Recorded { files, loss_db, offset } => {
            let Playback { channels, begin } = playback;
            let record = |cell: &scenario::Cell| {
                let record = &channels[files.get(&cell.name)?];
                let with_loss = |loss_db: &f64| Arc::new(Recorded::clone(record).with_loss(*loss_db));
                Some(loss_db.as_ref().map_or_else(|| Arc::clone(record), with_loss))
            };
            let start = match (offset, begin) {
                (None, Some(begin)) => Start::repeating(begin, period(files, channels)),
                (offset, _) => Start::at(offset.unwrap_or_default()),
            };
            Channel::Recorded(network.cells.iter().map(record).collect(), start)
        }
    }
}

fn sight(of: scenario::Sight) -> Sight {
    match of {
        scenario::Sight::Los => Sight::Los,
        scenario::Sight::Nlos => Sight::Nlos,
        scenario::Sight::Buildings => Sight::Buildings,
        scenario::Sight::Random => Sight::Random,
    }
}

fn fading(fading: scenario::Fading, downlink_mhz: f64) -> fading::Config {
    let (profile, kmh) = match fading {
        scenario::Fading::Epa { kmh } => (fading::Profile::Epa, kmh),
        scenario::Fading::Eva { kmh } => (fading::Profile::Eva, kmh),
        scenario::Fading::Etu { kmh } => (fading::Profile::Etu, kmh),
        scenario::Fading::Tdl { profile, delay_spread, kmh } => {
            let model = match profile {
                scenario::Tdl::A => fading::Tdl::A,
                scenario::Tdl::B => fading::Tdl::B,
                scenario::Tdl::C => fading::Tdl::C,
                scenario::Tdl::D => fading::Tdl::D,
                scenario::Tdl::E => fading::Tdl::E,
            };
            (fading::Profile::Tdl { model, delay_spread_ns: delay_spread.as_nanos() as f64 }, kmh)
        }
        scenario::Fading::TdlA30 { kmh } => (fading::Profile::TdlA30, kmh),
        scenario::Fading::TdlB100 { kmh } => (fading::Profile::TdlB100, kmh),
        scenario::Fading::TdlC300 { kmh } => (fading::Profile::TdlC300, kmh),
    };
    // f_d = v f / c.
    let hz = |kmh: f64| kmh / 3.6 * downlink_mhz * 1e6 / 299_792_458.0;
    let doppler = kmh.map_or(fading::Doppler::Speed, |kmh| fading::Doppler::Hz(hz(kmh)));
    fading::Config { profile, doppler }
}

/// The movement of a UE until `end`, at which a random one may stop.
fn mobility(ue: &scenario::Ue, streams: &Streams, end: Time) -> Mobility {
    let random = || streams.named(&format!("ue {} movement", ue.name));
    let pace = |kmh: &[f64; 2], pause| Pace { speeds: kmh.map(|kmh| kmh / 3.6), pause, until: end };
    let of = &ue.mobility;
    const CHECKED: &str = "a checked scenario's movements are sound";
    match of {
        scenario::Mobility::Still { position: at } => Mobility::fixed(position(*at)),
        scenario::Mobility::Line { from, velocity } => Mobility::line(position(*from), *velocity),
        scenario::Mobility::Waypoints { points } => {
            let points: Vec<_> = points.iter().map(|(at, point)| (Time::ZERO + *at, position(*point))).collect();
            Mobility::waypoints(&points).expect(CHECKED)
        }
        scenario::Mobility::Disc { centre, radius_m } => {
            Mobility::fixed(wandering::on_disc(position(*centre), *radius_m, &mut random()))
        }
        scenario::Mobility::Streets { x, y, height, block_m } => {
            Mobility::fixed(wandering::on_streets(&Area { x: *x, y: *y, z: *height }, *block_m, &mut random()))
        }
        scenario::Mobility::RandomWaypoint { x, y, height, kmh, pause } => {
            wandering::random_waypoint(&Area { x: *x, y: *y, z: *height }, &pace(kmh, *pause), &mut random())
        }
        scenario::Mobility::Manhattan { x, y, height, block_m, turn, kmh } => {
            let area = Area { x: *x, y: *y, z: *height };
            wandering::manhattan(&area, *block_m, *turn, &pace(kmh, Span::ZERO), &mut random())
        }
        scenario::Mobility::Route { points, speeds } => {
            let points: Vec<_> = points.iter().map(|point| position(*point)).collect();
            // The last speed holds for the rest.
            let rest = std::iter::repeat(speeds.last().copied().unwrap_or_default());
            let speeds: Vec<f64> = speeds.iter().copied().chain(rest).take(points.len() - 1).collect();
            Mobility::route(&points, &speeds).expect(CHECKED)
        }
    }
}

fn bandwidth(of: scenario::Bandwidth) -> channel::Bandwidth {
    match of {
        scenario::Bandwidth::Mhz1_4 => channel::Bandwidth::Mhz1_4,
        scenario::Bandwidth::Mhz3 => channel::Bandwidth::Mhz3,
        scenario::Bandwidth::Mhz5 => channel::Bandwidth::Mhz5,
        scenario::Bandwidth::Mhz10 => channel::Bandwidth::Mhz10,
        scenario::Bandwidth::Mhz15 => channel::Bandwidth::Mhz15,
        scenario::Bandwidth::Mhz20 => channel::Bandwidth::Mhz20,
    }
}

fn position([x, y, z]: [f64; 3]) -> Position {
    Position::new(x, y, z)
}
