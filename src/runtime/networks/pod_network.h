/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_POD_NETWORK_H
#define NACRE_RUNTIME_POD_NETWORK_H

#include <stdbool.h>

#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "network/wish.h"
#include "pod/workload/make.h"

/*
 * The network of a pod, and the names in it: fields `network` and `pod_network` of a request,
 * checked, as the domain takes them.
 */

struct arena;

#define POD_NETWORK_HOSTS_MAX 256
#define POD_NETWORK_SEARCH_MAX 32
#define POD_NETWORK_SEARCH_BYTES_MAX 2048
#define POD_NETWORK_OPTIONS_MAX 32
#define POD_NETWORK_OPTION_MAX 64
#define POD_NETWORK_HOSTNAME_MAX 64
#define POD_NETWORK_RATE_MIN UINT64_C(8000)
#define POD_NETWORK_RATE_MAX UINT64_C(1000000000000)

/* The value of spec->network for such a field; ERROR_INVALID. */
int pod_network_word(const char *field, const char **ret, struct error *err);
/* The same of a cell: "own" or "host". */
int pod_network_cell_word(const char *field, const char **ret, struct error *err);
/*
 * Fills in spec->attach, spec->etc and the part of spec->settings about them, all in the arena, of
 * a specification that has its parent and its choice. by_default: a pod that names no network is on
 * one. Errors name the field.
 */
int pod_network_take(struct arena *a, const char *network,
		     const Aurae__Runtime__V0__PodNetwork *asked, bool by_default,
		     struct workload_spec *spec, struct error *err);
/* The same for field `further_networks`, behind it. */
int pod_network_take_further(struct arena *a, Aurae__Runtime__V0__FurtherNetwork *const *further,
			     size_t n_further, const char *network, struct workload_spec *spec,
			     struct error *err);
/* One network for a pod that runs: an error names the fields of the message. */
int pod_network_take_one(const Aurae__Runtime__V0__FurtherNetwork *m, const char *field,
			 struct network_wish *ret, struct error *err);
/* An error about a part of the wish (network/attach.h) becomes one about the field of the request.
 */
void pod_network_blame(const Aurae__Runtime__V0__PodNetwork *asked, struct error *err);

#endif
