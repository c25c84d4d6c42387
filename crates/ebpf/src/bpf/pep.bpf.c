// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The lightweight PEP between two interfaces of a router.
 *
 * Read first: docs/src/pep-messages.md, whose rules these are; pep_flow.h, which has what is remembered of a flow and what
 * becomes of it; pep_read.h, which has what is read of a packet; `crates/pep`, the same in Rust.
 *
 * Three programs. `pep_wan` sees what comes in from the sender's side, `pep_ran` what comes in from the receiver's; the
 * kernel forwards both as if nobody had looked. When a report is due, pep_wan leaves it in `outbox`, marks the segment,
 * has a copy of it sent back out of the interface, and takes the mark off again. The copy passes `pep_back` on the same
 * processor, within that call, and becomes the report there: cut to its headers, which are written anew. (Cutting copies
 * what is there. There is no way to make a packet from nothing in such a program.) The report leaves by the way on which
 * the data came, so nothing has to be routed.
 *
 * Every way out of pep_wan and pep_ran is TCX_NEXT: packets go on, whatever happens here. pep_back drops a copy that it
 * could not make a report of, and touches nothing else.
 *
 * A segment that the receiver will not take says nothing, whoever sent it: one with a wrong checksum, or that the router
 * itself discards. A checksum is right if the device or GRO has said so, or if this machine is still to finish it; otherwise
 * it is computed. The same holds for the receiver's segments, which the sender would not take.
 *
 * Both directions of a flow may be on different processors, so its state has a lock of a word. Whoever does not get it
 * in time notes that it missed a segment, and the flow is learnt anew from the next.
 *
 * Where this leaves the simulator's:
 * 1. What GRO has merged is one segment here that counts as several; one report answers it.
 * 2. Which flow goes when there is no room for another is the kernel's approximation of the least recently used. Openings of
 *    one receiver take no more than SLOTS places; two of them with the same slot displace each other.
 * 3. IPv4 options, IPv6 extension headers and fragments: not looked at. Nor are frames with a VLAN tag: each VLAN's interface
 *    can have a PEP of its own.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "pep_flow.h"
#include "siphash.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Tries to get a lock; the other holds it for a fraction of a microsecond. */
#define TRIES 512
/* "RWPE": a copy that is to become a report. No packet comes in with a mark. */
#define MARK 0x52575045

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define IPPROTO_TCP 6
#define ETH_LEN 14
#define IPV4_LEN 20
#define IPV6_LEN 40
#define TCP_OPTIONS_MAX 40
/* A report's that names nothing missing. */
#define REPORT_TCP_LEN (TCP_LEN + TIMESTAMPS_LEN + REPORT_LEN)
enum { TCX_DROP = 2 };
void *bpf_cast_to_kern_ctx(void *ctx) __ksym;
/* include/linux/skbuff.h: who is to look at a checksum. */
enum { CHECKSUM_UNNECESSARY = 1, CHECKSUM_PARTIAL = 3 };
/* Where a TCP header has its checksum. */
#define TCP_CHECK 16
/* Bytes that are summed at once: what bpf_csum_diff() takes before Linux 6.12. As many make the longest packet. */
#define CHUNK 512
#define CHUNKS 128
/* Openings of a receiver that are remembered at the same time. */
#define SLOTS 64

/* Set when loaded. */
const volatile struct {
	/* Of tags, if `how` has TAGGED. */
	__u64 key_low;
	__u64 key_high;
	/* A report for so many segments. */
	__u32 every;
	/* What reports are like. */
	__u32 how;
	/* Bytes before the IP header, 14 or 0. */
	__u32 wan_l2;
	__u32 ran_l2;
	/* Look at nothing: for measuring what the hooks themselves cost. */
	__u32 idle;
} settings = { .every = 2, .wan_l2 = ETH_LEN, .ran_l2 = ETH_LEN };

struct key {
	__u32 sender[4];
	__u32 receiver[4];
	__u16 sender_port;
	__u16 receiver_port;
};

