/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/driver/driver.h"

#include <errno.h>
#include <sys/resource.h>

#include "base/macros.h"
#include "unit.h"

static const struct vm_nic test_nic = { .tap_fd = 9, .mac = { 2, 0x6e, 0x61, 0x63, 0x72, 2 } };
static const struct vm_port test_port = { .name = "org.nacre.boot", .fd = 8 };

static void test_spec(struct vm_spec *s)
{
	vm_spec_init(s);
	s->memory_mib = 128;
	s->kernel_fd = 3;
	s->initrd_fd = 4;
	s->dir_fd = 5;
	s->uid = 60000;
	s->gid = 60000;
	s->nics = &test_nic;
	s->n_nics = 1;
	s->ports = &test_port;
	s->n_ports = 1;
}

#define CHECK_REFUSED(s, member)                                                                   \
	do {                                                                                       \
		struct error err_ = ERROR_INIT;                                                    \
                                                                                                   \
		CHECK(vm_spec_check((s), &err_) == -EINVAL);                                       \
		CHECK(err_.kind == ERROR_INVALID);                                                 \
		CHECK_STR(err_.text, member " of a machine is wrong");                             \
	} while (0)

static void takes_what_is_right(void)
{
	static const struct vm_disk base = { .fd = 10 };
	const struct vm_disk disk = {
		.fd = 11, .format = VM_DISK_QCOW2, .writable = true, .base = &base
	};
	struct error err = ERROR_INIT;
	struct vm_spec s;

	test_spec(&s);
	CHECK(vm_spec_check(&s, &err) == 0);
	s.n_slots = VM_SLOTS_MAX;
	s.writable_slots = 0xffff;
	CHECK(vm_spec_check(&s, &err) == 0);
	test_spec(&s);
	s.initrd_fd = -1;
	s.disks = &disk;
	s.n_disks = 1;
	CHECK(vm_spec_check(&s, &err) == 0);
	s.kernel_fd = -1;
	s.firmware = VM_FIRMWARE_UEFI;
	s.vars_fd = 12;
	CHECK(vm_spec_check(&s, &err) == 0);
}

static void names_what_is_wrong(void)
{
	struct vm_nic nic = test_nic;
	struct vm_port port = test_port;
	struct vm_share share = { .tag = "a,b", .fd = 3 };
	struct vm_disk disk = { .fd = -1 }, base = { .fd = 4 };
	struct vm_spec s;

	test_spec(&s);
	s.kernel_fd = -1;
	CHECK_REFUSED(&s, "kernel_fd");
	s.firmware = VM_FIRMWARE_BIOS;
	CHECK_REFUSED(&s, "kernel_fd");
	s.initrd_fd = -1;
	s.vars_fd = 3;
	CHECK_REFUSED(&s, "firmware");
	s.firmware = VM_FIRMWARE_UEFI;
	s.vars_fd = -1;
	CHECK_REFUSED(&s, "firmware");
	test_spec(&s);
	s.uid = 0;
	CHECK_REFUSED(&s, "uid");
	test_spec(&s);
	s.dir_fd = -1;
	CHECK_REFUSED(&s, "dir_fd");
	test_spec(&s);
	s.nics = &nic;
	nic.mac[0] = 1;
	CHECK_REFUSED(&s, "nics");
	test_spec(&s);
	s.ports = &port;
	port.name = "a,server=on";
	CHECK_REFUSED(&s, "ports");
	test_spec(&s);
	s.shares = &share;
	s.n_shares = 1;
	CHECK_REFUSED(&s, "shares");
	test_spec(&s);
	s.disks = &disk;
	s.n_disks = 1;
	CHECK_REFUSED(&s, "disks");
	disk = (struct vm_disk){ .fd = 3, .format = VM_DISK_RAW, .base = &base };
	CHECK_REFUSED(&s, "disks");
	disk.format = VM_DISK_QCOW2;
	base.writable = true;
	CHECK_REFUSED(&s, "disks");
	base = (struct vm_disk){ .fd = 4, .base = &base };
	CHECK_REFUSED(&s, "disks");
	test_spec(&s);
	s.title = "a\nb";
	CHECK_REFUSED(&s, "title");
}

/* What is no part of a machine's memory and state cannot be put aside. */
static void makes_a_template_of_the_plain_form(void)
{
	const struct vm_share share = { .tag = "a", .fd = 3 };
	const struct vm_disk disk = { .fd = 3 };
	struct error err = ERROR_INIT;
	struct vm_spec s;

	test_spec(&s);
	s.memory_fd = 6;
	CHECK(vm_spec_check(&s, &err) == 0);
	s.held = true;
	CHECK_REFUSED(&s, "template");
	s.state_fd = 7;
	CHECK(vm_spec_check(&s, &err) == 0);
	s.memory_fd = -1;
	CHECK_REFUSED(&s, "template");
	s.memory_fd = 6;
	s.shares = &share;
	s.n_shares = 1;
	CHECK_REFUSED(&s, "template");
	s.n_shares = 0;
	s.disks = &disk;
	s.n_disks = 1;
	CHECK_REFUSED(&s, "template");
}

