/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/storage/secret_item.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory/buf.h"
#include "base/text/str.h"
#include "pod/workload/make.h"
#include "runtime/core/check.h"
#include "volumes/secrets.h"

static char *secret_item_put(char **at, const char *text)
{
	size_t size = strlen(text) + 1;
	char *to = *at;

	memcpy(to, text, size);
	*at += size;
	return to;
}

int secret_item_copy(const struct pod_mount_spec *m, struct secret_file **ret)
{
	size_t size = m->n_secrets * sizeof(*m->secrets);
	struct secret_file *list;
	char *at;

	for (size_t i = 0; i < m->n_secrets; i++)
		size += strlen(m->secrets[i].secret) + strlen(m->secrets[i].file) + 2;
	list = malloc(size);
	if (!list)
		return -ENOMEM;
	at = (char *)&list[m->n_secrets];
	for (size_t i = 0; i < m->n_secrets; i++) {
		list[i] = m->secrets[i];
		list[i].secret = secret_item_put(&at, m->secrets[i].secret);
		list[i].file = secret_item_put(&at, m->secrets[i].file);
	}
	*ret = list;
	return 0;
}

int secret_item_path(int fd, void **ret_text, size_t *ret_len, struct error *err)
{
	char link[32], path[PATH_MAX];
	ssize_t n;

	(void)str_printf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return error_set(err, -errno, "find the secrets of a container");
	path[n] = '\0';
	*ret_text = strdup(path);
	*ret_len = (size_t)n;
	return *ret_text ? 0 : error_set(err, -ENOMEM, "find the secrets of a container");
}

int secret_item_read(int secrets_fd, const char *secret, const char *variable, const char *field,
		     void **ret_text, size_t *ret_len, struct error *err)
{
	struct buf b = BUF_INIT;
	struct secret_info info;
	int r = buf_addf(&b, "%s=", variable);

	r = r < 0 ? error_set(err, r, "read a secret")
		  : secret_read(secrets_fd, secret, &b, &info, err);
	if (r == 0 && memchr(buf_data(&b), '\0', b.len))
		r = error_refuse(err, ERROR_INVALID,
				 "the secret %s has a NUL in it, which no variable can have",
				 secret);
	if (r == 0 && b.len > CHECK_WORD_MAX)
		r = error_refuse(err, ERROR_INVALID,
				 "the secret %s is too long for a variable: with its name at most "
				 "%zu bytes",
				 secret, CHECK_WORD_MAX);
	*ret_len = b.len;
	*ret_text = buf_take_str(&b);
	if (r == 0 && !*ret_text)
		r = error_set(err, -ENOMEM, "read a secret");
	if (r < 0)
		(void)error_wrap_field(err, r, field);
	return -1;
}
