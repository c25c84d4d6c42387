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
/* What can follow the highest byte, or precede what the receiver has: as much as is on the way, and at least so many bytes.
 * More after data has passed unseen.
 */
#define SPAN (1U << 23)
#define SPAN_ADRIFT (1U << 28)
/* How far timestamps of one side can lie apart in segments that are on the way at the same time: some seconds in
 * microseconds, the finest clock in use.
 */
#define SLACK (1U << 22)
#define CLOSING_NS 10000000000ULL
/* How long a segment in the middle of a connection waits for its answer before another takes its place. */
#define HOLD_NS 1000000000ULL
/* No window scale was offered, or it is not known. */
#define NO_SCALE 0xff

#define TCP_LEN 20
#define TIMESTAMPS_LEN 12

/* An Ethernet address, or zeros where links have none. */
struct neighbour {
	__u32 low;
	__u32 high;
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
	/* Segments passed unseen, for lack of the lock or because the flow was just found: what is known begins with the next. */
	__u32 missed;
	__u64 seen;
	/* Bytes that came and were not answered with bytes. */
	__u64 credit;
	/* Where it was first seen or what the receiver has since, and one past the highest byte that has passed. */
	__u32 first;
	__u32 high;
	/* The first byte after the SYN, if that was seen (`from_syn`). */
	__u32 start;
	/* The newest timestamp of the sender. */
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
	/* Its acknowledgement has moved. */
	__u8 moved;
	__u8 announced;
	/* FIN was seen: 1 from the sender, 2 from the receiver. */
	__u8 closing;
	__u8 due;
	__u8 from_syn;
	/* The receiver has sent more than a SYN-ACK: the sender may be answered. */
	__u8 answered;
	/* The reports of another PEP nearer to the receiver pass here, which then speaks for the flow. */
	__u8 inner;
	/* The shift of the receiver's window fields, if the handshake was seen (RFC 7323 section 2.2). */
	__u8 scale;
	/* One past the highest byte for which the receiver has ever announced room, if that is known. */
	__u8 has_edge;
	__u32 edge;
	/* The neighbour through which the sender's segments come. */
	struct neighbour via;
	__u32 filled_start;
	__u32 filled_end;
	struct hole hole[HOLES];
};

/* Another PEP's report, and one with our key's tag if we have a key: without, it may be anybody's. */
enum { REPORTS_NOT, REPORTS_DOUBTED, REPORTS_BELIEVED };

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
	/* The window scale that a SYN offers, or NO_SCALE. */
	__u8 scale;
	/* Whether it carries a report of a PEP (REPORTS_...). */
	__u8 reports;
	__u8 family6;
	struct neighbour via;
};

/* A flow that is not known yet: a segment of a sender, until a segment of the receiver shows that it was genuine. Whoever
 * forges the one does not see the answer, and whoever forges the other does not know what it has to echo.
 */
struct newcomer {
	__u64 seen;
	/* One past it. */
	__u32 next;
	/* Its timestamp, and that of the first time if it was sent again. */
	__u32 first_stamp;
	__u32 stamp;
	struct neighbour via;
	__u8 announced;
	/* Its sender offers to scale windows. */
	__u8 scales;
	__u8 unused[2];
};

/* The SYN of a receiver, and the sender's answer to it. Whoever does not see what the receiver sends does not know which
 * numbers to answer, so a flood from the senders' side takes no place here.
 */
