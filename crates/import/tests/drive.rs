//! Drive logs: the columns of loggers, what is missing, and what becomes of the cells that served.

use channel::Recorded;
use import::drive::{Columns, Direction, Drive, Made, read};
use import::{Error, Format, Noted, rates};

/// A log of G-NetTrack, as in the set uccmisl/5Gdataset: two rows in a second, a second without one, a handover, a row of
/// UMTS, and values that no UE reports.
const LOG: &str = "Timestamp,Longitude,Latitude,Speed,Operatorname,CellID,NetworkMode,RSRP,RSRQ,SNR,CQI,RSSI,DL_bitrate,UL_bitrate,State,PINGAVG,RAWCELLID,NRxRSRP,NRxRSRQ
2020.02.14_09.38.22,-8.5,51.8,0,B,12,5G,-99,-15,6.0,12,-90,8000,100,D,-,11016972,-100.0,-15.0
2020.02.14_09.38.23,-8.5,51.8,1,B,12,5G,-98,-15,5.0,11,-,4000,100,D,-,11016972,-100.0,-15.0
2020.02.14_09.38.23,-8.5,51.8,1,B,12,5G,-98,-15,-,-,-90,0,0,D,-,11016972,-,-
2020.02.14_09.38.24,-8.5,51.9,1,B,12,LTE,-102,-14,99,16,-90,12000,-,D,-,20033,-100.0,-15.0
2020.02.14_09.38.25,-8.5,51.9,1,B,7,UMTS,-71,-9,-,-,-90,1000,100,D,-,77,-,-
2020.02.14_09.38.27,-8.5,51.9,1,B,3,LTE,-90,-14,3.0,9,-90,5000,100,D,-,20033,-100.0,-15.0
";

fn drive(text: &str, columns: &Columns) -> Result<Noted<Drive>, Error> {
    read(text.as_bytes(), columns)
}

#[test]
fn a_log_of_g_nettrack_needs_no_option() {
    let Noted { value: drive, notes } = drive(LOG, &Columns::default()).unwrap();
    assert_eq!(
        notes,
        [
            "the columns are those of G-NetTrack: bitrates are in kbit/s",
            "2 rows are of LTE and 3 of 5G: the cells of a scenario are all of one technology (--technology)",
            "1 rows have the time of another, in whole seconds: all rows are spread evenly, which moves them by up to 1.0 s",
            "1 values of CQI are none that a UE can report, and are left out",
            "1 values of SINR are none that a UE can report, and are left out",
            "1 rows are of neither LTE nor 5G: their power, quality, SINR and CQI are left out",
        ]
    );
    assert_eq!((drive.rows.len(), drive.handovers(), drive.seconds()), (6, 3, 6.0));
    let of: Vec<_> = drive.rows.iter().map(|row| (row.at_s, row.rsrp_dbm, row.sinr_db, row.cqi, row.mbps)).collect();
    assert_eq!(of[1], (1.0, Some(-98.0), Some(5.0), Some(11.0), [Some(4.0), Some(0.1)]));
    assert_eq!(of[3], (3.0, Some(-102.0), None, None, [Some(12.0), None]));
    assert_eq!(of[4], (4.0, None, None, None, [Some(1.0), Some(0.1)]));
    let timeline = drive.to_csv();
    let lines: Vec<&str> = timeline.lines().collect();
    assert_eq!(lines[4], "3.000,cell-20033,LTE,-102,-14,,,12,,51.9,-8.5");
}

#[test]
fn rates_have_the_mean_of_their_column() {
    let drive = drive(LOG, &Columns::default()).unwrap().value;
    let down = drive.trace(Direction::Down, None).unwrap().unwrap();
    assert_eq!((down.value.period().as_millis(), down.value.mean_rate().as_mbps()), (6_000, 5.0));
    assert!(down.notes[0].starts_with("the rows are 1 s apart: the trace is smooth"), "{:?}", down.notes);
    let up = drive.trace(Direction::Up, None).unwrap().unwrap();
    assert_eq!(up.notes[0], "1 rows have no rate: that of the row before holds");
    let part = drive.part(3.0, Some(1.0)).unwrap();
    let part = part.trace(Direction::Down, None).unwrap().unwrap().value;
    assert_eq!((part.period().as_millis(), part.mean_rate().as_mbps()), (1_000, 12.0));
}

