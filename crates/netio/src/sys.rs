//! System calls that no library wraps.
//!
//! The only file with `unsafe` code outside `ebpf`. Each function is safe to call with any arguments.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::signal::SigSet;
use wire::tcp_info::{self, BbrInfo, TcpInfo};

fn check(result: c_int) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Lets the calling thread run before all ordinary threads (`SCHED_FIFO`), with this priority among real-time threads.
pub fn be_realtime(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the kernel reads `parameters` during the call alone; 0 stands for the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters) })?;
    Ok(())
}

/// Lets the calling thread have time slices of this length among ordinary threads (`SCHED_OTHER`, EEVDF). When it wakes, it
/// preempts one whose slices are longer. Before Linux 6.12, the length has no effect. Threads of other policies stay as they are.
pub fn set_slice(slice: Duration) -> io::Result<()> {
    // SAFETY: zero is a value of each of its fields.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sched_attr>() as libc::c_uint;
    // SAFETY: the kernel writes at most `size` bytes of `attributes` during the call alone; 0 stands for the calling thread.
    check(unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) } as c_int)?;
    if attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return Ok(());
    }
    attributes.size = size;
    attributes.sched_runtime = slice.as_nanos() as u64;
    // SAFETY: the kernel reads `attributes` during the call alone.
    check(unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } as c_int)?;
    Ok(())
}

/// Sets an option of a socket. The kernel takes it as `T` has it.
fn set_option<T: Copy>(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` points to `len` bytes, which the kernel reads during the call alone.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const *value).cast(), len) })?;
    Ok(())
}

/// Reads an option of a socket into `value`. Returns the number of bytes that the kernel filled in.
///
/// # Safety
/// Any bytes must be a valid `T`.
unsafe fn get_option<T>(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: &mut T) -> io::Result<usize> {
    let mut len = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` has room for `len` bytes, which the kernel writes during the call alone.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut *value).cast(), &raw mut len) })?;
    Ok(len as usize)
}

/// Returns a request about `interface`; all of it but the name is zero.
fn interface_request(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: zero is a value of each of its fields.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The name ends with a zero.
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = byte as libc::c_char;
    }
    Ok(request)
}

/// Makes the TUN or TAP (`IFF_TUN`, `IFF_TAP`) interface `name`, without a header before its packets, from a descriptor of
/// `/dev/net/tun`. It appears in the namespace in which that was opened. A `%d` in the name becomes the first free number.
/// Returns its name.
pub fn make_tun(device: BorrowedFd<'_>, name: &str, kind: c_int) -> io::Result<String> {
    let mut request = interface_request(name)?;
    request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which outlives the call, and keeps no pointer to it.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    let name = request.ifr_name.iter().take_while(|&&byte| byte != 0);
    Ok(name.map(|&byte| byte as u8 as char).collect())
}

/// Limits the memory for packets that were written to a TUN device and that no protocol has received yet, in bytes.
pub fn limit_tun(device: BorrowedFd<'_>, bytes: c_int) -> io::Result<()> {
    // SAFETY: TUNSETSNDBUF reads one integer, which outlives the call, and keeps no pointer to it.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETSNDBUF as _, &raw const bytes) }).map(drop)
}

/// Lets `command` start in a session of its own, where no terminal's signals reach it.
pub fn in_own_session(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec only setsid(2) is called, which is async-signal-safe and touches no memory.
    unsafe { command.pre_exec(|| Ok(nix::unistd::setsid().map(drop)?)) }
}

/// Lets `command` start with these signals unblocked, although the caller blocks them: programs inherit that.
pub fn with_signals(command: &mut Command, signals: SigSet) -> &mut Command {
    // SAFETY: between fork and exec only pthread_sigmask(3) is called, which is async-signal-safe and reads `signals`, a
    // copy that the closure owns.
    unsafe { command.pre_exec(move || Ok(signals.thread_unblock()?)) }
}

/// Reads the kernel's state of a connection (`TCP_INFO`) as bytes. Returns those that the kernel has filled in.
pub fn tcp_info_bytes<'a>(socket: BorrowedFd, buffer: &'a mut [u8; tcp_info::MOST]) -> io::Result<&'a [u8]> {
    // SAFETY: any bytes are an array of bytes.
    let length = unsafe { get_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, buffer) }?;
    Ok(&buffer[..length.min(tcp_info::MOST)])
}

/// Returns the kernel's state of a connection.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] before Linux 4.10; any that `getsockopt` returns.
pub fn tcp_info(socket: BorrowedFd) -> io::Result<TcpInfo> {
    let mut buffer = [0; tcp_info::MOST];
    TcpInfo::decode(tcp_info_bytes(socket, &mut buffer)?)
        .filter(|info| info.sndbuf_limited.is_some())
        .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, "the kernel's TCP_INFO is older than Linux 4.10's"))
}

