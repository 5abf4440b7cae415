/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/nested/child_state.h"

#include "base/macros.h"

static const struct handover_field child_fields[] = {
	HANDOVER(1, HANDOVER_TEXT, struct child, name),
	HANDOVER(2, HANDOVER_UINT, struct child, state, .max = CHILD_STATE_COUNT - 1),
	HANDOVER_BOOL(3, struct child, unwanted),
	HANDOVER(4, HANDOVER_TEXT, struct child, reason),
	HANDOVER(5, HANDOVER_INT, struct child, process.pid),
	HANDOVER(6, HANDOVER_FD, struct child, process.pidfd),
	HANDOVER_BOOL(7, struct child, killed),
	HANDOVER(8, HANDOVER_FD, struct child, dir_fd),
	HANDOVER(9, HANDOVER_FD, struct child, cgroup_fd),
};
HANDOVER_LEFT(struct child, link, "of its owner");
HANDOVER_LEFT(struct child, config, "of its owner");
HANDOVER_LEFT(struct child, process.report_fd, "it said hello");
HANDOVER_LEFT(struct child, process.give_fd, "of containers only");
HANDOVER_LEFT(struct child, rpc, "connected to again");
HANDOVER_LEFT(struct child, channel_fd, "connected to again");
HANDOVER_LEFT(struct child, watch, "child_resume()");
HANDOVER_LEFT(struct child, report, "it said hello");
HANDOVER_LEFT(struct child, timer, "child_resume()");
HANDOVER_LEFT(struct child, connected_at, "child_resume()");
HANDOVER_LEFT(struct child, lost, "child_resume()");
HANDOVER_LEFT(struct child, n_cleans, "busy while it is not 0");
HANDOVER_LEFT(struct child, unary, "busy while it is under way");
HANDOVER_LEFT(struct child, machine, "busy while it lives");
HANDOVER_LEFT(struct child, kernel, "busy while it lives");
HANDOVER_LEFT(struct child, line_fd, "of a machine");
HANDOVER_LEFT(struct child, line, "of a machine");
HANDOVER_LEFT(struct child, spawned, "it said hello");
HANDOVER_LEFT(struct child, spawned_userdata, "it said hello");
HANDOVER_LEFT(struct child, spawn_err, "it said hello");
HANDOVER_LEFT(struct child, waiters, "busy while there are some");

int child_write_state(struct handover_writer *w, const struct child *c)
{
	return handover_write(w, child_fields, ARRAY_SIZE(child_fields), c);
}

static int child_check_state(const struct child *c, bool trial, struct error *err)
{
	bool ok = name_is_label_of_any_case(c->name);

	if (c->state == CHILD_RUNNING && !trial)
		ok = ok && c->process.pid > 0 && c->process.pidfd >= 0 && c->dir_fd >= 0 &&
		     c->cgroup_fd >= 0;
	else
		ok = ok && (c->state == CHILD_RUNNING || c->state == CHILD_ENDED);
	return ok ? 0
		  : error_refuse(err, ERROR_INVALID, "state: instance \"%s\" is not whole",
				 c->name);
}

int child_read_state(struct handover_reader *r, const struct child_config *config,
		     struct child **ret, struct error *err)
{
	struct child *c;
	int n;

	n = child_alloc(&c, config, "", err);
	if (n < 0)
		return n;
	n = handover_read(r, "an instance", child_fields, ARRAY_SIZE(child_fields), c, NULL, NULL,
			  err);
	if (n == 0)
		n = child_check_state(c, r->trial, err);
	if (n < 0) {
		(void)child_free(c);
		return n;
	}
	*ret = c;
	return 0;
}
