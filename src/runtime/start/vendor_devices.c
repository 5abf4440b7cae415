/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/vendor_devices.h"

#include <errno.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "pod/workload/make.h"
#include "rpc/server/server.h"
#include "runtime/start/container.h"

#define VENDOR_FIELD "containers[%zu].cdi_devices"

/* ---- the look-up ---- */

static bool vendor_wants(const struct vendor_devices *v, size_t i)
{
	const Aurae__Runtime__V0__Container *c = v->containers[i];
	const char *name = str_empty(c->name) ? RUN_CONTAINER_NAME : c->name;

	return c->n_cdi_devices > 0 && !v->known[i] && (!v->only || str_eq(v->only, name));
}

static void vendor_failed(void *userdata, const struct error *err)
{
	struct vendor_devices *v = userdata;

	if (v->fail)
		v->fail(v->userdata, err);
	else
		rpc_call_fail(v->call, err);
}

/* 1: no other one wants any. 0: `found` or vendor_failed() is called later. */
static int vendor_next(struct vendor_devices *v,
		       void (*found)(void *userdata, const struct cdi_changes *changes),
		       struct error *err)
{
	const Aurae__Runtime__V0__Container *c;
	char field[ERROR_FIELD_MAX];

	while (v->at < v->n && !vendor_wants(v, v->at))
		v->at++;
	if (v->at == v->n)
		return 1;
	c = v->containers[v->at];
	(void)str_printf(field, sizeof(field), VENDOR_FIELD, v->at);
	if (v->fail)
		return cdi_lookup_start(v->all, v->arena, field, c->cdi_devices, c->n_cdi_devices,
					&(struct cdi_waiter){ found, vendor_failed, v }, err);
	return cdi_call_start(v->all, v->call, field, c->cdi_devices, c->n_cdi_devices, found, v,
			      err);
}

static void vendor_found(void *userdata, const struct cdi_changes *changes)
{
	struct vendor_devices *v = userdata;
	struct error err = ERROR_INIT;
	int r;

	v->changes[v->at] = *changes;
	v->known[v->at] = true;
	r = vendor_next(v, vendor_found, &err);
	if (r > 0)
		v->go_on(v->userdata);
	else if (r < 0)
		vendor_failed(v, &err);
}

int vendor_devices_start(struct vendor_devices *v, struct error *err)
{
	size_t n_wanted = 0;

	v->at = 0;
	for (size_t i = 0; i < v->n; i++)
		n_wanted += v->containers[i]->n_cdi_devices > 0;
	if (n_wanted == 0)
		return 1;
	v->changes = arena_zalloc(v->arena, v->n, sizeof(*v->changes));
	v->known = arena_zalloc(v->arena, v->n, sizeof(*v->known));
	return v->changes && v->known ? vendor_next(v, vendor_found, err)
				      : error_set(err, -ENOMEM, "look devices up");
}

/* ---- into the containers ---- */

static int vendor_check_marks(const Aurae__Runtime__V0__Container *c, size_t i, struct error *err)
{
	char field[ERROR_FIELD_MAX];

	for (size_t k = 0; k < c->n_mounts; k++) {
		(void)str_printf(field, sizeof(field), "containers[%zu].mounts[%zu].cdi", i, k);
		if (c->mounts[k]->cdi)
			return error_field(err, ERROR_INVALID, field,
					   "in answers only: name the device in cdi_devices");
	}
	for (size_t k = 0; k < c->n_devices; k++) {
		(void)str_printf(field, sizeof(field), "containers[%zu].devices[%zu].cdi", i, k);
		if (c->devices[k]->cdi)
			return error_field(err, ERROR_INVALID, field,
					   "in answers only: name the device in cdi_devices");
	}
	return 0;
}

int vendor_devices_check(Aurae__Runtime__V0__Container *const *containers, size_t n, bool remote,
			 struct error *err)
{
	char field[ERROR_FIELD_MAX];
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		(void)str_printf(field, sizeof(field), VENDOR_FIELD, i);
		if (containers[i]->n_cdi_devices > 0 && remote)
			return error_field(err, ERROR_UNSUPPORTED, field,
					   "an instance of kind \"vm\" has the devices of its own "
					   "machine, and none of the node");
		r = vendor_check_marks(containers[i], i, err);
	}
	return r;
}

int vendor_devices_add(struct arena *a, const struct cdi_changes *changes,
		       Aurae__Runtime__V0__Container **containers, size_t n, struct error *err)
{
	for (size_t i = 0; changes && i < n; i++) {
		Aurae__Runtime__V0__Container *c;
		int r;

		if (containers[i]->n_cdi_devices == 0)
			continue;
		c = arena_memdup(a, containers[i], sizeof(*c));
		if (!c)
			return error_set(err, -ENOMEM, "devices");
		r = cdi_changes_add(a, &changes[i], c, err);
		if (r < 0)
			return r;
		containers[i] = c;
	}
	return 0;
}

/* The mounts of its devices are the last ones. */
int vendor_devices_settle(struct arena *a, Aurae__Runtime__V0__Container *const *containers,
			  size_t n, struct pod_container_spec *to, struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		const Aurae__Runtime__V0__Container *c = containers[i];
		struct pod_mount_spec *mounts = (struct pod_mount_spec *)(uintptr_t)to[i].mounts;
		const char *field;

		if (c->n_cdi_devices == 0)
			continue;
		field = arena_printf(a, VENDOR_FIELD, i);
		if (!field)
			return error_set(err, -ENOMEM, "devices");
		for (size_t k = 0; k < c->n_mounts; k++) {
			if (!c->mounts[k]->cdi)
				continue;
			mounts[k].follow = true;
			mounts[k].field = field;
		}
		for (size_t k = 0; k < c->n_devices; k++)
			if (c->devices[k]->cdi)
				mounts[to[i].n_mounts - c->n_devices + k].field = field;
	}
	return 0;
}

/* The number in "PREFIX[7]…"; SIZE_MAX: it is another field. */
static size_t vendor_index(const char *field, const char *prefix)
{
	size_t n = strlen(prefix), i = 0;

	if (!str_has_prefix(field, prefix) || field[n] != '[')
		return SIZE_MAX;
	for (n++; field[n] >= '0' && field[n] <= '9' && i < SIZE_MAX / 100; n++)
		i = 10 * i + (size_t)(field[n] - '0');
	return field[n] == ']' ? i : SIZE_MAX;
}

void vendor_devices_blame(Aurae__Runtime__V0__Container *const *containers, size_t n,
			  struct error *err)
{
	size_t i = vendor_index(err->field, "containers"), mount, device;
	char field[ERROR_FIELD_MAX];
	const char *rest;

	if (i >= n || containers[i]->n_cdi_devices == 0)
		return;
	rest = strchr(err->field, '.');
	mount = rest ? vendor_index(rest, ".mounts") : SIZE_MAX;
	device = rest ? vendor_index(rest, ".devices") : SIZE_MAX;
	if (!(mount < containers[i]->n_mounts && containers[i]->mounts[mount]->cdi) &&
	    !(device < containers[i]->n_devices && containers[i]->devices[device]->cdi))
		return;
	(void)str_printf(field, sizeof(field), VENDOR_FIELD, i);
	error_rename_field(err, field);
}
