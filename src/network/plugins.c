/* SPDX-License-Identifier: Apache-2.0 */
#include "network/plugins.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "loop/loop.h"
#include "network/model.h"
#include "network/plugin_part.h"
#include "wire/message/cnimsg.h"

#define PLUGINS_SOCKET_FD 3 /* of the program */
#define PLUGINS_MESSAGES_PER_TURN 16

/* A request that was not answered yet. */
struct plugin_call {
	struct list link; /* plugins.calls, in the order in which they are sent */
	uint64_t number;
	struct buf packet; /* until it was sent */
	bool sent;
	int netns_fd; /* which goes with it; -1 */
	struct attachment *attachment;
	plugins_fn done;
	void *userdata;
};

struct plugins {
	struct plugins_config config;
	pid_t pid;
	int pidfd, sock_fd;
	struct loop_fd sock;
	struct loop_child watch;
	struct loop_defer give_up;
	struct list calls;
	struct buf keep; /* what plugins_begin() sends */
	uint64_t n_calls;
	bool lost; /* the program is gone */
	bool ready;
	char reason[ERROR_TEXT_MAX];
};

/* ---- the networks of attachments ---- */

static struct network *plugins_network(struct plugins *p, const char *name)
{
	struct network *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	list_init(&n->link);
	list_init(&n->attachments);
	(void)str_copy(n->name, sizeof(n->name), name);
	n->state = NETWORK_READY;
	n->plugins = p;
	return n;
}

int plugins_new_attachment(struct plugins *p, const struct network_wish *wish, const char *owner,
			   struct attachment **ret, struct error *err)
{
	struct network *n = plugins_network(p, wish->network);
	struct attachment *a = n ? attachment_new(n, owner, wish->n_publish) : NULL;
	int r;

