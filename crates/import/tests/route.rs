//! Routes of tracks and timetables: what they become, and whatever else is in such files.
#![allow(clippy::disallowed_methods)]

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use import::route::{Layout, Route, gtfs};

/// Metres of a degree of latitude at the equator (WGS 84).
const DEGREE_M: f64 = 110_574.3;

fn layout() -> Layout {
    Layout { origin: None, rotate_deg: 0.0, height_m: 1.5, speed: None }
}

/// The route of a GPX file with one track.
fn gpx(from: impl std::io::Read, layout: &Layout) -> Result<Route, import::Error> {
    import::route::gpx(from, None, layout).map(|read| read.value)
}

/// A track that drives north at 10 m/s for 100 s, stands for 60 s with a receiver that wanders by a metre, and drives on for 50 s.
fn track(times: bool) -> String {
    let mut text = r#"<?xml version="1.0"?><gpx version="1.1" creator="t" xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>"#.to_owned();
    for second in 0..=210 {
        let north = match second {
            0..=100 => f64::from(second) * 10.0,
            101..=160 => 1000.0 + f64::from(second % 2),
            _ => 1000.0 + f64::from(second - 160) * 10.0,
        };
        let time = format!("<time>2026-11-25T09:{:02}:{:02}Z</time>", second / 60, second % 60);
        let time = if times { time } else { String::new() };
        text += &format!("<trkpt lat=\"{:.7}\" lon=\"17.5\">{time}</trkpt>", north / DEGREE_M);
    }
    text + "</trkseg></trk></gpx>"
}

#[test]
fn a_track_has_its_speeds_and_stops() {
    let route = gpx(track(true).as_bytes(), &layout()).unwrap();
    assert_eq!((route.seconds(), route.stops(), route.origin), (210.0, 1, [0.0, 17.5]));
    assert!((route.length_m() - 1500.0).abs() < 3.0, "{}", route.length_m());
    let stop = route.points.windows(2).find(|two| two[0].1 == two[1].1).unwrap();
    assert!((stop[1].0 - stop[0].0 - 60.0).abs() < 1.5 && (stop[0].1[1] - 1000.0).abs() < 2.0, "{stop:?}");
    let speeds = route.points.windows(2).filter(|two| two[0].1 != two[1].1);
    for two in speeds {
        let speed = (two[1].1[1] - two[0].1[1]) / (two[1].0 - two[0].0);
        assert!((8.0..12.5).contains(&speed), "{two:?}");
    }
    let text = route.to_toml("drive");
    assert!(
        text.starts_with("[parameters.drive]\nkind = \"waypoints\"\npoints = [\n  [\"0.00 s\", [0.0, 0.0, 1.5]],\n"),
        "{text}"
    );
}

#[test]
fn a_place_that_nobody_can_reach_in_time_is_refused() {
    let text = track(true).replacen("lat=\"0.0045218\"", "lat=\"0.5\"", 1);
    assert_ne!(text, track(true), "the place after 50 s");
    let error = gpx(text.as_bytes(), &layout()).unwrap_err().to_string();
    assert_eq!(error, "49 s after its beginning, the route moves 54.8 km in 1.0 s: remove the place that is wrong");
}

#[test]
fn a_track_without_times_needs_a_speed() {
    let error = gpx(track(false).as_bytes(), &layout()).unwrap_err().to_string();
    assert_eq!(error, "has points without a time: give the speed with --speed");
    let route = gpx(track(false).as_bytes(), &Layout { speed: Some(5.0), ..layout() }).unwrap();
    // 1500 m without the wandering.
    assert!((route.seconds() - 300.0).abs() < 2.0, "{}", route.seconds());
    assert_eq!(route.stops(), 0);
}

