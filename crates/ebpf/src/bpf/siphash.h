/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tag of a report, by which a sender knows that it is from a PEP with its key.
 *
 * Source: J.-P. Aumasson, D. J. Bernstein, "SipHash: a fast short-input PRF" (INDOCRYPT 2012): SipHash-2-4 of four words.
 * The twin of `crates/wire/src/siphash.rs`.
 */
#ifndef RANWAY_SIPHASH_H
#define RANWAY_SIPHASH_H

#define TAG_WORDS 4

/* What a tag is made of. */
struct tagged {
	__u32 ack;
	__u32 stamp;
	__u32 echo;
	__u32 from;
	__u32 through;
	__u32 start;
	__u32 end;
	__u32 ranges;
};

static inline __attribute__((unused, always_inline)) __u64 rotate(__u64 word, __u32 by)
{
	return word << by | word >> (64 - by);
}

static inline __attribute__((unused, always_inline)) void sip_round(__u64 *v)
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] = rotate(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] = rotate(v[2], 32);
}

static inline __attribute__((unused, always_inline)) __u64 tag_of(__u64 key_low, __u64 key_high, const struct tagged *t)
{
	__u64 word[TAG_WORDS + 1] = {
		(__u64)t->ack << 32 | t->stamp,
		(__u64)t->echo << 32 | t->from,
		(__u64)t->through << 32 | t->start,
		(__u64)t->end << 32 | t->ranges,
		(__u64)(8 * TAG_WORDS) << 56,
	};
	__u64 v[4] = {
		key_low ^ 0x736f6d6570736575ULL,
		key_high ^ 0x646f72616e646f6dULL,
		key_low ^ 0x6c7967656e657261ULL,
		key_high ^ 0x7465646279746573ULL,
	};
	int i;

	for (i = 0; i <= TAG_WORDS; i++) {
		v[3] ^= word[i];
		sip_round(v);
		sip_round(v);
		v[0] ^= word[i];
	}
	v[2] ^= 0xff;
	for (i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
