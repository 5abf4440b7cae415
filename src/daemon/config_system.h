/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_CONFIG_SYSTEM_H
#define NACRE_DAEMON_CONFIG_SYSTEM_H

#include "init/system_config.h"

/* The keys of `system` in a configuration. Each takes a value; -EINVAL. */

void config_system_init(struct system_config *s);
int config_system_hostname(struct system_config *s, const char *value);
/* "DEVICE WORD...": dhcp, auto, ADDRESS/LENGTH, via GATEWAY, mtu BYTES. */
int config_system_interface(struct system_config *s, const char *value);
int config_system_dhcp_client(struct system_config *s, const char *value);
int config_system_network_within(struct system_config *s, const char *value);
int config_system_dhcp_patience(struct system_config *s, const char *value);
int config_system_stop_within(struct system_config *s, const char *value);

#endif
