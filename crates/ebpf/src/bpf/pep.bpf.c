// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The lightweight PEP between two interfaces of a router.
 *
 * Read first: docs/src/pep-messages.md, whose rules these are; pep_flow.h, which has what is remembered of a flow and what
 * becomes of it; `crates/pep`, the same in Rust.
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
 * Both directions of a flow may be on different processors, so its state has a lock of a word. Whoever does not get it
 * in time notes that it missed a segment, and the flow is learnt anew from the next.
 *
 * Where this leaves the simulator's:
 * 1. What GRO has merged is one segment here that counts as several; one report answers it.
 * 2. Which flow goes when there is no room for another is the kernel's approximation of the least recently used.
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
enum { CHECKSUM_PARTIAL = 3 };

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
	__uint(max_entries, 4096);
	__type(key, struct corner);
	__type(value, struct newcomer);
} newcomers SEC(".maps");

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

/* --- reading --- */

/* Timestamps and the announcement, wherever they stand. */
__attribute__((noinline)) int read_options(struct __sk_buff *skb, __u32 at, __u32 len, struct segment *seg)
{
	__u8 options[TCP_OPTIONS_MAX + 12] = {};
	__u32 i, next = 0;
	__u8 kind, size;

	if (!seg || len == 0 || len > TCP_OPTIONS_MAX)
		return 0;
	if (bpf_skb_load_bytes(skb, at, options, len))
		return 0;
	for (i = 0; i < TCP_OPTIONS_MAX; i++) {
		if (i < next)
			continue;
		if (i >= len)
			break;
		kind = options[i];
		if (kind == 0)
			break;
		if (kind == 1) {
			next = i + 1;
			continue;
		}
		size = options[i + 1];
		if (size < 2 || i + size > len)
			break;
		if (kind == 8 && size == 10) {
			seg->stamp = be32_at(options + i + 2);
			seg->echo = be32_at(options + i + 6);
			seg->has_timestamps = 1;
		} else if (kind == OPTION_KIND && size == ANNOUNCEMENT_LEN && options[i + 2] == OPTION_EXID_HIGH &&
			   options[i + 3] == OPTION_EXID_LOW) {
			seg->announces = 1;
		}
		next = i + size;
	}
	return 0;
}

/* A number of a header: where headers begin, words lie as the processor wants them. */
SHARE __u32 word(const void *at)
{
	return bpf_ntohl(*(const __u32 *)at);
}

SHARE __u32 half(const void *at)
{
	return bpf_ntohs(*(const __u16 *)at);
}

