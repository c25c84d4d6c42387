//! Tables of rates and amounts: counters, units that are not clear, and runs.

use import::{Columns, Covers, Error, Format, Unit, Where, rates};

fn fault<T: std::fmt::Debug>(read: Result<T, Error>) -> String {
    read.unwrap_err().to_string()
}

/// The rates of a column a second apart, and the notes.
fn column(name: &str, values: &[f64], columns: &Columns) -> Result<(f64, Vec<String>), Error> {
    let rows: String = values.iter().enumerate().map(|(at, value)| format!("{at},{value}\n")).collect();
    let read = rates(format!("time_s,{name}\n{rows}").as_bytes(), columns, 0.0, None)?;
    let notes = read.notes.into_iter().filter(|note| !note.starts_with("the rows are 1 s apart")).collect();
    Ok((read.value.mean_rate().as_mbps(), notes))
}

#[test]
fn a_counter_that_begins_anew_after_all_its_bits_is_one() {
    let wrapped = |modulus: f64, begin: f64, step: f64, unit: f64| -> Vec<f64> {
        (0..10).map(|at| (begin + step * f64::from(at)) % modulus / unit).collect()
    };
    let two = |bits: i32| 2f64.powi(bits);
    let (anew, since) = ("is assumed to have begun anew", "are assumed to be sums since the start; otherwise, give");
    for (name, values, after) in [
        ("rx_bytes", wrapped(two(32), 4_294e6, 1e6, 1.0), "once, after 2^32 bytes"),
        ("rx_bytes", wrapped(two(31), 2_147e6, 1e6, 1.0), "once, after 2^31 bytes"),
        ("rx_kB", wrapped(two(32), 4_294e6, 1e6, 1e3), "once, after 2^32 bytes"),
        ("rx_kB", wrapped(two(32), two(32) - 3_000.0, 1e3, 1.0), "once, after 2^32 of its unit"),
    ] {
        let (mbps, notes) = column(name, &values, &Columns::default()).unwrap();
        assert!((mbps - 8.0).abs() < 0.05, "{name}: {mbps} {notes:?}");
        assert_eq!(notes[0], format!("the counter in column `{name}` {anew} {after}"));
        assert!(notes[1].contains(since), "{notes:?}");
    }
    // 800 Mbit/s from a counter of 31 bits.
    let fast: Vec<f64> = (0..100).map(|at| 1e8 * f64::from(at) % two(31)).collect();
    let (mbps, notes) = column("bytes_total", &fast, &Columns::default()).unwrap();
    assert!((mbps - 800.0).abs() < 1.0 && notes[0].contains("anew 4 times, after 2^31 bytes"), "{mbps} {notes:?}");
    let given = Columns { covers: Some(Covers::SinceStart), ..Columns::default() };
    assert_eq!(column("rx_bytes", &wrapped(two(32), 4_294e6, 1e6, 1.0), &given).unwrap().1.len(), 1);
    // Mostly idle; and more than a quarter of it in a step, which only one that is known to be a counter has.
    let idle = [0.0, 0.0, 1e6, 1e6, 1e6, 2e6, 2e6, 2e6, 3e6].map(|value| (4_294e6 + value) % two(32));
    assert!(column("rx_bytes", &idle, &Columns::default()).unwrap().1[0].contains("anew once, after 2^32 bytes"));
    let steep: Vec<f64> = (0..9).map(|at| 15e8 * f64::from(at) % two(32)).collect();
    let (mbps, _) = column("rx_bytes", &steep, &given).unwrap();
    assert!((mbps - 12_000.0).abs() < 10.0, "{mbps}");
    let (_, notes) = column("rx_bytes", &steep, &Columns::default()).unwrap();
    assert!(notes[0].contains("since the previous row"), "{notes:?}");
    // One that was reset is no wrap, and nobody knows what it missed.
    let reset: Vec<f64> = (0..10).map(|at| f64::from(at % 6) * 1e6).collect();
    let error = fault(column("rx_bytes", &reset, &Columns::default()));
    assert!(error.starts_with("the values of column `rx_bytes` grow, but for one fall: say whether"), "{error}");
    assert!(fault(column("rx_bytes", &reset, &given)).contains("began anew; import the parts singly"));
    // Amounts that vary are none of a counter.
    let varies = [5e5, 9e5, 2e6, 1e6, 15e5, 16e5, 3e5, 7e5, 1e6, 2e6];
    let (_, notes) = column("bytes", &varies, &Columns::default()).unwrap();
    assert!(notes[0].contains("are assumed to have come since the previous row"), "{notes:?}");
}