/// Returns what BBR knows of a connection; `None` with another congestion control.
pub fn bbr_info(socket: BorrowedFd) -> io::Result<Option<BbrInfo>> {
    let mut buffer = [0; 64];
    // SAFETY: any bytes are an array of bytes.
    let length = unsafe { get_option(socket, libc::IPPROTO_TCP, libc::TCP_CC_INFO, &mut buffer) }?;
    // Vegas and DCTCP answer with 16 bytes.
    Ok(BbrInfo::decode(&buffer[..length.min(buffer.len())]))
}

/// Returns the memory of the packets that a socket has received and that nobody has read, in bytes with the kernel's overhead
/// (`SO_MEMINFO`).
pub fn received_memory(socket: BorrowedFd) -> io::Result<u32> {
    // SK_MEMINFO_RMEM_ALLOC is the first.
    let mut all = [0_u32; 9];
    // SAFETY: any bytes are numbers.
    unsafe { get_option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut all) }?;
    Ok(all[0])
}

/// Returns the memory of the packets that a socket holds to send, sent or not, and the size of its send buffer, both in bytes with
/// the kernel's overhead (`SO_MEMINFO`).
pub fn send_memory(socket: BorrowedFd) -> io::Result<(u32, u32)> {
    let mut all = [0_u32; 9];
    // SAFETY: any bytes are numbers.
    unsafe { get_option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut all) }?;
    // SK_MEMINFO_WMEM_QUEUED and SK_MEMINFO_SNDBUF.
    Ok((all[5], all[3]))
}

/// Returns how often the calling thread was preempted since its start.
pub fn preemptions() -> u64 {
    // SAFETY: zero is a value of each of its fields.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes `usage` during the call alone.
    let done = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    if done == 0 { u64::try_from(usage.ru_nivcsw).unwrap_or(0) } else { 0 }
}

/// Returns the size of a page of memory in bytes.
pub fn page_size() -> u64 {
    // SAFETY: it reads no memory of ours.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// The memory of a socket's packets, in bytes with the kernel's overhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketMemory {
    /// Of those received that nobody has read.
    pub received: u32,
    /// Of those to be sent or acknowledged.
    pub to_send: u32,
}

/// Returns the memory of the packets that a socket holds (`SO_MEMINFO`).
pub fn socket_memory(socket: BorrowedFd) -> io::Result<SocketMemory> {
    let mut all = [0_u32; 9];
    // SAFETY: any bytes are numbers.
    unsafe { get_option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut all) }?;
    // SK_MEMINFO_RMEM_ALLOC and SK_MEMINFO_WMEM_QUEUED.
    Ok(SocketMemory { received: all[0], to_send: all[5] })
}

/// Drops up to `most` bytes that a TCP socket has received, without copying them. Returns how many there were; 0 at the end of the
/// stream. It does not wait.
pub fn discard(socket: BorrowedFd, most: usize) -> io::Result<usize> {
    let flags = libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    // SAFETY: with `MSG_TRUNC`, TCP writes nothing to the buffer (tcp(7)), so it may be missing.
    let dropped = unsafe { libc::recv(socket.as_raw_fd(), std::ptr::null_mut(), most, flags) };
    usize::try_from(dropped).map_err(|_| io::Error::last_os_error())
}

/// Lets the kernel report the times that [`send_stamped`] asks for, each with the number of a byte of the stream, counted from
/// now.
pub fn enable_stamps(socket: BorrowedFd) -> io::Result<()> {
    /// `SOF_TIMESTAMPING_OPT_ID_TCP`, since Linux 6.2: bytes are counted from the last one written, not the last one acknowledged.
    const OPT_ID_TCP: u32 = 1 << 16;
    let flags = libc::SOF_TIMESTAMPING_SOFTWARE
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY
        | OPT_ID_TCP;
    set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &flags)
}