struct counters {
	__u64 data;
	__u64 data_bytes;
	__u64 reports;
	__u64 nacks;
	__u64 report_bytes;
	__u64 withheld;
	__u64 flows;
	__u64 missed;
	__u64 failed;
	__u64 damaged;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct key);
	__type(value, struct flow);
} flows SEC(".maps");

/* Where a newcomer is kept. */
struct corner {
	struct key key;
	struct place place;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	/* More than the segments of the least size that a processor forwards in the time of an answer. */
	__uint(max_entries, 65536);
	__type(key, struct corner);
	__type(value, struct newcomer);
} newcomers SEC(".maps");

/* Where the SYN of a receiver is kept. Each receiver has so many slots, so it takes no room from others but if hundreds do so. */
struct door {
	__u32 receiver[4];
	__u32 slot;
};

struct visit {
	struct key key;
	struct opening opening;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct door);
	__type(value, struct visit);
} openings SEC(".maps");

/* What is being summed. The last word is never used: the verifier rounds up less exactly. */
struct chunk {
	__u32 words[CHUNK / 4 + 1];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct chunk);
} chunks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct report);
} outbox SEC(".maps");

SHARE struct counters *count(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&counters, &zero);
}

/* --- reading: it uses what stands above --- */
#include "pep_read.h"

/* --- a flow --- */

SHARE bool acquire(struct flow *f)
{
	int i;

	for (i = 0; i < TRIES; i++)
		if (__sync_val_compare_and_swap(&f->lock, 0, 1) == 0)
			return true;
	__sync_fetch_and_add(&f->missed, 1);
	return false;
}

SHARE void release(struct flow *f)
{
	__sync_lock_test_and_set(&f->lock, 0);
}

SHARE struct door door_of(const struct key *key)
{
	__u32 mixed = key->sender[0] ^ key->sender[1] ^ key->sender[2] ^ key->sender[3];
	struct door door;

	__builtin_memcpy(door.receiver, key->receiver, sizeof(door.receiver));
	mixed ^= (__u32)key->sender_port << 16 ^ key->receiver_port;
	/* Fibonacci hashing. */
	door.slot = mixed * 2654435769U >> 26 & (SLOTS - 1);
	return door;
}

/* Where this connection's opening is. */
SHARE struct visit *visit_of(const struct key *key)
{
	struct door door = door_of(key);
	struct visit *v = bpf_map_lookup_elem(&openings, &door);

	__u32 i, differs = 0;

	if (!v)
		return NULL;
	for (i = 0; i < sizeof(*key) / 4; i++)
		differs |= ((const __u32 *)&v->key)[i] ^ ((const __u32 *)key)[i];
	return differs ? NULL : v;
}

/* A receiver opens a connection. */
__attribute__((noinline)) int open_door(const struct key *key, const struct segment *seg)
{
	struct visit *v, fresh;
	struct door door;

	if (!key || !seg)
		return 0;
	v = visit_of(key);
	if (v) {
		open_again(&v->opening, seg);
		return 0;
	}
	door = door_of(key);
	fresh.key = *key;
	fresh.opening = opening_of(seg);
	bpf_map_update_elem(&openings, &door, &fresh, BPF_ANY);
	return 0;
}

/* Notes what may become a flow. */
__attribute__((noinline)) int note(const struct key *key, const struct segment *seg, __u64 now)
{
	struct corner corner = {};
	struct newcomer *n, fresh;
	struct visit *v;

	if (!key || !seg)
		return 0;
	if ((seg->flags & (TCP_FLAG_SYN | TCP_FLAG_ACK)) == (TCP_FLAG_SYN | TCP_FLAG_ACK)) {
		v = visit_of(key);
		if (v && take_answer(&v->opening, seg, now))
			return 0;
	}
	corner.key = *key;
	corner.place = place_of(seg);
	n = bpf_map_lookup_elem(&newcomers, &corner);
	if (n) {
		meet(n, seg, now);
		return 0;
	}
	fresh = newcomer_of(seg, now);
	bpf_map_update_elem(&newcomers, &corner, &fresh, BPF_ANY);
	return 0;
}

