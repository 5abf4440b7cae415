/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"

#define REMOTE_PROGRAM "nacre-remote"
#define REMOTE_SAYS_MAX ((size_t)8 * 1024)
/* For a word about a connection that was lost. */
#define REMOTE_LAST_WORD_MS 200

struct remote {
	pid_t pid;
	int says_fd; /* its lines */
	struct buf says;
};

/* ---- the process ---- */

/* In a build tree, in an installation elsewhere, or where it was installed. */
static char *remote_program(void)
{
	static const char *const beside[] = { "libexec/nacre", "../libexec/nacre" };
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	exe[n > 0 ? n : 0] = '\0';
	slash = strrchr(exe, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(beside) && slash; i++) {
		_cleanup_str_ char *path = xformat("%s/%s/" REMOTE_PROGRAM, exe, beside[i]);

		if (access(path, X_OK) == 0)
			return TAKE_PTR(path);
	}
	return xstrdup(NACRE_LIBEXECDIR "/" REMOTE_PROGRAM);
}

static int remote_actions(posix_spawn_file_actions_t *actions, int in_fd, int out_fd)
{
	int r = posix_spawn_file_actions_adddup2(actions, out_fd, STDOUT_FILENO);

	if (r == 0 && in_fd >= 0)
		r = posix_spawn_file_actions_adddup2(actions, in_fd, STDIN_FILENO);
	return r == 0 ? posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1) : r;
}

/* Should: be in a process group of its own, so that what is typed to end the workload's program
 * does not end the connection. Must not: inherit more than the two descriptors. */
static int remote_spawn(pid_t *ret, char *const *argv, int in_fd, int out_fd, struct error *err)
{
	_cleanup_str_ char *program = remote_program();
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int r;

	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return error_set(err, -r, "start %s", program);
	(void)sigemptyset(&none);
	(void)posix_spawnattr_init(&attributes);
	r = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	if (r == 0)
		r = posix_spawnattr_setpgroup(&attributes, 0);
	if (r == 0)
		r = posix_spawnattr_setsigmask(&attributes, &none);
	if (r == 0)
		r = remote_actions(&actions, in_fd, out_fd);
	if (r == 0)
		r = posix_spawn(ret, program, &actions, &attributes, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	return r == 0 ? 0 : error_set(err, -r, "start %s", program);
}

/* A line that is there whole, without its end; NULL: none comes within the time (-1: any). */
static char *remote_line(struct remote *r, int patience_ms)
{
	for (;;) {
		const char *text = (const char *)buf_data(&r->says);
		const char *end = r->says.len > 0 ? memchr(text, '\n', r->says.len) : NULL;
		struct pollfd p = { .fd = r->says_fd, .events = POLLIN };
		uint8_t *room;
		ssize_t n;

		if (end) {
			char *line = xformat("%.*s", (int)(end - text), text);

			buf_consume(&r->says, strlen(line) + 1);
			return line;
		}
		n = poll(&p, 1, patience_ms);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || buf_reserve(&r->says, 512, &room) < 0)
			return NULL;
		n = sysio_read(r->says_fd, room, 512);
		if (n <= 0)
			return NULL;
		buf_added(&r->says, (size_t)n);
	}
}

struct remote *remote_free(struct remote *r)
{
	if (!r)
		return NULL;
	r->says_fd = fd_close(r->says_fd);
	/* It takes its leave of the node by itself, and is init's afterwards. */
	if (r->pid > 0)
		(void)waitpid(r->pid, NULL, WNOHANG);
	buf_done(&r->says);
	free(r);
	return NULL;
}

static struct remote *remote_new(int says_fd)
{
	struct remote *r = xrealloc(NULL, 1, sizeof(*r));

	*r = (struct remote){ .says_fd = says_fd, .says = BUF_INIT_LIMIT(REMOTE_SAYS_MAX) };
	return r;
}

static inline void remote_freep(struct remote **r)
{
	*r = remote_free(*r);
}

static int remote_start(struct remote **ret, char *const *argv, int in_fd, struct error *err)
{
	_cleanup_(remote_freep) struct remote *r = NULL;
	_cleanup_fd_ int theirs = -1;
	int says[2], code;

	if (pipe2(says, O_CLOEXEC) < 0)
		return error_set(err, -errno, "make a pipe");
	theirs = says[1];
	r = remote_new(says[0]);
	code = remote_spawn(&r->pid, argv, in_fd, theirs, err);
	if (code < 0)
		return code;
	*ret = TAKE_PTR(r);
	return 0;
}

/* ---- a connection ---- */

static char *word(const char *text)
{
	return (char *)(uintptr_t)text;
}

int remote_connect(struct remote **ret, const struct client_target *t, int *ret_fd,
		   struct error *err)
{
	char *const argv[] = { word(REMOTE_PROGRAM), word("connect"),      word(t->host),
			       word(t->port),        word(t->server_name), word(t->ca),
			       word(t->cert),        word(t->key),         NULL };
	_cleanup_(remote_freep) struct remote *r = NULL;
	_cleanup_fd_ int ours = -1, theirs = -1;
	_cleanup_str_ char *line = NULL;
	int pair[2], code;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(err, -errno, "make a socket");
	ours = pair[0];
	theirs = pair[1];
	code = remote_start(&r, argv, theirs, err);
	if (code < 0)
		return code;
	line = remote_line(r, -1);
	if (!line || !str_eq(line, "ok"))
		return error_refuse(err, ERROR_UNAVAILABLE, "%s",
				    line ? line : "the program for TLS has ended");
	code = fd_set_nonblock(ours, true);
	if (code < 0)
		return error_set(err, code, "make a socket");
	*ret_fd = TAKE_FD(ours);
	*ret = TAKE_PTR(r);
	return 0;
}

void remote_explain(struct remote *r, struct error *err)
{
	_cleanup_str_ char *line = remote_line(r, REMOTE_LAST_WORD_MS);

	if (line)
		(void)error_refuse(err, ERROR_UNAVAILABLE, "%s", line);
}

/* ---- a key ---- */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int hex_read(const char *text, uint8_t **ret, size_t *ret_len)
{
	size_t len = strlen(text) / 2;
	uint8_t *bytes = xrealloc(NULL, len + 1, 1);

	for (size_t i = 0; i < len; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0) {
			free(bytes);
			return -EBADMSG;
		}
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	*ret = bytes;
	*ret_len = len;
	return 0;
}

int remote_new_key(char **ret_pem, uint8_t **ret_public, size_t *ret_len, struct error *err)
{
	char *const argv[] = { word(REMOTE_PROGRAM), word("key"), NULL };
	_cleanup_(remote_freep) struct remote *r = NULL;
	_cleanup_str_ char *public = NULL, *pem = NULL;
	int code = remote_start(&r, argv, -1, err);

	if (code < 0)
		return code;
	public = remote_line(r, -1);
	pem = xstrdup("");
	for (;;) {
		_cleanup_str_ char *line = remote_line(r, -1);
		char *longer;

		if (!line)
			break;
		longer = xformat("%s%s\n", pem, line);
		explicit_bzero(pem, strlen(pem));
		explicit_bzero(line, strlen(line));
		free(pem);
		pem = longer;
	}
	if (!public || !str_has_prefix(pem, "-----BEGIN PRIVATE KEY-----") ||
	    hex_read(public, ret_public, ret_len) < 0)
		return error_refuse(err, ERROR_FAULT, "no key was made: %s",
				    public ? public : "the program for it has ended");
	*ret_pem = TAKE_PTR(pem);
	return 0;
}
