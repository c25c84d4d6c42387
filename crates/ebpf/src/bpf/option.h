/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The TCP option of PEPs, as docs/src/pep-messages.md has it. */
#ifndef RANWAY_OPTION_H
#define RANWAY_OPTION_H

/* An experiment (RFC 6994): kind, and the identifier "RW". */
#define OPTION_KIND 253
#define OPTION_EXID_HIGH 0x52
#define OPTION_EXID_LOW 0x57
#define ANNOUNCEMENT_LEN 4
#define REPORT_LEN 12
#define REPORT_RANGE_LEN 8
#define REPORT_RANGES 2
#define REPORT_MAX_LEN (REPORT_LEN + REPORT_RANGES * REPORT_RANGE_LEN)
/* Of reports that carry a tag. */
#define OPTION_EXID_TAGGED_LOW 0x58
#define TAG_LEN 8
#define TAGGED_RANGES 1

#define TCP_FLAG_FIN 0x01
#define TCP_FLAG_SYN 0x02
#define TCP_FLAG_RST 0x04
#define TCP_FLAG_PSH 0x08
#define TCP_FLAG_ACK 0x10

/* A number of the wire at a byte pointer of any alignment. */
static inline __attribute__((unused, always_inline)) __u32 be32_at(const __u8 *at)
{
	return (__u32)at[0] << 24 | (__u32)at[1] << 16 | (__u32)at[2] << 8 | at[3];
}

#endif