#[test]
fn cells_have_channels_and_change_when_they_did() {
    let drive = drive(LOG, &Columns::default()).unwrap().value;
    assert_eq!(drive.made_of(), Some(Made::Rsrp));
    let channels = drive.channels(Made::Both).unwrap();
    assert_eq!(channels.keys().collect::<Vec<_>>(), ["cell-11016972", "cell-20033"], "UMTS is none");
    // A row without an SINR has that of the row before. A cell that does not serve is 6 dB weaker.
    assert_eq!(
        channels["cell-11016972"],
        "time_s,sinr_db,rsrp_dbm\n0.000,6.000,-99.000\n1.000,5.000,-98.000\n2.000,5.000,-98.000\n3.000,5.000,-108.000\n\
         5.000,3.000,-96.000\n"
    );
    assert!(channels.values().all(|text| Recorded::parse(text).unwrap().samples() == 5));
    let channels = drive.channels(Made::Rsrp).unwrap();
    let second = "time_s,rsrp_dbm\n0.000,-105.000\n1.000,-104.000\n2.000,-104.000\n3.000,-102.000\n5.000,-90.000\n";
    assert_eq!(channels["cell-20033"], second);
    let sinr = drive.channels(Made::Sinr).unwrap();
    assert_eq!(sinr["cell-20033"], "time_s,sinr_db\n0.000,0.000\n1.000,-1.000\n5.000,3.000\n");
    // A part begins with what held.
    let part = drive.clone().part(1.5, Some(2.5)).unwrap();
    assert_eq!((part.rows.len(), part.handovers(), part.seconds()), (3, 1, 2.5));
    let part = part.channels(Made::Rsrp).unwrap();
    assert_eq!(part["cell-11016972"], "time_s,rsrp_dbm\n0.000,-98.000\n0.500,-98.000\n1.500,-108.000\n");
    let error = drive.part(6.0, None).unwrap_err().to_string();
    assert_eq!(error, "nothing is left of it: the recording ends after 6.000 s");
}

#[test]
fn other_loggers_names_are_found_or_selected() {
    let tab =
        "Timestamp\tNode\tCellID\tNetworkTech\tLevel\tQual\tSNR\n2020.02.14_09.38.22\t43035\t12\t4G\t-99\t-15\t6\n";
    let row = drive(tab, &Columns::default()).unwrap().value.rows.remove(0);
    assert_eq!((row.cell.as_deref(), row.rsrp_dbm, row.rsrq_db), (Some("43035-12"), Some(-99.0), Some(-15.0)));
    let android = "timestamp_ms;pci;SS-RSRP (dBm);ss_rsrq;ss_sinr;Downlink [Mbit/s]\n1700000000000;5;-99;-11;6.5;80\n";
    let row = drive(android, &Columns::default()).unwrap().value.rows.remove(0);
    assert_eq!((row.cell.as_deref(), row.rsrp_dbm, row.sinr_db), (Some("5"), Some(-99.0), Some(6.5)));
    assert_eq!(row.mbps, [Some(80.0), None]);
    let both = "time_s,lte_rsrp,nr_ssRsrp\n0,-99,-88\n";
    let error = drive(both, &Columns::default()).unwrap_err().to_string();
    assert_eq!(error, "several columns may be the RSRP: select one with --rsrp; choose one of lte_rsrp, nr_ssRsrp");
    let columns = Columns { rsrp: Some("nr_ssRsrp".into()), ..Columns::default() };
    assert_eq!(drive(both, &columns).unwrap().value.rows[0].rsrp_dbm, Some(-88.0));
    let columns = Columns { downlink: Some("dl".into()), ..Columns::default() };
    let error = drive("time_s,dl\n0,1\n", &columns).unwrap_err().to_string();
    assert!(error.starts_with("the unit of the rates in column `dl` is unknown: set it with --unit"), "{error}");
    let error = drive("time_s,a\n0,1\n", &Columns::default()).unwrap_err().to_string();
    assert!(error.starts_with("no column has a name for a received power"), "{error}");
    let error = drive("time_s,rsrp\n0,low\n", &Columns::default()).unwrap_err().to_string();
    assert_eq!(error, "line 2: the RSRP `low` is not a number");
}

/// The cells of rows, and the notes.
fn cells(text: &str, columns: &Columns) -> (Vec<String>, Vec<String>) {
    let read = drive(text, columns).unwrap();
    (read.value.rows.into_iter().map(|row| row.cell.unwrap_or_default()).collect(), read.notes)
}

