/* SPDX-License-Identifier: Apache-2.0 */
#include "clouds/model.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault/failpoint.h"
#include "base/log/log.h"
#include "base/text/str.h"

/*
 * The life of one machine. An event changes the state, the state is recorded, and when the record
 * lies on the disk cloud_vm_on_step() does what the state and what is wanted ask for: one question
 * to the cloud at a time, again after a pause where it fails.
 *
 * A create call is asked with the same words until the cloud answers it, also where the machine is
 * not wanted any more: only so it is known whether there is one to be ended. (After
 * CLOUD_TOKEN_LIFE the cloud may have forgotten the token; a list says it then.)
 */

#define CLOUD_PAUSE_FIRST (NSEC_PER_SEC / 4)
#define CLOUD_PAUSE_MAX (30 * NSEC_PER_SEC)
#define CLOUD_TERMINATE_AGAIN (60 * NSEC_PER_SEC)
#define CLOUD_TOKEN_LIFE (12 * 3600 * NSEC_PER_SEC)
#define CLOUD_MISSED_MAX 3

static const char *const cloud_words[] = {
	[CLOUD_CREATING] = "creating", [CLOUD_PENDING] = "pending", [CLOUD_RUNNING] = "running",
	[CLOUD_STOPPED] = "stopped",   [CLOUD_ENDING] = "ending",   [CLOUD_EXITED] = "exited",
	[CLOUD_FAILED] = "failed",
};
static_assert(ARRAY_SIZE(cloud_words) == CLOUD_STATE_COUNT, "a word for each state");

static const char *const wanted_words[] = {
	[CLOUD_WANT_RUN] = "run",
	[CLOUD_WANT_STOP] = "stop",
	[CLOUD_WANT_REMOVE] = "remove",
};
static_assert(ARRAY_SIZE(wanted_words) == CLOUD_WANTED_COUNT, "a word for each wish");

/* STAY: nothing changes. */
#define STAY CLOUD_STATE_COUNT
static const enum cloud_state edges[CLOUD_STATE_COUNT][CLOUD_EVENT_COUNT] = {
	[CLOUD_CREATING] = { CLOUD_PENDING, CLOUD_FAILED, STAY, STAY, STAY, STAY, STAY, STAY },
	[CLOUD_PENDING] = { STAY, STAY, STAY, CLOUD_RUNNING, CLOUD_STOPPED, CLOUD_ENDING,
			    CLOUD_EXITED, CLOUD_ENDING },
	[CLOUD_RUNNING] = { STAY, STAY, STAY, STAY, CLOUD_STOPPED, CLOUD_ENDING, CLOUD_EXITED,
			    CLOUD_ENDING },
	[CLOUD_STOPPED] = { STAY, STAY, CLOUD_PENDING, CLOUD_RUNNING, STAY, CLOUD_ENDING,
			    CLOUD_EXITED, CLOUD_ENDING },
	[CLOUD_ENDING] = { STAY, STAY, STAY, STAY, STAY, STAY, CLOUD_EXITED, STAY },
	[CLOUD_EXITED] = { STAY, STAY, STAY, STAY, STAY, STAY, STAY, STAY },
	[CLOUD_FAILED] = { STAY, STAY, STAY, STAY, STAY, STAY, STAY, STAY },
};

const char *cloud_state_word(enum cloud_state s)
{
	return cloud_words[s];
}

static void cloud_vm_tell_watch(const struct cloud_vm *vm, bool gone)
{
	const struct clouds *all = vm->all;

	if (vm->owner[0] && all->instances.fn)
		all->instances.fn(all->instances.userdata, vm, gone);
	if (vm->workload[0] && all->workloads.fn)
		all->workloads.fn(all->workloads.userdata, vm, gone);
}

static void cloud_vm_tell_state(const struct cloud_vm *vm, const char *state)
{
	const struct clouds_config *c = &vm->all->config;

	if (c->on_state)
		c->on_state(c->userdata, vm, state);
	cloud_vm_tell_watch(vm, str_eq(state, "removed"));
}

/* ---- who waits ---- */

static void cloud_vm_tell_run(struct cloud_vm *vm, const struct error *err)
{
	const cloud_done_fn done = vm->run_done;

	vm->run_done = NULL;
	if (done)
		done(vm->run_userdata, err ? NULL : vm, err);
}

