/* SPDX-License-Identifier: Apache-2.0 */

/* What is asked of a cloud for one caller: a new machine, a look at what it would be, a console,
 * the end of what nobody has a record of. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "clouds/model.h"

/* One under way, which ends with its caller being told. */
struct cloud_call {
	struct list link; /* clouds.calls */
	struct clouds *all;
	struct cloud_question *question;
	cloud_done_fn done;
	cloud_console_fn console;
	cloud_collect_fn collect;
	void *userdata;
	/* Of a collection. */
	bool dry_run, expired;
	struct cloud_found *found;
	size_t n_found, at; /* the one that is being ended */
	bool too_many;
	struct loop_defer next;
};

static struct cloud_call *cloud_call_new(struct clouds *all, void *userdata)
{
	struct cloud_call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->all = all;
	c->userdata = userdata;
	list_init(&c->link);
	list_add_tail(&all->calls, &c->link);
	all->n_calls++;
	return c;
}

static void cloud_call_end(struct cloud_call *c, const struct cloudmsg *m, const struct error *err)
{
	struct error own = ERROR_INIT;

	list_remove(&c->link);
	c->all->n_calls--;
	loop_defer_done(&c->next);
	(void)cloud_question_forget(c->question);
	if (c->done)
		c->done(c->userdata, NULL, err);
	/* The machine is known here. */
	if (c->console && err && err->kind == ERROR_NOT_FOUND) {
		(void)error_refuse(&own, ERROR_PRECONDITION, "%s", err->text);
		err = &own;
	}
	if (c->console)
		c->console(c->userdata, m ? cloudmsg_get(m, "output") : "",
			   m ? cloudmsg_get(m, "time") : "", err);
	if (c->collect)
		c->collect(c->userdata, c->found, c->n_found, err);
	free(c->found);
	free(c);
}

void clouds_end_calls(struct clouds *all, const struct error *err)
{
	while (!list_empty(&all->calls))
		cloud_call_end(list_first(&all->calls, struct cloud_call, link), NULL, err);
}

static void cloud_call_on_done(void *userdata, const struct cloudmsg *m, const struct error *err)
{
	struct cloud_call *c = userdata;

	c->question = NULL;
	cloud_call_end(c, m, err);
}

static const struct cloud_question_ops cloud_call_ops = { .on_done = cloud_call_on_done };

int clouds_check(const struct clouds *all, struct error *err)
{
	if (all->helper)
		return 0;
	return error_refuse(err, ERROR_PRECONDITION,
			    "no cloud is configured on this node (cloud.ec2.region, "
			    "cloud.gce.zone or cloud.vsphere.datacenter in its configuration says "
			    "where; doc/cloud.md says the rest)");
}

/* The cloud bounds how often it is asked; the machines of this node are not to wait for users. */
static int clouds_check_calls(const struct clouds *all, struct error *err)
{
	int r = clouds_check(all, err);

	if (r < 0 || all->n_calls < CLOUD_CALLS_MAX)
		return r;
	return error_refuse(err, ERROR_EXHAUSTED,
			    "%d calls to the cloud are under way, the limit: try again",
			    CLOUD_CALLS_MAX);
}

/* ---- a new machine ---- */

static int clouds_check_name(struct clouds *all, const char *name, struct error *err)
{
	const struct cloud_vm *vm;

	if (!*name)
		return 0;
	if (!name_is_label(name))
		return error_field(err, ERROR_INVALID, "name",
				   "\"%.64s\" is not 1 to 63 of a-z, 0-9 and '-', with no '-' at "
				   "its ends",
				   name);
	vm = clouds_find(all, name);
	return vm ? error_refuse(err, ERROR_EXISTS,
				 "the name %s is taken by a machine in the cloud (it is %s)", name,
				 cloud_state_word(vm->state))
		  : 0;
}

static int clouds_put_words(struct clouds *all, const struct cloud_wish *wish, const char *type,
			    const char *token, struct buf *b)
{
	const struct cloud_settings *s = all->config.settings;
	const struct {
		const char *key, *value;
	} words[] = { { "verb", "create" },
		      { "provider", s->provider },
		      { "project", s->project },
		      { "region", s->region },
		      { "token", token },
		      { "image", wish->image },
		      { "type", type },
		      { "subnet", s->subnet },
		      { "folder", s->folder },
		      { "pool", s->pool },
		      { "datastore", s->datastore },
		      { "key-name", s->key_name },
		      { "instance-profile", s->instance_profile },
		      { "spot", s->spot ? "yes" : "" },
		      { "user-data", wish->user_data ?: "" } };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(words) && r == 0; i++)
		if (*words[i].value)
			r = cloudmsg_put(b, words[i].key, "%s", words[i].value);
	for (size_t i = 0; i < s->n_groups && r == 0; i++)
		r = cloudmsg_put(b, "group", "%s", s->groups[i]);
	if (r == 0 && wish->owner)
		r = cloudmsg_put(b, "tag", CLOUD_TAG_POD "=%s", wish->owner);
	if (r == 0 && wish->workload)
		r = cloudmsg_put(b, "tag", CLOUD_TAG_WORKLOAD "=%s", wish->workload);
	if (r == 0)
		r = clouds_put_lease(all, b);
	return r < 0 ? r : clouds_put_tags(all, b, all->node);
}

