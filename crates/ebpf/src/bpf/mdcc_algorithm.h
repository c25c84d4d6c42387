/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Multi-domain congestion control: the arithmetic, apart from the kernel.
 *
 * Source: Z. Kraemer, S. Molnar, A. Mihaly, S. Nadas, "Towards Multi-Domain Congestion Control in Next-Generation Networks"
 * (WCNC 2019), sections III and IV-B; RFC 9438 and Linux tcp_cubic.c (CUBIC, HyStart), Linux tcp_scalable.c, RFC 6937 and
 * Linux tcp_cwnd_reduction() (PRR), RFC 2861 (idle and unused windows).
 *
 * This is the twin of the simulator's `crates/cc` (multi_domain.rs, loss_based.rs, cubic.rs, hystart.rs, scalable.rs,
 * prr.rs), from which it must not differ in any integer: `crates/ebpf/tests/twin.rs` and `domains_twin.rs` compare them. It reads no clock and
 * calls nobody, so it compiles for the kernel and for user space. All functions expect what Linux guarantees: sequence
 * numbers of one connection, time that never goes back. What one window does by itself is in mdcc_window.h.
 *
 * Where it leaves the simulator's:
 * 1. What was sent is known from the kernel's counter at each acknowledgement, not from a call for each segment, so
 *    windows that are not used (RFC 2861) are seen an acknowledgement later.
 * 2. Sequence numbers wrap. A round of HyStart, or a silence, that ends nowhere for 2^31 bytes is not expected.
 */
#ifndef RANWAY_MDCC_ALGORITHM_H
#define RANWAY_MDCC_ALGORITHM_H

#include "mdcc_window.h"

/* Functions of their own, which the verifier checks once, whoever calls them: for any arguments, null among them. */
#ifdef __bpf__
#define MDCC_CALLED __attribute__((noinline))
#else
#define MDCC_CALLED static __attribute__((unused))
#endif

/* CUBIC: beta = 0.7 and C = 0.4004, in 1024ths; time in 1/1024 s (RFC 9438 sections 4.6 and 5). */
#define CUBIC_SCALE 1024U
#define CUBIC_BETA 717U
#define CUBIC_C 410ULL
#define CUBIC_CURVE_SHIFT 40
#define CUBIC_MAX_OFFSET (1ULL << 18)
#define CUBIC_FRIENDLY_SCALE (8 * (CUBIC_SCALE + CUBIC_BETA) / 3 / (CUBIC_SCALE - CUBIC_BETA))
#define CUBIC_RECOMPUTE_NS (1000000000ULL / 32)
#define CUBIC_TICK_NS 1000000ULL
#define CUBIC_SETTLE_NS 1000000000ULL
#define CUBIC_MAX_COUNT_UNKNOWN 20U
#define CUBIC_MIN_COUNT 2U
/* The largest number whose cube has 64 bits. */
#define CUBIC_MAX_ROOT 2642245ULL

#define HYSTART_LOW_WINDOW 16U
#define HYSTART_SPACING_NS 2000000ULL
#define HYSTART_MIN_SAMPLES 8
#define HYSTART_DELAY_MIN_US 4000U
#define HYSTART_DELAY_MAX_US 16000U
#define HYSTART_GSO_MAX_BYTES 65536ULL
#define HYSTART_ACK_DELAY_MAX_US 1000U

/* Round trips' worth of acknowledged data without a report after which the PEP counts as gone. */
#define MDCC_PATIENCE 2

struct mdcc_parameters {
	/* Scalable: acknowledged segments for a segment of growth (50 is a step of 0.02), and what a loss takes, in 1024ths. */
	u32 acks_per_segment;
	u32 decrease_1024ths;
	/* cwnd_e2e starts at so many times the initial window. */
	u32 initial_ratio;
	/* The larger window is at most so many times the smaller. */
	u32 validation_ratio;
	/* A loss that was announced does not reduce cwnd_e2e. */
	u32 loss_filter;
	u32 hystart;
	/* Losses reduce the windows as the papers say, without decisions 5 and 6 of multi_domain.rs. */
	u32 published;
};

/* What is the same for all that is called at a moment. */
struct mdcc_now {
	u64 ns;
	/* Of the stack, in bytes a second, and whether it spreads segments by it. */
	u64 pacing_rate;
	/* Segments that were ever sent. */
	u32 sent;
	bool paced;
};

