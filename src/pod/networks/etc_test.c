/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/networks/etc.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "network/attachment.h"
#include "pod/networks/etc_wish.h"
#include "pod/networks/names.h"
#include "pod/workload/model.h"
#include "scratch.h"
#include "unit.h"

static char *bed_path;

int names_block(const struct list *workloads, const struct workload *w, struct buf *b,
		uint64_t *ret)
{
	(void)w;
	(void)b;
	*ret = 0;
	return 0;
}

static int bed_open(void)
{
	static char path[] = "/tmp/nacre-etc-test-XXXXXX";

	(void)snprintf(path, sizeof(path), "/tmp/nacre-etc-test-XXXXXX");
	bed_path = mkdtemp(path);
	CHECK(bed_path != NULL);
	return open(bed_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void bed_close(int fd)
{
	CHECK_INT(scratch_remove(bed_path), 0);
	(void)fd_close(fd);
}

static void put(int fd, const char *name, const char *text)
{
	_cleanup_fd_ int file_fd = openat(fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK_INT(fd_write_full(file_fd, text, strlen(text)), 0);
}

static bool reads(int fd, const char *name, const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *found = NULL;

	if (rootfd_read(fd, name, 4096, &b) == 0)
		found = buf_take_str(&b);
	if (found && !str_eq(found, text))
		printf("# %s\n", found);
	return found && str_eq(found, text);
}

#define OWN_HOSTS "127.0.0.1\tlocalhost web\n::1\tlocalhost ip6-localhost ip6-loopback\n"
#define NO_SERVER                                                                                  \
	"# There is no network but loopback here, and no name server.\n"                           \
	"options timeout:1 attempts:1\n"

static const struct etc_place alone = { .name = "web", .host_fd = -1 };

static void fill(int fd)
{
	_cleanup_(etc_done) struct etc etc = ETC_INIT;
	struct error err = ERROR_INIT;

	int r = etc_make(&etc, &alone, &err);

	CHECK_INT(r, 0);
	if (r == 0)
		CHECK_INT(etc_fill(fd, &etc, &err), 0);
}

static bool is_filled(int fd)
{
	return reads(fd, "etc/hosts", OWN_HOSTS) && reads(fd, "etc/hostname", "web\n") &&
	       reads(fd, "etc/resolv.conf", NO_SERVER);
}

/* Compares the text of file n, made for this place. */
static bool says_at(const struct etc_place *place, size_t n, const char *text)
{
	_cleanup_(etc_done) struct etc etc = ETC_INIT;
	struct error err = ERROR_INIT;
	const struct container_file *f = &etc.files[n];

	CHECK_INT(etc_make(&etc, place, &err), 0);
	if (f->len == strlen(text) && (f->len == 0 || memcmp(f->data, text, f->len) == 0))
		return true;
	printf("# %.*s\n", (int)f->len, f->len ? (const char *)f->data : "");
	return false;
}

/* The same for this network, on a host with these files. */
static bool says(int host_fd, enum etc_network network, size_t n, const char *text)
{
	const struct etc_place place = { .name = "web", .network = network, .host_fd = host_fd };

	return says_at(&place, n, text);
}

static void fills_an_empty_root(void)
{
	int fd = bed_open();
	struct stat st;

	fill(fd);
	CHECK(is_filled(fd));
	CHECK(fstatat(fd, "etc/hosts", &st, 0) == 0 && (st.st_mode & 07777) == 0644);
	bed_close(fd);
}

static void takes_the_place_of_what_the_image_has(void)
{
	int fd = bed_open();

	CHECK_INT(mkdirat(fd, "etc", 0755), 0);
	put(fd, "etc/hosts", "of the image\n");
	put(fd, "etc/passwd", "kept\n");
	CHECK_INT(symlinkat("passwd", fd, "etc/hostname"), 0);
	CHECK_INT(mkdirat(fd, "etc/resolv.conf", 0755), 0);
	fill(fd);
	CHECK(is_filled(fd));
	CHECK(reads(fd, "etc/passwd", "kept\n"));
	bed_close(fd);
}

static void refuses_a_directory_with_files(void)
{
	_cleanup_(etc_done) struct etc etc = ETC_INIT;
	struct error err = ERROR_INIT;
	int fd = bed_open();

	CHECK_INT(mkdirat(fd, "etc", 0755), 0);
	CHECK_INT(mkdirat(fd, "etc/hostname", 0755), 0);
	put(fd, "etc/hostname/x", "kept");
	CHECK_INT(etc_make(&etc, &alone, &err), 0);
	if (!err.code) {
		CHECK(etc_fill(fd, &etc, &err) < 0);
		CHECK_INT(err.kind, ERROR_PRECONDITION);
		CHECK(strstr(err.text, "/etc/hostname") != NULL);
	}
	CHECK(reads(fd, "etc/hostname/x", "kept"));
	bed_close(fd);
}

/* A link to anywhere, or /etc as one: nothing outside of the root is touched. */
static void follows_no_link_out(void)
{
	char outside[] = "/tmp/nacre-etc-test-outside-XXXXXX";
	int fd = bed_open();
	_cleanup_strv_ char **names = NULL;
	_cleanup_fd_ int out_fd = -1;
	char inside[64];

	CHECK(mkdtemp(outside) != NULL);
	CHECK_INT(symlinkat(outside, fd, "etc"), 0);
	fill(fd);
	(void)snprintf(inside, sizeof(inside), "%s/hosts", outside + 1);
	CHECK(reads(fd, inside, OWN_HOSTS));
	out_fd = open(outside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(fd_list_dir(out_fd, &names), 0);
	CHECK_INT(strv_len(names), 0);
	CHECK_INT(rmdir(outside), 0);
	bed_close(fd);
}

static void passes_over_an_etc_that_is_none(void)
{
	int fd = bed_open();

	put(fd, "etc", "a file");
	fill(fd);
	CHECK(reads(fd, "etc", "a file"));
	bed_close(fd);
}

static void knows_what_the_host_knows(void)
{
	int fd = bed_open();

	CHECK_INT(mkdirat(fd, "etc", 0755), 0);
	CHECK(says(fd, ETC_NETWORK_HOST, 0, OWN_HOSTS));
	CHECK(says(fd, ETC_NETWORK_HOST, 2, ""));
	put(fd, "etc/hosts", "127.0.0.1 localhost # web\n10.0.0.1 web2");
	CHECK(says(fd, ETC_NETWORK_HOST, 0,
		   "127.0.0.1 localhost # web\n10.0.0.1 web2\n127.0.0.1\tweb\n"));
	put(fd, "etc/hosts", "10.0.0.1\tother web\n");
	CHECK(says(fd, ETC_NETWORK_HOST, 0, "10.0.0.1\tother web\n"));
	CHECK(says(fd, ETC_NETWORK_ROUTED, 0, OWN_HOSTS));
	CHECK(says(fd, ETC_NETWORK_HOST, 1, "web\n"));
	/* Its own stub can be reached from its own network. */
	put(fd, "etc/resolv.conf", "nameserver 127.0.0.53\nsearch a");
	CHECK(says(fd, ETC_NETWORK_HOST, 2, "nameserver 127.0.0.53\nsearch a"));
	CHECK(says(fd, ETC_NETWORK_LOOPBACK, 2, NO_SERVER));
	bed_close(fd);
}

static void names_servers_that_can_be_reached(void)
{
	int fd = bed_open();

	CHECK_INT(mkdirat(fd, "etc", 0755), 0);
	CHECK(says(fd, ETC_NETWORK_ROUTED, 2, NO_SERVER));
	put(fd, "etc/resolv.conf",
	    "nameserver 127.0.0.1\n nameserver\t10.0.0.53\nnameserver fe80::1%eth0\nsearch a");
	CHECK(says(fd, ETC_NETWORK_ROUTED, 2, " nameserver\t10.0.0.53\nsearch a\n"));
	/* No more servers than resolvers take: the fourth that can be reached is left out. */
	put(fd, "etc/resolv.conf",
	    "nameserver 127.0.0.1\nnameserver 10.0.0.1\nnameserver 10.0.0.2\n"
	    "nameserver 10.0.0.3\nnameserver 10.0.0.4\nsearch\nsearch\ta  b\r\noptions a\n");
	CHECK(says(fd, ETC_NETWORK_ROUTED, 2,
		   "nameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\n"
		   "search a b\noptions a\n"));
	/* The stub of systemd-resolved: what it asks itself. */
	put(fd, "etc/resolv.conf", "nameserver 127.0.0.53\nnameserver ::1\noptions edns0\n");
	CHECK(says(fd, ETC_NETWORK_ROUTED, 2, NO_SERVER));
	CHECK(mkdirat(fd, "run", 0755) == 0 && mkdirat(fd, "run/systemd", 0755) == 0 &&
	      mkdirat(fd, "run/systemd/resolve", 0755) == 0);
	put(fd, "run/systemd/resolve/resolv.conf", "nameserver 10.0.0.1\nnameserver 2001:db8::1\n");
	CHECK(says(fd, ETC_NETWORK_ROUTED, 2, "nameserver 10.0.0.1\nnameserver 2001:db8::1\n"));
	bed_close(fd);
}

/* Adds `n` domains of that many bytes each, behind the words there. */
static void add_domains(char *text, size_t size, size_t n, size_t len)
{
	for (size_t i = 0; i < n; i++)
		(void)snprintf(text + strlen(text), size - strlen(text), " %0*zu", (int)len, i);
}

static void limits_search_domains(void)
{
	static const struct {
		size_t n, len, kept;
	} cases[] = {
		{ 32, 8, 32 }, { 33, 8, 32 }, { 32, 63, 32 }, { 32, 64, 31 }, { 1, 2048, 0 }
	};
	int fd = bed_open();

	CHECK_INT(mkdirat(fd, "etc", 0755), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char host[4096] = "nameserver 10.0.0.1\nsearch";
		char want[4096] = "nameserver 10.0.0.1\n";

		add_domains(host, sizeof(host), cases[i].n, cases[i].len);
		put(fd, "etc/resolv.conf", host);
		if (cases[i].kept) {
			(void)str_copy(want, sizeof(want), "nameserver 10.0.0.1\nsearch");
			add_domains(want, sizeof(want) - 2, cases[i].kept, cases[i].len);
			(void)snprintf(want + strlen(want), 2, "\n");
		}
		CHECK(says(fd, ETC_NETWORK_ROUTED, 2, want));
	}
	bed_close(fd);
}

/* ---- on a network, and as it was asked for ---- */

static struct prefix address(const char *text)
{
	struct prefix p = { .family = 0 };

	CHECK_INT(prefix_parse(text, &p), 0);
	return p;
}

#define LOCALHOST "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"

static void names_its_real_addresses(void)
{
	struct attachment a = { .ip4 = address("10.171.0.2/24"), .ip6 = address("fd00::2/64") };
	struct etc_wish wish = { .hostname = (char[]){ "www.example" },
				 .hosts = (char *[]){ (char[]){ "192.0.2.1\tdb" }, NULL } };
	struct etc_place place = {
		.name = "web", .network = ETC_NETWORK_ROUTED, .host_fd = -1, .attachment = &a
	};

	CHECK(says_at(&place, 0, LOCALHOST "10.171.0.2\tweb\nfd00::2\tweb\n"));
	a.ip6.family = 0;
	place.wish = &wish;
	CHECK(says_at(&place, 0, LOCALHOST "10.171.0.2\twww.example web\n192.0.2.1\tdb\n"));
	CHECK(says_at(&place, 1, "www.example\n"));
}

static void asks_as_it_was_told(void)
{
	char server[] = "192.0.2.53", domain[] = "b", none[] = ".", option[] = "ndots:2";
	char *servers[] = { server, NULL }, *search[] = { domain, NULL };
	char *options[] = { option, NULL };
	struct etc_wish wish = { .servers = servers };
	struct etc_place place = { .name = "web", .wish = &wish };
	int fd = bed_open();

	place.host_fd = fd;
	place.network = ETC_NETWORK_ROUTED;
	CHECK_INT(mkdirat(fd, "etc", 0755), 0);
	CHECK(says_at(&place, 2, "nameserver 192.0.2.53\n"));
	put(fd, "etc/resolv.conf", "nameserver 127.0.0.1\nsearch a\noptions edns0\n");
	CHECK(says_at(&place, 2, "search a\noptions edns0\nnameserver 192.0.2.53\n"));
	wish = (struct etc_wish){ .search = search, .options = options };
	CHECK(says_at(&place, 2, NO_SERVER "search b\noptions ndots:2\n"));
	place.network = ETC_NETWORK_HOST;
	CHECK(says_at(&place, 2, "nameserver 127.0.0.1\nsearch b\noptions ndots:2\n"));
	search[0] = none;
	place.network = ETC_NETWORK_LOOPBACK;
	wish.servers = servers;
	CHECK(says_at(&place, 2, "nameserver 192.0.2.53\noptions ndots:2\n"));
	/* Nobody asks a fourth. */
	put(fd, "etc/resolv.conf",
	    "nameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\nnameserver 10.0.0.4\n");
	CHECK(says(fd, ETC_NETWORK_ROUTED, 2,
		   "nameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\n"));
	bed_close(fd);
}

/* ---- whose network a workload has ---- */

static void asks_whose_network_it_is(void)
{
	/* Too large for a frame together. */
	static struct instance node, outer, inner;
	struct workload pod = { .kind = WORKLOAD_POD, .network = "host", .instance = &inner };
	struct workload cell = { .kind = WORKLOAD_CELL, .network = "host", .instance = &node };

	(void)str_copy(outer.path, sizeof(outer.path), "o");
	(void)str_copy(inner.path, sizeof(inner.path), "o/i");
	outer.parent = &node;
	inner.parent = &outer;
	outer.host_network = true;
	inner.host_network = true;
	CHECK_INT(etc_network_of(&pod), ETC_NETWORK_HOST);
	CHECK_INT(etc_network_of(&cell), ETC_NETWORK_HOST);
	cell.instance = &inner;
	CHECK_INT(etc_network_of(&cell), ETC_NETWORK_HOST);
	outer.host_network = false;
	CHECK_INT(etc_network_of(&pod), ETC_NETWORK_LOOPBACK);
	CHECK_INT(etc_network_of(&cell), ETC_NETWORK_LOOPBACK);
	outer.choice.kind = INSTANCE_VM;
	CHECK_INT(etc_network_of(&pod), ETC_NETWORK_ROUTED);
	CHECK_INT(etc_network_of(&cell), ETC_NETWORK_ROUTED);
	pod.network = "none";
	cell.network = "own";
	CHECK_INT(etc_network_of(&pod), ETC_NETWORK_LOOPBACK);
	CHECK_INT(etc_network_of(&cell), ETC_NETWORK_LOOPBACK);
	pod.network = "pod";
	inner.host_network = false;
	CHECK_INT(etc_network_of(&pod), ETC_NETWORK_LOOPBACK);
	pod.attachment = &(struct attachment){ .owner = NULL };
	CHECK_INT(etc_network_of(&pod), ETC_NETWORK_ROUTED);
}

UNIT_MAIN({ "fills an empty root", fills_an_empty_root },
	  { "takes the place of what the image has", takes_the_place_of_what_the_image_has },
	  { "refuses a directory with files", refuses_a_directory_with_files },
	  { "follows no link out", follows_no_link_out },
	  { "passes over an /etc that is no directory", passes_over_an_etc_that_is_none },
	  { "knows what the host knows", knows_what_the_host_knows },
	  { "names servers that can be reached", names_servers_that_can_be_reached },
	  { "limits search domains", limits_search_domains },
	  { "names its real addresses", names_its_real_addresses },
	  { "asks as it was told", asks_as_it_was_told },
	  { "asks whose network it is", asks_whose_network_it_is })
