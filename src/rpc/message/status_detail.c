/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/message/status_detail.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/memory/buf.h"
#include "base/text/str.h"
#include "rpc/message/pb.h"

#define STATUS_DOMAIN "nacre"
#define STATUS_TYPE_PREFIX "type.googleapis.com/google.rpc."
#define STATUS_DECODE_MAX 4096

static const char *const status_reasons[] = {
	[ERROR_FAULT] = "FAULT",
	[ERROR_INVALID] = "INVALID",
	[ERROR_PRECONDITION] = "PRECONDITION",
	[ERROR_NOT_FOUND] = "NOT_FOUND",
	[ERROR_EXISTS] = "EXISTS",
	[ERROR_UNAVAILABLE] = "UNAVAILABLE",
	[ERROR_EXHAUSTED] = "LIMIT",
	[ERROR_UNSUPPORTED] = "UNSUPPORTED",
	[ERROR_DENIED] = "DENIED",
	[ERROR_CANCELLED] = "CANCELLED",
	[ERROR_DEADLINE] = "DEADLINE",
	[ERROR_ABORTED] = "OVERTAKEN",
	[ERROR_RANGE] = "OUT_OF_RANGE",
	[ERROR_UNAUTHENTICATED] = "UNAUTHENTICATED",
	[ERROR_UNKNOWN] = "UNKNOWN",
};
static_assert(ARRAY_SIZE(status_reasons) == ERROR_KIND_COUNT, "one word for each kind");

static const char status_letters[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* ---- base64 ---- */

static int status_base64(char *to, size_t size, const uint8_t *data, size_t len)
{
	size_t n = 0;

	if (len * 4 / 3 + 4 > size)
		return -ENOBUFS;
	for (size_t i = 0; i < len; i += 3) {
		size_t left = MIN(len - i, (size_t)3);
		uint32_t bits = (uint32_t)data[i] << 16;

		bits |= left > 1 ? (uint32_t)data[i + 1] << 8 : 0;
		bits |= left > 2 ? data[i + 2] : 0;
		for (size_t k = 0; k <= left; k++)
			to[n++] = status_letters[bits >> (18 - 6 * k) & 63];
	}
	to[n] = '\0';
	return 0;
}

/* The number of bytes, or -EINVAL. With or without padding. */
static ssize_t status_unbase64(uint8_t *to, size_t size, const char *text)
{
	size_t n = 0, len = strcspn(text, "=");
	uint32_t bits = 0;

	for (size_t i = 0; i < len; i++) {
		const char *at = strchr(status_letters, text[i]);

		if (!at)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)(at - status_letters);
		if (i % 4 == 0)
			continue;
		if (n == size)
			return -EINVAL;
		to[n++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
	}
	return (ssize_t)n;
}

/* ---- google.rpc.Status ---- */

static int status_put_any(struct buf *b, const char *type, const struct buf *value)
{
	_cleanup_(buf_done) struct buf any = BUF_INIT;
	char url[80];
	int r;

	(void)str_printf(url, sizeof(url), STATUS_TYPE_PREFIX "%s", type);
	r = pb_put_str(&any, 1, url);
	if (r == 0)
		r = pb_put_bytes(&any, 2, buf_data(value), value->len);
	return r < 0 ? r : pb_put_bytes(b, 3, buf_data(&any), any.len);
}

static int status_put_info(struct buf *b, const struct error *err)
{
	_cleanup_(buf_done) struct buf info = BUF_INIT;
	_cleanup_(buf_done) struct buf entry = BUF_INIT;
	const char *reason = NULL;
	int r;

	if (err->kind == ERROR_FAULT)
		reason = strerrorname_np(-err->code);
	if (!reason)
		reason = status_reasons[(unsigned)err->kind < ERROR_KIND_COUNT ? err->kind : 0];
	r = pb_put_str(&info, 1, reason);
	if (r == 0)
		r = pb_put_str(&info, 2, STATUS_DOMAIN);
	if (r == 0 && err->field[0]) {
		r = pb_put_str(&entry, 1, "field");
		if (r == 0)
			r = pb_put_str(&entry, 2, err->field);
		if (r == 0)
			r = pb_put_bytes(&info, 3, buf_data(&entry), entry.len);
	}
	return r < 0 ? r : status_put_any(b, "ErrorInfo", &info);
}

static int status_put_violation(struct buf *b, const struct error *err)
{
	_cleanup_(buf_done) struct buf violation = BUF_INIT;
	_cleanup_(buf_done) struct buf request = BUF_INIT;
	const char *what = err->text;
	size_t n = strlen(err->field);
	int r;

	if (strncmp(what, err->field, n) == 0 && what[n] == ':' && what[n + 1] == ' ')
		what += n + 2;
	r = pb_put_str(&violation, 1, err->field);
	if (r == 0)
		r = pb_put_str(&violation, 2, what);
	if (r == 0)
		r = pb_put_bytes(&request, 1, buf_data(&violation), violation.len);
	return r < 0 ? r : status_put_any(b, "BadRequest", &request);
}

int status_detail_encode(char *to, size_t size, enum rpc_code code, const struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r;

	r = pb_put_varint(&b, 1, code);
	if (r == 0)
		r = pb_put_str(&b, 2, error_text(err));
	if (r == 0 && code == RPC_INVALID_ARGUMENT && err->field[0])
		r = status_put_violation(&b, err);
	if (r == 0)
		r = status_put_info(&b, err);
	return r < 0 ? r : status_base64(to, size, buf_data(&b), b.len);
}

/* The value of the metadata "field" of an ErrorInfo. */
static bool status_find_field(const struct pb_field *info, struct pb_field *ret)
{
	struct pb_reader r = pb_reader(info->data, info->len);
	struct pb_field entry, key;

	while (pb_next(&r, &entry) > 0)
		if (entry.number == 3 && entry.wire == PB_BYTES &&
		    pb_find(entry.data, entry.len, 1, &key) > 0 && pb_is(&key, "field"))
			return pb_find(entry.data, entry.len, 2, ret) > 0;
	return false;
}

void status_detail_decode(struct error *err, const char *value)
{
	uint8_t bytes[STATUS_DECODE_MAX];
	ssize_t n = status_unbase64(bytes, sizeof(bytes), value);
	struct pb_reader r = pb_reader(bytes, n > 0 ? (size_t)n : 0);
	struct pb_field any, type, info, field;

	while (pb_next(&r, &any) > 0) {
		if (any.number != 3 || any.wire != PB_BYTES ||
		    pb_find(any.data, any.len, 1, &type) <= 0 ||
		    !pb_is(&type, STATUS_TYPE_PREFIX "ErrorInfo") ||
		    pb_find(any.data, any.len, 2, &info) <= 0 || !status_find_field(&info, &field))
			continue;
		if (field.len < sizeof(err->field) &&
		    str_is_utf8((const char *)field.data, field.len) &&
		    !memchr(field.data, 0, field.len)) {
			memcpy(err->field, field.data, field.len);
			err->field[field.len] = '\0';
		}
		return;
	}
}
