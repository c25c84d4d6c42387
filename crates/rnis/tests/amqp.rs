//! The AMQP client against scripted brokers: honest ones, and those that send what no broker sends.

use bolero::check;
use rnis::amqp::{Client, Event, Fault, Login, MOST_FRAME, Role, ShortText};
use rnis::feed::LONGEST_MESSAGE;
use std::time::Duration;

fn text(text: &str) -> ShortText {
    ShortText::new(text).expect("it is short")
}

fn client(role: Role) -> Client {
    let login = Login { user: text("guest"), password: text("secret"), vhost: text("/") };
    Client::new(login, role, text("rni"))
}

fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u32;
    [&[kind][..], &channel.to_be_bytes(), &length.to_be_bytes(), payload, &[0xce]].concat()
}

fn method(channel: u16, class: u16, number: u16, fields: &[u8]) -> Vec<u8> {
    frame(1, channel, &[&class.to_be_bytes()[..], &number.to_be_bytes(), fields].concat())
}

fn long(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes()[..], bytes].concat()
}

/// Returns a field table that is nested `depth` deep.
fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(long(b""), |inner, _| long(&[&[1, b'a', b'F'][..], &inner].concat()))
}

/// The method `start` with these properties of the server.
fn start(properties: &[u8]) -> Vec<u8> {
    method(0, 10, 10, &[&[0, 9], properties, &long(b"AMQPLAIN PLAIN"), &long(b"en_US")].concat())
}

/// Everything that a broker sends until a consumer is ready; the last answer is that of a consumer.
fn greeting(heartbeat: u16) -> Vec<Vec<u8>> {
    let tune = [&[0, 0][..], &(MOST_FRAME as u32).to_be_bytes(), &heartbeat.to_be_bytes()].concat();
    vec![
        start(&nested(0)),
        method(0, 10, 30, &tune),
        method(0, 10, 41, &[0]),
        method(1, 20, 11, &long(b"")),
        method(1, 40, 11, &[]),
        method(1, 50, 11, &[&[1, b'q'][..], &[0; 8]].concat()),
        method(1, 50, 21, &[]),
        method(1, 60, 11, &[]),
        method(1, 60, 21, &[1, b'c']),
    ]
}

/// A message: its announcement, its header with these properties, and its body.
fn message(tag: u64, properties: &[u8], body: &[u8]) -> Vec<u8> {
    let deliver = [&[1, b'c'][..], &tag.to_be_bytes(), &[0, 3], b"rni", &[1, b'k']].concat();
    let header = [&[0, 60, 0, 0][..], &(body.len() as u64).to_be_bytes(), properties].concat();
    let parts: Vec<u8> = body.chunks(MOST_FRAME - 8).flat_map(|part| frame(3, 1, part)).collect();
    [method(1, 60, 60, &deliver), frame(2, 1, &header), parts].concat()
}

fn feed(client: &mut Client, bytes: &[u8]) -> Result<Vec<Event>, Fault> {
    let mut events = Vec::new();
    client.receive(bytes);
    while let Some(event) = client.poll()? {
        events.push(event);
    }
    Ok(events)
}

fn consumer() -> Client {
    let mut client = client(Role::Consume("rni.#"));
    let events = feed(&mut client, &greeting(60).concat()).expect("it is an honest broker");
    assert_eq!(events, [Event::Ready { heartbeat: Some(Duration::from_secs(15)) }]);
    client.output().clear();
    client
}

#[test]
fn a_connection_is_set_up_step_by_step() {
    let mut client = client(Role::Consume("rni.#"));
    assert_eq!(std::mem::take(client.output()), b"AMQP\0\0\x09\x01");
    for (step, answered) in greeting(0).iter().zip([1, 2, 1, 1, 1, 1, 1, 1, 0]) {
        let before = feed(&mut client, &step[..step.len() - 1]).expect("it is not complete");
        assert!(before.is_empty() && client.output().is_empty());
        feed(&mut client, &step[step.len() - 1..]).expect("it is an honest broker");
        let sent = std::mem::take(client.output());
        // No text that is sent has this byte.
        assert_eq!(sent.iter().filter(|&&byte| byte == 0xce).count(), answered, "{sent:02x?}");
    }
}