struct mdcc_ack {
	/* Newly delivered and newly marked lost. */
	u32 delivered;
	u32 lost;
	u32 in_flight;
	/* In us; 0 if there is no sample. */
	u32 rtt_us;
	u32 una;
	u32 next;
	u8 phase;
	bool advanced;
	bool cwnd_limited;
};

struct mdcc_passage {
	/* Segments newly known to have passed the PEP, and to be missing there. */
	u32 passed;
	u32 missing;
	u32 in_flight;
	u32 rtt_us;
	/* Everything below has passed; SND.NXT. */
	u32 una;
	u32 next;
	bool reported;
	bool cwnd_limited;
};

struct mdcc_hystart {
	u64 round_start;
	u64 last_ack;
	u32 end;
	u32 round_rtt;
	u8 samples;
	bool started;
	bool found;
	bool unused[5];
};

struct mdcc_cubic {
	u64 epoch;
	u64 k;
	u64 computed_at;
	u32 plateau;
	u32 last_max;
	u32 count;
	u32 computed_cwnd;
	u32 acked;
	u32 friendly_cwnd;
	/* In us; 0 while there is none. */
	u32 delay_min;
	bool has_epoch;
	bool unused[3];
	struct mdcc_hystart hystart;
};

struct mdcc {
	struct mdcc_parameters parameters;
	struct mdcc_window pep;
	struct mdcc_window e2e;
	struct mdcc_cubic cubic;
	/* Since when the window is not full, and the most that was in flight since (RFC 2861). */
	u64 used_since;
	u32 used;
	u32 initial_window;
	/* Once this is acknowledged, a round trip without a report has passed. */
	u32 silence_end;
	/* The reduction of cwnd_pep in progress ends when the receiver has acknowledged everything below. */
	u32 pep_high;
	u8 silent_rounds;
	u8 phase;
	bool has_pep_high;
	/* A PEP is heard: both windows count, and CUBIC is clocked by it. */
	bool joined;
	/* The recovery in progress is about announced losses only: cwnd_e2e does not know of it. */
	bool filtered;
	/* cwnd_pep has caught up with the head start of cwnd_e2e. */
	bool caught_up;
	bool unused[2];
};

/* --- HyStart (Linux hystart_update()) --- */

MDCC void hystart_begin_round(struct mdcc_hystart *h, u64 now, u32 next)
{
	h->round_start = now;
	h->last_ack = now;
	h->end = next;
	h->round_rtt = 0xffffffffU;
	h->samples = 0;
	h->started = true;
}

MDCC void hystart_reset(struct mdcc_hystart *h, u64 now, u32 next)
{
	h->found = false;
	hystart_begin_round(h, now, next);
}

MDCC u32 hystart_train_threshold(u32 delay_min, const struct mdcc_now *now)
{
	u64 allowance = 0;
	u32 threshold;

	if (now->pacing_rate) {
		allowance = HYSTART_GSO_MAX_BYTES * 4 * 1000000 / now->pacing_rate;
		if (allowance > HYSTART_ACK_DELAY_MAX_US)
			allowance = HYSTART_ACK_DELAY_MAX_US;
	}
	threshold = mdcc_add(delay_min, (u32)allowance);
	return now->paced ? threshold : threshold / 2;
}

/* Whether a round-trip time ends slow start. */
MDCC bool hystart_on_sample(struct mdcc_hystart *h, u32 cwnd, u32 delay, u32 delay_min, u32 una, u32 next,
			    const struct mdcc_now *now)
{
	u32 allowance;
	u64 lasted_us;

	if (h->found)
		return false;
	if (!h->started || mdcc_before(h->end, una))
		hystart_begin_round(h, now->ns, next);
	if (cwnd < HYSTART_LOW_WINDOW)
		return false;
	if (mdcc_since(now->ns, h->last_ack) <= HYSTART_SPACING_NS) {
		h->last_ack = now->ns;
		lasted_us = mdcc_since(now->ns, h->round_start) / 1000;
		if (lasted_us > hystart_train_threshold(delay_min, now))
			h->found = true;
	}
	h->round_rtt = mdcc_min(h->round_rtt, delay);
	if (h->samples < HYSTART_MIN_SAMPLES) {
		h->samples++;
	} else {
		allowance = mdcc_min(mdcc_max(delay_min >> 3, HYSTART_DELAY_MIN_US), HYSTART_DELAY_MAX_US);
		if (h->round_rtt > mdcc_add(delay_min, allowance))
			h->found = true;
	}
	return h->found;
}

