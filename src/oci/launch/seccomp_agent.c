/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/seccomp_agent.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/json.h"
#include "base/text/str.h"
#include "oci/launch/message.h"

static char *agent_text(const struct container *c, pid_t pid)
{
	const struct oci_seccomp *s = c->config->os->seccomp;
	/* What is not the first process came to a container that runs. */
	bool first = pid == c->pid;
	_cleanup_str_ char *state =
		container_state_text(c, first ? CONTAINER_CREATING : CONTAINER_RUNNING, c->pid);
	char *text = NULL;
	size_t len = 0;
	struct json j = { .compact = true };

	if (!state)
		return NULL;
	j.to = open_memstream(&text, &len);
	if (!j.to)
		return NULL;
	json_put_object(&j, NULL);
	json_put_string(&j, "ociVersion", c->config->version);
	json_put_array(&j, "fds");
	json_put_string(&j, NULL, "seccompFd");
	json_put_end(&j);
	json_put_integer(&j, "pid", pid);
	if (s->listener_metadata)
		json_put_string(&j, "metadata", s->listener_metadata);
	/* The state is a document of its own, which becomes the last member. */
	(void)fprintf(j.to, ",\"state\":%.*s}", (int)strcspn(state, "\n"), state);
	if (fclose(j.to) == 0)
		return text;
	free(text);
	return NULL;
}

int seccomp_agent_send(const struct container *c, pid_t pid, int listener_fd, struct error *err)
{
	_cleanup_str_ char *text = agent_text(c, pid);
	_cleanup_fd_ int fd = -1;
	int r;

	if (!text)
		return error_set(err, -ENOMEM, "write the state for the seccomp agent");
	fd = message_connect(-1, c->config->os->seccomp->listener_path, err);
	if (fd < 0)
		return error_wrap(err, fd, "linux.seccomp.listenerPath");
	r = message_send(fd, text, strlen(text), &listener_fd, 1);
	return r < 0 ? error_set(err, r, "linux.seccomp.listenerPath: send the listener") : 0;
}

int seccomp_agent_watch(const struct container *c, pid_t pid, int socket_fd,
			struct isolate_child *child, struct error *err)
{
	int status = 0;

	for (;;) {
		struct pollfd p[] = { { .fd = child->report_fd, .events = POLLIN },
				      { .fd = socket_fd, .events = POLLIN } };
		int fds[MESSAGE_FDS_MAX];
		char byte = 0;
		int r;

		if (poll(p, ARRAY_SIZE(p), -1) < 0 && errno != EINTR)
			return error_set(err, -errno, "wait for the first process");
		if (p[1].revents & POLLIN) {
			r = message_receive(socket_fd, &byte, fds);
			if (r > 0 && byte == ISOLATE_AT_SECCOMP)
				r = seccomp_agent_send(c, pid, fds[0], err);
			message_close(fds);
			if (r < 0)
				return r;
			if (r > 0)
				continue;
		}
		if (p[0].revents)
			return isolate_child_report(child, &status, err);
		if (p[1].revents)
			socket_fd = -1;
	}
}