/// Writes to a TCP socket, and asks for the times at which the last byte is given to the queueing discipline, then to the driver,
/// and is acknowledged. Returns the number of bytes written. See [`enable_stamps`].
pub fn send_stamped(socket: BorrowedFd, slices: &[io::IoSlice]) -> io::Result<usize> {
    const ASKED: u32 =
        libc::SOF_TIMESTAMPING_TX_SCHED | libc::SOF_TIMESTAMPING_TX_SOFTWARE | libc::SOF_TIMESTAMPING_TX_ACK;
    // Room for one message of four bytes with its header, aligned as headers are.
    let mut beside = [0_u64; 4];
    // SAFETY: zero is a value of each of its fields.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // An `IoSlice` is laid out as an `iovec`, and the kernel only reads what it points to.
    message.msg_iov = slices.as_ptr().cast_mut().cast();
    message.msg_iovlen = slices.len() as _;
    message.msg_control = beside.as_mut_ptr().cast();
    // SAFETY: the control buffer has room for the header and the data, which are written where the macros say.
    unsafe {
        message.msg_controllen = libc::CMSG_SPACE(size_of::<u32>() as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SO_TIMESTAMPING;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<u32>() as u32) as _;
        libc::CMSG_DATA(header).cast::<u32>().write_unaligned(ASKED);
    }
    // SAFETY: each pointer of `message` points to what lives until the end of this function and is as long as the length
    // beside it says.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Sets a socket's largest pacing rate (`SO_MAX_PACING_RATE`) in bytes per second. The socket paces from then on, unless it
/// is `u64::MAX`.
pub fn set_max_pacing_rate(socket: BorrowedFd, bytes_per_sec: u64) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &bytes_per_sec)
}

/// Limits a socket's receive window (`TCP_WINDOW_CLAMP`).
pub fn set_window_clamp(socket: BorrowedFd, bytes: i32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, &bytes)
}

/// Returns the limit of a socket's receive window. The kernel may have raised it since it was set.
pub fn window_clamp(socket: BorrowedFd) -> io::Result<i32> {
    let mut bytes = 0_i32;
    // SAFETY: any bytes are an `i32`.
    unsafe { get_option(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, &mut bytes) }?;
    Ok(bytes)
}

/// Keeps the kernel from changing the size of a socket's receive buffer, or lets it (`SO_BUF_LOCK`).
pub fn lock_receive_buffer(socket: BorrowedFd, locked: bool) -> io::Result<()> {
    // linux/net.h, not in `libc`.
    const SOCK_RCVBUF_LOCK: c_int = 2;
    set_option(socket, libc::SOL_SOCKET, libc::SO_BUF_LOCK, &if locked { SOCK_RCVBUF_LOCK } else { 0 })
}

/// Limits the bytes that a socket accepts beyond those that it has sent (`TCP_NOTSENT_LOWAT`).
pub fn set_notsent_lowat(socket: BorrowedFd, bytes: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &bytes)
}

/// Lets a socket use addresses that are not this machine's (`IP_TRANSPARENT`, `IPV6_TRANSPARENT`).
pub fn set_transparent(socket: BorrowedFd, v6: bool) -> io::Result<()> {
    let (level, option) =
        if v6 { (libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT) } else { (libc::IPPROTO_IP, libc::IP_TRANSPARENT) };
    set_option(socket, level, option, &1_i32)
}

/// Binds a socket to the interface with this name (`SO_BINDTODEVICE`), or to none if the name is empty.
pub fn bind_to_device(socket: BorrowedFd, interface: &str) -> io::Result<()> {
    let request = interface_request(interface)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_BINDTODEVICE, &request.ifr_name)
}

/// Binds a socket to the interface with this number (`SO_BINDTOIFINDEX`).
pub fn bind_to_interface(socket: BorrowedFd, index: u32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_BINDTOIFINDEX, &index)
}

// What `attach` needs of packet sockets.

/// Length of `struct virtio_net_hdr`, which precedes each frame.
pub const VNET_HEADER: usize = 10;

/// A received frame.
#[derive(Debug)]
pub struct Received {
    /// Bytes of the frame.
    pub len: usize,
    /// Whether the frame was longer than the buffer.
    pub truncated: bool,
    /// The VLAN tag that the kernel has taken out of the frame.
    pub tag: Option<[u8; 4]>,
}

/// Lets a packet socket receive frames with their virtio header and VLAN tag, and incoming frames only.
pub fn set_packet_options(socket: BorrowedFd<'_>) -> io::Result<()> {
    for option in [libc::PACKET_VNET_HDR, libc::PACKET_AUXDATA, libc::PACKET_IGNORE_OUTGOING] {
        set_option(socket, libc::SOL_PACKET, option, &1_i32)?;
    }
    Ok(())
}

/// Binds a packet socket to all frames of the interface with this index. Returns the interface's type (`ARPHRD_…`).
pub fn bind_packet(socket: BorrowedFd<'_>, index: u32) -> io::Result<u16> {
    bind_packet_of(socket, libc::ETH_P_ALL as u16, index)
}

