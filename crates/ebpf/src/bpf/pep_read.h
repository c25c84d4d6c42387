/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the PEP reads of a packet, and whether the other end takes it.
 *
 * A part of pep.bpf.c, whose settings and maps it uses.
 */
#ifndef RANWAY_PEP_READ_H
#define RANWAY_PEP_READ_H

/* Whether a report's tag is that of our key. `option` is the whole option, of `size` bytes. */
SHARE bool is_ours(const __u8 *option, __u32 size, const struct segment *seg)
{
	struct tagged t = {
		.ack = seg->ack,
		.stamp = seg->stamp,
		.echo = seg->echo,
		.from = be32_at(option + 4),
		.through = be32_at(option + 8),
	};
	const __u8 *tag = option + REPORT_LEN;

	if (option[3] != OPTION_EXID_TAGGED_LOW)
		return false;
	if (size == REPORT_LEN + REPORT_RANGE_LEN + TAG_LEN) {
		t.ranges = 1;
		t.start = be32_at(tag);
		t.end = be32_at(tag + 4);
		tag += REPORT_RANGE_LEN;
	} else if (size != REPORT_LEN + TAG_LEN) {
		return false;
	}
	return tag_of(settings.key_low, settings.key_high, &t) == ((__u64)be32_at(tag) << 32 | be32_at(tag + 4));
}

/* Another PEP's report: it comes behind two no-operations and the timestamps, as ours do. `options` has room behind its end. */
__attribute__((noinline)) int read_report(struct __sk_buff *skb, __u32 at, __u32 len, struct segment *seg)
{
	__u8 option[TCP_OPTIONS_MAX - TIMESTAMPS_LEN] = {};

	if (!seg || len < REPORT_LEN || len > sizeof(option))
		return 0;
	if (bpf_skb_load_bytes(skb, at, option, len))
		return 0;
	if (option[0] != OPTION_KIND || option[1] != len || option[2] != OPTION_EXID_HIGH ||
	    (option[3] != OPTION_EXID_LOW && option[3] != OPTION_EXID_TAGGED_LOW))
		return 0;
	seg->reports = REPORTS_BELIEVED;
	if ((settings.how & TAGGED) && !is_ours(option, len, seg))
		seg->reports = REPORTS_DOUBTED;
	return 0;
}

/* Timestamps, the window scale and the announcement, wherever they stand. */
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
		} else if (kind == 3 && size == 3) {
			/* At most 14 (RFC 7323 section 2.3). */
			seg->scale = options[i + 2] < 14 ? options[i + 2] : 14;
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

SHARE __u16 fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)sum;
}

/* The sum of bytes of the packet and `sum`, folded; negative if there are not so many. */
__attribute__((noinline)) int sum_of(struct __sk_buff *skb, __u32 at, __u32 len, __u32 sum)
{
	__u32 zero = 0, i;
	struct chunk *c = bpf_map_lookup_elem(&chunks, &zero);
	__s64 got;

	if (!c)
		return -1;
	for (i = 0; i < CHUNKS && len >= CHUNK; i++) {
		if (bpf_skb_load_bytes(skb, at, c->words, CHUNK))
			return -1;
		got = bpf_csum_diff(NULL, 0, c->words, CHUNK, sum);
		if (got < 0)
			return -1;
		sum = (__u32)got;
		at += CHUNK;
		len -= CHUNK;
	}
	if (len >= CHUNK)
		return -1;
	len &= CHUNK - 1;
	if (len) {
		/* Zeros behind the last byte fill its word. */
		c->words[len / 4] = 0;
		if (bpf_skb_load_bytes(skb, at, c->words, len))
			return -1;
		got = bpf_csum_diff(NULL, 0, c->words, (len + 3) & ~3U, sum);
		if (got < 0)
			return -1;
		sum = (__u32)got;
	}
	return fold(sum);
}

/* Whether the TCP checksum is right when the segment leaves this machine (RFC 9293 section 3.1). `at`: where its header is,
 * which says `check`.
 */
