/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/vsphere_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"

#define KEY_FILE_MAX (64 << 10)
#define KEY_LINE_MAX 1024

/* The value of an assignment without its quotes. false: a quote has no end. */
static bool key_unquote(char **value)
{
	char *v = *value;
	size_t n = strlen(v);

	while (n > 0 && (v[n - 1] == ' ' || v[n - 1] == '\t' || v[n - 1] == '\r'))
		v[--n] = '\0';
	if (*v != '\'' && *v != '"')
		return true;
	if (n < 2 || v[n - 1] != *v)
		return false;
	v[n - 1] = '\0';
	*value = v + 1;
	return true;
}

static int key_read_line(struct vsphere_key *k, char *line)
{
	char *value;

	line += strspn(line, " \t");
	if (str_has_prefix(line, "export "))
		line += strlen("export ");
	if (*line == '\0' || *line == '#' || *line == '\r')
		return 0;
	value = strchr(line, '=');
	if (!value)
		return -EINVAL;
	*value++ = '\0';
	if (!key_unquote(&value))
		return -EINVAL;
	if (str_eq(line, "GOVC_USERNAME"))
		return str_copy(k->name, sizeof(k->name), value);
	if (str_eq(line, "GOVC_PASSWORD"))
		return str_copy(k->password, sizeof(k->password), value);
	return 0;
}

static bool key_is_whole(const struct vsphere_key *k)
{
	return *k->name && *k->password && str_is_clean(k->name) && str_is_clean(k->password) &&
	       str_is_utf8(k->name, strlen(k->name)) &&
	       str_is_utf8(k->password, strlen(k->password));
}

int vsphere_key_read(struct vsphere_key *k, const char *text, size_t len, struct error *err)
{
	char line[KEY_LINE_MAX];
	size_t at = 0;
	int n = 0;

	*k = (struct vsphere_key){ .name = "" };
	while (at < len) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t size = end ? (size_t)(end - text) - at : len - at;
		bool good = size < sizeof(line) && !memchr(text + at, '\0', size);

		n++;
		if (good) {
			memcpy(line, text + at, size);
			line[size] = '\0';
			good = key_read_line(k, line) >= 0;
		}
		explicit_bzero(line, sizeof(line));
		if (!good)
			return error_refuse(err, ERROR_INVALID, "line %d is no NAME=VALUE", n);
		at += size + 1;
	}
	return key_is_whole(k) ? 0
			       : error_refuse(err, ERROR_INVALID,
					      "it has no GOVC_USERNAME, or no GOVC_PASSWORD");
}

static int key_read_file(struct vsphere_key *k, const char *path, struct error *err)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	struct error own = ERROR_INIT;
	int r = fd_read_file(AT_FDCWD, path, KEY_FILE_MAX, &text);

	if (r < 0)
		return error_refuse(err, ERROR_PRECONDITION, "read the key of the cloud, %s: %s",
				    path, strerror(-r));
	r = vsphere_key_read(k, text.len ? (const char *)buf_data(&text) : "", text.len, &own);
	if (text.base)
		explicit_bzero(text.base, text.size);
	return r < 0 ? error_refuse(err, ERROR_PRECONDITION, "%s: %s", path, error_text(&own)) : 0;
}

int vsphere_key_open(struct vsphere_key *k, const char *path, struct error *err)
{
	const char *name = getenv("GOVC_USERNAME"), *password = getenv("GOVC_PASSWORD");

	*k = (struct vsphere_key){ .name = "" };
	if (*path)
		return key_read_file(k, path, err);
	if (!str_empty(name) && !str_empty(password) &&
	    str_copy(k->name, sizeof(k->name), name) >= 0 &&
	    str_copy(k->password, sizeof(k->password), password) >= 0 && key_is_whole(k))
		return 0;
	return error_refuse(err, ERROR_PRECONDITION,
			    "there is no key for the cloud: neither cloud.vsphere.credentials in "
			    "the configuration, nor GOVC_USERNAME and GOVC_PASSWORD in the "
			    "environment of the daemon");
}
