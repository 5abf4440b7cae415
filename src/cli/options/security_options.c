/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/security_options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"

#define GROUP_MAX 2147483647U
#define OPTIONS_PROFILE_MAX ((size_t)256 << 10)

/* Each value, and each part of one that commas divide: "NET_RAW,MKNOD" is podman's form. */
static char **options_words(const struct args *a, const char *name, size_t *ret_n)
{
	char **list = NULL, *word, *rest, *part;
	size_t pos = 0;

	for (word = args_next(a, name, &pos); word; word = args_next(a, name, &pos)) {
		rest = word;
		for (part = strsep(&rest, ","); part; part = strsep(&rest, ",")) {
			list = xrealloc(list, *ret_n + 1, sizeof(*list));
			list[(*ret_n)++] = part;
		}
	}
	return list;
}

static int options_groups(struct security_options *s, const struct args *a, struct error *err)
{
	const char *word;
	size_t pos = 0;

	for (word = args_next(a, "group-add", &pos); word; word = args_next(a, "group-add", &pos)) {
		uint64_t number;

		if (parse_u64(word, 0, GROUP_MAX, &number) < 0)
			return error_refuse(err, ERROR_INVALID,
					    "--group-add is the number of a group, not \"%s\"",
					    word);
		s->groups = xrealloc(s->groups, s->message.n_groups + 1, sizeof(*s->groups));
		s->groups[s->message.n_groups++] = (uint32_t)number;
	}
	s->message.groups = s->groups;
	return 0;
}

static int options_score(Aurae__Runtime__V0__Security *to, const char *word, struct error *err)
{
	bool negative = word && *word == '-';
	uint64_t number;

	if (!word)
		return 0;
	if (parse_u64(word + negative, 0, 1000, &number) < 0)
		return error_refuse(err, ERROR_INVALID,
				    "--oom-score-adj is a number from -1000 to 1000, not \"%s\"",
				    word);
	to->oom_score_adj = negative ? -(int32_t)number : (int32_t)number;
	return 0;
}

/* A copy that lives as long as the messages. */
static char *options_keep(struct security_options *s, const char *word)
{
	size_t n = strv_len(s->words);

	s->words = xrealloc(s->words, n + 2, sizeof(*s->words));
	s->words[n] = xstrdup(word);
	s->words[n + 1] = NULL;
	return s->words[n];
}

/* Paths, with ':' between them as podman and docker have it. */
static void options_paths(struct security_options *s, const char *word, char ***list, size_t *n)
{
	char *rest = options_keep(s, word), *part;

	for (part = strsep(&rest, ":"); part; part = strsep(&rest, ":")) {
		*list = xrealloc(*list, *n + 1, sizeof(**list));
		(*list)[(*n)++] = part;
	}
}

/* A seccomp profile, as it is: a helper of the node reads it. */
static int options_profile(struct security_options *s, const char *file, struct error *err)
{
	_cleanup_fd_ int fd = sysio_openat(AT_FDCWD, file, O_RDONLY | O_CLOEXEC, 0);
	int r = fd < 0 ? -errno : 0;

	buf_done(&s->profile);
	if (r == 0)
		r = fd_read_all(fd, OPTIONS_PROFILE_MAX, &s->profile);
	if (r < 0)
		return error_set(err, r, "--security-opt seccomp: read %s", file);
	if (s->profile.len == 0)
		return error_refuse(err, ERROR_INVALID, "--security-opt seccomp: %s is empty",
				    file);
	s->message.seccomp_profile.data = (uint8_t *)(uintptr_t)buf_data(&s->profile);
	s->message.seccomp_profile.len = s->profile.len;
	return 0;
}

/* docker's words, and podman's. */
static int options_take_one(struct security_options *s, const char *word, struct error *err)
{
	static char allow[] = "allow", deny[] = "deny", unconfined[] = "unconfined";
	Aurae__Runtime__V0__Security *to = &s->message;

	if (str_eq(word, "no-new-privileges") || str_eq(word, "no-new-privileges=true") ||
	    str_eq(word, "no-new-privileges:true"))
		to->privilege_escalation = deny;
	else if (str_eq(word, "no-new-privileges=false") || str_eq(word, "no-new-privileges:false"))
		to->privilege_escalation = allow;
	else if (str_eq(word, "seccomp=unconfined"))
		to->seccomp = unconfined;
	else if (str_has_prefix(word, "seccomp=") && word[strlen("seccomp=")])
		return options_profile(s, word + strlen("seccomp="), err);
	else if (str_eq(word, "writable-cgroups") || str_eq(word, "writable-cgroups=true"))
		to->writable_cgroup = true;
	else if (str_has_prefix(word, "mask="))
		options_paths(s, word + strlen("mask="), &s->mask, &to->n_mask);
	else if (str_has_prefix(word, "unmask="))
		options_paths(s, word + strlen("unmask="), &s->unmask, &to->n_unmask);
	else
		return error_refuse(err, ERROR_INVALID,
				    "--security-opt is no-new-privileges[=false], "
				    "seccomp=unconfined|FILE, writable-cgroups, mask=PATH or "
				    "unmask=PATH, not \"%s\"",
				    word);
	to->mask = s->mask;
	to->unmask = s->unmask;
	return 0;
}