/* removals: also those who wait for the record's end. vm_gone: there is none any more. */
static void cloud_vm_tell_waiters(struct cloud_vm *vm, bool removals, bool vm_gone,
				  const struct error *err)
{
	struct cloud_waiter *w;

	list_for_each (w, &vm->waiters, struct cloud_waiter, link) {
		if (w->removal && !removals)
			continue;
		list_remove(&w->link);
		w->done(w->userdata, vm_gone || err ? NULL : vm, err);
		free(w);
	}
}

static int cloud_vm_wait(struct cloud_vm *vm, bool removal, cloud_done_fn done, void *userdata,
			 struct error *err)
{
	struct cloud_waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return error_set(err, -ENOMEM, "wait for a machine in the cloud");
	*w = (struct cloud_waiter){ .removal = removal, .done = done, .userdata = userdata };
	list_init(&w->link);
	list_add_tail(&vm->waiters, &w->link);
	return 0;
}

/* ---- the object ---- */

static void cloud_vm_on_again(struct loop_timer *t)
{
	struct cloud_vm *vm = container_of(t, struct cloud_vm, again);

	vm->waiting = false;
	if (vm->dirty)
		cloud_vm_save(vm);
	loop_defer_schedule(&vm->step);
}

struct cloud_vm *cloud_vm_free(struct cloud_vm *vm)
{
	struct cloud_waiter *w;

	if (!vm)
		return NULL;
	list_for_each (w, &vm->waiters, struct cloud_waiter, link)
		free(w);
	(void)cloud_question_forget(vm->question);
	loop_timer_done(&vm->again);
	loop_defer_done(&vm->step);
	list_remove(&vm->link);
	if (map_get(&vm->all->by_token, vm->token) == vm)
		(void)map_remove(&vm->all->by_token, vm->token);
	buf_done(&vm->words);
	free(vm);
	return NULL;
}

/* Records of before there were others name none. */
static const char *cloud_vm_provider(const struct cloud_vm *vm)
{
	const char *provider = cloudmsg_get(&vm->request, "provider");

	return *provider ? provider : "ec2";
}

void cloud_vm_view(const struct cloud_vm *vm, struct cloud_view *ret)
{
	*ret = (struct cloud_view){ .provider = cloud_vm_provider(vm),
				    .id = vm->id,
				    .name = vm->name,
				    .image = cloudmsg_get(&vm->request, "image"),
				    .type = cloudmsg_get(&vm->request, "type"),
				    .region = cloudmsg_get(&vm->request, "region"),
				    .instance = vm->instance,
				    .address = vm->address,
				    .zone = vm->zone,
				    .reason = vm->reason,
				    .owner = vm->owner,
				    .workload = vm->workload,
				    .state = vm->state,
				    .created_at = vm->created_at,
				    .ended_at = vm->ended_at,
				    .lease = vm->lease };
}

void cloud_vm_give_up(struct cloud_vm *vm, const struct error *err)
{
	cloud_vm_tell_run(vm, err);
	cloud_vm_tell_waiters(vm, true, true, err);
}

/* ---- its record ---- */

/* Words never hold a newline (wire/message/keyed.h): it stands in the record where the packet has a
 * NUL. */
static void cloud_swap(char *text, size_t len, char from, char to)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] == from)
			text[i] = to;
}

static void cloud_vm_later(struct cloud_vm *vm)
{
	vm->waiting = true;
	loop_timer_set(&vm->again, vm->pause);
	vm->pause = MIN(vm->pause * 2, CLOUD_PAUSE_MAX);
}

static void cloud_vm_never_was(struct cloud_vm *vm, const struct error *err)
{
	struct error own = ERROR_INIT;

	(void)error_copy(&own, err);
	(void)error_wrap(&own, own.code, "the machine was not made: its record cannot be written");
	cloud_vm_tell_run(vm, &own);
	cloud_vm_tell_waiters(vm, true, true, &own);
	vm->all->n--;
	(void)cloud_vm_free(vm);
}