static void keeps_to_its_limits(void)
{
	struct vm_nic nics[VM_NICS_MAX] = { test_nic, test_nic };
	struct vm_share share = { .tag = "a", .fd = 3 };
	struct error err = ERROR_INIT;
	struct vm_spec s;

	test_spec(&s);
	s.memory_mib = VM_MEMORY_MIB_MIN;
	CHECK(vm_spec_check(&s, &err) == 0);
	s.memory_mib = VM_MEMORY_MIB_MIN - 1;
	CHECK_REFUSED(&s, "memory_mib");
	s.memory_mib = VM_MEMORY_MIB_MAX + 1;
	CHECK_REFUSED(&s, "memory_mib");
	test_spec(&s);
	s.cpus = VM_CPUS_MAX + 1;
	CHECK_REFUSED(&s, "cpus");
	test_spec(&s);
	s.n_slots = VM_SLOTS_MAX + 1;
	CHECK_REFUSED(&s, "slots");
	test_spec(&s);
	s.n_slots = 1;
	s.writable_slots = 2;
	CHECK_REFUSED(&s, "slots");
	test_spec(&s);
	s.n_slots = VM_SLOTS_MAX;
	s.nics = nics;
	s.n_nics = 2;
	s.shares = &share;
	s.n_shares = 1;
	CHECK(vm_spec_check(&s, &err) == 0);
	s.n_shares = VM_SHARES_MAX + 1;
	CHECK_REFUSED(&s, "shares");
	s.n_shares = 2;
	s.shares = (struct vm_share[]){ share, share };
	CHECK_REFUSED(&s, "devices");
}

static void takes_words_without_tricks(void)
{
	static char longest[VM_COMMAND_LINE_MAX / 2 + 1];
	const char *bad[][2] = {
		{ "a b", NULL }, { "a\"", NULL }, { "", NULL }, { "\xc3\xa4", NULL }
	};
	const char *many[VM_WORDS_MAX + 2] = { NULL };
	const char *one[] = { longest, NULL };
	struct error err = ERROR_INIT;
	struct vm_spec s;

	test_spec(&s);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		s.words = bad[i];
		CHECK_REFUSED(&s, "words");
	}
	for (size_t i = 0; i < VM_WORDS_MAX; i++)
		many[i] = "a=b";
	s.words = many;
	CHECK(vm_spec_check(&s, &err) == 0);
	many[VM_WORDS_MAX] = "a";
	CHECK_REFUSED(&s, "words");
	s.words = one;
	memset(longest, 'a', sizeof(longest) - 2);
	CHECK(vm_spec_check(&s, &err) == 0);
	longest[sizeof(longest) - 2] = 'a';
	CHECK_REFUSED(&s, "words");
}

static void has_a_sentence_for_each_cause(void)
{
	for (int i = 0; i < VM_END_CAUSE_COUNT; i++)
		CHECK(*vm_end_sentence((enum vm_end_cause)i));
	CHECK_STR(vm_end_sentence(VM_END_PANIC), "the guest's kernel panicked");
}

/* The other reason for which a mapping may be refused stands in for the first. */
static void has_no_room_for_what_the_kernel_refuses(void)
{
	struct rlimit was, little;
	struct error err = ERROR_INIT;

	CHECK_INT(vm_room_check(128, &err), 0);
	CHECK_INT(getrlimit(RLIMIT_DATA, &was), 0);
	little = was;
	little.rlim_cur = 64 << 20;
	CHECK_INT(setrlimit(RLIMIT_DATA, &little), 0);
	CHECK(vm_room_check(128, &err) < 0);
	CHECK_INT(setrlimit(RLIMIT_DATA, &was), 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	CHECK_STR(err.text,
		  "this node has no 128 MiB of memory for a machine: Cannot allocate memory");
}

UNIT_MAIN({ "takes what is right", takes_what_is_right },
	  { "names what is wrong", names_what_is_wrong },
	  { "makes a template of the plain form", makes_a_template_of_the_plain_form },
	  { "keeps to its limits", keeps_to_its_limits },
	  { "takes words without tricks", takes_words_without_tricks },
	  { "has a sentence for each cause", has_a_sentence_for_each_cause },
	  { "has no room for what the kernel refuses", has_no_room_for_what_the_kernel_refuses })
