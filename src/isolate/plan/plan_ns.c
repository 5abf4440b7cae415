/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/plan/plan_rules.h"

#include "base/text/str.h"
#include "isolate/plan/sysctl.h"

/* What a plan says of its namespaces beyond their mode. */

#define PLAN_DOMAINNAME_MAX 64 /* of the kernel */
#define PLAN_NSEC_MAX 999999999

static bool plan_domainname_is_wrong(const struct isolate_plan *p)
{
	return p->domainname &&
	       (p->ns[ISOLATE_NS_UTS] != ISOLATE_NEW ||
		strlen(p->domainname) > PLAN_DOMAINNAME_MAX || !str_is_clean(p->domainname));
}

static bool plan_map_is_wrong(const struct isolate_id_map *map, size_t n, enum isolate_ns_mode mode)
{
	if (n == 0)
		return mode == ISOLATE_NEW;
	if (mode == ISOLATE_KEEP || n > ISOLATE_ID_MAPS_MAX || !map)
		return true;
	for (size_t i = 0; i < n; i++)
		if (map[i].count == 0 || map[i].inside > UINT32_MAX - map[i].count ||
		    map[i].outside > UINT32_MAX - map[i].count)
			return true;
	return false;
}

static bool plan_uid_map_is_wrong(const struct isolate_plan *p)
{
	return plan_map_is_wrong(p->uid_map, p->n_uid_map, p->ns[ISOLATE_NS_USER]);
}

static bool plan_gid_map_is_wrong(const struct isolate_plan *p)
{
	return plan_map_is_wrong(p->gid_map, p->n_gid_map, p->ns[ISOLATE_NS_USER]);
}

static bool plan_maps_id(const struct isolate_id_map *map, size_t n, uint32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (id >= map[i].inside && id - map[i].inside < map[i].count)
			return true;
	return false;
}

static bool plan_uid_is_unmapped(const struct isolate_plan *p)
{
	return p->n_uid_map && !p->keep_credentials &&
	       !plan_maps_id(p->uid_map, p->n_uid_map, p->uid);
}

static bool plan_gid_is_unmapped(const struct isolate_plan *p)
{
	return p->n_gid_map && !p->keep_credentials &&
	       !plan_maps_id(p->gid_map, p->n_gid_map, p->gid);
}

static bool plan_deny_is_wrong(const struct isolate_plan *p)
{
	return p->deny_setgroups && (p->ns[ISOLATE_NS_USER] == ISOLATE_KEEP || p->n_groups);
}

static bool plan_time_is_wrong(const struct isolate_plan *p)
{
	if (p->monotonic.nsec > PLAN_NSEC_MAX || p->boottime.nsec > PLAN_NSEC_MAX)
		return true;
	return (p->monotonic.set || p->boottime.set) && p->ns[ISOLATE_NS_TIME] != ISOLATE_NEW;
}

/* A value is one line: what the kernel takes for a second one is not to be smuggled in. */
static bool plan_sysctl_value_is_wrong(const char *value)
{
	if (!value || strlen(value) > SYSCTL_VALUE_MAX)
		return true;
	for (; *value; value++)
		if ((*value < ' ' && *value != '\t') || *value == '\x7f')
			return true;
	return false;
}

static int plan_check_sysctl(const struct isolate_sysctl *s, const enum isolate_ns_mode *ns,
			     struct error *err)
{
	char path[SYSCTL_NAME_MAX + 1];
	enum isolate_ns kind;

	if (!s->name || sysctl_path(path, sizeof(path), s->name) < 0)
		return error_refuse(err, ERROR_INVALID, "sysctls: %.100s: is no name of a sysctl",
				    s->name ?: "");
	if (plan_sysctl_value_is_wrong(s->value))
		return error_refuse(err, ERROR_INVALID,
				    "sysctls: %s: the value is not one line of at most %d bytes",
				    s->name, SYSCTL_VALUE_MAX);
	kind = sysctl_kind(path);
	if (kind == ISOLATE_NS_COUNT)
		return error_refuse(err, ERROR_INVALID, "sysctls: %s: belongs to no namespace",
				    s->name);
	if (ns[kind] == ISOLATE_KEEP)
		return error_refuse(err, ERROR_INVALID,
				    "sysctls: %s: is of a namespace that is kept", s->name);
	return 0;
}

int isolate_sysctls_check(const struct isolate_sysctl *sysctls, size_t n,
			  const enum isolate_ns_mode ns[ISOLATE_NS_COUNT], struct error *err)
{
	int r = 0;

	if (n > ISOLATE_SYSCTLS_MAX || (n && !sysctls))
		return error_refuse(err, ERROR_INVALID, "sysctls: more than %d",
				    ISOLATE_SYSCTLS_MAX);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = plan_check_sysctl(&sysctls[i], ns, err);
	return r;
}

const struct plan_rule plan_ns_rules[] = {
	{ "domainname", plan_domainname_is_wrong,
	  "only in a new uts namespace, at most 64 bytes without control characters" },
	{ "uid_map", plan_uid_map_is_wrong,
	  "1 to 340 ranges, in a user namespace, none empty or past the last id" },
	{ "gid_map", plan_gid_map_is_wrong,
	  "1 to 340 ranges, in a user namespace, none empty or past the last id" },
	{ "uid", plan_uid_is_unmapped, "is not in uid_map" },
	{ "gid", plan_gid_is_unmapped, "is not in gid_map" },
	{ "deny_setgroups", plan_deny_is_wrong,
	  "only in a user namespace, without supplementary groups" },
	{ "monotonic", plan_time_is_wrong,
	  "offsets only in a new time namespace, with less than a second of nanoseconds" },
	{ NULL, NULL, NULL },
};