struct opening {
	/* One past it. */
	__u32 next;
	/* Its timestamp, and that of the first time if it was sent again. */
	__u32 first_stamp;
	__u32 stamp;
	__u8 scale;
	/* The answer has passed. */
	__u8 answered;
	__u8 unused[2];
	struct newcomer answer;
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
	/* With a key: shows who made it. */
	__u64 tag;
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
SHARE void begin(struct flow *f, __u32 next)
{
	f->first = f->high = f->through = next;
	f->unreported = 0;
	f->reordering = REORDERING;
	f->open = 0;
	f->due = DUE_NOTHING;
	f->missed = 0;
	f->has_edge = 0;
}

/* The receiver announces room above an acknowledgement. The window of a SYN is not scaled. */
SHARE void announce_room(struct flow *f, const struct segment *seg)
{
	__u32 edge = seg->ack + ((__u32)seg->window << (seg->flags & TCP_FLAG_SYN ? 0 : f->scale & 15));

	if (f->scale == NO_SCALE || (f->has_edge && !before(f->edge, edge)))
		return;
	f->edge = edge;
	f->has_edge = 1;
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

/* What may lie between the highest byte and a segment of this flow. */
SHARE __u32 span(const struct flow *f)
{
	__u32 flight = f->high - f->ack;

	if (f->missed)
		return SPAN_ADRIFT;
	return flight > SPAN ? flight : SPAN;
}

/* Whether a timestamp can be on the way while `known` is the newest: it is not much older. */
SHARE bool is_recent(__u32 stamp, __u32 known)
{
	return !before(stamp, known - SLACK);
}

/* Whether a segment is of this flow, as far as its numbers tell: of the sender's window first (RFC 5961 in spirit), within the
 * room that the receiver has announced (RFC 9293 3.10.7.4: it takes nothing beyond), then by the timestamps of both sides.
 */
SHARE bool owns(const struct flow *f, const struct segment *seg)
{
	__u32 start = seg->seq, end = seg->seq + seq_len(seg), reach = span(f);

	if (!is_near(start, f->high) || before(f->high + reach, start))
		return false;
	if (!before(end, f->ack + NEAR) || before(end + reach, f->ack))
		return false;
	if (f->has_edge && !f->missed && before(f->edge, start + seg->len))
		return false;
	return is_recent(seg->echo, f->receiver_stamp) && is_recent(f->receiver_stamp, seg->echo) &&
	       is_recent(seg->stamp, f->stamp);
}

/* Whether a segment of the receiver answers this flow, as far as its numbers tell: it echoes what has passed here, and is
 * within both windows.
 */
SHARE bool is_answered_by(const struct flow *f, const struct segment *seg)
{
	__u32 reach = span(f), ack = seg->ack, end = seg->seq + seq_len(seg);

	if (!is_near(ack, f->high) || before(f->high + reach, ack))
		return false;
	if (!before(ack, f->ack + NEAR) || before(ack + reach, f->ack))
		return false;
	if (before(f->next + SPAN, end) || before(end, f->next - SPAN))
		return false;
	return !before(f->stamp, seg->echo) && is_recent(seg->echo, f->stamp) && is_recent(seg->stamp, f->receiver_stamp);
}

/* A segment of the sender passes, which the flow owns; whether it came by the flow's way, so that it may be answered. Another
 * way is taken from the first segment that continues the flow there.
 */
SHARE bool pass(struct flow *f, const struct segment *seg, __u64 now)
{
	__u32 start = seg->seq, end = seg->seq + seq_len(seg);
	bool opens, fresh, filled, found, known;
	struct hole *h;

	f->seen = now;
	f->due = DUE_NOTHING;
	f->credit += seg->packet_len;
	f->announced |= seg->announces;
	/* It hears no PEP. */
	if (seg->announces)
		f->inner = 0;
	if (seg->flags & TCP_FLAG_FIN)
		f->closing |= 1;
	if (f->missed)
		begin(f, before(start, f->ack) ? f->ack : start);
	/* Of what passed before, too: the receiver's answer echoes it. What continues the flow is the newest. */
	if (start == f->high || before(f->stamp, seg->stamp))
		f->stamp = seg->stamp;
	known = f->via.low == seg->via.low && f->via.high == seg->via.high;
	if (start == f->high && !f->open)
		f->via = seg->via;
	opens = before(f->high, start);
	if (opens && f->open >= HOLES)
		return known;
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
		return known;
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
	return known;
}

/* A segment of the receiver passes, which answers the flow. */
SHARE void reply(struct flow *f, const struct segment *seg, __u64 now)
{
	__u32 next = seg->seq + seq_len(seg);

	f->seen = now;
	if (seg->flags & TCP_FLAG_FIN)
		f->closing |= 2;
	if (!(seg->flags & TCP_FLAG_SYN))
		f->answered = 1;
	announce_room(f, seg);
	if (before(f->ack, seg->ack)) {
		f->ack = seg->ack;
		f->moved = 1;
	}
	if (before(f->next, next))
		f->next = next;
	if (!before(seg->stamp, f->receiver_stamp)) {
		f->receiver_stamp = seg->stamp;
		f->window = seg->window;
		/* What only acknowledges bears the number of what comes next. */
		if (!seq_len(seg))
			f->next = next;
	}
	/* What it has is no hole, whichever way it took, and nobody asks about it any more. */
	if (f->open)
		forget_holes(f, f->ack);
	if (before(f->first, f->ack))
		f->first = f->ack;
	if (before(f->through, f->ack))
		f->through = f->ack;
	if (before(f->high, f->ack))
		f->high = f->ack;
}

/* What reports are like. */
enum {
	/* They go to senders that have not announced that they understand them, too. */
	TO_ALL = 1,
	/* They get a tag. */
	TAGGED = 2,
};

/* The report that is due, if there is one and it says anything new; it counts as sent. */
CALLED int take_report(struct flow *f, struct report *r, __u32 ip_len, __u32 every, __u32 how)
{
	__u32 ranges = how & TAGGED ? TAGGED_RANGES : REPORT_RANGES;
	__u32 i, missing = 0, top, from, through, floor, base, skip, last, len;
	bool news = false;
	struct hole *h;

	if (!f || !r)
		return 0;
	if (f->inner || !f->answered || (f->announced ? !f->from_syn && !f->moved : !(how & TO_ALL) || !f->moved))
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
	base = f->announced && f->from_syn && !f->moved ? f->ack : f->ack - 1;
	floor = before(f->ack, f->first) ? f->first : f->ack;
	r->ranges = 0;
	if (f->due == DUE_FILLED) {
		from = before(f->filled_start, f->ack) ? f->ack : f->filled_start;
		through = f->filled_end;
		if (!before(from, through))
			return 0;
	} else {
		last = missing > ranges ? missing - ranges : 0;
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
			} else if (i >= skip && r->ranges < ranges) {
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
	if (how & TAGGED)
		len += TAG_LEN;
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

/* Whether both sides have closed it some time ago. */
SHARE bool is_over(const struct flow *f, __u64 now)
{
	return f->closing == 3 && now > f->seen && now - f->seen > CLOSING_NS;
}

/* What a segment asks for. */
enum {
	ASKS_NOTHING,
	/* To forget the flow. */
	ASKS_END,
	/* To note a newcomer. */
	ASKS_NOTE,
	/* To look at it. */
	ASKS_LOOK,
	/* To note that reports are understood. */
	ASKS_ANNOUNCE,
	/* To note that a receiver opens a connection. */
	ASKS_OPEN,
	/* To note that another PEP reports. */
	ASKS_YIELD,
};

/* Of the sender; `f` is null if nothing is remembered. */
SHARE int data_asks(const struct flow *f, const struct segment *seg, __u64 now)
{
	__u32 len = seq_len(seg);

	if (f && is_over(f, now))
		f = NULL;
	if (seg->flags & TCP_FLAG_RST)
		return f && f->high == seg->seq ? ASKS_END : ASKS_NOTHING;
	if (len == 0 || !seg->has_timestamps)
		return ASKS_NOTHING;
	if (seg->flags & TCP_FLAG_SYN)
		return f && f->from_syn && f->start == seg->seq + len ? ASKS_ANNOUNCE : ASKS_NOTE;
	/* What looks decides whether it is of the flow, under the lock. */
	return f ? ASKS_LOOK : ASKS_NOTE;
}

/* Of the receiver. ASKS_NOTE: to look for the newcomer that it answers. */
SHARE int reply_asks(const struct flow *f, const struct segment *seg, __u64 now)
{
	if (f && is_over(f, now))
		f = NULL;
	if (seg->flags & TCP_FLAG_RST)
		return f && f->next == seg->seq ? ASKS_END : ASKS_NOTHING;
	if (!seg->has_timestamps)
		return ASKS_NOTHING;
	if (!(seg->flags & TCP_FLAG_ACK))
		return seg->flags & TCP_FLAG_SYN ? ASKS_OPEN : ASKS_NOTHING;
	if (seg->reports)
		return f && seg->reports == REPORTS_BELIEVED ? ASKS_YIELD : ASKS_NOTHING;
	return f ? ASKS_LOOK : ASKS_NOTE;
}

/* Where a newcomer of a flow lies: a SYN at the number that its answer acknowledges, so that forged ones take no place from
 * it; data at one place.
 */
struct place {
	__u32 next;
	__u32 syn;
};

SHARE struct place place_of(const struct segment *seg)
{
	struct place place = {};

	if (seg->flags & TCP_FLAG_SYN) {
		place.next = seg->seq + seq_len(seg);
		place.syn = 1;
	}
	return place;
}

SHARE struct newcomer newcomer_of(const struct segment *seg, __u64 now)
{
	struct newcomer n = {
		.seen = now,
		.next = seg->seq + seq_len(seg),
		.first_stamp = seg->stamp,
		.stamp = seg->stamp,
		.via = seg->via,
		.announced = seg->announces,
		.scales = seg->scale != NO_SCALE,
	};

	return n;
}

/* Another comes to the same place: whether it is the same SYN again, or late enough to take it. */
SHARE void meet(struct newcomer *n, const struct segment *seg, __u64 now)
{
	if (seg->flags & TCP_FLAG_SYN) {
		/* One that is sent again carries no announcement. */
		n->announced |= seg->announces;
		if (before(n->stamp, seg->stamp))
			n->stamp = seg->stamp;
		n->via = seg->via;
		n->scales = seg->scale != NO_SCALE;
		n->seen = now;
	} else if (now > n->seen && now - n->seen > HOLD_NS) {
		*n = newcomer_of(seg, now);
	}
}

/* What a segment of the receiver says of a newcomer. */
enum { SAYS_NOTHING, SAYS_GENUINE, SAYS_NO };

SHARE int verdict(const struct newcomer *n, const struct segment *seg, bool syn)
{
	/* The place of a SYN has told that the acknowledgement is right. */
	if (syn)
		return seg->echo - n->first_stamp <= n->stamp - n->first_stamp ? SAYS_GENUINE : SAYS_NOTHING;
	if (seg->ack - n->next >= NEAR)
		return SAYS_NOTHING;
	return seg->echo == n->stamp ? SAYS_GENUINE : SAYS_NO;
}

SHARE struct opening opening_of(const struct segment *seg)
{
	struct opening o = {
		.next = seg->seq + seq_len(seg),
		.first_stamp = seg->stamp,
		.stamp = seg->stamp,
		.scale = seg->scale,
	};

	return o;
}

/* Another SYN of the receiver with these addresses and ports: the same again, or that of a new connection. */
SHARE void open_again(struct opening *o, const struct segment *seg)
{
	if (o->next != seg->seq + seq_len(seg))
		*o = opening_of(seg);
	else if (before(o->stamp, seg->stamp))
		o->stamp = seg->stamp;
}

/* Takes a SYN-ACK of the sender if it answers: it acknowledges the SYN and echoes its timestamp. */
SHARE bool take_answer(struct opening *o, const struct segment *seg, __u64 now)
{
	if (!(seg->flags & TCP_FLAG_ACK) || seg->ack != o->next || seg->echo - o->first_stamp > o->stamp - o->first_stamp)
		return false;
	if (o->answered && o->answer.next == seg->seq + seq_len(seg))
		meet(&o->answer, seg, now);
	else
		o->answer = newcomer_of(seg, now);
	o->answered = 1;
	return true;
}

/* Whether a segment of the receiver confirms the answer. */
SHARE bool confirms_answer(const struct opening *o, const struct segment *seg)
{
	return o->answered && o->answer.next == seg->ack && verdict(&o->answer, seg, true) == SAYS_GENUINE;
}

/* The shift of the receiver's window fields, if it is known: both sides have to offer one. `o`: its SYN, if that was seen. */
SHARE __u8 scale_of(const struct newcomer *n, const struct opening *o, const struct segment *seg, bool syn)
{
	__u8 offered;

	if (!syn)
		return NO_SCALE;
	if (!n->scales)
		return 0;
	if (seg->flags & TCP_FLAG_SYN)
		offered = seg->scale;
	else if (o)
		offered = o->scale;
	else
		return NO_SCALE;
	return offered == NO_SCALE ? 0 : offered;
}

/* The flow that a newcomer turns out to be, as this segment of the receiver shows. `o`: the receiver's SYN, if that was seen.
 * `known`: a flow that has its addresses.
 */
SHARE void start(struct flow *f, const struct newcomer *n, const struct opening *o, const struct segment *seg, bool syn,
		 const struct flow *known, __u64 now)
{
	__builtin_memset(f, 0, sizeof(*f));
	f->ack = seg->ack;
	begin(f, seg->ack);
	f->seen = now;
	f->start = n->next;
	f->from_syn = syn;
	f->missed = !syn;
	f->via = n->via;
	f->stamp = n->stamp;
	f->next = seg->seq + seq_len(seg);
	f->receiver_stamp = seg->stamp;
	f->window = seg->window;
	f->answered = !(seg->flags & TCP_FLAG_SYN);
	f->scale = scale_of(n, o, seg, syn);
	announce_room(f, seg);
	/* The same connection, which was lost sight of, or another one. */
	f->announced = n->announced || (!syn && known && !is_over(known, now) && known->announced);
}

#endif
