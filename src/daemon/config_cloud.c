/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config_cloud.h"

#include <errno.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "clouds/plan.h"

#define VSPHERE_THUMBPRINT_LEN 95 /* of SHA-256, "AA:BB:…" */

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

int config_cloud_boot_limit(struct cloud_settings *s, const char *value)
{
	return set_cloud_duration(&s->boot_limit, value, CLOUD_BOOT_MIN, CLOUD_BOOT_MAX);
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

static int set_spot(struct cloud_settings *s, const char *value)
{
	s->spot = str_eq(value, "yes") || str_eq(value, "true");
	return s->spot || str_eq(value, "no") || str_eq(value, "false") ? 0 : -EINVAL;
}

int config_ec2_spot(struct cloud_settings *s, const char *value)
{
	ec2_use(s);
	return set_spot(s, value);
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

int config_gce_spot(struct cloud_settings *s, const char *value)
{
	gce_use(s);
	return set_spot(s, value);
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

int config_gce_agent(struct cloud_settings *s, const char *value)
{
	gce_use(s);
	return set_cloud_word(s->agent, sizeof(s->agent), value);
}

int config_gce_types(struct cloud_settings *s, const char *value)
{
	gce_use(s);
	return add_type(s, value);
}

/* ---- vsphere ---- */

static void vsphere_use(struct cloud_settings *s)
{
	s->has_vsphere = true;
	s->provider = "vsphere";
}

/* Its host says which vCenter a machine is in. */
int config_vsphere_endpoint(struct cloud_settings *s, const char *value)
{
	const char *host = strstr(value, "://");
	size_t n = host ? strcspn(host + 3, "/") : 0;

	vsphere_use(s);
	if (n == 0 || n >= sizeof(s->project))
		return -EINVAL;
	memcpy(s->project, host + 3, n);
	s->project[n] = '\0';
	return set_endpoint(s, value);
}

int config_vsphere_credentials(struct cloud_settings *s, const char *value)
{
	vsphere_use(s);
	return *value == '/' ? set_cloud_word(s->profile, sizeof(s->profile), value) : -EINVAL;
}

int config_vsphere_ca_file(struct cloud_settings *s, const char *value)
{
	vsphere_use(s);
	return *value == '/' && !*s->trust ? set_cloud_word(s->trust, sizeof(s->trust), value)
					   : -EINVAL;
}

int config_vsphere_thumbprint(struct cloud_settings *s, const char *value)
{
	vsphere_use(s);
	if (*s->trust || strlen(value) != VSPHERE_THUMBPRINT_LEN ||
	    value[strspn(value, "0123456789abcdefABCDEF:")])
		return -EINVAL;
	return str_copy(s->trust, sizeof(s->trust), value);
}

int config_vsphere_datacenter(struct cloud_settings *s, const char *value)
{
	vsphere_use(s);
	return strchr(value, '/') ? -EINVAL : set_cloud_word(s->region, sizeof(s->region), value);
}

int config_vsphere_folder(struct cloud_settings *s, const char *value)
{
	vsphere_use(s);
	return set_cloud_word(s->folder, sizeof(s->folder), value);
}

int config_vsphere_pool(struct cloud_settings *s, const char *value)
{
	vsphere_use(s);
	return set_cloud_word(s->pool, sizeof(s->pool), value);
}

int config_vsphere_datastore(struct cloud_settings *s, const char *value)
{
	vsphere_use(s);
	return set_cloud_word(s->datastore, sizeof(s->datastore), value);
}

int config_vsphere_agent(struct cloud_settings *s, const char *value)
{
	vsphere_use(s);
	return set_cloud_word(s->agent, sizeof(s->agent), value);
}

int config_vsphere_types(struct cloud_settings *s, const char *value)
{
	vsphere_use(s);
	return add_type(s, value);
}

/* ---- the whole ---- */

int config_cloud_check(const struct cloud_settings *s, const char *path, struct error *err)
{
	if (s->has_ec2 && s->has_gce)
		return error_refuse(err, ERROR_INVALID,
				    "%s: cloud.gce: not beside cloud.ec2: a node has one cloud",
				    path);
	if (s->has_vsphere && (s->has_ec2 || s->has_gce))
		return error_refuse(err, ERROR_INVALID,
				    "%s: cloud.vsphere: not beside cloud.%s: a node has one cloud",
				    path, s->has_ec2 ? "ec2" : "gce");
	if (s->has_vsphere && (!*s->region || !*s->endpoint || !*s->pool))
		return error_refuse(err, ERROR_INVALID,
				    "%s: cloud.vsphere.%s: required beside the other keys of "
				    "cloud.vsphere",
				    path,
				    !*s->region     ? "datacenter"
				    : !*s->endpoint ? "endpoint"
						    : "resource_pool");
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