static int options_take_all(struct security_options *s, const struct args *a, struct error *err)
{
	const char *word;
	size_t pos = 0;
	int r = 0;

	for (word = args_next(a, "security-opt", &pos); word && r == 0;
	     word = args_next(a, "security-opt", &pos))
		r = options_take_one(s, word, err);
	return r;
}

/* ---- limits of processes ---- */

/* "1024", "unlimited", "-1". */
static int ulimit_number(const char *text, uint64_t *ret)
{
	*ret = UINT64_MAX;
	return str_eq(text, "unlimited") || str_eq(text, "-1")
		       ? 0
		       : parse_u64(text, 0, UINT64_MAX - 1, ret);
}

/* "nofile=1024:4096". */
static int ulimit_take(Aurae__Runtime__V0__Ulimit *m, char *word)
{
	char *soft = strchr(word, '='), *hard;

	aurae__runtime__v0__ulimit__init(m);
	if (!soft || soft == word)
		return -EINVAL;
	*soft++ = '\0';
	hard = strchr(soft, ':');
	if (hard)
		*hard++ = '\0';
	m->name = word;
	if (ulimit_number(soft, &m->soft) < 0)
		return -EINVAL;
	m->hard = m->soft;
	return hard ? ulimit_number(hard, &m->hard) : 0;
}

static size_t options_count(const struct args *a, const char *name)
{
	size_t pos = 0, n = 0;

	while (args_next(a, name, &pos))
		n++;
	return n;
}

static int options_ulimits(struct security_options *s, const struct args *a, struct error *err)
{
	size_t most = options_count(a, "ulimit"), pos = 0;

	s->limits = xrealloc(NULL, most + 1, sizeof(*s->limits));
	s->ulimits = xrealloc(NULL, most + 1, sizeof(*s->ulimits));
	for (size_t i = 0; i < most; i++) {
		const char *word = args_next(a, "ulimit", &pos);

		if (ulimit_take(&s->limits[i], options_keep(s, word)) < 0)
			return error_refuse(err, ERROR_INVALID,
					    "--ulimit is NAME=SOFT[:HARD], such as "
					    "nofile=1024:4096 or core=unlimited, not \"%s\"",
					    word);
		s->ulimits[i] = &s->limits[i];
	}
	s->message.ulimits = s->ulimits;
	s->message.n_ulimits = most;
	return 0;
}

/* ---- devices ---- */

static bool device_is_access(const char *word)
{
	return *word && strspn(word, "rwm") == strlen(word);
}

/* "/dev/fuse", "/dev/sdb:/dev/disk", "/dev/sdb:/dev/disk:rw", "/dev/sdb:r". */
static int device_take(Aurae__Runtime__V0__Device *m, char *word)
{
	char *second = strchr(word, ':'), *third;

	aurae__runtime__v0__device__init(m);
	m->host_path = word;
	if (*word != '/')
		return -EINVAL;
	if (!second)
		return 0;
	*second++ = '\0';
	third = strchr(second, ':');
	if (third)
		*third++ = '\0';
	if (!third && device_is_access(second)) {
		m->permissions = second;
		return 0;
	}
	m->path = second;
	if (third)
		m->permissions = third;
	return *second != '/' || (third && !device_is_access(third)) ? -EINVAL : 0;
}

/* "vendor.com/class=name" (CDI): no path is one, since that begins with a '/'. */
static bool device_is_of_vendor(const char *word)
{
	const char *slash = strchr(word, '/');

	return *word != '/' && slash && strchr(slash, '=');
}