#[test]
fn tables_are_skipped_however_deep_they_are() {
    for depth in [0, 1000, 10_000] {
        let mut broker = greeting(60);
        broker[0] = start(&nested(depth));
        let mut client = client(Role::Consume("rni.#"));
        assert!(feed(&mut client, &broker.concat()).is_ok_and(|events| events.len() == 1), "{depth}");
        let headers = [&(1_u16 << 13).to_be_bytes()[..], &nested(depth)].concat();
        let events = feed(&mut client, &message(1, &headers, b"x"));
        assert_eq!(events, Ok(vec![Event::Message(b"x".to_vec())]), "{depth}");
    }
}

#[test]
fn messages_are_whole_bounded_and_acknowledged_together() {
    let mut client = consumer();
    let most = vec![b'x'; LONGEST_MESSAGE];
    let longer = [&most[..], b"x"].concat();
    let three = [message(1, &[0, 0], b""), message(2, &[0, 0], &longer), message(3, &[0, 0], &most)].concat();
    let mut events = Vec::new();
    for part in three.chunks(1000) {
        events.extend(feed(&mut client, part).expect("it is an honest broker"));
    }
    assert_eq!(events, [Event::Message(Vec::new()), Event::TooLong, Event::Message(most)]);
    client.output().clear();
    let two = [message(4, &[0, 0], b"a"), message(5, &[0, 0], b"b")].concat();
    assert_eq!(feed(&mut client, &two).map(|events| events.len()), Ok(2));
    let tag = 5_u64.to_be_bytes();
    assert_eq!(*client.output(), method(1, 60, 80, &[&tag[..], &[1]].concat()));
}

#[test]
fn whatever_is_not_due_is_a_fault() {
    let violation = |bytes: &[u8]| match feed(&mut consumer(), bytes) {
        Err(Fault::Protocol(what)) => what,
        other => panic!("{other:?}"),
    };
    for (bytes, what) in [
        (frame(2, 1, &[0; 14]), "the header of a message that was not announced"),
        (frame(3, 1, b"x"), "the body of a message without a header"),
        (frame(3, 2, b"x"), "a frame on a channel that is not open"),
        (frame(4, 1, b"x"), "an unknown frame"),
        (method(1, 60, 11, &[]), "a method that is not due"),
        (method(0, 60, 11, &[]), "a method on the wrong channel"),
        (method(1, 90, 10, &[]), "a method that is unknown or too short"),
        (method(1, 60, 60, &[1, b'c']), "a method that is unknown or too short"),
        (vec![1, 0, 0, 0, 1, 0xff, 0xf9], "a frame is longer than permitted"),
        (vec![8, 0, 0, 0, 0, 0, 0, 0], "a frame has no end"),
        ([message(1, &[0, 0], b"x"), frame(3, 1, b"x")].concat(), "the body of a message without a header"),
    ] {
        assert_eq!(violation(&bytes), what);
    }
    let mut long = message(1, &[0, 0], b"xx");
    long.truncate(long.len() - 10);
    assert_eq!(violation(&[&long[..], &frame(3, 1, b"xxx")].concat()), "a message longer than announced");
    assert_eq!(violation(&[&long[..], &method(1, 60, 11, &[])].concat()), "a method in the middle of a message");
}