static void cloud_vm_saved(void *userdata, const struct error *err)
{
	struct cloud_vm *vm = userdata;

	vm->writing = false;
	if (err && !vm->recorded) {
		cloud_vm_never_was(vm, err);
		return;
	}
	if (err) {
		log_error("the state of a machine in the cloud cannot be recorded; nothing is done "
			  "until it is",
			  LOG_STR("vm", vm->name), LOG_ERR(err));
		vm->dirty = true;
		cloud_vm_later(vm);
		return;
	}
	if (!vm->recorded)
		FAILPOINT_AFTER("cloud.record");
	vm->recorded = true;
	if (vm->dirty) {
		cloud_vm_save(vm);
		return;
	}
	if (vm->instance[0] && vm->state != CLOUD_CREATING)
		FAILPOINT_AFTER("cloud.made");
	if (vm->state != CLOUD_CREATING && vm->state != CLOUD_FAILED)
		cloud_vm_tell_run(vm, NULL);
	if (cloud_vm_has_ended(vm))
		cloud_vm_tell_waiters(vm, false, false, NULL);
	loop_defer_schedule(&vm->step);
}

void cloud_vm_save(struct cloud_vm *vm)
{
	_cleanup_str_ char *request = malloc(vm->words.len);
	struct root_cloud_vm record = { .id = vm->id,
					.name = vm->name,
					.token = vm->token,
					.instance = vm->instance,
					.state = cloud_words[vm->state],
					.wanted = wanted_words[vm->wanted],
					.reason = vm->reason,
					.address = vm->address,
					.zone = vm->zone,
					.created_at = vm->created_at,
					.ended_at = vm->ended_at };
	struct error err = ERROR_INIT;
	int r = request ? 0 : error_set(&err, -ENOMEM, "record a machine in the cloud");

	vm->dirty = true;
	if (vm->writing || vm->dropping)
		return;
	if (!vm->recorded)
		FAILPOINT_BEFORE("cloud.record");
	if (r == 0) {
		/* The last NUL ends the text. */
		memcpy(request, buf_data(&vm->words), vm->words.len);
		cloud_swap(request, vm->words.len - 1, '\0', '\n');
		record.request = request;
		r = root_store_put_cloud_vm(vm->all->config.store, &record, cloud_vm_saved, vm,
					    &err);
	}
	if (r < 0) {
		/* Of a new one the caller hears, who frees it. */
		if (vm->recorded)
			cloud_vm_later(vm);
		return;
	}
	vm->dirty = false;
	vm->writing = true;
}

static void cloud_vm_dropped(void *userdata, const struct error *err)
{
	struct cloud_vm *vm = userdata;

	vm->dropping = false;
	if (err) {
		log_error("the record of a machine in the cloud cannot be dropped yet",
			  LOG_STR("vm", vm->name), LOG_ERR(err));
		cloud_vm_later(vm);
		return;
	}
	FAILPOINT_AFTER("cloud.forget");
	cloud_vm_tell_state(vm, "removed");
	if (vm->failure.code)
		cloud_vm_tell_run(vm, &vm->failure);
	else if (vm->run_done) {
		(void)error_refuse(&vm->failure, ERROR_ABORTED, "it was removed while it was made");
		cloud_vm_tell_run(vm, &vm->failure);
	}
	cloud_vm_tell_waiters(vm, true, true, NULL);
	vm->all->n--;
	(void)cloud_vm_free(vm);
}

static void cloud_vm_drop(struct cloud_vm *vm)
{
	struct error err = ERROR_INIT;

	FAILPOINT_BEFORE("cloud.forget");
	vm->dropping = true;
	if (root_store_drop_cloud_vm(vm->all->config.store, vm->id, cloud_vm_dropped, vm, &err) ==
	    0)
		return;
	vm->dropping = false;
	cloud_vm_later(vm);
}

static int cloud_word_find(const char *const *words, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(words[i], word))
			return (int)i;
	return -1;
}

static int cloud_vm_fill(struct cloud_vm *vm, const struct root_cloud_vm *r)
{
	const struct {
		char *to;
		size_t size;
		const char *from;
	} texts[] = {
		{ vm->id, sizeof(vm->id), r->id },
		{ vm->name, sizeof(vm->name), r->name },
		{ vm->instance, sizeof(vm->instance), r->instance },
		{ vm->address, sizeof(vm->address), r->address },
		{ vm->zone, sizeof(vm->zone), r->zone },
		{ vm->reason, sizeof(vm->reason), r->reason },
	};
	int state = cloud_word_find(cloud_words, ARRAY_SIZE(cloud_words), r->state);
	int wanted = cloud_word_find(wanted_words, ARRAY_SIZE(wanted_words), r->wanted);

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (str_copy(texts[i].to, texts[i].size, texts[i].from) < 0)
			return -EINVAL;
	if (state < 0 || wanted < 0 || !name_is_label(vm->name) || !str_eq(vm->token, r->token))
		return -EINVAL;
	vm->state = (enum cloud_state)state;
	vm->wanted = (enum cloud_wanted)wanted;
	vm->created_at = r->created_at;
	vm->ended_at = r->ended_at;
	return 0;
}

