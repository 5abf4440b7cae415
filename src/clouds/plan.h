/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUDS_PLAN_H
#define NACRE_CLOUDS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/time/clock.h"

/*
 * The configuration of a cloud, and the choice of a type of machine from it. Pure.
 */

#define CLOUD_WORD_MAX 127 /* a name of the cloud's */
#define CLOUD_GROUPS_MAX 8
#define CLOUD_TYPES_MAX 32
#define CLOUD_POLL_MIN (100 * NSEC_PER_MSEC)
#define CLOUD_POLL_MAX (600 * NSEC_PER_SEC)
#define CLOUD_SETTLE_MAX (3600 * NSEC_PER_SEC)
#define CLOUD_LEASE_MIN NSEC_PER_SEC
#define CLOUD_LEASE_MAX (30 * 24 * 3600 * NSEC_PER_SEC)
/* From the create call to the first answer of a machine of a pod; at most as long as its token
 * enrols. */
#define CLOUD_BOOT_MIN NSEC_PER_SEC
#define CLOUD_BOOT_MAX (900 * NSEC_PER_SEC)

/* A type of machine: the table of prices, in the order of the configuration. */
struct cloud_type {
	char name[32];
	unsigned cpus;
	uint64_t memory;
	uint64_t price; /* of an hour, in millionths of whatever; 0: not told */
};

struct cloud_settings {
	const char *provider; /* "ec2", "gce", "vsphere" (doc/cloud.md); static */
	/* "": there is no cloud. Of gce the zone, of vsphere the datacenter. */
	char region[64];
	char project[64];                   /* of gce; of vsphere the host of its vCenter */
	bool has_ec2, has_gce, has_vsphere; /* a key of it is there: only one of them */
	char endpoint[256], profile[CLOUD_WORD_MAX + 1];
	char cluster[64];
	/* Of vsphere: where machines go, and what the vCenter is checked by. */
	char folder[CLOUD_WORD_MAX + 1], pool[CLOUD_WORD_MAX + 1], datastore[CLOUD_WORD_MAX + 1];
	char trust[CLOUD_WORD_MAX + 1];
	char subnet[CLOUD_WORD_MAX + 1], key_name[CLOUD_WORD_MAX + 1];
	char instance_profile[CLOUD_WORD_MAX + 1];
	char agent[CLOUD_WORD_MAX + 1]; /* the image of its instances; "": there are none */
	char groups[CLOUD_GROUPS_MAX][64];
	size_t n_groups;
	struct cloud_type types[CLOUD_TYPES_MAX];
	size_t n_types;
	bool spot;         /* of ec2 and gce: machines that the cloud may take back */
	nsec_t poll;       /* between two looks at all machines while nothing changes */
	nsec_t lease;      /* a machine is its node's for so long, unless that is renewed */
	nsec_t settle;     /* as long the cloud may not know what it has just made */
	nsec_t boot_limit; /* of a machine of a pod, until it answers */
};

/* A word as the names of the cloud's are: printable ASCII without blanks, quotes and commas. */
bool cloud_word_is_valid(const char *word);
/* "NAME=CPUS:MEMORY", and ":PRICE" where it has one: "t3.small=2:2GiB:0.0208". -EINVAL. */
int cloud_type_parse(const char *text, struct cloud_type *ret);
/* The cheapest type with so much of both, the first one of those; where one has no price it is the
 * first of the table. ERROR_INVALID names `type`, ERROR_EXHAUSTED what is too much. */
int cloud_plan_type(const struct cloud_settings *s, unsigned cpus, uint64_t memory,
		    const struct cloud_type **ret, struct error *err);
/* The same for vsphere, which knows no types: those of the table are names for a size, and without
 * a table the size is what was asked for (0: that of the template). *ret: name "" where it has
 * none. */
int cloud_plan_size(const struct cloud_settings *s, const char *type, unsigned cpus,
		    uint64_t memory, struct cloud_type *ret, struct error *err);

#endif
