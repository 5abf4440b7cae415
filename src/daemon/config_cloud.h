/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_CONFIG_CLOUD_H
#define NACRE_DAEMON_CONFIG_CLOUD_H

#include "base/log/error.h"

/* The keys of `cloud` in a configuration. Each takes a value; -EINVAL. */

struct cloud_settings;

int config_cloud_cluster(struct cloud_settings *s, const char *value);
int config_cloud_poll(struct cloud_settings *s, const char *value);
int config_cloud_settle(struct cloud_settings *s, const char *value);
int config_cloud_lease(struct cloud_settings *s, const char *value);
int config_cloud_boot_limit(struct cloud_settings *s, const char *value);

int config_ec2_region(struct cloud_settings *s, const char *value);
int config_ec2_endpoint(struct cloud_settings *s, const char *value);
int config_ec2_profile(struct cloud_settings *s, const char *value);
int config_ec2_subnet(struct cloud_settings *s, const char *value);
int config_ec2_security_groups(struct cloud_settings *s, const char *value);
int config_ec2_key_name(struct cloud_settings *s, const char *value);
int config_ec2_instance_profile(struct cloud_settings *s, const char *value);
int config_ec2_agent(struct cloud_settings *s, const char *value);
int config_ec2_spot(struct cloud_settings *s, const char *value);
int config_ec2_types(struct cloud_settings *s, const char *value);

int config_gce_project(struct cloud_settings *s, const char *value);
int config_gce_zone(struct cloud_settings *s, const char *value);
int config_gce_endpoint(struct cloud_settings *s, const char *value);
int config_gce_credentials(struct cloud_settings *s, const char *value);
int config_gce_subnet(struct cloud_settings *s, const char *value);
int config_gce_tags(struct cloud_settings *s, const char *value);
int config_gce_agent(struct cloud_settings *s, const char *value);
int config_gce_spot(struct cloud_settings *s, const char *value);
int config_gce_types(struct cloud_settings *s, const char *value);

int config_vsphere_endpoint(struct cloud_settings *s, const char *value);
int config_vsphere_credentials(struct cloud_settings *s, const char *value);
int config_vsphere_ca_file(struct cloud_settings *s, const char *value);
int config_vsphere_thumbprint(struct cloud_settings *s, const char *value);
int config_vsphere_datacenter(struct cloud_settings *s, const char *value);
int config_vsphere_folder(struct cloud_settings *s, const char *value);
int config_vsphere_pool(struct cloud_settings *s, const char *value);
int config_vsphere_datastore(struct cloud_settings *s, const char *value);
int config_vsphere_agent(struct cloud_settings *s, const char *value);
int config_vsphere_types(struct cloud_settings *s, const char *value);

/* Once all is read: what must be there together, and what must not. ERROR_INVALID. */
int config_cloud_check(const struct cloud_settings *s, const char *path, struct error *err);

#endif
