/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/ca_role.h"

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "gate/drop.h"
#include "gate/gate_identity.h"
#include "identity/ca.h"
#include "wire/message/gatemsg.h"

static uint8_t ca_packet[GATEMSG_SIZE_MAX];

/* 1 with a message, 0 at the end of the connection. */
static int ca_receive(struct gatemsg *ret, struct error *err)
{
	ssize_t n;
	int r;

	do {
		n = recv(CA_FD_SOCKET, ca_packet, sizeof(ca_packet), MSG_TRUNC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_set(err, -errno, "receive a message");
	if (n == 0)
		return 0;
	if ((size_t)n > sizeof(ca_packet))
		return error_set(err, -EMSGSIZE, "receive a message");
	r = gatemsg_decode(ret, ca_packet, (size_t)n, err);
	return r < 0 ? r : 1;
}

static int ca_send(const struct gatemsg *m, struct error *err)
{
	static uint8_t packet[GATEMSG_SIZE_MAX];
	int len = gatemsg_encode(m, packet, err);

	if (len < 0)
		return len;
	if (send(CA_FD_SOCKET, packet, (size_t)len, MSG_NOSIGNAL) != len)
		return error_set(err, -errno, "send a message");
	return 0;
}

static int ca_deny(uint32_t request, const struct error *why, struct error *err)
{
	const struct gatemsg m = { .type = GATEMSG_DENIED,
				   .denied = { .request = request, .text = error_text(why) } };

	return ca_send(&m, err);
}

static int ca_sign(const struct ca *ca, const struct gatemsg *m, struct error *err)
{
	const struct cert_request q = { .spki = m->sign.spki.data,
					.spki_len = m->sign.spki.len,
					.id = m->sign.id,
					.names = *m->sign.names ? m->sign.names : NULL,
					.not_before = m->sign.not_before,
					.not_after = m->sign.not_after };
	struct gatemsg answer = { .type = GATEMSG_SIGNED,
				  .signed_ = { .request = m->sign.request } };
	struct error why = ERROR_INIT;
	struct cert c;

	if (ca_issue(ca, &q, gate_identity_now(), &c, &why) < 0 ||
	    cert_serial_of(&c, answer.signed_.serial, &why) < 0)
		return ca_deny(m->sign.request, &why, err);
	answer.signed_.chain = (struct gate_bytes){ .data = c.der, .len = c.len };
	return ca_send(&answer, err);
}

static int ca_answer(const struct ca *ca, const struct gatemsg *m, struct error *err)
{
	const struct cert_request q = { .key = m->issue.key,
					.id = m->issue.id,
					.not_before = m->issue.not_before,
					.not_after = m->issue.not_after };
	struct gatemsg answer = { .type = GATEMSG_ISSUED,
				  .issued = { .request = m->issue.request } };
	struct error why = ERROR_INIT;
	struct cert c;

	if (m->type == GATEMSG_SIGN)
		return ca_sign(ca, m, err);
	if (m->type != GATEMSG_ISSUE)
		return error_set(err, -EPROTO, "a message for a certificate authority");
	if (ca_issue(ca, &q, gate_identity_now(), &c, &why) < 0)
		return ca_deny(m->issue.request, &why, err);
	answer.issued.chain = (struct gate_bytes){ .data = c.der, .len = c.len };
	return ca_send(&answer, err);
}

static int ca_begin(struct ca **ret, uid_t uid, gid_t gid, struct error *err)
{
	struct ca_config config = { .dir_fd = CA_FD_DIR,
				    .now = gate_identity_now(),
				    .key_fd = CA_FD_KEY,
				    .cert_fd = CA_FD_CERT };
	struct gatemsg m, ready = { .type = GATEMSG_CA_READY };
	struct error why = ERROR_INIT;
	int r;

	r = ca_receive(&m, err);
	if (r <= 0)
		return r < 0 ? r : -EPIPE;
	if (m.type != GATEMSG_CA)
		return error_set(err, -EPROTO, "a message for a certificate authority");
	config.domain = m.ca.domain;
	config.node = m.ca.node;
	config.change = (enum ca_change)m.ca.change;
	config.prepare = m.ca.prepare;
	config.given = m.ca.given;
	r = ca_open(ret, &config, &why);
	(void)close(CA_FD_DIR);
	if (config.given) {
		(void)close(CA_FD_KEY);
		(void)close(CA_FD_CERT);
	}
	if (r == 0)
		r = drop_privilege(DROP_CA, uid, gid, &why);
	if (r < 0) {
		(void)ca_deny(0, &why, NULL);
		return error_copy(err, &why);
	}
	ready.ca_ready.bundle.data = ca_bundle(*ret, &ready.ca_ready.bundle.len);
	ready.ca_ready.rotated_at = ca_rotated_at(*ret);
	ready.ca_ready.active_at = ca_active_at(*ret);
	return ca_send(&ready, err);
}

int ca_role_run(uid_t uid, gid_t gid, struct error *err)
{
	_cleanup_(ca_freep) struct ca *ca = NULL;
	struct gatemsg m;
	int r = ca_begin(&ca, uid, gid, err);

	if (r == -EPIPE)
		return 0;
	while (r >= 0) {
		r = ca_receive(&m, err);
		if (r <= 0)
			return r;
		r = ca_answer(ca, &m, err);
	}
	return r;
}
