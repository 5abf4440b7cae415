/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/guest/cpio.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/text/str.h"

#define CPIO_HEAD 110 /* bytes: a magic number and 13 numbers of eight digits */
#define CPIO_NAME_MAX 255
#define CPIO_ALIGN 4

struct cpio_member {
	const char *name;
	mode_t mode;
	unsigned major, minor;
	const void *data;
	size_t len;
};

static int cpio_put(struct cpio *c, const void *data, size_t len, struct error *err)
{
	int r = fd_write_full(c->fd, data, len);

	if (r < 0)
		return error_set(err, r, "write the initramfs");
	c->size += len;
	return 0;
}

static int cpio_pad(struct cpio *c, struct error *err)
{
	static const char zeros[CPIO_ALIGN] = "";

	return cpio_put(c, zeros, -c->size % CPIO_ALIGN, err);
}

static int cpio_add(struct cpio *c, const struct cpio_member *m, struct error *err)
{
	size_t name_size = strlen(m->name) + 1;
	char head[CPIO_HEAD + CPIO_NAME_MAX + 1];
	int n, r;

	if (name_size > CPIO_NAME_MAX || m->len > CPIO_MEMBER_MAX)
		return error_refuse(err, ERROR_INVALID, "%s is too large for an initramfs",
				    m->name);
	n = str_printf(head, sizeof(head),
		       "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s", ++c->n,
		       m->mode, 0U, 0U, S_ISDIR(m->mode) ? 2U : 1U, 0U, (unsigned)m->len, 0U, 0U,
		       m->major, m->minor, (unsigned)name_size, 0U, m->name);
	if (n < 0)
		return error_set(err, n, "name a member of the initramfs");
	r = cpio_put(c, head, (size_t)n + 1, err);
	if (r == 0)
		r = cpio_pad(c, err);
	if (r == 0)
		r = cpio_put(c, m->data, m->len, err);
	return r < 0 ? r : cpio_pad(c, err);
}

int cpio_add_dir(struct cpio *c, const char *name, struct error *err)
{
	const struct cpio_member m = { .name = name, .mode = S_IFDIR | 0755 };

	return cpio_add(c, &m, err);
}

int cpio_add_file(struct cpio *c, const char *name, mode_t mode, const void *data, size_t len,
		  struct error *err)
{
	const struct cpio_member m = {
		.name = name, .mode = S_IFREG | mode, .data = data, .len = len
	};

	return cpio_add(c, &m, err);
}

int cpio_add_char_device(struct cpio *c, const char *name, mode_t mode, unsigned major,
			 unsigned minor, struct error *err)
{
	const struct cpio_member m = {
		.name = name, .mode = S_IFCHR | mode, .major = major, .minor = minor
	};

	return cpio_add(c, &m, err);
}

int cpio_end(struct cpio *c, struct error *err)
{
	const struct cpio_member m = { .name = "TRAILER!!!" };

	return cpio_add(c, &m, err);
}
