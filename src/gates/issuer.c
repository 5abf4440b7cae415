/* SPDX-License-Identifier: Apache-2.0 */
#include "gates/issuer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/list.h"
#include "base/text/str.h"
#include "gates/channel.h"

/* Questions that wait for an answer. */
#define ISSUER_QUESTIONS_MAX 1024

struct question {
	struct list siblings;
	issuer_done_fn done;
	issuer_signed_fn signed_done; /* in place of done: `wish` is what is asked */
	struct issuer_wish wish;
	char *names;
	uint8_t spki[GATE_SPKI_MAX];
	void *userdata;
	bool sent, wants_bundle;
	uint32_t request;
	uint8_t key[GATE_KEY_SIZE];
	char id[SPIFFE_SIZE];
	nsec_t life;
};

struct issuer {
	struct loop *loop;
	char *program, *domain, *node;
	char *key_path, *cert_path; /* NULL: no authority is given */
	unsigned prepare;
	int dir_fd;
	uid_t uid;
	gid_t gid;
	unsigned backdate;
	struct isolate_child child;
	struct loop_child watch;
	struct channel channel;
	bool running, ready;
	bool broken; /* whoever had asked was told */
	uint8_t bundle[GATE_BUNDLE_MAX];
	size_t bundle_len;
	struct issuer_rotation rotation;
	struct list watches;
	/* A change that is asked for; GATE_CA_KEEP: none. It is made when the process starts the
	 * next time, which `changing` says that it does for that. */
	enum gate_ca_change change;
	bool changing;
	issuer_done_fn changed;
	void *changed_userdata;
	struct list questions;
	unsigned n_questions;
	uint32_t last_request;
	struct loop_defer work;
};

/* ---- questions ---- */

static struct question *question_free(struct question *q)
{
	free(q->names);
	free(q);
	return NULL;
}

static void question_answer_signed(struct issuer *i, struct question *q,
				   const struct gate_bytes *chain, const uint8_t *serial,
				   const struct error *err)
{
	issuer_signed_fn done = q->signed_done;
	void *userdata = q->userdata;

	list_remove(&q->siblings);
	i->n_questions--;
	(void)question_free(q);
	done(userdata, chain, serial, err);
}

static void question_answer(struct issuer *i, struct question *q, const struct gate_bytes *bytes,
			    const struct error *err)
{
	issuer_done_fn done = q->done;
	void *userdata = q->userdata;

	if (q->signed_done) {
		question_answer_signed(i, q, NULL, NULL, err);
		return;
	}
	list_remove(&q->siblings);
	i->n_questions--;
	(void)question_free(q);
	done(userdata, bytes, err);
}

/* Whoever is answered may ask again, which is not answered here. */
static void issuer_fail_all(struct issuer *i, const struct error *err)
{
	for (unsigned n = i->n_questions; n > 0 && i->n_questions > 0; n--)
		question_answer(i, list_first(&i->questions, struct question, siblings), NULL, err);
}

static struct question *issuer_find(const struct issuer *i, uint32_t request)
{
	struct question *q;

	list_for_each (q, &i->questions, struct question, siblings)
		if (q->sent && q->request == request)
			return q;
	return NULL;
}

/* ---- changes of the authority ---- */

static void issuer_change_over(struct issuer *i, const struct error *err)
{
	const struct gate_bytes bundle = { i->bundle, i->bundle_len };
	issuer_done_fn done = i->changed;

	i->change = GATE_CA_KEEP;
	i->changing = false;
	i->changed = NULL;
	if (done)
		done(i->changed_userdata, err ? NULL : &bundle, err);
}

static bool issuer_has_sent(const struct issuer *i)
{
	const struct question *q;

	list_for_each (q, (struct list *)(uintptr_t)&i->questions, struct question, siblings)
		if (q->sent)
			return true;
	return false;
}

/* Whoever is told may take itself or another one out: each is moved behind, and told once. */
static void issuer_tell_watches(struct issuer *i)
{
	const struct gate_bytes bundle = { i->bundle, i->bundle_len };
	struct list told;
	struct issuer_watch *w;

	list_init(&told);
	while (!list_empty(&i->watches)) {
		w = list_first(&i->watches, struct issuer_watch, siblings);
		list_remove(&w->siblings);
		list_add_tail(&told, &w->siblings);
		w->on_bundle(w, &bundle);
	}
	while (!list_empty(&told)) {
		w = list_first(&told, struct issuer_watch, siblings);
		list_remove(&w->siblings);
		list_add_tail(&i->watches, &w->siblings);
	}
}

