/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/str.h"

#undef error_set
#undef error_refuse
#undef error_wrap
#undef error_field
#undef error_wrap_field

static const int error_kind_errno[] = {
	[ERROR_FAULT] = -EIO,          [ERROR_INVALID] = -EINVAL,
	[ERROR_PRECONDITION] = -EBUSY, [ERROR_NOT_FOUND] = -ENOENT,
	[ERROR_EXISTS] = -EEXIST,      [ERROR_UNAVAILABLE] = -EAGAIN,
	[ERROR_EXHAUSTED] = -ENOBUFS,  [ERROR_UNSUPPORTED] = -EOPNOTSUPP,
	[ERROR_DENIED] = -EACCES,      [ERROR_CANCELLED] = -ECANCELED,
	[ERROR_DEADLINE] = -ETIMEDOUT, [ERROR_ABORTED] = -ESTALE,
	[ERROR_RANGE] = -ERANGE,       [ERROR_UNAUTHENTICATED] = -EACCES,
	[ERROR_UNKNOWN] = -EIO,
};

_Static_assert(ARRAY_SIZE(error_kind_errno) == ERROR_KIND_COUNT, "one errno for each kind");

/* What is quoted came from elsewhere; what is said goes into logs, terminals and messages. */
static void error_clean(struct error *err)
{
	bool utf8 = str_is_utf8(err->text, strlen(err->text));

	for (char *p = err->text; !utf8 && *p; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	str_clean(err->text);
}

static _printf_(2, 0) void error_vtext(struct error *err, const char *fmt, va_list ap)
{
	if (vsnprintf(err->text, sizeof(err->text), fmt, ap) < 0)
		err->text[0] = '\0';
	error_clean(err);
}

int error_set(struct error *err, int r, const char *fmt, ...)
{
	const char *what;
	size_t n, n_most;
	va_list ap;

	if (!err)
		return r;

	what = strerror(-r);
	n_most = sizeof(err->text) - 3 - strlen(what);
	err->kind = ERROR_FAULT;
	err->code = r;
	err->field[0] = '\0';
	va_start(ap, fmt);
	error_vtext(err, fmt, ap);
	va_end(ap);

	/* A long text is cut where it stands, so that the reason is still said. */
	n = MIN(strlen(err->text), n_most);
	(void)snprintf(err->text + n, sizeof(err->text) - n, "%s%s", n ? ": " : "", what);
	return r;
}

int error_refuse(struct error *err, enum error_kind kind, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return error_kind_errno[kind];

	err->kind = kind;
	err->code = error_kind_errno[kind];
	err->field[0] = '\0';
	va_start(ap, fmt);
	error_vtext(err, fmt, ap);
	va_end(ap);
	return err->code;
}

int error_wrap(struct error *err, int r, const char *fmt, ...)
{
	char was[ERROR_TEXT_MAX];
	size_t n;
	va_list ap;

	if (!err)
		return r;

	(void)snprintf(was, sizeof(was), "%s", error_text(err));
	va_start(ap, fmt);
	error_vtext(err, fmt, ap);
	va_end(ap);

	n = strlen(err->text);
	(void)snprintf(err->text + n, sizeof(err->text) - n, ": %s", was);
	error_clean(err);
	return err->code < 0 ? err->code : r;
}

int error_wrap_field(struct error *err, int r, const char *field)
{
	r = error_wrap(err, r, "%s", field);
	if (err)
		(void)str_copy(err->field, sizeof(err->field), field);
	return r;
}

int error_field(struct error *err, enum error_kind kind, const char *field, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return error_kind_errno[kind];

	err->kind = kind;
	err->code = error_kind_errno[kind];
	va_start(ap, fmt);
	error_vtext(err, fmt, ap);
	va_end(ap);
	return error_wrap_field(err, err->code, field);
}

void error_rename_field(struct error *err, const char *field)
{
	struct error was = *err;

	if (str_has_prefix(was.text, was.field))
		(void)str_printf(err->text, sizeof(err->text), "%s%s", field,
				 was.text + strlen(was.field));
	(void)str_copy(err->field, sizeof(err->field), field);
}

int error_copy(struct error *to, const struct error *from)
{
	if (to && from)
		*to = *from;
	return from ? from->code : 0;
}

const char *error_text(const struct error *err)
{
	if (err && err->text[0])
		return err->text;
	return strerror(err ? -err->code : EIO);
}
