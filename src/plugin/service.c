/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/service.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "plugin/chain.h"
#include "plugin/netns.h"
#include "plugin/record.h"
#include "plugin/request.h"
#include "wire/document/jsonwrite.h"

#define SERVICE_ARENA ((size_t)64 << 20)
#define SERVICE_PATIENCE (120 * NSEC_PER_SEC) /* with one plugin */
#define SERVICE_COLLECT_PATIENCE (30 * NSEC_PER_SEC)

int service_init(struct service *s)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r = fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 64, &b);

	if (r == 0)
		r = buf_add(&b, "", 1);
	if (r < 0)
		return r;
	(void)str_printf(s->boot, sizeof(s->boot), "%.36s", (const char *)buf_data(&b));
	(void)pthread_rwlock_init(&s->collecting, NULL);
	(void)pthread_mutex_init(&s->lock, NULL);
	(void)pthread_cond_init(&s->free, NULL);
	return 0;
}

void service_done(struct service *s)
{
	(void)pthread_cond_destroy(&s->free);
	(void)pthread_mutex_destroy(&s->lock);
	(void)pthread_rwlock_destroy(&s->collecting);
}

/* ---- one at a time for a container ---- */

static size_t service_find_busy(const struct service *s, const char *container)
{
	size_t i = 0;

	while (i < SERVICE_BUSY_MAX && (!s->busy[i] || !str_eq(s->busy[i], container)))
		i++;
	return i;
}

static void service_enter(struct service *s, const char *container)
{
	size_t at = 0;

	(void)pthread_rwlock_rdlock(&s->collecting);
	(void)pthread_mutex_lock(&s->lock);
	while (service_find_busy(s, container) < SERVICE_BUSY_MAX)
		(void)pthread_cond_wait(&s->free, &s->lock);
	/* There are fewer threads than places. */
	while (s->busy[at])
		at++;
	s->busy[at] = container;
	(void)pthread_mutex_unlock(&s->lock);
}

static void service_leave(struct service *s, const char *container)
{
	(void)pthread_mutex_lock(&s->lock);
	s->busy[service_find_busy(s, container)] = NULL;
	(void)pthread_cond_broadcast(&s->free);
	(void)pthread_mutex_unlock(&s->lock);
	(void)pthread_rwlock_unlock(&s->collecting);
}

/* ---- undoing ---- */

static struct chain service_chain(const struct service *s, const struct record *r,
				  struct arena *arena)
{
	return (struct chain){ .config = &r->config,
			       .bin_dirs = s->bin_dirs,
			       .path = s->path,
			       .container = r->container,
			       .netns = r->netns,
			       .interface = r->interface,
			       .args = r->args,
			       .offered = r->offered,
			       .arena = arena,
			       .limit = SERVICE_PATIENCE,
			       .pause = NSEC_PER_SEC,
			       .cancel_fd = s->cancel_fd };
}

/* What an earlier boot named so is nothing, or another one. */
static const char *service_live_netns(const struct service *s, const struct record *r)
{
	return str_eq(r->boot, s->boot) && netns_is_there(r->netns) ? r->netns : "";
}

/* again: it failed before, and the pod is gone. A plugin that does not find what somebody else has
 * removed from the namespace may do without it. */
static int service_undo(struct service *s, const struct record *r, struct arena *arena, bool again,
			struct error *err)
{
	struct chain chain = service_chain(s, r, arena);
	int e;

	chain.netns = service_live_netns(s, r);
	e = chain_del(&chain, r->result, err);
	if (e < 0 && again && *chain.netns) {
		chain.netns = "";
		e = chain_del(&chain, r->result, NULL);
	}
	if (e < 0)
		return e;
	if (str_eq(r->boot, s->boot))
		netns_unbind(r->netns);
	record_remove(s->state_fd, r->container);
	return 0;
}

/* One whose record is gone has nothing. A record that makes no sense says nothing that could be
 * undone. */
static int service_undo_named(struct service *s, const char *container, bool gone,
			      struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(SERVICE_ARENA);
	struct record rec;
	int r = record_load(&rec, &arena, s->state_fd, container, gone);

	if (r == -ENOENT)
		return 0;
	if (r == -EBADMSG) {
		log_error("the record of a pod on a network of plugins makes no sense, and is "
			  "removed",
			  LOG_STR("container", container));
		record_remove(s->state_fd, container);
		return 0;
	}
	if (r < 0)
		return error_set(err, r, "read the record of a network's pod");
	return service_undo(s, &rec, &arena, gone, err);
}

static int service_del(struct service *s, const char *container, struct error *err)
{
	int r = service_undo_named(s, container, false, err);

	if (r == 0)
		r = service_undo_named(s, container, true, err);
	else
		(void)record_mark_gone(s->state_fd, container);
	return r;
}

/* ---- adding ---- */