/* Whether the newcomer at this place is answered; it becomes a flow then. */
SHARE bool confirm_at(struct corner *corner, const struct segment *seg, bool syn, __u64 now)
{
	struct newcomer *n = bpf_map_lookup_elem(&newcomers, corner);
	struct flow f;
	int says;

	if (!n)
		return false;
	says = verdict(n, seg, syn);
	if (says == SAYS_GENUINE) {
		start(&f, n, NULL, seg, syn, bpf_map_lookup_elem(&flows, &corner->key), now);
		bpf_map_update_elem(&flows, &corner->key, &f, BPF_ANY);
	}
	if (says != SAYS_NOTHING)
		bpf_map_delete_elem(&newcomers, corner);
	return says == SAYS_GENUINE;
}

/* Whether the sender's answer to a SYN of the receiver is confirmed; it becomes a flow then. */
__attribute__((noinline)) int confirm_answer(const struct key *key, const struct segment *seg, __u64 now)
{
	struct door door;
	struct visit *v;
	struct flow f;

	if (!key || !seg)
		return 0;
	v = visit_of(key);
	if (!v || !confirms_answer(&v->opening, seg))
		return 0;
	start(&f, &v->opening.answer, &v->opening, seg, true, bpf_map_lookup_elem(&flows, key), now);
	bpf_map_update_elem(&flows, key, &f, BPF_ANY);
	door = door_of(key);
	bpf_map_delete_elem(&openings, &door);
	return 1;
}

/* A segment of the receiver may answer another newcomer; whether it does. */
__attribute__((noinline)) int confirm_newcomer(const struct key *key, const struct segment *seg, __u64 now)
{
	struct corner corner = {};

	if (!key || !seg)
		return 0;
	corner.key = *key;
	corner.place.next = seg->ack;
	corner.place.syn = 1;
	if (confirm_at(&corner, seg, true, now))
		return 1;
	corner.place.next = corner.place.syn = 0;
	return confirm_at(&corner, seg, false, now);
}

/* What a segment of the receiver confirms becomes a flow; whether there was anything. */
SHARE bool confirms(const struct key *key, const struct segment *seg, __u64 now)
{
	return confirm_answer(key, seg, now) > 0 || confirm_newcomer(key, seg, now) > 0;
}

/* --- the programs --- */

/* The tag that shows senders who made a report. */
SHARE void tag(struct report *r)
{
	struct tagged t = {
		.ack = r->ack,
		.stamp = r->stamp,
		.echo = r->echo,
		.from = r->from,
		.through = r->through,
		.ranges = r->ranges,
	};

	if (r->ranges) {
		t.start = r->range[0];
		t.end = r->range[1];
	}
	r->tag = tag_of(settings.key_low, settings.key_high, &t);
}

/* A flow's data passes, if the segment is of that flow; the length of the report that is due, as take_report() has it. */
SHARE int look(struct flow *f, const struct segment *seg, struct report *out, __u64 now, bool *foreign)
{
	int len = 0;

	*foreign = !owns(f, seg);
	if (!*foreign && pass(f, seg, now))
		len = take_report(f, out, seg->family6 ? IPV6_LEN : IPV4_LEN, settings.every, settings.how);
	release(f);
	return len;
}

SEC("tcx/ingress")
int pep_wan(struct __sk_buff *skb)
{
	__u32 mark, zero = 0;
	struct counters *c;
	struct segment seg;
	struct report *out;
	bool foreign;
	struct flow *f;
	struct key key;
	int len = 0;
	__u64 now;

	if (settings.idle || !reads(skb, settings.wan_l2, true, &key, &seg))
		return TCX_NEXT;
	/* As of the last tick, which is near enough for seconds and takes no reading of a clock. */
	now = bpf_ktime_get_coarse_ns();
	c = count();
	out = bpf_map_lookup_elem(&outbox, &zero);
	if (!c || !out)
		return TCX_NEXT;
	f = bpf_map_lookup_elem(&flows, &key);
	switch (data_asks(f, &seg, now)) {
	case ASKS_END:
		bpf_map_delete_elem(&flows, &key);
		return TCX_NEXT;
	case ASKS_ANNOUNCE:
		if (f)
			f->announced |= seg.announces;
		return TCX_NEXT;
	case ASKS_NOTE:
		if (!(seg.flags & TCP_FLAG_SYN)) {
			c->data += seg.packets;
			c->data_bytes += seg.packet_len;
		}
		note(&key, &seg, now);
		return TCX_NEXT;
	case ASKS_LOOK:
		break;
	default:
		return TCX_NEXT;
	}
	c->data += seg.packets;
	c->data_bytes += seg.packet_len;
	if (!f)
		return TCX_NEXT;
	if (!acquire(f)) {
		c->missed++;
		return TCX_NEXT;
	}
	len = look(f, &seg, out, now, &foreign);
	if (foreign)
		note(&key, &seg, now);
	if (len < 0)
		c->withheld++;
	if (len <= 0)
		return TCX_NEXT;
	if (settings.how & TAGGED)
		tag(out);
	out->family6 = seg.family6;
	c->reports++;
	c->nacks += out->ranges > 0;
	c->report_bytes += (__u32)len;
	mark = skb->mark;
	skb->mark = MARK;
	if (bpf_clone_redirect(skb, skb->ifindex, 0))
		c->failed++;
	skb->mark = mark;
	return TCX_NEXT;
}

