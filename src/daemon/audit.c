/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/json.h"
#include "base/time/clock.h"
#include "daemon/access.h"

/* Ids have a bound, and methods that exist too; what is longer is cut. */
#define AUDIT_METHOD_MAX 200

int audit_open(const char *path, struct error *err)
{
	int fd = sysio_openat(AT_FDCWD, path,
			      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
			      0600);

	return fd < 0 ? error_set(err, -errno, "open the audit log %s", path) : fd;
}

static size_t audit_line(char line[AUDIT_LINE_MAX], const struct rpc_peer *peer, const char *method,
			 enum rpc_code code)
{
	FILE *to = fmemopen(line, AUDIT_LINE_MAX, "w");
	struct json j = JSON_INIT(to);
	char what[AUDIT_METHOD_MAX];

	if (!to)
		return 0;
	(void)snprintf(what, sizeof(what), "%s", method);
	j.compact = true;
	json_put_object(&j, NULL);
	json_put_time(&j, "time", clock_real());
	if (peer->remote) {
		json_put_string(&j, "who", peer->remote->id);
		json_put_string(&j, "serial", peer->remote->serial);
		json_put_string(&j, "from", peer->remote->address);
	} else {
		json_put_unsigned(&j, "uid", peer->uid);
		json_put_integer(&j, "pid", peer->pid);
	}
	json_put_string(&j, "method", what);
	json_put_string(&j, "status", rpc_code_name(code));
	json_put_end(&j);
	(void)fclose(to);
	line[AUDIT_LINE_MAX - 1] = '\0';
	return strlen(line);
}

/* A part of a line is worse than none: what was written of it is taken back. */
static int audit_write(int fd, const char *line, size_t len)
{
	struct stat before;
	int r = fstat(fd, &before) < 0 ? -errno : fd_write_full(fd, line, len);

	if (r < 0 && S_ISREG(before.st_mode))
		(void)!ftruncate(fd, before.st_size);
	return r;
}

static int audit_make_room(struct audit *a)
{
	struct stat st;
	int r = 0;

	if (a->lost > 0)
		r = audit_write(a->fd, a->line, a->lost);
	if (r < 0)
		return r;
	a->lost = 0;
	if (fstat(a->fd, &st) < 0)
		return -errno;
	if (S_ISREG(st.st_mode) &&
	    fallocate(a->fd, FALLOC_FL_KEEP_SIZE, st.st_size, AUDIT_AHEAD) < 0 &&
	    errno != EOPNOTSUPP)
		return -errno;
	return 0;
}

int audit_check(struct audit *a, const char *method, struct error *err)
{
	int r;

	if (a->fd <= 0 || !a->refuse || access_is_read(method))
		return 0;
	r = audit_make_room(a);
	if (r == 0)
		return 0;
	return error_refuse(err, ERROR_UNAVAILABLE,
			    "the audit log %.200s cannot be written: %s (audit_full: refuse; make "
			    "room there)",
			    a->path, strerror(-r));
}

void audit_call(struct audit *a, const struct rpc_peer *peer, const char *method,
		enum rpc_code code)
{
	bool refused = code == RPC_PERMISSION_DENIED || code == RPC_UNAUTHENTICATED;
	char line[AUDIT_LINE_MAX];
	size_t len;
	int r;

	if (a->fd <= 0 || (access_is_read(method) && !refused))
		return;
	len = audit_line(line, peer, method, code);
	r = len > 0 ? audit_write(a->fd, line, len) : -ENOMEM;
	if (r == 0)
		return;
	log_warn("the audit log cannot be written", LOG_STR("line", line),
		 LOG_STR("reason", strerror(-r)));
	/* The first one is what the next call waits for; all are in the daemon's log. */
	if (a->refuse && a->lost == 0) {
		memcpy(a->line, line, len);
		a->lost = len;
	}
}