/* --- CUBIC (Linux bictcp_update()) --- */

struct cubic_root {
	u64 of;
	u64 root;
};

static long cubic_root_step(u64 step, struct cubic_root *r)
{
	u64 candidate = r->root | (1ULL << ((21 - step) & 31));

	if (candidate <= CUBIC_MAX_ROOT && candidate * candidate * candidate <= r->of)
		r->root = candidate;
	return 0;
}

/* The largest integer whose cube is at most `a`, bit by bit from the highest. */
MDCC u64 cubic_root(u64 a)
{
	struct cubic_root r = { .of = a, .root = 0 };
#ifdef __bpf__
	/* The verifier would follow each of the 2^22 ways through a loop. */
	bpf_loop(22, cubic_root_step, &r, 0);
#else
	u64 step;

	for (step = 0; step < 22; step++)
		cubic_root_step(step, &r);
#endif
	return r.root;
}

/* W(t) = C (t - K)^3 + plateau, in segments, `ns` after the epoch (RFC 9438 section 4.2). */
MDCC u32 cubic_curve(const struct mdcc_cubic *c, u64 ns)
{
	/* 2^10 / 10^9 = 2 / 1,953,125. */
	u64 t = ns > (1ULL << 62) ? 0xffffffffffffffffULL / 1953125 : ns * 2 / 1953125;
	u64 offset = t > c->k ? t - c->k : c->k - t;
	u32 delta;

	if (offset > CUBIC_MAX_OFFSET)
		offset = CUBIC_MAX_OFFSET;
	delta = (u32)((CUBIC_C * offset * offset * offset) >> CUBIC_CURVE_SHIFT);
	if (t < c->k)
		return c->plateau > delta ? c->plateau - delta : 0;
	return c->plateau + delta;
}

MDCC void cubic_follow_curve(struct mdcc_cubic *c, u32 cwnd, u32 acked, u64 now)
{
	u32 target;

	c->computed_cwnd = cwnd;
	c->computed_at = now;
	if (!c->has_epoch) {
		c->has_epoch = true;
		c->epoch = now;
		c->acked = acked;
		c->friendly_cwnd = cwnd;
		if (c->last_max <= cwnd) {
			c->k = 0;
			c->plateau = cwnd;
		} else {
			c->k = cubic_root((1ULL << CUBIC_CURVE_SHIFT) / CUBIC_C * (c->last_max - cwnd));
			c->plateau = c->last_max;
		}
	}
	target = cubic_curve(c, mdcc_since(now, c->epoch) + (u64)c->delay_min * 1000);
	c->count = target > cwnd ? cwnd / (target - cwnd) : 100 * cwnd;
	if (c->last_max == 0)
		c->count = mdcc_min(c->count, CUBIC_MAX_COUNT_UNKNOWN);
}

/* Never slower than a Reno of the same average (RFC 9438 section 4.3). */
MDCC void cubic_keep_up_with_reno(struct mdcc_cubic *c, u32 cwnd)
{
	u32 per_segment = (cwnd * CUBIC_FRIENDLY_SCALE) >> 3, grown;

	if (per_segment && c->acked > per_segment) {
		grown = (c->acked - 1) / per_segment;
		c->acked -= grown * per_segment;
		c->friendly_cwnd = mdcc_add(c->friendly_cwnd, grown);
	}
	if (c->friendly_cwnd > cwnd)
		c->count = mdcc_min(c->count, cwnd / (c->friendly_cwnd - cwnd));
}

/* Acknowledged segments for a segment of growth. */
MDCC u32 cubic_update(struct mdcc_cubic *c, u32 cwnd, u32 acked, u64 now)
{
	u64 since = mdcc_since(now, c->computed_at);

	c->acked = mdcc_add(c->acked, acked);
	if (c->has_epoch && c->computed_cwnd == cwnd && since <= CUBIC_RECOMPUTE_NS)
		return c->count;
	if (!c->has_epoch || since >= CUBIC_TICK_NS)
		cubic_follow_curve(c, cwnd, acked, now);
	cubic_keep_up_with_reno(c, cwnd);
	c->count = mdcc_max(c->count, CUBIC_MIN_COUNT);
	return c->count;
}

