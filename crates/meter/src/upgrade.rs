//! Requests that turn a connection of HTTP into another one.

use nix::poll::PollFlags;
use speedtest::http::{self, Response};

use crate::fault::Fault;
use crate::flow::Shared;
use crate::line::Line;

/// Bytes of one read.
const BLOCK: usize = 16 << 10;

/// Sends the head of a request, and waits for the answer. Returns it, if it switches protocols and `accept` is what a `WebSocket` server has to
/// answer, with the bytes that came behind it.
pub(crate) fn upgrade(
    line: &mut Line,
    head: &str,
    accept: Option<&str>,
    of: Option<&Shared>,
) -> Result<Vec<u8>, Fault> {
    line.write_all(head.as_bytes())?;
    let (mut answer, mut buffer) = (Vec::new(), vec![0; BLOCK]);
    let (response, used): (Response, usize) = loop {
        line.wait(PollFlags::POLLIN, of)?;
        let length = line.read(&mut buffer)?;
        answer.extend_from_slice(&buffer[..length]);
        let parsed = http::parse_response(&answer);
        if let Some(found) = parsed.map_err(|why| Fault::Protocol(format!("the server's answer: {why}")))? {
            break found;
        }
    };
    if !response.is_upgraded(accept) {
        let later = response.retry_after().map(|seconds| format!("; try again in {seconds} s")).unwrap_or_default();
        return Err(Fault::Refused(format!("status {}{later}", response.status)));
    }
    Ok(answer.split_off(used))
}
