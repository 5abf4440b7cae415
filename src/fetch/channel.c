/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/channel.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/str.h"

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
