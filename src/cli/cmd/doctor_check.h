/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_DOCTOR_CHECK_H
#define NACRE_CLI_DOCTOR_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/time/clock.h"

/* The checks of `nacre doctor`. Each asks the kernel, or the daemon, and changes nothing. */

struct cli;

#define DOCTOR_TIMEOUT (2 * NSEC_PER_SEC)

struct check {
	const char *name;
	bool essential;
	/* Whether it is there; *ret_detail (the caller's) says what was seen. */
	bool (*look)(const struct cli *cli, char **ret_detail);
	const char *consequence;
	const char *cure;
};

/* Checks of what networks of pods and machines need. */
extern const struct check doctor_networks[];
extern const size_t doctor_n_networks;
/* Further checks, of a kubelet's requirements: --kubernetes. */
extern const struct check doctor_kubernetes[];
extern const size_t doctor_n_kubernetes;

#endif
