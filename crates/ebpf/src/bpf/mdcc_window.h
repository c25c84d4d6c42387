/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Multi-domain congestion control: what one congestion window does by itself, whatever makes it grow.
 *
 * Source: RFC 5681 (slow start, congestion avoidance), RFC 6937 (PRR), RFC 2861 (unused windows), as Linux does them. The
 * twin of the simulator's `crates/cc/src/loss_based.rs` and `prr.rs`; see mdcc_algorithm.h, which uses it.
 */
#ifndef RANWAY_MDCC_WINDOW_H
#define RANWAY_MDCC_WINDOW_H

#ifndef __bpf__
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
#endif

#define MDCC static inline __attribute__((unused, always_inline))
#define MDCC_INFINITE_SSTHRESH 0x7fffffffU
#define MDCC_MAX_CWND (1U << 21)

/* As the kernel counts them (enum tcp_ca_state). */
enum mdcc_phase { MDCC_OPEN, MDCC_DISORDER, MDCC_CWR, MDCC_RECOVERY, MDCC_LOSS };
enum mdcc_sign { MDCC_SIGN_LOSS, MDCC_SIGN_ECN, MDCC_SIGN_TIMEOUT };

/* A window, and what the kernel does around a congestion control's. */
struct mdcc_window {
	u32 cwnd;
	u32 ssthresh;
	/* Acknowledged segments that have not become growth yet. */
	u32 credit;
	/* PRR: the window when the reduction began, what was delivered since, and mdcc_now.sent then. */
	u32 prr_prior;
	u32 prr_delivered;
	u32 prr_sent;
	/* What an undo restores; 0 if there is nothing to. */
	u32 prior_cwnd;
	u32 prior_ssthresh;
	/* SND.NXT at the last reaction, which is over once that is acknowledged. */
	u32 high;
	u8 phase;
	bool undone;
	bool unused[2];
};

MDCC u32 mdcc_min(u32 a, u32 b)
{
	return a < b ? a : b;
}

MDCC u32 mdcc_max(u32 a, u32 b)
{
	return a > b ? a : b;
}

MDCC bool mdcc_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

MDCC u64 mdcc_since(u64 now, u64 then)
{
	return now > then ? now - then : 0;
}

MDCC u32 mdcc_add(u32 a, u32 b)
{
	u32 sum = a + b;

	return sum < a ? 0xffffffffU : sum;
}

MDCC u32 mdcc_times(u32 a, u32 b)
{
	u64 product = (u64)a * b;

	return product > 0xffffffffU ? 0xffffffffU : (u32)product;
}

/* --- the window (Linux tcp_slow_start(), tcp_cong_avoid_ai()) --- */

MDCC void window_init(struct mdcc_window *w, u32 initial)
{
	w->cwnd = mdcc_min(mdcc_max(initial, 1), MDCC_MAX_CWND);
	w->ssthresh = MDCC_INFINITE_SSTHRESH;
	w->credit = 0;
	w->phase = MDCC_OPEN;
}

MDCC bool window_in_slow_start(const struct mdcc_window *w)
{
	return w->cwnd < w->ssthresh;
}

MDCC bool window_reducing(const struct mdcc_window *w)
{
	return w->phase == MDCC_CWR || w->phase == MDCC_RECOVERY;
}

MDCC void window_set(struct mdcc_window *w, u32 cwnd)
{
	w->cwnd = mdcc_min(cwnd, MDCC_MAX_CWND);
}

/* Gives what is left for congestion avoidance. */
MDCC u32 window_slow_start(struct mdcc_window *w, u32 acked)
{
	u32 grown, left;

	if (!window_in_slow_start(w))
		return acked;
	grown = mdcc_min(mdcc_add(w->cwnd, acked), w->ssthresh);
	left = acked - (grown - w->cwnd);
	window_set(w, grown);
	return left;
}

MDCC void window_grow_one_per(struct mdcc_window *w, u32 per, u32 acked)
{
	u32 more;

	if (per == 0)
		per = 1;
	if (w->credit >= per) {
		w->credit = 0;
		window_set(w, mdcc_add(w->cwnd, 1));
	}
	w->credit = mdcc_add(w->credit, acked);
	if (w->credit >= per) {
		more = w->credit / per;
		w->credit -= more * per;
		window_set(w, mdcc_add(w->cwnd, more));
	}
}

MDCC u32 window_remembered_ssthresh(const struct mdcc_window *w)
{
	return mdcc_max(w->ssthresh, (w->cwnd >> 1) + (w->cwnd >> 2));
}

MDCC void window_lower_to(struct mdcc_window *w, u32 cwnd)
{
	w->cwnd = mdcc_min(w->cwnd, mdcc_max(cwnd, 2));
}

/* PRR: the window in a reduction (RFC 6937 section 3). Nothing delivered, nothing changed. */
MDCC void window_prr(struct mdcc_window *w, u32 delivered, u32 lost, u32 in_flight, bool advanced, u32 sent)
{
	u32 out = sent - w->prr_sent, count, bound;
	u64 share;

	if (delivered == 0 || w->prr_prior == 0)
		return;
	w->prr_delivered = mdcc_add(w->prr_delivered, delivered);
	if (in_flight > w->ssthresh) {
		share = ((u64)w->ssthresh * w->prr_delivered + w->prr_prior - 1) / w->prr_prior;
		count = (u32)share > out ? (u32)share - out : 0;
	} else {
		bound = w->prr_delivered > out ? w->prr_delivered - out : 0;
		bound = mdcc_max(bound, delivered) + (advanced && lost == 0);
		count = mdcc_min(bound, w->ssthresh - in_flight);
	}
	count = mdcc_max(count, out == 0);
	w->cwnd = mdcc_min(mdcc_max(in_flight + count, 1), MDCC_MAX_CWND);
}

MDCC void window_end_reduction(struct mdcc_window *w)
{
	if (!w->undone)
		w->cwnd = mdcc_min(w->ssthresh, MDCC_MAX_CWND);
}

MDCC void window_on_undo(struct mdcc_window *w)
{
	if (w->prior_cwnd) {
		w->cwnd = mdcc_max(w->cwnd, w->prior_cwnd);
		w->ssthresh = mdcc_max(w->ssthresh, w->prior_ssthresh);
		w->prior_cwnd = 0;
		w->undone = true;
	}
}

MDCC void window_validate_use(struct mdcc_window *w, u32 used)
{
	if (w->phase == MDCC_OPEN && used < w->cwnd) {
		w->ssthresh = window_remembered_ssthresh(w);
		w->cwnd = (w->cwnd + used) >> 1;
	}
}

#endif