static int clouds_put_names(struct buf *b, const char *id, const char *name)
{
	int r = cloudmsg_put(b, "tag", CLOUD_TAG_VM "=%s", id);

	return r < 0 ? r : cloudmsg_put(b, "tag", "Name=%s", name);
}

/* vSphere has no types, and is told the size. */
static int clouds_put_size(struct buf *b, const struct cloud_type *size)
{
	int r = 0;

	if (size->cpus)
		r = cloudmsg_put(b, "cpus", "%u", size->cpus);
	if (r == 0 && size->memory)
		r = cloudmsg_put(b, "memory", "%llu",
				 (unsigned long long)((size->memory + (1 << 20) - 1) >> 20));
	return r;
}

static int clouds_plan(const struct clouds *all, const struct cloud_wish *wish,
		       struct cloud_type *ret, struct error *err)
{
	const struct cloud_type *type;
	int r = 0;

	if (*wish->type && !cloud_word_is_valid(wish->type))
		return error_field(err, ERROR_INVALID, "type", "\"%.64s\" is no type of a machine",
				   wish->type);
	if (str_eq(clouds_provider(all), "vsphere"))
		return cloud_plan_size(all->config.settings, wish->type, wish->cpus, wish->memory,
				       ret, err);
	*ret = (struct cloud_type){ .cpus = 0 };
	if (*wish->type)
		return 0;
	r = cloud_plan_type(all->config.settings, wish->cpus, wish->memory, &type, err);
	if (r == 0)
		(void)str_copy(ret->name, sizeof(ret->name), type->name);
	return r;
}

/* The words of the call, and who it is for. */
static int clouds_prepare(struct clouds *all, const struct cloud_wish *wish, struct buf *b,
			  char id[ID_SIZE], char name[NAME_LABEL_MAX + 1], struct error *err)
{
	struct cloud_type size;
	char token[CLOUD_TOKEN_MAX + 1], more[ID_SIZE];
	int r;

	if (!cloud_word_is_valid(wish->image))
		return error_field(err, ERROR_INVALID, "image",
				   "required: an image as the cloud calls it, \"ami-…\", "
				   "\"projects/…/images/…\", the path of a template");
	r = clouds_plan(all, wish, &size, err);
	if (r < 0)
		return r;
	r = id_new(id);
	if (r == 0)
		r = id_new(more);
	if (r < 0)
		return error_set(err, r, "draw an id");
	(void)str_printf(token, sizeof(token), "nacre-%s-%s", id, more);
	if (*wish->name)
		(void)str_copy(name, NAME_LABEL_MAX + 1, wish->name);
	else
		(void)str_printf(name, NAME_LABEL_MAX + 1, "vm-%.8s", id);
	r = clouds_put_words(all, wish, *wish->type ? wish->type : size.name, token, b);
	if (r == 0)
		r = clouds_put_size(b, &size);
	if (r == 0)
		r = clouds_put_names(b, id, name);
	return r < 0 ? error_set(err, r, "make a machine in the cloud") : 0;
}

static int clouds_ask_whether(struct clouds *all, struct buf *b, cloud_done_fn done, void *userdata,
			      struct error *err)
{
	struct cloud_call *c;
	int r = clouds_check_calls(all, err);

	if (r < 0)
		return r;
	c = cloud_call_new(all, userdata);
	r = c ? cloudmsg_put(b, "dry-run", "yes") : -ENOMEM;
	if (r == 0)
		r = cloud_helper_ask(all->helper, b, &cloud_call_ops, c, &c->question);
	if (r < 0) {
		if (c)
			cloud_call_end(c, NULL, NULL);
		return error_set(err, r, "ask the cloud");
	}
	c->done = done;
	return 0;
}