static void issuer_take_ready(struct issuer *i, const struct gatemsg *m)
{
	const struct gate_bytes *b = &m->ca_ready.bundle;
	bool differs = i->bundle_len > 0 &&
		       (b->len != i->bundle_len || memcmp(b->data, i->bundle, b->len) != 0);

	memcpy(i->bundle, b->data, b->len);
	i->bundle_len = b->len;
	i->rotation = (struct issuer_rotation){ m->ca_ready.rotated_at, m->ca_ready.active_at };
	i->ready = true;
	loop_defer_schedule(&i->work);
	if (differs)
		issuer_tell_watches(i);
	if (i->changing)
		issuer_change_over(i, NULL);
}

/* ---- the process ---- */

static void issuer_release(struct issuer *i)
{
	channel_done(&i->channel);
	loop_child_done(&i->watch);
	isolate_child_done(&i->child);
	i->running = i->ready = i->broken = false;
}

static void issuer_broken(struct issuer *i, const struct error *err)
{
	struct error why = ERROR_INIT;

	(void)error_copy(&why, err);
	(void)error_wrap(&why, why.code, "the certificate authority of this node");
	/* It ends with its socket; the zombie is reaped by the watch, which stays until then. */
	channel_done(&i->channel);
	if (i->running)
		(void)pidfd_kill(i->child.pidfd, SIGKILL);
	i->ready = false;
	i->broken = true;
	/* What was to be changed is refused, and the next process goes on with what was there. */
	if (i->changing)
		issuer_change_over(i, &why);
	else
		issuer_fail_all(i, &why);
}

/* For a change: it ends with its socket, and nobody waits for an answer. */
static void issuer_end_process(struct issuer *i)
{
	channel_done(&i->channel);
	i->ready = false;
	i->broken = true;
}

static void issuer_child_end(struct loop_child *watch, int code, int status)
{
	struct issuer *i = container_of(watch, struct issuer, watch);
	struct error err = ERROR_INIT;
	int exit_code;

	/* What it had to say comes first. */
	channel_drain(&i->channel);
	if (!i->broken) {
		if (isolate_child_report(&i->child, &exit_code, &err) == 0)
			(void)error_refuse(&err, ERROR_FAULT, "it ended (%s %d)",
					   code == CLD_EXITED ? "status" : "signal", status);
		issuer_broken(i, &err);
	}
	issuer_release(i);
	if (i->n_questions > 0 || i->change)
		loop_defer_schedule(&i->work);
}

static void issuer_take_denied(struct issuer *i, const struct gatemsg *m)
{
	struct question *q = issuer_find(i, m->denied.request);
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_PRECONDITION, "%.480s", m->denied.text);
	if (m->denied.request == 0)
		issuer_broken(i, &err);
	else if (q)
		question_answer(i, q, NULL, &err);
}

static void issuer_message(struct channel *c, const struct gatemsg *m)
{
	struct issuer *i = container_of(c, struct issuer, channel);
	struct question *q;

	if (m->type == GATEMSG_CA_READY && !i->ready) {
		issuer_take_ready(i, m);
	} else if (m->type == GATEMSG_ISSUED) {
		q = issuer_find(i, m->issued.request);
		if (q && !q->signed_done)
			question_answer(i, q, &m->issued.chain, NULL);
	} else if (m->type == GATEMSG_SIGNED) {
		q = issuer_find(i, m->signed_.request);
		if (q && q->signed_done)
			question_answer_signed(i, q, &m->signed_.chain, m->signed_.serial, NULL);
	} else if (m->type == GATEMSG_DENIED) {
		issuer_take_denied(i, m);
	}
	if (i->change)
		loop_defer_schedule(&i->work);
}

static void issuer_channel_end(struct channel *c, const struct error *err)
{
	struct issuer *i = container_of(c, struct issuer, channel);

	/* How it ended says more, and comes at once. */
	if (err->code == -EPIPE || err->code == -ECONNRESET)
		channel_done(c);
	else
		issuer_broken(i, err);
}

/* What stands in it is for the process alone. */
static int issuer_open_given(const char *path, const char *key, struct error *err)
{
	int fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);

	return fd < 0 ? error_set(err, -errno, "open %s (%s)", path, key) : fd;
}

static int issuer_spawn(struct issuer *i, int sock_fd, struct error *err)
{
	int fds[] = { sock_fd, i->dir_fd, -1, -1 };
	_cleanup_fd_ int key_fd = -1, cert_fd = -1;

	if (i->key_path) {
		key_fd = issuer_open_given(i->key_path, "identity.ca_key", err);
		if (key_fd < 0)
			return key_fd;
		cert_fd = issuer_open_given(i->cert_path, "identity.ca_certificate", err);
		if (cert_fd < 0)
			return cert_fd;
		fds[2] = key_fd;
		fds[3] = cert_fd;
	}
	return channel_spawn_role(i->program, "ca", i->uid, i->gid, fds, i->key_path ? 4 : 2,
				  &i->child, err);
}

