// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* mdcc_algorithm.h in user space: a line of numbers in, the windows out. See twin.rs and domains_twin.rs. */
#include "../src/bpf/mdcc_algorithm.h"

#include <stdio.h>

int main(void)
{
	struct mdcc m;
	struct mdcc_parameters p = { 50, 128, 1, 1 << 20, 1, 1, 0 };
	unsigned long long n[12];
	char line[256], op;
	bool paced = false;
	int got;

	memset(&m, 0, sizeof(m));
	while (fgets(line, sizeof(line), stdin)) {
		struct mdcc_now now = { 0 };

		got = sscanf(line, "%c %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu %llu", &op, n, n + 1, n + 2, n + 3,
			     n + 4, n + 5, n + 6, n + 7, n + 8, n + 9, n + 10);
		if (got < 3)
			return 1;
		now.ns = n[0];
		now.sent = (u32)n[1];
		now.paced = paced;
		switch (op) {
		case 'i': {
			memset(&m, 0, sizeof(m));
			p.initial_ratio = (u32)n[3];
			p.validation_ratio = (u32)n[4];
			p.loss_filter = (u32)n[5];
			paced = n[6] != 0;
			p.published = got > 8 && n[7] != 0;
			mdcc_init(&m, &p, (u32)n[2], now.ns);
			break;
		}
		case 'a': {
			struct mdcc_ack a = { (u32)n[2], (u32)n[3], (u32)n[4], (u32)n[5], (u32)n[6],
					      (u32)n[7], (u8)n[8],  n[9] != 0, n[10] != 0 };

			mdcc_on_ack(&m, &a, &now);
			break;
		}
		case 'c': {
			struct mdcc_congestion c = { (u32)n[2], (u32)n[3], (u32)n[4], (u8)n[5], n[6] != 0, n[7] != 0 };

			mdcc_on_congestion(&m, &c, &now);
			break;
		}
		case 'p': {
			struct mdcc_passage g = { (u32)n[2], (u32)n[3], (u32)n[4], (u32)n[5], (u32)n[6],
						  (u32)n[7], n[8] != 0, n[9] != 0 };

			mdcc_on_passage(&m, &g, &now);
			break;
		}
		case 'r':
			mdcc_on_restart(&m, n[2], n[3], &now);
			break;
		case 'u':
			mdcc_on_undo(&m);
			break;
		default:
			return 1;
		}
		printf("%u %u %u %u %d\n", m.pep.cwnd, m.pep.ssthresh, m.e2e.cwnd, m.e2e.ssthresh, m.joined);
		fflush(stdout);
	}
	return 0;
}
