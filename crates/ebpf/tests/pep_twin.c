// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* pep_flow.h in user space: a line of numbers for each segment in, the report out. See pep_twin.rs. */
#include "../src/bpf/pep_flow.h"
#include "../src/bpf/siphash.h"

#include <stdio.h>

#define FLOWS 4
#define CORNERS 1024

static struct {
	bool there;
	struct flow flow;
} flows[FLOWS];
/* Newcomers, and where they are. */
static struct {
	bool there;
	int flow;
	struct place place;
	struct newcomer newcomer;
} corners[CORNERS];
/* SYNs of receivers. */
static struct {
	bool there;
	struct opening opening;
} openings[FLOWS];
static unsigned long long every, how, key_low, key_high;

/* The newcomer there, or a free place if there is none; its index. */
static int find(int flow, struct place place, bool *there)
{
	int i, free_place = -1;

	for (i = 0; i < CORNERS; i++) {
		if (!corners[i].there)
			free_place = free_place < 0 ? i : free_place;
		else if (corners[i].flow == flow && corners[i].place.next == place.next &&
			 corners[i].place.syn == place.syn) {
			*there = true;
			return i;
		}
	}
	*there = false;
	return free_place;
}

static void note(int flow, const struct segment *seg, __u64 now)
{
	bool there;
	int i;

	if ((seg->flags & TCP_FLAG_SYN) && openings[flow].there && take_answer(&openings[flow].opening, seg, now))
		return;
	i = find(flow, place_of(seg), &there);

	if (there) {
		meet(&corners[i].newcomer, seg, now);
	} else {
		corners[i].there = true;
		corners[i].flow = flow;
		corners[i].place = place_of(seg);
		corners[i].newcomer = newcomer_of(seg, now);
	}
}

static void confirm(int at, const struct segment *seg, __u64 now)
{
	struct place places[2] = { { seg->ack, 1 }, {} };
	struct flow fresh;
	int i, says, j;
	bool there;

	if (openings[at].there && confirms_answer(&openings[at].opening, seg)) {
		start(&fresh, &openings[at].opening.answer, &openings[at].opening, seg, true,
		      flows[at].there ? &flows[at].flow : NULL, now);
		openings[at].there = false;
		flows[at].flow = fresh;
		flows[at].there = true;
		return;
	}
	for (i = 0; i < 2; i++) {
		j = find(at, places[i], &there);
		if (!there)
			continue;
		says = verdict(&corners[j].newcomer, seg, places[i].syn);
		if (says != SAYS_NOTHING)
			corners[j].there = false;
		if (says == SAYS_GENUINE) {
			start(&fresh, &corners[j].newcomer, NULL, seg, places[i].syn,
			      flows[at].there ? &flows[at].flow : NULL, now);
			flows[at].flow = fresh;
			flows[at].there = true;
			return;
		}
	}
}

/* As pep_wan does it. */
static int data(int at, const struct segment *seg, __u64 now, struct report *r)
{
	struct flow *f = flows[at].there ? &flows[at].flow : NULL;

	switch (data_asks(f, seg, now)) {
	case ASKS_END:
		flows[at].there = false;
		return 0;
	case ASKS_ANNOUNCE:
		f->announced |= seg->announces;
		return 0;
	case ASKS_NOTE:
		note(at, seg, now);
		return 0;
	case ASKS_LOOK:
		break;
	default:
		return 0;
	}
	if (!owns(f, seg)) {
		note(at, seg, now);
		return 0;
	}
	if (!pass(f, seg, now))
		return 0;
	return take_report(f, r, 20, (__u32)every, (__u32)how);
}

/* As pep_ran does it. */
static void answer(int at, const struct segment *seg, __u64 now)
{
	struct flow *f = flows[at].there ? &flows[at].flow : NULL;

	switch (reply_asks(f, seg, now)) {
	case ASKS_END:
		flows[at].there = false;
		break;
	case ASKS_OPEN:
		if (openings[at].there)
			open_again(&openings[at].opening, seg);
		else
			openings[at].opening = opening_of(seg);
		openings[at].there = true;
		break;
	case ASKS_YIELD:
		if (is_answered_by(f, seg))
			f->inner = 1;
		break;
	case ASKS_LOOK:
		if (is_answered_by(f, seg))
			reply(f, seg, now);
		else
			confirm(at, seg, now);
		break;
	case ASKS_NOTE:
		confirm(at, seg, now);
		break;
	}
}

static unsigned long long tag(const struct report *r)
{
	struct tagged t = { r->ack, r->stamp, r->echo, r->from, r->through, 0, 0, r->ranges };

	if (r->ranges) {
		t.start = r->range[0];
		t.end = r->range[1];
	}
	return tag_of(key_low, key_high, &t);
}

int main(void)
{
	unsigned long long n[17];
	struct report r;
	char line[512], op;
	__u32 i;
	int got, len;

	memset(&r, 0, sizeof(r));
	while (fgets(line, sizeof(line), stdin)) {
		got = sscanf(line, "%c %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu", &op, n,
			     n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, n + 11, n + 12, n + 13,
			     n + 14, n + 15, n + 16);
		if (op == 'n' && got == 5) {
			every = n[0];
			how = n[1];
			key_low = n[2];
			key_high = n[3];
			memset(flows, 0, sizeof(flows));
			memset(corners, 0, sizeof(corners));
			memset(openings, 0, sizeof(openings));
			continue;
		}
		if (got != 18 || n[0] >= FLOWS)
			return 1;
		struct segment seg = {
			.seq = (__u32)n[2],
			.ack = (__u32)n[3],
			.stamp = (__u32)n[4],
			.echo = (__u32)n[5],
			.len = (__u32)n[6],
			.packet_len = (__u32)n[7],
			.packets = (__u32)n[8],
			.window = (__u16)n[9],
			.flags = (__u8)n[10],
			.has_timestamps = n[11] != 0,
			.announces = n[12] != 0,
			.via = { (__u32)n[13], 0 },
			.scale = (__u8)n[14],
			.reports = (__u8)n[15],
		};
		len = 0;
		if (op == 'd')
			len = data((int)n[0], &seg, n[1], &r);
		else
			answer((int)n[0], &seg, n[1]);
		printf("%d", len);
		if (len > 0) {
			printf(" %u %u %u %u %u %u %u", r.seq, r.ack, r.stamp, r.echo, r.window, r.from, r.through);
			for (i = 0; i < 2 * r.ranges; i++)
				printf(" %u", r.range[i]);
			if (how & TAGGED)
				printf(" %lld", (long long)tag(&r));
		}
		printf("\n");
		if (n[16])
			fflush(stdout);
	}
	return 0;
}
