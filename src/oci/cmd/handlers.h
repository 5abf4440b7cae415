/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_HANDLERS_H
#define NACRE_OCI_HANDLERS_H

#include "oci/cmd/command.h"

/* The commands' functions, for the table. */

#define OCI_HANDLER(name)                                                                          \
	int oci_##name(const struct oci *oci, const struct args *args, struct error *err)

OCI_HANDLER(create);
OCI_HANDLER(start);
OCI_HANDLER(run);
OCI_HANDLER(exec);
OCI_HANDLER(state);
OCI_HANDLER(list);
OCI_HANDLER(ps);
OCI_HANDLER(kill);
OCI_HANDLER(delete);
OCI_HANDLER(pause);
OCI_HANDLER(resume);
OCI_HANDLER(update);
OCI_HANDLER(events);
OCI_HANDLER(checkpoint);
OCI_HANDLER(restore);
OCI_HANDLER(features);
OCI_HANDLER(spec);
OCI_HANDLER(man);

#endif
