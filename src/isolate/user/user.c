/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/user/user.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/file/rootfd.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/parse.h"
#include "base/text/str.h"

#define USER_FILE_MAX (4 << 20)
#define USER_NAME_MAX 255
#define USER_ID_MAX INT32_MAX
#define USER_FIELDS_MAX 7

/* "user:group" taken apart; group is NULL where none was given. */
struct user_words {
	char text[2 * USER_NAME_MAX + 2];
	const char *user, *group;
};

static bool user_is_number(const char *s)
{
	return *s && s[strspn(s, "0123456789")] == '\0';
}

/* A name as the portable character set of POSIX has it, and no first digit: what could be taken for
 * a number is never a name (security.md A35). */
static bool user_is_name(const char *s)
{
	if (!isascii(*s) || !(isalpha(*s) || *s == '_') || strlen(s) > USER_NAME_MAX)
		return false;
	for (; *s; s++)
		if (!isascii(*s) || !(isalnum(*s) || strchr("_.-$", *s)))
			return false;
	return true;
}

/* An all-digit string as an id. A number that is too long is out of range, too. */
static int user_number(const char *s, uint32_t *ret)
{
	uint64_t id = 0;
	int r = parse_u64(s, 0, USER_ID_MAX, &id);

	if (r < 0)
		return r;
	*ret = (uint32_t)id;
	return 0;
}

static int user_check(const char *what, const char *s, struct error *err)
{
	uint32_t id;

	if (user_is_number(s) && user_number(s, &id) < 0)
		return error_field(err, ERROR_INVALID, "user", "%s %s is out of range", what, s);
	if (!user_is_number(s) && !user_is_name(s))
		return error_field(err, ERROR_INVALID, "user",
				   "\"%s\" is neither a number nor the name of a %s", s, what);
	return 0;
}

static int user_split(const char *user, struct user_words *ret, struct error *err)
{
	char *colon;
	int r;

	r = str_copy(ret->text, sizeof(ret->text), user);
	if (r < 0)
		return error_field(err, ERROR_INVALID, "user", "too long");
	ret->user = ret->text;
	ret->group = NULL;
	colon = strchr(ret->text, ':');
	if (colon) {
		*colon = '\0';
		ret->group = colon + 1;
	}
	r = user_check("user", ret->user, err);
	return r < 0 || !ret->group ? r : user_check("group", ret->group, err);
}

/* A file of the image as a string; NULL where there is none (*ret 0) or it cannot be used. */
static char *user_read(int root_fd, const char *path, int *ret, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char *text;
	int r = rootfd_read(root_fd, path, USER_FILE_MAX, &b);

	*ret = 0;
	if (r == -ENOENT || r == -ENOTDIR)
		return NULL;
	if (r == -EINVAL || r == -EFBIG || r == -ELOOP || r == -EXDEV) {
		*ret = error_field(err, ERROR_PRECONDITION, "user",
				   "%s of the image is no regular file of at most 4 MiB", path);
		return NULL;
	}
	if (r < 0) {
		*ret = error_set(err, r, "user: read %s of the image", path);
		return NULL;
	}
	text = buf_take_str(&b);
	if (!text)
		*ret = error_set(err, -ENOMEM, "user: read %s of the image", path);
	return text;
}

/* Takes the next line off *at and cuts it into fields; the number of fields, -1 at the end. */
static int user_line(char **at, char *fields[USER_FIELDS_MAX])
{
	char *line = *at;
	int n = 0;

	if (!line || !*line)
		return -1;
	*at = line + strcspn(line, "\n");
	if (**at)
		*(*at)++ = '\0';
	while (line && n < USER_FIELDS_MAX) {
		fields[n++] = line;
		line = strchr(line, ':');
		if (line)
			*line++ = '\0';
	}
	return n;
}

/* What a line of passwd says. */
struct user_entry {
	char name[USER_NAME_MAX + 1];
	uint32_t uid, gid;
	const char *home;
};

/* 1: found, 0: not there. A line that is found and holds no proper ids is refused. */
static int user_find_passwd(char *text, const char *user, struct user_entry *ret, struct error *err)
{
	bool by_number = user_is_number(user);
	char *fields[USER_FIELDS_MAX];
	uint32_t want = 0;
	int n;

	if (by_number && user_number(user, &want) < 0)
		return -EINVAL;
	for (n = user_line(&text, fields); n >= 0; n = user_line(&text, fields)) {
		uint32_t uid = 0, gid = 0;
		bool uid_good, gid_good;

		if (n < 4)
			continue;
		uid_good = user_is_number(fields[2]) && user_number(fields[2], &uid) == 0;
		gid_good = user_is_number(fields[3]) && user_number(fields[3], &gid) == 0;
		if (by_number ? !uid_good || uid != want : !str_eq(fields[0], user))
			continue;
		if (!uid_good || !gid_good)
			return error_field(err, ERROR_PRECONDITION, "user",
					   "/etc/passwd of the image has no proper ids for %s",
					   user);
		if (str_copy(ret->name, sizeof(ret->name), fields[0]) < 0)
			ret->name[0] = '\0';
		ret->uid = uid;
		ret->gid = gid;
		ret->home = n > 5 ? fields[5] : "";
		return 1;
	}
	return 0;
}

