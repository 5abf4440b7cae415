/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/job/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/file/fd.h"
#include "base/text/str.h"

int channel_receive(int sock_fd, struct fetchmsg *ret, struct error *err)
{
	static uint8_t packet[FETCHMSG_SIZE_MAX];
	ssize_t n;

	do {
		n = recv(sock_fd, packet, sizeof(packet), MSG_TRUNC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_set(err, -errno, "receive a message");
	if (n == 0)
		return error_set(err, -EPIPE, "receive a message");
	return fetchmsg_decode(ret, packet, (size_t)n, err);
}

static size_t channel_take_fds(struct msghdr *m, int fds[CHANNEL_FDS_MAX])
{
	size_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t len = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= len && n < CHANNEL_FDS_MAX;
		     at += sizeof(int))
			memcpy(&fds[n++], CMSG_DATA(c) + at, sizeof(int));
	}
	return n;
}

int channel_receive_fds(int sock_fd, struct fetchmsg *ret, int ret_fds[CHANNEL_FDS_MAX],
			size_t *ret_n_fds, struct error *err)
{
	static uint8_t packet[FETCHMSG_SIZE_MAX];
	union {
		char data[CMSG_SPACE(CHANNEL_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec io = { .iov_base = packet, .iov_len = sizeof(packet) };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	size_t n_fds;
	ssize_t n;
	int r;

	do {
		n = recvmsg(sock_fd, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return error_set(err, n < 0 ? -errno : -EPIPE, "receive a message");
	n_fds = channel_take_fds(&m, ret_fds);
	r = m.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ? error_set(err, -EBADMSG, "receive a message")
						   : fetchmsg_decode(ret, packet, (size_t)n, err);
	for (size_t i = 0; r < 0 && i < n_fds; i++)
		(void)fd_close(ret_fds[i]);
	*ret_n_fds = r < 0 ? 0 : n_fds;
	return r;
}

int channel_send(int sock_fd, const struct fetchmsg *m, struct error *err)
{
	static uint8_t packet[FETCHMSG_SIZE_MAX];
	ssize_t n;
	int len;

	len = fetchmsg_encode(m, packet, err);
	if (len < 0)
		return len;
	do {
		n = send(sock_fd, packet, (size_t)len, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? error_set(err, -errno, "send a message") : 0;
}

void channel_clean(char *text)
{
	str_clean(text);
	while (!str_is_utf8(text, strlen(text)))
		text[strlen(text) - 1] = '\0';
}

void channel_send_error(int sock_fd, const struct error *what)
{
	struct fetchmsg m = { .type = FETCHMSG_ERROR };
	char text[ERROR_TEXT_MAX];
	bool utf8;

	(void)str_copy(text, sizeof(text), error_text(what));
	utf8 = str_is_utf8(text, strlen(text));
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f || (!utf8 && (unsigned char)*p >= 0x80))
			*p = '?';
	m.error.kind = what->kind;
	m.error.code = what->code < 0 ? (uint32_t)-what->code : EIO;
	m.error.text = text;
	(void)channel_send(sock_fd, &m, NULL);
}
