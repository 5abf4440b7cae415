/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/client/client_call.h"

#include <errno.h>
#include <stdlib.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "keeper/client/client_fd.h"
#include "keeper/message/convert.h"

static int client_call_draw(struct client_call *call, uint64_t *tokens, const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r;

		if (fds && fds[i] < 0)
			continue;
		r = client_draw_token(&tokens[i]);
		if (r < 0)
			return r;
		call->n_fds++;
	}
	return 0;
}

/* The mounts of a request; the memory is the caller's. */
struct start_mounts {
	Nacre__Instance__V1__Mount *messages, **list;
};

static void start_mounts_done(struct start_mounts *m)
{
	free(m->messages);
	free(m->list);
}

static int client_call_add_mounts(struct client_call *call, struct start_mounts *m,
				  Nacre__Instance__V1__StartRequest *request,
				  const struct container_spec *spec)
{
	size_t n = call->mounts.n_mounts;
	int r;

	if (n == 0)
		return 0;
	m->messages = calloc(n, sizeof(*m->messages));
	m->list = calloc(n, sizeof(*m->list));
	call->mount_tokens = calloc(n, sizeof(*call->mount_tokens));
	if (!m->messages || !m->list || !call->mount_tokens)
		return -ENOMEM;
	r = client_call_draw(call, call->mount_tokens, call->mounts.mounts, n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		m->list[i] = &m->messages[i];
		convert_mount(m->list[i], &spec->mounts[i]);
		m->list[i]->token = call->mount_tokens[i];
	}
	request->mounts = m->list;
	request->n_mounts = n;
	return 0;
}

/* What the keeper makes by itself; the memory is the caller's. */
struct start_disk {
	Nacre__Instance__V1__Disk disk;
	Nacre__Instance__V1__File *messages, **list;
};

static void start_disk_done(struct start_disk *d)
{
	free(d->messages);
	free(d->list);
}

static int client_call_add_disk(struct start_disk *d, Nacre__Instance__V1__StartRequest *request,
				const struct container_spec *spec)
{
	if (!spec->root_disk)
		return 0;
	convert_disk(&d->disk, spec->root_disk);
	request->root_disk = &d->disk;
	if (spec->n_files == 0)
		return 0;
	d->messages = calloc(spec->n_files, sizeof(*d->messages));
	d->list = calloc(spec->n_files, sizeof(*d->list));
	if (!d->messages || !d->list)
		return -ENOMEM;
	for (size_t i = 0; i < spec->n_files; i++) {
		d->list[i] = &d->messages[i];
		convert_file(d->list[i], &spec->files[i]);
	}
	request->files = d->list;
	request->n_files = spec->n_files;
	return 0;
}

int client_call_prepare_start(struct client_call *call, const struct cell_spec *cell,
			      const struct container_spec *spec)
{
	_cleanup_(start_mounts_done) struct start_mounts mounts = { .messages = NULL };
	_cleanup_(start_disk_done) struct start_disk disk = { .messages = NULL };
	Nacre__Instance__V1__StartRequest request;
	Nacre__Instance__V1__Security security;
	struct convert_security_lists lists;
	int r;

	convert_start_request(&request, cell, spec);
	if (container_security_is_set(&spec->security)) {
		convert_security_request(&security, &lists, spec);
		request.security = &security;
	}
	if (spec->late)
		r = client_call_draw(call, call->tokens, NULL, START_FDS - !call->client->rotates);
	else
		r = client_call_draw(call, call->tokens, call->fds, ARRAY_SIZE(call->fds));
	if (r == 0)
		r = client_call_draw(call, &call->network_token, &call->mounts.network, 1);
	if (r == 0)
		r = client_call_add_mounts(call, &mounts, &request, spec);
	if (r == 0)
		r = client_call_add_disk(&disk, &request, spec);
	if (r < 0)
		return r;
	request.rootfs_token = call->tokens[0];
	request.log_token = call->tokens[1];
	request.log_dir_token = call->tokens[2];
	request.network_token = call->network_token;
	call->len = nacre__instance__v1__start_request__get_packed_size(&request);
	call->data = malloc(call->len + 1);
	if (!call->data)
		return -ENOMEM;
	(void)nacre__instance__v1__start_request__pack(&request, call->data);
	return 0;
}

