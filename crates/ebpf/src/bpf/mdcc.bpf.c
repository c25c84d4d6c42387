// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The multi-domain congestion control `mdcc`, between the kernel and mdcc_algorithm.h.
 *
 * Read first: docs/src/pep-messages.md (the reports); Linux net/ipv4/tcp_input.c: tcp_rcv_established(),
 * tcp_validate_incoming(), tcp_ack(), tcp_fastretrans_alert(), tcp_enter_loss(), tcp_cong_control(); net/ipv4/tcp_output.c:
 * tcp_write_xmit(), tcp_tso_segs(); net/ipv4/bpf_tcp_ca.c (what a struct_ops may write).
 *
 * How a report takes effect. It is an ordinary segment with an option that Linux does not know, so the slow path parses it
 * and, before tcp_ack() runs, calls the cgroup's sockops program. That checks it and moves cwnd_pep in the socket's storage;
 * it may not write snd_cwnd. tcp_ack() finds an old acknowledgement and does nothing. tcp_rcv_established() then calls
 * tcp_data_snd_check(), and tcp_write_xmit() asks the congestion control for the least size of a burst before it looks at
 * the window: `min_tso_segs` is where the new window is given to the kernel. So a report sends what it allows at once, and
 * nothing of the kernel's has to be deceived for it.
 *
 * Why cong_control and not cong_avoid. With cong_avoid the kernel reduces *the* window by PRR towards one threshold and
 * sets it to that threshold when recovery ends. Here the smaller of two windows counts, a recovery may concern one of
 * them only or none (loss filter), and reports come in the middle of it. With cong_control the kernel leaves snd_cwnd alone
 * but for time-outs and undo, whose values are ours too; PRR is then in mdcc_algorithm.h, with the segments sent taken from
 * data_segs_out. What the kernel leaves to us with it: the window after idle time and while it is not used (RFC 2861,
 * mdcc_on_restart() and mdcc_note_use()), and the pacing rate, which also decides the size of bursts.
 *
 * Loss filter. When recovery begins, and when more is lost during it, the retransmission queue is searched for a segment
 * that is marked lost, was not sent again, and lies in no announced range. If there is none, cwnd_e2e is not told.
 *
 * Where this leaves the paper and the simulator:
 * 1. No retransmission at a PEP-NACK; it comes when the receiver's SACKs show the loss, a round trip between PEP and
 *    receiver later. A struct_ops cannot send, and may not mark a segment lost. What else could, and what that did when
 *    it was tried: docs/src/mdcc.md, peers/kernel/early.py.
 * 2. What the report says of the round-trip time has the grain of timestamps, 1 ms.
 * 3. A reduction without negotiated ECN that is not recovery (a tail loss probe found the loss, or the host's own queue was
 *    full) counts as coming from either domain, as a mark does.
 * 4. The pacing ratios are Linux's defaults, and windows shrink when idle, whatever the namespace's settings are.
 * 5. Eight ranges are remembered. What is forgotten counts as passed.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "congestion.h"
#include "mdcc_passage.h"
#include "option.h"
#include "siphash.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Set when loaded. */
const volatile struct mdcc_parameters parameters = {
	.acks_per_segment = 50,
	.decrease_1024ths = 128,
	.initial_ratio = 10,
	.validation_ratio = 2,
	.loss_filter = 1,
	.hystart = 1,
};

/* Every connection announces that it understands reports: it may come to use mdcc when it is established. */
const volatile u32 announce_all = 0;

/* The key of the PEPs whose reports are taken. Without one, reports without a tag are, whoever made them. */
const volatile struct {
	u64 key_low;
	u64 key_high;
	u32 keyed;
} trust = {};

/* A sender that has heard a PEP and hears none any more announces itself again, at first and at most after so long. */
#define ANNOUNCE_FIRST_NS 1000000000ULL
#define ANNOUNCE_LAST_NS 64000000000ULL

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct mdcc_socket);
} sockets SEC(".maps");