#[test]
fn an_unknown_cell_is_none_and_one_cell_has_one_name() {
    let log = |head: &str, all: &[&str]| -> String {
        let rows = all.iter().enumerate().map(|(at, cell)| format!("{at},{cell},-90\n"));
        format!("time_s,{head},RSRP\n{}", rows.collect::<String>())
    };
    for unknown in ["2147483647", "-1", "0", "65535", "268435455", "4294967295", "9223372036854775807"] {
        let log = log("cellid", &["5", "5", unknown, "5", "1"]);
        let (cells, notes) = cells(&log, &Columns::default());
        assert_eq!(cells, ["5", "5", "", "5", "1"]);
        let wanted = format!("1 rows have an identity that stands for an unknown cell, and are of none ({unknown})");
        assert!(notes.contains(&wanted), "{notes:?}");
        let drive = drive(&log, &Columns::default()).unwrap().value;
        assert_eq!((drive.handovers(), drive.channels(Made::Rsrp).unwrap().len()), (1, 2));
    }
    assert_eq!(cells(&log("cellid", &["1.0", "1", "255", "0xFF"]), &Columns::default()).0, ["1", "1", "255", "255"]);
    assert_eq!(cells(&log("PCI", &["0", "1007", "1008", "3.0"]), &Columns::default()).0, ["0", "1007", "", "3"]);
    let of_node = "time_s,eNB,CellID,RSRP\n0,43035,0,-90\n1,43035,255,-90\n2,43035,2147483647,-90\n3,-1,1,-90\n";
    assert_eq!(cells(of_node, &Columns::default()).0, ["43035-0", "43035-255", "", ""]);
    let (_, notes) = cells("time_s,RSRP\n0,-90\n", &Columns::default());
    assert_eq!(notes[0], "no column is known to name the cell: all rows are of one (--cell)");
    // Names of files that would be the same are not.
    let drive = drive(&log("cellid", &["a b", "a-b", "a b"]), &Columns::default()).unwrap().value;
    assert_eq!(drive.channels(Made::Rsrp).unwrap().keys().collect::<Vec<_>>(), ["cell-a-b", "cell-a-b-2"]);
}

#[test]
fn a_cell_is_a_technology_a_carrier_and_an_identity() {
    let carriers = "time_s,PCI,EARFCN,RSRP\n0,5,1300,-90\n1,5,-,-90\n2,5,6300,-90\n3,5,2147483647,-90\n4,7,6300,-90\n";
    let (of, notes) = cells(carriers, &Columns::default());
    assert_eq!(of, ["5-1300", "5-1300", "5-6300", "5-6300", "7"]);
    let told = "1 identities are of several cells, which the technology, the frequency or the operator tells apart";
    assert_eq!(notes[0], told);
    // A global identity is that of one carrier, whose number some loggers tell a row too late.
    let global = "time_s,eci,EARFCN,RSRP\n0,500,1300,-90\n1,500,6300,-90\n";
    assert_eq!(cells(global, &Columns::default()).0, ["500", "500"]);
    let global = "time_s,CellID,EARFCN,RSRP\n0,27447297,1300,-90\n1,27447297,6300,-90\n2,7,1300,-90\n3,7,6300,-90\n";
    assert_eq!(cells(global, &Columns::default()).0, ["27447297", "27447297", "7-1300", "7-6300"]);
    let both = "time_s,CellID,NetworkMode,RSRP\n0,11,LTE,-90\n1,11,5G,-90\n2,12,5G,-90\n";
    let (of, notes) = cells(both, &Columns::default());
    assert_eq!((of, notes[0].as_str()), (vec!["11-lte".to_owned(), "11-nr".to_owned(), "12".to_owned()], told));
    let umts = "time_s,CellID,NetworkMode,RSRP\n0,11,LTE,-90\n1,11,UMTS,-90\n2,11,-,-90\n";
    assert_eq!(cells(umts, &Columns::default()).0, ["11-lte", "11-other", "11-other"]);
    let other = "1 rows are of LTE and 2 of 5G: the cells of a scenario are all of one technology (--technology)";
    assert_eq!(notes[1], other);
}

