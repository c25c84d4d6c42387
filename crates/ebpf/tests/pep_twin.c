// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* pep_flow.h in user space: a line of numbers for each segment in, the report out. See pep_twin.rs. */
#include "../src/bpf/pep_flow.h"

#include <stdio.h>

#define FLOWS 4

static struct {
	bool there;
	struct flow flow;
} flows[FLOWS];
static unsigned long long every, all, idle_ns;

/* As pep_wan does it. */
static int data(int at, const struct segment *seg, __u64 now, struct report *r)
{
	struct flow *f = flows[at].there ? &flows[at].flow : NULL;

	switch (data_asks(f, seg, now, idle_ns)) {
	case ASKS_END:
		flows[at].there = false;
		return 0;
	case ASKS_BEGIN:
		start(&flows[at].flow, seg, now);
		flows[at].there = true;
		return 0;
	case ASKS_NOTE:
		f->announced |= seg->announces;
		return 0;
	case ASKS_LEARN:
		f = &flows[at].flow;
		start(f, seg, now);
		flows[at].there = true;
		break;
	case ASKS_LOOK:
		break;
	default:
		return 0;
	}
	pass(f, seg, now);
	return take_report(f, r, 20, (__u32)every, (__u32)all);
}

/* As pep_ran does it. */
static void answer(int at, const struct segment *seg, __u64 now)
{
	struct flow *f = flows[at].there ? &flows[at].flow : NULL;

	switch (reply_asks(f, seg, now, idle_ns)) {
	case ASKS_END:
		flows[at].there = false;
		break;
	case ASKS_LOOK:
		reply(f, seg, now);
		break;
	}
}

int main(void)
{
	unsigned long long n[14];
	struct report r;
	char line[256], op;
	__u32 i;
	int got, len;

	memset(&r, 0, sizeof(r));
	while (fgets(line, sizeof(line), stdin)) {
		got = sscanf(line, "%c %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu", &op, n, n + 1,
			     n + 2, n + 3, n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10, n + 11, n + 12, n + 13);
		if (op == 'n' && got == 4) {
			every = n[0];
			all = n[1];
			idle_ns = n[2];
			memset(flows, 0, sizeof(flows));
			continue;
		}
		if (got != 15 || n[0] >= FLOWS)
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
		}
		printf("\n");
		if (n[13])
			fflush(stdout);
	}
	return 0;
}