/* Reads the headers; whether it is a TCP segment that is looked at. `from_sender`: which end of the key sent it. */
SHARE bool read_segment(struct __sk_buff *skb, __u32 l2, bool from_sender, struct key *key, struct segment *seg)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u32 ip_len, wanted, options_len, i, *a, *b;
	__u8 *ip, *tcp;

	/* Of another network than the interface's own: its flows may have the same addresses. */
	if (skb->vlan_present)
		return false;
	l2 &= 15;
	wanted = l2 + (skb->protocol == bpf_htons(ETH_P_IPV6) ? IPV6_LEN : IPV4_LEN) + TCP_LEN + TIMESTAMPS_LEN;
	if (data + wanted > end) {
		if (skb->len < wanted || bpf_skb_pull_data(skb, wanted))
			return false;
		data = (void *)(long)skb->data;
		end = (void *)(long)skb->data_end;
	}
	__builtin_memset(key, 0, sizeof(*key));
	__builtin_memset(seg, 0, sizeof(*seg));
	if (from_sender && l2 == ETH_LEN) {
		if (data + ETH_LEN > end)
			return false;
		seg->via.low = *(__u32 *)(data + 6);
		seg->via.high = *(__u16 *)(data + 10);
	}
	ip = data + l2;
	a = from_sender ? key->sender : key->receiver;
	b = from_sender ? key->receiver : key->sender;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if ((void *)ip + IPV4_LEN + TCP_LEN + TIMESTAMPS_LEN > end)
			return false;
		/* No options, no fragment. */
		if (ip[0] != 0x45 || ip[9] != IPPROTO_TCP || (half(ip + 6) & 0x3fff))
			return false;
		a[2] = b[2] = bpf_htonl(0xffff);
		a[3] = *(__u32 *)(ip + 12);
		b[3] = *(__u32 *)(ip + 16);
		seg->packet_len = half(ip + 2);
		ip_len = IPV4_LEN;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		if ((void *)ip + IPV6_LEN + TCP_LEN + TIMESTAMPS_LEN > end)
			return false;
		if (ip[6] != IPPROTO_TCP)
			return false;
		for (i = 0; i < 4; i++) {
			a[i] = *(__u32 *)(ip + 8 + 4 * i);
			b[i] = *(__u32 *)(ip + 24 + 4 * i);
		}
		seg->family6 = 1;
		seg->packet_len = IPV6_LEN + half(ip + 4);
		ip_len = IPV6_LEN;
	} else {
		return false;
	}
	tcp = ip + ip_len;
	if ((void *)tcp + TCP_LEN + TIMESTAMPS_LEN > end)
		return false;
	*(from_sender ? &key->sender_port : &key->receiver_port) = *(__u16 *)tcp;
	*(from_sender ? &key->receiver_port : &key->sender_port) = *(__u16 *)(tcp + 2);
	seg->seq = word(tcp + 4);
	seg->ack = word(tcp + 8);
	seg->flags = tcp[13];
	seg->window = (__u16)half(tcp + 14);
	options_len = (__u32)(tcp[12] >> 4) * 4;
	if (options_len < TCP_LEN || l2 + ip_len + options_len > skb->len)
		return false;
	options_len -= TCP_LEN;
	/* The IP header's own length counts: a short Ethernet frame is filled up. */
	seg->packets = skb->gso_segs > 1 ? skb->gso_segs : 1;
	if (seg->packets > 1 || seg->packet_len < ip_len + TCP_LEN + options_len || seg->packet_len > skb->len - l2)
		seg->packet_len = skb->len - l2;
	seg->len = seg->packet_len - ip_len - TCP_LEN - options_len;
	/* As nearly every segment has them, alone. */
	if (options_len == TIMESTAMPS_LEN && word(tcp + 20) == 0x0101080a) {
		seg->stamp = word(tcp + 24);
		seg->echo = word(tcp + 28);
		seg->has_timestamps = 1;
	} else if (options_len) {
		read_options(skb, l2 + ip_len + TCP_LEN, options_len, seg);
	}
	return true;
}

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

/* Notes what may become a flow. */
__attribute__((noinline)) int note(const struct key *key, const struct segment *seg, __u64 now)
{
	struct corner corner = {};
	struct newcomer *n, fresh;

	if (!key || !seg)
		return 0;
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
		start(&f, n, seg, syn, bpf_map_lookup_elem(&flows, &corner->key), now);
		bpf_map_update_elem(&flows, &corner->key, &f, BPF_ANY);
	}
	if (says != SAYS_NOTHING)
		bpf_map_delete_elem(&newcomers, corner);
	return says == SAYS_GENUINE;
}

/* A segment of the receiver may answer a newcomer; whether it does. */
__attribute__((noinline)) int confirm(const struct key *key, const struct segment *seg, __u64 now)
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

	if (settings.idle || !read_segment(skb, settings.wan_l2, true, &key, &seg))
		return TCX_NEXT;
	/* What only acknowledges is most of what an upload brings. */
	if (!(seg.flags & TCP_FLAG_RST) && !seq_len(&seg))
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

	if (settings.idle || !read_segment(skb, settings.ran_l2, false, &key, &seg))
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
	case ASKS_NOTE:
		c->flows += confirm(&key, &seg, now) > 0;
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
		c->flows += confirm(&key, &seg, now) > 0;
	return TCX_NEXT;
}

SHARE __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)sum;
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