MDCC void cubic_on_sample(struct mdcc_cubic *c, struct mdcc_window *w, u32 rtt_us, u32 una, u32 next, bool hystart,
			  const struct mdcc_now *now)
{
	if (rtt_us == 0 || (c->has_epoch && mdcc_since(now->ns, c->epoch) < CUBIC_SETTLE_NS))
		return;
	if (c->delay_min == 0 || rtt_us < c->delay_min)
		c->delay_min = rtt_us;
	if (hystart && window_in_slow_start(w) &&
	    hystart_on_sample(&c->hystart, w->cwnd, rtt_us, c->delay_min, una, next, now))
		w->ssthresh = w->cwnd;
}

MDCC u32 cubic_reduce(struct mdcc_cubic *c, u32 cwnd)
{
	c->has_epoch = false;
	c->last_max = cwnd < c->last_max ? cwnd * (CUBIC_SCALE + CUBIC_BETA) / (2 * CUBIC_SCALE) : cwnd;
	return cwnd * CUBIC_BETA / CUBIC_SCALE;
}

/* A time-out forgets the curve. */
MDCC void cubic_on_loss(struct mdcc_cubic *c, u64 now, u32 next)
{
	c->epoch = c->k = c->computed_at = 0;
	c->plateau = c->last_max = c->count = c->computed_cwnd = c->acked = c->friendly_cwnd = c->delay_min = 0;
	c->has_epoch = false;
	hystart_reset(&c->hystart, now, next);
}

/* Acknowledgements come from elsewhere now. */
MDCC void cubic_forget_delay(struct mdcc_cubic *c, u64 now, u32 next)
{
	c->delay_min = 0;
	hystart_reset(&c->hystart, now, next);
}

/* --- one window's reactions; `cubic` is null for Scalable's --- */

MDCC void window_enter(struct mdcc_window *w, struct mdcc_cubic *cubic, u8 phase, u32 next, u64 now)
{
	w->phase = phase;
	if (cubic && phase == MDCC_LOSS)
		cubic_on_loss(cubic, now, next);
}

MDCC void window_reduce(struct mdcc_window *w, struct mdcc_cubic *cubic, const struct mdcc_parameters *p)
{
	u32 to = cubic ? cubic_reduce(cubic, w->cwnd) : w->cwnd - w->cwnd * mdcc_min(p->decrease_1024ths, 1024) / 1024;

	w->ssthresh = mdcc_max(to, 2);
	w->credit = 0;
	w->undone = false;
}

/* Lowers window and threshold at once, outside any loss recovery; ends a reduction in progress. */
MDCC void window_decrease(struct mdcc_window *w, struct mdcc_cubic *cubic, const struct mdcc_parameters *p, u32 next,
			  const struct mdcc_now *now)
{
	if (window_reducing(w)) {
		window_end_reduction(w);
		window_enter(w, cubic, MDCC_OPEN, next, now->ns);
	}
	w->prior_cwnd = 0;
	window_reduce(w, cubic, p);
	w->cwnd = mdcc_min(w->ssthresh, w->cwnd);
}

MDCC void window_on_congestion(struct mdcc_window *w, struct mdcc_cubic *cubic, const struct mdcc_parameters *p,
			       enum mdcc_sign sign, bool again, u32 in_flight, u32 una, u32 next,
			       const struct mdcc_now *now)
{
	bool reacting = w->phase > MDCC_DISORDER && !w->undone && mdcc_before(una, w->high);

	if (sign == MDCC_SIGN_TIMEOUT) {
		if (!reacting || (w->phase == MDCC_LOSS && !again)) {
			w->prior_cwnd = w->cwnd;
			w->prior_ssthresh = window_remembered_ssthresh(w);
			window_reduce(w, cubic, p);
		}
		w->cwnd = mdcc_min(in_flight + 1, MDCC_MAX_CWND);
		w->credit = 0;
		w->high = next;
		window_enter(w, cubic, MDCC_LOSS, next, now->ns);
		return;
	}
	if (reacting) {
		w->prior_cwnd = 0;
		if (sign == MDCC_SIGN_LOSS)
			window_enter(w, cubic, MDCC_RECOVERY, next, now->ns);
		return;
	}
	if (window_reducing(w))
		window_end_reduction(w);
	w->prior_cwnd = sign == MDCC_SIGN_ECN ? 0 : w->cwnd;
	w->prior_ssthresh = window_remembered_ssthresh(w);
	w->prr_prior = w->cwnd;
	w->prr_delivered = 0;
	w->prr_sent = now->sent;
	window_reduce(w, cubic, p);
	w->high = next;
	window_enter(w, cubic, sign == MDCC_SIGN_ECN ? MDCC_CWR : MDCC_RECOVERY, next, now->ns);
}