/// Binds a packet socket to the frames of a protocol (an EtherType), as [`bind_packet`] does.
// nix expects longer addresses of packet sockets than the kernel gives.
pub fn bind_packet_of(socket: BorrowedFd<'_>, protocol: u16, index: u32) -> io::Result<u16> {
    let mut address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let mut len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `address` is as long as `len` says, and the kernel reads it during the call alone.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) })?;
    // SAFETY: likewise, and now it writes.
    check(unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut len) })?;
    Ok(address.sll_hatype)
}

/// Lets the interface receive frames for any address for as long as the socket exists.
pub fn be_promiscuous(socket: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    let request = libc::packet_mreq {
        mr_ifindex: index as i32,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
}

/// Receives a frame, and its virtio header, from a packet socket with [`set_packet_options`].
pub fn receive_frame(
    socket: BorrowedFd<'_>,
    header: &mut [u8; VNET_HEADER],
    buffer: &mut [u8],
) -> io::Result<Received> {
    let mut parts = [
        libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: header.len() },
        libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() },
    ];
    // Room for one message of `tpacket_auxdata` (20 bytes) with its header, aligned as headers are.
    let mut beside = [0_u64; 8];
    // SAFETY: zero is a value of each of its fields.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len() as _;
    message.msg_control = beside.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&beside) as _;
    // SAFETY: each pointer of `message` points to what lives until the end of this function and is as long as the length
    // beside it says.
    let len = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    let mut tag = None;
    // SAFETY: the kernel has filled in `message`, and its control buffer still lives. What `CMSG_FIRSTHDR` gives is null or
    // a whole header within it, whose length says whether all of the data is there, which may lie unaligned.
    unsafe {
        let first = libc::CMSG_FIRSTHDR(&raw const message);
        let whole = libc::CMSG_LEN(size_of::<libc::tpacket_auxdata>() as u32) as usize;
        if !first.is_null()
            && ((*first).cmsg_level, (*first).cmsg_type) == (libc::SOL_PACKET, libc::PACKET_AUXDATA)
            && (*first).cmsg_len as usize >= whole
        {
            let data: libc::tpacket_auxdata = libc::CMSG_DATA(first).cast::<libc::tpacket_auxdata>().read_unaligned();
            if data.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
                let known = data.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
                let kind = if known { data.tp_vlan_tpid } else { libc::ETH_P_8021Q as u16 };
                let ([a, b], [c, d]) = (kind.to_be_bytes(), data.tp_vlan_tci.to_be_bytes());
                tag = Some([a, b, c, d]);
            }
        }
    }
    let truncated = message.msg_flags & libc::MSG_TRUNC != 0;
    Ok(Received { len: len.saturating_sub(VNET_HEADER).min(buffer.len()), truncated, tag })
}

/// Marks all that a socket sends (`SO_MARK`).
pub fn set_mark(socket: BorrowedFd<'_>, mark: u32) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_MARK, &mark)
}

