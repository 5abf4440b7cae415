/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/dial.h"

#include <stdlib.h>

#include "base/file/fd.h"

struct dial *dial_new(void (*done)(void *userdata, struct dial *d), void *userdata)
{
	struct dial *d = calloc(1, sizeof(*d));

	if (d)
		*d = (struct dial){ .done = done, .userdata = userdata, .fds = { -1, -1 } };
	return d;
}

struct dial *dial_free(struct dial *d)
{
	if (!d)
		return NULL;
	for (int i = 0; i < DIAL_COUNT; i++)
		(void)fd_close(d->fds[i]);
	free(d);
	return NULL;
}

void dial_answer(struct dial *d)
{
	if (d->done)
		d->done(d->userdata, d);
	(void)dial_free(d);
}