MDCC void window_on_ack(struct mdcc_window *w, struct mdcc_cubic *cubic, const struct mdcc_parameters *p,
			const struct mdcc_ack *ack, u8 phase, const struct mdcc_now *now)
{
	u32 left, per;

	if (cubic)
		cubic_on_sample(cubic, w, ack->rtt_us, ack->una, ack->next, p->hystart, now);
	if (phase != w->phase) {
		if (window_reducing(w) && phase != MDCC_CWR && phase != MDCC_RECOVERY)
			window_end_reduction(w);
		window_enter(w, cubic, phase, ack->next, now->ns);
	}
	if (window_reducing(w)) {
		window_prr(w, ack->delivered, ack->lost, ack->in_flight, ack->advanced, now->sent);
	} else if (ack->advanced && ack->cwnd_limited) {
		left = window_slow_start(w, ack->delivered);
		if (left > 0) {
			per = cubic ? cubic_update(cubic, w->cwnd, left, now->ns) :
				      mdcc_min(w->cwnd, mdcc_max(p->acks_per_segment, 1));
			window_grow_one_per(w, per, left);
		}
	}
}

/* --- both windows --- */

MDCC bool mdcc_recovering(const struct mdcc *m)
{
	return m->phase > MDCC_DISORDER;
}

MDCC bool mdcc_e2e_counts(const struct mdcc *m)
{
	return m->joined && m->e2e.cwnd < m->pep.cwnd;
}

/* The effective window and its threshold. */
MDCC u32 mdcc_cwnd(const struct mdcc *m)
{
	return mdcc_e2e_counts(m) ? m->e2e.cwnd : m->pep.cwnd;
}

MDCC u32 mdcc_ssthresh(const struct mdcc *m)
{
	return mdcc_e2e_counts(m) ? m->e2e.ssthresh : m->pep.ssthresh;
}

/* A window that does not count, because the other is smaller, has not been tried: it is reduced from the one that does.
 * The papers do not distinguish it. */
MDCC void mdcc_lower(struct mdcc *m, struct mdcc_window *w)
{
	if (!m->parameters.published && !window_reducing(&m->pep) && !window_reducing(&m->e2e))
		window_lower_to(w, mdcc_cwnd(m));
}

/* The wired domain lost something, and no reduction of cwnd_pep covers it. */
MDCC void mdcc_reduce_pep(struct mdcc *m, u32 in_flight, u32 una, u32 next, const struct mdcc_now *now)
{
	if (m->parameters.published) {
		m->has_pep_high = false;
		window_decrease(&m->pep, &m->cubic, &m->parameters, next, now);
		return;
	}
	mdcc_lower(m, &m->pep);
	window_on_congestion(&m->pep, &m->cubic, &m->parameters, MDCC_SIGN_LOSS, false, in_flight, una, next, now);
	m->pep_high = next;
	m->has_pep_high = true;
}

MDCC void mdcc_init(struct mdcc *m, const struct mdcc_parameters *p, u32 initial_window, u64 now)
{
	m->parameters = *p;
	window_init(&m->pep, initial_window);
	window_init(&m->e2e, mdcc_times(initial_window, mdcc_max(p->initial_ratio, 1)));
	m->initial_window = m->pep.cwnd;
	m->used_since = now;
}

/* Multi-domain window validation. */
MDCC void mdcc_validate(struct mdcc *m)
{
	const struct mdcc_parameters *p = &m->parameters;
	u32 ratio = mdcc_max(p->validation_ratio, 1);
	u32 pep = m->pep.cwnd, e2e = m->e2e.cwnd;

	if (e2e <= mdcc_times(pep, ratio) || !window_in_slow_start(&m->pep))
		m->caught_up = true;
	if (m->caught_up)
		window_lower_to(&m->e2e, mdcc_times(pep, ratio));
	if (m->joined)
		window_lower_to(&m->pep, mdcc_times(e2e, ratio));
}

