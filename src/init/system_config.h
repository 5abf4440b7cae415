/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_SYSTEM_CONFIG_H
#define NACRE_INIT_SYSTEM_CONFIG_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/log.h"
#include "base/time/clock.h"
#include "net/range/prefix.h"

/* What pid 1 (init/system_main.h) is told to set up: the section `system` of a configuration
 * (daemon/config.h), and how it logs. A value without pointers. */

#define SYSTEM_INTERFACES_MAX 8
#define SYSTEM_ADDRESSES_MAX 4
#define SYSTEM_CLIENT_WORDS_MAX 16
#define SYSTEM_CLIENT_SIZE 512
#define SYSTEM_HOSTNAME_SIZE 65

/* One network device. Without dhcp, autoconf and addresses it is only brought up. */
struct system_interface {
	char name[IFNAMSIZ];
	struct prefix addresses[SYSTEM_ADDRESSES_MAX];
	size_t n_addresses;
	struct prefix gateways[2]; /* of the default routes */
	size_t n_gateways;
	uint32_t mtu;  /* 0: the kernel's */
	bool dhcp;     /* IPv4, by a client */
	bool autoconf; /* IPv6, by the kernel (router advertisements) */
};

struct system_config {
	/* Of what pid 1 logs itself; the daemon's own keys. */
	enum log_level log_level;
	enum log_form log_form;
	char hostname[SYSTEM_HOSTNAME_SIZE]; /* "": as it is */
	struct system_interface interfaces[SYSTEM_INTERFACES_MAX];
	size_t n_interfaces;
	/* The words of its command, each with its NUL, "%i" for the device; none: the first client
	 * that is installed. */
	char dhcp_client[SYSTEM_CLIENT_SIZE];
	size_t dhcp_client_len, n_dhcp_client;
	nsec_t network_within; /* the daemon is started then, complete or not */
	nsec_t dhcp_patience;  /* a client without an address for so long is started again */
	nsec_t stop_within;    /* all workloads have ended by then */
};

#endif
