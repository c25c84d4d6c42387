//! The state of a send buffer, and the memory of packets in it.

use crate::config::{Config, Kernel, SendBuffer};

/// `sizeof(struct sk_buff)` and of `struct skb_shared_info`, in whole cache lines.
pub(crate) const STRUCTURE: u64 = 256;
const SHARED: u64 = 320;
const CACHE_LINE: u64 = 64;
/// What the buffer has before it grows (`tcp_wmem[1]`).
const FIRST: u64 = 16_384;

/// The send buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) kind: SendBuffer,
    kernel: Kernel,
    max_header: u64,
    /// Memory that a growing buffer has now (`sk_sndbuf`).
    pub(crate) limit: u64,
    /// The end of what a growing buffer holds, as an offset.
    pub(crate) held: u64,
    /// The application waits for room (`SOCK_NOSPACE`).
    pub(crate) blocked: bool,
    /// An acknowledgement arrived since room was last looked for.
    pub(crate) acknowledged: bool,
}

impl Buffer {
    pub(crate) fn new(config: &Config) -> Buffer {
        Buffer {
            kind: config.send_buffer,
            kernel: config.kernel,
            max_header: u64::from(config.max_header),
            limit: match config.send_buffer {
                SendBuffer::Fixed(_) => 0,
                SendBuffer::Growing(most) => FIRST.min(most),
            },
            held: 1,
            blocked: false,
            acknowledged: false,
        }
    }

    /// Memory of a packet besides its payload (`tcp_stream_alloc_skb`): the structure, and a head for headers. 6.1 allocates
    /// heads by powers of two, 6.18 from a cache of its own, whose objects never have such a size.
    #[inline]
    pub(crate) fn packet_overhead(&self) -> u64 {
        let head = self.max_header.next_multiple_of(CACHE_LINE) + SHARED;
        STRUCTURE
            + match self.kernel {
                Kernel::V6_1 => head.next_power_of_two(),
                Kernel::V6_18 if head.is_power_of_two() => head + CACHE_LINE,
                Kernel::V6_18 => head,
            }
    }

    /// Memory that the growing buffer reckons with for a segment (`tcp_sndbuf_expand`).
    #[inline]
    pub(crate) fn segment_memory(&self, mss: u32) -> u64 {
        // The option of the SYN counts the timestamps in.
        let segment = u64::from(mss) + 12 + self.max_header.next_multiple_of(CACHE_LINE) + SHARED;
        segment.next_power_of_two() + STRUCTURE
    }

    /// The kernel that the host follows.
    #[inline]
    pub(crate) fn kernel(&self) -> Kernel {
        self.kernel
    }
}