SHARE bool is_intact(struct __sk_buff *skb, const struct key *key, const struct segment *seg, __u32 at, __u16 check)
{
	__u32 tcp_len = seg->packet_len - (seg->family6 ? IPV6_LEN : IPV4_LEN), i;
	struct sk_buff *kernel_skb = bpf_cast_to_kern_ctx(skb);
	__u64 pseudo = (__u64)bpf_htonl(IPPROTO_TCP) + bpf_htonl(tcp_len);
	__u8 summed = BPF_CORE_READ_BITFIELD(kernel_skb, ip_summed);

	if (summed == CHECKSUM_UNNECESSARY)
		return true;
	if (seg->family6)
		for (i = 0; i < 4; i++)
			pseudo += (__u64)key->sender[i] + key->receiver[i];
	else
		pseudo += (__u64)key->sender[3] + key->receiver[3];
	if (summed == CHECKSUM_PARTIAL)
		/* It comes from this machine or its guests, or GRO has merged it: it is finished on its way out, if all is as
		 * that expects.
		 */
		return (__u32)(kernel_skb->data - kernel_skb->head) + at == kernel_skb->csum_start &&
		       kernel_skb->csum_offset == TCP_CHECK && check == fold(pseudo);
	return sum_of(skb, at, tcp_len, fold(pseudo)) == 0xffff;
}

/* Whether the checksum of an IPv4 header without options is right (RFC 791). */
SHARE bool is_header_intact(const __u8 *ip)
{
	__u64 sum = 0;
	__u32 i;

	for (i = 0; i < IPV4_LEN / 4; i++)
		sum += *(const __u32 *)(ip + 4 * i);
	return fold(sum) == 0xffff;
}

/* Reads the headers; whether it is a TCP segment that is looked at. `from_sender`: which end of the key sent it. `at` and
 * `check`: where its TCP header is, and the checksum there.
 */
SHARE bool read_segment(struct __sk_buff *skb, __u32 l2, bool from_sender, struct key *key, struct segment *seg,
			__u32 *at, __u16 *check)
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
	seg->scale = NO_SCALE;
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
		/* The router discards it: Linux ip_forward(), ip_rcv_core(). */
		if (ip[8] <= 1 || !is_header_intact(ip))
			return false;
		a[2] = b[2] = bpf_htonl(0xffff);
		a[3] = *(__u32 *)(ip + 12);
		b[3] = *(__u32 *)(ip + 16);
		seg->packet_len = half(ip + 2);
		ip_len = IPV4_LEN;
	} else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		if ((void *)ip + IPV6_LEN + TCP_LEN + TIMESTAMPS_LEN > end)
			return false;
		if (ip[6] != IPPROTO_TCP || ip[7] <= 1)
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
	if (seg->packets > 1)
		seg->packet_len = skb->len - l2;
	else if (seg->packet_len < ip_len + TCP_LEN + options_len || seg->packet_len > skb->len - l2)
		return false;
	seg->len = seg->packet_len - ip_len - TCP_LEN - options_len;
	/* As nearly every segment has them, alone. */
	if (options_len == TIMESTAMPS_LEN && word(tcp + 20) == 0x0101080a) {
		seg->stamp = word(tcp + 24);
		seg->echo = word(tcp + 28);
		seg->has_timestamps = 1;
	} else if (options_len) {
		read_options(skb, l2 + ip_len + TCP_LEN, options_len, seg);
		if (!from_sender && seg->has_timestamps)
			read_report(skb, l2 + ip_len + TCP_LEN + TIMESTAMPS_LEN, options_len - TIMESTAMPS_LEN, seg);
	}
	*at = l2 + ip_len;
	*check = *(__u16 *)(tcp + TCP_CHECK);
	return true;
}

/* Whether what was read is of a segment that the other end takes. */
SHARE bool reads(struct __sk_buff *skb, __u32 l2, bool from_sender, struct key *key, struct segment *seg)
{
	struct counters *c;
	__u16 check;
	__u32 at;

	if (!read_segment(skb, l2, from_sender, key, seg, &at, &check))
		return false;
	/* What only acknowledges is most of what an upload brings. */
	if (from_sender && !(seg->flags & TCP_FLAG_RST) && !seq_len(seg))
		return false;
	if (is_intact(skb, key, seg, at, check))
		return true;
	c = count();
	if (c)
		c->damaged++;
	return false;
}

#endif