MDCC void mdcc_join(struct mdcc *m, u32 next, const struct mdcc_now *now)
{
	m->joined = true;
	cubic_forget_delay(&m->cubic, now->ns, next);
}

MDCC void mdcc_part(struct mdcc *m, u32 next, const struct mdcc_now *now)
{
	m->joined = false;
	m->has_pep_high = false;
	cubic_forget_delay(&m->cubic, now->ns, next);
}

/* Goes on with a reduction of cwnd_pep, whose growth is not clocked here. It takes a round trip of the whole path, because
 * what it reduces is what is in flight between sender and receiver. */
MDCC void mdcc_follow_reduction(struct mdcc *m, const struct mdcc_ack *ack, const struct mdcc_now *now)
{
	struct mdcc_ack sample = *ack;

	if (m->has_pep_high && !mdcc_before(ack->una, m->pep_high))
		m->has_pep_high = false;
	sample.rtt_us = 0;
	sample.cwnd_limited = false;
	window_on_ack(&m->pep, &m->cubic, &m->parameters, &sample, m->has_pep_high ? MDCC_RECOVERY : MDCC_OPEN, now);
}

/* The receiver acknowledged something. */
MDCC_CALLED int mdcc_on_ack(struct mdcc *m, const struct mdcc_ack *ack, const struct mdcc_now *now)
{
	const struct mdcc_parameters *p;

	if (!m || !ack || !now)
		return 0;
	p = &m->parameters;
	m->phase = ack->phase;
	if (!mdcc_recovering(m))
		m->filtered = false;
	window_on_ack(&m->e2e, 0, p, ack, m->filtered ? MDCC_OPEN : ack->phase, now);
	if (m->joined) {
		if (mdcc_before(m->silence_end, ack->una)) {
			if (m->silent_rounds < 255)
				m->silent_rounds++;
			m->silence_end = ack->next;
		}
		if (m->silent_rounds > MDCC_PATIENCE && !mdcc_recovering(m) && !window_reducing(&m->pep))
			mdcc_part(m, ack->next, now);
		if (window_reducing(&m->pep))
			mdcc_follow_reduction(m, ack, now);
	} else {
		window_on_ack(&m->pep, &m->cubic, p, ack, ack->phase, now);
	}
	mdcc_validate(m);
	return 0;
}

/* A PEP told something, or it follows from what the receiver acknowledged. */
MDCC_CALLED int mdcc_on_passage(struct mdcc *m, const struct mdcc_passage *passage, const struct mdcc_now *now)
{
	const struct mdcc_parameters *p;
	struct mdcc_ack sample = {};
	bool reducing;

	if (!m || !passage || !now)
		return 0;
	p = &m->parameters;
	if (passage->reported) {
		m->silent_rounds = 0;
		m->silence_end = passage->next;
		if (!m->joined && !mdcc_recovering(m) && !window_reducing(&m->pep))
			mdcc_join(m, passage->next, now);
	}
	if (!m->joined)
		return 0;
	if (passage->missing && (p->published || !m->has_pep_high))
		mdcc_reduce_pep(m, passage->in_flight, passage->una, passage->next, now);
	reducing = window_reducing(&m->pep);
	/* What passes while the window is reduced changes nothing: the reduction follows acknowledgements. In the papers, a
	 * report calls either the decrease or the increase. */
	sample.delivered = reducing || (p->published && passage->missing) ? 0 : passage->passed;
	sample.lost = passage->missing;
	sample.in_flight = passage->in_flight;
	sample.rtt_us = passage->rtt_us;
	sample.una = passage->una;
	sample.next = passage->next;
	sample.advanced = passage->passed > 0;
	sample.cwnd_limited = passage->cwnd_limited;
	window_on_ack(&m->pep, &m->cubic, p, &sample, reducing ? MDCC_RECOVERY : MDCC_OPEN, now);
	mdcc_validate(m);
	return 0;
}

struct mdcc_congestion {
	u32 in_flight;
	u32 una;
	u32 next;
	u8 sign;
	/* Of a time-out: nothing was acknowledged since the last. */
	bool again;
	/* All that was lost had been announced. */
	bool announced;
};