static int clouds_start(struct clouds *all, struct buf *b, const char *id, const char *name,
			cloud_done_fn done, void *userdata, struct error *err)
{
	struct cloud_vm *vm = cloud_vm_new(all, b);
	int r = vm ? map_add(&all->by_token, vm->token, vm) : -ENOMEM;

	if (r < 0) {
		(void)cloud_vm_free(vm);
		return error_set(err, r, "make a machine in the cloud");
	}
	(void)str_copy(vm->id, sizeof(vm->id), id);
	(void)str_copy(vm->name, sizeof(vm->name), name);
	vm->created_at = clock_real();
	cloud_vm_save(vm);
	if (!vm->writing) {
		(void)cloud_vm_free(vm);
		return error_set(err, -ENOMEM, "record a machine in the cloud");
	}
	vm->run_done = done;
	vm->run_userdata = userdata;
	list_add_tail(&all->list, &vm->link);
	all->n++;
	return 0;
}

int clouds_run(struct clouds *all, const struct cloud_wish *wish, cloud_done_fn done,
	       void *userdata, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char id[ID_SIZE], name[NAME_LABEL_MAX + 1];
	int r = clouds_check(all, err);

	if (r == 0)
		r = clouds_check_name(all, wish->name, err);
	if (r == 0 && all->n >= CLOUD_VMS_MAX)
		r = error_refuse(err, ERROR_EXHAUSTED,
				 "this node has %d machines in the cloud, the limit",
				 CLOUD_VMS_MAX);
	if (r == 0)
		r = clouds_prepare(all, wish, &b, id, name, err);
	if (r < 0)
		return r;
	return wish->dry_run ? clouds_ask_whether(all, &b, done, userdata, err)
			     : clouds_start(all, &b, id, name, done, userdata, err);
}

void clouds_forget_run(struct clouds *all, const void *userdata)
{
	for (struct cloud_vm *vm = clouds_next(all, NULL); vm; vm = clouds_next(all, vm))
		if (vm->run_userdata == userdata)
			vm->run_done = NULL;
}

/* ---- its console ---- */

int cloud_vm_console(struct cloud_vm *vm, cloud_console_fn done, void *userdata, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct cloud_call *c;
	int r = clouds_check_calls(vm->all, err);

	if (r < 0)
		return r;
	if (!vm->instance[0] || vm->elsewhere)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s has no console that can be asked for: it is %s%s", vm->name,
				    cloud_state_word(vm->state),
				    vm->elsewhere ? ", in another region" : "");
	c = cloud_call_new(vm->all, userdata);
	r = c ? cloudmsg_put(&b, "verb", "console") : -ENOMEM;
	if (r == 0)
		r = cloudmsg_put(&b, "id", "%s", vm->instance);
	if (r == 0)
		r = cloud_helper_ask(vm->all->helper, &b, &cloud_call_ops, c, &c->question);
	if (r < 0) {
		if (c)
			cloud_call_end(c, NULL, NULL);
		return error_set(err, r, "ask the cloud");
	}
	c->console = done;
	return 0;
}

/* ---- what nobody has a record of ---- */

static void collect_on_vm(void *userdata, const struct cloudmsg *m)
{
	struct cloud_call *c = userdata;
	struct cloud_found *f, *more;
	const char *state = cloudmsg_get(m, "state"), *at = NULL, *tag;

	if (map_get(&c->all->by_token, cloudmsg_get(m, "token")) || str_eq(state, "terminated") ||
	    str_eq(state, "shutting-down"))
		return;
	/* Doubled at each power of two. */
	if ((c->n_found & (c->n_found - 1)) == 0) {
		more = c->n_found < CLOUD_FOUND_MAX
			       ? reallocarray(c->found, MAX(c->n_found * 2, (size_t)16),
					      sizeof(*more))
			       : NULL;
		if (!more) {
			c->too_many = true;
			return;
		}
		c->found = more;
	}
	f = &c->found[c->n_found++];
	*f = (struct cloud_found){ .provider = clouds_provider(c->all) };
	f->lease = cloud_lease_of(m);
	(void)str_copy(f->instance, sizeof(f->instance), cloudmsg_get(m, "id"));
	(void)str_copy(f->state, sizeof(f->state), state);
	(void)str_copy(f->type, sizeof(f->type), cloudmsg_get(m, "type"));
	(void)str_copy(f->address, sizeof(f->address), cloudmsg_get(m, "address"));
	(void)str_copy(f->zone, sizeof(f->zone), cloudmsg_get(m, "zone"));
	while ((tag = cloudmsg_next(m, "tag", &at)) != NULL) {
		if (str_has_prefix(tag, "Name="))
			(void)str_copy(f->name, sizeof(f->name), tag + 5);
		if (str_has_prefix(tag, CLOUD_TAG_NODE "="))
			(void)str_copy(f->node, sizeof(f->node), tag + strlen(CLOUD_TAG_NODE "="));
	}
}

