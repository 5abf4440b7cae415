/* SPDX-License-Identifier: Apache-2.0 */
#include "image/helper/profile.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "image/content/model.h"
#include "image/helper/helper.h"

/* What the helper needs until it has closed its sandbox (fetch/job/sandbox.c). */
#define CAP(name) (UINT64_C(1) << (name))
#define PROFILE_CAPS (CAP(CAP_SYS_ADMIN) | CAP(CAP_SETPCAP) | CAP(CAP_DAC_READ_SEARCH))

struct profile_job {
	struct helper helper;
	profile_fn done;
	void *userdata;
	int to_fd; /* what it writes */
	uint32_t n_insns, flags;
};

struct profile_job *profile_job_free(struct profile_job *j)
{
	if (!j)
		return NULL;
	helper_done(&j->helper);
	j->to_fd = fd_close(j->to_fd);
	free(j);
	return NULL;
}

static int profile_on_message(struct helper *h, const struct fetchmsg *m, struct error *err)
{
	struct profile_job *j = container_of(h, struct profile_job, helper);

	if (m->type != FETCHMSG_FILTER || j->n_insns > 0)
		return error_refuse(err, ERROR_FAULT, "a helper said what does not belong here");
	j->n_insns = m->filter.n_insns;
	j->flags = m->filter.flags;
	return 0;
}

static int profile_read(const struct profile_job *j, struct buf *b, struct error *err)
{
	size_t len = j->n_insns * sizeof(struct sock_filter);
	int r = 0;

	if (j->n_insns == 0)
		return error_refuse(err, ERROR_FAULT, "a helper ended without a filter");
	/* The helper has moved the place of both. */
	if (lseek(j->to_fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r == 0)
		r = fd_read_all(j->to_fd, len, b);
	if (r < 0)
		return error_set(err, r, "read a filter");
	return b->len == len ? 0 : error_refuse(err, ERROR_FAULT, "a filter is cut off");
}

static void profile_on_end(struct helper *h, const struct error *err)
{
	struct profile_job *j = container_of(h, struct profile_job, helper);
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	profile_fn done = j->done;
	void *userdata = j->userdata;
	unsigned flags = j->flags;
	struct error own = ERROR_INIT;

	if (err)
		(void)error_copy(&own, err);
	else
		(void)profile_read(j, &b, &own);
	(void)profile_job_free(j);
	done(userdata, buf_data(&b), b.len, flags, own.code ? &own : NULL);
}

static const struct helper_ops profile_helper_ops = {
	.on_message = profile_on_message,
	.on_end = profile_on_end,
};

int profile_job_start(struct profile_job **ret, struct image_store *s, int json_fd, uint64_t caps,
		      profile_fn done, void *userdata, struct error *err)
{
	const struct fetchmsg request = { .type = FETCHMSG_PROFILE, .profile = { .caps = caps } };
	struct profile_job *j = malloc(sizeof(*j));
	int r;

	if (!j)
		return error_set(err, -ENOMEM, "start a helper");
	*j = (struct profile_job){ .done = done,
				   .userdata = userdata,
				   .to_fd = memfd_create("filter", MFD_CLOEXEC) };
	if (j->to_fd < 0)
		r = error_set(err, -errno, "make room for a filter");
	else
		r = helper_start(&j->helper,
				 &(struct helper_config){ .loop = s->config.loop,
							  .path = s->fetch_path,
							  .command = "profile",
							  .caps = PROFILE_CAPS,
							  .from_fd = json_fd,
							  .to_fd = j->to_fd,
							  .more_fd = -1,
							  .net_ns_fd = -1,
							  .mount_ns_fd = -1,
							  .request = &request },
				 &profile_helper_ops, err);
	if (r < 0) {
		(void)profile_job_free(j);
		return r;
	}
	*ret = j;
	return 0;
}
