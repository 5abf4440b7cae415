/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "base/time/clock.h"

struct event_kept {
	struct event event;
	char texts[]; /* what its members id, name, workload, reason point to */
};

int events_init(struct events *all)
{
	*all = (struct events){ .sequence = 0 };
	list_init(&all->listeners);
	all->kept = calloc(EVENTS_KEPT, sizeof(struct event_kept *));
	return all->kept ? id_new(all->life) : -ENOMEM;
}

void events_done(struct events *all)
{
	for (size_t i = 0; all->kept && i < EVENTS_KEPT; i++)
		free(all->kept[i]);
	free(all->kept);
	all->kept = NULL;
}

void events_add(struct events *all, struct event_listener *l)
{
	list_init(&l->link);
	list_add_tail(&all->listeners, &l->link);
}

void events_remove(struct event_listener *l)
{
	list_remove(&l->link);
}

static const char *event_put(char **to, const char *text)
{
	size_t n = strlen(text) + 1;
	char *at = *to;

	memcpy(at, text, n);
	*to += n;
	return at;
}

static struct event_kept *event_keep(const struct event *e)
{
	const char *id = e->id ?: "", *name = e->name ?: "", *reason = e->reason ?: "";
	const char *workload = e->workload ?: "";
	size_t n = strlen(id) + strlen(name) + strlen(workload) + strlen(reason) + 4;
	struct event_kept *kept = malloc(sizeof(*kept) + n);
	char *to;

	if (!kept)
		return NULL;
	to = kept->texts;
	kept->event = *e;
	kept->event.id = event_put(&to, id);
	kept->event.name = event_put(&to, name);
	kept->event.workload = event_put(&to, workload);
	kept->event.reason = event_put(&to, reason);
	return kept;
}

void events_publish(struct events *all, struct event *e)
{
	struct event_kept **kept;
	struct event_listener *l;

	e->sequence = ++all->sequence;
	e->time = clock_real();
	kept = &all->kept[e->sequence % EVENTS_KEPT];
	free(*kept);
	*kept = event_keep(e);
	list_for_each (l, &all->listeners, struct event_listener, link)
		l->fn(l, e);
}

const struct event *events_get(const struct events *all, uint64_t sequence)
{
	const struct event_kept *kept = all->kept[sequence % EVENTS_KEPT];

	return kept && kept->event.sequence == sequence ? &kept->event : NULL;
}

/* ---- tokens ---- */

void events_token(const struct events *all, uint64_t sequence, char ret[EVENTS_TOKEN_SIZE])
{
	(void)str_printf(ret, EVENTS_TOKEN_SIZE, "%s-%" PRIu64, all->life, sequence);
}

static bool events_token_is(const char *token)
{
	uint64_t number;

	return strlen(token) > ID_LEN && strspn(token, "0123456789abcdef") == ID_LEN &&
	       token[ID_LEN] == '-' && parse_u64(token + ID_LEN + 1, 0, UINT64_MAX, &number) == 0;
}

int events_resume(const struct events *all, const char *token, uint64_t *ret, struct error *err)
{
	uint64_t number = 0;

	if (!events_token_is(token))
		return error_field(err, ERROR_INVALID, "resume_token",
				   "not one that this service gave out");
	(void)parse_u64(token + ID_LEN + 1, 0, UINT64_MAX, &number);
	if (strncmp(token, all->life, ID_LEN) != 0 || number > all->sequence)
		return error_field(err, ERROR_RANGE, "resume_token",
				   "of another life of the daemon: watch anew");
	if (number < all->sequence && !events_get(all, number + 1))
		return error_field(err, ERROR_RANGE, "resume_token",
				   "too old, the last %d events are kept: watch anew", EVENTS_KEPT);
	*ret = number + 1;
	return 0;
}
