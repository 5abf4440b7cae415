/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/profile.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "base/file/fd.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "fetch/job/channel.h"
#include "isolate/user/cap_name.h"
#include "wire/document/jsonread.h"

#define FIELD(type, key, member, kind, ...)                                                        \
	{                                                                                          \
		.name = (key), .want = (kind), .offset = offsetof(struct type, member),            \
		__VA_ARGS__                                                                        \
	}
#define COUNT(type, member) .count_offset = offsetof(struct type, member)
#define OF(type, table)                                                                            \
	.size = sizeof(struct type), .fields = table##_fields,                                     \
	.n_fields = ARRAY_SIZE(table##_fields)

struct profile_filter {
	const char **caps, **arches;
	size_t n_caps, n_arches;
	const char *min_kernel;
};

struct profile_arg {
	struct json_uint index, value, value_two;
	const char *op;
};

struct profile_call {
	const char *name;
	const char **names;
	size_t n_names;
	const char *action;
	struct json_uint errno_ret;
	const struct profile_arg *args;
	size_t n_args;
	const struct profile_filter *includes, *excludes;
};

struct profile_map {
	const char *architecture;
	const char **more;
	size_t n_more;
};

struct profile_file {
	const char *default_action;
	struct json_uint default_errno;
	const char **architectures, **flags;
	size_t n_architectures, n_flags;
	const char *listener;
	const struct profile_map *maps;
	size_t n_maps;
	const struct profile_call *calls;
	size_t n_calls;
};

static const struct json_field filter_fields[] = {
	FIELD(profile_filter, "caps", caps, JSON_TO_TEXTS, COUNT(profile_filter, n_caps)),
	FIELD(profile_filter, "arches", arches, JSON_TO_TEXTS, COUNT(profile_filter, n_arches)),
	FIELD(profile_filter, "minKernel", min_kernel, JSON_TO_TEXT),
};

static const struct json_field arg_fields[] = {
	FIELD(profile_arg, "index", index, JSON_TO_UINT, .required = true, .max = 5),
	FIELD(profile_arg, "value", value, JSON_TO_UINT, .required = true),
	FIELD(profile_arg, "valueTwo", value_two, JSON_TO_UINT),
	FIELD(profile_arg, "op", op, JSON_TO_TEXT, .required = true),
};

static const struct json_field call_fields[] = {
	FIELD(profile_call, "name", name, JSON_TO_TEXT),
	FIELD(profile_call, "names", names, JSON_TO_TEXTS, COUNT(profile_call, n_names)),
	FIELD(profile_call, "action", action, JSON_TO_TEXT, .required = true),
	FIELD(profile_call, "errnoRet", errno_ret, JSON_TO_UINT, .max = UINT16_MAX),
	FIELD(profile_call, "args", args, JSON_TO_LIST, OF(profile_arg, arg),
	      COUNT(profile_call, n_args), .max = SECCOMP_PROFILE_ARGS_MAX),
	FIELD(profile_call, "includes", includes, JSON_TO_ONE, OF(profile_filter, filter)),
	FIELD(profile_call, "excludes", excludes, JSON_TO_ONE, OF(profile_filter, filter)),
};

static const struct json_field map_fields[] = {
	FIELD(profile_map, "architecture", architecture, JSON_TO_TEXT, .required = true),
	FIELD(profile_map, "subArchitectures", more, JSON_TO_TEXTS, COUNT(profile_map, n_more)),
};

static const struct json_field file_fields[] = {
	FIELD(profile_file, "defaultAction", default_action, JSON_TO_TEXT, .required = true),
	FIELD(profile_file, "defaultErrnoRet", default_errno, JSON_TO_UINT, .max = UINT16_MAX),
	FIELD(profile_file, "architectures", architectures, JSON_TO_TEXTS,
	      COUNT(profile_file, n_architectures)),
	FIELD(profile_file, "flags", flags, JSON_TO_TEXTS, COUNT(profile_file, n_flags)),
	FIELD(profile_file, "listenerPath", listener, JSON_TO_TEXT),
	FIELD(profile_file, "archMap", maps, JSON_TO_LIST, OF(profile_map, map),
	      COUNT(profile_file, n_maps)),
	FIELD(profile_file, "syscalls", calls, JSON_TO_LIST, OF(profile_call, call),
	      COUNT(profile_file, n_calls), .max = SECCOMP_PROFILE_RULES_MAX),
};

/* ---- which rules are there ---- */

/* As those files call machines. */
static const struct {
	const char *abi, *name;
} profile_arches[] = {
	{ "SCMP_ARCH_X86_64", "amd64" },
	{ "SCMP_ARCH_AARCH64", "arm64" },
};

/* "6.1", also with what a release has behind it: where that begins, or NULL. */
static const char *version_read(const char *text, unsigned *ret_major, unsigned *ret_minor)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return NULL;
	*ret_major = (unsigned)strtoul(text, &end, 10);
	if (end - text > 4 || end[0] != '.' || !isdigit((unsigned char)end[1]))
		return NULL;
	text = end + 1;
	*ret_minor = (unsigned)strtoul(text, &end, 10);
	return end - text > 4 ? NULL : end;
}

