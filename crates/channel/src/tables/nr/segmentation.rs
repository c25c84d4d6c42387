//! LDPC code blocks of a transport block: 38.212, 5.2.2 and 7.2.2.

/// Bits of a code block with base graph 1, at most, with its CRC.
const BASE_GRAPH_1: u32 = 8448;

/// Bits of a code block with base graph 2, at most, with its CRC.
const BASE_GRAPH_2: u32 = 3840;

/// Bits of the CRC of a code block, and of a large transport block.
const CRC: u32 = 24;

/// The code blocks of a transport block, which all have the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeBlocks {
    /// Number of code blocks.
    pub count: u32,
    /// Bits of each, with CRCs.
    pub bits: u32,
}

/// Returns whether a transport block has base graph 2. 38.212 7.2.2.
#[inline]
pub(crate) fn has_base_graph_2(tbs: u32, rate: u16) -> bool {
    tbs <= 292 || tbs <= 3824 && u32::from(rate) * 100 <= 67 * 2048 || u32::from(rate) * 4 <= 2048
}

/// Returns the code blocks of a transport block of `tbs` bits at a code rate in 1/2048.
///
/// A transport block of at most 3824 bits has a CRC of 16 bits, a larger one has 24 bits, and each of several code blocks
/// has another 24. Base graph 2 is for small blocks and low rates.
pub fn code_blocks(tbs: u32, rate: u16) -> CodeBlocks {
    let most = if has_base_graph_2(tbs, rate) { BASE_GRAPH_2 } else { BASE_GRAPH_1 };
    let bits = tbs + if tbs > 3824 { CRC } else { 16 };
    if bits <= most {
        return CodeBlocks { count: 1, bits };
    }
    let count = bits.div_ceil(most - CRC);
    CodeBlocks { count, bits: bits.div_ceil(count) + CRC }
}
