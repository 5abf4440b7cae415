/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/guest/guest_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/text/str.h"
#include "unit.h"

static char place[] = "/tmp/nacre-sets-XXXXXX";

static const struct guest_desc good = {
	.release = "6.1.0-9-cloud-amd64",
	.version = "0.1.0",
	.build = "0123456789abcdef",
	.gate = "fedcba",
	.is_vmlinux = true,
	.needs_acpi = true,
	.memory_mib = 128,
	.kernel_bytes = 5,
	.initrd_bytes = 7,
	.words = "a b=c",
};

static int open_place(void)
{
	CHECK(mkdtemp(place) != NULL);
	return open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void remove_place(void)
{
	_cleanup_fd_ int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK_INT(rootfd_remove_tree(fd, place + strlen("/tmp/")), 0);
	memcpy(place + strlen(place) - 6, "XXXXXX", 6);
}

static void put(struct guest_new *n, const char *name, const char *text)
{
	_cleanup_fd_ int fd = guest_new_file(n, name, NULL);

	CHECK(fd >= 0 && fd_write_full(fd, text, strlen(text)) == 0);
}

static int make(int root_fd, const char *name, struct error *err)
{
	_cleanup_str_ char *text = guest_desc_write(&good);
	struct guest_new n = GUEST_NEW_INIT;
	int r = guest_new_begin(&n, root_fd, err);

	if (r == 0) {
		put(&n, "kernel", "KKKKK");
		put(&n, "initrd", "IIIIIII");
		put(&n, "set", text ? text : "");
		r = guest_new_commit(&n, name, err);
	}
	guest_new_done(&n);
	return r;
}

static void says_what_it_is(void)
{
	_cleanup_str_ char *text = guest_desc_write(&good);
	struct guest_desc d;

	CHECK(text != NULL);
	if (!text)
		return;
	CHECK_INT(guest_desc_read(&d, text, strlen(text), NULL), 0);
	CHECK_STR(d.release, good.release);
	CHECK_STR(d.version, good.version);
	CHECK_STR(d.build, good.build);
	CHECK_STR(d.gate, good.gate);
	CHECK(d.is_vmlinux && d.needs_acpi);
	CHECK_INT(d.memory_mib, 128);
	CHECK_INT(d.kernel_bytes, 5);
	CHECK_INT(d.initrd_bytes, 7);
	CHECK_STR(d.words, "a b=c");
}

#define BEGIN "format 1\nrelease r\nversion v\nbuild b\ngate -\n"
#define REST "initrd 7\ndevices mmio\nmemory 64\n"

static void is_read_strictly(void)
{
	static const char *const bad[] = {
		"",
		"format 2\nrelease r\nversion v\nbuild b\ngate -\nkernel vmlinux 5\n" REST
		"words \n",
		BEGIN "kernel vmlinux 5\n" REST,
		BEGIN "kernel vmlinux 5\n" REST "words ",
		BEGIN "kernel vmlinux 5\n" REST "words \n\n",
		BEGIN "kernel vmlinux 5\n" REST "words a  b\n",
		BEGIN "kernel vmlinux 5\n" REST "words a \n",
		BEGIN "kernel vmlinux 5\n" REST "words a\tb\n",
		BEGIN "kernel elf 5\n" REST "words \n",
		BEGIN "kernel vmlinux\n" REST "words \n",
		BEGIN "kernel vmlinux 0\n" REST "words \n",
		BEGIN "kernel vmlinux 268435457\n" REST "words \n",
		BEGIN "kernel bzimage -1\n" REST "words \n",
		BEGIN "kernel vmlinux 5\ninitrd 7\ndevices pci\nmemory 64\nwords \n",
		BEGIN "kernel vmlinux 5\ninitrd 7\ndevices mmio\nmemory 0\nwords \n",
		BEGIN "initrd 7\nkernel vmlinux 5\ndevices mmio\nmemory 64\nwords \n",
		"format 1\nrelease \nversion v\nbuild b\ngate -\nkernel vmlinux 5\n" REST
		"words \n",
		"format 1\nrelease a b\nversion v\nbuild b\ngate -\nkernel vmlinux 5\n" REST
		"words \n",
	};
	const char *fine = BEGIN "kernel bzimage 5\n" REST "words \n";
	struct guest_desc d = { .memory_mib = 1 };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int r = guest_desc_read(&d, bad[i], strlen(bad[i]), NULL);

		CHECK_INT(r, -EBADMSG);
		if (r == 0)
			printf("# case %zu\n", i);
	}
	CHECK_INT(guest_desc_read(&d, NULL, 0, NULL), -EBADMSG);
	CHECK_INT(d.memory_mib, 1);
	CHECK_INT(guest_desc_read(&d, fine, strlen(fine), NULL), 0);
	CHECK(!d.is_vmlinux && !d.needs_acpi);
	CHECK_STR(d.words, "");
}