#[test]
fn capitals_of_a_unit_and_a_texture_of_nothing_are_said() {
    let (mbps, notes) = column("THROUGHPUT_MBPS", &[12.0, 12.0], &Columns::default()).unwrap();
    assert!(mbps == 12.0 && notes[0].contains("assumed to be in bits, not bytes"), "{notes:?}");
    let bytes = Columns { unit: Unit::parse("MB/s"), ..Columns::default() };
    assert_eq!(column("THROUGHPUT_MBPS", &[1.5, 1.5], &bytes).unwrap(), (12.0, Vec::new()));
    let table = &b"time_s,mbps\n0,12\n1,24\n2,12\n"[..];
    let of = |texture| rates(table, &Columns { texture, ..Columns::default() }, 0.0, None).unwrap();
    assert_eq!(of(Some(0.0)), of(None));
}

#[test]
fn of_a_table_of_runs_one_is_selected() {
    let row = |run: u32, at: u32| format!("{run},{at},{}\n", 12 * run);
    let rows: String = (1..=2).flat_map(|run| (1..=10).map(move |at| row(run, at))).collect();
    let of = |head: &str, run: Option<&str>| {
        let columns = Columns { run: run.map(str::to_owned), ..Columns::default() };
        let columns = Format::Lumos5g.complete(columns);
        rates(format!("{head},seq_num,Throughput\n{rows}").as_bytes(), &columns, 0.0, None)
    };
    let list = "choose one of 1 (10 rows), 2 (10 rows)";
    assert_eq!(fault(of("run_num", None)), format!("several runs in the table: select one with --run; {list}"));
    assert_eq!(fault(of("run_num", Some("3"))), format!("no row is of a run `3`; {list}"));
    let second = of("run_num", Some("2")).unwrap();
    assert_eq!((second.value.period().as_millis(), second.value.mean_rate().as_mbps()), (10_000, 24.0));
    assert_eq!(second.notes[0], "10 of 20 rows are of the run, and the others are left out");
    assert!(fault(of("other", Some("2"))).starts_with("no column `run_num`"));
    let table = "time_s,run,mbps\n0,a,24\n1,a,24\n0,b,12\n1,b,12\n";
    let columns = Columns { run: Some("b".into()), ..Columns::default() };
    assert_eq!(rates(table.as_bytes(), &columns, 0.0, None).unwrap().value.mean_rate().as_mbps(), 12.0);
    let error = fault(rates(&b"time_s,mbps\n0,8\n"[..], &columns, 0.0, None));
    assert!(error.starts_with("--run: no column is called one of runs"), "{error}");
}

#[test]
fn a_row_with_more_cells_than_the_header_is_not_read_by_it() {
    let of = |table: &str| rates(table.as_bytes(), &Columns::default(), 0.0, None);
    for table in [
        "time_s,mbps\n0,5,8,5\n1,5,9,5\n",
        "time_s,mbps\n0,8\n1,8,5\n",
        "\"time_s\",\"mbps\"\n\"a\",0,8\n",
        "time_s mbps\n1 0 8\n2 1 8\n",
    ] {
        let error = fault(of(table));
        assert!(error.contains(" cells, and the header has 2: expected a name for each column"), "{error}");
    }
    let error = fault(of("time_s,mbps\n0,8\n1,8,5\n"));
    assert!(error.starts_with("line 3: has 3 cells") && error.contains("decimal commas"), "{error}");
    // A separator at the end of each row, and decimal commas where they separate nothing.
    assert_eq!(of("time_s,mbps\n0,12,\n1,12,\n").unwrap().value.mean_rate().as_mbps(), 12.0);
    let drive = import::drive::read(&b"time_s,rsrp\n0,-80\n1,-80,5\n"[..], &import::drive::Columns::default());
    assert!(fault(drive).starts_with("line 3: has 3 cells"));
    let log = "time\tcellId\tIMSI\tsinr\n0\t1\t1\t2\t3\n";
    assert!(fault(import::channel::ns3(log.as_bytes(), &Default::default())).starts_with("line 2: has 5 cells"));
}