const TRIPS: &str = "\u{feff}route_id,service_id,trip_id,trip_headsign,shape_id\nr,s,t1,North,sh\nr,s,t2,South,\n";
const STOPS: &str = "stop_id,stop_name,stop_lat,stop_lon\na,A,0,17.5\nb,B,0.009,17.5\nc,C,0.009,17.509\n";
/// Stop b at 25:00 of the day before, for 30 s; c has the time of the minute after.
const TIMES: &str = "trip_id,arrival_time,departure_time,stop_id,stop_sequence\n\
    t1,24:58:20,24:58:20,a,1\nt2,08:00:00,08:00:00,b,1\nt1,25:00:00,25:00:30,b,5\nt1,25:02:10,25:02:10,c,9\nt2,08:01:00,08:01:00,a,2\n";
const SHAPES: &str = "shape_id,shape_pt_lat,shape_pt_lon,shape_pt_sequence\nsh,0,17.5,1\nsh,0.009,17.509,40\nsh,0.0045,17.5,2\nsh,0.009,17.5,3\n";

fn feed(dir: &Path) {
    for (name, text) in [("trips.txt", TRIPS), ("stops.txt", STOPS), ("stop_times.txt", TIMES), ("shapes.txt", SHAPES)]
    {
        fs::write(dir.join(name), text).unwrap();
    }
}

