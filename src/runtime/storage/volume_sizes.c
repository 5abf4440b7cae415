/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/storage/volume_sizes.h"

#include <errno.h>

#include "image/content/measure.h"
#include "loop/pool.h"
#include "volumes/volumes.h"

/* In the call's arena, which stays until it is answered. */
struct volume_sizes {
	struct pool_work work;
	struct rpc_call *call;
	int dir_fd; /* the volumes' */
	Nacre__V1__ListVolumesResponse *answer;
};

static void volume_sizes_run(struct pool_work *work)
{
	struct volume_sizes *s = container_of(work, struct volume_sizes, work);

	for (size_t i = 0; i < s->answer->n_volumes; i++) {
		struct measure m = { .bytes = 0 };
		int r = measure_tree(&m, s->dir_fd, s->answer->volumes[i]->id);

		s->answer->volumes[i]->bytes = m.bytes;
		/* One that was removed meanwhile takes nothing. */
		if (m.incomplete || (r < 0 && r != -ENOENT))
			s->answer->incomplete = true;
	}
}

static void volume_sizes_done(struct pool_work *work)
{
	struct volume_sizes *s = container_of(work, struct volume_sizes, work);

	rpc_call_reply(s->call, &s->answer->base);
}

int volume_sizes_answer(struct rpc_call *call, struct pool *pool, const struct volumes *volumes,
			Nacre__V1__ListVolumesResponse *answer, struct error *err)
{
	struct volume_sizes *s = arena_zalloc(rpc_call_arena(call), 1, sizeof(*s));

	if (!s)
		return error_set(err, -ENOMEM, "answer");
	*s = (struct volume_sizes){ .work = { .run = volume_sizes_run, .done = volume_sizes_done },
				    .call = call,
				    .dir_fd = volumes_dir(volumes),
				    .answer = answer };
	pool_submit(pool, &s->work);
	return 0;
}
