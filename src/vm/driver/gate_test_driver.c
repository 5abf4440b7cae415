/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For tests: the daemon's end of a gate by itself.
 *
 *   vm-gate-driver PROGRAM DIRECTORY LIFE start|connect
 *
 * DIRECTORY has "identity" and "i" in it. Descriptors 3 and 4 are the boot port and the console, 5
 * is a network namespace. Says what happens in lines, and takes words, a line each: "boot HEX",
 * "console", "end", "quit".
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "gates/issuer.h"
#include "loop/loop.h"
#include "vm/driver/gate.h"

static struct loop *loop;
static struct gate *gate;
static struct loop_fd input;

static void on_state(void *userdata, enum gate_state state, const char *text)
{
	printf("state %d %s\n", state, text);
}

static void on_frame(void *userdata, const uint8_t *frame, size_t len)
{
	printf("frame %zu\n", len);
}

static void on_notice(void *userdata, const char *text)
{
	printf("notice %s\n", text);
}

static void on_end(void *userdata, const struct error *err)
{
	printf("end %s\n", error_text(err));
	gate = gate_free(gate);
}

static void on_console(void *userdata, const uint8_t *last, size_t len, uint64_t total,
		       const struct error *err)
{
	if (err)
		printf("console %s\n", error_text(err));
	else
		printf("console %" PRIu64 " %.*s\n", total, (int)len, (const char *)last);
}

static void send_hex(const char *hex)
{
	static uint8_t frame[BOOTMSG_FRAME_MAX];
	size_t len = strlen(hex) / 2;

	for (size_t i = 0; i < len && i < sizeof(frame); i++) {
		const char digits[] = { hex[2 * i], hex[2 * i + 1], '\0' };

		frame[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	printf("sent %d\n", gate_send(gate, frame, len));
}

static void on_input(struct loop_fd *source, unsigned events)
{
	static char line[4096];

	if (!fgets(line, sizeof(line), stdin) || str_eq(line, "quit\n")) {
		loop_quit(loop, 0);
		return;
	}
	line[strcspn(line, "\n")] = '\0';
	if (!gate)
		return;
	if (str_eq(line, "end"))
		gate_end(gate);
	else if (str_eq(line, "console"))
		(void)gate_console(gate, on_console, NULL);
	else if (str_has_prefix(line, "boot "))
		send_hex(line + 5);
}

static const struct gate_events on_events = {
	.on_state = on_state, .on_frame = on_frame, .on_notice = on_notice, .on_end = on_end
};

static int begin(char **argv, struct issuer *issuer, struct error *err)
{
	struct gate_start start = { .program = argv[1],
				    .title = "pod/web",
				    .net_fd = 5,
				    .cgroup_fd = -1,
				    .boot_fd = 3,
				    .console_fd = 4,
				    .uid = 61234,
				    .gid = 61234,
				    .address = { 127, 0, 0, 2 },
				    .port = GATE_PORT };
	struct gate_config config = { .loop = loop,
				      .issuer = issuer,
				      .dir_fd = open("i", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
				      .instance = "0123456789abcdef" };
	int r;

	(void)parse_duration(argv[3], &config.life);
	memset(start.token, 7, sizeof(start.token));
	if (str_eq(argv[4], "start"))
		r = gate_start(&gate, &config, &start, &on_events, NULL, err);
	else
		r = gate_connect(&gate, &config, &on_events, NULL, err);
	(void)close(config.dir_fd);
	return r;
}

static void on_bundle(void *userdata, const struct gate_bytes *bytes, const struct error *err)
{
	if (!bytes) {
		printf("bundle none %s\n", error_text(err));
		return;
	}
	printf("bundle ");
	for (size_t i = 0; i < bytes->len; i++)
		printf("%02x", bytes->data[i]);
	printf("\n");
}

int main(int argc, char **argv)
{
	struct error err = ERROR_INIT;
	struct issuer *issuer = NULL;
	struct issuer_config config = {
		.domain = "nacre.local", .node = "n1", .uid = 61233, .gid = 61233
	};
	int r;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)setvbuf(stdin, NULL, _IONBF, 0);
	if (argc != 5 || chdir(argv[2]) < 0 || loop_new(&loop) < 0)
		return EXIT_FAILURE;
	config.loop = loop;
	config.program = argv[1];
	config.dir_fd = open("identity", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = issuer_new(&issuer, &config, &err);
	(void)close(config.dir_fd);
	if (r == 0)
		r = issuer_bundle(issuer, on_bundle, NULL);
	if (r == 0)
		r = begin(argv, issuer, &err);
	if (r < 0)
		printf("failed %s\n", error_text(&err));
	loop_fd_init(&input, loop, STDIN_FILENO, LOOP_READ, on_input);
	(void)loop_run(loop);
	loop_fd_done(&input);
	gate = gate_free(gate);
	issuer = issuer_free(issuer);
	loop = loop_free(loop);
	return EXIT_SUCCESS;
}
