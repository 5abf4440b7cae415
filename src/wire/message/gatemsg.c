/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A packet is {magic, type, length of the whole, 0} of four bytes each, and then the members in the
 * order of the table: numbers as four or eight bytes with the least first, keys and addresses as
 * they are, runs of bytes and texts behind a length of four bytes, texts with their NUL.
 */

#include "wire/message/gatemsg.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/text/str.h"

#define GATEMSG_MAGIC 0x3167636eU /* "ncg1" */
#define GATEMSG_FIELDS_MAX 6
#define GATE_SECONDS_MAX INT64_C(253402300799) /* the end of the year 9999, of X.509 */

enum gatemsg_kind { GM_END, GM_U32, GM_U64, GM_RAW, GM_BYTES, GM_TEXT };

struct gatemsg_field {
	enum gatemsg_kind kind;
	size_t offset;
	uint64_t min, max; /* of the value, or of its length */
	bool (*fits)(const char *text);
};

#define FIELD(member, k, lo, hi)                                                                   \
	{                                                                                          \
		k, offsetof(struct gatemsg, member), lo, hi, NULL                                  \
	}
#define TEXT(member, hi, check)                                                                    \
	{                                                                                          \
		GM_TEXT, offsetof(struct gatemsg, member), 0, hi, check                            \
	}
#define RAW(member, size) FIELD(member, GM_RAW, size, size)

static bool gatemsg_is_segment(const char *text)
{
	char id[SPIFFE_SIZE];

	return spiffe_format(id, "x", text, NULL, NULL) == 0;
}

static bool gatemsg_issue_fits(const struct gatemsg *m)
{
	return m->issue.not_before < m->issue.not_after;
}

static bool gatemsg_sign_fits(const struct gatemsg *m)
{
	return m->sign.not_before < m->sign.not_after;
}

static bool gatemsg_revoked_fits(const struct gatemsg *m)
{
	return m->revoked.serials.len % GATE_SERIAL_SIZE == 0;
}

static bool gatemsg_setup_fits(const struct gatemsg *m)
{
	return spiffe_same_domain(m->setup.own_id, m->setup.peer_id);
}

static bool gatemsg_denied_fits(const struct gatemsg *m)
{
	return *m->denied.text;
}

static bool gatemsg_caller_fits(const struct gatemsg *m)
{
	return *m->caller.refusal ||
	       (spiffe_is_id(m->caller.id) && spiffe_is_id(m->caller.instance_id));
}