static bool spec_has_share(const struct container_spec *spec)
{
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (!str_empty(spec->mounts[i].share))
			return true;
	return false;
}

static bool spec_has_scratch(const struct container_spec *spec)
{
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (spec->mounts[i].scratch || spec->mounts[i].one_file)
			return true;
	return false;
}

static bool spec_propagates(const struct container_spec *spec)
{
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (spec->mounts[i].propagation)
			return true;
	return false;
}

static bool spec_has_devices(const struct container_spec *spec)
{
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (spec->mounts[i].access)
			return true;
	return spec->security.all_devices;
}

/* Of one that is reached by bytes alone. */
static int client_check_channel(const struct client_call *call, const struct container_spec *spec,
				struct error *err)
{
	const char *what = spec->late ? "descriptors that come later" : NULL;

	for (size_t i = 0; i < call->mounts.n_mounts && !what; i++)
		if (call->mounts.mounts[i] >= 0)
			what = "a mount";
	if (call->mounts.network >= 0)
		what = "a network";
	else if (call->fds[0] >= 0)
		what = "a root file system";
	else if (call->fds[1] >= 0 || call->fds[2] >= 0)
		what = "a log";
	if (!what || keeper_client_has_channel(call->client))
		return 0;
	return error_refuse(err, ERROR_PRECONDITION,
			    "its keeper has a kernel of its own: %s cannot be passed to it", what);
}

static bool spec_has_owner(const struct container_spec *spec)
{
	for (size_t i = 0; i < spec->n_mounts; i++)
		if (spec->mounts[i].uid || spec->mounts[i].gid)
			return true;
	return false;
}

int client_check_features(const struct client_call *call, const struct cell_spec *cell,
			  const struct container_spec *spec, struct error *err)
{
	const struct keeper_client *client = call->client;
	const char *what = NULL;

	if ((spec->n_mounts > 0 || spec->read_only_root) && !client->mounts)
		what = "mounts";
	else if ((strv_len(spec->limits) > 0 || strv_len(cell->limits) > 0) && !client->limits)
		what = "limits";
	else if (spec->root_disk && !client->disks)
		what = "disks";
	else if (spec->keep_log && !client->logs)
		what = "logs that are kept";
	else if (spec_has_share(spec) && !client->shares)
		what = "shares";
	else if (spec_has_scratch(spec) && !client->scratch)
		what = "volumes of its machine's own";
	else if ((container_security_is_set(&spec->security) || spec_propagates(spec)) &&
		 !client->secures)
		what = "security";
	else if (spec_has_devices(spec) && !client->devices)
		what = "devices";
	else if (spec->kind == CONTAINER_VISITOR && !client->visitors)
		what = "visitors";
	else if (spec->security.n_rlimits > 0 && !client->rlimits)
		what = "limits of processes";
	else if (spec->security.own_filter && !client->filters)
		what = "filters for system calls";
	else if (spec_has_owner(spec) && !client->tmpfs_owner)
		what = "the owner of a tmpfs";
	else if (!client->cell_network && !cell->shares_instance &&
		 (cell->given_network || !str_empty(cell->hostname)))
		what = "networks of cells";
	if (!what && cell->given_network && call->mounts.network < 0)
		return error_set(err, -EMFILE, "the network of cell %s", cell->name);
	if (!what)
		return client_check_channel(call, spec, err);
	return error_refuse(err, ERROR_PRECONDITION, "its keeper (version %s) knows nothing of %s",
			    client->hello.version, what);
}
