/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/publish.h"

#include "base/text/str.h"
#include "pod/workload/events.h"

void publish_workload(struct events *events, const struct workload *w, const char *state)
{
	struct event e = {
		.object = "workload",
		.id = w->id,
		.name = w->path,
		.kind = workload_kind_word(w->kind),
		.state = state,
		.reason = w->reason,
		.exit_code = workload_has_ended(w) ? workload_exit_code(w) : 0,
	};

	events_publish(events, &e);
}

void publish_workload_note(struct events *events, const struct workload *w, const char *note)
{
	struct event e = {
		.object = "workload",
		.id = w->id,
		.name = w->path,
		.kind = workload_kind_word(w->kind),
		.state = workload_state_word(w->state),
		.reason = note,
	};

	events_publish(events, &e);
}

static void publish_container_as(struct events *events, const struct pod_container *c,
				 const char *state, const char *reason)
{
	char name[NAME_PATH_MAX + NAME_LABEL_MAX + 2];
	struct event e = {
		.object = "container",
		.id = c->id,
		.name = name,
		.workload = c->workload->id,
		.kind = workload_kind_word(c->workload->kind),
		.state = state,
		.reason = reason,
		.exit_code = c->status.exit_code,
	};

	(void)str_printf(name, sizeof(name), "%s/%s", c->workload->path, c->name);
	events_publish(events, &e);
}

void publish_container(struct events *events, const struct pod_container *c, const char *state)
{
	publish_container_as(events, c, state, c->status.reason);
}

void publish_container_health(struct events *events, const struct pod_container *c,
			      const char *word)
{
	char note[40];

	(void)str_printf(note, sizeof(note), "health_status: %s", word);
	publish_container_as(events, c, pod_container_state_word(c), note);
}
