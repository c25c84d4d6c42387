/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Short connections, as many as the processor allows: for proxy.py.
 *
 *   connections answer                          sends each byte back, at 10.2.0.2:5202
 *   connections connect SECONDS AT_ONCE         connects there, sends a byte, and ends when it is back
 *
 * The latter prints connections per second.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 256

static int poll_fd;

static int checked(int result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
	return result;
}

static struct sockaddr_in address(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(5202) };

	inet_pton(AF_INET, "10.2.0.2", &to.sin_addr);
	return to;
}

static void watch(int operation, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	checked(epoll_ctl(poll_fd, operation, fd, &event), "epoll_ctl");
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void answer(void)
{
	struct sockaddr_in at = address();
	struct epoll_event events[EVENTS];
	int listener = checked(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket");

	checked(bind(listener, (struct sockaddr *)&at, sizeof(at)), "bind");
	checked(listen(listener, 4096), "listen");
	watch(EPOLL_CTL_ADD, listener, EPOLLIN);
	puts("ready");
	fflush(stdout);
	for (;;) {
		int count = epoll_wait(poll_fd, events, EVENTS, -1);

		for (int i = 0; i < count; i++) {
			int fd = events[i].data.fd;
			char byte;

			if (fd == listener) {
				int next = accept4(listener, NULL, NULL, SOCK_NONBLOCK);

				if (next >= 0)
					watch(EPOLL_CTL_ADD, next, EPOLLIN);
			} else if (recv(fd, &byte, 1, 0) == 1) {
				send(fd, &byte, 1, MSG_NOSIGNAL);
			} else {
				/* The end, or a reset: at its own end, the client resets what is open. */
				close(fd);
			}
		}
	}
}

static void begin(void)
{
	struct sockaddr_in to = address();
	int fd = checked(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), "socket");

	connect(fd, (struct sockaddr *)&to, sizeof(to));
	watch(EPOLL_CTL_ADD, fd, EPOLLOUT);
}

static void connect_again_and_again(double seconds, int at_once)
{
	struct epoll_event events[EVENTS];
	double start = now();
	long done = 0;

	for (int i = 0; i < at_once; i++)
		begin();
	while (now() < start + seconds) {
		int count = epoll_wait(poll_fd, events, EVENTS, 1000);

		for (int i = 0; i < count; i++) {
			int fd = events[i].data.fd;
			char byte = 'x';

			if (events[i].events & EPOLLERR) {
				fprintf(stderr, "a connection failed\n");
				exit(1);
			} else if (events[i].events == EPOLLOUT) {
				checked(send(fd, &byte, 1, MSG_NOSIGNAL), "send");
				watch(EPOLL_CTL_MOD, fd, EPOLLIN);
			} else if (checked(recv(fd, &byte, 1, 0), "recv") == 1) {
				shutdown(fd, SHUT_WR);
			} else {
				close(fd);
				done++;
				begin();
			}
		}
	}
	printf("%.1f\n", done / (now() - start));
}

int main(int argc, char **argv)
{
	poll_fd = checked(epoll_create1(0), "epoll_create1");
	if (argc == 2 && !strcmp(argv[1], "answer")) {
		answer();
	} else if (argc == 4 && !strcmp(argv[1], "connect")) {
		connect_again_and_again(atof(argv[2]), atoi(argv[3]));
	} else {
		fprintf(stderr, "connections answer, or connections connect SECONDS AT_ONCE\n");
		return 2;
	}
	return 0;
}