static int service_answer_result(struct buf *b, const struct record *rec,
				 const struct cni_result *result, struct error *err)
{
	int r = cnimsg_put(b, "network", "%s", rec->config.name);

	for (size_t i = 0; i < result->n_addresses && r == 0; i++)
		r = cnimsg_put(b, "ip", "%s/%u", result->addresses[i].text,
			       result->addresses[i].length);
	if (r == 0 && *result->mac)
		r = cnimsg_put(b, "mac", "%s", result->mac);
	if (r == 0 && result->mtu)
		r = cnimsg_put(b, "mtu", "%u", result->mtu);
	for (size_t i = 0; i < result->n_routes && r == 0; i++)
		r = cnimsg_put(b, "route", "%s", result->routes[i]);
	return r < 0 ? error_set(err, r, "tell the result of a network") : 0;
}

static int service_run_add(struct service *s, struct record *rec, struct arena *arena,
			   struct buf *answer, struct error *err)
{
	const struct chain chain = service_chain(s, rec, arena);
	struct cni_result result = { .mac = "" };
	int r;

	FAILPOINT_BEFORE("cni.add");
	r = chain_add(&chain, &result, err);
	if (r == 0 && result.n_addresses == 0)
		r = error_refuse(err, ERROR_PRECONDITION,
				 "the plugins of the network %s gave the pod no address",
				 rec->config.name);
	FAILPOINT_AFTER("cni.add");
	rec->result = result.tree;
	if (r == 0)
		r = record_save(rec, s->state_fd, err);
	return r < 0 ? r : service_answer_result(answer, rec, &result, err);
}

static int service_parse(struct arena *arena, const struct buf *b, const struct json_value **ret,
			 struct error *err)
{
	struct json_value *v = NULL;
	int r = json_parse(&v, arena, buf_data(b), b->len, err);

	*ret = v;
	return r;
}

/* What is to be asked, of the network that serves or that is named. */
static int service_prepare(struct service *s, const struct cnimsg *m, struct record *rec,
			   struct arena *arena, struct error *err)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT, offered = BUF_INIT, args = BUF_INIT;
	void *copy;
	int r;

	*rec = (struct record){ .container = cnimsg_get(m, "container"),
				.interface = SERVICE_INTERFACE,
				.boot = s->boot };
	r = book_find(s->book, cnimsg_get(m, "network"), &text, err);
	if (r == 0)
		r = service_parse(arena, &text, &rec->config_tree, err);
	if (r < 0)
		return r;
	copy = arena_memdup(arena, buf_data(&text), text.len);
	if (!copy)
		return error_set(err, -ENOMEM, "read the configuration of a network");
	r = cni_config_parse(&rec->config, arena, copy, text.len, err);
	if (r == 0)
		r = request_args(m, &args, err);
	if (r == 0)
		r = request_capabilities(m, &offered, err);
	if (r == 0)
		r = service_parse(arena, &offered, &rec->offered, err);
	if (r < 0)
		return r;
	rec->args = arena_strdup(arena, (const char *)buf_data(&args));
	return rec->args ? 0 : error_set(err, -ENOMEM, "read the configuration of a network");
}

static int service_add(struct service *s, const struct cnimsg *m, int netns_fd, struct buf *answer,
		       struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(SERVICE_ARENA);
	struct error own = ERROR_INIT;
	char netns[NETNS_PATH_MAX];
	struct record rec;
	struct chain chain;
	int r;

	if (netns_fd < 0)
		return error_refuse(err, ERROR_INVALID, "a pod without a network namespace");
	/* That of an earlier life, which did not come to an end. */
	r = service_del(s, cnimsg_get(m, "container"), err);
	if (r == 0)
		r = service_prepare(s, m, &rec, &arena, err);
	if (r < 0)
		return r;
	chain = service_chain(s, &rec, &arena);
	r = chain_is_complete(&chain, err);
	if (r == 0)
		r = netns_bind(s->netns_dir, netns_fd, netns, err);
	if (r < 0)
		return r;
	rec.netns = netns;
	r = record_save(&rec, s->state_fd, err);
	if (r < 0) {
		netns_unbind(netns);
		return r;
	}
	r = service_run_add(s, &rec, &arena, answer, err);
	if (r == 0)
		return 0;
	rec.result = NULL;
	if (service_undo(s, &rec, &arena, false, &own) < 0) {
		(void)record_mark_gone(s->state_fd, rec.container);
		log_warn("what plugins did for a pod cannot be undone yet",
			 LOG_STR("container", rec.container), LOG_ERR(&own));
	}
	return r;
}

static int service_check(struct service *s, const char *container, struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(SERVICE_ARENA);
	struct record rec;
	struct chain chain;
	int r = record_load(&rec, &arena, s->state_fd, container, false);

	if (r == -ENOENT || (r == 0 && !rec.result))
		return error_refuse(err, ERROR_NOT_FOUND, "%s is on no network of plugins",
				    container);
	if (r < 0)
		return error_set(err, r, "read the record of a network's pod");
	chain = service_chain(s, &rec, &arena);
	return chain_check(&chain, rec.result, err);
}

