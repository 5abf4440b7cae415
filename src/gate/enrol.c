/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/enrol.h"

#include <errno.h>
#include <string.h>

void enrol_init(struct enrol *e, struct loop *loop, nsec_t patience, const struct enrol_ops *ops)
{
	*e = (struct enrol){ .ops = ops,
			     .loop = loop,
			     .patience = patience,
			     .handshake = HANDSHAKE_INIT,
			     .talk = TALK_INIT };
}

void enrol_stop(struct enrol *e)
{
	handshake_done(&e->handshake);
	talk_done(&e->talk);
	e->active = e->connected = e->asked = e->answered = e->kept = false;
}

static void enrol_end(struct enrol *e, const struct error *err)
{
	bool secured = e->connected;
	struct error why = ERROR_INIT;

	(void)error_copy(&why, err);
	if (!err && !e->kept)
		(void)error_set(&why, -EPIPE, "the guest hung up");
	enrol_stop(e);
	e->ops->on_end(e, secured, why.code ? &why : NULL);
}

static int enrol_message(struct talk *t, const struct gatemsg *m, struct error *err)
{
	struct enrol *e = container_of(t, struct enrol, talk);

	if (m->type == GATEMSG_KEY && !e->asked) {
		e->asked = true;
		e->ops->on_key(e, m->key.key);
		return 0;
	}
	if (m->type != GATEMSG_KEPT || !e->answered || e->kept)
		return error_set(err, -EPROTO, "what the guest says in its enrolment");
	e->kept = true;
	talk_finish(t);
	return 0;
}

static void enrol_talk_end(struct talk *t, const struct error *err)
{
	enrol_end(container_of(t, struct enrol, talk), err);
}

static void enrol_secured(struct handshake *s, const struct error *err)
{
	static const struct talk_ops ops = { .on_message = enrol_message,
					     .on_end = enrol_talk_end };
	struct enrol *e = container_of(s, struct enrol, handshake);
	struct tls *tls;
	int fd;

	if (err) {
		/* A refused connection is no word of the guest's; a refused handshake is. */
		e->connected = err->code == -EPROTO || err->code == -EACCES;
		enrol_end(e, err);
		return;
	}
	e->connected = true;
	handshake_take(s, &fd, &tls);
	talk_init(&e->talk, e->loop, fd, tls, &ops);
}

void enrol_start(struct enrol *e, int fd, struct tls *tls)
{
	e->active = true;
	handshake_init(&e->handshake, e->loop, fd, tls, e->patience, enrol_secured);
}

void enrol_answer(struct enrol *e, const struct gate_bytes *chain,
		  const uint8_t token[GATE_TOKEN_SIZE])
{
	struct gatemsg m = { .type = GATEMSG_LIFE };
	struct error err = ERROR_INIT;
	int r = 0;

	if (!e->asked || e->answered)
		return;
	e->answered = true;
	if (!chain) {
		r = error_refuse(&err, ERROR_DENIED, "there is no certificate for the guest");
	} else {
		m.life.chain = *chain;
		memcpy(m.life.token, token, sizeof(m.life.token));
		r = talk_send(&e->talk, &m, &err);
	}
	if (r < 0)
		enrol_end(e, &err);
}
