/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a socket remembers, and what of it user space is told. */
#ifndef RANWAY_MDCC_SOCKET_H
#define RANWAY_MDCC_SOCKET_H

#include "mdcc_algorithm.h"

/* Ranges that have not passed the PEP and are remembered; as many as a PEP remembers. */
#define MDCC_RANGES 8

/* Bytes that have not passed the PEP while higher ones have. */
struct mdcc_range {
	u32 start;
	u32 end;
	/* A report has named it as missing. */
	u32 announced;
};

struct mdcc_socket {
	struct mdcc mdcc;
	/* In rising order, the first `ranges` of them, all between `una` and `high`. */
	struct mdcc_range range[MDCC_RANGES];
	u32 ranges;
	/* One past the highest byte that has passed the PEP; SND.UNA when last seen. */
	u32 high;
	u32 una;
	/* Bytes that have passed and do not make a segment yet. */
	u32 rest;
	/* The echo of the last report that was taken. */
	u32 echo;
	/* Segments ever sent when the stack last asked for a burst's size, when that was, and when something was last sent. */
	u32 sent;
	u64 asked_at;
	u64 sent_at;
	/* A threshold was asked for: a reduction begins. */
	bool reduces;
	/* The windows have changed and the kernel does not know yet. */
	bool pending;
	/* The next segment with data announces that reports are understood. */
	bool announcing;
	bool unused;
	/* The round-trip time to the PEP, smoothed. */
	u32 pep_rtt_us;
	u64 reports;
	u64 nacks;
	/* Reports that were not acceptable. */
	u64 ignored;
	/* While no PEP is heard: when the next announcement is due, and how long it is from then to the one after it. */
	u64 announce_at;
	u64 announce_after;
	/* How often the PEP fell silent, or a time-out came. */
	u64 fallbacks;
	/* Losses that were announced and did not reduce cwnd_e2e. */
	u64 filtered;
};

/* A line of `ranway mdcc status`. */
struct mdcc_status {
	u8 local_address[16];
	u8 remote_address[16];
	u16 local_port;
	u16 remote_port;
	u16 family;
	u8 state;
	u8 joined;
	u32 netns;
	u32 cwnd_pep;
	u32 cwnd_e2e;
	u32 ssthresh_pep;
	u32 ssthresh_e2e;
	u32 pep_rtt_us;
	u32 unused[2];
	u64 reports;
	u64 nacks;
	u64 ignored;
	u64 fallbacks;
	u64 filtered;
};

#endif
