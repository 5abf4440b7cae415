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
	enum fetchmsg_type answer;
	bool answered;
	size_t len;
	unsigned flags;
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

	if (m->type != j->answer || j->answered)
		return error_refuse(err, ERROR_FAULT, "a helper said what does not belong here");
	j->answered = true;
	if (m->type == FETCHMSG_EDITS) {
		j->len = m->edits.n_bytes;
	} else {
		j->len = m->filter.n_insns * sizeof(struct sock_filter);
		j->flags = m->filter.flags;
	}
	return 0;
}

static int profile_read(const struct profile_job *j, struct buf *b, struct error *err)
{
	int r = 0;

	if (!j->answered)
		return error_refuse(err, ERROR_FAULT, "a helper ended without an answer");
	/* The helper has moved the place of both. */
	if (lseek(j->to_fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r == 0)
		r = fd_read_all(j->to_fd, j->len, b);
	if (r < 0)
		return error_set(err, r, "read the answer of a helper");
	return b->len == j->len
		       ? 0
		       : error_refuse(err, ERROR_FAULT, "the answer of a helper is cut off");
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

static int profile_start(struct profile_job **ret, struct image_store *s, int from_fd,
			 const struct fetchmsg *request, profile_fn done, void *userdata,
			 struct error *err)
{
	bool devices = request->type == FETCHMSG_CDI;
	const char *command = devices ? "cdi" : "profile";
	struct profile_job *j = malloc(sizeof(*j));
	int r;

	if (!j)
		return error_set(err, -ENOMEM, "start a helper");
	*j = (struct profile_job){ .done = done,
				   .userdata = userdata,
				   .answer = devices ? FETCHMSG_EDITS : FETCHMSG_FILTER,
				   .to_fd = memfd_create(command, MFD_CLOEXEC) };
	if (j->to_fd < 0)
		r = error_set(err, -errno, "make room for the answer of a helper");
	else
		r = helper_start(&j->helper,
				 &(struct helper_config){ .loop = s->config.loop,
							  .path = s->fetch_path,
							  .command = command,
							  .caps = PROFILE_CAPS,
							  .from_fd = from_fd,
							  .to_fd = j->to_fd,
							  .more_fd = -1,
							  .net_ns_fd = -1,
							  .mount_ns_fd = -1,
							  .request = request },
				 &profile_helper_ops, err);
	if (r < 0) {
		(void)profile_job_free(j);
		return r;
	}
	*ret = j;
	return 0;
}

int profile_job_start(struct profile_job **ret, struct image_store *s, int json_fd, uint64_t caps,
		      profile_fn done, void *userdata, struct error *err)
{
	const struct fetchmsg request = { .type = FETCHMSG_PROFILE, .profile = { .caps = caps } };

	return profile_start(ret, s, json_fd, &request, done, userdata, err);
}

int profile_devices_start(struct profile_job **ret, struct image_store *s, int from_fd,
			  profile_fn done, void *userdata, struct error *err)
{
	const struct fetchmsg request = { .type = FETCHMSG_CDI };

	return profile_start(ret, s, from_fd, &request, done, userdata, err);
}
