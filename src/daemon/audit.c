/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/text/json.h"
#include "base/time/clock.h"
#include "daemon/access.h"

/* Ids have a bound, and methods that exist too; what is longer is cut. */
#define AUDIT_LINE_MAX 4096
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

void audit_call(int fd, const struct rpc_peer *peer, const char *method, enum rpc_code code)
{
	bool refused = code == RPC_PERMISSION_DENIED || code == RPC_UNAUTHENTICATED;
	char line[AUDIT_LINE_MAX];
	size_t len;
	int r;

	if (fd < 0 || (access_is_read(method) && !refused))
		return;
	len = audit_line(line, peer, method, code);
	r = len > 0 ? fd_write_full(fd, line, len) : -ENOMEM;
	if (r < 0)
		log_warn("the audit log cannot be written", LOG_STR("line", line),
			 LOG_STR("reason", strerror(-r)));
}