fn zipped(path: &Path, folder: &str) {
    let mut writer = zip::ZipWriter::new(File::create(path).unwrap());
    for (name, text) in [("trips.txt", TRIPS), ("stops.txt", STOPS), ("stop_times.txt", TIMES), ("shapes.txt", SHAPES)]
    {
        writer.start_file(format!("{folder}{name}"), zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_trip_follows_its_shape_and_stops_at_its_stops() {
    let dir = tempfile::tempdir().unwrap();
    feed(dir.path());
    let route = gtfs(dir.path(), Some("t1"), &layout()).unwrap().value;
    let near = |point: &(f64, [f64; 2]), at: f64, place: [f64; 2]| {
        assert!(
            (point.0 - at).abs() < 0.1 && (point.1[0] - place[0]).abs() < 3.0 && (point.1[1] - place[1]).abs() < 3.0,
            "{point:?}"
        );
    };
    let expected = [
        (0.0, [0.0, 0.0]),
        (50.0, [0.0, 497.6]),
        (100.0, [0.0, 995.2]),
        (130.0, [0.0, 995.2]),
        (230.0, [1001.9, 995.2]),
    ];
    assert_eq!(route.points.len(), expected.len(), "{:?}", route.points);
    route.points.iter().zip(expected).for_each(|(point, (at, place))| near(point, at, place));
    assert_eq!(route.stops(), 1);
    // A trip without a shape goes straight from stop to stop.
    let back = gtfs(dir.path(), Some("t2"), &layout()).unwrap().value;
    assert_eq!((back.points.len(), back.seconds()), (2, 60.0));
    for folder in ["", "feed/"] {
        let zip = dir.path().join("feed.zip");
        zipped(&zip, folder);
        assert_eq!(gtfs(&zip, Some("t1"), &layout()).unwrap().value, route);
    }
}

#[test]
fn what_is_missing_is_named() {
    let dir = tempfile::tempdir().unwrap();
    feed(dir.path());
    let error = |trip| gtfs(dir.path(), trip, &layout()).unwrap_err().to_string();
    assert_eq!(error(None), "several trips: select one with --trip; choose one of t1, t2");
    assert_eq!(error(Some("t3")), "no trip `t3`; choose one of t1, t2");
    fs::write(dir.path().join("stops.txt"), "stop_id,stop_lat,stop_lon\na,0,17.5\n").unwrap();
    assert_eq!(error(Some("t1")), "stop `b` has no place in stops.txt");
    fs::write(dir.path().join("stop_times.txt"), TIMES.replace("25:00:00", "x")).unwrap();
    assert!(error(Some("t1")).starts_with("line 4: of stop_times.txt: "), "{}", error(Some("t1")));
    fs::remove_file(dir.path().join("trips.txt")).unwrap();
    assert_eq!(error(Some("t1")), "not GTFS: it has no trips.txt");
    let text = dir.path().join("a.txt");
    fs::write(&text, "hello").unwrap();
    let what = "neither GPX (*.gpx) nor GTFS: expected a directory, or a zip file of up to 1000 files";
    assert_eq!(gtfs(&text, None, &layout()).unwrap_err().to_string(), what);
    let still = r#"<gpx version="1.1" creator="t"><rte><rtept lat="1" lon="2"/><rtept lat="1" lon="2"/></rte></gpx>"#;
    let error = gpx(still.as_bytes(), &Layout { speed: Some(1.0), ..layout() }).unwrap_err().to_string();
    assert_eq!(error, "does not move: all its places are one");
    let at = |lat: u8| format!(r#"<trkpt lat="{lat}" lon="1"><time>2020-01-01T00:10:00Z</time></trkpt>"#);
    let at_once = format!(r#"<gpx version="1.1" creator="t"><trk><trkseg>{}{}</trkseg></trk></gpx>"#, at(1), at(2));
    let error = gpx(at_once.as_bytes(), &layout()).unwrap_err().to_string();
    assert_eq!(error, "all its places have the same time");
    assert!(gpx(&b"hello"[..], &layout()).unwrap_err().to_string().starts_with("not GPX: "));
}

/// A file with these elements below its root.
fn file(elements: &str) -> String {
    format!(
        r#"<?xml version="1.0"?><gpx version="1.1" creator="t" xmlns="http://www.topografix.com/GPX/1/1">{elements}</gpx>"#
    )
}

/// A point of a track at a thousandth of a degree times `north`, `minute` minutes after the beginning.
fn place(north: u32, minute: u32, more: &str) -> String {
    let lat = f64::from(north) / 1e3;
    format!("<trkpt lat=\"{lat}\" lon=\"17.5\"><ele>4</ele><time>2020-01-01T00:{minute:02}:00Z</time>{more}</trkpt>")
}

#[test]
fn elements_that_are_not_needed_are_skipped_whatever_they_are() {
    // All elements of wptType and trkType of the schema of GPX 1.1, those of 1.0, extensions with the same names, and others.
    let more = "<magvar>3.2</magvar><geoidheight>1</geoidheight><name>n</name><cmt>c</cmt><desc>d</desc><src>s</src>\
        <link href=\"http://example.org\"><text>t</text><type>x</type></link><sym>s</sym><type>t</type><fix>3d</fix><sat>7</sat>\
        <hdop>1</hdop><vdop>1</vdop><pdop>1</pdop><ageofdgpsdata>1</ageofdgpsdata><dgpsid>1023</dgpsid><course>1</course>\
        <speed>x</speed><url>u</url><unknown><deep/></unknown>\
        <extensions><time>never</time><trkpt lat=\"x\"/><a:hr xmlns:a=\"urn:a\">9</a:hr></extensions>";
    let points = [place(0, 0, more), place(1, 1, more), place(2, 2, more)].concat();
    let head = "<metadata><name>m</name><time>2019-01-01T00:00:00Z</time><bounds minlat=\"0\"/></metadata><wpt lat=\"9\" lon=\"9\"/>";
    let of_track = "<name>a</name><cmt/><number>7</number><extensions><color>Red</color></extensions>";
    let text = file(&format!("{head}<trk>{of_track}<trkseg>{points}<extensions/></trkseg></trk><extensions/>"));
    let route = gpx(text.as_bytes(), &layout()).unwrap();
    assert_eq!((route.seconds(), route.points.len()), (120.0, 3));
    assert!((route.length_m() - 2.0 * DEGREE_M / 1e3).abs() < 0.1, "{}", route.length_m());
    for bad in
        ["<trkpt lat=\"91\" lon=\"0\"/>", "<trkpt lat=\"1\"/>", "<trkpt lat=\"1\" lon=\"2\"><time>noon</time></trkpt>"]
    {
        let error = gpx(file(&format!("<trk><trkseg>{bad}</trkseg></trk>")).as_bytes(), &layout()).unwrap_err();
        assert!(error.to_string().starts_with("not GPX: "), "{error}");
    }
}

#[test]
fn one_of_several_tracks_is_chosen_or_they_are_joined_with_a_note() {
    let track = |name: &str, from: u32| {
        let points = [place(from, from, ""), place(from + 1, from + 1, "")].concat();
        format!("<trk><name>{name}</name><trkseg>{points}</trkseg></trk>")
    };
    let text = file(&[track("out", 0), "<trk><name>empty</name></trk>".to_owned(), track("back", 10)].concat());
    let read = |which: Option<&str>| import::route::gpx(text.as_bytes(), which, &layout());
    assert_eq!(
        read(None).unwrap_err().to_string(),
        "several tracks: select one with --track, by its number or name, or all to join them; choose one of 1 (`out`, 2 points), \
         2 (`back`, 2 points)"
    );
    for which in ["2", "back"] {
        let one = read(Some(which)).unwrap();
        assert!((one.value.length_m() - DEGREE_M / 1e3).abs() < 0.1 && one.notes.is_empty(), "{which}");
    }
    let all = read(Some("all")).unwrap();
    assert!((all.value.length_m() - 11.0 * DEGREE_M / 1e3).abs() < 0.1);
    assert_eq!(all.notes, ["2 segments are joined by straight lines of 1.00 km in all"]);
    assert!(read(Some("there")).unwrap_err().to_string().starts_with("no track `there`; choose one of 1 (`out`"));
}

#[test]
fn a_track_that_goes_back_in_time_says_where_and_what_would_do() {
    let points = [place(0, 0, ""), place(1, 5, ""), place(2, 2, ""), place(3, 6, "")].concat();
    let text = file(&format!("<trk><trkseg>{points}</trkseg></trk>"));
    let error = gpx(text.as_bytes(), &layout()).unwrap_err().to_string();
    assert_eq!(error, "goes back in time 300 s after its beginning, at 0.002000,17.500000: --speed replaces the times");
    let without = text.replacen("<time>2020-01-01T00:02:00Z</time>", "", 1);
    let read = import::route::gpx(without.as_bytes(), None, &layout()).unwrap();
    assert_eq!((read.value.seconds(), read.notes), (360.0, vec!["1 points without a time are left out".to_owned()]));
}

/// A round of 4 km and three quarters of a second one. Stop B is on its first side, and reached in the second round.
const LOOP: [(&str, &str); 4] = [
    ("trips.txt", "route_id,service_id,trip_id,shape_id\nr,s,t,sh\n"),
    ("stops.txt", "stop_id,stop_lat,stop_lon\na,60,20\nb,60,20.0089\nc,60.0089,20\n"),
    (
        "stop_times.txt",
        "trip_id,arrival_time,departure_time,stop_id,stop_sequence,shape_dist_traveled\n\
         t,08:00:00,08:00:00,a,1,0\nt,08:05:00,08:05:00,b,2,4.5\nt,08:07:47,08:07:47,c,3,7\n",
    ),
    (
        "shapes.txt",
        "shape_id,shape_pt_lat,shape_pt_lon,shape_pt_sequence,shape_dist_traveled\nsh,60,20,1,0\nsh,60,20.0179,2,1\n\
         sh,60.0089,20.0179,3,2\nsh,60.0089,20,4,3\nsh,60,20,5,4\nsh,60,20.0179,6,5\nsh,60.0089,20.0179,7,6\nsh,60.0089,20,8,7\n",
    ),
];

#[test]
fn a_stop_is_where_the_feeds_distances_say() {
    let dir = tempfile::tempdir().unwrap();
    let read = |edit: &dyn Fn(&str, &str) -> String| {
        LOOP.iter().for_each(|(name, text)| fs::write(dir.path().join(name), edit(name, text)).unwrap());
        gtfs(dir.path(), None, &layout()).unwrap()
    };
    let unedited = read(&|_, text| text.to_owned());
    let route = &unedited.value;
    assert!((route.length_m() - 6_970.0).abs() < 30.0 && unedited.notes.is_empty(), "{}", route.length_m());
    for two in route.points.windows(2) {
        let speed = (two[1].1[0] - two[0].1[0]).hypot(two[1].1[1] - two[0].1[1]) / (two[1].0 - two[0].0);
        assert!((speed - 15.0).abs() < 0.3, "{two:?}");
    }
    // Without distances, B is where the shape passes first; with such that lead elsewhere, they are not used. Both are said.
    let first = read(&|_, text| text.replace("shape_dist_traveled", "other"));
    assert!((first.value.length_m() - 2_990.0).abs() < 30.0, "{}", first.value.length_m());
    assert!(
        first.notes[0].starts_with("3 stops are at places that the shape passes several times"),
        "{:?}",
        first.notes
    );
    let metres =
        read(&|name, text| if name == "stop_times.txt" { text.replace(",4.5\n", ",4500\n") } else { text.to_owned() });
    assert!(metres.notes[0].starts_with("shape_dist_traveled decreases"), "{:?}", metres.notes);
    let wrong =
        read(&|name, text| if name == "stop_times.txt" { text.replace(",4.5\n", ",6.5\n") } else { text.to_owned() });
    let what = "shape_dist_traveled leads to places that are more than 500 m from the stops: stops are where the shape first comes near them";
    assert_eq!(wrong.notes[0], what);
}

fn check(route: Result<Route, import::Error>) {
    match route {
        Ok(route) => {
            assert!(route.points.windows(2).all(|two| two[0].0 < two[1].0), "{:?}", route.points);
            let numbers = route.points.iter().flat_map(|point| [point.0, point.1[0], point.1[1]]);
            assert!(numbers.into_iter().all(f64::is_finite));
        }
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
}

fn edited(text: &[u8], edits: &[(u16, u8)]) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for &(at, byte) in edits.iter().take(6) {
        let at = usize::from(at) % bytes.len();
        bytes[at] = if bytes[at].is_ascii_digit() && byte.is_multiple_of(2) { b'0' + byte % 10 } else { byte };
    }
    bytes
}

#[test]
fn places_at_the_time_of_another_are_counted() {
    let point =
        |north: f64, s: u32| format!("<trkpt lat='{north}' lon='0'><time>2024-01-01T00:00:{s:02}Z</time></trkpt>");
    let points = [point(51.0, 0), point(51.0, 0), point(51.001, 0), point(51.001, 10)].concat();
    let text = format!("<gpx version='1.1'><trk><trkseg>{points}</trkseg></trk></gpx>");
    let read = import::route::gpx(text.as_bytes(), None, &layout()).unwrap();
    assert_eq!(read.notes, ["1 places have the time of another one before, and are left out"]);
}

#[test]
fn any_edit_of_a_track_or_a_feed_is_a_route_or_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let zip = dir.path().join("feed.zip");
    zipped(&zip, "");
    let packed = fs::read(&zip).unwrap();
    let track: String =
        track(true).split_inclusive("</trkpt>").step_by(20).collect::<String>() + "</trkseg></trk></gpx>";
    let edits = bolero::produce::<(u8, Vec<(u16, u8)>)>();
    bolero::check!().with_generator(edits).with_iterations(1_000).for_each(|(which, edits)| {
        if which.is_multiple_of(2) {
            check(gpx(&edited(track.as_bytes(), edits)[..], &layout()));
            check(gpx(&edited(track.as_bytes(), edits)[..], &Layout { speed: Some(1.0), ..layout() }));
            return;
        }
        feed(dir.path());
        let (name, text) =
            [("trips.txt", TRIPS), ("stops.txt", STOPS), ("stop_times.txt", TIMES), ("shapes.txt", SHAPES)]
                [usize::from(which / 2 % 4)];
        fs::write(dir.path().join(name), edited(text.as_bytes(), edits)).unwrap();
        check(gtfs(dir.path(), Some("t1"), &layout()).map(|read| read.value));
        fs::write(&zip, edited(&packed, edits)).unwrap();
        check(gtfs(&zip, Some("t1"), &layout()).map(|read| read.value));
    });
}