#[test]
fn of_several_operators_one_is_selected_or_their_cells_are_told_apart() {
    for (head, a, b) in [("operator", "A", "B"), ("MCC,MNC", "262,1", "262,2.0"), ("plmn", "26201", "26202")] {
        let row = |at: usize| format!("{at},{},5,{}\n", [a, b][at % 2], [-110, -80][at % 2]);
        let log = format!("time_s,{head},cellid,RSRP\n{}", (0..6).map(row).collect::<String>());
        let [first, second] = [a, b].map(|name| name.replace(',', "-").replace(".0", ""));
        let of = |operator: &str| Columns { operator: Some(operator.into()), ..Columns::default() };
        let error = drive(&log, &Columns::default()).unwrap_err().to_string();
        let list = format!("choose one of `{first}` (3 rows), `{second}` (3 rows), `all`");
        assert_eq!(error, format!("several operators in the log: select one with --operator; {list}"));
        let error = drive(&log, &of("C")).unwrap_err().to_string();
        assert_eq!(error, format!("no row is of an operator `C`; {list}"));
        let one = drive(&log, &of(&second)).unwrap();
        assert!(one.value.rows.iter().all(|row| row.rsrp_dbm == Some(-80.0)));
        assert_eq!((one.value.rows.len(), one.value.rows[1].at_s, one.value.handovers()), (3, 2.0, 0));
        assert_eq!(one.notes[0], "3 of 6 rows are of the operator, and the others are left out");
        let all = drive(&log, &of("all")).unwrap().value;
        assert_eq!((all.rows[0].cell.clone(), all.handovers()), (Some(format!("5-{first}")), 5));
    }
    // One operator in several spellings, and rows without service, are no reason to ask.
    let log =
        "time_s,Operatorname,cellid,RSRP\n0,vodafone IE,5,-90\n1,Vodafone IE,5,-90\n2,-,5,-90\n3,No service,5,-90\n";
    assert_eq!(drive(log, &Columns::default()).unwrap().value.rows.len(), 4);
}

#[test]
fn a_column_of_rates_is_asked_for_if_it_or_its_unit_is_not_clear() {
    let read = |head: &str| drive(&format!("time_s,PCI,RSRP,{head}\n0,5,-90,1,1\n1,5,-90,1,1\n"), &Columns::default());
    let error = read("dl_mbps,dl_max_mbps").unwrap_err().to_string();
    let wanted = "several columns may be the rate: select one with --downlink; choose one of dl_mbps, dl_max_mbps";
    assert_eq!(error, wanted);
    let error = read("dl_rate_bytes,x").unwrap_err().to_string();
    assert!(error.starts_with("the unit of the rates in column `dl_rate_bytes` is unknown: set it with"), "{error}");
    for name in ["dl [mb/s]", "dl_bitrate", "DownloadSpeed"] {
        let left_out = read(&format!("{name},x")).unwrap();
        let wanted = format!(
            "column `{name}` may be a rate, but its unit is unknown: it is left out; give --downlink and --unit"
        );
        assert_eq!((left_out.notes, left_out.value.rows[0].mbps), (vec![wanted], [None, None]));
    }
    let capitals = read("DL_MBPS,UL_MBps").unwrap();
    assert!(capitals.notes[0].starts_with("the unit of column `DL_MBPS` in capitals"), "{:?}", capitals.notes);
    assert_eq!(capitals.value.rows[0].mbps, [Some(1.0), Some(8.0)]);
}

#[test]
fn known_forms_of_tables_need_no_other_option() {
    let of = |text: &str, format: Format| {
        let read = rates(text.as_bytes(), &format.complete(import::Columns::default()), 0.0, None).unwrap();
        (read.value.period().as_millis(), read.value.mean_rate().as_mbps())
    };
    assert_eq!(of("0.0 4\n1.0\t2\n2.0 6\n", Format::Pensieve), (3_000, 4.0));
    assert_eq!(
        of("1453122790000 0 51.0 3.7 9 9\n1453122791000 1000 51.0 3.7 1500000 1000\n", Format::Ghent),
        (1_000, 12.0)
    );
    assert_eq!(of(LOG, Format::GNetTrack), (6_000, 5.0));
    assert_eq!(of("seq_num,latitude,Throughput\n1,44,8\n2,44,4\n", Format::Lumos5g), (2_000, 6.0));
    let up = import::Columns { rate: Some("UL_bitrate".into()), ..import::Columns::default() };
    let read = rates(LOG.as_bytes(), &Format::GNetTrack.complete(up), 0.0, None).unwrap();
    assert_eq!(read.notes[0], "1 rows without a time or a rate are left out");
}

