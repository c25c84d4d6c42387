// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* An experiment: a PEP-NACK makes the sender retransmit at once. See early.py, which measures it.
 *
 * Two programs at the server's interface. `early_in` sees what comes in. A report that names something missing goes on to
 * the congestion control as it is. A copy of it is made into what MODE says:
 *
 * ABOVE  an acknowledgement whose SACK has what passed the PEP above the highest missing range;
 * COVER  the same, and what passed the PEP below it, as far down as SACK can say (not the first unacknowledged segment);
 * HOLD   as COVER; the receiver's acknowledgements that would end at a segment which was SACKed by the PEP's word are
 *        dropped until one covers them all, or its SACKs show a loss that the PEP has not named;
 * COPY   the missing segment itself, which `early_out` kept a copy of when it was sent. The kernel is told nothing.
 *
 * One flow, IPv4 over Ethernet, timestamps, no segmentation offload: it is there to be measured, not to be used.
 */
#include "../../crates/ebpf/src/bpf/kernel.h"
#include "../../crates/ebpf/src/bpf/option.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ABOVE 1
#define COVER 2
#define HOLD 3
#define COPY 4
#ifndef MODE
#error "-DMODE=ABOVE, COVER, HOLD or COPY"
#endif

char _license[] SEC("license") = "Dual BSD/GPL";

#define SHARE static inline __attribute__((always_inline))

/* "RWER": a copy that is to become something else. */
#define MARK 0x52574552
/* Both programs share the maps, and early.py reads one. */
#define BY_NAME 1
#define OK (-1)
#define DROP 2

#define IP_AT 14
#define TCP_AT 34
/* With timestamps. */
#define TCP_LEN 32
#define DATA_AT (TCP_AT + TCP_LEN)
#define REPORT_AT (TCP_AT + TCP_LEN)
#define OPTION_NOP 1
#define OPTION_SACK 5

#define SLOTS 8192
#define SLOT_LEN 1536
#define CHUNK 256
#define BURST 8
#define NAMED 16

struct flow {
	/* The receiver's highest acknowledgement. */
	__u32 una;
	/* What was last SACKed by the PEP's word ends here. */
	__u32 told;
	__u32 known;
	/* Where the last named ranges start. */
	__u32 next_named;
	__u32 named[NAMED];
	/* A copy of what starts here is to be sent. */
	__u32 wanted;
	/* The headers of what was last sent, from Ethernet's to the timestamps. */
	__u8 headers[DATA_AT];
};

struct slot {
	__u32 seq;
	__u32 len;
	__u32 resent;
	__u8 flags;
	__u8 data[SLOT_LEN];
};

/* For early.py. */
struct counters {
	__u64 nacks;
	__u64 evidence;
	__u64 held;
	__u64 resent;
	__u64 missed;
	__u64 failed;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct flow);
	__uint(pinning, BY_NAME);
} early_flow SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
	__uint(pinning, BY_NAME);
} early_counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MODE == COPY ? SLOTS : 1);
	__type(key, __u32);
	__type(value, struct slot);
	__uint(pinning, BY_NAME);
} early_slots SEC(".maps");

SHARE bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

SHARE void put32(__u8 *at, __u32 number)
{
	at[0] = number >> 24;
	at[1] = number >> 16;
	at[2] = number >> 8;
	at[3] = number;
}

SHARE __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)sum;
}

SHARE struct flow *flow_of(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&early_flow, &zero);
}

SHARE struct counters *count(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&early_counters, &zero);
}

/* Ethernet's, IPv4's and TCP's header with timestamps; whether it is that. */
SHARE bool read_headers(struct __sk_buff *skb, __u8 *headers)
{
	if (bpf_skb_load_bytes(skb, 0, headers, DATA_AT))
		return false;
	return headers[12] == 8 && headers[13] == 0 && headers[IP_AT] == 0x45 && headers[IP_AT + 9] == 6 &&
	       headers[TCP_AT + 12] >> 4 >= TCP_LEN / 4 && be32_at(headers + TCP_AT + 20) == 0x0101080a;
}

/* The sum of the addresses, the protocol and the length. */
SHARE __u32 pseudo_header(const __u8 *ip, __u32 tcp_len)
{
	__u32 words[3];

	__builtin_memcpy(words, ip + 12, 8);
	words[2] = bpf_htonl(6 << 16 | tcp_len);
	return (__u32)bpf_csum_diff(NULL, 0, words, sizeof(words), 0);
}

SHARE bool was_named(const struct flow *f, __u32 start)
{
	__u32 i;

	for (i = 0; i < NAMED; i++)
		if (f->named[i] == start)
			return true;
	return false;
}