int cloud_vm_read(struct clouds *all, const struct root_cloud_vm *record, struct error *err)
{
	const struct cloud_settings *s = all->config.settings;
	_cleanup_(buf_done) struct buf words = BUF_INIT;
	struct cloud_vm *vm;
	int r = buf_add(&words, record->request, strlen(record->request) + 1);

	if (r < 0)
		return error_set(err, r, "read the records of machines in clouds");
	cloud_swap((char *)words.base + words.head, words.len - 1, '\n', '\0');
	vm = cloud_vm_new(all, &words);
	if (!vm || cloud_vm_fill(vm, record) < 0) {
		(void)cloud_vm_free(vm);
		return error_refuse(err, ERROR_FAULT,
				    "the record of machine %.32s in a cloud is damaged, or of a "
				    "newer nacre",
				    record->id);
	}
	r = map_add(&all->by_token, vm->token, vm);
	if (r < 0) {
		(void)cloud_vm_free(vm);
		return error_set(err, r, "read the records of machines in clouds");
	}
	vm->recorded = true;
	vm->tried = vm->state == CLOUD_CREATING;
	vm->elsewhere = !str_eq(s->region, cloudmsg_get(&vm->request, "region")) ||
			!str_eq(s->project, cloudmsg_get(&vm->request, "project")) ||
			!str_eq(s->provider, cloud_vm_provider(vm));
	vm->doubt = vm->state == CLOUD_CREATING && clock_real() > vm->created_at + CLOUD_TOKEN_LIFE;
	list_add_tail(&all->list, &vm->link);
	all->n++;
	loop_defer_schedule(&vm->step);
	return 0;
}

/* ---- states ---- */

static void cloud_vm_enter(struct cloud_vm *vm, enum cloud_state state)
{
	vm->state = state;
	vm->pause = CLOUD_PAUSE_FIRST;
	if (vm->waiting) {
		loop_timer_stop(&vm->again);
		vm->waiting = false;
	}
	if (cloud_vm_has_ended(vm))
		vm->ended_at = clock_real();
	if (state == CLOUD_PENDING || state == CLOUD_RUNNING)
		vm->reason[0] = '\0';
	cloud_vm_save(vm);
	cloud_vm_tell_state(vm, cloud_words[state]);
	clouds_look(vm->all, state == CLOUD_PENDING || state == CLOUD_ENDING);
}

void cloud_vm_on(struct cloud_vm *vm, enum cloud_event e)
{
	enum cloud_state next = edges[vm->state][e];

	if (next != STAY)
		cloud_vm_enter(vm, next);
}

/* ---- what a list says ---- */

static void cloud_vm_note(struct cloud_vm *vm, char *to, size_t size, const char *text)
{
	if (!*text || str_eq(to, text))
		return;
	(void)str_copy(to, size, text);
	cloud_vm_save(vm);
}

static void cloud_vm_note_address(struct cloud_vm *vm, const char *address)
{
	/* An instance keeps its first one: in vSphere its workloads could tell another. */
	bool keeps = vm->owner[0] && vm->address[0];
	bool other = *address && !keeps && !str_eq(vm->address, address);

	if (other)
		cloud_vm_note(vm, vm->address, sizeof(vm->address), address);
	if (other)
		cloud_vm_tell_watch(vm, false);
}

static void cloud_vm_learn(struct cloud_vm *vm, const struct cloudmsg *m)
{
	static const struct {
		const char *word;
		enum cloud_event event;
	} words[] = {
		{ "pending", CLOUD_SEEN_PENDING },     { "running", CLOUD_SEEN_RUNNING },
		{ "stopping", CLOUD_SEEN_STOPPED },    { "stopped", CLOUD_SEEN_STOPPED },
		{ "shutting-down", CLOUD_SEEN_GOING }, { "terminated", CLOUD_SEEN_GONE },
	};
	const char *state = cloudmsg_get(m, "state"), *reason = cloudmsg_get(m, "reason");

	cloud_vm_note_address(vm, cloudmsg_get(m, "address"));
	cloud_vm_note(vm, vm->zone, sizeof(vm->zone), cloudmsg_get(m, "zone"));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!str_eq(words[i].word, state))
			continue;
		/* Why it goes, where it was not this node that has ended it. */
		if (words[i].event >= CLOUD_SEEN_STOPPED && *reason &&
		    vm->wanted == CLOUD_WANT_RUN && !cloud_vm_has_ended(vm))
			cloud_vm_note(vm, vm->reason, sizeof(vm->reason), reason);
		cloud_vm_on(vm, words[i].event);
	}
}