#[test]
fn names_of_rows_as_r_writes_them_are_no_values() {
    let of = |table: &str| rates(table.as_bytes(), &Columns::default(), 0.0, None);
    for separator in [" ", ",", "\t"] {
        let rows = ["\"time_s\" \"mbps\"", "\"1\" 0 12", "\"2\" 1 24", "\"3\" 2 12"];
        let read = of(&rows.map(|row| row.replace(' ', separator)).join("\n")).unwrap();
        assert_eq!((read.value.period().as_millis(), read.value.mean_rate().as_mbps()), (3_000, 16.0));
        assert!(read.notes[0].contains("taken for the row's name"), "{:?}", read.notes);
    }
    assert!(fault(of("\"time_s\" \"mbps\"\n\"1\" 0 12\n\"7\" 1 24\n")).starts_with("line 3: has 3 cells"));
}

#[test]
fn rates_and_amounts_that_stand_for_unknown_ones_are_left_out_and_counted() {
    for unknown in ["2147483647", "4294967295", "9223372036854775807", "-1", "2147483647.0"] {
        for unit in ["bps", "kbps", "mbps"] {
            let table = format!("time_s,{unit}\n0,8000\n1,{unknown}\n2,8000\n");
            let read = rates(table.as_bytes(), &Columns::default(), 0.0, None).unwrap();
            let bits = 8_000.0 * Unit::parse(unit).unwrap().bits / 1e6;
            assert!((read.value.mean_rate().as_mbps() / bits - 1.0).abs() < 0.6, "{unknown} {unit}: {read:?}");
            let note = "1 rates or amounts stand for unknown ones, such as";
            assert!(read.notes.iter().any(|one| one.starts_with(note)), "{:?}", read.notes);
        }
    }
    let (mbps, notes) = column("mbps", &[12.0, -1.0, 12.0], &Columns::default()).unwrap();
    assert!(mbps == 12.0 && notes[0].ends_with("such as -1, and are left out"), "{mbps} {notes:?}");
    assert!(fault(column("mbps", &[12.0, -2.0], &Columns::default())).contains("must be from 0"));
    assert!(fault(column("mbps", &[-1.0], &Columns::default())).contains("all its rates or amounts"));
    // Of an amount, too; but a counter has all values.
    let amounts = [1e6, 1e6, 2_147_483_647.0, 1e6, 2e6, 15e5, 1e6];
    let (mbps, _) = column("bytes", &amounts, &Columns::default()).unwrap();
    assert!(mbps < 16.0, "{mbps}");
    let counter = [2_146_483_647.0, 2_147_483_647.0, 2_148_483_647.0];
    let (mbps, notes) = column("bytes_total", &counter, &Columns::default()).unwrap();
    assert!((mbps - 8.0).abs() < 0.05 && notes.len() == 1, "{mbps} {notes:?}");
    let log = b"time_s,rsrp,dl_mbps\n0,-80,8\n1,-80,2147483647\n2,-80,-1\n";
    let drive = import::drive::read(&log[..], &import::drive::Columns::default()).unwrap();
    assert_eq!(drive.value.rows[1].mbps[0], None);
    assert!(drive.notes.iter().any(|note| note.starts_with("2 rates or amounts")), "{:?}", drive.notes);
}