SEC("tcx/ingress")
int pep_ran(struct __sk_buff *skb)
{
	struct counters *c;
	struct segment seg;
	struct flow *f;
	struct key key;
	bool answers;
	__u64 now;

	if (settings.idle || !reads(skb, settings.ran_l2, false, &key, &seg))
		return TCX_NEXT;
	now = bpf_ktime_get_coarse_ns();
	c = count();
	if (!c)
		return TCX_NEXT;
	f = bpf_map_lookup_elem(&flows, &key);
	switch (reply_asks(f, &seg, now)) {
	case ASKS_END:
		bpf_map_delete_elem(&flows, &key);
		return TCX_NEXT;
	case ASKS_OPEN:
		open_door(&key, &seg);
		return TCX_NEXT;
	case ASKS_YIELD:
		if (f && is_answered_by(f, &seg))
			f->inner = 1;
		return TCX_NEXT;
	case ASKS_NOTE:
		c->flows += confirms(&key, &seg, now);
		return TCX_NEXT;
	case ASKS_LOOK:
		break;
	default:
		return TCX_NEXT;
	}
	if (!f)
		return TCX_NEXT;
	if (!acquire(f)) {
		c->missed++;
		return TCX_NEXT;
	}
	answers = is_answered_by(f, &seg);
	if (answers)
		reply(f, &seg, now);
	release(f);
	if (!answers)
		c->flows += confirms(&key, &seg, now);
	return TCX_NEXT;
}

/* Writes a number; what it is to a checksum. */
SHARE __u32 put(__u32 *at, __u32 number)
{
	return *at = bpf_htonl(number);
}

/* Writes the TCP header of a report over a segment's, of which as much is there as a report without ranges needs; its sum,
 * which the pseudo header's is still to be added to, or 0 if the ranges do not fit.
 */
SHARE __u64 write_tcp(__u32 *tcp, const void *end, const struct report *r, __u32 tcp_len)
{
	__u32 i, *at;
	__u64 sum;

	/* The other way round. */
	sum = tcp[0] = tcp[0] << 16 | tcp[0] >> 16;
	sum += put(tcp + 1, r->seq);
	sum += put(tcp + 2, r->ack);
	sum += put(tcp + 3, tcp_len / 4 << 28 | TCP_FLAG_ACK << 16 | r->window);
	tcp[4] = 0;
	/* Two no-operations, then timestamps, as everywhere. */
	sum += put(tcp + 5, 0x0101080a);
	sum += put(tcp + 6, r->stamp);
	sum += put(tcp + 7, r->echo);
	sum += put(tcp + 8, OPTION_KIND << 24 | (tcp_len - TCP_LEN - TIMESTAMPS_LEN) << 16 | OPTION_EXID_HIGH << 8 |
				    (settings.how & TAGGED ? OPTION_EXID_TAGGED_LOW : OPTION_EXID_LOW));
	sum += put(tcp + 9, r->from);
	sum += put(tcp + 10, r->through);
	for (i = 0; i < REPORT_RANGES; i++) {
		if (i >= r->ranges)
			break;
		if ((const void *)(tcp + 13 + 2 * i) > end)
			return 0;
		sum += put(tcp + 11 + 2 * i, r->range[2 * i]);
		sum += put(tcp + 12 + 2 * i, r->range[2 * i + 1]);
	}
	if (settings.how & TAGGED) {
		at = tcp + 11 + 2 * (i & 3);
		if ((const void *)(at + 2) > end)
			return 0;
		sum += put(at, (__u32)(r->tag >> 32));
		sum += put(at + 1, (__u32)r->tag);
	}
	return sum;
}

