/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config_cloud.h"

#include <errno.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "clouds/plan.h"

static int set_cloud_word(char *to, size_t size, const char *value)
{
	return cloud_word_is_valid(value) ? str_copy(to, size, value) : -EINVAL;
}

int config_cloud_cluster(struct cloud_settings *s, const char *value)
{
	return name_is_label(value) ? str_copy(s->cluster, sizeof(s->cluster), value) : -EINVAL;
}

static int set_cloud_duration(nsec_t *to, const char *value, nsec_t min, nsec_t max)
{
	nsec_t duration;

	if (parse_duration(value, &duration) < 0 || duration < min || duration > max)
		return -EINVAL;
	*to = duration;
	return 0;
}

int config_cloud_poll(struct cloud_settings *s, const char *value)
{
	return set_cloud_duration(&s->poll, value, CLOUD_POLL_MIN, CLOUD_POLL_MAX);
}

int config_cloud_settle(struct cloud_settings *s, const char *value)
{
	return set_cloud_duration(&s->settle, value, 0, CLOUD_SETTLE_MAX);
}

int config_cloud_lease(struct cloud_settings *s, const char *value)
{
	return set_cloud_duration(&s->lease, value, CLOUD_LEASE_MIN, CLOUD_LEASE_MAX);
}

/* ---- both ---- */

/* What else is wrong with it nacre-cloud says, which asks there. */
static int set_endpoint(struct cloud_settings *s, const char *value)
{
	if (!str_has_prefix(value, "https://") && !str_has_prefix(value, "http://"))
		return -EINVAL;
	return set_cloud_word(s->endpoint, sizeof(s->endpoint), value);
}

static int add_group(struct cloud_settings *s, const char *value)
{
	if (s->n_groups == CLOUD_GROUPS_MAX)
		return -EINVAL;
	return set_cloud_word(s->groups[s->n_groups++], sizeof(s->groups[0]), value);
}

static int add_type(struct cloud_settings *s, const char *value)
{
	if (s->n_types == CLOUD_TYPES_MAX)
		return -EINVAL;
	return cloud_type_parse(value, &s->types[s->n_types++]);
}

/* ---- ec2 ---- */

static void ec2_use(struct cloud_settings *s)
{
	s->has_ec2 = true;
}

int config_ec2_region(struct cloud_settings *s, const char *value)
{
	ec2_use(s);
	return name_is_label(value) ? str_copy(s->region, sizeof(s->region), value) : -EINVAL;
}

int config_ec2_endpoint(struct cloud_settings *s, const char *value)
{
	ec2_use(s);
	return set_endpoint(s, value);
}

int config_ec2_profile(struct cloud_settings *s, const char *value)
{
	ec2_use(s);
	return set_cloud_word(s->profile, sizeof(s->profile), value);
}

int config_ec2_subnet(struct cloud_settings *s, const char *value)
{
	ec2_use(s);
	return set_cloud_word(s->subnet, sizeof(s->subnet), value);
}

int config_ec2_key_name(struct cloud_settings *s, const char *value)
{
	ec2_use(s);
	return set_cloud_word(s->key_name, sizeof(s->key_name), value);
}

int config_ec2_instance_profile(struct cloud_settings *s, const char *value)
{
	ec2_use(s);
	return set_cloud_word(s->instance_profile, sizeof(s->instance_profile), value);
}

int config_ec2_agent(struct cloud_settings *s, const char *value)
{
	ec2_use(s);
	return set_cloud_word(s->agent, sizeof(s->agent), value);
}

int config_ec2_security_groups(struct cloud_settings *s, const char *value)
{
	ec2_use(s);
	return add_group(s, value);
}

int config_ec2_types(struct cloud_settings *s, const char *value)
{
	ec2_use(s);
	return add_type(s, value);
}

/* ---- gce ---- */

static void gce_use(struct cloud_settings *s)
{
	s->has_gce = true;
	s->provider = "gce";
}

/* It is a part of URLs. */
int config_gce_project(struct cloud_settings *s, const char *value)
{
	gce_use(s);
	return value[strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-.:")]
		       ? -EINVAL
		       : set_cloud_word(s->project, sizeof(s->project), value);
}

int config_gce_zone(struct cloud_settings *s, const char *value)
{
	gce_use(s);
	return name_is_label(value) ? str_copy(s->region, sizeof(s->region), value) : -EINVAL;
}

int config_gce_endpoint(struct cloud_settings *s, const char *value)
{
	gce_use(s);
	return set_endpoint(s, value);
}

int config_gce_credentials(struct cloud_settings *s, const char *value)
{
	gce_use(s);
	return *value == '/' ? set_cloud_word(s->profile, sizeof(s->profile), value) : -EINVAL;
}

int config_gce_subnet(struct cloud_settings *s, const char *value)
{
	gce_use(s);
	return set_cloud_word(s->subnet, sizeof(s->subnet), value);
}

int config_gce_tags(struct cloud_settings *s, const char *value)
{
	gce_use(s);
	return name_is_label(value) ? add_group(s, value) : -EINVAL;
}

int config_gce_types(struct cloud_settings *s, const char *value)
{
	gce_use(s);
	return add_type(s, value);
}

/* ---- the whole ---- */

int config_cloud_check(const struct cloud_settings *s, const char *path, struct error *err)
{
	if (s->has_ec2 && s->has_gce)
		return error_refuse(err, ERROR_INVALID,
				    "%s: cloud.gce: not beside cloud.ec2: a node has one cloud",
				    path);
	if (s->has_ec2 && !*s->region)
		return error_refuse(err, ERROR_INVALID,
				    "%s: cloud.ec2.region: required beside the other keys of "
				    "cloud.ec2",
				    path);
	if (s->has_gce && (!*s->region || !*s->project))
		return error_refuse(err, ERROR_INVALID,
				    "%s: cloud.gce.%s: required beside the other keys of cloud.gce",
				    path, *s->region ? "project" : "zone");
	return 0;
}
