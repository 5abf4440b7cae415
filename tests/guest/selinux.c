/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Labels of SELinux, on a kernel that was started with it (security.md A05, A13) and has a policy
 * of two types.
 */

#include "label.h"

#define TYPE(type) "node_u:node_r:" type
#define PROCESS(label) "\"selinuxLabel\":\"" label "\","
#define MOUNT(label) "\"mountLabel\":\"" label "\","
#define OBJECT "node_u:object_r:box_t"
#define LABEL_MQUEUE "{\"destination\":\"/dev/mqueue\",\"type\":\"mqueue\"},"

static void is_on(void)
{
	static char policy[65536];
	int fd = open("/labels/selinux", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, policy, sizeof(policy));

	(void)close(fd);
	CHECK(n > 0);
	fd = open("/sys/fs/selinux/load", O_WRONLY | O_CLOEXEC);
	CHECK_INT(write(fd, policy, (size_t)n), n);
	(void)close(fd);
	CHECK_STR(guest_read("/proc/self/attr/current"), TYPE("node_t"));
}

static void of_a_bundle(void)
{
	CHECK_INT(label_oci(PROCESS(TYPE("box_t")), "", LABEL_PROC, LABEL_SHOW), 0);
	CHECK_SAYS(TYPE("box_t"));
	CHECK_INT(label_oci("", "", LABEL_PROC, LABEL_SHOW), 0);
	CHECK_SAYS(TYPE("node_t"));
}

static void of_an_exec(void)
{
	label_start();
	CHECK_INT(GUEST_RUN("nacre", "oci", "exec", "--process-label", TYPE("box_t"), "labelled",
			    "cat", "/proc/self/attr/current"),
		  0);
	CHECK_SAYS(TYPE("box_t"));
	CHECK_INT(GUEST_RUN("nacre", "oci", "delete", "--force", "labelled"), 0);
}

static void of_mounts(void)
{
	CHECK_INT(label_oci("", MOUNT(OBJECT), LABEL_PROC, "cat /proc/self/mounts"), 0);
	CHECK_SAYS("/tmp tmpfs rw,context=" OBJECT);
	CHECK(!strstr(guest_output, "/proc proc rw,context="));
	CHECK_INT(label_oci("", MOUNT(OBJECT), LABEL_PROC LABEL_MQUEUE, "cat /proc/self/mounts"),
		  0);
	CHECK_SAYS("/dev/mqueue mqueue rw");
	CHECK_INT(label_oci("", "", LABEL_PROC, "cat /proc/self/mounts"), 0);
	CHECK(!strstr(guest_output, "context="));
}

static void of_a_plan(void)
{
	struct error err = ERROR_INIT;
	struct isolate_plan plan;

	isolate_plan_init(&plan);
	plan.selinux = TYPE("box_t");
	plan.no_new_privs = true;
	CHECK_INT(label_spawn(&plan, &err), 0);
	CHECK_STR(guest_output, TYPE("box_t"));
}

static void unknown(void)
{
	struct error err = ERROR_INIT;
	struct isolate_plan plan;

	isolate_plan_init(&plan);
	plan.selinux = TYPE("other_t");
	CHECK(label_spawn(&plan, &err) < 0);
	CHECK_STR(err.text, "set the labels: selinux: the kernel knows no label " TYPE("other_t"));
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_STR(guest_output, "");
	CHECK(label_oci(PROCESS(TYPE("other_t")), "", LABEL_PROC, "echo ran") != 0);
	CHECK_SAYS("selinux: the kernel knows no label " TYPE("other_t"));
	CHECK(!strstr(guest_output, "ran\n"));
	CHECK(label_oci("", MOUNT(TYPE("other_t")), LABEL_PROC, "echo ran") != 0);
	CHECK_SAYS("tmpfs");
	CHECK(!strstr(guest_output, "ran\n"));
}

/* The other module is in this kernel too, and off. */
static void no_apparmor(void)
{
	CHECK(label_oci("\"apparmorProfile\":\"nacre-guest\",", "", LABEL_PROC, "echo ran") != 0);
	CHECK_SAYS("apparmor: not in the kernel of this host");
}

UNIT_MAIN({ "SELinux is on and takes a policy", is_on }, { "the label of a bundle", of_a_bundle },
	  { "the label of an exec", of_an_exec }, { "the label of mounts", of_mounts },
	  { "the label of a plan", of_a_plan }, { "labels that are not there", unknown },
	  { "AppArmor is not there", no_apparmor })