static int issuer_start(struct issuer *i, struct error *err)
{
	static const struct channel_ops ops = { .on_message = issuer_message,
						.on_end = issuer_channel_end };
	const struct gatemsg begin = { .type = GATEMSG_CA,
				       .ca = { .domain = i->domain,
					       .node = i->node,
					       .change = i->change,
					       .given = i->key_path != NULL,
					       .prepare = i->prepare } };
	_cleanup_fd_ int ours = -1, theirs = -1;
	int r = channel_pair(&ours, &theirs, err);

	if (r < 0)
		return r;
	r = issuer_spawn(i, theirs, err);
	if (r < 0)
		return r;
	i->running = true;
	i->changing = i->change != GATE_CA_KEEP;
	loop_child_init(&i->watch, i->loop, i->child.pidfd, issuer_child_end);
	channel_init(&i->channel, i->loop, TAKE_FD(ours), &ops);
	r = channel_send(&i->channel, &begin, err);
	if (r < 0)
		issuer_broken(i, err);
	return 0;
}

static int issuer_ask_wish(struct issuer *i, struct question *q, struct error *err)
{
	const struct gatemsg m = { .type = GATEMSG_SIGN,
				   .sign = { .request = q->request,
					     .spki = { q->spki, q->wish.spki.len },
					     .id = q->id,
					     .names = q->names,
					     .not_before = q->wish.not_before,
					     .not_after = q->wish.not_after } };
	int r = channel_send(&i->channel, &m, err);

	q->sent = r == 0;
	return r;
}

static int issuer_ask(struct issuer *i, struct question *q, struct error *err)
{
	uint64_t now = clock_real() / NSEC_PER_SEC;
	struct gatemsg m = { .type = GATEMSG_ISSUE };
	int r;

	if (++i->last_request == 0)
		i->last_request = 1;
	q->request = i->last_request;
	if (q->signed_done)
		return issuer_ask_wish(i, q, err);
	m.issue.request = q->request;
	m.issue.id = q->id;
	m.issue.not_before = now - (i->backdate ?: ISSUER_BACKDATE_SECONDS);
	m.issue.not_after = now + q->life / NSEC_PER_SEC;
	memcpy(m.issue.key, q->key, GATE_KEY_SIZE);
	r = channel_send(&i->channel, &m, err);
	q->sent = r == 0;
	return r;
}

/* Sends what has not been sent. Returns the first that can be answered at once: by the bundle, or
 * with err. */
static struct question *issuer_next(struct issuer *i, struct error *err)
{
	struct question *q;

	list_for_each (q, &i->questions, struct question, siblings)
		if (q->wants_bundle || (!q->sent && issuer_ask(i, q, err) < 0))
			return q;
	return NULL;
}

/* Sends what has not been sent, and answers what is known. */
static void issuer_work(struct loop_defer *d)
{
	struct issuer *i = container_of(d, struct issuer, work);
	const struct gate_bytes bundle = { i->bundle, i->bundle_len };
	struct error err = ERROR_INIT;
	struct question *q;

	if (list_empty(&i->questions) && !i->change)
		return;
	/* The end of the one before is still to come, and leads here. */
	if (i->running && i->channel.fd < 0)
		return;
	if (!i->running && issuer_start(i, &err) < 0) {
		if (i->change)
			issuer_change_over(i, &err);
		issuer_fail_all(i, &err);
		return;
	}
	if (!i->ready)
		return;
	/* Nothing more is asked until it has been answered and has ended. */
	if (i->change && !i->changing) {
		if (!issuer_has_sent(i))
			issuer_end_process(i);
		return;
	}
	q = issuer_next(i, &err);
	if (!q)
		return;
	/* One at a time: whoever is answered may take back what is behind it. */
	loop_defer_schedule(&i->work);
	if (q->wants_bundle)
		question_answer(i, q, &bundle, NULL);
	else
		question_answer(i, q, NULL, &err);
}

/* ---- the interface ---- */

int issuer_new(struct issuer **ret, const struct issuer_config *config, struct error *err)
{
	struct issuer *i = calloc(1, sizeof(*i));

	if (!i)
		return error_set(err, -ENOMEM, "make an issuer");
	i->loop = config->loop;
	i->uid = config->uid;
	i->gid = config->gid;
	i->backdate = config->backdate;
	i->child = (struct isolate_child)ISOLATE_CHILD_INIT;
	i->channel = (struct channel)CHANNEL_INIT;
	i->prepare = config->prepare;
	list_init(&i->questions);
	list_init(&i->watches);
	loop_defer_init(&i->work, i->loop, issuer_work);
	i->program = strdup(config->program);
	i->domain = strdup(config->domain);
	i->node = strdup(config->node);
	i->dir_fd = fd_copy(config->dir_fd);
	i->key_path = config->key_path ? strdup(config->key_path) : NULL;
	i->cert_path = config->key_path ? strdup(config->cert_path) : NULL;
	if (!i->key_path != !config->key_path || !i->cert_path != !config->key_path ||
	    !i->program || !i->domain || !i->node || i->dir_fd < 0) {
		(void)issuer_free(i);
		return error_set(err, -ENOMEM, "make an issuer");
	}
	*ret = i;
	return 0;
}