static void cloud_vm_made(struct cloud_vm *vm, const struct cloudmsg *m)
{
	FAILPOINT_BEFORE("cloud.made");
	vm->doubt = false;
	vm->since = clock_mono();
	vm->born = vm->all->round;
	(void)str_copy(vm->instance, sizeof(vm->instance), cloudmsg_get(m, "id"));
	cloud_vm_on(vm, CLOUD_MADE);
	cloud_vm_learn(vm, m);
}

void cloud_vm_seen(struct cloud_vm *vm, const struct cloudmsg *m)
{
	if (vm->elsewhere || vm->dropping || (vm->state == CLOUD_CREATING && !vm->doubt))
		return;
	vm->seen = true;
	vm->lease = cloud_lease_of(m);
	vm->missed = 0;
	vm->round = vm->all->round;
	if (vm->state == CLOUD_CREATING)
		cloud_vm_made(vm, m);
	else if (str_eq(vm->instance, cloudmsg_get(m, "id")))
		cloud_vm_learn(vm, m);
	if (vm->state == CLOUD_ENDING)
		loop_defer_schedule(&vm->step);
}

static bool cloud_vm_is_settled(const struct cloud_vm *vm)
{
	return clock_mono() - vm->since >= vm->all->config.settings->settle;
}

/* Nothing was made, for the reason that stands there. Who waits for it hears why, and has nothing
 * to remove. */
static void cloud_vm_refused(struct cloud_vm *vm)
{
	if (vm->run_done) {
		(void)error_refuse(&vm->failure, vm->failure_kind, "%s", vm->reason);
		vm->wanted = CLOUD_WANT_REMOVE;
	}
	cloud_vm_on(vm, CLOUD_REFUSED);
}

void cloud_vm_missed(struct cloud_vm *vm)
{
	if (vm->doubt && cloud_vm_is_settled(vm)) {
		if (!vm->reason[0])
			(void)str_copy(vm->reason, sizeof(vm->reason),
				       "the cloud has none that was made by this node's call");
		cloud_vm_refused(vm);
		return;
	}
	if (vm->doubt || cloud_vm_has_ended(vm) || (!vm->seen && !cloud_vm_is_settled(vm)))
		return;
	if (++vm->missed < CLOUD_MISSED_MAX)
		return;
	/* The answer to a terminate is the last word. */
	vm->missed = 0;
	vm->terminated = 0;
	if (vm->state != CLOUD_ENDING)
		(void)str_copy(vm->reason, sizeof(vm->reason),
			       "the cloud does not show it any more");
	cloud_vm_on(vm, CLOUD_SEEN_GOING);
	loop_defer_schedule(&vm->step);
}

/* ---- questions ---- */

static void cloud_vm_failed(struct cloud_vm *vm, const struct error *err)
{
	if (!str_eq(vm->reason, err->text))
		log_warn("the cloud does not do what a machine needs; it is asked again",
			 LOG_STR("vm", vm->name), LOG_ERR(err));
	(void)str_copy(vm->reason, sizeof(vm->reason), err->text);
	cloud_vm_later(vm);
}

static void cloud_vm_created(void *userdata, const struct cloudmsg *m, const struct error *err)
{
	struct cloud_vm *vm = userdata;

	vm->question = NULL;
	loop_defer_schedule(&vm->step);
	FAILPOINT_AFTER("cloud.create");
	if (!err) {
		cloud_vm_made(vm, m);
		return;
	}
	vm->tried = vm->tried || cloud_answer_is_unknown(m);
	if (cloud_answer_is_unknown(m) || err->kind == ERROR_UNAVAILABLE) {
		cloud_vm_failed(vm, err);
		return;
	}
	(void)str_copy(vm->reason, sizeof(vm->reason), err->text);
	/* A refusal says nothing of an earlier call: what that may have made has the token. */
	if (vm->tried || str_eq(cloudmsg_get(m, "doubt"), "yes")) {
		vm->failure_kind = err->kind;
		vm->doubt = true;
		/* Only a list that begins from now on can say. */
		vm->born = vm->all->round;
		vm->since = clock_mono();
		clouds_look(vm->all, true);
		return;
	}
	vm->failure_kind = err->kind;
	cloud_vm_refused(vm);
}

