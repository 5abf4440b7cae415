/* SPDX-License-Identifier: Apache-2.0 */
#include "network/networks.h"

#include <errno.h>
#include <netinet/in.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "loop/wait_test.h"
#include "net/netlink/link.h"
#include "net/netlink/netlink.h"
#include "net/port/port.h"
#include "network/attach.h"
#include "network/plug.h"
#include "scratch.h"
#include "store/root.h"
#include "store/store.h"
#include "unit.h"

/* A node in a network namespace of its own, with a real store, pool and kernel. */
struct node {
	char path[64];
	int fd;
	struct loop *loop;
	struct pool *pool;
	struct root_store *store;
	struct run_store *run_store;
	struct networks *networks;
	unsigned n_done;
	int code;
};

static bool node_open(struct node *n)
{
	struct networks_config config = { .loop = NULL };
	struct error err = ERROR_INIT;

	if (loop_new(&n->loop) < 0 || pool_new(&n->pool, n->loop, 2) < 0 ||
	    root_store_open(&n->store, n->pool, n->fd, "root.db", &err) < 0 ||
	    run_store_open(&n->run_store, n->fd, "run.db", &err) < 0)
		return false;
	config = (struct networks_config){
		.loop = n->loop, .pool = n->pool, .store = n->store, .run_store = n->run_store
	};
	CHECK_INT(networks_new(&n->networks, &config, &err), 0);
	return n->networks != NULL;
}

static void node_close(struct node *n)
{
	networks_stop(n->networks);
	n->pool = n->pool ? pool_free(n->pool) : NULL;
	n->networks = networks_free(n->networks);
	n->store = root_store_close(n->store);
	n->run_store = run_store_close(n->run_store);
	n->loop = n->loop ? loop_free(n->loop) : NULL;
}

