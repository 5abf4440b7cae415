/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/cell_place.h"

#include "base/text/str.h"
#include "instance/instance.h"
#include "runtime/start/settings.h"

Aurae__Cells__V0__Cell *cell_place_record(struct arena *a, const struct instance *i)
{
	return settings_record(a, i->settings, &aurae__cells__v0__cell__descriptor);
}

int cell_place_find(struct arena *a, struct instances *all, const char *field, const char *path,
		    struct cell_place *ret, struct error *err)
{
	struct instance *i = str_empty(path) ? NULL : instances_find(all, path);
	const Aurae__Cells__V0__Cell *record;

	*ret = (struct cell_place){ .instance = i };
	if (str_empty(path))
		return 0;
	if (!i)
		return error_field(err, ERROR_NOT_FOUND, field, "there is no cell %.300s", path);
	if (!cell_place_record(a, i))
		return error_field(err, ERROR_PRECONDITION, field,
				   "%s is an instance, but was not made by CellService.Allocate",
				   i->path);
	/* The host's /proc shows the processes of the host. */
	for (; i && !instance_is_node(i); i = i->parent) {
		record = cell_place_record(a, i);
		ret->new_proc = ret->new_proc || !record || record->isolate_process;
	}
	return 0;
}
