/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The lightweight PEP: what it remembers of a flow, and what it makes of each segment, apart from the kernel.
 *
 * Read first: docs/src/pep-messages.md, whose rules these are. The twin of `crates/pep/src/flow.rs`: it reads no clock and
 * calls nobody, so it compiles for the kernel and for user space, and `crates/ebpf/tests/pep_twin.rs` compares both.
 */
#ifndef RANWAY_PEP_FLOW_H
#define RANWAY_PEP_FLOW_H

#ifndef __bpf__
#include <linux/types.h>
#include <stdbool.h>
#include <string.h>
#endif

#include "option.h"

#define SHARE static inline __attribute__((unused, always_inline))
/* Functions of their own, which the verifier checks once, whoever calls them: for any arguments, null among them. */
#ifdef __bpf__
#define CALLED __attribute__((noinline))
#else
#define CALLED static __attribute__((unused))
#endif

#define HOLES 8
#define REORDERING 3
#define REORDERING_MAX 300
/* Sequence numbers are near if they differ by less: no window is larger (RFC 7323 section 2.3). */
#define NEAR (1U << 30)
#define CLOSING_NS 10000000000ULL

#define TCP_LEN 20
#define TIMESTAMPS_LEN 12

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
	/* Where it was first seen or what the receiver has since, and one past the highest byte that has passed. */
	__u32 first;
	__u32 high;
	/* The first byte after the SYN. */
	__u32 start;
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

SHARE bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

SHARE bool is_near(__u32 a, __u32 b)
{
	__u32 distance = before(a, b) ? b - a : a - b;

	return distance < NEAR;
}

SHARE __u32 seq_len(const struct segment *seg)
{
	return seg->len + !!(seg->flags & TCP_FLAG_FIN) + !!(seg->flags & TCP_FLAG_SYN);
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
CALLED int fill(struct flow *f, __u32 start, __u32 end, __u32 stamp)
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
CALLED int overtake(struct flow *f, __u32 start, __u32 packets)
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

/* Nothing below is a hole. */
CALLED int forget_holes(struct flow *f, __u32 bottom)
{
	__u32 i;

	if (!f)
		return 0;
	for (i = 0; i < HOLES; i++) {
		if (!f->open || before(bottom, f->hole[0].end))
			break;
		remove_hole(f, 0);
	}
	if (f->open && before(f->hole[0].start, bottom))
		f->hole[0].start = bottom;
	return 0;
}

/* Forgets what lies further back than any window reaches: so numbers can be compared. */
SHARE void forget_far(struct flow *f)
{
	__u32 bottom = f->high - NEAR;

	if (before(f->first, bottom)) {
		f->first = bottom;
		forget_holes(f, bottom);
	}
	if (before(f->through, bottom))
		f->through = bottom;
	if (f->known && before(f->ack, bottom))
		f->known = f->moved = 0;
}

/* A segment of the sender passes. */
SHARE void pass(struct flow *f, const struct segment *seg, __u64 now)
{
	__u32 start = seg->seq, end = seg->seq + seq_len(seg);
	bool opens, fresh, filled, found;
	struct hole *h;

	f->seen = now;
	f->due = DUE_NOTHING;
	f->credit += seg->packet_len;
	if (seg->flags & TCP_FLAG_FIN)
		f->closing |= 1;
	if (f->missed)
		begin(f, start, seg->stamp);
	/* Of what passed before, too: the receiver's answer echoes it. */
	if (before(f->stamp, seg->stamp))
		f->stamp = seg->stamp;
	if (!is_near(start, f->high) || !is_near(end, f->high))
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
	if (fresh) {
		f->high = end;
		forget_far(f);
	}
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
	/* What it has is no hole, whichever way it took, and nobody asks about it any more. */
	if (f->open)
		forget_holes(f, f->ack);
	if (before(f->first, f->ack))
		f->first = f->ack;
	if (before(f->high, f->ack)) {
		f->high = f->ack;
		forget_far(f);
	}
}

/* The report that is due, if there is one and it says anything new; it counts as sent. */
CALLED int take_report(struct flow *f, struct report *r, __u32 ip_len, __u32 every, __u32 all)
{
	__u32 i, missing = 0, top, from, through, floor, base, skip, last, len;
	bool news = false;
	struct hole *h;

	if (!f || !r)
		return 0;
	if (!f->known || !(f->announced || (all && f->moved)))
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
	if (f->due == DUE_NOTHING && !news && f->unreported < every)
		return 0;
	/* An old acknowledgement changes nothing; before any data is acknowledged Linux answers one (RFC 5961 5.2). */
	base = f->announced && !f->moved ? f->ack : f->ack - 1;
	floor = before(f->ack, f->first) ? f->first : f->ack;
	r->ranges = 0;
	if (f->due == DUE_FILLED) {
		from = before(f->filled_start, f->ack) ? f->ack : f->filled_start;
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

SHARE bool is_stale(const struct flow *f, __u64 now, __u64 idle_ns)
{
	__u64 limit = f->closing == 3 && idle_ns > CLOSING_NS ? CLOSING_NS : idle_ns;

	return now > f->seen && now - f->seen > limit;
}

/* What a segment asks for. */
enum {
	ASKS_NOTHING,
	/* To forget the flow. */
	ASKS_END,
	/* To remember a new flow, in place of what is there. */
	ASKS_BEGIN,
	/* The same for one that has been going on for a while, and to look at the segment. */
	ASKS_LEARN,
	/* To look at it. */
	ASKS_LOOK,
	/* To note that reports are understood. */
	ASKS_NOTE,
};

/* Of the sender; `f` is null if nothing is remembered. */
SHARE int data_asks(const struct flow *f, const struct segment *seg, __u64 now, __u64 idle_ns)
{
	__u32 len = seq_len(seg);

	if (f && is_stale(f, now, idle_ns))
		f = NULL;
	if (seg->flags & TCP_FLAG_RST)
		return f && f->high == seg->seq ? ASKS_END : ASKS_NOTHING;
	if (len == 0)
		return ASKS_NOTHING;
	if (!seg->has_timestamps)
		return f && (seg->flags & TCP_FLAG_SYN) ? ASKS_END : ASKS_NOTHING;
	if (seg->flags & TCP_FLAG_SYN)
		return f && f->start == seg->seq + len ? ASKS_NOTE : ASKS_BEGIN;
	return f ? ASKS_LOOK : ASKS_LEARN;
}

/* Of the receiver. */
SHARE int reply_asks(const struct flow *f, const struct segment *seg, __u64 now, __u64 idle_ns)
{
	if (!f || is_stale(f, now, idle_ns) || !(seg->flags & (TCP_FLAG_ACK | TCP_FLAG_RST)))
		return ASKS_NOTHING;
	if (seg->flags & TCP_FLAG_RST)
		return f->known && f->next == seg->seq ? ASKS_END : ASKS_NOTHING;
	return seg->has_timestamps && !(seg->flags & TCP_FLAG_SYN) ? ASKS_LOOK : ASKS_NOTHING;
}

/* A flow that a segment of the sender begins. */
SHARE void start(struct flow *f, const struct segment *seg, __u64 now)
{
	bool syn = seg->flags & TCP_FLAG_SYN;

	__builtin_memset(f, 0, sizeof(*f));
	f->start = syn ? seg->seq + seq_len(seg) : seg->seq;
	begin(f, f->start, seg->stamp);
	f->seen = now;
	f->announced = syn && seg->announces;
}

#endif
