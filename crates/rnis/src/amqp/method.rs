//! The methods that a broker may send to this client.

use super::fault::Fault;
use super::frame::{Fields, ShortText};

/// The longest explanation of a broker that is shown, in characters.
const LONGEST_TEXT: usize = 200;

/// A message follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deliver {
    pub(super) tag: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Start { has_plain: bool },
    Tune { most_frame: u32, heartbeat: u16 },
    OpenOk,
    ConnectionClose { code: u16, text: String },
    Blocked,
    Unblocked,
    ChannelOpenOk,
    Flow { active: bool },
    ChannelClose { code: u16, text: String },
    ExchangeDeclareOk,
    QueueDeclareOk { queue: ShortText },
    BindOk,
    QosOk,
    ConsumeOk,
    Cancel,
    Deliver(Deliver),
}

impl Method {
    /// Whether it belongs on channel 0.
    pub(super) fn is_of_connection(&self) -> bool {
        use Method as M;
        matches!(
            self,
            M::Start { .. } | M::Tune { .. } | M::OpenOk | M::ConnectionClose { .. } | M::Blocked | M::Unblocked
        )
    }

    pub(super) fn parse(payload: &[u8]) -> Result<Method, Fault> {
        Method::fields(Fields(payload)).ok_or(Fault::Protocol("a method that is unknown or too short"))
    }

    /// Reads the fields up to the last that is used.
    fn fields(mut fields: Fields<'_>) -> Option<Method> {
        Some(match (fields.short()?, fields.short()?) {
            (10, 10) => {
                let (_version, _properties) = (fields.short()?, fields.long_text()?);
                let has_plain = fields.long_text()?.split(|&byte| byte == b' ').any(|name| name == b"PLAIN");
                Method::Start { has_plain }
            }
            (10, 30) => {
                let (_channels, most_frame) = (fields.short()?, fields.long()?);
                Method::Tune { most_frame, heartbeat: fields.short()? }
            }
            (10, 41) => Method::OpenOk,
            (10, 50) => {
                let (code, text) = why(&mut fields)?;
                Method::ConnectionClose { code, text }
            }
            // RabbitMQ's extension; the socket tells the same.
            (10, 60) => Method::Blocked,
            (10, 61) => Method::Unblocked,
            (20, 11) => Method::ChannelOpenOk,
            (20, 20) => Method::Flow { active: fields.byte()? & 1 == 1 },
            (20, 40) => {
                let (code, text) = why(&mut fields)?;
                Method::ChannelClose { code, text }
            }
            (40, 11) => Method::ExchangeDeclareOk,
            (50, 11) => Method::QueueDeclareOk { queue: ShortText::new(str::from_utf8(fields.text()?).ok()?)? },
            (50, 21) => Method::BindOk,
            (60, 11) => Method::QosOk,
            (60, 21) => Method::ConsumeOk,
            (60, 30) => Method::Cancel,
            (60, 60) => {
                let _consumer = fields.text()?;
                Method::Deliver(Deliver { tag: fields.long_long()? })
            }
            _ => return None,
        })
    }
}

fn why(fields: &mut Fields<'_>) -> Option<(u16, String)> {
    let (code, text) = (fields.short()?, fields.text()?);
    let text = String::from_utf8_lossy(text);
    Some((code, text.chars().filter(|c| !c.is_control()).take(LONGEST_TEXT).collect()))
}
