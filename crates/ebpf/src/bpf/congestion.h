/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What congestion controls that set the window themselves (`cong_control`) share: sums and rates that Linux keeps to itself.
 * Include kernel.h and bpf_core_read.h first.
 */
#ifndef RANWAY_CONGESTION_H
#define RANWAY_CONGESTION_H

#include "mdcc_window.h"

#define SHARE static inline __attribute__((always_inline))

SHARE struct tcp_sock *tcp_sk(struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

SHARE u32 packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* Linux tcp_update_pacing_rate(), with its default ratios: 200 % while the window doubles, then 120 %. */
SHARE void update_pacing_rate(struct sock *sk, struct tcp_sock *tp)
{
	u64 rate = (u64)tp->mss_cache * ((1000000 / 100) << 3);
	u32 srtt = tp->srtt_us;

	rate *= tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120;
	rate *= mdcc_max(tp->snd_cwnd, tp->packets_out);
	if (srtt)
		rate /= srtt;
	if (rate > sk->sk_max_pacing_rate)
		rate = sk->sk_max_pacing_rate;
	sk->sk_pacing_rate = rate;
}

#endif
