// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Packets that leave by an interface take the way through another one, whose owner sends them on.
 *
 * The owner says again and again until when it will look after them. If it dies, the kernel detaches this program; if it
 * only stands still, the time passes. Both ways packets leave as if this were not there. What the owner sends itself has
 * MARK.
 */
#include "kernel.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "Dual BSD/GPL";

#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd

/* Set when loaded. */
const volatile struct {
	/* The other interface. */
	__u32 through;
	/* What its owner sends. */
	__u32 mark;
} settings = {};

/* Until when the owner looks after packets, in ns of CLOCK_MONOTONIC. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} until SEC(".maps");

SEC("tcx/egress")
int divert(struct __sk_buff *skb)
{
	__u32 zero = 0;
	__u64 *end;

	if (skb->mark == settings.mark)
		return TCX_NEXT;
	if (skb->protocol != bpf_htons(ETH_P_IP) && skb->protocol != bpf_htons(ETH_P_IPV6))
		return TCX_NEXT;
	end = bpf_map_lookup_elem(&until, &zero);
	/* As of the last tick: milliseconds matter little here. */
	if (!end || bpf_ktime_get_coarse_ns() > *end)
		return TCX_NEXT;
	return bpf_redirect(settings.through, 0);
}
