// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A congestion control whose window user space sets: the radio leg of a split proxy, whose owner knows the radio.
 *
 * Read first: crates/cc/src/directed.rs (its twin in the simulator); Linux net/ipv4/tcp_input.c: tcp_cong_control(),
 * tcp_cwnd_reduction(), tcp_enter_loss(), tcp_process_tlp_ack(); net/ipv4/tcp_output.c: tcp_write_xmit();
 * net/ipv4/bpf_tcp_ca.c.
 *
 * A socket's target, in segments, is in `targets`, and counts until the time in `until`, which the owner extends for all
 * sockets at once. If the owner dies, its sockets are reset; if it only stands still, the time passes.
 *
 * With a target, the window is the target, whatever is lost or marked: losses of the radio are repaired, not answered. After
 * a timeout the window begins at one segment, as Linux sets it, and doubles in each round trip until it is the target again.
 * A new target counts from the next acknowledgement, or the next burst if that is earlier (`min_tso_segs`).
 *
 * Without a target, the window is Reno's, with PRR. It begins where the target ends, in congestion avoidance.
 *
 * Where this leaves the simulator and Linux:
 * 1. Reno does not follow the connection while there is a target; the simulator's congestion control beneath does.
 * 2. There is no restart after idle time (RFC 2861): with `cong_control` the kernel has none. Reno does not grow a window that
 *    is not used.
 * 3. The pacing ratios are Linux's defaults, whatever the namespace's settings are. SO_MAX_PACING_RATE bounds the rate.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "congestion.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* The smallest target, in segments. */
#define LEAST 10

/* The target of a socket, in segments. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} targets SEC(".maps");

/* Until when targets count, in ns of CLOCK_MONOTONIC. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} until SEC(".maps");

/* A socket's state, all zero at first. */
struct rapid {
	/* Segments delivered since the reduction began. */
	u32 delivered;
	/* A reduction of Reno's has begun, and has not been undone. */
	u8 reduces;
	/* The window returns to the target after a timeout. */
	u8 restarts;
};

extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

SHARE struct rapid *rapid_of(struct sock *sk)
{
	return (struct rapid *)tcp_sk(sk)->inet_conn.icsk_ca_priv;
}

SHARE u32 clamped(const struct tcp_sock *tp, u32 cwnd)
{
	return mdcc_max(mdcc_min(cwnd, tp->snd_cwnd_clamp), 1);
}

/* The target in force, or 0. */
SHARE u32 target_of(struct sock *sk)
{
	u32 zero = 0, *target = bpf_sk_storage_get(&targets, sk, 0, 0);
	u64 *end = bpf_map_lookup_elem(&until, &zero);

	if (!target || !end || bpf_ktime_get_coarse_ns() > *end)
		return 0;
	return clamped(tcp_sk(sk), mdcc_min(mdcc_max(*target, LEAST), MDCC_MAX_CWND));
}

/* Gives the target to the kernel. Returns whether there is one. */
SHARE bool direct(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct rapid *s = rapid_of(sk);
	u32 target = target_of(sk), cwnd = target;

	if (!target)
		return false;
	if (s->restarts) {
		cwnd = mdcc_min(mdcc_add(tp->snd_cwnd, acked), target);
		s->restarts = cwnd < target;
	}
	tp->snd_cwnd = cwnd;
	tp->snd_ssthresh = target;
	return true;
}

/* Without a target: what Linux does around a congestion control that has no `cong_control`. */
SHARE void reno(struct sock *sk, u32 ack, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct rapid *s = rapid_of(sk);
	u8 state = BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state);
	struct mdcc_window window = {};

	if (state == TCP_CA_CWR || state == TCP_CA_Recovery) {
		window.cwnd = tp->snd_cwnd;
		window.ssthresh = tp->snd_ssthresh;
		window.prr_prior = tp->prior_cwnd;
		window.prr_delivered = s->delivered;
		window_prr(&window, rs->acked_sacked, rs->losses > 0, packets_in_flight(tp), true, tp->prr_out);
		s->delivered = window.prr_delivered;
		tp->snd_cwnd = clamped(tp, window.cwnd);
	} else if (s->reduces) {
		s->reduces = false;
		tp->snd_cwnd = clamped(tp, tp->snd_ssthresh);
	} else if (rs->acked_sacked) {
		tcp_reno_cong_avoid(sk, ack, rs->acked_sacked);
	}
}

/* A reduction begins, or a timeout has occurred: set_state is told next. */
SEC("struct_ops")
u32 BPF_PROG(rapid_ssthresh, struct sock *sk)
{
	u32 target = target_of(sk);

	rapid_of(sk)->delivered = 0;
	return target ? mdcc_max(target, 2) : tcp_reno_ssthresh(sk);
}

SEC("struct_ops")
void BPF_PROG(rapid_set_state, struct sock *sk, u8 new_state)
{
	struct rapid *s = rapid_of(sk);

	if (new_state == TCP_CA_Loss) {
		s->restarts = true;
		s->reduces = false;
	} else if (new_state == TCP_CA_CWR || new_state == TCP_CA_Recovery) {
		s->reduces = true;
	}
}

SEC("struct_ops")
u32 BPF_PROG(rapid_undo_cwnd, struct sock *sk)
{
	struct rapid *s = rapid_of(sk);
	u32 target = target_of(sk);

	s->reduces = s->restarts = false;
	return target ? target : tcp_reno_undo_cwnd(sk);
}

/* Every acknowledgement that is not old. */
SEC("struct_ops")
void BPF_PROG(rapid_cong_control, struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	(void)flag;
	if (!direct(sk, rs->acked_sacked))
		reno(sk, ack, rs);
	update_pacing_rate(sk, tcp_sk(sk));
}

/* Asked before each burst, and before the window is looked at. */
SEC("struct_ops")
u32 BPF_PROG(rapid_min_tso_segs, struct sock *sk)
{
	direct(sk, 0);
	/* Linux's default of net.ipv4.tcp_min_tso_segs. */
	return 2;
}

/* The owner gives it a name of its own before it is loaded. */
SEC(".struct_ops.link")
struct tcp_congestion_ops rapid = {
	.ssthresh = (void *)rapid_ssthresh,
	.set_state = (void *)rapid_set_state,
	.undo_cwnd = (void *)rapid_undo_cwnd,
	.cong_control = (void *)rapid_cong_control,
	.min_tso_segs = (void *)rapid_min_tso_segs,
	.name = "rapid",
};
