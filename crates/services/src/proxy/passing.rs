//! Messages to another process with descriptors beside them (`SCM_RIGHTS`).

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// Descriptors beside one message; the kernel permits 253.
pub(super) const MOST: usize = 64;

/// Sends a message of several parts.
pub(super) fn send(
    socket: BorrowedFd,
    parts: &[IoSlice],
    descriptors: &[BorrowedFd],
    flags: SendFlags,
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::MSGSIZE);
    }
    sendmsg(socket, parts, &mut beside, flags).map(drop)
}

/// Receives a message. Returns its length, which is 0 at the end, and the descriptors.
pub(super) fn receive(socket: BorrowedFd, buffer: &mut [u8], flags: RecvFlags) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut beside, flags | RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(new) = message {
            descriptors.extend(new);
        }
    }
    Ok((received.bytes, descriptors))
}