#[test]
fn any_bytes_are_a_drive_or_one_line() {
    let check = |read: Result<Noted<Drive>, Error>| match read {
        Ok(Noted { value: drive, .. }) => {
            assert!(drive.rows.windows(2).all(|two| two[0].at_s <= two[1].at_s));
            for made in [Made::Rsrp, Made::Sinr, Made::Both] {
                if let Ok(channels) = drive.channels(made) {
                    assert!(!channels.is_empty() && channels.values().all(|text| Recorded::parse(text).is_ok()));
                }
            }
        }
        Err(error) => assert!(error.to_string().len() < 4_000, "{error}"),
    };
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        check(read(bytes, &Columns::default()));
        check(read(&[&b"time_s,cell,rsrp,sinr,dl_mbps\n0,1,-90,3,5\n"[..], bytes].concat()[..], &Columns::default()));
        let mut edited = LOG.as_bytes().to_vec();
        let begin = edited.iter().position(|&byte| byte == b'\n').unwrap_or(0);
        for two in bytes.chunks_exact(2).take(6) {
            let at = begin + usize::from(two[0]) * 2;
            if let Some(byte) = edited.get_mut(at) {
                *byte = b"0123456789.,-\n_x"[usize::from(two[1] % 16)];
            }
        }
        check(read(&edited[..], &Columns::default()));
    });
}

/// Handovers, received powers, and the notes about rows that are left out.
fn served(log: &str) -> (usize, Vec<f64>, Vec<String>) {
    let Noted { value, notes } = drive(log, &Columns::default()).unwrap();
    let notes = notes.into_iter().filter(|note| note.ends_with("left out")).collect();
    (value.handovers(), value.rows.iter().filter_map(|row| row.rsrp_dbm).collect(), notes)
}

#[test]
fn neighbours_and_secondary_carriers_do_not_serve() {
    let rows: String = (0..5).map(|at| format!("{at},1,77,-80\n{at},0,78,-90\n{at},false,79,-95\n")).collect();
    let (handovers, powers, notes) = served(&format!("time_s,registered,pci,rsrp\n{rows}"));
    assert_eq!((handovers, powers), (0, vec![-80.0; 5]));
    assert_eq!(notes, ["10 rows are of cells in which the phone is not registered, and are left out"]);
    for (column, [first, second]) in
        [("carrier", ["PCC", "SCC1"]), ("cc", ["PCell", "SCell2"]), ("component", ["Primary", "secondary"])]
    {
        let row = |at| format!("{at}.5,{second},78,-90\n{at}.6,{first},77,-80\n");
        let rows: String = (0..5).map(row).collect();
        let (handovers, powers, notes) = served(&format!("time_s,{column},pci,rsrp\n{rows}"));
        assert_eq!((handovers, powers), (0, vec![-80.0; 5]), "{column}");
        assert!(notes.len() == 1 && notes[0].starts_with("5 rows are of secondary component carriers"), "{notes:?}");
    }
    let error = drive("time_s,registered,rsrp\n0,no,-80\n", &Columns::default()).unwrap_err().to_string();
    assert!(error.starts_with("no row with a time; 1 rows are of cells in which"), "{error}");
}

#[test]
fn two_cells_at_one_time_are_no_handover() {
    for step in [1.0, 0.5] {
        let row = |at: u32| format!("{0},77,-80\n{0},78,-90\n", f64::from(at) * step);
        let rows: String = (0..15).map(row).collect();
        let (handovers, powers, notes) = served(&format!("time_s,pci,rsrp\n{rows}"));
        assert_eq!((handovers, powers), (0, vec![-80.0; 15]));
        let what =
            "rows are of another cell than the first row of the same time, which is no handover, and are left out";
        assert_eq!(notes, [format!("15 {what}")]);
    }
    // A list of cells with the serving one first, which changes; and a second of a logger in which a handover is.
    let (handovers, powers, _) =
        served("time_s,pci,rsrp\n0,77,-80\n0,78,-90\n1,78,-81\n1,77,-91\n2,78,-82\n2,77,-92\n");
    assert_eq!((handovers, powers), (1, vec![-80.0, -81.0, -82.0]));
    let (handovers, powers, notes) = served("time_s,pci,rsrp\n0,77,-80\n1,77,-81\n1,78,-82\n2,78,-83\n3,78,-84\n");
    assert_eq!((handovers, powers, notes.len()), (1, vec![-80.0, -81.0, -82.0, -83.0, -84.0], 0));
}

#[test]
fn amounts_of_data_in_a_log_are_no_rates_and_named() {
    let Noted { value, notes } =
        drive("time_s,pci,rsrp,dl_bytes,tx_kB\n0,77,-80,9,9\n1,77,-80,9,9\n", &Columns::default()).unwrap();
    assert_eq!(value.rows[0].mbps, [None; 2]);
    for name in ["dl_bytes", "tx_kB"] {
        let note = format!(
            "column `{name}` has amounts of data and no rates, and is left out: make a trace of it with `ranway import rates --rate {name}`"
        );
        assert!(notes.contains(&note), "{notes:?}");
    }
}