#define PARAMETERS ((const struct mdcc_parameters *)&parameters)

SHARE struct mdcc_socket *socket_of(struct sock *sk)
{
	return bpf_sk_storage_get(&sockets, sk, 0, 0);
}

/* Linux tcp_is_cwnd_limited(). */
SHARE bool is_cwnd_limited(const struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* Linux __tcp_set_rto(). */
SHARE u64 rto_ns(const struct tcp_sock *tp)
{
	return ((u64)(tp->srtt_us >> 3) + tp->rttvar_us) * 1000;
}

SHARE void fill_now(struct mdcc_now *now, const struct tcp_sock *tp)
{
	const struct sock *sk = (const struct sock *)tp;

	__builtin_memset(now, 0, sizeof(*now));
	now->ns = tp->tcp_mstamp * 1000;
	now->pacing_rate = sk->sk_pacing_rate;
	now->paced = sk->sk_pacing_status != 0;
	now->sent = tp->data_segs_out;
}

/* Gives the windows to the kernel. */
SHARE void apply(struct mdcc_socket *s, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->snd_cwnd = mdcc_min(mdcc_max(mdcc_cwnd(&s->mdcc), 1), tp->snd_cwnd_clamp);
	tp->snd_ssthresh = mdcc_ssthresh(&s->mdcc);
	s->pending = false;
	update_pacing_rate(sk, tp);
}

/* --- what has passed the PEP, by mdcc_passage.h --- */

SHARE void tell_passage(struct mdcc_socket *s, const struct tcp_sock *tp, bool reported, u32 bytes, u32 missing, u32 rtt_us)
{
	struct mdcc_passage passage;
	struct mdcc_now now;
	u32 mss = tp->mss_cache, una = tp->snd_una;

	__builtin_memset(&passage, 0, sizeof(passage));
	passage.reported = reported;
	passage.passed = segments(s, bytes, mss);
	if (missing && mss)
		passage.missing = (missing + mss - 1) / mss;
	passage.in_flight = packets_in_flight(tp);
	passage.cwnd_limited = is_cwnd_limited(tp);
	passage.rtt_us = rtt_us;
	passage.una = una;
	if (!s->ranges)
		passage.una = mdcc_before(una, s->high) ? s->high : una;
	else if (mdcc_before(una, s->range[0].start))
		passage.una = s->range[0].start;
	passage.next = tp->snd_nxt;
	fill_now(&now, tp);
	mdcc_on_passage(&s->mdcc, &passage, &now);
}

/* --- what was lost, and whether that was announced --- */

struct walk {
	struct mdcc_socket *s;
	u64 node;
	u64 from;
	bool unannounced;
};

SHARE bool was_announced(const struct mdcc_socket *s, u32 seq, u32 end)
{
	u32 i;

	for (i = 0; i < MDCC_RANGES; i++)
		if (i < s->ranges && s->range[i].announced && !mdcc_before(seq, s->range[i].start) &&
		    !mdcc_before(s->range[i].end, end))
			return true;
	return false;
}

/* One step through the tree of segments, in order, without a stack: where it came from tells where to go. */
static long walk_step(u64 index, struct walk *walk)
{
	struct rb_node *node = (struct rb_node *)walk->node;
	u64 parent, left, right, next;
	struct tcp_skb_cb *cb;
	bool visit;
	u8 sacked;

	(void)index;
	if (!node)
		return 1;
	parent = BPF_CORE_READ(node, __rb_parent_color) & ~3ULL;
	left = (u64)BPF_CORE_READ(node, rb_left);
	right = (u64)BPF_CORE_READ(node, rb_right);
	visit = false;
	if (walk->from == parent && left) {
		next = left;
	} else if (walk->from == parent || walk->from == left) {
		visit = true;
		next = right ? right : parent;
	} else {
		next = parent;
	}
	if (visit) {
		/* rbnode is the first member of a segment. */
		cb = (struct tcp_skb_cb *)(walk->node + bpf_core_field_offset(struct sk_buff, cb));
		sacked = BPF_CORE_READ(cb, sacked);
		if ((sacked & TCPCB_LOST) && !(sacked & (TCPCB_SACKED_ACKED | TCPCB_SACKED_RETRANS)) &&
		    !was_announced(walk->s, BPF_CORE_READ(cb, seq), BPF_CORE_READ(cb, end_seq))) {
			walk->unannounced = true;
			return 1;
		}
	}
	walk->from = walk->node;
	walk->node = next;
	return 0;
}

/* Whether all that is marked lost had been announced. */
SHARE bool all_announced(struct mdcc_socket *s, const struct sock *sk)
{
	struct walk walk = { .s = s };

	if (!s->ranges)
		return false;
	walk.node = (u64)sk->tcp_rtx_queue.rb_node;
	bpf_loop(1 << 14, walk_step, &walk, 0);
	return !walk.unannounced;
}

SHARE void congestion(struct mdcc_socket *s, const struct tcp_sock *tp, u32 sign, bool again, bool announced)
{
	struct mdcc_congestion c;
	struct mdcc_now now;
	bool joined = s->mdcc.joined;

	__builtin_memset(&c, 0, sizeof(c));
	c.in_flight = packets_in_flight(tp);
	c.una = tp->snd_una;
	c.next = tp->snd_nxt;
	c.sign = sign;
	c.again = again;
	c.announced = announced;
	fill_now(&now, tp);
	mdcc_on_congestion(&s->mdcc, &c, &now);
	s->filtered += s->mdcc.filtered;
	s->fallbacks += joined && !s->mdcc.joined;
}

/* --- the congestion control --- */

SEC("struct_ops")
void BPF_PROG(mdcc_init_socket, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct mdcc_socket *s = bpf_sk_storage_get(&sockets, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

	if (!s)
		return;
	__builtin_memset(s, 0, sizeof(*s));
	mdcc_init(&s->mdcc, PARAMETERS, tp->snd_cwnd, tp->tcp_mstamp * 1000);
	s->una = s->high = tp->snd_una;
	s->sent = tp->data_segs_out;
	s->asked_at = s->sent_at = tp->tcp_mstamp * 1000;
}

/* A reduction begins: which, set_state is told next, and it gives the kernel the threshold. */
SEC("struct_ops")
u32 BPF_PROG(mdcc_ssthresh_asked, struct sock *sk)
{
	struct mdcc_socket *s = socket_of(sk);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	if (s)
		s->reduces = true;
	return mdcc_max(cwnd * CUBIC_BETA / CUBIC_SCALE, 2);
}

SEC("struct_ops")
void BPF_PROG(mdcc_set_state, struct sock *sk, u8 new_state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct mdcc_socket *s = socket_of(sk);
	bool reduces;

	if (!s)
		return;
	reduces = s->reduces;
	s->reduces = false;
	if (new_state == TCP_CA_Loss)
		congestion(s, tp, MDCC_SIGN_TIMEOUT, !reduces, false);
	else if (reduces && new_state == TCP_CA_Recovery)
		congestion(s, tp, MDCC_SIGN_LOSS, false, all_announced(s, sk));
	else if (reduces)
		congestion(s, tp, MDCC_SIGN_ECN, false, false);
	else
		return;
	apply(s, sk);
}

SEC("struct_ops")
u32 BPF_PROG(mdcc_undo_cwnd, struct sock *sk)
{
	struct mdcc_socket *s = socket_of(sk);

	if (!s)
		return tcp_sk(sk)->snd_cwnd;
	mdcc_on_undo(&s->mdcc);
	s->pending = true;
	return mdcc_max(mdcc_cwnd(&s->mdcc), 1);
}

/* The PEP is silent: it may have been started anew, or another one may be on the way. The next segment with data announces that
 * reports are understood. Before Linux 6.10 nothing happens.
 */
SHARE void announce_again(struct mdcc_socket *s, struct sock *sk, u64 now)
{
	int flags = BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;

	if (!s->reports || s->mdcc.joined || s->announcing || now < s->announce_at)
		return;
	if (bpf_setsockopt(sk, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
		s->announce_at = now + ANNOUNCE_LAST_NS;
	else
		s->announcing = true;
}

/* Every acknowledgement of the receiver that is not old. */
SEC("struct_ops")
void BPF_PROG(mdcc_cong_control, struct sock *sk, u32 acknowledged, int flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct mdcc_socket *s = socket_of(sk);
	u32 una = tp->snd_una, bytes;
	struct mdcc_ack ack;
	struct mdcc_now now;
	bool joined;
	long rtt;

	(void)acknowledged;
	(void)flag;
	if (!s)
		return;
	__builtin_memset(&ack, 0, sizeof(ack));
	rtt = rs->rtt_us;
	ack.rtt_us = rtt > 0 ? (u32)rtt : 0;
	ack.delivered = rs->acked_sacked;
	ack.lost = rs->losses > 0 ? rs->losses : 0;
	ack.in_flight = packets_in_flight(tp);
	ack.una = una;
	ack.next = tp->snd_nxt;
	ack.phase = BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state);
	ack.cwnd_limited = is_cwnd_limited(tp);
	ack.advanced = mdcc_before(s->una, una);
	joined = s->mdcc.joined;
	fill_now(&now, tp);

	if (ack.advanced) {
		bytes = note_acknowledged(s, una);
		if (joined && bytes)
			tell_passage(s, tp, false, bytes, 0, 0);
	}
	if (s->mdcc.filtered && ack.lost && ack.phase == TCP_CA_Recovery && !all_announced(s, sk))
		congestion(s, tp, MDCC_SIGN_LOSS, false, false);
	mdcc_on_ack(&s->mdcc, &ack, &now);
	mdcc_note_use(&s->mdcc, rs->prior_in_flight, ack.cwnd_limited, rto_ns(tp), &now);
	s->fallbacks += joined && !s->mdcc.joined;
	announce_again(s, sk, now.ns);
	apply(s, sk);
}

/* Asked before each burst, and before the window is looked at. */
SEC("struct_ops")
u32 BPF_PROG(mdcc_min_tso_segs, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct mdcc_socket *s = socket_of(sk);
	u64 at = tp->tcp_mstamp * 1000;
	struct mdcc_now now;

	/* Linux's default of net.ipv4.tcp_min_tso_segs. */
	if (!s)
		return 2;
	if (s->sent != tp->data_segs_out) {
		s->sent = tp->data_segs_out;
		s->sent_at = s->asked_at;
	}
	s->asked_at = at;
	if (!tp->packets_out && mdcc_since(at, s->sent_at) > 0) {
		fill_now(&now, tp);
		mdcc_on_restart(&s->mdcc, mdcc_since(at, s->sent_at), rto_ns(tp), &now);
		/* Once for a pause, however often the stack asks before it sends. */
		s->sent_at = at;
		s->pending = true;
	}
	if (s->pending)
		apply(s, sk);
	return 2;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops mdcc = {
	.init = (void *)mdcc_init_socket,
	.ssthresh = (void *)mdcc_ssthresh_asked,
	.set_state = (void *)mdcc_set_state,
	.undo_cwnd = (void *)mdcc_undo_cwnd,
	.cong_control = (void *)mdcc_cong_control,
	.min_tso_segs = (void *)mdcc_min_tso_segs,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "mdcc",
};

/* --- the option --- */

SHARE bool is_ours(const char *name)
{
	return name[0] == 'm' && name[1] == 'd' && name[2] == 'c' && name[3] == 'c' && name[4] == '\0';
}

/* Whether the socket uses mdcc. */
SHARE bool uses_mdcc(struct bpf_sock *sk)
{
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	const struct tcp_congestion_ops *ops;
	char name[16] = {};

	if (!tp)
		return false;
	ops = BPF_CORE_READ(tp, inet_conn.icsk_ca_ops);
	bpf_core_read_str(name, sizeof(name), &ops->name);
	return is_ours(name);
}

/* Whether this segment of an established connection carries an announcement: the first with data, once that is due. */
SHARE bool announces_again(struct bpf_sock_ops *ctx)
{
	struct mdcc_socket *s;
	struct bpf_sock *sk = ctx->sk;

	if (!ctx->is_fullsock || !sk || (ctx->skb_tcp_flags & TCP_FLAG_SYN))
		return false;
	/* Asked for the length: of a segment, or of those to come. */
	if (ctx->op == BPF_SOCK_OPS_HDR_OPT_LEN_CB && ctx->args[0] != BPF_WRITE_HDR_TCP_CURRENT_MSS && !ctx->skb_len)
		return false;
	s = bpf_sk_storage_get(&sockets, sk, 0, 0);
	return s && s->announcing;
}

/* It leaves. */
SHARE void note_announcement(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct mdcc_socket *s;
	struct tcp_sock *tp;

	if (!sk)
		return;
	s = bpf_sk_storage_get(&sockets, sk, 0, 0);
	tp = bpf_skc_to_tcp_sock(sk);
	if (!s || !tp)
		return;
	s->announcing = false;
	if (!s->announce_after)
		s->announce_after = ANNOUNCE_FIRST_NS;
	s->announce_at = tp->tcp_mstamp * 1000 + s->announce_after;
	if (s->announce_after < ANNOUNCE_LAST_NS)
		s->announce_after *= 2;
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
}

/* Whether this SYN or SYN-ACK carries an announcement: the first of its connection, if its socket uses mdcc. A route's
 * congestion control is known here and not yet when connecting; of a SYN-ACK, the listener's was known. One that is sent again carries no announcement, for the
 * option may be why the first got lost; a SYN-ACK does, for nothing tells that it is. */
SHARE bool announces(struct bpf_sock_ops *ctx)
{
	if (!ctx->is_fullsock)
		return ctx->args[0] != BPF_WRITE_HDR_TCP_SYNACK_COOKIE;
	return (ctx->skb_tcp_flags & (TCP_FLAG_SYN | TCP_FLAG_ACK)) == TCP_FLAG_SYN && ctx->total_retrans == 0 &&
	       (announce_all || uses_mdcc(ctx->sk));
}

/* Whether a report's tag is that of our key, in a segment with this TCP header, of which 32 bytes are there. */
SHARE bool is_authentic(const __u8 *option, const __u8 *tcp, u32 ranges)
{
	struct tagged t = {
		.ack = be32_at(tcp + 8),
		.stamp = be32_at(tcp + 24),
		.echo = be32_at(tcp + 28),
		.from = be32_at(option + 4),
		.through = be32_at(option + 8),
		.ranges = ranges,
	};
	const __u8 *tag = option + REPORT_LEN;

	/* Where a PEP puts timestamps: the kernel has changed its copy of the echo. */
	if (be32_at(tcp + 20) != 0x0101080a || ranges > TAGGED_RANGES)
		return false;
	if (ranges) {
		t.start = be32_at(tag);
		t.end = be32_at(tag + 4);
		tag += REPORT_RANGE_LEN;
	}
	return tag_of(trust.key_low, trust.key_high, &t) == ((u64)be32_at(tag) << 32 | be32_at(tag + 4));
}

/* Reads a report, and lets the windows know. */
SHARE void hear(struct bpf_sock_ops *ctx)
{
	u32 base, from, through, at, start, end, bytes = 0, missing = 0, stamp, echo, delta, rtt, i, header;
	/* What is searched for, and then what was found. */
	__u8 option[REPORT_MAX_LEN] = { OPTION_KIND, ANNOUNCEMENT_LEN, OPTION_EXID_HIGH, OPTION_EXID_LOW };
	struct bpf_sock *sk = ctx->sk;
	struct mdcc_socket *s;
	struct tcp_sock *tp;
	bool bad = false;
	__u8 *tcp, *tcp_end;
	u32 ranges, wanted;
	int len;

	if (!sk)
		return;
	s = bpf_sk_storage_get(&sockets, sk, 0, 0);
	if (!s)
		return;
	option[3] = trust.keyed ? OPTION_EXID_TAGGED_LOW : OPTION_EXID_LOW;
	len = bpf_load_hdr_opt(ctx, option, sizeof(option), 0);
	if (len < ANNOUNCEMENT_LEN) {
		/* One without a tag, where one is wanted. */
		if (trust.keyed) {
			option[0] = OPTION_KIND;
			option[1] = ANNOUNCEMENT_LEN;
			option[2] = OPTION_EXID_HIGH;
			option[3] = OPTION_EXID_LOW;
			s->ignored += bpf_load_hdr_opt(ctx, option, sizeof(option), 0) >= REPORT_LEN;
		}
		return;
	}
	tp = bpf_skc_to_tcp_sock(sk);
	tcp = ctx->skb_data;
	tcp_end = ctx->skb_data_end;
	if (!tp || tcp + 32 > tcp_end)
		return;
	base = be32_at(tcp + 8);
	header = (tcp[12] >> 4) * 4;
	wanted = trust.keyed ? REPORT_LEN + TAG_LEN : REPORT_LEN;
	ranges = ((u32)len - wanted) / REPORT_RANGE_LEN;
	if ((u32)len < wanted || ranges > REPORT_RANGES || (u32)len != wanted + ranges * REPORT_RANGE_LEN ||
	    ctx->skb_tcp_flags != TCP_FLAG_ACK || ctx->skb_len != header ||
	    (trust.keyed && !is_authentic(option, tcp, ranges))) {
		s->ignored++;
		return;
	}
	from = be32_at(option + 4);
	through = be32_at(option + 8);
	/* In order, not empty, within [from, through). */
	for (i = 0, at = from; i < REPORT_RANGES; i++) {
		if (i >= ranges)
			break;
		start = be32_at(option + REPORT_LEN + i * REPORT_RANGE_LEN);
		end = be32_at(option + REPORT_LEN + i * REPORT_RANGE_LEN + 4);
		bad |= start < at || end <= start;
		at = end;
	}
	bad |= from >= through || at > through;

	/* Of what is in flight: SND.UNA - 2^30 < from, SND.UNA <= through <= SND.NXT. */
	bad |= (s32)(base + from - tp->snd_una) <= -(1 << 30) || mdcc_before(tp->snd_nxt, base + from) ||
	       through > 1U << 30 || mdcc_before(base + through, tp->snd_una) ||
	       mdcc_before(tp->snd_nxt, base + through);

	/* Bound to the flow: it echoes a timestamp that was sent, and none older than the last report's. */
	stamp = BPF_CORE_READ_BITFIELD(tp, tcp_usec_ts) ? (u32)tp->tcp_mstamp : (u32)(tp->tcp_mstamp / 1000);
	echo = tp->rx_opt.rcv_tsecr;
	delta = stamp - echo;
	if (s->reports == 0 && !s->echo)
		s->echo = echo;
	bad |= !BPF_CORE_READ_BITFIELD(tp, rx_opt.saw_tstamp) || (s32)delta < 0 || mdcc_before(echo, s->echo);
	if (bad) {
		s->ignored++;
		return;
	}
	s->echo = echo;
	s->announcing = false;
	s->announce_at = s->announce_after = 0;
	s->reports++;
	s->nacks += ranges > 0;

	at = mdcc_before(base + from, s->una) ? s->una : base + from;
	for (i = 0; i < REPORT_RANGES; i++) {
		if (i >= ranges)
			break;
		start = base + be32_at(option + REPORT_LEN + i * REPORT_RANGE_LEN);
		end = base + be32_at(option + REPORT_LEN + i * REPORT_RANGE_LEN + 4);
		if (mdcc_before(start, s->una))
			start = s->una;
		bytes += note_passed(s, at, start);
		missing += note_missing(s, start, end);
		if (mdcc_before(at, end))
			at = end;
	}
	bytes += note_passed(s, at, base + through);
	rtt = 0;
	if (bytes) {
		rtt = BPF_CORE_READ_BITFIELD(tp, tcp_usec_ts) ? delta : delta * 1000;
		rtt = mdcc_max(rtt, 1);
		s->pep_rtt_us = s->pep_rtt_us ? s->pep_rtt_us - s->pep_rtt_us / 8 + rtt / 8 : rtt;
	}
	tell_passage(s, tp, true, bytes, missing, rtt);
	s->pending = true;
}

SEC("sockops")
int mdcc_options(struct bpf_sock_ops *ctx)
{
	__u8 announcement[ANNOUNCEMENT_LEN] = { OPTION_KIND, ANNOUNCEMENT_LEN, OPTION_EXID_HIGH, OPTION_EXID_LOW };

	switch (ctx->op) {
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		if (!announce_all && !uses_mdcc(ctx->sk))
			break;
		__attribute__((fallthrough));
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		bpf_sock_ops_cb_flags_set(ctx, (ctx->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG) |
						       BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		if (announces(ctx) || announces_again(ctx))
			bpf_reserve_hdr_opt(ctx, ANNOUNCEMENT_LEN, 0);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		if (announces(ctx)) {
			bpf_store_hdr_opt(ctx, announcement, sizeof(announcement), 0);
		} else if (announces_again(ctx)) {
			if (!bpf_store_hdr_opt(ctx, announcement, sizeof(announcement), 0))
				note_announcement(ctx);
		}
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		hear(ctx);
		break;
	default:
		/* The kernel's own answers. */
		ctx->reply = -1;
		break;
	}
	return 1;
}

/* --- what is told to user space --- */

/* By way of the files of all processes: kernels that are locked down refuse iterators over the elements of a map. */
SEC("iter/task_file")
int mdcc_status(struct bpf_iter__task_file *ctx)
{
	const struct mdcc_socket *s;
	struct file *file = ctx->file;
	struct mdcc_status line;
	struct socket *socket;
	struct sock *sk;

	if (!file)
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket)
		return 0;
	sk = socket->sk;
	if (!sk)
		return 0;
	s = bpf_sk_storage_get(&sockets, sk, 0, 0);
	if (!s)
		return 0;
	__builtin_memset(&line, 0, sizeof(line));
	line.family = sk->__sk_common.skc_family;
	line.state = sk->__sk_common.skc_state;
	line.local_port = sk->__sk_common.skc_num;
	line.remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
	if (line.family == AF_INET6) {
		BPF_CORE_READ_INTO(&line.local_address, sk, __sk_common.skc_v6_rcv_saddr.in6_u.u6_addr8);
		BPF_CORE_READ_INTO(&line.remote_address, sk, __sk_common.skc_v6_daddr.in6_u.u6_addr8);
	} else {
		__builtin_memcpy(line.local_address, &sk->__sk_common.skc_rcv_saddr, 4);
		__builtin_memcpy(line.remote_address, &sk->__sk_common.skc_daddr, 4);
	}
	line.netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	line.joined = s->mdcc.joined;
	line.cwnd_pep = s->mdcc.pep.cwnd;
	line.cwnd_e2e = s->mdcc.e2e.cwnd;
	line.ssthresh_pep = s->mdcc.pep.ssthresh;
	line.ssthresh_e2e = s->mdcc.e2e.ssthresh;
	line.pep_rtt_us = s->pep_rtt_us;
	line.reports = s->reports;
	line.nacks = s->nacks;
	line.ignored = s->ignored;
	line.fallbacks = s->fallbacks;
	line.filtered = s->filtered;
	bpf_seq_write(ctx->meta->seq, &line, sizeof(line));
	return 0;
}