static const struct {
	const char *name;
	struct gatemsg_field fields[GATEMSG_FIELDS_MAX + 1];
	bool (*fits)(const struct gatemsg *m);
} gatemsg_types[] = {
	[GATEMSG_CA] = { "ca",
			 { TEXT(ca.domain, SPIFFE_DOMAIN_MAX, spiffe_domain_is_valid),
			   TEXT(ca.node, SPIFFE_MAX, gatemsg_is_segment),
			   FIELD(ca.change, GM_U32, 0, GATE_CA_CHANGE_COUNT - 1),
			   FIELD(ca.given, GM_U32, 0, 1),
			   FIELD(ca.prepare, GM_U64, 0, UINT32_MAX) } },
	[GATEMSG_CA_READY] = { "ca-ready",
			       { FIELD(ca_ready.bundle, GM_BYTES, 1, GATE_BUNDLE_MAX),
				 FIELD(ca_ready.rotated_at, GM_U64, 0, GATE_SECONDS_MAX),
				 FIELD(ca_ready.active_at, GM_U64, 0, GATE_SECONDS_MAX) } },
	[GATEMSG_ISSUE] = { "issue",
			    { FIELD(issue.request, GM_U32, 1, UINT32_MAX),
			      RAW(issue.key, GATE_KEY_SIZE),
			      TEXT(issue.id, SPIFFE_MAX, spiffe_is_id),
			      FIELD(issue.not_before, GM_U64, 0, GATE_SECONDS_MAX),
			      FIELD(issue.not_after, GM_U64, 0, GATE_SECONDS_MAX) },
			    gatemsg_issue_fits },
	[GATEMSG_ISSUED] = { "issued",
			     { FIELD(issued.request, GM_U32, 1, UINT32_MAX),
			       FIELD(issued.chain, GM_BYTES, 1, GATE_CHAIN_MAX) } },
	[GATEMSG_DENIED] = { "denied",
			     { FIELD(denied.request, GM_U32, 0, UINT32_MAX),
			       TEXT(denied.text, ERROR_TEXT_MAX - 1, NULL) },
			     gatemsg_denied_fits },
	[GATEMSG_SETUP] = { "setup",
			    { TEXT(setup.own_id, SPIFFE_MAX, spiffe_is_id),
			      TEXT(setup.peer_id, SPIFFE_MAX, spiffe_is_id), RAW(setup.address, 4),
			      FIELD(setup.port, GM_U32, 1, UINT16_MAX - 1),
			      RAW(setup.token, GATE_TOKEN_SIZE),
			      FIELD(setup.bundle, GM_BYTES, 1, GATE_BUNDLE_MAX) },
			    gatemsg_setup_fits },
	[GATEMSG_STATE] = { "state",
			    { FIELD(state.state, GM_U32, 0, GATE_STATE_COUNT - 1),
			      FIELD(state.streams, GM_U32, 0, UINT16_MAX),
			      TEXT(state.text, ERROR_TEXT_MAX - 1, NULL) } },
	[GATEMSG_NEED] = { "need",
			   { FIELD(need.request, GM_U32, 1, UINT32_MAX),
			     FIELD(need.whose, GM_U32, 0, GATE_WHOSE_COUNT - 1),
			     RAW(need.key, GATE_KEY_SIZE) } },
	[GATEMSG_FRAME] = { "frame", { FIELD(frame.bytes, GM_BYTES, 4, BOOTMSG_FRAME_MAX) } },
	[GATEMSG_CONSOLE] = { "console", { { GM_END } } },
	[GATEMSG_CONSOLE_PART] = { "console-part",
				   { FIELD(console_part.total, GM_U64, 0, UINT64_MAX),
				     FIELD(console_part.last, GM_BYTES, 0, GATE_CONSOLE_MAX) } },
	[GATEMSG_NOTICE] = { "notice", { TEXT(notice.text, ERROR_TEXT_MAX - 1, NULL) } },
	[GATEMSG_END] = { "end", { { GM_END } } },
	[GATEMSG_KEY] = { "key", { RAW(key.key, GATE_KEY_SIZE) } },
	[GATEMSG_LIFE] = { "life",
			   { FIELD(life.chain, GM_BYTES, 1, GATE_CHAIN_MAX),
			     RAW(life.token, GATE_TOKEN_SIZE) } },
	[GATEMSG_KEPT] = { "kept", { { GM_END } } },
	[GATEMSG_SIGN] = { "sign",
			   { FIELD(sign.request, GM_U32, 1, UINT32_MAX),
			     FIELD(sign.spki, GM_BYTES, 1, GATE_SPKI_MAX),
			     TEXT(sign.id, SPIFFE_MAX, spiffe_is_id),
			     TEXT(sign.names, GATE_NAMES_MAX, NULL),
			     FIELD(sign.not_before, GM_U64, 0, GATE_SECONDS_MAX),
			     FIELD(sign.not_after, GM_U64, 0, GATE_SECONDS_MAX) },
			   gatemsg_sign_fits },
	[GATEMSG_SIGNED] = { "signed",
			     { FIELD(signed_.request, GM_U32, 1, UINT32_MAX),
			       RAW(signed_.serial, GATE_SERIAL_SIZE),
			       FIELD(signed_.chain, GM_BYTES, 1, GATE_CHAIN_MAX) } },
	[GATEMSG_FRONT] = { "front",
			    { TEXT(front.domain, SPIFFE_DOMAIN_MAX, spiffe_domain_is_valid),
			      FIELD(front.bundle, GM_BYTES, 1, GATE_BUNDLE_MAX) } },
	[GATEMSG_WANT] = { "want",
			   { FIELD(want.request, GM_U32, 1, UINT32_MAX),
			     FIELD(want.spki, GM_BYTES, 1, GATE_SPKI_MAX) } },
	[GATEMSG_REVOKED] = { "revoked",
			      { FIELD(revoked.serials, GM_BYTES, 0,
				      GATE_REVOKED_MAX *GATE_SERIAL_SIZE) },
			      gatemsg_revoked_fits },
	[GATEMSG_VISITOR] = { "visitor",
			      { TEXT(visitor.id, SPIFFE_MAX, spiffe_is_id),
				TEXT(visitor.address, GATE_ADDRESS_MAX, NULL),
				RAW(visitor.serial, GATE_SERIAL_SIZE),
				FIELD(visitor.not_after, GM_U64, 0, GATE_SECONDS_MAX) } },
	[GATEMSG_SCRAPE] = { "scrape", { { GM_END } } },
	[GATEMSG_CALLER] = { "caller",
			     { FIELD(caller.caller, GM_U32, 1, UINT32_MAX),
			       TEXT(caller.id, SPIFFE_MAX, NULL),
			       TEXT(caller.instance_id, SPIFFE_MAX, NULL),
			       TEXT(caller.refusal, ERROR_TEXT_MAX - 1, NULL) },
			     gatemsg_caller_fits },
	[GATEMSG_WISH] = { "wish",
			   { FIELD(wish.request, GM_U32, 1, UINT32_MAX),
			     FIELD(wish.caller, GM_U32, 1, UINT32_MAX),
			     FIELD(wish.whose, GM_U32, 0, GATE_SVID_COUNT - 1),
			     FIELD(wish.spki, GM_BYTES, 1, GATE_SPKI_MAX) } },
	[GATEMSG_PART] = { "part", { FIELD(part.caller, GM_U32, 1, UINT32_MAX) } },
	[GATEMSG_METADATA] = { "metadata",
			       { FIELD(metadata.caller, GM_U32, 1, UINT32_MAX),
				 FIELD(metadata.page, GM_BYTES, 0, GATE_PAGE_MAX) } },
	[GATEMSG_LISTEN] = { "listen", { FIELD(listen.caller, GM_U32, 1, UINT32_MAX) } },
};
static_assert(ARRAY_SIZE(gatemsg_types) == GATEMSG_TYPE_COUNT, "a row for each type");

