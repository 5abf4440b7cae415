/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/guest/kmod.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/text/str.h"
#include "unit.h"
#include "vm/guest/elf64_test.h"

static size_t signed_len; /* without its signature */
static char place[] = "/tmp/nacre-kmod-XXXXXX";

static void put(int dir_fd, const char *name, const void *data, size_t len)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && fd_write_full(fd, data, len) == 0);
}

static void put_module(int dir_fd, const char *name, const char *needs)
{
	struct elf_made e;
	char info[128];
	int n = snprintf(info, sizeof(info), "license=GPL%cdepends=%s%cname=x", 0, needs, 0);

	elf_made_module(&e, info, (size_t)n + 1);
	put(dir_fd, name, e.data, e.len);
}

static void put_signed_module(int dir_fd, const char *name, const char *needs)
{
	static const char end[] =
		"0123456789\0\0\0\0\0\0\0\0\0\0\0\x0a~Module signature appended~\n";
	struct elf_made e;
	char info[128];
	int n = snprintf(info, sizeof(info), "depends=%s", needs);

	elf_made_module(&e, info, (size_t)n + 1);
	signed_len = e.len;
	elf_made_put(&e, e.len, end, sizeof(end) - 1);
	put(dir_fd, name, e.data, e.len);
}

/* A tree as a kernel brings it; an open descriptor of it. */
static int make_tree(void)
{
	static const char builtin[] = "kernel/fs/ext4.ko\nkernel/lib/a-b.ko\n";
	int fd;

	CHECK(mkdtemp(place) != NULL);
	fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(mkdirat(fd, "kernel", 0755) == 0 && mkdirat(fd, "kernel/net", 0755) == 0);
	put(fd, "modules.builtin", builtin, sizeof(builtin) - 1);
	put_module(fd, "kernel/net/virtio-net.ko", "net-failover,virtio,a_b");
	put_module(fd, "kernel/net/net_failover.ko", "failover");
	put_module(fd, "kernel/net/failover.ko", "");
	put_signed_module(fd, "kernel/virtio.ko", "virtio_ring");
	put_module(fd, "kernel/virtio_ring.ko", "");
	put_module(fd, "kernel/loop1.ko", "loop2");
	put_module(fd, "kernel/loop2.ko", "loop1");
	put_module(fd, "kernel/lame.ko", "lost");
	put(fd, "kernel/packed.ko.xz", "\xfd", 1);
	put(fd, "kernel/text.ko", "text", 4);
	put(fd, "kernel/readme.kotlin", "text", 4);
	CHECK(symlinkat("/", fd, "build") == 0);
	return fd;
}

static void remove_tree(void)
{
	_cleanup_fd_ int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK_INT(rootfd_remove_tree(fd, place + strlen("/tmp/")), 0);
	memcpy(place + strlen(place) - 6, "XXXXXX", 6);
}

static void puts_them_in_order(void)
{
	static const char *const want[] = { "failover", "net_failover", "virtio_ring", "virtio",
					    "virtio_net" };
	_cleanup_(kmod_tree_freep) struct kmod_tree *t = NULL;
	struct kmod_list list = KMOD_LIST_INIT;
	_cleanup_fd_ int fd = make_tree();
	bool missing = false;

	if (kmod_tree_open(&t, fd, NULL) == 0) {
		CHECK_INT(kmod_list_add(&list, t, "virtio_ring", KMOD_LATER, NULL, NULL), 0);
		CHECK_INT(kmod_list_add(&list, t, "virtio_net", KMOD_MUST, NULL, NULL), 0);
		CHECK_INT(kmod_list_add(&list, t, "ext4", KMOD_MUST, NULL, NULL), 0);
		CHECK_INT(kmod_list_add(&list, t, "nothing", KMOD_MAY, &missing, NULL), 0);
	}
	CHECK(missing);
	CHECK_INT(list.n, 5);
	for (size_t i = 0; i < list.n && i < ARRAY_SIZE(want); i++) {
		size_t at = 0;

		/* The one that was asked for first stands first. */
		while (at < list.n && !str_eq(list.items[at].name, want[i]))
			at++;
		CHECK(at < list.n);
		CHECK_INT(list.items[i].want, KMOD_MUST);
		CHECK(list.items[i].data.len > 1024);
		CHECK(!str_eq(want[i], "virtio") || list.items[at].data.len == signed_len);
	}
	CHECK(list.n < 5 || str_eq(list.items[0].name, "virtio_ring"));
	CHECK(list.n < 5 || str_eq(list.items[4].name, "virtio_net"));
	kmod_list_done(&list);
	remove_tree();
}

static void tells_what_fails(void)
{
	static const struct {
		const char *name;
		int want;
		const char *says;
	} bad[] = {
		{ "nothing", -ENOENT, "no module nothing" },
		{ "lame", -ENOENT, "module lame: this kernel has no module lost" },
		{ "loop1", -EINVAL, "needs itself" },
		{ "packed", -EOPNOTSUPP, "kernel/packed.ko.xz is packed" },
		{ "text", -EBADMSG, "module text: it is no module" },
		{ "readme", -ENOENT, "" },
	};
	_cleanup_(kmod_tree_freep) struct kmod_tree *t = NULL;
	_cleanup_fd_ int fd = make_tree();
	int made = kmod_tree_open(&t, fd, NULL);

	for (size_t i = 0; i < ARRAY_SIZE(bad) && made == 0; i++) {
		struct kmod_list list = KMOD_LIST_INIT;
		struct error err = ERROR_INIT;
		int r = kmod_list_add(&list, t, bad[i].name, KMOD_MUST, NULL, &err);

		CHECK_INT(r, bad[i].want);
		if (!strstr(err.text, bad[i].says))
			CHECK_STR(err.text, bad[i].says);
		kmod_list_done(&list);
	}
	CHECK_INT(made, 0);
	remove_tree();
}

static void needs_none(void)
{
	_cleanup_(kmod_tree_freep) struct kmod_tree *t = NULL;
	struct kmod_list list = KMOD_LIST_INIT;

	CHECK_INT(kmod_tree_open(&t, -1, NULL), 0);
	CHECK_INT(t ? kmod_list_add(&list, t, "virtio_net", KMOD_MUST, NULL, NULL) : -1, 0);
	CHECK_INT(list.n, 0);
	kmod_list_done(&list);
}

UNIT_MAIN({ "puts_them_in_order", puts_them_in_order }, { "tells_what_fails", tells_what_fails },
	  { "needs_none", needs_none })
