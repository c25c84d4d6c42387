/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What has passed the PEP and what is missing there, as far as reports and acknowledgements have told.
 *
 * Like mdcc_algorithm.h it calls nobody, so it compiles for the kernel and for user space.
 */
#ifndef RANWAY_MDCC_PASSAGE_H
#define RANWAY_MDCC_PASSAGE_H

#include "mdcc_socket.h"

/* The `at`-th range goes. */
MDCC void remove_range(struct mdcc_socket *s, u32 at)
{
	u32 i;

	for (i = 0; i < MDCC_RANGES - 1; i++)
		if (i >= at)
			s->range[i] = s->range[i + 1];
	s->ranges--;
}

MDCC void append_range(struct mdcc_socket *s, u32 start, u32 end, bool announced)
{
	u32 at = s->ranges;

	if (at >= MDCC_RANGES)
		return;
	s->range[at].start = start;
	s->range[at].end = end;
	s->range[at].announced = announced;
	s->ranges = at + 1;
}

/* [start, end) has passed: how many bytes of it are news. What lies between the highest byte and `start` has not. */
MDCC_CALLED u32 note_passed(struct mdcc_socket *s, u32 start, u32 end)
{
	u32 bytes = 0, i, low, high;
	struct mdcc_range *r;

	if (!s || !mdcc_before(start, end))
		return 0;
	/* From above, so that what goes moves only what was looked at. */
	for (i = MDCC_RANGES; i-- > 0;) {
		if (i >= s->ranges)
			continue;
		r = &s->range[i];
		low = mdcc_before(start, r->start) ? r->start : start;
		high = mdcc_before(r->end, end) ? r->end : end;
		if (!mdcc_before(low, high))
			continue;
		bytes += high - low;
		if (low == r->start && high == r->end)
			remove_range(s, i);
		else if (low == r->start)
			r->start = high;
		else
			/* If it was in the middle, what follows counts as passed. */
			r->end = low;
	}
	if (mdcc_before(s->high, end)) {
		if (mdcc_before(s->high, start)) {
			append_range(s, s->high, start, false);
			bytes += end - start;
		} else {
			bytes += end - s->high;
		}
		s->high = end;
	}
	return bytes;
}

/* A report names [start, end) as missing: how many bytes of it were not named before. */
MDCC_CALLED u32 note_missing(struct mdcc_socket *s, u32 start, u32 end)
{
	u32 bytes = 0, i;
	struct mdcc_range *r;

	if (!s || !mdcc_before(start, end))
		return 0;
	for (i = 0; i < MDCC_RANGES; i++) {
		r = &s->range[i];
		if (i >= s->ranges || r->announced || !mdcc_before(r->start, end) || !mdcc_before(start, r->end))
			continue;
		r->announced = true;
		bytes += r->end - r->start;
	}
	if (mdcc_before(s->high, end)) {
		if (mdcc_before(start, s->high))
			start = s->high;
		append_range(s, start, end, true);
		bytes += end - start;
		s->high = end;
	}
	return bytes;
}

/* The receiver has everything below `una`: how many bytes of that are news about the PEP. */
MDCC_CALLED u32 note_acknowledged(struct mdcc_socket *s, u32 una)
{
	u32 bytes = 0, i;
	struct mdcc_range *r;

	if (!s)
		return 0;
	r = &s->range[0];
	for (i = 0; i < MDCC_RANGES; i++) {
		if (!s->ranges || !mdcc_before(r->start, una))
			break;
		if (mdcc_before(una, r->end)) {
			bytes += una - r->start;
			r->start = una;
			break;
		}
		bytes += r->end - r->start;
		remove_range(s, 0);
	}
	if (mdcc_before(s->high, una)) {
		bytes += una - s->high;
		s->high = una;
	}
	s->una = una;
	return bytes;
}

MDCC u32 segments(struct mdcc_socket *s, u32 bytes, u32 mss)
{
	u32 all = s->rest + bytes;

	if (!mss)
		return 0;
	s->rest = all % mss;
	return all / mss;
}

#endif