#[test]
fn refusals_are_told_without_control_characters_and_passwords() {
    let close = |channel, class, number| {
        method(channel, class, number, &[&403_u16.to_be_bytes()[..], &[6], b"no\n\x1b[2", &[0; 4]].concat())
    };
    for bytes in [close(0, 10, 50), close(1, 20, 40)] {
        let mut client = consumer();
        let fault = feed(&mut client, &bytes).expect_err("it was closed");
        assert_eq!(fault.to_string(), "the broker closed the connection: 403 no[2");
        assert_eq!(client.output().len(), 12, "the close is confirmed");
    }
    assert_eq!(feed(&mut consumer(), &method(1, 60, 30, &[1, b'c', 1])), Err(Fault::Cancelled));
    assert_eq!(feed(&mut client(Role::Publish), b"AMQP\0\0\x01\0"), Err(Fault::NotAmqp));
    assert_eq!(feed(&mut client(Role::Publish), b"HTTP/1.1 400 Bad Request\r\n\r\n"), Err(Fault::NotAmqp));
    let scram = method(0, 10, 10, &[&[0, 9][..], &long(b""), &long(b"SCRAM-SHA-256"), &long(b"en_US")].concat());
    assert_eq!(feed(&mut client(Role::Publish), &scram), Err(Fault::NoPlain));
    assert!(!format!("{:?}", client(Role::Publish)).contains("secret"));
}

#[test]
fn a_publisher_pauses_when_the_broker_asks_for_it() {
    let mut client = client(Role::Publish);
    feed(&mut client, &greeting(60)[..5].concat()).expect("it is an honest broker");
    let published = |client: &mut Client| {
        client.output().clear();
        client.publish(&text("rni.1.x"), b"report", Duration::from_millis(100));
        !client.output().is_empty()
    };
    assert!(published(&mut client));
    feed(&mut client, &method(1, 20, 20, &[0])).expect("it is an honest broker");
    assert!(!client.may_publish() && !published(&mut client));
    feed(&mut client, &method(1, 20, 20, &[1])).expect("it is an honest broker");
    assert!(client.may_publish() && published(&mut client));
}

#[test]
fn no_bytes_of_a_broker_break_a_client() {
    check!().with_iterations(4000).with_type::<(bool, u8, Vec<(u8, u8, Vec<u8>)>, Vec<u8>)>().for_each(
        |(consumes, steps, frames, raw)| {
            let mut client = client(if *consumes { Role::Consume("rni.#") } else { Role::Publish });
            let honest = greeting(u16::from(*steps));
            let honest = honest.iter().take(usize::from(*steps) % (honest.len() + 1));
            let other = frames.iter().map(|(kind, channel, payload)| match kind % 8 {
                0 => message(u64::from(*channel), &payload[..payload.len() % 40], payload),
                1 => frame(2, 1, &[&[0, 60, 0, 0], &payload[..]].concat()),
                2 => method(u16::from(channel % 2), 60, 60, payload),
                kind => frame(kind, u16::from(channel % 3), payload),
            });
            let bytes: Vec<u8> = honest.cloned().chain(other).chain([raw.clone()]).flatten().collect();
            let whole = client_events(&mut client, &bytes, bytes.len().max(1));
            client = self::client(if *consumes { Role::Consume("rni.#") } else { Role::Publish });
            // However the bytes are divided, the same happens.
            let parts = client_events(&mut client, &bytes, 7);
            assert_eq!(whole, parts);
        },
    );
}

#[test]
fn any_bytes_of_a_broker_are_events_or_a_fault() {
    check!().with_iterations(4000).for_each(|bytes: &[u8]| {
        for role in [Role::Publish, Role::Consume("rni.#")] {
            let mut client = client(role);
            client_events(&mut client, bytes, 4096);
            client.publish(&text("rni.1.x"), b"report", Duration::from_millis(100));
        }
    });
}

/// Returns what happens with bytes that come in parts, each as text.
fn client_events(client: &mut Client, bytes: &[u8], part: usize) -> Vec<String> {
    let mut happened = Vec::new();
    for part in bytes.chunks(part) {
        client.receive(part);
        loop {
            match client.poll() {
                Ok(Some(event)) => happened.push(format!("{event:?}")),
                Ok(None) => break,
                Err(fault) => {
                    happened.push(fault.to_string());
                    return happened;
                }
            }
        }
    }
    happened
}
