// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The lightweight PEP between two interfaces of a router.
 *
 * Read first: docs/src/pep-messages.md, whose rules these are; `crates/pep/src/flow.rs`, the same in Rust.
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
 * 2. An idle flow is forgotten when its next segment comes or when its place is needed; which goes then is the kernel's
 *    approximation of the least recently used.
 * 3. A report never reaches below where the flow was first seen, whatever the receiver's acknowledgement was then.
 * 4. IPv4 options, IPv6 extension headers, VLAN tags and fragments: not looked at.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "option.h"

char _license[] SEC("license") = "Dual BSD/GPL";

#define SHARE static inline __attribute__((always_inline))

#define HOLES 8
#define REORDERING 3
#define REORDERING_MAX 300
#define NEAR (1U << 30)
#define CLOSING_NS 10000000000ULL
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
#define TCP_LEN 20
#define TCP_OPTIONS_MAX 40
#define TIMESTAMPS_LEN 12
enum { TCX_DROP = 2 };
void *bpf_cast_to_kern_ctx(void *ctx) __ksym;
enum { CHECKSUM_PARTIAL = 3 };

/* Set when loaded. */
const volatile struct {
	__u64 idle_ns;
	/* A report for so many segments. */
	__u32 every;
	/* Also to senders that have not announced that they understand reports. */
	__u32 all;
	/* Bytes before the IP header, 14 or 0. */
	__u32 wan_l2;
	__u32 ran_l2;
	/* Look at nothing: for measuring what the hooks themselves cost. */
	__u32 idle;
} settings = { .idle_ns = 120000000000ULL, .every = 2, .wan_l2 = ETH_LEN, .ran_l2 = ETH_LEN };

struct key {
	__u32 sender[4];
	__u32 receiver[4];
	__u16 sender_port;
	__u16 receiver_port;
};

struct hole {
	__u32 start;
	__u32 end;
	/* The timestamp of what opened it, and the segments that have passed above it. */
	__u32 opened_by;
	__u16 overtaken;
	/* So many that it is not merely late; a report has said so. */
	__u8 missing;
	__u8 reported;
};

enum { DUE_NOTHING, DUE_ALL, DUE_FILLED };

struct flow {
	__u32 lock;
	/* Segments that were not seen for lack of the lock. */
	__u32 missed;
	__u64 seen;
	/* Bytes that came and were not answered with bytes. */
	__u64 credit;
	/* Where it was first seen, and one past the highest byte that has passed. */
	__u32 first;
	__u32 high;
	__u32 first_stamp;
	__u32 stamp;
	/* The end of what the last report was about, and new segments since. */
	__u32 through;
	__u32 unreported;
	__u32 reordering;
	__u32 open;
	/* Of the receiver: its highest acknowledgement, one past what it sent, its last timestamp and window. */
	__u32 ack;
	__u32 next;
	__u32 receiver_stamp;
	__u16 window;
	/* The receiver was heard; its acknowledgement has moved. */
	__u8 known;
	__u8 moved;
	__u8 announced;
	/* FIN was seen: 1 from the sender, 2 from the receiver. */
	__u8 closing;
	__u8 due;
	__u8 unused;
	__u32 filled_start;
	__u32 filled_end;
	struct hole hole[HOLES];
};

struct segment {
	struct key key;
	__u32 seq;
	__u32 ack;
	__u32 stamp;
	__u32 echo;
	/* Payload, and the IP packets that it came in. */
	__u32 len;
	__u32 packet_len;
	__u32 packets;
	__u16 window;
	__u8 flags;
	__u8 has_timestamps;
	__u8 announces;
	__u8 family6;
};