static int filter_has_kernel(const struct profile_filter *f, const struct profile_place *place,
			     const char *part, bool *ret, struct error *err)
{
	unsigned major, minor;
	const char *rest = version_read(f->min_kernel, &major, &minor);

	if (!rest || *rest)
		return error_refuse(err, ERROR_INVALID,
				    "%s.minKernel: \"%.40s\" is no version such as 4.8", part,
				    f->min_kernel);
	*ret = place->major > major || (place->major == major && place->minor >= minor);
	return 0;
}

static bool filter_has_arch(const struct profile_filter *f)
{
	for (size_t k = 0; k < ARRAY_SIZE(profile_arches); k++)
		for (size_t i = 0; i < f->n_arches; i++)
			/* The first one is that of this program. */
			if (str_eq(profile_arches[k].abi, seccomp_profile_archs[0]) &&
			    str_eq(f->arches[i], profile_arches[k].name))
				return true;
	return false;
}

/* How many of its capabilities the container has. One that this program does not know it has not.
 */
static size_t filter_count_caps(const struct profile_filter *f, const struct profile_place *place)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_caps; i++) {
		int cap = cap_number(f->caps[i]);

		n += cap >= 0 && place->caps >> cap & 1;
	}
	return n;
}

/* 1: the rule is there, 0: it is not. Part of an array for messages: "syscalls[3].includes". */
static int call_is_there(const struct profile_call *c, size_t i, const struct profile_place *place,
			 struct error *err)
{
	const struct profile_filter *in = c->includes, *out = c->excludes;
	char part[ERROR_FIELD_MAX];
	bool kernel = true;
	int r = 0;

	(void)str_printf(part, sizeof(part), "syscalls[%zu].includes", i);
	if (in && in->min_kernel)
		r = filter_has_kernel(in, place, part, &kernel, err);
	if (r < 0)
		return r;
	if (in && (!kernel || (in->n_arches > 0 && !filter_has_arch(in)) ||
		   filter_count_caps(in, place) < in->n_caps))
		return 0;
	kernel = false;
	(void)str_printf(part, sizeof(part), "syscalls[%zu].excludes", i);
	if (out && out->min_kernel)
		r = filter_has_kernel(out, place, part, &kernel, err);
	if (r < 0)
		return r;
	return !(out && (kernel || filter_has_arch(out) || filter_count_caps(out, place) > 0));
}

/* ---- from the file to the compiler ---- */

static int rule_take(struct arena *a, struct seccomp_profile_rule *to, const struct profile_call *c,
		     size_t i, struct error *err)
{
	struct seccomp_profile_arg *args = arena_zalloc(a, c->n_args + 1, sizeof(*args));
	const char **one = arena_zalloc(a, 1, sizeof(*one));

	if (!args || !one)
		return error_set(err, -ENOMEM, "take the profile up");
	if (c->name && c->n_names > 0)
		return error_refuse(err, ERROR_INVALID, "syscalls[%zu].name: not beside names", i);
	for (size_t k = 0; k < c->n_args; k++)
		args[k] = (struct seccomp_profile_arg){ .index = (unsigned)c->args[k].index.value,
							.value = c->args[k].value.value,
							.value_two = c->args[k].value_two.value,
							.op = c->args[k].op };
	*one = c->name;
	*to = (struct seccomp_profile_rule){ .names = c->names,
					     .n_names = c->n_names,
					     .action = c->action,
					     .has_errno = c->errno_ret.set,
					     .errno_value = (uint32_t)c->errno_ret.value,
					     .args = args,
					     .n_args = c->n_args };
	if (!c->name)
		return 0;
	to->names = one;
	to->n_names = 1;
	return 0;
}

