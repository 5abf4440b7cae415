/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_METADATA_H
#define NACRE_DAEMON_METADATA_H

#include "base/log/error.h"

/* Metadata services of pods: who serves what pods ask for, and who says what is told there. */

struct daemon;
struct metadata_ops;

/* Of workloads; userdata is the daemon. */
extern const struct metadata_ops metadata_ops;

/* Starts nothing yet. 0 or a negative errno. */
int metadata_begin_port(struct daemon *d, struct error *err);
/* Nobody is served any more. */
void metadata_end_port(struct daemon *d);

#endif