static int options_devices(struct security_options *s, Aurae__Runtime__V0__Container *to,
			   const struct args *a, struct error *err)
{
	size_t most = options_count(a, "device"), pos = 0;

	s->devices = xrealloc(NULL, most + 1, sizeof(*s->devices));
	s->device_list = xrealloc(NULL, most + 1, sizeof(*s->device_list));
	s->vendor_devices = xrealloc(NULL, most + 1, sizeof(*s->vendor_devices));
	for (size_t i = 0; i < most; i++) {
		const char *word = args_next(a, "device", &pos);

		if (device_is_of_vendor(word)) {
			s->vendor_devices[to->n_cdi_devices++] = options_keep(s, word);
			continue;
		}
		if (device_take(&s->devices[i], options_keep(s, word)) < 0)
			return error_refuse(
				err, ERROR_INVALID,
				"--device is HOST[:CONTAINER[:rwm]] with absolute "
				"paths, such as /dev/fuse or /dev/sdb:/dev/disk:r, or a "
				"vendor's name (CDI), vendor.com/class=name, not \"%s\"",
				word);
		s->device_list[to->n_devices++] = &s->devices[i];
	}
	to->devices = s->device_list;
	to->cdi_devices = s->vendor_devices;
	return 0;
}

int security_options_take(struct security_options *s, Aurae__Runtime__V0__Container *to,
			  const struct args *a, struct error *err)
{
	Aurae__Runtime__V0__Security *m = &s->message;
	char *profile = args_value(a, "security-profile");
	int r;

	aurae__runtime__v0__security__init(m);
	s->add = options_words(a, "cap-add", &m->n_cap_add);
	s->drop = options_words(a, "cap-drop", &m->n_cap_drop);
	m->cap_add = s->add;
	m->cap_drop = s->drop;
	m->privileged = args_flag(a, "privileged");
	to->init = args_flag(a, "init");
	if (profile)
		m->profile = profile;
	r = options_groups(s, a, err);
	if (r == 0)
		r = options_score(m, args_value(a, "oom-score-adj"), err);
	if (r == 0)
		r = options_take_all(s, a, err);
	if (r == 0)
		r = options_ulimits(s, a, err);
	if (r == 0)
		r = options_devices(s, to, a, err);
	if (r == 0 && (m->n_cap_add || m->n_cap_drop || m->n_groups || profile ||
		       m->oom_score_adj || *m->privilege_escalation || *m->seccomp ||
		       m->privileged || m->seccomp_profile.len > 0 || m->n_mask || m->n_unmask ||
		       m->n_ulimits || m->writable_cgroup))
		to->security = m;
	return r;
}

void security_options_done(struct security_options *s)
{
	free(s->add);
	free(s->drop);
	free(s->groups);
	free(s->mask);
	buf_done(&s->profile);
	free(s->unmask);
	free(s->limits);
	free(s->ulimits);
	free(s->devices);
	free(s->device_list);
	free(s->vendor_devices);
	strv_free(s->words);
	*s = (struct security_options)SECURITY_OPTIONS_INIT;
}

/* ---- what the containers of a pod share ---- */

int pod_options_take(struct pod_options *p, const struct args *a,
		     Aurae__Runtime__V0__PodSecurity **ret, struct error *err)
{
	Aurae__Runtime__V0__PodSecurity *m = &p->message;
	const struct {
		const char *option;
		char **field;
	} modes[] = {
		{ "pid", &m->pid }, { "ipc", &m->ipc }, { "uts", &m->uts }, { "userns", &m->userns }
	};
	bool any = false;
	size_t pos = 0;
	char *word;

	aurae__runtime__v0__pod_security__init(m);
	p->sysctls = xrealloc(NULL, options_count(a, "sysctl") + 1, sizeof(*p->sysctls));
	m->sysctls = p->sysctls;
	for (word = args_next(a, "sysctl", &pos); word; word = args_next(a, "sysctl", &pos))
		m->sysctls[m->n_sysctls++] = word;
	for (size_t i = 0; i < m->n_sysctls; i++)
		if (!strchr(m->sysctls[i], '=') || m->sysctls[i][0] == '=')
			return error_refuse(err, ERROR_INVALID,
					    "--sysctl is NAME=VALUE, such as "
					    "net.ipv4.ip_forward=1, not \"%s\"",
					    m->sysctls[i]);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		word = args_value(a, modes[i].option);
		any = any || word;
		if (word)
			*modes[i].field = word;
		if (word && str_eq(word, "shareable"))
			return error_refuse(
				err, ERROR_INVALID,
				"--%s is private or host: no pod joins the namespaces of "
				"another one; containers that share are one pod "
				"(`nacre pod`)",
				modes[i].option);
	}
	if (args_value(a, "cgroup-parent"))
		m->cgroup_parent = args_value(a, "cgroup-parent");
	*ret = any || m->n_sysctls > 0 || *m->cgroup_parent ? m : NULL;
	return 0;
}

void pod_options_done(struct pod_options *p)
{
	free(p->sysctls);
	p->sysctls = NULL;
}