static void has_a_name(void)
{
	static const char *const bad[] = {
		"", ".a", "-a", "a/b", "..", "default", "a b", "\303\244"
	};
	char longest[GUEST_SET_NAME_MAX + 2];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK(!guest_set_is_name(bad[i]));
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	CHECK(!guest_set_is_name(longest));
	longest[GUEST_SET_NAME_MAX] = '\0';
	CHECK(guest_set_is_name(longest));
	CHECK(guest_set_is_name("6.1.0-56-cloud_x+1"));
}

static void is_made_and_found(void)
{
	_cleanup_fd_ int root_fd = open_place();
	struct guest_set s = GUEST_SET_INIT;
	struct guest_set_info *list;
	struct error err = ERROR_INIT;
	char bytes[8] = "";
	size_t n;

	CHECK_INT(guest_set_list(root_fd, &list, &n, NULL), 0);
	CHECK_INT(n, 0);
	free(list);
	CHECK(guest_set_open(&s, root_fd, NULL, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(strstr(err.text, "nacre guest build"));
	CHECK_INT(guest_set_open(&s, root_fd, "one", &err), -ENOENT);
	CHECK_INT(make(root_fd, "two", NULL), 0);
	CHECK_INT(make(root_fd, "one", NULL), 0);
	CHECK_INT(make(root_fd, "one", &err), -EEXIST);
	CHECK_INT(guest_set_make_default(root_fd, "none", &err), -ENOENT);
	CHECK_INT(guest_set_make_default(root_fd, "two", NULL), 0);
	CHECK_INT(guest_set_make_default(root_fd, "one", NULL), 0);
	CHECK_INT(guest_set_open(&s, root_fd, "", NULL), 0);
	CHECK_STR(s.info.name, "one");
	CHECK(s.info.is_default && s.info.in_use);
	CHECK_INT(s.info.desc.memory_mib, 128);
	CHECK_INT(pread(s.kernel_fd, bytes, sizeof(bytes), 0), 5);
	CHECK_STR(bytes, "KKKKK");
	CHECK_INT(guest_set_list(root_fd, &list, &n, NULL), 0);
	CHECK_INT(n, 2);
	if (n == 2) {
		CHECK_STR(list[0].name, "one");
		CHECK(list[0].in_use && list[0].is_default);
		CHECK(!list[1].in_use && !list[1].is_default);
	}
	free(list);
	guest_set_done(&s);
	remove_place();
}

static void stays_while_it_is_used(void)
{
	_cleanup_fd_ int root_fd = open_place(), copy = -1;
	struct guest_set s = GUEST_SET_INIT;
	struct error err = ERROR_INIT;

	CHECK_INT(make(root_fd, "one", NULL), 0);
	CHECK_INT(guest_set_make_default(root_fd, "one", NULL), 0);
	CHECK_INT(guest_set_open(&s, root_fd, "one", NULL), 0);
	CHECK(guest_set_remove(root_fd, "one", &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	/* As a VMM has it, when whoever started it is no more. */
	copy = fd_copy(s.kernel_fd);
	guest_set_done(&s);
	CHECK(guest_set_remove(root_fd, "one", &err) < 0);
	copy = fd_close(copy);
	CHECK_INT(guest_set_remove(root_fd, "one", NULL), 0);
	CHECK_INT(guest_set_remove(root_fd, "one", &err), -ENOENT);
	CHECK(guest_set_open(&s, root_fd, NULL, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	remove_place();
}

static void leaves_nothing_half(void)
{
	_cleanup_fd_ int root_fd = open_place(), sets_fd = -1;
	_cleanup_strv_ char **names = NULL;
	struct guest_new n = GUEST_NEW_INIT, other = GUEST_NEW_INIT;
	struct error err = ERROR_INIT;

	CHECK_INT(guest_new_begin(&n, root_fd, NULL), 0);
	put(&n, "kernel", "K");
	CHECK(guest_new_begin(&other, root_fd, &err) < 0);
	CHECK_INT(err.kind, ERROR_UNAVAILABLE);
	guest_new_done(&other);
	/* Whoever dies here leaves his directory to the next. */
	n.name[0] = '\0';
	guest_new_done(&n);
	CHECK_INT(guest_new_begin(&n, root_fd, NULL), 0);
	guest_new_done(&n);
	sets_fd = openat(root_fd, "guest", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(fd_list_dir(sets_fd, &names), 0);
	CHECK_INT(strv_len(names), 0);
	remove_place();
}

UNIT_MAIN({ "says_what_it_is", says_what_it_is }, { "is_read_strictly", is_read_strictly },
	  { "has_a_name", has_a_name }, { "is_made_and_found", is_made_and_found },
	  { "stays_while_it_is_used", stays_while_it_is_used },
	  { "leaves_nothing_half", leaves_nothing_half })