struct gatemsg_header {
	uint32_t magic, type, len, zero;
};
static_assert(sizeof(struct gatemsg_header) == GATEMSG_HEADER_SIZE, "as the header file says");

static bool gatemsg_text_fits(const char *text, size_t len, const struct gatemsg_field *f)
{
	return len <= f->max && str_is_utf8(text, len) && str_is_clean(text) &&
	       (!f->fits || f->fits(text));
}

/* ---- encoding ---- */

struct gatemsg_out {
	uint8_t *packet;
	size_t len;
};

static bool gatemsg_put(struct gatemsg_out *o, const void *data, size_t len)
{
	if (len > GATEMSG_SIZE_MAX - o->len)
		return false;
	if (len > 0)
		memcpy(o->packet + o->len, data, len);
	o->len += len;
	return true;
}

static bool gatemsg_put_u32(struct gatemsg_out *o, uint32_t value)
{
	value = htole32(value);
	return gatemsg_put(o, &value, sizeof(value));
}

static bool gatemsg_put_u64(struct gatemsg_out *o, uint64_t value)
{
	value = htole64(value);
	return gatemsg_put(o, &value, sizeof(value));
}

static bool gatemsg_put_run(struct gatemsg_out *o, const void *data, size_t len)
{
	return len <= UINT32_MAX && gatemsg_put_u32(o, (uint32_t)len) && gatemsg_put(o, data, len);
}

static bool gatemsg_put_field(struct gatemsg_out *o, const struct gatemsg *m,
			      const struct gatemsg_field *f)
{
	const void *member = (const char *)m + f->offset;
	const struct gate_bytes *b = member;
	const char *text;

	switch (f->kind) {
	case GM_U32:
		return *(const uint32_t *)member >= f->min && *(const uint32_t *)member <= f->max &&
		       gatemsg_put_u32(o, *(const uint32_t *)member);
	case GM_U64:
		return *(const uint64_t *)member >= f->min && *(const uint64_t *)member <= f->max &&
		       gatemsg_put_u64(o, *(const uint64_t *)member);
	case GM_RAW:
		return gatemsg_put(o, member, f->max);
	case GM_BYTES:
		return b->len >= f->min && b->len <= f->max && gatemsg_put_run(o, b->data, b->len);
	case GM_TEXT:
		text = *(const char *const *)member;
		return gatemsg_text_fits(text, strlen(text), f) &&
		       gatemsg_put_run(o, text, strlen(text) + 1);
	case GM_END:
		break;
	}
	return false;
}

int gatemsg_encode(const struct gatemsg *m, uint8_t *packet, struct error *err)
{
	struct gatemsg_header h = { .magic = htole32(GATEMSG_MAGIC), .type = htole32(m->type) };
	struct gatemsg_out o = { .packet = packet, .len = sizeof(h) };
	const struct gatemsg_field *f = gatemsg_types[m->type].fields;

	for (size_t i = 0; f[i].kind != GM_END; i++)
		if (!gatemsg_put_field(&o, m, &f[i]))
			return error_refuse(err, ERROR_INVALID,
					    "member %zu of a message \"%s\" is out of bounds",
					    i + 1, gatemsg_types[m->type].name);
	if (gatemsg_types[m->type].fits && !gatemsg_types[m->type].fits(m))
		return error_refuse(err, ERROR_INVALID, "a message \"%s\" does not hold together",
				    gatemsg_types[m->type].name);
	h.len = htole32((uint32_t)o.len);
	memcpy(packet, &h, sizeof(h));
	return (int)o.len;
}