/* A copy of a report becomes an acknowledgement with SACKs, of the same length. */
SHARE int become_evidence(struct __sk_buff *skb, const __u8 *headers)
{
	__u32 una, base, from, through, len, ranges, at, blocks[2 * REPORT_RANGES] = {}, n = 0, i, start, end, sum;
	__u8 tcp[60] = {}, option[REPORT_MAX_LEN] = {};
	struct counters *c = count();
	struct flow *f = flow_of();

	skb->mark = 0;
	len = (headers[TCP_AT + 12] >> 4) * 4;
	if (!c || !f || !f->known || (len != 52 && len != 60))
		return DROP;
	ranges = (len - 44) / 8;
	if (bpf_skb_load_bytes(skb, REPORT_AT, option, 20) ||
	    (ranges > 1 && bpf_skb_load_bytes(skb, REPORT_AT + 20, option + 20, 8)))
		return DROP;
	una = f->una;
	base = be32_at(headers + TCP_AT + 8);
	from = base + be32_at(option + 4);
	through = base + be32_at(option + 8);
	if (before(through, una))
		return DROP;
	/* What has passed: between `from` and the ranges, between them, and above. SACK starts above SND.UNA. */
	at = before(una, from) ? from : una + 1;
	for (i = 0; i < REPORT_RANGES; i++) {
		if (i >= ranges)
			break;
		start = base + be32_at(option + 12 + 8 * i);
		end = base + be32_at(option + 16 + 8 * i);
		if (MODE != ABOVE && before(at, start)) {
			blocks[(2 * n) & 3] = at;
			blocks[(2 * n + 1) & 3] = start;
			n++;
		}
		if (before(at, end))
			at = end;
		if (!was_named(f, start))
			f->named[f->next_named++ % NAMED] = start;
	}
	if (!before(at, through))
		return DROP;

	__builtin_memcpy(tcp, headers + TCP_AT, TCP_LEN);
	put32(tcp + 8, una);
	tcp[12] = (__u8)(len / 4) << 4;
	tcp[16] = tcp[17] = 0;
	for (i = TCP_LEN; i < sizeof(tcp); i++)
		tcp[i] = i < len ? OPTION_NOP : 0;
	tcp[34] = OPTION_SACK;
	tcp[35] = (__u8)(2 + 8 * (n + 1));
	put32(tcp + 36, at);
	put32(tcp + 40, through);
	for (i = 0; i < 2 * REPORT_RANGES; i++)
		if (i < 2 * n)
			put32(tcp + 44 + 4 * i, blocks[i]);
	if (before(f->told, through))
		f->told = through;
	sum = pseudo_header(headers + IP_AT, len);
	sum = (__u32)bpf_csum_diff(NULL, 0, (__be32 *)tcp, sizeof(tcp), sum);
	*(__u16 *)(tcp + 16) = (__u16)~fold(sum);
	/* The verifier knows these lengths, and not `len`. */
	if (len == 52 ? bpf_skb_store_bytes(skb, TCP_AT, tcp, 52, 0) : bpf_skb_store_bytes(skb, TCP_AT, tcp, 60, 0))
		return DROP;
	c->evidence++;
	return OK;
}

SHARE bool is_report(struct __sk_buff *skb, const __u8 *headers)
{
	__u32 option = 0;

	return headers[TCP_AT + 13] == TCP_FLAG_ACK && headers[TCP_AT + 12] >> 4 >= 11 &&
	       !bpf_skb_load_bytes(skb, REPORT_AT, &option, 4) &&
	       (bpf_ntohl(option) & 0xff00ffff) == ((__u32)OPTION_KIND << 24 | OPTION_EXID_HIGH << 8 | OPTION_EXID_LOW);
}

/* Asks for copies of what a report names. */
SHARE void ask_for_copies(struct __sk_buff *skb, const __u8 *headers, struct flow *f, struct counters *c)
{
	__u32 base = be32_at(headers + TCP_AT + 8), ranges, i, j, index, next, end;
	__u8 range[8];
	struct slot *s;

	ranges = ((__u32)(headers[TCP_AT + 12] >> 4) - 11) / 2;
	for (i = 0; i < REPORT_RANGES; i++) {
		if (i >= ranges || bpf_skb_load_bytes(skb, REPORT_AT + 12 + 8 * i, range, 8))
			break;
		next = base + be32_at(range);
		end = base + be32_at(range + 4);
		for (j = 0; j < BURST && before(next, end); j++) {
			index = next / 1448 % SLOTS;
			s = bpf_map_lookup_elem(&early_slots, &index);
			if (!s || s->seq != next || !s->len) {
				c->missed++;
				break;
			}
			if (!s->resent) {
				s->resent = 1;
				f->wanted = next;
				skb->mark = MARK;
				if (bpf_clone_redirect(skb, skb->ifindex, 0))
					c->failed++;
				skb->mark = 0;
			}
			next += s->len;
		}
	}
}