static bool user_is_listed(const char *members, const char *name)
{
	size_t len = strlen(name);

	while (*members) {
		size_t n = strcspn(members, ",");

		if (n == len && memcmp(members, name, n) == 0)
			return true;
		members += n + (members[n] == ',');
	}
	return false;
}

static int user_group_add(struct isolate_user *u, gid_t gid, struct error *err)
{
	for (size_t i = 0; i < u->n_groups; i++)
		if (u->groups[i] == gid)
			return 0;
	if (u->n_groups == ISOLATE_GROUPS_MAX)
		return error_field(err, ERROR_PRECONDITION, "user", "in more than %d groups",
				   ISOLATE_GROUPS_MAX);
	u->groups[u->n_groups++] = gid;
	return 0;
}

/* Adds the groups that list `name` to u, and finds the number of `group` (a name, or NULL). */
static int user_scan_groups(char *text, const char *name, const char *group, struct isolate_user *u,
			    bool *ret_found, struct error *err)
{
	char *fields[USER_FIELDS_MAX];

	for (int n = user_line(&text, fields); n >= 0; n = user_line(&text, fields)) {
		uint32_t gid = 0;
		int r;

		if (n < 3 || !user_is_number(fields[2]) || user_number(fields[2], &gid) < 0)
			continue;
		if (group && !*ret_found && str_eq(fields[0], group)) {
			u->gid = gid;
			*ret_found = true;
		}
		if (n < 4 || !*name || !user_is_listed(fields[3], name))
			continue;
		r = user_group_add(u, gid, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The primary group comes first among the groups. */
static int user_put_primary(struct isolate_user *u, struct error *err)
{
	size_t at = 0;
	int r;

	r = user_group_add(u, u->gid, err);
	if (r < 0)
		return r;
	while (u->groups[at] != u->gid)
		at++;
	for (; at > 0; at--)
		u->groups[at] = u->groups[at - 1];
	u->groups[0] = u->gid;
	return 0;
}

static int user_fill_groups(int root_fd, const struct user_words *w, const char *name,
			    struct isolate_user *u, struct error *err)
{
	_cleanup_str_ char *text = NULL;
	bool by_name = w->group && !user_is_number(w->group);
	bool found = false;
	int r;

	text = user_read(root_fd, "/etc/group", &r, err);
	if (r < 0)
		return r;
	if (w->group && !by_name && user_number(w->group, &u->gid) < 0)
		return -EINVAL;
	if (text) {
		r = user_scan_groups(text, name, by_name ? w->group : NULL, u, &found, err);
		if (r < 0)
			return r;
	}
	if (by_name && !found)
		return error_field(err, ERROR_PRECONDITION, "user", "no group %s in the image",
				   w->group);
	return user_put_primary(u, err);
}

static void user_take_home(const char *found, char home[ISOLATE_HOME_SIZE])
{
	if (found[0] != '/' || !str_is_clean(found) || str_copy(home, ISOLATE_HOME_SIZE, found) < 0)
		(void)str_copy(home, ISOLATE_HOME_SIZE, "/");
}

int isolate_user_home(int root_fd, uid_t uid, char home[ISOLATE_HOME_SIZE], struct error *err)
{
	struct user_entry entry = { .home = "" };
	_cleanup_str_ char *passwd = NULL;
	struct error ignored = ERROR_INIT;
	char number[16];
	int r;

	(void)str_printf(number, sizeof(number), "%u", uid);
	passwd = user_read(root_fd, "/etc/passwd", &r, &ignored);
	if (r == -ENOMEM)
		return error_set(err, r, "read /etc/passwd");
	if (!passwd || uid > USER_ID_MAX || user_find_passwd(passwd, number, &entry, &ignored) < 0)
		entry.home = "";
	user_take_home(entry.home, home);
	return 0;
}

int isolate_user_find(int root_fd, const char *user, struct isolate_user *ret, struct error *err)
{
	struct isolate_user u = { .home = "/" };
	struct user_entry entry = { .home = "" };
	_cleanup_str_ char *passwd = NULL;
	struct user_words w;
	int r;

	r = user_split(*user ? user : "0:0", &w, err);
	if (r < 0)
		return r;
	passwd = user_read(root_fd, "/etc/passwd", &r, err);
	if (r < 0)
		return r;
	r = passwd ? user_find_passwd(passwd, w.user, &entry, err) : 0;
	if (r < 0)
		return r;
	if (r == 0 && !user_is_number(w.user))
		return error_field(err, ERROR_PRECONDITION, "user", "no user %s in the image",
				   w.user);
	if (r == 0 && user_number(w.user, &entry.uid) < 0)
		return -EINVAL;

	u.uid = entry.uid;
	u.gid = entry.gid;
	user_take_home(entry.home, u.home);
	r = user_fill_groups(root_fd, &w, entry.name, &u, err);
	if (r < 0)
		return r;
	*ret = u;
	return 0;
}
