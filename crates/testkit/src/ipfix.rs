//! IPFIX messages as another program reads them.

use crate::root::has_program;
use std::io::Write;
use std::process::{Command, Stdio};

/// IPFIX's port.
const PORT: u16 = 4739;

/// Returns the flow records in the messages of a session as tshark prints them, a line for each element; `None`, after saying why,
/// without tshark.
///
/// # Panics
/// If tshark finds something wrong, such as a malformed message, a record without a template, or a sequence number that is not the one
/// that follows from the messages before.
pub fn flows(messages: &[Vec<u8>]) -> Option<Vec<Vec<String>>> {
    let decode = format!("udp.port=={PORT},cflow");
    let mut command = Command::new("tshark");
    command.args(["-n", "-r", "-", "-V", "-d", &decode]).env("TZ", "UTC");
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok();
    if !has_program(started.is_some(), "tshark") {
        return None;
    }
    let mut tshark = started?;
    // It reads all before it prints more than a pipe holds, or the capture fits into one.
    let written = tshark.stdin.take().map(|mut stdin| stdin.write_all(&capture(messages)));
    assert!(matches!(written, Some(Ok(()))), "tshark reads no more");
    let output = tshark.wait_with_output().expect("tshark ends");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for wrong in ["Expert Info", "Malformed", "No template found"] {
        assert!(!text.contains(wrong), "{wrong}: {text}");
    }
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let mut flows: Vec<Vec<String>> = Vec::new();
    let mut inside = None;
    for line in text.lines() {
        if inside.is_some_and(|outside| indentation(line) <= outside) {
            inside = None;
        }
        if let Some(flow) = flows.last_mut().filter(|_| inside.is_some()) {
            flow.push(line.trim().to_owned());
        } else if line.trim_start().starts_with("Flow ") {
            inside = Some(indentation(line));
            flows.push(Vec::new());
        }
    }
    Some(flows)
}

/// A capture of UDP in IPv4, without link layer.
fn capture(messages: &[Vec<u8>]) -> Vec<u8> {
    const RAW: u32 = 101;
    let number = |number: u32| number.to_le_bytes();
    let mut capture =
        [number(0xa1b2_c3d4), number(2 | 4 << 16), number(0), number(0), number(65_535), number(RAW)].concat();
    for message in messages {
        let (udp, all) = (8 + message.len(), 28 + message.len());
        let [udp, length] = [udp, all].map(|length| (length as u16).to_be_bytes());
        let header = [0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        let port = PORT.to_be_bytes();
        capture.extend([number(0), number(0), number(all as u32), number(all as u32)].concat());
        capture.extend(header);
        capture.extend([200, 0, port[0], port[1], udp[0], udp[1], 0, 0]);
        capture.extend(message);
    }
    capture
}
