/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Traffic over TCP, for bench/network:
 *
 *   traffic serve PORT               answers on all addresses until it is killed; prints a line
 *                                    when it listens
 *   traffic stream ADDRESS PORT MS   sends for so long: {"value": megabytes per second}
 *   traffic trips ADDRESS PORT MS    a byte there and back: {"value": trips per second}
 *
 * A connection begins with one byte that says which of the two it is. What was sent counts when
 * the server has said that it has all of it.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define TRAFFIC_PIECE 131072
#define TRAFFIC_STREAM 's'
#define TRAFFIC_TRIPS 't'
#define NSEC_PER_MS INT64_C(1000000)

static char traffic_piece[TRAFFIC_PIECE];

static _Noreturn void traffic_die(const char *what)
{
	(void)fprintf(stderr, "traffic: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static int64_t traffic_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void traffic_set(int fd, int level, int option)
{
	const int on = 1;

	if (setsockopt(fd, level, option, &on, sizeof(on)) < 0)
		traffic_die("setsockopt");
}

static void traffic_send(int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0)
			traffic_die("send");
		data += n;
		len -= (size_t)n;
	}
}

/* Whether there was a byte. */
static bool traffic_byte(int fd, char *ret)
{
	ssize_t n = recv(fd, ret, 1, 0);

	if (n < 0)
		traffic_die("recv");
	return n == 1;
}

/* ---- the server ---- */

static void traffic_answer(int fd)
{
	char kind = 0, byte = 0;

	if (!traffic_byte(fd, &kind))
		return;
	if (kind == TRAFFIC_TRIPS) {
		while (traffic_byte(fd, &byte))
			traffic_send(fd, &byte, 1);
		return;
	}
	while (recv(fd, traffic_piece, sizeof(traffic_piece), 0) > 0)
		;
	traffic_send(fd, "", 1);
}

static _Noreturn void traffic_serve(uint16_t port)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		traffic_die("socket");
	traffic_set(fd, SOL_SOCKET, SO_REUSEADDR);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 8) < 0)
		traffic_die("listen");
	(void)puts("listens");
	(void)fflush(stdout);
	for (;;) {
		int one = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

		if (one < 0)
			traffic_die("accept");
		traffic_set(one, IPPROTO_TCP, TCP_NODELAY);
		traffic_answer(one);
		(void)close(one);
	}
}

/* ---- the client ---- */

static int traffic_connect(const char *address, const char *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)strtoul(port, NULL, 10)) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (inet_pton(AF_INET, address, &at.sin_addr) != 1)
		traffic_die(address);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		traffic_die("connect");
	traffic_set(fd, IPPROTO_TCP, TCP_NODELAY);
	return fd;
}

static double traffic_stream(int fd, int64_t until)
{
	const int64_t begin = traffic_now();
	double sent = 0;
	char byte = 0;

	traffic_send(fd, &(char){ TRAFFIC_STREAM }, 1);
	while (traffic_now() < until) {
		traffic_send(fd, traffic_piece, sizeof(traffic_piece));
		sent += sizeof(traffic_piece);
	}
	if (shutdown(fd, SHUT_WR) < 0 || !traffic_byte(fd, &byte))
		traffic_die("the end of a stream");
	return sent * 1e3 / (double)(traffic_now() - begin);
}

static double traffic_trips(int fd, int64_t until)
{
	const int64_t begin = traffic_now();
	double trips = 0;
	char byte = 0;

	traffic_send(fd, &(char){ TRAFFIC_TRIPS }, 1);
	for (; traffic_now() < until; trips++) {
		traffic_send(fd, &byte, 1);
		if (!traffic_byte(fd, &byte))
			traffic_die("a trip");
	}
	return trips * 1e9 / (double)(traffic_now() - begin);
}

int main(int argc, char *argv[])
{
	int64_t until;
	int fd;

	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		traffic_serve((uint16_t)strtoul(argv[2], NULL, 10));
	if (argc != 5 || (strcmp(argv[1], "stream") != 0 && strcmp(argv[1], "trips") != 0)) {
		(void)fputs("usage: traffic serve PORT | stream|trips ADDRESS PORT MS\n", stderr);
		return EXIT_FAILURE;
	}
	fd = traffic_connect(argv[2], argv[3]);
	until = traffic_now() + strtoll(argv[4], NULL, 10) * NSEC_PER_MS;
	(void)printf("{\"value\": %.3f}\n", argv[1][0] == TRAFFIC_STREAM
						    ? traffic_stream(fd, until)
						    : traffic_trips(fd, until));
	return EXIT_SUCCESS;
}