static void node_place(struct node *n)
{
	*n = (struct node){ .fd = -1 };
	(void)str_copy(n->path, sizeof(n->path), "/tmp/nacre-networks-XXXXXX");
	if (!mkdtemp(n->path))
		abort();
	n->fd = open(n->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool node_init(struct node *n)
{
	CHECK(unshare(CLONE_NEWNET) == 0);
	node_place(n);
	return node_open(n);
}

static void node_done(struct node *n)
{
	node_close(n);
	n->fd = fd_close(n->fd);
	CHECK_INT(scratch_remove(n->path), 0);
}

static void on_network(void *userdata, struct network *network, const struct error *err)
{
	struct node *n = userdata;

	(void)network;
	n->n_done++;
	n->code = err ? err->code : 0;
}

static void on_plug(void *userdata, const struct error *err)
{
	struct node *n = userdata;

	n->n_done++;
	n->code = err ? err->code : 0;
}

static struct prefix of(const char *text)
{
	struct prefix p = { .family = 0 };

	CHECK_INT(prefix_parse(text, &p), 0);
	return p;
}

/* ---- networks ---- */

static void makes_the_default_one(void)
{
	struct error err = ERROR_INIT;
	const struct network *net;
	char first[PREFIX_TEXT_MAX], again[PREFIX_TEXT_MAX];
	struct node n;

	if (node_init(&n) && networks_begin(n.networks, &err) == 0) {
		net = networks_find(n.networks, NETWORK_DEFAULT);
		CHECK(net && net->number == 1 && net->pool4.length == 20);
		LOOP_WAIT(n.loop, net->state == NETWORK_READY);
		prefix_print(&net->pool6, first);
		node_close(&n);
		/* The same addresses after a restart. */
		if (node_open(&n) && networks_begin(n.networks, &err) == 0) {
			net = networks_find(n.networks, NETWORK_DEFAULT);
			prefix_print(&net->pool6, again);
			CHECK_STR(again, first);
		}
	}
	CHECK_STR(err.text, "");
	node_done(&n);
}

static void refuses_what_cannot_be(void)
{
	static const struct {
		struct network_spec spec;
		const char *subnet, *field;
		enum error_kind kind;
	} cases[] = {
		{ { .name = "Web" }, NULL, "name", ERROR_INVALID },
		{ { .name = "host" }, NULL, "name", ERROR_INVALID },
		{ { .name = "default" }, NULL, "name", ERROR_EXISTS },
		{ { .name = "web", .mtu = 100 }, NULL, "mtu", ERROR_INVALID },
		{ { .name = "web" }, "10.0.0.0/31", "subnets", ERROR_INVALID },
		{ { .name = "web" }, "10.171.0.0/24", "subnets", ERROR_PRECONDITION },
	};
	struct node n;

	if (node_init(&n))
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct network_spec spec = cases[i].spec;
			struct error err = ERROR_INIT;

			if (cases[i].subnet)
				spec.subnet4 = of(cases[i].subnet);
			CHECK(networks_create(n.networks, &spec, on_network, &n, &err) < 0);
			CHECK_STR(err.field, cases[i].field);
			CHECK_INT(err.kind, cases[i].kind);
		}
	CHECK_INT(n.n_done, 0);
	node_done(&n);
}

static void is_removed_when_nobody_is_on_it(void)
{
	const struct network_spec spec = { .name = "web" };
	const struct network_wish wish = { .network = "web" };
	struct attachment *a = NULL;
	struct error err = ERROR_INIT;
	struct node n;

	if (node_init(&n) && networks_create(n.networks, &spec, on_network, &n, &err) == 0) {
		LOOP_WAIT(n.loop, n.n_done == 1);
		CHECK_INT(n.code, 0);
		CHECK_INT(network_attach(n.networks, &wish, "shop", &a, &err), 0);
		CHECK(networks_remove(n.networks, "web", on_network, &n, &err) < 0);
		CHECK_INT(err.kind, ERROR_PRECONDITION);
		CHECK(strstr(err.text, "shop") != NULL);
		a = attachment_free(a);
		CHECK_INT(networks_remove(n.networks, "web", on_network, &n, &err), 0);
		CHECK(networks_find(n.networks, "web") == NULL);
		LOOP_WAIT(n.loop, n.n_done == 2);
		CHECK(networks_remove(n.networks, NETWORK_DEFAULT, on_network, &n, &err) < 0);
		CHECK_INT(err.kind, ERROR_PRECONDITION);
		CHECK(networks_remove(n.networks, "web", on_network, &n, &err) < 0);
		CHECK_INT(err.kind, ERROR_NOT_FOUND);
	}
	node_done(&n);
}

static void belongs_to_one_daemon(void)
{
	struct error err = ERROR_INIT;
	struct node n, other;
	char pid[32];

	(void)str_printf(pid, sizeof(pid), "(pid %d)", (int)getpid());
	if (node_init(&n) && networks_begin(n.networks, &err) == 0) {
		node_place(&other);
		if (node_open(&other)) {
			CHECK(networks_begin(other.networks, &err) < 0);
			CHECK_INT(err.kind, ERROR_PRECONDITION);
			CHECK(strstr(err.text, pid) != NULL);
		}
		node_done(&other);
	}
	node_done(&n);
}

/* ---- attachments ---- */

static void text_of(const struct attachment *a, char *ret, size_t size)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	*ret = '\0';
	if (attachment_print(a, &b) == 0 && b.len < size) {
		memcpy(ret, buf_data(&b), b.len);
		ret[b.len] = '\0';
	}
}

static void is_the_same_from_its_text(void)
{
	const struct filter_publish publish[] = {
		{ .protocol = IPPROTO_TCP, .pod_port = 80 },
		{ .protocol = IPPROTO_UDP,
		  .host_port = 5353,
		  .pod_port = 53,
		  .host = { .family = AF_INET, .length = 32, .bytes = { 127, 0, 0, 1 } } },
	};
	const struct network_wish wish = { .network = NETWORK_DEFAULT,
					   .publish = publish,
					   .n_publish = 2,
					   .rate_to_pod = 1000000 };
	struct attachment *a = NULL, *b = NULL;
	struct error err = ERROR_INIT;
	char first[512], second[512];
	struct node n;

	if (node_init(&n) && network_attach(n.networks, &wish, "shop", &a, &err) == 0) {
		CHECK(a->publish[0].host_port >= 1024);
		text_of(a, first, sizeof(first));
		CHECK(strstr(first, "network=default ip=10.171.0.2 ") == first);
		CHECK(strstr(first, " publish=udp,127.0.0.1,5353,53") != NULL);
		CHECK(strstr(first, " eth=") == NULL && strstr(first, " half=") == NULL);
		a->eth = 3;
		a->is_half = true;
		text_of(a, first, sizeof(first));
		CHECK(strstr(first, " eth=3 half=yes ") != NULL);
		a = attachment_free(a);
		CHECK_INT(network_adopt(n.networks, first, "shop", &b, &err), 0);
		if (b) {
			text_of(b, second, sizeof(second));
			CHECK_STR(second, first);
			CHECK_INT(b->state, ATTACHMENT_PLUGGED);
			CHECK(b->eth == 3 && b->is_half);
		}
	}
	CHECK_STR(err.text, "");
	node_done(&n);
}