/* ---- the messages ---- */

static int service_do(struct service *s, const struct cnimsg *m, int netns_fd, struct buf *answer,
		      struct error *err)
{
	const char *verb = cnimsg_get(m, "verb"), *container = cnimsg_get(m, "container");
	int r;

	if (!cni_name_is_valid(container))
		return error_refuse(err, ERROR_INVALID, "container: no id of one");
	service_enter(s, container);
	if (str_eq(verb, "add"))
		r = service_add(s, m, netns_fd, answer, err);
	else if (str_eq(verb, "del"))
		r = service_del(s, container, err);
	else if (str_eq(verb, "check"))
		r = service_check(s, container, err);
	else
		r = error_refuse(err, ERROR_INVALID, "verb: is none");
	service_leave(s, container);
	return r;
}

int service_serve(struct service *s, const struct cnimsg *m, int netns_fd, struct buf *answer)
{
	_cleanup_(buf_done) struct buf result = BUF_INIT;
	struct error err = ERROR_INIT;
	int done = service_do(s, m, netns_fd, &result, &err), r;

	r = cnimsg_put(answer, "verb", "done");
	if (r == 0)
		r = cnimsg_put(answer, "number", "%s", cnimsg_get(m, "number"));
	if (r == 0 && done == 0)
		return result.len > 0 ? buf_add(answer, buf_data(&result), result.len) : 0;
	if (r == 0)
		r = cnimsg_put(answer, "kind", "%d", (int)err.kind);
	str_clean(err.text);
	if (r == 0)
		r = cnimsg_put(answer, "text", "%s",
			       str_is_utf8(err.text, strlen(err.text)) ? error_text(&err)
								       : "what failed is no text");
	return r;
}

static bool service_names(const struct cnimsg *m, const char *container)
{
	const char *at = NULL, *one;

	while ((one = cnimsg_next(m, "container", &at)) != NULL)
		if (str_eq(one, container))
			return true;
	return false;
}

void service_keep(struct service *s, const struct cnimsg *m)
{
	_cleanup_strv_ char **list = NULL;

	if (record_list(s->state_fd, false, &list) < 0)
		return;
	for (size_t i = 0; list && list[i]; i++)
		if (!service_names(m, list[i]))
			(void)record_mark_gone(s->state_fd, list[i]);
}

bool service_clean(struct service *s)
{
	_cleanup_strv_ char **list = NULL;
	bool clean = record_list(s->state_fd, true, &list) == 0;

	for (size_t i = 0; list && list[i]; i++) {
		struct error err = ERROR_INIT;
		int r;

		service_enter(s, list[i]);
		r = service_undo_named(s, list[i], true, &err);
		service_leave(s, list[i]);
		if (r < 0)
			log_warn("what plugins did for a pod cannot be undone yet",
				 LOG_STR("container", list[i]), LOG_ERR(&err));
		clean = clean && r == 0;
	}
	return clean;
}

/* ---- garbage ---- */

static int service_put_attachment(struct buf *b, const char *container)
{
	int r = buf_add_str(b, b->len > 1 ? ",{" : "{");

	if (r == 0)
		r = json_write_name(b, "containerID");
	if (r == 0)
		r = json_write_text(b, container);
	if (r == 0)
		r = json_write_name(b, "ifname");
	if (r == 0)
		r = json_write_text(b, SERVICE_INTERFACE);
	return r < 0 ? r : buf_add_str(b, "}");
}

static int service_attachments(const struct service *s, struct buf *b)
{
	int r = buf_add_str(b, "[");

	for (int gone = 0; gone < 2 && r == 0; gone++) {
		_cleanup_strv_ char **list = NULL;

		r = record_list(s->state_fd, gone, &list);
		for (size_t i = 0; list && list[i] && r == 0; i++)
			r = service_put_attachment(b, list[i]);
	}
	if (r == 0)
		r = buf_add_str(b, "]");
	return r < 0 ? r : buf_add(b, "", 1);
}

int service_collect(struct service *s, struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(SERVICE_ARENA);
	_cleanup_(buf_done) struct buf text = BUF_INIT, attachments = BUF_INIT;
	struct cni_config config;
	struct chain chain = { .config = &config,
			       .bin_dirs = s->bin_dirs,
			       .path = s->path,
			       .container = "",
			       .arena = &arena,
			       .limit = SERVICE_COLLECT_PATIENCE,
			       .pause = NSEC_PER_SEC,
			       .cancel_fd = s->cancel_fd };
	int r = book_find(s->book, "", &text, err);

	if (r == 0)
		r = cni_config_parse(&config, &arena, buf_data(&text), text.len, err);
	if (r < 0)
		return r;
	(void)pthread_rwlock_wrlock(&s->collecting);
	r = service_attachments(s, &attachments);
	if (r == 0)
		r = chain_gc(&chain, (const char *)buf_data(&attachments), err);
	(void)pthread_rwlock_unlock(&s->collecting);
	return r;
}
