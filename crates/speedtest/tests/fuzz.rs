//! Whatever bytes a peer sends: no panic, bounded memory, and the same result however they are divided.

use bolero::check;
use speedtest::http::{parse_request, parse_response};
use speedtest::ndt7;
use speedtest::rmbt::Client;
use speedtest::rmbt::chunks::RANDOM;
use speedtest::rmbt::client::Need as ClientNeed;
use speedtest::rmbt::control::{ClientResult, TestParameters};
use speedtest::rmbt::grammar::{Command, Reply};
use speedtest::rmbt::server::{Framing, Limits, Need, Server};
use speedtest::rmbt::token::{Key, check as check_token};
use speedtest::throughput1::{self, Options};
use speedtest::websocket::{Decoder, Opcode, Sender};
use std::sync::LazyLock;
use units::Time;

static RANDOM_DATA: LazyLock<Vec<u8>> = LazyLock::new(|| vec![7; RANDOM]);

/// What a server says to `input` in parts of `step` bytes: its output, and its transfers.
fn serve(input: &[u8], step: usize) -> (Vec<u8>, Vec<u64>) {
    let mut server = Server::new(Limits { seconds: 3, bytes: 1 << 20, ..Limits::default() }, Framing::Plain);
    let (mut output, mut transfers, mut now) = (Vec::new(), Vec::new(), 0);
    let mut waiting = Vec::new();
    for part in input.chunks(step.max(1)) {
        waiting.extend_from_slice(part);
        loop {
            assert!(server.output().len() < 16_384);
            output.extend_from_slice(server.output());
            server.consume_output(server.output().len());
            match server.need() {
                Need::Decision => server.admit(),
                Need::Send => {
                    now += 100_000_000;
                    let burst: usize =
                        server.burst(&RANDOM_DATA, Time::from_nanos(now)).iter().map(|part| part.len()).sum();
                    server.sent(burst, Time::from_nanos(now));
                }
                Need::Close => return (output, transfers),
                Need::Line | Need::Chunks if waiting.is_empty() => break,
                Need::Line | Need::Chunks => {
                    let used = server.handle_input(&waiting, Time::from_nanos(now));
                    waiting.drain(..used);
                    transfers.extend(server.poll_transfer().map(|transfer| transfer.bytes));
                }
            }
        }
    }
    (output, transfers)
}

#[test]
fn a_server_takes_any_bytes_in_any_parts() {
    check!().for_each(|input: &[u8]| {
        let whole = serve(input, usize::MAX);
        assert_eq!(serve(input, 7), whole);
        // After a token and the start of an upload.
        let late = [b"TOKEN a\nPUTNORESULT 4096\n", input].concat();
        assert_eq!(serve(&late, 5).1, serve(&late, usize::MAX).1);
    });
}

#[test]
fn a_client_takes_any_bytes() {
    check!().for_each(|input: &[u8]| {
        for start in ["", "RMBTv1.3.5\nACCEPT TOKEN QUIT\nOK\nCHUNKSIZE 4096 4096 8192\nACCEPT PING\n"] {
            let mut client = Client::new("a", Framing::Plain);
            client.handle_input(start.as_bytes(), Time::ZERO).expect("it is valid");
            for (index, part) in input.chunks(9).enumerate() {
                if client.need() == ClientNeed::Command {
                    match index % 3 {
                        0 => client.ping(Time::ZERO),
                        1 => client.get_time(1, None, Time::ZERO),
                        _ => client.quit(),
                    }
                }
                if client.handle_input(part, Time::from_nanos(index as u64)).is_err() {
                    break;
                }
                while client.poll_event().is_some() {}
            }
        }
    });
}

#[test]
fn lines_that_are_read_are_written_alike() {
    check!().for_each(|input: &[u8]| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        if let Ok(command) = text.parse::<Command>() {
            assert_eq!(command.to_string().parse(), Ok(command));
        }
        if let Ok(reply) = text.parse::<Reply>() {
            assert_eq!(reply.to_string().parse(), Ok(reply));
        }
    });
}

#[test]
fn no_bytes_make_a_valid_token() {
    let keys = [Key::new(b"0123456789abcdef")];
    check!().for_each(|input: &[u8]| {
        let text = String::from_utf8_lossy(input);
        for now in [0, 1_700_000_000, i64::MAX, i64::MIN] {
            assert!(check_token(&text, &keys, [10, 0, 0, 1].into(), now, false).is_err());
            assert!(check_token(&format!("x_#v2#{text}"), &keys, [10, 0, 0, 1].into(), now, true).is_err());
        }
        let _ = Key::parse_file(&text);
    });
}

/// The messages in `input`, divided into parts, up to the first fault.
fn decode(input: &[u8], step: usize) -> (Vec<(Opcode, usize, bool)>, bool) {
    let (mut decoder, mut messages, mut bytes) = (Decoder::new(Sender::Client), Vec::new(), input.to_vec());
    for part in bytes.chunks_mut(step) {
        let mut part = part;
        loop {
            match decoder.decode(&mut part) {
                Ok(Some(piece)) => match messages.last_mut() {
                    Some((opcode, length, false)) if *opcode == piece.opcode => {
                        *length += piece.payload.len();
                        messages.last_mut().expect("there is one").2 = piece.ends;
                    }
                    _ => messages.push((piece.opcode, piece.payload.len(), piece.ends)),
                },
                Ok(None) => break,
                Err(_) => return (messages, true),
            }
        }
    }
    (messages, false)
}

#[test]
fn frames_are_decoded_alike_however_they_are_divided() {
    check!().for_each(|input: &[u8]| {
        if input.is_empty() {
            return;
        }
        let whole = decode(input, input.len());
        assert!(whole.0.iter().map(|message| message.1).sum::<usize>() <= input.len());
        assert_eq!(decode(input, 1).1, whole.1);
        let ended = |messages: &[(Opcode, usize, bool)]| messages.iter().filter(|message| message.2).count();
        assert_eq!(ended(&decode(input, 1).0), ended(&whole.0));
    });
}

#[test]
fn any_bytes_are_a_head_or_a_fault() {
    check!().for_each(|input: &[u8]| {
        if let Ok(Some((request, length))) = parse_request(input) {
            assert!(length <= input.len());
            let _ = (request.upgrade(), Options::parse(&request));
        }
        let text = [b"GET /throughput/v1/download?", input, b" HTTP/1.1\r\n\r\n"].concat();
        if let Ok(Some((request, _))) = parse_request(&text)
            && let Ok(options) = Options::parse(&request)
        {
            assert!(options.duration <= throughput1::LONGEST);
        }
        if let Ok(Some((response, length))) = parse_response(input) {
            assert!(length <= input.len());
            let _ = (response.is_upgraded(Some("x")), response.retry_after());
        }
    });
}

#[test]
fn any_bytes_are_a_message_or_a_fault() {
    check!().for_each(|input: &[u8]| {
        let _ = serde_json::from_slice::<ndt7::Measurement>(input);
        let _ = serde_json::from_slice::<throughput1::Measurement>(input);
        let _ = serde_json::from_slice::<TestParameters>(input);
        let _ = ClientResult::parse(input);
    });
}