/* Swaps the words of two addresses; their sum. */
SHARE __u64 swap(__u32 *a, __u32 *b, __u32 words)
{
	__u64 sum = 0;
	__u32 i, held;

	for (i = 0; i < words; i++) {
		held = a[i];
		a[i] = b[i];
		b[i] = held;
		sum += (__u64)a[i] + held;
	}
	return sum;
}

/* A copy of a segment becomes a report. */
SEC("tcx/egress")
int pep_back(struct __sk_buff *skb)
{
	__u32 l2 = settings.wan_l2 ? ETH_LEN : 0, zero = 0, ip_len, tcp_len, mac[2], *ip, *tcp;
	struct sk_buff *kernel_skb;
	__u64 sum, pseudo;
	void *data, *end;
	struct counters *c;
	struct report *r;
	__u8 *eth;

	if (skb->mark != MARK)
		return TCX_NEXT;
	skb->mark = 0;
	c = count();
	r = bpf_map_lookup_elem(&outbox, &zero);
	if (!c || !r || r->ranges > REPORT_RANGES)
		return TCX_DROP;
	ip_len = r->family6 ? IPV6_LEN : IPV4_LEN;
	tcp_len = REPORT_TCP_LEN + r->ranges * REPORT_RANGE_LEN;
	if (settings.how & TAGGED)
		tcp_len += TAG_LEN;
	/* From here on it lies in one piece that nobody else has. */
	if (bpf_skb_change_tail(skb, l2 + ip_len + tcp_len, 0))
		goto failed;
	kernel_skb = bpf_cast_to_kern_ctx(skb);
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	ip = data + l2;
	pseudo = bpf_htonl(IPPROTO_TCP << 16 | tcp_len);
	if (r->family6) {
		tcp = ip + IPV6_LEN / 4;
		if ((void *)tcp + REPORT_TCP_LEN > end)
			goto failed;
		ip[0] = bpf_htonl(0x60000000);
		ip[1] = bpf_htonl(tcp_len << 16 | IPPROTO_TCP << 8 | 64);
		pseudo += swap(ip + 2, ip + 6, 4);
	} else {
		tcp = ip + IPV4_LEN / 4;
		if ((void *)tcp + REPORT_TCP_LEN > end)
			goto failed;
		sum = put(ip, 0x45000000 | (IPV4_LEN + tcp_len));
		/* Not to be cut; its number means nothing then (RFC 6864). */
		sum += put(ip + 1, 0x00004000);
		sum += put(ip + 2, 64 << 24 | IPPROTO_TCP << 16);
		sum += swap(ip + 3, ip + 4, 1);
		pseudo += (__u64)ip[3] + ip[4];
		((__u16 *)ip)[5] = (__u16)~fold(sum);
	}
	sum = write_tcp(tcp, end, r, tcp_len);
	if (!sum)
		goto failed;
	/* If a device is to finish the checksum, as the segment's sender left it to, it wants the pseudo header's sum there. */
	if (BPF_CORE_READ_BITFIELD(kernel_skb, ip_summed) == CHECKSUM_PARTIAL)
		((__u16 *)tcp)[8] = fold(pseudo);
	else
		((__u16 *)tcp)[8] = (__u16)~fold(sum + pseudo);
	if (l2) {
		/* The neighbour that it came from. */
		eth = data;
		__builtin_memcpy(mac, eth, 6);
		__builtin_memcpy(eth, eth + 6, 6);
		__builtin_memcpy(eth + 6, mac, 6);
	}
	return TCX_NEXT;
failed:
	c->failed++;
	return TCX_DROP;
}