static int profile_take_rules(struct arena *a, struct seccomp_profile *to,
			      const struct profile_file *file, const struct profile_place *place,
			      struct error *err)
{
	struct seccomp_profile_rule *rules = arena_zalloc(a, file->n_calls + 1, sizeof(*rules));
	int r;

	if (!rules)
		return error_set(err, -ENOMEM, "take the profile up");
	to->rules = rules;
	for (size_t i = 0; i < file->n_calls; i++) {
		r = call_is_there(&file->calls[i], i, place, err);
		if (r > 0)
			r = rule_take(a, &rules[to->n_rules++], &file->calls[i], i, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Those that go with the machine's own, where it is said so. */
static int profile_take_archs(struct seccomp_profile *to, const struct profile_file *file,
			      struct error *err)
{
	to->archs = file->architectures;
	to->n_archs = file->n_architectures;
	if (file->n_maps == 0)
		return 0;
	if (file->n_architectures > 0)
		return error_refuse(err, ERROR_INVALID, "archMap: not beside architectures");
	for (size_t i = 0; i < file->n_maps; i++) {
		if (!str_eq(file->maps[i].architecture, seccomp_profile_archs[0]))
			continue;
		to->archs = file->maps[i].more;
		to->n_archs = file->maps[i].n_more;
	}
	return 0;
}

static int profile_compile_in(struct arena *a, struct seccomp_filter **ret, const void *data,
			      size_t len, const struct profile_place *place, struct error *err)
{
	struct profile_file file = { .default_action = NULL };
	struct seccomp_profile profile = { .default_action = NULL };
	struct json_value *value = NULL;
	int r = json_parse(&value, a, data, len, err);

	if (r == 0 && value->kind != JSON_OBJECT)
		return error_refuse(err, ERROR_INVALID, "it is no object of JSON");
	if (r == 0)
		r = json_fill(&file, value, file_fields, ARRAY_SIZE(file_fields), "", a, err);
	if (r < 0)
		return r;
	profile = (struct seccomp_profile){ .default_action = file.default_action,
					    .has_default_errno = file.default_errno.set,
					    .default_errno = (uint32_t)file.default_errno.value,
					    .flags = file.flags,
					    .n_flags = file.n_flags,
					    .listener_path = file.listener };
	r = profile_take_archs(&profile, &file, err);
	if (r == 0)
		r = profile_take_rules(a, &profile, &file, place, err);
	return r == 0 ? seccomp_profile_compile(ret, &profile, err) : r;
}

int profile_compile(struct seccomp_filter **ret, const void *data, size_t len,
		    const struct profile_place *place, struct error *err)
{
	_cleanup_(seccomp_filter_freep) struct seccomp_filter *filter = NULL;
	_cleanup_(arena_done) struct arena a = ARENA_INIT_LIMIT(PROFILE_MEMORY_MAX);
	int r = profile_compile_in(&a, &filter, data, len, place, err);

	if (r < 0)
		return r;
	if (filter->notify)
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "SCMP_ACT_NOTIFY: no agent can be asked about system calls");
	*ret = TAKE_PTR(filter);
	return 0;
}

int profile_find_place(struct profile_place *ret, uint64_t caps, struct error *err)
{
	struct utsname name;

	*ret = (struct profile_place){ .caps = caps };
	if (uname(&name) == 0 && version_read(name.release, &ret->major, &ret->minor))
		return 0;
	return error_refuse(err, ERROR_PRECONDITION, "the kernel does not say which it is");
}

int profile_run(const struct profile_place *place, int from_fd, int to_fd, int sock_fd,
		struct error *err)
{
	_cleanup_(seccomp_filter_freep) struct seccomp_filter *filter = NULL;
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct fetchmsg answer = { .type = FETCHMSG_FILTER };
	int r = fd_read_all(from_fd, PROFILE_BYTES_MAX, &b);

	if (r < 0)
		return error_set(err, r, "read the profile");
	r = profile_compile(&filter, buf_data(&b), b.len, place, err);
	if (r < 0)
		return r;
	r = fd_write_full(to_fd, filter->prog.filter, filter->prog.len * sizeof(*filter->insns));
	if (r < 0)
		return error_set(err, r, "write the filter");
	answer.filter.n_insns = filter->prog.len;
	answer.filter.flags = filter->flags;
	return channel_send(sock_fd, &answer, err);
}