SEC("tc/in")
int early_in(struct __sk_buff *skb)
{
	__u8 headers[DATA_AT], option[12] = {};
	struct counters *c = count();
	struct flow *f = flow_of();
	bool sacks;
	__u32 ack;

	if (!c || !f || !read_headers(skb, headers))
		return OK;
	if (skb->mark == MARK)
		return become_evidence(skb, headers);
	if (is_report(skb, headers)) {
		if (headers[TCP_AT + 12] >> 4 < 13)
			return OK;
		c->nacks++;
		if (MODE == COPY) {
			ask_for_copies(skb, headers, f, c);
			return OK;
		}
		skb->mark = MARK;
		/* It comes in again, after this one. */
		if (bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS))
			c->failed++;
		skb->mark = 0;
		return OK;
	}
	if (!(headers[TCP_AT + 13] & TCP_FLAG_ACK) || (headers[TCP_AT + 13] & TCP_FLAG_SYN))
		return OK;
	ack = be32_at(headers + TCP_AT + 8);
	if (!f->known) {
		f->known = 1;
		f->una = f->told = ack;
		return OK;
	}
	if (MODE == HOLD && before(f->una, ack) && before(ack, f->told)) {
		/* One block below the acknowledgement tells of a duplicate (RFC 2883), and of no loss. */
		sacks = headers[TCP_AT + 12] >> 4 > 8 && !bpf_skb_load_bytes(skb, DATA_AT, option, sizeof(option)) &&
			option[2] == OPTION_SACK && (option[3] > 10 || before(ack, be32_at(option + 8)));
		if (!sacks || was_named(f, ack)) {
			c->held++;
			return DROP;
		}
	}
	if (before(f->una, ack))
		f->una = ack;
	return OK;
}

/* A copy of a report becomes the segment that is wanted. */
SHARE int become_segment(struct __sk_buff *skb)
{
	struct counters *c = count();
	__u8 headers[DATA_AT], *tcp;
	struct flow *f = flow_of();
	__u32 index, len, sum, i;
	struct slot *s;

	skb->mark = 0;
	if (!c || !f)
		return DROP;
	index = f->wanted / 1448 % SLOTS;
	s = bpf_map_lookup_elem(&early_slots, &index);
	if (!s || s->seq != f->wanted)
		return DROP;
	len = s->len;
	if (len == 0 || len > 1448)
		return DROP;
	__builtin_memcpy(headers, f->headers, sizeof(headers));
	headers[IP_AT + 2] = (__u8)((DATA_AT - IP_AT + len) >> 8);
	headers[IP_AT + 3] = (__u8)(DATA_AT - IP_AT + len);
	headers[IP_AT + 10] = headers[IP_AT + 11] = 0;
	sum = (__u32)bpf_csum_diff(NULL, 0, (__be32 *)(headers + IP_AT), 20, 0);
	*(__u16 *)(headers + IP_AT + 10) = (__u16)~fold(sum);
	tcp = headers + TCP_AT;
	put32(tcp + 4, s->seq);
	tcp[13] = s->flags;
	tcp[16] = tcp[17] = 0;
	sum = pseudo_header(headers + IP_AT, TCP_LEN + len);
	sum = (__u32)bpf_csum_diff(NULL, 0, (__be32 *)tcp, TCP_LEN, sum);
	/* Beyond the segment it is 0. */
	for (i = 0; i < SLOT_LEN / CHUNK; i++)
		sum = (__u32)bpf_csum_diff(NULL, 0, (__be32 *)(s->data + i * CHUNK), CHUNK, sum);
	*(__u16 *)(tcp + 16) = (__u16)~fold(sum);
	if (bpf_skb_change_tail(skb, DATA_AT + len, 0) || bpf_skb_store_bytes(skb, 0, headers, DATA_AT, 0) ||
	    bpf_skb_store_bytes(skb, DATA_AT, s->data, len, 0)) {
		c->failed++;
		return DROP;
	}
	c->resent++;
	return OK;
}

SEC("tc/out")
int early_out(struct __sk_buff *skb)
{
	__u32 index, seq, len;
	__u8 headers[DATA_AT];
	struct flow *f = flow_of();
	struct slot *s;

	if (MODE != COPY || !f)
		return OK;
	if (skb->mark == MARK)
		return become_segment(skb);
	if (!read_headers(skb, headers) || skb->len <= DATA_AT || headers[TCP_AT + 12] >> 4 != TCP_LEN / 4)
		return OK;
	len = skb->len - DATA_AT;
	if (len > 1448)
		return OK;
	__builtin_memcpy(f->headers, headers, sizeof(headers));
	seq = be32_at(headers + TCP_AT + 4);
	index = seq / 1448 % SLOTS;
	s = bpf_map_lookup_elem(&early_slots, &index);
	if (!s)
		return OK;
	if (s->seq == seq && s->len == len && s->resent)
		return OK;
	s->len = 0;
	__builtin_memset(s->data + 1408, 0, SLOT_LEN - 1408);
	if (bpf_skb_load_bytes(skb, DATA_AT, s->data, len))
		return OK;
	s->seq = seq;
	s->len = len;
	s->flags = headers[TCP_AT + 13];
	s->resent = 0;
	return OK;
}
