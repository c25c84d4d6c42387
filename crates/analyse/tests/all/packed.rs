//! Captures as other tools leave them: compressed, with obsolete blocks, and of several interfaces.

use std::fs::{self, File};
use std::path::PathBuf;

use crate::common::{Script, analysed};
use analyse::{Analysis, Rules};
use flate2::Compression;
use flate2::write::GzEncoder;

fn of(file: PathBuf) -> Analysis {
    analysed(&[file], Rules::Ranway).unwrap()
}

/// A file of the collection of cases, which `RANWAY_CASES` names; `None`, said loudly, if there is none.
fn case(file: &str) -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases");
    let file = std::env::var("RANWAY_CASES").map_or(root, PathBuf::from).join(file);
    if file.exists() {
        return Some(file);
    }
    eprintln!("SKIPPED: no {}; RANWAY_CASES names the folder of cases", file.display());
    None
}

#[test]
fn a_compressed_capture_is_what_the_plain_one_is() {
    let dir = tempfile::tempdir().unwrap();
    let mut script = Script::new(0, 20_000, true);
    for n in 0..50 {
        script.data(u64::from(n) * 1_000, n);
        script.ack(u64::from(n) * 1_000 + 20_000, n + 1, &[]);
    }
    let plain = script.write(&dir.path().join("plain.pcap"));
    let packed = dir.path().join("packed.pcap.gz");
    let mut writer = GzEncoder::new(File::create(&packed).unwrap(), Compression::fast());
    std::io::copy(&mut File::open(&plain).unwrap(), &mut writer).unwrap();
    writer.finish().unwrap();
    let (plain, packed) = (of(plain), of(packed.clone()));
    assert_eq!(plain.packets, packed.packets);
    let flows = |all: &Analysis| all.results.tables.flows.iter().count();
    assert_eq!(flows(&plain), flows(&packed));
    let bytes = |all: &Analysis| all.results.tables.flows.iter().map(|row| row.bytes).sum::<u64>();
    assert!(bytes(&plain) > 0);
    assert_eq!(bytes(&plain), bytes(&packed));
    assert_eq!(packed.bytes, fs::metadata(dir.path().join("packed.pcap.gz")).unwrap().len());
}

#[test]
fn f08_obsolete_packet_blocks_have_packets() {
    for file in ["F08-pcapng-packet-block/mixed.pcapng", "F08-pcapng-packet-block/all_old.pcapng"] {
        let Some(file) = case(file) else { return };
        let all = of(file);
        assert_eq!(all.packets, 104);
        assert_eq!(all.results.tables.flows.iter().map(|row| row.bytes).max(), Some(144_800));
    }
}

#[test]
fn f10_each_interface_is_a_vantage_point() {
    let Some(file) = case("F10-two-interfaces/router.pcapng") else { return };
    let points = of(file).results.meta.points.len();
    assert_eq!(points, 2);
}