struct report {
	__u32 seq;
	__u32 ack;
	__u32 stamp;
	__u32 echo;
	__u32 from;
	__u32 through;
	__u32 ranges;
	__u32 range[2 * REPORT_RANGES];
	__u16 window;
	__u8 family6;
	__u8 unused;
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

SHARE bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

SHARE bool is_near(__u32 a, __u32 b)
{
	__u32 distance = before(a, b) ? b - a : a - b;

	return distance < NEAR;
}

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

/* Reads the headers; whether it is a TCP segment that is looked at. `from_sender`: which end of the key sent it. */
SHARE bool read_segment(struct __sk_buff *skb, __u32 l2, bool from_sender, struct segment *seg)
{
	void *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	__u32 ip_len, wanted, options_len, i;
	__u8 *ip, *tcp, *source, *target;
	__u32 *a, *b;

	l2 &= 15;
	wanted = l2 + (skb->protocol == bpf_htons(ETH_P_IPV6) ? IPV6_LEN : IPV4_LEN) + TCP_LEN + TIMESTAMPS_LEN;
	if (data + wanted > end) {
		if (skb->len < wanted || bpf_skb_pull_data(skb, wanted))
			return false;
		data = (void *)(long)skb->data;
		end = (void *)(long)skb->data_end;
	}
	__builtin_memset(seg, 0, sizeof(*seg));
	ip = data + l2;
	a = from_sender ? seg->key.sender : seg->key.receiver;
	b = from_sender ? seg->key.receiver : seg->key.sender;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if ((void *)ip + IPV4_LEN + TCP_LEN + TIMESTAMPS_LEN > end)
			return false;
		/* No options, no fragment. */
		if (ip[0] != 0x45 || ip[9] != IPPROTO_TCP || (ip[6] & 0x3f) || ip[7])
			return false;
		a[2] = b[2] = bpf_htonl(0xffff);
		__builtin_memcpy(&a[3], ip + 12, 4);
		__builtin_memcpy(&b[3], ip + 16, 4);
		ip_len = IPV4_LEN;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		if ((void *)ip + IPV6_LEN + TCP_LEN + TIMESTAMPS_LEN > end)
			return false;
		if (ip[6] != IPPROTO_TCP)
			return false;
		source = ip + 8;
		target = ip + 24;
		for (i = 0; i < 4; i++) {
			__builtin_memcpy(&a[i], source + 4 * i, 4);
			__builtin_memcpy(&b[i], target + 4 * i, 4);
		}
		seg->family6 = 1;
		ip_len = IPV6_LEN;
	} else {
		return false;
	}
	tcp = ip + ip_len;
	if ((void *)tcp + TCP_LEN + TIMESTAMPS_LEN > end)
		return false;
	__builtin_memcpy(from_sender ? &seg->key.sender_port : &seg->key.receiver_port, tcp, 2);
	__builtin_memcpy(from_sender ? &seg->key.receiver_port : &seg->key.sender_port, tcp + 2, 2);
	seg->seq = be32_at(tcp + 4);
	seg->ack = be32_at(tcp + 8);
	seg->flags = tcp[13];
	seg->window = (__u16)(tcp[14] << 8 | tcp[15]);
	options_len = (__u32)(tcp[12] >> 4) * 4;
	if (options_len < TCP_LEN || l2 + ip_len + options_len > skb->len)
		return false;
	options_len -= TCP_LEN;
	/* The IP header's own length counts: a short Ethernet frame is filled up. */
	if (seg->family6)
		seg->packet_len = IPV6_LEN + (__u32)(ip[4] << 8 | ip[5]);
	else
		seg->packet_len = (__u32)(ip[2] << 8 | ip[3]);
	if (skb->gso_segs > 1 || seg->packet_len < ip_len + TCP_LEN + options_len || seg->packet_len > skb->len - l2)
		seg->packet_len = skb->len - l2;
	seg->len = seg->packet_len - ip_len - TCP_LEN - options_len;
	seg->packets = skb->gso_segs > 1 ? skb->gso_segs : 1;
	/* As nearly every sender lays them out. */
	if (!(seg->flags & TCP_FLAG_SYN) && options_len >= TIMESTAMPS_LEN && be32_at(tcp + 20) == 0x0101080a) {
		seg->stamp = be32_at(tcp + 24);
		seg->echo = be32_at(tcp + 28);
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

/* Forgets what has passed: as if it was first seen at `next`. */
SHARE void begin(struct flow *f, __u32 next, __u32 stamp)
{
	f->first = f->high = f->through = next;
	f->first_stamp = f->stamp = stamp;
	f->unreported = 0;
	f->reordering = REORDERING;
	f->open = 0;
	f->due = DUE_NOTHING;
	f->missed = 0;
}

SHARE void remove_hole(struct flow *f, __u32 at)
{
	__u32 i;

	for (i = 0; i < HOLES - 1; i++)
		if (i >= at)
			f->hole[i] = f->hole[i + 1];
	f->open--;
}

/* Takes [start, end) out of the holes; whether it was in one. */
__attribute__((noinline)) int fill(struct flow *f, __u32 start, __u32 end, __u32 stamp)
{
	__u32 i, j, old_end;
	int filled = 0;
	bool low, high;
	struct hole *h;

	if (!f)
		return 0;
	for (i = HOLES; i-- > 0;) {
		if (i >= f->open)
			continue;
		h = &f->hole[i];
		if (!before(start, h->end) || !before(h->start, end))
			continue;
		low = before(h->start, start);
		high = before(end, h->end);
		if (low && high && f->open >= HOLES)
			continue;
		filled = 1;
		/* Sent before what overtook it: it was late, and not lost. */
		if (before(stamp, h->opened_by) && f->reordering < h->overtaken)
			f->reordering = h->overtaken < REORDERING_MAX ? h->overtaken : REORDERING_MAX;
		if (!low && !high) {
			remove_hole(f, i);
		} else if (!low) {
			h->start = end;
		} else {
			old_end = h->end;
			h->end = start;
			if (high) {
				for (j = HOLES - 1; j > 0; j--)
					if (j > i)
						f->hole[j] = f->hole[j - 1];
				f->open++;
				if (i + 1 < HOLES) {
					f->hole[i + 1].start = end;
					f->hole[i + 1].end = old_end;
				}
			}
		}
	}
	return filled;
}

/* Segments have passed above `start`; whether a hole is missing for that. */
__attribute__((noinline)) int overtake(struct flow *f, __u32 start, __u32 packets)
{
	__u32 i, overtaken;
	struct hole *h;
	int found = 0;

	if (!f)
		return 0;
	for (i = 0; i < HOLES; i++) {
		h = &f->hole[i];
		if (i >= f->open || before(start, h->end))
			continue;
		overtaken = h->overtaken + packets;
		h->overtaken = overtaken < 0xffff ? overtaken : 0xffff;
		if (!h->missing && overtaken >= f->reordering) {
			h->missing = 1;
			found = 1;
		}
	}
	return found;
}

/* A segment of the sender passes. */
SHARE void pass(struct flow *f, const struct segment *seg, __u32 seq_len)
{
	__u32 start = seg->seq, end = seg->seq + seq_len;
	bool opens, fresh, filled, found;
	struct hole *h;

	f->due = DUE_NOTHING;
	f->credit += seg->packet_len;
	if (seg->flags & TCP_FLAG_FIN)
		f->closing |= 1;
	if (f->missed)
		begin(f, start, seg->stamp);
	/* Of what passed before, too: the receiver's answer echoes it. */
	if (before(f->stamp, seg->stamp))
		f->stamp = seg->stamp;
	if (!is_near(start, f->high))
		return;
	opens = before(f->high, start);
	if (opens && f->open >= HOLES)
		return;
	filled = f->open && fill(f, start, end, seg->stamp);
	fresh = before(f->high, end);
	if (opens && f->open < HOLES) {
		h = &f->hole[f->open & (HOLES - 1)];
		h->start = f->high;
		h->end = start;
		h->opened_by = seg->stamp;
		h->overtaken = 0;
		h->missing = h->reported = 0;
		f->open++;
	}
	if (!filled && !fresh)
		return;
	if (fresh)
		f->high = end;
	found = f->open && overtake(f, start, seg->packets);
	if (fresh)
		f->unreported += seg->packets;
	if (filled && !found) {
		f->due = DUE_FILLED;
		f->filled_start = start;
		f->filled_end = end;
	} else if (found || (seg->flags & TCP_FLAG_PSH)) {
		f->due = DUE_ALL;
	}
}

/* What the receiver has is no hole, whichever way it took. */
__attribute__((noinline)) int forget_below(struct flow *f, __u32 ack)
{
	__u32 i;

	if (!f)
		return 0;
	for (i = 0; i < HOLES; i++) {
		if (!f->open || before(ack, f->hole[0].end))
			break;
		remove_hole(f, 0);
	}
	if (f->open && before(f->hole[0].start, ack))
		f->hole[0].start = ack;
	if (before(f->high, ack))
		f->high = ack;
	/* Nobody asks about it any more, and the distance stays short. */
	if (before(f->first, ack))
		f->first = ack;
	return 0;
}

/* A segment of the receiver passes. */
SHARE void reply(struct flow *f, const struct segment *seg, __u64 now)
{
	__u32 next = seg->seq + seg->len + !!(seg->flags & TCP_FLAG_FIN);

	/* It answers what has passed here: its echo proves it. */
	if (before(seg->echo, f->first_stamp) || before(f->stamp, seg->echo) || !is_near(seg->ack, f->high))
		return;
	f->seen = now;
	if (seg->flags & TCP_FLAG_FIN)
		f->closing |= 2;
	if (!f->known) {
		f->known = 1;
		f->ack = seg->ack;
		f->next = next;
		f->window = seg->window;
		f->receiver_stamp = seg->stamp;
	} else {
		if (before(f->ack, seg->ack)) {
			f->ack = seg->ack;
			f->moved = 1;
		}
		if (before(f->next, next))
			f->next = next;
		if (!before(seg->stamp, f->receiver_stamp)) {
			f->receiver_stamp = seg->stamp;
			f->window = seg->window;
		}
	}
	forget_below(f, f->ack);
}

/* The report that is due, if there is one and it says anything new; it counts as sent. */
__attribute__((noinline)) int take_report(struct flow *f, struct report *r, __u32 ip_len)
{
	__u32 i, missing = 0, top, from, through, floor, base, skip, last, len;
	bool news = false;
	struct hole *h;

	if (!f || !r)
		return 0;
	if (!f->known || !(f->announced || (settings.all && f->moved)))
		return 0;
	/* Holes that are missing, up to the first that is not; the first of them that no report has named. */
	top = f->high;
	skip = HOLES;
	for (i = 0; i < HOLES; i++) {
		if (i >= f->open)
			break;
		if (!f->hole[i].missing) {
			top = f->hole[i].start;
			break;
		}
		if (!f->hole[i].reported && skip == HOLES) {
			skip = i;
			news = true;
		}
		missing++;
	}
	if (f->due == DUE_NOTHING && !news && f->unreported < settings.every)
		return 0;
	/* An old acknowledgement changes nothing; before any data is acknowledged Linux answers one (RFC 5961 5.2). */
	base = f->announced && !f->moved ? f->ack : f->ack - 1;
	floor = before(f->ack, f->first) ? f->first : f->ack;
	r->ranges = 0;
	if (f->due == DUE_FILLED) {
		from = before(f->filled_start, floor) ? floor : f->filled_start;
		through = f->filled_end;
		if (!before(from, through))
			return 0;
	} else {
		last = missing > REPORT_RANGES ? missing - REPORT_RANGES : 0;
		if (skip > last)
			skip = last;
		from = floor;
		through = top;
		for (i = 0; i < HOLES; i++) {
			if (i >= missing)
				break;
			h = &f->hole[i];
			if (i + 1 == skip) {
				from = h->end;
			} else if (i >= skip && r->ranges < REPORT_RANGES) {
				r->range[(2 * r->ranges) & 3] = h->start - base;
				r->range[(2 * r->ranges + 1) & 3] = h->end - base;
				r->ranges++;
			} else if (i >= skip) {
				through = h->start;
				break;
			}
		}
		if (!before(from, through) || !(news || before(f->through, through)))
			return 0;
	}
	len = ip_len + TCP_LEN + TIMESTAMPS_LEN + REPORT_LEN + r->ranges * REPORT_RANGE_LEN;
	if (f->credit < len)
		return -1;
	f->credit -= len;
	if (f->due != DUE_FILLED) {
		f->unreported = 0;
		if (before(f->through, through))
			f->through = through;
		for (i = 0; i < HOLES; i++) {
			h = &f->hole[i];
			if (i < f->open && h->missing && !before(h->start, from) && !before(through, h->end))
				h->reported = 1;
		}
	}
	r->seq = f->next;
	r->ack = base;
	r->stamp = f->receiver_stamp;
	r->echo = f->stamp;
	r->window = f->window;
	r->from = from - base;
	r->through = through - base;
	return (int)len;
}

SHARE bool is_stale(const struct flow *f, __u64 now)
{
	__u64 limit = settings.idle_ns;

	if (f->closing == 3 && limit > CLOSING_NS)
		limit = CLOSING_NS;
	return now > f->seen && now - f->seen > limit;
}

/* Notes a new flow. */
SHARE void add_flow(const struct segment *seg, __u32 next, __u64 now, struct counters *c)
{
	struct flow f;

	__builtin_memset(&f, 0, sizeof(f));
	begin(&f, next, seg->stamp);
	f.seen = now;
	f.announced = seg->announces && (seg->flags & TCP_FLAG_SYN);
	if (!bpf_map_update_elem(&flows, &seg->key, &f, BPF_ANY) && c)
		c->flows++;
}

/* --- the programs --- */

SEC("tcx/ingress")
int pep_wan(struct __sk_buff *skb)
{
	__u32 seq_len, mark, zero = 0, ip_len;
	__u64 now = bpf_ktime_get_ns();
	struct counters *c;
	struct segment seg;
	struct report *out;
	struct flow *f;
	int len = 0;

	if (settings.idle || !read_segment(skb, settings.wan_l2, true, &seg))
		return TCX_NEXT;
	c = count();
	if (!c)
		return TCX_NEXT;
	seq_len = seg.len + !!(seg.flags & TCP_FLAG_FIN) + !!(seg.flags & TCP_FLAG_SYN);
	if (seg.flags & TCP_FLAG_RST) {
		f = bpf_map_lookup_elem(&flows, &seg.key);
		if (f && f->high == seg.seq)
			bpf_map_delete_elem(&flows, &seg.key);
		return TCX_NEXT;
	}
	if (seq_len == 0)
		return TCX_NEXT;
	f = bpf_map_lookup_elem(&flows, &seg.key);
	if (!seg.has_timestamps) {
		if (f && (seg.flags & TCP_FLAG_SYN))
			bpf_map_delete_elem(&flows, &seg.key);
		return TCX_NEXT;
	}
	if (seg.flags & TCP_FLAG_SYN) {
		if (f && f->first == seg.seq + seq_len && !is_stale(f, now))
			f->announced |= seg.announces;
		else
			add_flow(&seg, seg.seq + seq_len, now, c);
		return TCX_NEXT;
	}
	c->data += seg.packets;
	c->data_bytes += seg.packet_len;
	if (!f || is_stale(f, now)) {
		/* It has been going on for a while. */
		add_flow(&seg, seg.seq, now, c);
		f = bpf_map_lookup_elem(&flows, &seg.key);
		if (!f)
			return TCX_NEXT;
	}
	out = bpf_map_lookup_elem(&outbox, &zero);
	if (!out)
		return TCX_NEXT;
	if (!acquire(f)) {
		c->missed++;
		return TCX_NEXT;
	}
	f->seen = now;
	pass(f, &seg, seq_len);
	ip_len = seg.family6 ? IPV6_LEN : IPV4_LEN;
	len = take_report(f, out, ip_len);
	release(f);
	if (len < 0)
		c->withheld++;
	if (len <= 0)
		return TCX_NEXT;
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

	if (settings.idle || !read_segment(skb, settings.ran_l2, false, &seg))
		return TCX_NEXT;
	if (!(seg.flags & TCP_FLAG_ACK) && !(seg.flags & TCP_FLAG_RST))
		return TCX_NEXT;
	f = bpf_map_lookup_elem(&flows, &seg.key);
	if (!f)
		return TCX_NEXT;
	if (seg.flags & TCP_FLAG_RST) {
		if (f->known && f->next == seg.seq)
			bpf_map_delete_elem(&flows, &seg.key);
		return TCX_NEXT;
	}
	if (!seg.has_timestamps || (seg.flags & TCP_FLAG_SYN))
		return TCX_NEXT;
	if (!acquire(f)) {
		c = count();
		if (c)
			c->missed++;
		return TCX_NEXT;
	}
	reply(f, &seg, bpf_ktime_get_ns());
	release(f);
	return TCX_NEXT;
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

/* The TCP header of a report; its checksum is still 0. */
SHARE void write_tcp(__u8 *tcp, const struct report *r, const __u8 *ports, __u32 tcp_len)
{
	__u32 i;

	/* The other way round. */
	__builtin_memcpy(tcp, ports + 2, 2);
	__builtin_memcpy(tcp + 2, ports, 2);
	put32(tcp + 4, r->seq);
	put32(tcp + 8, r->ack);
	tcp[12] = (__u8)(tcp_len / 4) << 4;
	tcp[13] = TCP_FLAG_ACK;
	tcp[14] = r->window >> 8;
	tcp[15] = (__u8)r->window;
	/* Two no-operations, then timestamps, as everywhere. */
	put32(tcp + 20, 0x0101080a);
	put32(tcp + 24, r->stamp);
	put32(tcp + 28, r->echo);
	tcp[32] = OPTION_KIND;
	tcp[33] = (__u8)(tcp_len - TCP_LEN - TIMESTAMPS_LEN);
	tcp[34] = OPTION_EXID_HIGH;
	tcp[35] = OPTION_EXID_LOW;
	put32(tcp + 36, r->from);
	put32(tcp + 40, r->through);
	for (i = 0; i < REPORT_RANGES; i++) {
		if (i >= r->ranges)
			break;
		put32(tcp + 44 + 8 * i, r->range[2 * i]);
		put32(tcp + 48 + 8 * i, r->range[2 * i + 1]);
	}
}

/* A copy of a segment becomes a report. */
SEC("tcx/egress")
int pep_back(struct __sk_buff *skb)
{
	__u32 l2 = settings.wan_l2 ? ETH_LEN : 0, zero = 0, ip_len, tcp_len, pseudo[10] = {}, mac[2];
	__u8 tcp[TCP_LEN + TCP_OPTIONS_MAX] = {}, *ip, *eth;
	struct sk_buff *kernel_skb;
	void *data, *end;
	struct counters *c;
	struct report *r;
	__u64 sum;

	if (skb->mark != MARK)
		return TCX_NEXT;
	skb->mark = 0;
	c = count();
	r = bpf_map_lookup_elem(&outbox, &zero);
	if (!c || !r || r->ranges > REPORT_RANGES)
		return TCX_DROP;
	ip_len = r->family6 ? IPV6_LEN : IPV4_LEN;
	tcp_len = TCP_LEN + TIMESTAMPS_LEN + REPORT_LEN + r->ranges * REPORT_RANGE_LEN;
	/* From here on it lies in one piece that nobody else has. */
	if (bpf_skb_change_tail(skb, l2 + ip_len + tcp_len, 0))
		goto failed;
	kernel_skb = bpf_cast_to_kern_ctx(skb);
	data = (void *)(long)skb->data;
	end = (void *)(long)skb->data_end;
	ip = data + l2;
	if (r->family6) {
		if ((void *)ip + IPV6_LEN + TCP_LEN > end)
			goto failed;
		write_tcp(tcp, r, ip + IPV6_LEN, tcp_len);
		__builtin_memcpy(&pseudo[0], ip + 24, 16);
		__builtin_memcpy(&pseudo[4], ip + 8, 16);
		pseudo[8] = bpf_htonl(tcp_len);
		pseudo[9] = bpf_htonl(IPPROTO_TCP);
		put32(ip, 0x60000000);
		ip[4] = 0;
		ip[5] = (__u8)tcp_len;
		ip[7] = 64;
		__builtin_memcpy(ip + 8, pseudo, 32);
	} else {
		if ((void *)ip + IPV4_LEN + TCP_LEN > end)
			goto failed;
		write_tcp(tcp, r, ip + IPV4_LEN, tcp_len);
		__builtin_memcpy(&pseudo[0], ip + 16, 4);
		__builtin_memcpy(&pseudo[1], ip + 12, 4);
		pseudo[2] = bpf_htonl(IPPROTO_TCP << 16 | tcp_len);
		ip[1] = 0;
		ip[2] = 0;
		ip[3] = (__u8)(IPV4_LEN + tcp_len);
		/* Not to be cut; its number means nothing then (RFC 6864). */
		put32(ip + 4, 0x00004000);
		ip[8] = 64;
		ip[10] = ip[11] = 0;
		__builtin_memcpy(ip + 12, pseudo, 8);
		/* Of the words that stand there; the addresses' are as before. */
		sum = 0x4500 + IPV4_LEN + tcp_len + 0x4000 + (64 << 8 | IPPROTO_TCP);
		sum += bpf_ntohs((__u16)pseudo[0]) + bpf_ntohs((__u16)(pseudo[0] >> 16));
		sum += bpf_ntohs((__u16)pseudo[1]) + bpf_ntohs((__u16)(pseudo[1] >> 16));
		sum = (__u16)~fold(sum);
		ip[10] = (__u8)(sum >> 8);
		ip[11] = (__u8)sum;
	}
	if (l2) {
		/* The neighbour that it came from. */
		eth = data;
		__builtin_memcpy(mac, eth, 6);
		__builtin_memcpy(eth, eth + 6, 6);
		__builtin_memcpy(eth + 6, mac, 6);
	}

	/* If a device is to finish the checksum, as the segment's sender left it to, it wants the pseudo header's sum there. */
	sum = (__u32)bpf_csum_diff(NULL, 0, pseudo, sizeof(pseudo), 0);
	if (BPF_CORE_READ_BITFIELD(kernel_skb, ip_summed) == CHECKSUM_PARTIAL) {
		*(__u16 *)(tcp + 16) = fold(sum);
	} else {
		/* Beyond the header it is 0. */
		sum = (__u32)bpf_csum_diff(NULL, 0, (__be32 *)tcp, sizeof(tcp), (__u32)sum);
		*(__u16 *)(tcp + 16) = (__u16)~fold(sum);
	}
	if (bpf_skb_store_bytes(skb, l2 + ip_len, tcp, tcp_len, 0))
		goto failed;
	return TCX_NEXT;
failed:
	c->failed++;
	return TCX_DROP;
}