static void refuses_a_text_that_is_none(void)
{
	static const char *const texts[] = {
		"",
		"network=default",
		"ip=10.171.0.2",
		"network=default ip=10.171.0.2 colour=red",
		"network=default ip=fd00::1",
		"network=default ip=10.171.0.2 publish=tcp,,80",
		"network=default ip=10.171.0.2 publish=icmp,,80,80",
		"network=default ip=10.171.0.2 publish=tcp,,80,80,80",
		"network=default ip=10.171.0.2 publish=tcp,,80,99999",
		"network=default ip=10.171.0.2 eth=16",
		"network=default ip=10.171.0.2 half=no",
	};
	struct attachment *a = NULL;
	struct error err = ERROR_INIT;
	struct node n;

	if (node_init(&n) && networks_begin(n.networks, &err) == 0)
		for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
			CHECK_INT(network_adopt(n.networks, texts[i], "shop", &a, &err), -EBADMSG);
	CHECK(!a);
	node_done(&n);
}

static void names_who_has_it(void)
{
	const struct filter_publish publish[] = {
		{ .protocol = IPPROTO_TCP, .host_port = 8080, .pod_port = 80 },
	};
	struct network_wish wish = { .network = NETWORK_DEFAULT,
				     .publish = publish,
				     .n_publish = 1 };
	struct attachment *a = NULL, *b = NULL;
	struct error err = ERROR_INIT;
	struct node n;

	if (node_init(&n) && network_attach(n.networks, &wish, "shop", &a, &err) == 0) {
		CHECK(network_attach(n.networks, &wish, "other", &b, &err) < 0);
		CHECK_INT(err.kind, ERROR_EXISTS);
		CHECK_STR(err.field, "publish[0]");
		CHECK(strstr(err.text, "shop") != NULL);
		wish.n_publish = 0;
		wish.ip4 = a->ip4;
		CHECK(network_attach(n.networks, &wish, "other", &b, &err) < 0);
		CHECK_INT(err.kind, ERROR_EXISTS);
		CHECK_STR(err.field, "ip");
		CHECK(strstr(err.text, "shop") != NULL);
		wish.ip4 = of("10.1.1.1");
		CHECK(network_attach(n.networks, &wish, "other", &b, &err) < 0);
		CHECK_INT(err.kind, ERROR_INVALID);
		wish.network = "nobody";
		CHECK(network_attach(n.networks, &wish, "other", &b, &err) < 0);
		CHECK_INT(err.kind, ERROR_NOT_FOUND);
		a = attachment_free(a);
	}
	CHECK(!b);
	node_done(&n);
}

static void names_the_program_that_has_the_port(void)
{
	const struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(8081) };
	const struct filter_publish publish[] = {
		{ .protocol = IPPROTO_TCP, .host_port = 8081, .pod_port = 80 },
	};
	const struct network_wish wish = { .network = NETWORK_DEFAULT,
					   .publish = publish,
					   .n_publish = 1 };
	struct attachment *a = NULL;
	struct error err = ERROR_INIT;
	struct node n;
	char pid[32];
	int fd;

	(void)str_printf(pid, sizeof(pid), "(pid %d)", (int)getpid());
	if (node_init(&n) && networks_begin(n.networks, &err) == 0) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0);
		CHECK(listen(fd, 1) == 0);
		CHECK(network_attach(n.networks, &wish, "shop", &a, &err) < 0);
		CHECK_INT(err.kind, ERROR_EXISTS);
		CHECK(strstr(err.text, pid) != NULL);
		(void)fd_close(fd);
	}
	node_done(&n);
}

/* ---- the kernel ---- */

static int new_netns(void)
{
	_cleanup_fd_ int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int fd;

	CHECK(unshare(CLONE_NEWNET) == 0);
	fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	CHECK(setns(own, CLONE_NEWNET) == 0);
	return fd;
}

