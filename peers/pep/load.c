/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* TCP flows without hosts: full segments with timestamps into one interface, and for every second of them an
 * acknowledgement into another, which may be in another namespace.
 *
 *   load FLOWS SECONDS DATA_IF ACK_NETNS ACK_IF ROUTER_DATA_MAC ROUTER_ACK_MAC
 *
 * Prints packets and seconds. The flows go from 10.1.0.1 to 10.2.0.2, in turn; each begins with a SYN that announces that
 * its sender understands reports, and with its answer.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PAYLOAD 1448
#define BATCH 64

struct frame {
	uint8_t bytes[14 + 20 + 40 + PAYLOAD];
	size_t len;
};

static struct frame data[BATCH], acks[BATCH / 2];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void put16(uint8_t *at, uint32_t n)
{
	at[0] = (uint8_t)(n >> 8);
	at[1] = (uint8_t)n;
}

static void put32(uint8_t *at, uint32_t n)
{
	put16(at, n >> 16);
	put16(at + 2, n);
}

static void die(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint16_t fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

/* The sum of bytes, of which there is an even number. */
static uint32_t sum_of(const uint8_t *at, int len)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < len; i += 2)
		sum += (uint32_t)(at[i] << 8 | at[i + 1]);
	return sum;
}

static void build(struct frame *f, const uint8_t *to, int back, uint32_t flow, uint32_t seq, uint32_t ack, uint8_t flags,
		  uint32_t value, uint32_t echo)
{
	uint8_t *ip = f->bytes + 14, *tcp = ip + 20;
	int syn = flags & 2, options = syn ? 20 : 12, payload = back || syn ? 0 : PAYLOAD;

	memcpy(f->bytes, to, 6);
	memset(f->bytes + 6, 2, 6);
	put16(f->bytes + 12, 0x0800);
	memset(ip, 0, 20);
	ip[0] = 0x45;
	put16(ip + 2, (uint32_t)(20 + 20 + options + payload));
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = 6;
	put32(ip + 12, back ? 0x0a020002 : 0x0a010001);
	put32(ip + 16, back ? 0x0a010001 : 0x0a020002);
	put16(ip + 10, (uint16_t)~fold(sum_of(ip, 20)));
	memset(tcp, 0, 40);
	put16(tcp + (back ? 2 : 0), 10000 + flow % 50000);
	put16(tcp + (back ? 0 : 2), 5000 + flow / 50000);
	put32(tcp + 4, seq);
	put32(tcp + 8, ack);
	tcp[12] = (uint8_t)((20 + options) / 4 << 4);
	tcp[13] = flags;
	put16(tcp + 14, 0xffff);
	put32(tcp + 20, 0x0101080a);
	put32(tcp + 24, value);
	put32(tcp + 28, echo);
	if (syn) {
		tcp[32] = 253;
		tcp[33] = 4;
		put16(tcp + 34, 0x5257);
		/* It scales windows, by how much the receiver has not said here: no window ends a batch. */
		put32(tcp + 36, 0x03030e01);
	}
	/* The payload is zeros. */
	put16(tcp + 16, (uint16_t)~fold(sum_of(ip + 12, 8) + 6 + (uint32_t)(20 + options + payload) + sum_of(tcp, 20 + options)));
	f->len = (size_t)(14 + 20 + 20 + options + payload);
}

static void send_all(int fd, struct frame *frames, unsigned count)
{
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];
	unsigned i, sent = 0;
	int n;

	memset(messages, 0, sizeof(messages));
	for (i = 0; i < count; i++) {
		parts[i].iov_base = frames[i].bytes;
		parts[i].iov_len = frames[i].len;
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	while (sent < count) {
		n = sendmmsg(fd, messages + sent, count - sent, 0);
		if (n < 0 && errno != ENOBUFS && errno != EAGAIN)
			die("sendmmsg");
		if (n > 0)
			sent += (unsigned)n;
	}
}

static int open_interface(const char *name)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(name) };
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	if (!at.sll_ifindex || fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)))
		die(name);
	return fd;
}

static void read_mac(uint8_t *mac, const char *text)
{
	unsigned byte[6], i;

	if (sscanf(text, "%x:%x:%x:%x:%x:%x", byte, byte + 1, byte + 2, byte + 3, byte + 4, byte + 5) != 6)
		die("a MAC address");
	for (i = 0; i < 6; i++)
		mac[i] = (uint8_t)byte[i];
}

int main(int argc, char **argv)
{
	uint32_t flows, flow = 0, i, value = 1000;
	uint64_t packets = 0;
	uint8_t data_mac[6], ack_mac[6];
	double start, seconds;
	uint32_t *next;
	char path[128];
	int down, up, space;

	if (argc != 8)
		return 2;
	flows = (uint32_t)strtoul(argv[1], NULL, 10);
	seconds = strtod(argv[2], NULL);
	down = open_interface(argv[3]);
	snprintf(path, sizeof(path), "/run/netns/%s", argv[4]);
	space = open(path, O_RDONLY | O_CLOEXEC);
	if (space < 0 || setns(space, CLONE_NEWNET))
		die(path);
	up = open_interface(argv[5]);
	read_mac(data_mac, argv[6]);
	read_mac(ack_mac, argv[7]);
	next = calloc(flows, sizeof(*next));
	if (!next)
		die("memory");
	for (i = 0; i < flows; i++) {
		build(&data[0], data_mac, 0, i, 0, 0, 2, value, 0);
		send_all(down, data, 1);
		build(&acks[0], ack_mac, 1, i, 1, 1, 0x10, value, value);
		send_all(up, acks, 1);
		next[i] = 1;
	}
	start = now();
	while (now() - start < seconds) {
		value++;
		for (i = 0; i < BATCH; i += 2) {
			build(&data[i], data_mac, 0, flow, next[flow], 1, 0x10, value, 1);
			build(&data[i + 1], data_mac, 0, flow, next[flow] + PAYLOAD, 1, 0x10, value, 1);
			next[flow] += 2 * PAYLOAD;
			build(&acks[i / 2], ack_mac, 1, flow, 1, next[flow], 0x10, value, value);
			flow = flow + 1 < flows ? flow + 1 : 0;
		}
		send_all(down, data, BATCH);
		send_all(up, acks, BATCH / 2);
		packets += BATCH + BATCH / 2;
	}
	printf("%llu %.6f\n", (unsigned long long)packets, now() - start);
	return 0;
}
