/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_CELL_PLACE_H
#define NACRE_RUNTIME_CELL_PLACE_H

#include <stdbool.h>

#include "api/cells.pb-c.h"
#include "base/log/error.h"

/*
 * Cells of aurae.cells.v0: instances of kind cell whose record holds the message that they were
 * allocated by.
 */

struct arena;
struct instance;
struct instances;

/* That message; NULL: it is no such cell, or there is no memory. */
Aurae__Cells__V0__Cell *cell_place_record(struct arena *a, const struct instance *i);

/* Where executables of a cell run. */
struct cell_place {
	struct instance *instance; /* NULL: the node */
	bool new_proc;             /* pod_container_spec.new_proc */
};

/* path: "" for the node. ERROR_NOT_FOUND, ERROR_PRECONDITION for an instance that is no cell; both
 * name the field. */
int cell_place_find(struct arena *a, struct instances *all, const char *field, const char *path,
		    struct cell_place *ret, struct error *err);

#endif