static bool has_link(const char *name)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link l;

	return netlink_open(&nl, NULL) == 0 && link_find(&nl, name, &l, NULL) == 0;
}

static void plug_and_wait(struct node *n, struct attachment *a, int ns_fd)
{
	int r = attachment_plug(a, fd_copy(ns_fd), on_plug, n);

	n->n_done = 0;
	CHECK(r == 0 || r == -ENOMEM);
	if (r == 0)
		LOOP_WAIT(n->loop, n->n_done == 1);
}

/* The first of two networks of a pod that lives on. */
static void withdraw_first(struct node *n, struct attachment **first, int ns_fd)
{
	struct attachment *a = *first, *b = a->next;
	char gone[IF_NAMESIZE];

	b->eth = 1;
	a->leads_out = true;
	plug_and_wait(n, a, ns_fd);
	plug_and_wait(n, b, ns_fd);
	if (a->state != ATTACHMENT_PLUGGED || b->state != ATTACHMENT_PLUGGED)
		return;
	CHECK(attachment_on(a, "web") == b);
	memcpy(gone, a->device, sizeof(gone));
	n->n_done = 0;
	if (attachment_withdraw(a, b, fd_copy(ns_fd), on_plug, n) < 0)
		return;
	LOOP_WAIT(n->loop, n->n_done == 1);
	CHECK(*first == b && !b->next && !attachment_on(b, NETWORK_DEFAULT));
	CHECK(!has_link(gone) && has_link(b->device));
}

static void plugs_and_unplugs(void)
{
	const struct network_spec spec = { .name = "web" };
	const struct network_wish wishes[] = { { .network = NETWORK_DEFAULT },
					       { .network = "web" } };
	struct attachment *first = NULL, *a = NULL;
	struct error err = ERROR_INIT;
	char device[IF_NAMESIZE];
	struct node n;
	int fd = -1;

	if (node_init(&n) && networks_create(n.networks, &spec, on_network, &n, &err) == 0) {
		LOOP_WAIT(n.loop, n.n_done == 1);
		fd = new_netns();
		for (size_t i = 0; i < ARRAY_SIZE(wishes); i++)
			if (network_attach(n.networks, &wishes[i], "shop", &a, &err) == 0)
				attachment_append(&first, a);
		if (first && first->next)
			withdraw_first(&n, &first, fd);
		/* The namespace was the device's, and nobody else's. */
		fd = fd_close(fd);
		if (first) {
			(void)str_copy(device, sizeof(device), first->device);
			n.n_done = 0;
			attachment_unplug(first, on_plug, &n);
			LOOP_WAIT(n.loop, n.n_done == 1);
			LOOP_WAIT(n.loop, !has_link(device));
		}
	}
	CHECK_STR(err.text, "");
	(void)fd_close(fd);
	node_done(&n);
}

static void removes_ports_of_nobody(void)
{
	struct port_plan plan = { .name = "nacre000aab0063",
				  .pod_name = "eth0",
				  .group = PORT_GROUP + 1,
				  .mac = { 2, [5] = 99 },
				  .gateway4 = of("10.171.0.1"),
				  .ip4 = of("10.171.0.99"),
				  .pool4 = of("10.171.0.0/20") };
	struct error err = ERROR_INIT;
	uint32_t link;
	struct node n;
	int fd;

	if (node_init(&n)) {
		fd = new_netns();
		CHECK_INT(port_make(&plan, fd, &link, &err), 0);
		CHECK_INT(networks_begin(n.networks, &err), 0);
		if (!err.code)
			LOOP_WAIT(n.loop, !has_link(plan.name));
		(void)fd_close(fd);
	}
	node_done(&n);
}

UNIT_MAIN({ "makes the default one", makes_the_default_one },
	  { "refuses what cannot be", refuses_what_cannot_be },
	  { "is removed when nobody is on it", is_removed_when_nobody_is_on_it },
	  { "belongs to one daemon", belongs_to_one_daemon },
	  { "is the same from its text", is_the_same_from_its_text },
	  { "refuses a text that is none", refuses_a_text_that_is_none },
	  { "names who has it", names_who_has_it },
	  { "names the program that has the port", names_the_program_that_has_the_port },
	  { "plugs and unplugs", plugs_and_unplugs },
	  { "removes ports of nobody", removes_ports_of_nobody })