#[test]
fn rows_of_several_phones_operators_directions_or_runs_are_not_one_trace() {
    let of = |table: &str, only: &[&str]| {
        let only = only.iter().map(|one| Where::parse(one).unwrap()).collect();
        rates(table.as_bytes(), &Columns { only, ..Columns::default() }, 0.0, None)
    };
    for (name, [a, b]) in [
        ("operator", ["A", "B"]),
        ("direction", ["DL", "UL"]),
        ("ue", ["1", "2"]),
        ("IMSI", ["1", "2"]),
        ("Device ID", ["x", "y"]),
        ("phone", ["x", "y"]),
        ("sim", ["1", "2"]),
        ("flow_id", ["1", "2"]),
        ("rnti", ["1", "2"]),
    ] {
        let table =
            format!("time_s,{name},mbps\n0,{a},12\n0,{b},36\n1,{a},12\n1,{b},36\n2,{a},12\n2,{b},36\n3,{a},12\n");
        let (what, list) = (format!("--where '{name}=VALUE'"), format!("choose one of {a} (4 rows), {b} (3 rows)"));
        let error = fault(of(&table, &[]));
        assert!(error.contains(&what) && error.ends_with(&list), "{error}");
        let first = of(&table, &[&format!("{name}={}", a.to_lowercase())]).unwrap();
        assert_eq!((first.value.period().as_millis(), first.value.mean_rate().as_mbps()), (4_000, 12.0));
        assert_eq!(
            first.notes[0],
            format!("4 of 7 rows are of {name}={}, and the others are left out", a.to_lowercase())
        );
        assert!(of(&table, &[&format!("{name}=*")]).is_ok());
        let error = fault(of(&table, &[&format!("{name}=none")]));
        assert!(error.starts_with(&format!("no row has `none` in column `{name}`; choose one of {a}")), "{error}");
    }
    let runs = "time_s,run,ue,mbps\n0,a,1,12\n0,a,2,36\n1,a,1,12\n0,b,1,24\n";
    assert!(fault(of(runs, &[])).contains("select one with --run VALUE; choose one of a (3 rows), b"));
    assert!(fault(of(runs, &["run=a"])).contains("in column `ue`"));
    assert_eq!(of(runs, &["run=a", "ue=1"]).unwrap().value.mean_rate().as_mbps(), 12.0);
    assert_eq!(fault(of(runs, &["run=b", "ue=2"])), "no row meets all conditions of --where");
    // One phone that changes cells, or moves in a direction; and one value, which some rows lack.
    for column in [
        "rnti,mbps\n0,7,12\n1,7,12\n2,9,12\n",
        "direction,mbps\n0,90,12\n1,91,12\n",
        "operator,mbps\n0,A,12\n1,-,12\n2,a,12\n",
    ] {
        assert_eq!(of(&format!("time_s,{column}"), &[]).unwrap().value.mean_rate().as_mbps(), 12.0);
    }
    let log = b"time_s,device,rsrp,dl_mbps\n0,a,-80,8\n0,b,-90,80\n1,a,-80,8\n1,b,-90,80\n";
    let columns = |only: Vec<Where>| import::drive::Columns { only, ..Default::default() };
    let error = fault(import::drive::read(&log[..], &columns(Vec::new())));
    assert!(error.contains("in column `device`"), "{error}");
    let drive = import::drive::read(&log[..], &columns(vec![Where::parse("device=b").unwrap()])).unwrap().value;
    assert_eq!(drive.rows.iter().map(|row| row.rsrp_dbm).collect::<Vec<_>>(), [Some(-90.0); 2]);
}

#[test]
fn rows_that_are_in_a_table_twice_count_once() {
    let of = |rows: &str| {
        let read = rates(format!("time_s,bytes\n{rows}").as_bytes(), &Columns::default(), 0.0, None).unwrap();
        let said = read.notes.into_iter().filter(|note| note.ends_with("count once")).collect::<Vec<_>>();
        (read.value.mean_rate().as_mbps(), said)
    };
    let one = "1 rows are the same as the one before, with its time, and count once";
    for (begin, rows) in [(0.5, 5), (0.0, 5)] {
        let row = |at: u32| format!("{},1500000\n", begin + f64::from(at));
        let (mbps, said) = of(&(0..rows).map(|at| row(at).repeat(1 + usize::from(at == 2))).collect::<String>());
        assert_eq!((mbps, said), (12.0, vec![one.to_owned()]));
    }
    // Packets, and rows of one time that differ.
    let (_, said) = of("0,1500\n0.001,1500\n0.001,1500\n0.001,1500\n0.002,1500\n0.003,1500\n");
    assert_eq!(said, Vec::<String>::new());
    let (mbps, said) = of("0,1500\n0.5,3000\n0.5,3000\n1,3000\n1,4500\n1.5,3000\n");
    assert!(said.is_empty() && (mbps * 1.5e6 / 8.0 - 16_500.0).abs() < 1_500.0, "{mbps} {said:?}");
}
