/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/pod_svid.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/macros.h"
#include "base/memory/arena.h"
#include "identity/cert.h"
#include "identity/key.h"
#include "wire/document/jsonwrite.h"
#include "wire/format/base64.h"

#define PEM_LINE 64
/* For the daemon to sign. */
#define POD_SVID_PATIENCE (5 * NSEC_PER_SEC)

/* ---- the text ---- */

/* The length of the certificate at the front of DER; 0: it is none. */
static size_t der_length(const uint8_t *der, size_t len)
{
	size_t n, head;

	if (len < 4 || der[0] != 0x30)
		return 0;
	head = der[1] < 0x80 ? 2 : der[1] == 0x81 ? 3 : der[1] == 0x82 ? 4 : 0;
	if (!head)
		return 0;
	n = head == 2 ? der[1] : head == 3 ? der[2] : (size_t)der[2] << 8 | der[3];
	return n <= len - head ? head + n : 0;
}

static int pem_put(struct buf *b, const uint8_t *der, size_t len)
{
	struct arena a = ARENA_INIT;
	const char *line = base64_encode(&a, der, len);
	int r = line ? buf_add_str(b, "-----BEGIN CERTIFICATE-----\n") : -ENOMEM;

	for (size_t n; r == 0 && *line; line += n) {
		n = MIN(strlen(line), (size_t)PEM_LINE);
		r = buf_addf(b, "%.*s\n", (int)n, line);
	}
	arena_done(&a);
	return r == 0 ? buf_add_str(b, "-----END CERTIFICATE-----\n") : r;
}

/* A member: certificates in DER, one behind the other, in PEM. */
static int text_put_certs(struct buf *b, const char *name, const struct gate_bytes *der)
{
	_cleanup_(buf_done) struct buf pem = BUF_INIT;
	int r = json_write_name(b, name);

	for (size_t at = 0, n; r == 0 && at < der->len; at += n) {
		n = der_length(der->data + at, der->len - at);
		r = n > 0 ? pem_put(&pem, der->data + at, n) : -EBADMSG;
	}
	if (r == 0)
		r = buf_add(&pem, "", 1);
	return r == 0 ? json_write_text(b, (const char *)buf_data(&pem)) : r;
}

static int text_put_key(struct buf *b, const struct key *k)
{
	char pem[KEY_PEM_MAX];
	int r = key_pem(k, pem, NULL);

	if (r == 0)
		r = json_write_name(b, "x509_svid_key");
	if (r == 0)
		r = json_write_text(b, pem);
	key_wipe(pem, sizeof(pem));
	return r;
}

static void pod_svid_clear(struct pod_svid *s)
{
	if (s->text.base)
		key_wipe(s->text.base, s->text.size);
	buf_done(&s->text);
	s->text = (struct buf)BUF_INIT;
}

static int pod_svid_write(struct pod_svid *s, const struct gate_bytes *chain)
{
	const struct gate_bytes bundle = { buf_data(&s->all->bundle), s->all->bundle.len };
	uint64_t begin, end;
	int r = cert_check_key(chain->data, der_length(chain->data, chain->len), s->key, NULL);

	if (r == 0)
		r = cert_times(chain->data, der_length(chain->data, chain->len), &begin, &end,
			       NULL);
	pod_svid_clear(s);
	if (r == 0)
		r = buf_add_str(&s->text, "{");
	if (r == 0)
		r = text_put_certs(&s->text, "x509_svid", chain);
	if (r == 0)
		r = text_put_key(&s->text, s->key);
	if (r == 0)
		r = text_put_certs(&s->text, "bundle", &bundle);
	if (r == 0)
		r = json_write_name(&s->text, "expires_at");
	if (r == 0)
		r = buf_addf(&s->text, "%" PRIu64 "}\n", end);
	if (r < 0)
		pod_svid_clear(s);
	return r;
}

/* ---- asking ---- */

static void pod_svid_end(struct pod_svid *s, bool well)
{
	s->request = 0;
	s->key = key_free(s->key);
	loop_timer_stop(&s->patience);
	s->until = well ? clock_mono() + POD_SVID_FRESH : 0;
	s->on_text(s, well ? &s->text : NULL);
}

static void pod_svid_patience_over(struct loop_timer *t)
{
	pod_svid_end(container_of(t, struct pod_svid, patience), false);
}

static struct pod_svid *pod_svids_waiting(const struct pod_svids *all, uint32_t request)
{
	struct pod_svid *s;

	list_for_each (s, (struct list *)(uintptr_t)&all->all, struct pod_svid, siblings)
		if (s->request == request)
			return s;
	return NULL;
}

void pod_svids_signed(struct pod_svids *all, const struct gatemsg *m)
{
	struct pod_svid *s = pod_svids_waiting(all, m->signed_.request);

	if (s)
		pod_svid_end(s, pod_svid_write(s, &m->signed_.chain) == 0);
}

void pod_svids_denied(struct pod_svids *all, const struct gatemsg *m)
{
	struct pod_svid *s = pod_svids_waiting(all, m->denied.request);

	if (s)
		pod_svid_end(s, false);
}

const struct buf *pod_svid_get(struct pod_svid *s, uint32_t number)
{
	struct pod_svids *all = s->all;
	uint8_t spki[KEY_SPKI_MAX];
	struct gatemsg m = { .type = GATEMSG_WISH,
			     .wish = { .caller = number, .whose = GATE_SVID_STABLE } };
	int len;

	if (s->text.len > 0 && clock_mono() < s->until)
		return &s->text;
	if (s->request)
		return NULL;
	len = all->bundle.len == 0 || key_new_user(&s->key, NULL) < 0
		      ? -EAGAIN
		      : key_spki(s->key, spki, NULL);
	if (len < 0) {
		pod_svid_end(s, false);
		return NULL;
	}
	if (++all->last_request == 0)
		all->last_request = 1;
	s->request = m.wish.request = all->last_request;
	m.wish.spki = (struct gate_bytes){ spki, (size_t)len };
	loop_timer_set(&s->patience, POD_SVID_PATIENCE);
	all->tell(all->userdata, &m);
	return NULL;
}

/* ---- the interface ---- */

void pod_svids_init(struct pod_svids *all, struct loop *loop,
		    void (*tell)(void *userdata, const struct gatemsg *m), void *userdata)
{
	*all = (struct pod_svids){ .loop = loop, .tell = tell, .userdata = userdata };
	list_init(&all->all);
}

int pod_svids_know(struct pod_svids *all, const struct gate_bytes *bundle)
{
	struct pod_svid *s;

	list_for_each (s, &all->all, struct pod_svid, siblings)
		s->until = 0;
	buf_clear(&all->bundle);
	return buf_add(&all->bundle, bundle->data, bundle->len);
}

void pod_svid_init(struct pod_svid *s, struct pod_svids *all,
		   void (*on_text)(struct pod_svid *s, const struct buf *text))
{
	*s = (struct pod_svid){ .all = all, .on_text = on_text, .text = BUF_INIT };
	list_init(&s->siblings);
	list_add_tail(&all->all, &s->siblings);
	loop_timer_init(&s->patience, all->loop, pod_svid_patience_over);
}

void pod_svid_done(struct pod_svid *s)
{
	list_remove(&s->siblings);
	loop_timer_done(&s->patience);
	s->key = key_free(s->key);
	pod_svid_clear(s);
}
