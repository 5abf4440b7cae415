/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STREAM_SESSION_H
#define NACRE_STREAM_SESSION_H

#include <stdbool.h>

#include "base/memory/list.h"
#include "stream/command.h"

/* One connection of the streaming server, whatever its client speaks; private to this area. */

struct loop;

struct session_owner {
	struct loop *loop;
	/* The command of a path, which is the session's then: 0; -ENOENT; -EBUSY: there are too
	 * many sessions with one, and the path stays good. */
	int (*claim)(void *userdata, struct stream_session *s, const char *path,
		     struct stream_command *ret);
	void (*closed)(void *userdata, struct stream_session *s);
	void *userdata;
};

/* Takes fd over. owner must live as long. 0 or -ENOMEM. */
int stream_session_new(struct stream_session **ret, const struct session_owner *owner, int fd);
/* claim() has succeeded. */
bool stream_session_is_admitted(const struct stream_session *s);
/* Without owner->closed. */
struct stream_session *stream_session_free(struct stream_session *s);
struct list *stream_session_link(struct stream_session *s);
struct stream_session *stream_session_of(struct list *link);

#endif