	if (!a) {
		free(n);
		return error_set(err, -ENOMEM, "put %s on a network of plugins", owner);
	}
	r = plugin_part_new(&a->part, wish, err);
	if (r < 0) {
		(void)attachment_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

int plugins_attach(struct plugins *p, const struct network_wish *wish, const char *owner,
		   struct attachment **ret, struct error *err)
{
	_cleanup_(attachment_freep) struct attachment *a = NULL;
	int r;

	if (!p)
		return error_field(err, ERROR_PRECONDITION, "network",
				   "this node runs no plugins of CNI (network.cni.conf_dir in its "
				   "configuration names the directory of theirs)");
	r = *plugin_part_network(wish->network) ? 0 : plugins_is_ready(p, err);
	if (r < 0)
		return error_wrap_field(err, r, "network");
	r = plugins_new_attachment(p, wish, owner, &a, err);
	if (r < 0)
		return r;
	a->ip4 = wish->ip4;
	a->ip6 = wish->ip6;
	memcpy(a->mac, wish->mac, sizeof(a->mac));
	for (size_t i = 0; i < wish->n_publish; i++) {
		if (!wish->publish[i].host_port)
			return error_refuse(err, ERROR_UNSUPPORTED,
					    "plugins of CNI choose no port of the host: name one "
					    "for port %u of the pod",
					    wish->publish[i].pod_port);
		a->publish[a->n_publish++] = wish->publish[i];
	}
	a->rate_to_pod = wish->rate_to_pod;
	a->rate_from_pod = wish->rate_from_pod;
	*ret = TAKE_PTR(a);
	return 0;
}

void plugins_adopt(struct plugins *p, struct attachment *a)
{
	a->network->plugins = p;
	a->state = a->ip4.family || a->ip6.family ? ATTACHMENT_PLUGGED : ATTACHMENT_RESERVED;
	if (a->state == ATTACHMENT_PLUGGED && p &&
	    cnimsg_put(&p->keep, "container", "%s", a->part->id) < 0)
		log_error("a pod loses its network: out of memory", LOG_STR("workload", a->owner));
}

int plugins_is_ready(const struct plugins *p, struct error *err)
{
	return p->ready && !p->lost ? 0 : error_refuse(err, ERROR_PRECONDITION, "%s", p->reason);
}

/* ---- what is said ---- */

static int plugins_send(struct plugins *p, const struct buf *packet, int fd)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { .room = { 0 } };
	struct iovec part = { .iov_base = (void *)(uintptr_t)buf_data(packet),
			      .iov_len = packet->len };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *c;

		m.msg_control = control.room;
		m.msg_controllen = sizeof(control.room);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(p->sock_fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* As much as the socket takes. */
static void plugins_flush(struct plugins *p)
{
	struct plugin_call *c;
	bool full = false;

	if (p->lost)
		return;
	list_for_each (c, &p->calls, struct plugin_call, link) {
		if (c->sent || full)
			continue;
		full = plugins_send(p, &c->packet, c->netns_fd) == -EAGAIN;
		if (full)
			continue;
		/* Where it could not be sent for another reason the program is gone, and its end
		 * comes. */
		c->sent = true;
		c->netns_fd = fd_close(c->netns_fd);
		buf_done(&c->packet);
	}
	loop_fd_set(&p->sock, LOOP_READ | (full ? LOOP_WRITE : 0));
}

static struct plugin_call *plugin_call_free(struct plugin_call *c)
{
	list_remove(&c->link);
	(void)fd_close(c->netns_fd);
	buf_done(&c->packet);
	free(c);
	return NULL;
}

static struct plugin_call *plugin_call_new(struct attachment *a, const char *verb, plugins_fn done,
					   void *userdata)
{
	struct plugins *p = a->network->plugins;
	struct plugin_call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	list_init(&c->link);
	*c = (struct plugin_call){ .link = LIST_INIT(c->link),
				   .number = ++p->n_calls,
				   .netns_fd = -1,
				   .attachment = a,
				   .done = done,
				   .userdata = userdata };
	if (cnimsg_put(&c->packet, "verb", "%s", verb) < 0 ||
	    cnimsg_put(&c->packet, "number", "%llu", (unsigned long long)c->number) < 0 ||
	    cnimsg_put(&c->packet, "container", "%s", a->part->id) < 0)
		return plugin_call_free(c);
	return c;
}

static void plugin_call_begin(struct plugin_call *c)
{
	struct plugins *p = c->attachment->network->plugins;

	list_add_tail(&p->calls, &c->link);
	plugins_flush(p);
	if (p->lost)
		loop_defer_schedule(&p->give_up);
}

static int plugin_put_address(struct buf *b, const struct prefix *address)
{
	char text[PREFIX_TEXT_MAX];

	if (!address->family)
		return 0;
	prefix_print_address(address, text);
	return cnimsg_put(b, "ip", "%s", text);
}

static int plugin_put_ports(struct buf *b, const struct attachment *a)
{
	int r = 0;

	for (size_t i = 0; i < a->n_publish && r == 0; i++) {
		const struct filter_publish *p = &a->publish[i];
		char host[PREFIX_TEXT_MAX] = "";

		if (p->host.family)
			prefix_print_address(&p->host, host);
		r = cnimsg_put(b, "port", "%s,%s,%u,%u", publish_protocol_word(p->protocol), host,
			       p->host_port, p->pod_port);
	}
	return r;
}

static int plugin_put_rate(struct buf *b, const char *key, uint64_t rate)
{
	return rate ? cnimsg_put(b, key, "%llu", (unsigned long long)rate) : 0;
}

static int plugin_put_add(struct buf *b, const struct attachment *a)
{
	const struct plugin_part *part = a->part;
	const char *network = plugin_part_network(a->network->name);
	char mac[LINK_MAC_TEXT];
	int r;

	link_print_mac(a->mac, mac);
	r = cnimsg_put(b, "pod", "%s", part->pod);
	if (r == 0)
		r = cnimsg_put(b, "namespace", "%s", part->pod_namespace);
	if (r == 0)
		r = cnimsg_put(b, "uid", "%s", part->uid);
	if (r == 0 && *network)
		r = cnimsg_put(b, "network", "%s", network);
	if (r == 0)
		r = plugin_put_address(b, &a->ip4);
	if (r == 0)
		r = plugin_put_address(b, &a->ip6);
	if (r == 0 && part->asked_mac)
		r = cnimsg_put(b, "mac", "%s", mac);
	if (r == 0)
		r = plugin_put_ports(b, a);
	if (r == 0)
		r = plugin_put_rate(b, "rate-in", a->rate_to_pod);
	if (r == 0)
		r = plugin_put_rate(b, "rate-out", a->rate_from_pod);
	if (r == 0 && part->names.len > 0)
		r = buf_add(b, buf_data(&part->names), part->names.len);
	return r;
}

int plugins_plug(struct attachment *a, int netns_fd, plugins_fn done, void *userdata)
{
	struct plugin_call *c = plugin_call_new(a, "add", done, userdata);

	if (!c || plugin_put_add(&c->packet, a) < 0) {
		if (c)
			(void)plugin_call_free(c);
		(void)fd_close(netns_fd);
		return -ENOMEM;
	}
	c->netns_fd = netns_fd;
	a->state = ATTACHMENT_PLUGGING;
	plugin_call_begin(c);
	return 0;
}

int plugins_unplug(struct attachment *a, plugins_fn done, void *userdata)
{
	struct plugin_call *c = plugin_call_new(a, "del", done, userdata);

	if (!c)
		return -ENOMEM;
	a->state = ATTACHMENT_UNPLUGGING;
	plugin_call_begin(c);
	return 0;
}

/* ---- what is answered ---- */

static void plugin_take_address(struct attachment *a, const char *text)
{
	struct prefix p;

	if (prefix_parse(text, &p) < 0)
		return;
	if (p.family == AF_INET && !a->ip4.family)
		a->ip4 = p;
	else if (p.family == AF_INET6 && !a->ip6.family)
		a->ip6 = p;
}

static void plugin_take_result(struct attachment *a, const struct cnimsg *m)
{
	const char *at = NULL, *ip;
	uint64_t mtu;
	uint8_t mac[LINK_MAC_LEN];

	a->ip4 = a->ip6 = (struct prefix){ .family = 0 };
	while ((ip = cnimsg_next(m, "ip", &at)) != NULL)
		plugin_take_address(a, ip);
	if (link_parse_mac(cnimsg_get(m, "mac"), mac) == 0)
		memcpy(a->mac, mac, sizeof(a->mac));
	if (parse_u64(cnimsg_get(m, "mtu"), 0, UINT32_MAX, &mtu) == 0)
		a->network->mtu = (uint32_t)mtu;
	(void)str_printf(a->network->name, sizeof(a->network->name), "cni:%.59s",
			 cnimsg_get(m, "network"));
}

static void plugin_call_end(struct plugin_call *c, const struct cnimsg *m, const struct error *err)
{
	struct attachment *a = c->attachment;
	const plugins_fn done = a->abandoned ? NULL : c->done;
	void *userdata = c->userdata;

	(void)plugin_call_free(c);
	if (a->state == ATTACHMENT_PLUGGING) {
		if (!err)
			plugin_take_result(a, m);
		a->state = err ? ATTACHMENT_RESERVED : ATTACHMENT_PLUGGED;
		if (a->abandoned)
			a = attachment_free(a);
	} else {
		if (err)
			log_error("a pod's network of plugins cannot be removed yet",
				  LOG_STR("workload", a->owner), LOG_ERR(err));
		a->state = ATTACHMENT_RESERVED;
		a = attachment_free(a);
	}
	if (done)
		done(userdata, err);
}

static void plugins_on_done(struct plugins *p, const struct cnimsg *m)
{
	struct plugin_call *c, *found = NULL;
	struct error err = ERROR_INIT;
	uint64_t number = 0, kind = 0;

	(void)parse_u64(cnimsg_get(m, "number"), 0, UINT64_MAX, &number);
	list_for_each (c, &p->calls, struct plugin_call, link)
		if (c->sent && c->number == number)
			found = c;
	if (!found)
		return;
	if (!*cnimsg_get(m, "kind")) {
		plugin_call_end(found, m, NULL);
		return;
	}
	(void)parse_u64(cnimsg_get(m, "kind"), 0, ERROR_KIND_COUNT - 1, &kind);
	(void)error_refuse(&err, (enum error_kind)kind, "%.400s", cnimsg_get(m, "text"));
	plugin_call_end(found, m, &err);
}

static void plugins_on_state(struct plugins *p, const struct cnimsg *m)
{
	p->ready = str_eq(cnimsg_get(m, "ready"), "yes");
	(void)str_printf(p->reason, sizeof(p->reason), "%.500s", cnimsg_get(m, "text"));
	if (p->ready)
		log_info("pods can have the network of plugins",
			 LOG_STR("network", cnimsg_get(m, "network")));
	else
		log_warn("no network of plugins can be had", LOG_STR("reason", p->reason));
}

/* 1: a message was taken; 0: none is there; negative: none comes any more. */
static int plugins_receive(struct plugins *p)
{
	static uint8_t packet[CNIMSG_SIZE_MAX];
	ssize_t n = recv(p->sock_fd, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);
	struct cnimsg m;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0)
		return -EPIPE;
	if (cnimsg_read(&m, packet, (size_t)n) < 0)
		return 1;
	if (str_eq(cnimsg_get(&m, "verb"), "done"))
		plugins_on_done(p, &m);
	else if (str_eq(cnimsg_get(&m, "verb"), "state"))
		plugins_on_state(p, &m);
	return 1;
}

static void plugins_on_sock(struct loop_fd *source, unsigned events)
{
	struct plugins *p = container_of(source, struct plugins, sock);
	int r = 1;

	if (events & LOOP_WRITE)
		plugins_flush(p);
	for (int i = 0; i < PLUGINS_MESSAGES_PER_TURN && r > 0; i++)
		r = plugins_receive(p);
	/* The program's own end says the rest. */
	if (r < 0)
		loop_fd_done(&p->sock);
}

static void plugins_on_give_up(struct loop_defer *d)
{
	struct plugins *p = container_of(d, struct plugins, give_up);
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_UNAVAILABLE, "%s", p->reason);
	while (!list_empty(&p->calls))
		plugin_call_end(list_first(&p->calls, struct plugin_call, link), NULL, &err);
}

static void plugins_on_end(struct loop_child *source, int code, int status)
{
	struct plugins *p = container_of(source, struct plugins, watch);

	while (plugins_receive(p) > 0)
		;
	loop_fd_done(&p->sock);
	loop_child_done(&p->watch);
	p->lost = true;
	p->ready = false;
	p->pid = -1;
	(void)str_printf(
		p->reason, sizeof(p->reason),
		"the program that runs plugins of CNI, nacre-cni, %s %d; restart the daemon "
		"to have another one",
		code == CLD_EXITED ? "ended with status" : "was killed by signal", status);
	log_error("no network of plugins can be had", LOG_STR("reason", p->reason));
	loop_defer_schedule(&p->give_up);
}

/* ---- beginning and end ---- */

static int plugins_actions(posix_spawn_file_actions_t *actions, int sock_fd)
{
	int r = posix_spawn_file_actions_adddup2(actions, sock_fd, PLUGINS_SOCKET_FD);

	return r == 0 ? posix_spawn_file_actions_addclosefrom_np(actions, PLUGINS_SOCKET_FD + 1)
		      : r;
}

/* Should: give it what privilege and environment the daemon has, and a group of its own, so that a
 * terminal's signal does not end it before the daemon. Must not: hand down another descriptor. */
static int plugins_spawn(struct plugins *p, int sock_fd)
{
	const struct plugins_config *c = &p->config;
	char *argv[] = { (char *)(uintptr_t)c->program,   (char *)(uintptr_t)c->conf_dir,
			 (char *)(uintptr_t)c->bin_dirs,  (char *)(uintptr_t)c->state_dir,
			 (char *)(uintptr_t)c->netns_dir, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return -r;
	(void)sigemptyset(&none);
	(void)posix_spawnattr_init(&attributes);
	r = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	if (r == 0)
		r = posix_spawnattr_setpgroup(&attributes, 0);
	if (r == 0)
		r = posix_spawnattr_setsigmask(&attributes, &none);
	if (r == 0)
		r = plugins_actions(&actions, sock_fd);
	if (r == 0)
		r = posix_spawn(&p->pid, c->program, &actions, &attributes, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	return -r;
}

static int plugins_start(struct plugins *p, struct error *err)
{
	_cleanup_fd_ int its = -1;
	int fds[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return error_set(err, -errno, "make a socket for nacre-cni");
	p->sock_fd = fds[0];
	its = fds[1];
	r = plugins_spawn(p, its);
	if (r < 0)
		return error_set(err, r, "start %s", p->config.program);
	p->pidfd = pidfd_of(p->pid);
	if (p->pidfd < 0)
		return error_set(err, p->pidfd, "watch nacre-cni");
	loop_child_init(&p->watch, p->config.loop, p->pidfd, plugins_on_end);
	loop_fd_init(&p->sock, p->config.loop, p->sock_fd, LOOP_READ, plugins_on_sock);
	return 0;
}

int plugins_new(struct plugins **ret, const struct plugins_config *config, struct error *err)
{
	struct plugins *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return error_set(err, -ENOMEM, "networks of plugins");
	p->config = *config;
	p->pid = p->pidfd = p->sock_fd = -1;
	list_init(&p->calls);
	loop_defer_init(&p->give_up, config->loop, plugins_on_give_up);
	(void)str_copy(p->reason, sizeof(p->reason),
		       "the configuration of plugins of CNI has not been read yet");
	r = plugins_start(p, err);
	/* The strings of the configuration are the caller's, and nobody needs them any more. */
	p->config = (struct plugins_config){ .loop = config->loop };
	if (r < 0) {
		(void)plugins_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

int plugins_begin(struct plugins *p)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r = cnimsg_put(&b, "verb", "keep");

	if (r == 0 && p->keep.len > 0)
		r = buf_add(&b, buf_data(&p->keep), p->keep.len);
	if (r == 0)
		r = plugins_send(p, &b, -1);
	buf_done(&p->keep);
	return r;
}

struct plugins *plugins_free(struct plugins *p)
{
	if (!p)
		return NULL;
	loop_fd_done(&p->sock);
	loop_child_done(&p->watch);
	loop_defer_done(&p->give_up);
	while (!list_empty(&p->calls)) {
		struct plugin_call *c = list_first(&p->calls, struct plugin_call, link);
		struct attachment *a = c->attachment;

		(void)plugin_call_free(c);
		a->state = ATTACHMENT_RESERVED;
		if (a->abandoned)
			(void)attachment_free(a);
	}
	(void)fd_close(p->sock_fd);
	(void)fd_close(p->pidfd);
	buf_done(&p->keep);
	free(p);
	return NULL;
}