static void collect_on_ended(void *userdata, const struct cloudmsg *m, const struct error *err)
{
	struct cloud_call *c = userdata;
	struct cloud_found *f = &c->found[c->at];

	(void)m;
	c->question = NULL;
	if (err && err->kind != ERROR_NOT_FOUND)
		(void)str_copy(f->reason, sizeof(f->reason), err->text);
	c->at++;
	loop_defer_schedule(&c->next);
}

static const struct cloud_question_ops collect_end_ops = { .on_done = collect_on_ended };

/* The next one, or the end. */
static void collect_on_next(struct loop_defer *d)
{
	struct cloud_call *c = container_of(d, struct cloud_call, next);
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct error err = ERROR_INIT;

	if (c->at == c->n_found || c->dry_run) {
		cloud_call_end(c, NULL, NULL);
		return;
	}
	if (cloudmsg_put(&b, "verb", "terminate") == 0 &&
	    cloudmsg_put(&b, "id", "%s", c->found[c->at].instance) == 0 &&
	    cloud_helper_ask(c->all->helper, &b, &collect_end_ops, c, &c->question) == 0)
		return;
	(void)error_set(&err, -ENOMEM, "end what nobody has a record of");
	cloud_call_end(c, NULL, &err);
}

/* Those whose lease has ended, by the cloud's clock alone: that of this node may be wrong. One
 * without a lease is nobody's to judge. */
static int collect_expired(struct cloud_call *c, struct error *err)
{
	uint64_t now;
	size_t n = 0;

	if (!cloud_helper_time(c->all->helper, &now))
		return error_refuse(
			err, ERROR_UNAVAILABLE,
			"the cloud does not tell what time it is, and no other clock is "
			"believed about leases");
	for (size_t i = 0; i < c->n_found; i++)
		if (c->found[i].lease && c->found[i].lease < now)
			c->found[n++] = c->found[i];
	c->n_found = n;
	return 0;
}

static void collect_on_list(void *userdata, const struct cloudmsg *m, const struct error *err)
{
	struct cloud_call *c = userdata;
	struct error own = ERROR_INIT;

	(void)m;
	c->question = NULL;
	if (!err && c->too_many)
		(void)error_refuse(&own, ERROR_EXHAUSTED,
				   "there are more than %d machines of that node, or no memory for "
				   "them",
				   CLOUD_FOUND_MAX);
	if (!err && !own.code && c->expired)
		(void)collect_expired(c, &own);
	if (err || own.code)
		cloud_call_end(c, NULL, err ? err : &own);
	else
		loop_defer_schedule(&c->next);
}

static const struct cloud_question_ops collect_list_ops = { .on_vm = collect_on_vm,
							    .on_done = collect_on_list };

/* Of which node: with `expired` any, unless one is named. */
static int collect_put_tags(struct clouds *all, const struct cloud_collect_wish *wish,
			    struct buf *b)
{
	if (wish->expired && !*wish->node)
		return cloudmsg_put(b, "tag", CLOUD_TAG_CLUSTER "=%s",
				    all->config.settings->cluster);
	return clouds_put_tags(all, b, *wish->node ? wish->node : all->node);
}

int clouds_collect(struct clouds *all, const struct cloud_collect_wish *wish, cloud_collect_fn done,
		   void *userdata, struct error *err)
{
	const char *node = wish->node;
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct cloud_call *c;
	int r = clouds_check_calls(all, err);

	if (r < 0)
		return r;
	if (*node && (strlen(node) != ID_LEN || strspn(node, "0123456789abcdef") != ID_LEN))
		return error_field(err, ERROR_INVALID, "node",
				   "the name of a node in the cloud's tags is 16 hexadecimal "
				   "digits (this one's is %s)",
				   all->node);
	c = cloud_call_new(all, userdata);
	r = c ? cloudmsg_put(&b, "verb", "list") : -ENOMEM;
	if (r == 0)
		r = collect_put_tags(all, wish, &b);
	if (r == 0)
		r = cloud_helper_ask(all->helper, &b, &collect_list_ops, c, &c->question);
	if (r < 0) {
		if (c)
			cloud_call_end(c, NULL, NULL);
		return error_set(err, r, "ask the cloud");
	}
	loop_defer_init(&c->next, all->config.loop, collect_on_next);
	c->dry_run = wish->dry_run;
	c->expired = wish->expired;
	c->collect = done;
	return 0;
}
