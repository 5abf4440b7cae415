/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A body is {magic of four bytes, version of two, type of two} and then its members: {tag of two,
 * length of two, value}. All of a type's members are there, in the order of the table, each once
 * but the certificates. Numbers have their least byte first. Texts carry their NUL, so that they
 * can be used where they lie.
 */

#include "wire/message/bootmsg.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/text/str.h"

#define BOOTMSG_MAGIC 0x0062636eU /* "ncb" */
#define BOOTMSG_FIELDS_MAX 14

enum boot_kind { BOOT_END, BOOT_U32, BOOT_U64, BOOT_BYTES, BOOT_BLOB, BOOT_TEXT, BOOT_LIST };

struct boot_field {
	enum boot_kind kind;
	const char *name;
	size_t offset;
	uint64_t min, max; /* of the value, or of its length */
	bool (*fits)(const char *text);
};

static bool boot_is_id(const char *text)
{
	return strlen(text) == ID_LEN && strspn(text, "0123456789abcdef") == ID_LEN;
}

static bool boot_is_spiffe(const char *text)
{
	static const char scheme[] = "spiffe://";
	const char *rest = text + strlen(scheme);

	if (!str_has_prefix(text, scheme) || *rest == '\0' || *rest == '/')
		return false;
	return rest[strspn(rest,
			   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/")] ==
	       '\0';
}

#define FIELD(member, k, lo, hi)                                                                   \
	{                                                                                          \
		k, #member, offsetof(struct bootmsg, member), lo, hi, NULL                         \
	}
#define TEXT(member, hi, check)                                                                    \
	{                                                                                          \
		BOOT_TEXT, #member, offsetof(struct bootmsg, member), 1, hi, check                 \
	}

/* The tag of a member is its place in its row, from 1. */
static const struct boot_field boot_types[][BOOTMSG_FIELDS_MAX + 1] = {
	[BOOTMSG_BOOT] = {
		FIELD(boot.entropy, BOOT_BLOB, BOOTMSG_ENTROPY_MIN, BOOTMSG_ENTROPY_MAX),
		FIELD(boot.wall_clock_ns, BOOT_U64, 0, INT64_MAX),
		TEXT(boot.hostname, NAME_LABEL_MAX, name_is_label),
		TEXT(boot.title, NAME_PATH_MAX, name_is_path),
		TEXT(boot.instance_id, ID_LEN, boot_is_id),
		FIELD(boot.address, BOOT_BYTES, 4, 4),
		FIELD(boot.prefix, BOOT_U32, 1, 32),
		FIELD(boot.gateway, BOOT_BYTES, 4, 4),
		FIELD(boot.mac, BOOT_BYTES, 6, 6),
		FIELD(boot.mtu, BOOT_U32, BOOTMSG_MTU_MIN, UINT16_MAX),
		FIELD(boot.token, BOOT_BYTES, BOOTMSG_TOKEN_SIZE, BOOTMSG_TOKEN_SIZE),
		FIELD(boot.bundle, BOOT_LIST, 1, BOOTMSG_CERT_MAX),
		TEXT(boot.parent_id, BOOTMSG_SPIFFE_MAX, boot_is_spiffe),
		TEXT(boot.own_id, BOOTMSG_SPIFFE_MAX, boot_is_spiffe),
	},
	[BOOTMSG_READY] = {
		TEXT(ready.version, BOOTMSG_WORD_MAX, NULL),
		TEXT(ready.kernel, BOOTMSG_WORD_MAX, NULL),
	},
	[BOOTMSG_FAILED] = {
		TEXT(failed.text, ERROR_TEXT_MAX - 1, NULL),
	},
	[BOOTMSG_STOP] = {
		{ BOOT_END },
	},
	[BOOTMSG_WAITING] = {
		{ BOOT_END },
	},
	[BOOTMSG_NIC] = {
		FIELD(nic.mac, BOOT_BYTES, 6, 6),
		FIELD(nic.mtu, BOOT_U32, BOOTMSG_MTU_MIN, UINT16_MAX),
		FIELD(nic.address, BOOT_TEXT, 0, BOOTMSG_ADDRESS_MAX),
		FIELD(nic.gateway, BOOT_TEXT, 0, BOOTMSG_ADDRESS_MAX),
	},
	[BOOTMSG_LINK] = {
		FIELD(link.device, BOOT_BYTES, 6, 6),
		FIELD(link.mac, BOOT_BYTES, 6, 6),
		FIELD(link.mtu, BOOT_U32, BOOTMSG_MTU_MIN, UINT16_MAX),
		FIELD(link.leads_out, BOOT_U32, 0, 1),
		TEXT(link.name, BOOTMSG_DEVICE_MAX, NULL),
		FIELD(link.address, BOOT_TEXT, 0, BOOTMSG_ADDRESS_MAX),
		FIELD(link.gateway, BOOT_TEXT, 0, BOOTMSG_ADDRESS_MAX),
		FIELD(link.address6, BOOT_TEXT, 0, BOOTMSG_ADDRESS_MAX),
	},
};
static_assert(ARRAY_SIZE(boot_types) == BOOTMSG_TYPE_COUNT, "a row for each type");

struct boot_head {
	uint32_t len; /* of what follows */
	uint32_t magic;
	uint16_t version, type;
};

#define BOOT_BODY_MIN (sizeof(struct boot_head) - sizeof(uint32_t))

struct boot_member {
	uint16_t tag, len;
};

static bool boot_text_fits(const char *text, size_t len, const struct boot_field *f)
{
	return len >= f->min && len <= f->max && str_is_utf8(text, len) && str_is_clean(text) &&
	       (!f->fits || f->fits(text));
}

/* ---- encoding ---- */

struct boot_out {
	uint8_t *frame;
	size_t len;
};

static bool boot_put(struct boot_out *o, uint16_t tag, const void *value, size_t len)
{
	struct boot_member m = { .tag = htole16(tag), .len = htole16((uint16_t)len) };

	if (len > UINT16_MAX || len + sizeof(m) > BOOTMSG_FRAME_MAX - o->len)
		return false;
	memcpy(o->frame + o->len, &m, sizeof(m));
	memcpy(o->frame + o->len + sizeof(m), value, len);
	o->len += sizeof(m) + len;
	return true;
}

static bool boot_put_blob(struct boot_out *o, uint16_t tag, const struct bootmsg_blob *b,
			  const struct boot_field *f)
{
	return b->len >= f->min && b->len <= f->max && boot_put(o, tag, b->data, b->len);
}

static bool boot_put_list(struct boot_out *o, uint16_t tag, const struct bootmsg_list *list,
			  const struct boot_field *f)
{
	for (size_t i = 0; i < list->n; i++)
		if (i == BOOTMSG_BUNDLE_MAX || !boot_put_blob(o, tag, &list->item[i], f))
			return false;
	return list->n > 0;
}

static bool boot_put_number(struct boot_out *o, uint16_t tag, uint64_t value,
			    const struct boot_field *f)
{
	uint64_t wire = htole64(value);

	return value >= f->min && value <= f->max &&
	       boot_put(o, tag, &wire, f->kind == BOOT_U32 ? sizeof(uint32_t) : sizeof(wire));
}

static bool boot_put_text(struct boot_out *o, uint16_t tag, const char *text,
			  const struct boot_field *f)
{
	size_t len = text ? strlen(text) : 0;

	return text && boot_text_fits(text, len, f) && boot_put(o, tag, text, len + 1);
}

static bool boot_put_field(struct boot_out *o, uint16_t tag, const struct bootmsg *m,
			   const struct boot_field *f)
{
	const void *member = (const char *)m + f->offset;

	switch (f->kind) {
	case BOOT_U32:
		return boot_put_number(o, tag, *(const uint32_t *)member, f);
	case BOOT_U64:
		return boot_put_number(o, tag, *(const uint64_t *)member, f);
	case BOOT_BYTES:
		return boot_put(o, tag, member, f->min);
	case BOOT_BLOB:
		return boot_put_blob(o, tag, member, f);
	case BOOT_TEXT:
		return boot_put_text(o, tag, *(const char *const *)member, f);
	case BOOT_LIST:
		return boot_put_list(o, tag, member, f);
	case BOOT_END:
		break;
	}
	return false;
}

int bootmsg_encode(const struct bootmsg *m, uint8_t *frame, struct error *err)
{
	struct boot_head h = { .magic = htole32(BOOTMSG_MAGIC),
			       .version = htole16(BOOTMSG_VERSION),
			       .type = htole16((uint16_t)m->type) };
	struct boot_out o = { .frame = frame, .len = sizeof(h) };
	const struct boot_field *f = boot_types[m->type];

	for (uint16_t i = 0; f[i].kind != BOOT_END; i++)
		if (!boot_put_field(&o, (uint16_t)(i + 1), m, &f[i]))
			return error_refuse(err, ERROR_INVALID,
					    "a frame of the boot port: %s is out of bounds",
					    f[i].name);
	h.len = htole32((uint32_t)(o.len - sizeof(h.len)));
	memcpy(frame, &h, sizeof(h));
	return (int)o.len;
}

/* ---- decoding ---- */

struct boot_in {
	const uint8_t *p, *end;
};

/* The next member where it is one with that tag. */
static bool boot_get(struct boot_in *in, uint16_t tag, struct bootmsg_blob *ret)
{
	struct boot_member m;

	if ((size_t)(in->end - in->p) < sizeof(m))
		return false;
	memcpy(&m, in->p, sizeof(m));
	if (le16toh(m.tag) != tag || (size_t)(in->end - in->p) - sizeof(m) < le16toh(m.len))
		return false;
	*ret = (struct bootmsg_blob){ .data = in->p + sizeof(m), .len = le16toh(m.len) };
	in->p += sizeof(m) + ret->len;
	return true;
}

static bool boot_take_number(const struct bootmsg_blob *b, void *member, const struct boot_field *f)
{
	size_t size = f->kind == BOOT_U32 ? sizeof(uint32_t) : sizeof(uint64_t);
	uint64_t value = 0;

	if (b->len != size)
		return false;
	memcpy(&value, b->data, size);
	value = le64toh(value);
	if (value < f->min || value > f->max)
		return false;
	if (f->kind == BOOT_U32)
		*(uint32_t *)member = (uint32_t)value;
	else
		*(uint64_t *)member = value;
	return true;
}

static bool boot_take_bytes(const struct bootmsg_blob *b, void *member, const struct boot_field *f)
{
	if (b->len != f->min)
		return false;
	memcpy(member, b->data, b->len);
	return true;
}

static bool boot_take_text(const struct bootmsg_blob *b, void *member, const struct boot_field *f)
{
	const char *text = (const char *)b->data;

	if (b->len == 0 || memchr(text, '\0', b->len) != text + b->len - 1 ||
	    !boot_text_fits(text, b->len - 1, f))
		return false;
	*(const char **)member = text;
	return true;
}

static bool boot_blob_fits(const struct bootmsg_blob *b, const struct boot_field *f)
{
	return b->len >= f->min && b->len <= f->max;
}

/* The first of them is there. */
static bool boot_take_list(struct boot_in *in, uint16_t tag, const struct bootmsg_blob *first,
			   struct bootmsg_list *list, const struct boot_field *f)
{
	struct bootmsg_blob b = *first;

	list->n = 0;
	do {
		if (list->n == BOOTMSG_BUNDLE_MAX || !boot_blob_fits(&b, f))
			return false;
		list->item[list->n++] = b;
	} while (boot_get(in, tag, &b));
	return true;
}

static bool boot_get_field(struct boot_in *in, uint16_t tag, struct bootmsg *m,
			   const struct boot_field *f)
{
	void *member = (char *)m + f->offset;
	struct bootmsg_blob b;

	if (!boot_get(in, tag, &b))
		return false;
	switch (f->kind) {
	case BOOT_U32:
	case BOOT_U64:
		return boot_take_number(&b, member, f);
	case BOOT_BYTES:
		return boot_take_bytes(&b, member, f);
	case BOOT_BLOB:
		*(struct bootmsg_blob *)member = b;
		return boot_blob_fits(&b, f);
	case BOOT_TEXT:
		return boot_take_text(&b, member, f);
	case BOOT_LIST:
		return boot_take_list(in, tag, &b, member, f);
	case BOOT_END:
		break;
	}
	return false;
}

/* What can be said of the head from its first len bytes. */
static int boot_check_head(const struct boot_head *h, size_t len, struct error *err)
{
	if (len < sizeof(h->len))
		return 0;
	if (le32toh(h->len) < BOOT_BODY_MIN || le32toh(h->len) > BOOTMSG_BODY_MAX)
		return error_set(err, -EBADMSG, "the length of a frame of the boot port");
	if (len < sizeof(*h))
		return 0;
	if (le32toh(h->magic) != BOOTMSG_MAGIC)
		return error_set(err, -EBADMSG, "the head of a frame of the boot port");
	if (le16toh(h->version) != BOOTMSG_VERSION)
		return error_set(err, -EPROTONOSUPPORT,
				 "the boot port is spoken in version %u there, in %u here",
				 le16toh(h->version), BOOTMSG_VERSION);
	if (le16toh(h->type) >= BOOTMSG_TYPE_COUNT)
		return error_set(err, -EBADMSG, "the type of a frame of the boot port");
	return 0;
}

int bootmsg_next(struct bootmsg *ret, const uint8_t *data, size_t len, struct error *err)
{
	struct bootmsg m = { .type = BOOTMSG_TYPE_COUNT };
	const struct boot_field *f;
	struct boot_head h = { .len = 0 };
	struct boot_in in;
	size_t size;
	int r;

	if (len > 0)
		memcpy(&h, data, MIN(len, sizeof(h)));
	r = boot_check_head(&h, len, err);
	if (r < 0)
		return r;
	size = sizeof(h.len) + le32toh(h.len);
	if (len < sizeof(h) || len < size)
		return 0;
	in = (struct boot_in){ .p = data + sizeof(h), .end = data + size };
	m.type = le16toh(h.type);
	f = boot_types[m.type];
	for (uint16_t i = 0; f[i].kind != BOOT_END; i++)
		if (!boot_get_field(&in, (uint16_t)(i + 1), &m, &f[i]))
			return error_set(err, -EBADMSG, "%s of a frame of the boot port",
					 f[i].name);
	if (in.p != in.end)
		return error_set(err, -EBADMSG, "the end of a frame of the boot port");
	*ret = m;
	return (int)size;
}