static void cloud_vm_ended(void *userdata, const struct cloudmsg *m, const struct error *err)
{
	struct cloud_vm *vm = userdata;

	vm->question = NULL;
	loop_defer_schedule(&vm->step);
	FAILPOINT_AFTER("cloud.terminate");
	/* A list was faster. */
	if (cloud_vm_has_ended(vm))
		return;
	if (!err) {
		vm->pause = CLOUD_PAUSE_FIRST;
		vm->terminated = clock_mono();
		/* Of a failure before. */
		if (vm->wanted != CLOUD_WANT_RUN)
			vm->reason[0] = '\0';
		if (str_eq(cloudmsg_get(m, "state"), "terminated"))
			cloud_vm_on(vm, CLOUD_SEEN_GONE);
		else
			clouds_look(vm->all, true);
		return;
	}
	/* The cloud does not know at once what it has just made. */
	if (err->kind == ERROR_NOT_FOUND && (vm->seen || cloud_vm_is_settled(vm))) {
		if (!vm->reason[0])
			(void)str_copy(vm->reason, sizeof(vm->reason),
				       "the cloud does not know it any more");
		cloud_vm_on(vm, CLOUD_SEEN_GONE);
		return;
	}
	if (err->kind != ERROR_UNAVAILABLE && err->kind != ERROR_NOT_FOUND)
		cloud_vm_tell_waiters(vm, true, false, err);
	cloud_vm_failed(vm, err);
}

static const struct cloud_question_ops cloud_create_ops = { .on_done = cloud_vm_created };
static const struct cloud_question_ops cloud_terminate_ops = { .on_done = cloud_vm_ended };

static void cloud_vm_create(struct cloud_vm *vm)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	FAILPOINT_BEFORE("cloud.create");
	if (buf_add(&b, buf_data(&vm->words), vm->words.len) < 0 ||
	    cloud_helper_ask(vm->all->helper, &b, &cloud_create_ops, vm, &vm->question) < 0)
		cloud_vm_later(vm);
}

static void cloud_vm_terminate(struct cloud_vm *vm)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	FAILPOINT_BEFORE("cloud.terminate");
	if (cloudmsg_put(&b, "verb", "terminate") < 0 ||
	    cloudmsg_put(&b, "id", "%s", vm->instance) < 0 ||
	    cloud_helper_ask(vm->all->helper, &b, &cloud_terminate_ops, vm, &vm->question) < 0)
		cloud_vm_later(vm);
}

/* ---- steps ---- */

static void cloud_step_creating(struct cloud_vm *vm)
{
	if (vm->doubt)
		clouds_look(vm->all, true);
	else
		cloud_vm_create(vm);
}

static void cloud_step_made(struct cloud_vm *vm)
{
	if (vm->wanted != CLOUD_WANT_RUN)
		cloud_vm_on(vm, CLOUD_UNWANTED);
	else
		clouds_look(vm->all, false);
}

static void cloud_step_ending(struct cloud_vm *vm)
{
	if (!vm->terminated || clock_mono() - vm->terminated >= CLOUD_TERMINATE_AGAIN)
		cloud_vm_terminate(vm);
	else
		clouds_look(vm->all, false);
}

static void cloud_step_over(struct cloud_vm *vm)
{
	if (vm->wanted == CLOUD_WANT_REMOVE)
		cloud_vm_drop(vm);
}

static void cloud_vm_on_step(struct loop_defer *d)
{
	static void (*const steps[])(struct cloud_vm * vm) = {
		[CLOUD_CREATING] = cloud_step_creating, [CLOUD_PENDING] = cloud_step_made,
		[CLOUD_RUNNING] = cloud_step_made,      [CLOUD_STOPPED] = cloud_step_made,
		[CLOUD_ENDING] = cloud_step_ending,     [CLOUD_EXITED] = cloud_step_over,
		[CLOUD_FAILED] = cloud_step_over,
	};
	struct cloud_vm *vm = container_of(d, struct cloud_vm, step);

	static_assert(ARRAY_SIZE(steps) == CLOUD_STATE_COUNT, "a step for each state");
	/* Journal, then act. */
	if (vm->writing || vm->dirty || vm->dropping || vm->question || vm->waiting)
		return;
	if (!cloud_vm_has_ended(vm) && (vm->elsewhere || !vm->all->helper))
		return;
	steps[vm->state](vm);
}

