/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/server/given.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "isolate/disk/disk_loop.h"
#include "rpc/server/server.h"

struct given_disk {
	struct list link;
	char serial[DISK_LOOP_SERIAL_MAX + 1];
	int fd;
	uint64_t size, at;
};

static void given_drop(struct given *g, struct given_disk *d)
{
	list_remove(&d->link);
	(void)fd_close(d->fd);
	free(d);
	g->n_disks--;
}

static struct given_disk *given_find(const struct given *g, const char *serial)
{
	struct given_disk *d;

	list_for_each (d, &g->disks, struct given_disk, link)
		if (str_eq(d->serial, serial))
			return d;
	return NULL;
}

static int given_begin(struct given *g, const char *serial, uint64_t size, struct given_disk **ret,
		       struct error *err)
{
	struct given_disk *d = given_find(g, serial);
	int fd;

	if (d)
		given_drop(g, d);
	if (g->n_disks == GIVEN_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%d disks are being given already",
				    GIVEN_MAX);
	fd = disk_loop_file(serial, err);
	if (fd < 0)
		return fd;
	d = calloc(1, sizeof(*d));
	if (!d) {
		(void)fd_close(fd);
		return error_set(err, -ENOMEM, "take a disk");
	}
	*d = (struct given_disk){ .fd = fd, .size = size };
	list_init(&d->link);
	(void)str_copy(d->serial, sizeof(d->serial), serial);
	list_add_tail(&g->disks, &d->link);
	g->n_disks++;
	*ret = d;
	return 0;
}

static int given_check(const Nacre__Instance__V1__PutDiskRequest *q, struct error *err)
{
	if (!disk_loop_serial_is_valid(q->serial))
		return error_field(err, ERROR_INVALID, "serial",
				   "required: 1 to %d of a-z, 0-9 and '-'", DISK_LOOP_SERIAL_MAX);
	if (q->data.len == 0 || q->data.len > GIVEN_PIECE_MAX)
		return error_field(err, ERROR_INVALID, "data", "1 to %d bytes", GIVEN_PIECE_MAX);
	if (q->size == 0 || q->size > INT64_MAX || q->offset > q->size ||
	    q->data.len > q->size - q->offset)
		return error_field(err, ERROR_INVALID, "size",
				   "the data reach beyond the end of the disk");
	return 0;
}

static int given_take(struct given *g, const Nacre__Instance__V1__PutDiskRequest *q,
		      struct error *err)
{
	struct given_disk *d = given_find(g, q->serial);
	char device[DISK_NAME_MAX + 1];
	int r = 0;

	if (q->offset == 0 && disk_find(&g->places, q->serial, device) == 0)
		return error_refuse(err, ERROR_EXISTS, "there is a disk %s", q->serial);
	if (q->offset == 0)
		r = given_begin(g, q->serial, q->size, &d, err);
	else if (!d || d->size != q->size || d->at != q->offset)
		return error_field(err, ERROR_INVALID, "offset",
				   "the data do not follow what was given of the disk %s",
				   q->serial);
	if (r == 0) {
		r = fd_write_full(d->fd, q->data.data, q->data.len);
		if (r < 0)
			(void)error_refuse(err, ERROR_EXHAUSTED,
					   "there is no room in the memory of this machine for the "
					   "disk %s, which has %llu bytes",
					   q->serial, (unsigned long long)q->size);
	}
	if (r < 0) {
		if (d)
			given_drop(g, d);
		return r;
	}
	d->at += q->data.len;
	if (d->at < d->size)
		return 0;
	r = disk_loop_attach(g->places.dev_fd, d->fd, err);
	given_drop(g, d);
	return r;
}

void given_put(struct given *g, struct rpc_call *call,
	       const Nacre__Instance__V1__PutDiskRequest *request)
{
	Nacre__Instance__V1__PutDiskResponse response;
	struct error err = ERROR_INIT;
	int r = given_check(request, &err);

	if (r == 0 && g->places.dev_fd < 0)
		r = disk_places_open(&g->places, &err);
	if (r == 0)
		r = given_take(g, request, &err);
	if (r < 0) {
		rpc_call_fail(call, &err);
		return;
	}
	nacre__instance__v1__put_disk_response__init(&response);
	rpc_call_reply(call, &response.base);
}

void given_init(struct given *g)
{
	*g = (struct given){ .places = DISK_PLACES_NONE };
	list_init(&g->disks);
}

void given_done(struct given *g)
{
	struct given_disk *d;

	if (!g->disks.next)
		return;
	list_for_each (d, &g->disks, struct given_disk, link)
		given_drop(g, d);
	disk_places_close(&g->places);
}