/* ---- decoding ---- */

struct gatemsg_in {
	const uint8_t *p, *end;
};

static bool gatemsg_get(struct gatemsg_in *in, void *to, size_t len)
{
	if ((size_t)(in->end - in->p) < len)
		return false;
	memcpy(to, in->p, len);
	in->p += len;
	return true;
}

/* A run of bytes, which stays where it is. */
static bool gatemsg_get_run(struct gatemsg_in *in, struct gate_bytes *ret)
{
	uint32_t len;

	if (!gatemsg_get(in, &len, sizeof(len)) || (size_t)(in->end - in->p) < le32toh(len))
		return false;
	*ret = (struct gate_bytes){ .data = in->p, .len = le32toh(len) };
	in->p += ret->len;
	return true;
}

static bool gatemsg_get_text(struct gatemsg_in *in, const char **ret, const struct gatemsg_field *f)
{
	struct gate_bytes run;

	if (!gatemsg_get_run(in, &run) || run.len == 0 ||
	    memchr(run.data, '\0', run.len) != run.data + run.len - 1)
		return false;
	*ret = (const char *)run.data;
	return gatemsg_text_fits(*ret, run.len - 1, f);
}

static bool gatemsg_get_field(struct gatemsg_in *in, struct gatemsg *m,
			      const struct gatemsg_field *f)
{
	void *member = (char *)m + f->offset;
	struct gate_bytes *b = member;
	uint32_t small;
	uint64_t number;

	switch (f->kind) {
	case GM_U32:
		if (!gatemsg_get(in, &small, sizeof(small)))
			return false;
		*(uint32_t *)member = le32toh(small);
		return le32toh(small) >= f->min && le32toh(small) <= f->max;
	case GM_U64:
		if (!gatemsg_get(in, &number, sizeof(number)))
			return false;
		*(uint64_t *)member = le64toh(number);
		return le64toh(number) >= f->min && le64toh(number) <= f->max;
	case GM_RAW:
		return gatemsg_get(in, member, f->max);
	case GM_BYTES:
		return gatemsg_get_run(in, b) && b->len >= f->min && b->len <= f->max;
	case GM_TEXT:
		return gatemsg_get_text(in, member, f);
	case GM_END:
		break;
	}
	return false;
}

/* 0, or -EBADMSG. */
static int gatemsg_header_read(struct gatemsg_header *ret, const uint8_t *data)
{
	struct gatemsg_header h;

	memcpy(&h, data, sizeof(h));
	h.type = le32toh(h.type);
	h.len = le32toh(h.len);
	if (le32toh(h.magic) != GATEMSG_MAGIC || h.zero != 0 || h.type >= GATEMSG_TYPE_COUNT ||
	    h.len < sizeof(h) || h.len > GATEMSG_SIZE_MAX)
		return -EBADMSG;
	*ret = h;
	return 0;
}

int gatemsg_length(const uint8_t *data, size_t len)
{
	struct gatemsg_header h;
	int r;

	if (len < sizeof(h))
		return 0;
	r = gatemsg_header_read(&h, data);
	return r < 0 ? r : (int)h.len;
}

int gatemsg_decode(struct gatemsg *ret, const uint8_t *packet, size_t len, struct error *err)
{
	struct gatemsg_in in = { .p = packet, .end = packet + len };
	struct gatemsg m = { .type = 0 };
	const struct gatemsg_field *f;
	struct gatemsg_header h;

	if (len < sizeof(h) || gatemsg_header_read(&h, packet) < 0 || h.len != len)
		return error_set(err, -EBADMSG, "the header of a message");
	m.type = h.type;
	in.p += sizeof(h);
	f = gatemsg_types[m.type].fields;
	for (size_t i = 0; f[i].kind != GM_END; i++)
		if (!gatemsg_get_field(&in, &m, &f[i]))
			return error_set(err, -EBADMSG, "member %zu of a message \"%s\"", i + 1,
					 gatemsg_types[m.type].name);
	if (in.p != in.end || (gatemsg_types[m.type].fits && !gatemsg_types[m.type].fits(&m)))
		return error_set(err, -EBADMSG, "a message \"%s\"", gatemsg_types[m.type].name);
	*ret = m;
	return 0;
}