MDCC_CALLED int mdcc_on_congestion(struct mdcc *m, const struct mdcc_congestion *c, const struct mdcc_now *now)
{
	const struct mdcc_parameters *p;

	if (!m || !c || !now)
		return 0;
	p = &m->parameters;
	if (c->sign == MDCC_SIGN_LOSS && m->joined && p->loss_filter && c->announced) {
		/* What was announced during a reduction of cwnd_pep, and sent after that had begun, begins another. In the
		 * papers, its report has reduced cwnd_pep already. */
		if (!p->published && (!m->has_pep_high || !mdcc_before(c->una, m->pep_high)))
			mdcc_reduce_pep(m, c->in_flight, c->una, c->next, now);
		m->filtered = true;
		m->phase = MDCC_RECOVERY;
		return 0;
	}
	m->filtered = false;
	if (c->sign == MDCC_SIGN_LOSS && m->joined && m->caught_up)
		mdcc_lower(m, &m->e2e);
	window_on_congestion(&m->e2e, 0, p, c->sign, c->again, c->in_flight, c->una, c->next, now);
	if (c->sign == MDCC_SIGN_TIMEOUT && m->joined)
		mdcc_part(m, c->next, now);
	if (c->sign != MDCC_SIGN_LOSS || !m->joined)
		window_on_congestion(&m->pep, &m->cubic, p, c->sign, c->again, c->in_flight, c->una, c->next, now);
	if (c->sign == MDCC_SIGN_ECN) {
		m->pep_high = c->next;
		m->has_pep_high = m->joined;
	}
	m->phase = c->sign == MDCC_SIGN_LOSS ? MDCC_RECOVERY : c->sign == MDCC_SIGN_ECN ? MDCC_CWR : MDCC_LOSS;
	mdcc_validate(m);
	return 0;
}

MDCC void mdcc_on_undo(struct mdcc *m)
{
	if (!m->filtered)
		window_on_undo(&m->e2e);
	/* A reduction by a report as published was no reaction to what is taken back now. */
	if (!m->joined || (m->filtered && !m->parameters.published)) {
		window_on_undo(&m->pep);
		m->has_pep_high = false;
	}
}

/* What cwnd_e2e starts with. */
MDCC u32 mdcc_initial_e2e(const struct mdcc *m)
{
	return mdcc_times(m->initial_window, mdcc_max(m->parameters.initial_ratio, 1));
}

/* The pipe is empty, and the last segment was sent `idle` ago (RFC 5681 section 4.1). */
MDCC void mdcc_on_restart(struct mdcc *m, u64 idle_ns, u64 rto_ns, const struct mdcc_now *now)
{
	u64 periods;

	if (m->cubic.has_epoch) {
		m->cubic.epoch += idle_ns;
		if (m->cubic.epoch > now->ns)
			m->cubic.epoch = now->ns;
	}
	if (rto_ns == 0 || idle_ns <= rto_ns)
		return;
	periods = (idle_ns - 1) / rto_ns;
	if (periods > 31)
		periods = 31;
	m->pep.ssthresh = window_remembered_ssthresh(&m->pep);
	m->pep.cwnd = mdcc_max(m->pep.cwnd >> periods, mdcc_min(m->initial_window, m->pep.cwnd));
	m->e2e.ssthresh = window_remembered_ssthresh(&m->e2e);
	m->e2e.cwnd = mdcc_max(m->e2e.cwnd >> periods, mdcc_min(mdcc_initial_e2e(m), m->e2e.cwnd));
	m->used = 0;
	m->used_since = now->ns;
}

/* Whether the windows are used: one that was not for an RTO comes half-way down to what was (RFC 2861 section 3.2). */
MDCC void mdcc_note_use(struct mdcc *m, u32 in_flight, bool full, u64 rto_ns, const struct mdcc_now *now)
{
	if (full) {
		m->used = 0;
		m->used_since = now->ns;
		return;
	}
	m->used = mdcc_max(m->used, in_flight);
	if (mdcc_since(now->ns, m->used_since) >= rto_ns) {
		window_validate_use(&m->pep, mdcc_max(m->used, m->initial_window));
		window_validate_use(&m->e2e, mdcc_max(m->used, mdcc_initial_e2e(m)));
		m->used = 0;
		m->used_since = now->ns;
	}
}

#endif