struct issuer *issuer_free(struct issuer *i)
{
	struct issuer_watch *w;
	struct question *q;

	if (!i)
		return NULL;
	list_for_each (w, &i->watches, struct issuer_watch, siblings)
		issuer_unwatch(w);
	list_for_each (q, &i->questions, struct question, siblings)
		(void)question_free(q);
	loop_defer_done(&i->work);
	if (i->running) {
		(void)pidfd_kill(i->child.pidfd, SIGKILL);
		issuer_release(i);
	}
	free(i->program);
	free(i->domain);
	free(i->node);
	free(i->key_path);
	free(i->cert_path);
	i->dir_fd = fd_close(i->dir_fd);
	free(i);
	return NULL;
}

static int issuer_add(struct issuer *i, const struct question *from)
{
	struct question *q;

	if (i->n_questions == ISSUER_QUESTIONS_MAX)
		return -ENOBUFS;
	q = malloc(sizeof(*q));
	if (!q)
		return -ENOMEM;
	*q = *from;
	list_init(&q->siblings);
	list_add_tail(&i->questions, &q->siblings);
	i->n_questions++;
	loop_defer_schedule(&i->work);
	return 0;
}

int issuer_bundle(struct issuer *i, issuer_done_fn done, void *userdata)
{
	const struct question q = { .done = done, .userdata = userdata, .wants_bundle = true };

	return issuer_add(i, &q);
}

int issuer_sign(struct issuer *i, const uint8_t key[GATE_KEY_SIZE], const char *id, nsec_t life,
		issuer_done_fn done, void *userdata)
{
	struct question q = { .done = done, .userdata = userdata, .life = life };
	int r = str_copy(q.id, sizeof(q.id), id);

	memcpy(q.key, key, GATE_KEY_SIZE);
	return r < 0 ? r : issuer_add(i, &q);
}

int issuer_sign_wish(struct issuer *i, const struct issuer_wish *wish, issuer_signed_fn done,
		     void *userdata)
{
	struct question q = { .signed_done = done, .userdata = userdata, .wish = *wish };
	int r = str_copy(q.id, sizeof(q.id), wish->id);

	if (r < 0 || wish->spki.len > sizeof(q.spki))
		return -EINVAL;
	memcpy(q.spki, wish->spki.data, wish->spki.len);
	q.names = strdup(wish->names);
	if (!q.names)
		return -ENOMEM;
	r = issuer_add(i, &q);
	if (r < 0)
		free(q.names);
	return r;
}

static int issuer_begin_change(struct issuer *i, enum gate_ca_change change, issuer_done_fn done,
			       void *userdata)
{
	if (i->change)
		return -EBUSY;
	i->change = change;
	i->changed = done;
	i->changed_userdata = userdata;
	loop_defer_schedule(&i->work);
	return 0;
}

int issuer_rotate(struct issuer *i, issuer_done_fn done, void *userdata)
{
	return issuer_begin_change(i, GATE_CA_ROTATE, done, userdata);
}

int issuer_retire(struct issuer *i, issuer_done_fn done, void *userdata)
{
	return issuer_begin_change(i, GATE_CA_RETIRE, done, userdata);
}

struct issuer_rotation issuer_rotation(const struct issuer *i)
{
	return i->rotation;
}

void issuer_watch(struct issuer *i, struct issuer_watch *w,
		  void (*on_bundle)(struct issuer_watch *w, const struct gate_bytes *bundle))
{
	w->on_bundle = on_bundle;
	list_init(&w->siblings);
	list_add_tail(&i->watches, &w->siblings);
}

void issuer_unwatch(struct issuer_watch *w)
{
	if (!w->on_bundle)
		return;
	list_remove(&w->siblings);
	w->on_bundle = NULL;
}

const char *issuer_domain(const struct issuer *i)
{
	return i->domain;
}

void issuer_forget(struct issuer *i, const void *userdata)
{
	struct question *q;

	list_for_each (q, &i->questions, struct question, siblings) {
		if (q->userdata != userdata)
			continue;
		list_remove(&q->siblings);
		i->n_questions--;
		(void)question_free(q);
	}
}

int issuer_node_id(const struct issuer *i, char ret[SPIFFE_SIZE], struct error *err)
{
	return spiffe_format(ret, i->domain, i->node, NULL, err);
}

int issuer_instance_id(const struct issuer *i, const char *instance, char ret[SPIFFE_SIZE],
		       struct error *err)
{
	return spiffe_format(ret, i->domain, i->node, instance, err);
}
