/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/attr.h"

#include <archive_entry.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/xattr.h>

#include "base/text/str.h"

#define ATTR_NAME_MAX 255
#define ATTR_VALUE_MAX 65536
#define ATTR_COUNT_MAX 1024

static bool attr_wanted(const char *name)
{
	if (str_eq(name, "security.capability"))
		return true;
	return str_has_prefix(name, "user.") && name[5] && !str_has_prefix(name, "user.overlay.");
}

/* A file system without such attributes is no reason to refuse an image. */
static int attr_set(int fd, const char *name, const void *value, size_t size, uint64_t *n_skipped,
		    struct error *err)
{
	if (fsetxattr(fd, name, value, size, 0) == 0)
		return 0;
	if (errno == EOPNOTSUPP || errno == EINVAL || errno == E2BIG || errno == ERANGE) {
		(*n_skipped)++;
		return 0;
	}
	return error_set(err, -errno, "set an extended attribute");
}

static int attr_apply_xattrs(struct archive_entry *entry, int fd, uint64_t *n_skipped,
			     struct error *err)
{
	int n = archive_entry_xattr_reset(entry);

	for (int i = 0; i < n; i++) {
		const char *name = NULL;
		const void *value = NULL;
		size_t size = 0;
		int r;

		if (archive_entry_xattr_next(entry, &name, &value, &size) != 0 || !name)
			break;
		if (i >= ATTR_COUNT_MAX || !attr_wanted(name) || strlen(name) > ATTR_NAME_MAX ||
		    size > ATTR_VALUE_MAX) {
			(*n_skipped)++;
			continue;
		}
		r = attr_set(fd, name, value, size, n_skipped, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static const struct {
	int archive;
	uint16_t kernel;
	bool has_id;
} attr_acl_tags[] = {
	{ ARCHIVE_ENTRY_ACL_USER_OBJ, 0x01, false },  { ARCHIVE_ENTRY_ACL_USER, 0x02, true },
	{ ARCHIVE_ENTRY_ACL_GROUP_OBJ, 0x04, false }, { ARCHIVE_ENTRY_ACL_GROUP, 0x08, true },
	{ ARCHIVE_ENTRY_ACL_MASK, 0x10, false },      { ARCHIVE_ENTRY_ACL_OTHER, 0x20, false },
};

static bool attr_acl_convert(int tag, int permset, int id, struct attr_acl_entry *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(attr_acl_tags); i++) {
		if (attr_acl_tags[i].archive != tag)
			continue;
		if (attr_acl_tags[i].has_id && id < 0)
			return false;
		*ret = (struct attr_acl_entry){
			.tag = attr_acl_tags[i].kernel,
			.perm = (uint16_t)(permset & 7),
			.id = attr_acl_tags[i].has_id ? (uint32_t)id : UINT32_MAX,
		};
		return true;
	}
	return false;
}

static int attr_acl_compare(const void *a, const void *b)
{
	const struct attr_acl_entry *x = a, *y = b;

	if (x->tag != y->tag)
		return x->tag < y->tag ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static size_t attr_read_acl(struct archive_entry *entry, int type, struct attr_acl *ret,
			    uint64_t *n_skipped)
{
	int total = archive_entry_acl_reset(entry, type);
	size_t n = 0;

	/* Three entries say what the mode says; a default list begins at one. */
	if (total <= (type == ARCHIVE_ENTRY_ACL_TYPE_ACCESS ? 3 : 0))
		return 0;
	ret->version = 2;
	for (;;) {
		int type_out, permset, tag, id;
		const char *who;

		if (archive_entry_acl_next(entry, type, &type_out, &permset, &tag, &id, &who) != 0)
			break;
		if (n == ATTR_ACL_MAX || !attr_acl_convert(tag, permset, id, &ret->entries[n])) {
			(*n_skipped)++;
			continue;
		}
		n++;
	}
	qsort(ret->entries, n, sizeof(ret->entries[0]), attr_acl_compare);
	return sizeof(ret->version) + n * sizeof(ret->entries[0]);
}

size_t attr_default_acl(struct archive_entry *entry, struct attr_acl *ret, uint64_t *n_skipped)
{
	return attr_read_acl(entry, ARCHIVE_ENTRY_ACL_TYPE_DEFAULT, ret, n_skipped);
}

int attr_apply(struct archive_entry *entry, int fd, uint64_t *n_skipped, struct error *err)
{
	struct attr_acl acl;
	size_t len;
	int r = 0;

	len = attr_read_acl(entry, ARCHIVE_ENTRY_ACL_TYPE_ACCESS, &acl, n_skipped);
	if (len)
		r = attr_set(fd, "system.posix_acl_access", &acl, len, n_skipped, err);
	return r == 0 ? attr_apply_xattrs(entry, fd, n_skipped, err) : r;
}