/// Sends a frame, or a packet where there are no frames, by the interface with this index. `protocol` is its `EtherType`.
pub fn send_packet(socket: BorrowedFd<'_>, index: u32, protocol: u16, bytes: &[u8]) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the buffer and the address are as long as is said, and the kernel reads them during the call alone.
    let sent = unsafe {
        libc::sendto(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0, (&raw const address).cast(), len)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets a packet socket receive incoming frames only.
pub fn ignore_outgoing(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1_i32)
}

/// Returns the number of frames that a packet socket had no room for since the last call.
pub fn packets_lost(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    // SAFETY: both fields are integers.
    unsafe { get_option(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut stats) }?;
    Ok(stats.tp_drops)
}

// What `sniff` needs of packet sockets.

/// Lets a socket receive only what a program of the classic packet filter accepts.
pub fn attach_filter(socket: BorrowedFd<'_>, program: &[libc::sock_filter]) -> io::Result<()> {
    let len = libc::c_ushort::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // The kernel reads the program during the call alone, and checks it.
    let program = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Bytes that are kept of a packet: the headers of IP and TCP, with all their options.
pub const SNAP: usize = 128;
/// A frame of the ring: its header, an address, and the packet behind them.
const FRAME: usize = 256;
/// The kernel allocates blocks.
const BLOCK: usize = 64 << 10;
const BLOCKS: usize = 64;
const FRAMES: usize = BLOCK * BLOCKS / FRAME;

/// The beginning of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Caught {
    /// When it passed, since the Unix epoch.
    pub time: Duration,
    /// Its length.
    pub len: u32,
    /// The bytes that were kept.
    pub kept: usize,
    /// Whether this host sent it.
    pub is_outgoing: bool,
}

/// Packets that the kernel writes to memory that it shares with this process: 4 MiB, 16 384 packets (packet(7), `PACKET_RX_RING`).
#[derive(Debug)]
pub struct PacketRing {
    memory: std::ptr::NonNull<u8>,
    next: usize,
}

impl PacketRing {
    /// Makes the ring of a packet socket.
    pub fn new(socket: BorrowedFd<'_>) -> io::Result<PacketRing> {
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as c_int))?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as libc::c_uint,
            tp_block_nr: BLOCKS as libc::c_uint,
            tp_frame_size: FRAME as libc::c_uint,
            tp_frame_nr: FRAMES as libc::c_uint,
        };
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, socket.as_raw_fd());
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), BLOCK * BLOCKS, access, libc::MAP_SHARED, fd, 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = std::ptr::NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(PacketRing { memory, next: 0 })
    }

    /// Copies the beginning of the next packet to `buffer`, and gives its place in the ring back; `None` if there is none now.
    pub fn take(&mut self, buffer: &mut [u8; SNAP]) -> Option<Caught> {
        use std::sync::atomic::{AtomicU32, Ordering};
        /// Where the address is, and in it the direction (`sll_pkttype`).
        const DIRECTION: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT)
            + std::mem::offset_of!(libc::sockaddr_ll, sll_pkttype);
        const { assert!(DIRECTION < FRAME && size_of::<libc::tpacket2_hdr>() <= FRAME && BLOCK.is_multiple_of(FRAME)) };
        // SAFETY: `next` is below the number of frames, which the mapping has room for.
        let frame = unsafe { self.memory.add(self.next * FRAME) };
        // SAFETY: a frame begins with its status, which is aligned as the frame is, and which the kernel, too, changes atomically.
        let status = unsafe { AtomicU32::from_ptr(frame.as_ptr().cast()) };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the header and the address lie within the frame, which is this process's until its status says otherwise, and any
        // bytes are valid for them.
        let (header, direction) =
            unsafe { (frame.cast::<libc::tpacket2_hdr>().read(), frame.add(DIRECTION).cast::<u8>().read()) };
        let from = usize::from(header.tp_mac);
        let kept = (header.tp_snaplen as usize).min(SNAP).min(FRAME.saturating_sub(from));
        if kept > 0 {
            // SAFETY: `from + kept` is at most the length of the frame, and `kept` that of the buffer.
            unsafe { std::ptr::copy_nonoverlapping(frame.add(from).as_ptr(), buffer.as_mut_ptr(), kept) };
        }
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % FRAMES;
        let time = Duration::from_secs(header.tp_sec.into()) + Duration::from_nanos(header.tp_nsec.into());
        Some(Caught { time, len: header.tp_len, kept, is_outgoing: direction == libc::PACKET_OUTGOING })
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        // SAFETY: the mapping is this ring's own, and nothing of it is lent.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), BLOCK * BLOCKS) };
    }
}

/// The ethtool commands that get or set one number (`struct ethtool_value` of linux/ethtool.h).
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the kernel's names")]
pub enum Number {
    GetRxChecksum = 0x14,
    SetRxChecksum = 0x15,
    /// For tests: a host without offloads.
    #[cfg(test)]
    SetTxChecksum = 0x17,
    GetFlags = 0x25,
    SetFlags = 0x26,
    GetGro = 0x2b,
    SetGro = 0x2c,
}

/// Gets or sets a number of an interface. Returns its value afterwards.
pub fn ethtool(socket: BorrowedFd<'_>, interface: &str, number: Number, value: u32) -> io::Result<u32> {
    let mut exchanged = [number as u32, value];
    let mut request = interface_request(interface)?;
    request.ifr_ifru.ifru_data = exchanged.as_mut_ptr().cast();
    // SAFETY: each command of `Number` reads and writes the two words of `exchanged` alone, during the call.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) })?;
    Ok(exchanged[1])
}

/// Takes the descriptor that a service manager has passed at this place (`sd_listen_fds(3)`), once; `None` if there is none. It is
/// closed in programs that this one starts.
pub(crate) fn take_passed(place: u32) -> Option<OwnedFd> {
    const FIRST: c_int = 3;
    static TAKEN: Mutex<Vec<c_int>> = Mutex::new(Vec::new());
    let descriptor = FIRST.checked_add(c_int::try_from(place).ok()?)?;
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    if taken.contains(&descriptor) {
        return None;
    }
    // SAFETY: the arguments are numbers; it fails if there is no such descriptor.
    check(unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) }).ok()?;
    taken.push(descriptor);
    // SAFETY: it is open, was passed to this process, and is taken once.
    Some(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
