/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_size.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "unit.h"
#include "vm/driver/driver.h"
#include "vm/guest/guest_desc.h"

#define MIB ((uint64_t)1 << 20)

static const struct vms_config config = { .memory = 256 * MIB, .cpus = 2 };
static const struct guest_desc set = { .memory_mib = 160 };

static struct instance_machine plan(uint64_t memory, unsigned cpus)
{
	const struct instance_size wish = { .memory = memory, .cpus = cpus };
	struct instance_machine m = { 0 };

	CHECK_INT(vm_size_plan(&config, &set, &wish, 4, &m, NULL), 0);
	return m;
}

static void without_a_wish_it_is_the_configuration(void)
{
	struct vms_config small = config;
	const struct instance_size none = { 0 };
	struct instance_machine m = plan(0, 0);

	CHECK(m.memory == 256 * MIB && m.cpus == 2);
	CHECK(m.room < 96 * MIB && m.room > 89 * MIB);
	/* Never less than it starts with. */
	small.memory = 64 * MIB;
	CHECK_INT(vm_size_plan(&small, &set, &none, 4, &m, NULL), 0);
	CHECK(m.memory == 160 * MIB && m.room == 0);
}

static void a_limit_comes_on_top(void)
{
	struct instance_machine m = plan(320 * MIB, 0);

	CHECK(m.memory == (160 + 320 + 20) * MIB);
	CHECK(m.room == 320 * MIB);
	/* Whole mebibytes, and room for all that was asked for. */
	m = plan(1, 0);
	CHECK(m.memory == 161 * MIB && m.room >= 1);
	for (uint64_t wish = MIB; wish < 4096 * MIB; wish = wish * 2 + 12345) {
		m = plan(wish, 0);
		CHECK(m.room >= wish && m.room < wish + MIB + MIB / 16);
		CHECK(m.memory % MIB == 0);
	}
}

static void parts_may_only_add(void)
{
	struct instance_size wish = { .memory_of_parts = MIB, .cpus_of_parts = 1 };
	struct instance_machine m = { 0 };

	CHECK_INT(vm_size_plan(&config, &set, &wish, 4, &m, NULL), 0);
	CHECK(m.memory == 256 * MIB && m.cpus == 2);
	wish.memory_of_parts = 320 * MIB;
	wish.cpus_of_parts = 3;
	CHECK_INT(vm_size_plan(&config, &set, &wish, 4, &m, NULL), 0);
	CHECK(m.memory == 500 * MIB && m.cpus == 3);
	/* The limit of the whole is what counts where there is one. */
	wish.memory = 32 * MIB;
	wish.cpus = 1;
	CHECK_INT(vm_size_plan(&config, &set, &wish, 4, &m, NULL), 0);
	CHECK(m.memory == 194 * MIB && m.cpus == 1);
}

static void there_is_an_end_to_it(void)
{
	struct instance_size wish = { .memory = VM_MEMORY_MIB_MAX * MIB };
	struct instance_machine m = { .cpus = 77 };
	struct error err = ERROR_INIT;

	CHECK(vm_size_plan(&config, &set, &wish, 4, &m, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_STR(err.field, "resources.memory");
	wish.memory = UINT64_MAX;
	CHECK(vm_size_plan(&config, &set, &wish, 4, &m, &err) < 0);
	CHECK_INT(m.cpus, 77);
}

static void no_more_processors_than_the_host_has(void)
{
	CHECK_INT(plan(0, 3).cpus, 3);
	CHECK_INT(plan(0, 5).cpus, 4);
}

static void put(int dir_fd, const char *name, const char *text)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHECK_INT(fd_write_full(fd, text, strlen(text)), 0);
}

/* The files of a group, as ordinary ones. */
static void the_leaf_is_limited_where_it_can(void)
{
	const struct instance_machine m = { .memory = 256 * MIB };
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char dir[] = "/tmp/vm-size-test-XXXXXX";
	struct error err = ERROR_INIT;
	_cleanup_str_ char *text = NULL;
	_cleanup_fd_ int fd = -1;
	int r;

	CHECK(mkdtemp(dir) != NULL);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put(fd, "cgroup.controllers", "cpu pids\n");
	CHECK_INT(vm_size_wall(fd, &m, &err), 0);
	CHECK(faccessat(fd, "memory.max", F_OK, 0) < 0);
	(void)unlinkat(fd, "cgroup.controllers", 0);
	put(fd, "cgroup.controllers", "cpu memory pids\n");
	put(fd, "memory.max", "max\n");
	r = vm_size_wall(fd, &m, &err);
	if (r != -ENOMEM && fd_read_file(fd, "memory.max", 64, &b) == 0)
		text = buf_take_str(&b);
	if (text) {
		CHECK_INT(r, 0);
		CHECK_INT(strtoull(text, NULL, 10),
			  (256 + 256 / VM_OVERHEAD_SHARE + VM_OVERHEAD_MIB) * MIB);
	}
	(void)unlinkat(fd, "cgroup.controllers", 0);
	(void)unlinkat(fd, "memory.max", 0);
	CHECK_INT(rmdir(dir), 0);
}

static void one_in_another_needs_room_for_its_monitor(void)
{
	const struct instance_size none = { 0 };
	struct instance around = { .path = "v", .machine = { .cpus = 1 } };
	struct instance_machine m = { 0 };
	struct error err = ERROR_INIT;

	/* 256 of its own, 2 for pages, 256 for its monitor. */
	around.machine.room = 514 * MIB;
	CHECK_INT(vm_size_plan_nested(&config, &set, &none, &around, &m, &err), 0);
	CHECK(m.memory == 256 * MIB);
	around.machine.room--;
	CHECK(vm_size_plan_nested(&config, &set, &none, &around, &m, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_STR(error_text(&err),
		  "resources.memory: a machine of 256 MiB takes up to 514 MiB of the one around "
		  "it, and v has "
		  "room for 513: spawn that with a limit of memory of 514 MiB or more");
}

UNIT_MAIN({ "without a wish it is the configuration", without_a_wish_it_is_the_configuration },
	  { "a limit comes on top", a_limit_comes_on_top },
	  { "parts may only add", parts_may_only_add },
	  { "there is an end to it", there_is_an_end_to_it },
	  { "no more processors than the host has", no_more_processors_than_the_host_has },
	  { "one in another needs room for its monitor",
	    one_in_another_needs_room_for_its_monitor },
	  { "the leaf is limited where it can", the_leaf_is_limited_where_it_can })