static void cloud_vm_find_owner(struct cloud_vm *vm)
{
	const char *at = NULL, *tag;

	while ((tag = cloudmsg_next(&vm->request, "tag", &at)) != NULL) {
		if (str_has_prefix(tag, CLOUD_TAG_POD "="))
			(void)str_copy(vm->owner, sizeof(vm->owner),
				       tag + strlen(CLOUD_TAG_POD "="));
		if (str_has_prefix(tag, CLOUD_TAG_WORKLOAD "="))
			(void)str_copy(vm->workload, sizeof(vm->workload),
				       tag + strlen(CLOUD_TAG_WORKLOAD "="));
	}
}

struct cloud_vm *cloud_vm_new(struct clouds *all, struct buf *words)
{
	struct cloud_vm *vm = calloc(1, sizeof(*vm));

	if (!vm)
		return NULL;
	vm->all = all;
	vm->words = *words;
	*words = (struct buf)BUF_INIT;
	vm->since = clock_mono();
	vm->pause = CLOUD_PAUSE_FIRST;
	vm->failure = (struct error)ERROR_INIT;
	vm->failure_kind = ERROR_UNAVAILABLE;
	list_init(&vm->link);
	list_init(&vm->waiters);
	loop_timer_init(&vm->again, all->config.loop, cloud_vm_on_again);
	loop_defer_init(&vm->step, all->config.loop, cloud_vm_on_step);
	if (cloudmsg_read(&vm->request, buf_data(&vm->words), vm->words.len) == 0 &&
	    str_copy(vm->token, sizeof(vm->token), cloudmsg_get(&vm->request, "token")) == 0) {
		cloud_vm_find_owner(vm);
		return vm;
	}
	return cloud_vm_free(vm);
}

/* ---- orders ---- */

static int cloud_vm_check_reach(const struct cloud_vm *vm, struct error *err)
{
	const struct cloud_settings *s = vm->all->config.settings;
	const char *region = cloudmsg_get(&vm->request, "region");

	if (cloud_vm_has_ended(vm))
		return 0;
	if (!*s->region)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s is a machine in a cloud, and none is configured any more "
				    "(cloud.ec2.region, cloud.gce.zone or "
				    "cloud.vsphere.datacenter; it is in %s of %s)",
				    vm->name, region, cloud_vm_provider(vm));
	if (vm->elsewhere)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s is in the region %s, and cloud.%s of the "
				    "configuration is %s",
				    vm->name, region,
				    str_eq(s->provider, "vsphere") ? "vsphere.datacenter"
				    : str_eq(s->provider, "gce")   ? "gce.zone"
								   : "ec2.region",
				    s->region);
	return 0;
}

static int cloud_vm_order(struct cloud_vm *vm, enum cloud_wanted wanted, cloud_done_fn done,
			  void *userdata, struct error *err)
{
	int r = cloud_vm_check_reach(vm, err);

	if (r == 0)
		r = cloud_vm_wait(vm, wanted == CLOUD_WANT_REMOVE, done, userdata, err);
	if (r < 0)
		return r;
	if (wanted > vm->wanted) {
		vm->wanted = wanted;
		cloud_vm_save(vm);
	}
	/* What waits for its turn after a failure is worth a try now. */
	if (vm->waiting && !vm->dirty) {
		loop_timer_stop(&vm->again);
		vm->waiting = false;
	}
	loop_defer_schedule(&vm->step);
	return 0;
}

int cloud_vm_stop(struct cloud_vm *vm, cloud_done_fn done, void *userdata, struct error *err)
{
	if (cloud_vm_has_ended(vm) && !vm->writing && !vm->dirty) {
		done(userdata, vm, NULL);
		return 0;
	}
	return cloud_vm_order(vm, CLOUD_WANT_STOP, done, userdata, err);
}

int cloud_vm_remove(struct cloud_vm *vm, bool force, cloud_done_fn done, void *userdata,
		    struct error *err)
{
	if (!force && !cloud_vm_has_ended(vm))
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s has not ended (it is %s; stop it first, or --force)",
				    vm->name, cloud_words[vm->state]);
	return cloud_vm_order(vm, CLOUD_WANT_REMOVE, done, userdata, err);
}
