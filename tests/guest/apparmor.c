/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Profiles of AppArmor, on a kernel that has it on (security.md A05, A13): they are in force, by
 * the word of the kernel, or nothing runs. Debian's kernel has it on by default.
 */

#include "label.h"

#define POLICY "/sys/kernel/security/apparmor"
#define PROFILE "nacre-guest"
#define NAMED(profile) "\"apparmorProfile\":\"" profile "\","

static void is_on(void)
{
	static char profile[8192];
	int fd = open("/labels/apparmor", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, profile, sizeof(profile));

	(void)close(fd);
	CHECK(n > 0);
	CHECK_STR(guest_read("/sys/module/apparmor/parameters/enabled"), "Y\n");
	fd = open(POLICY "/.load", O_WRONLY | O_CLOEXEC);
	CHECK_INT(write(fd, profile, (size_t)n), n);
	(void)close(fd);
	CHECK(strstr(guest_read(POLICY "/profiles"), PROFILE " (enforce)\n") != NULL);
}

static void of_a_bundle(void)
{
	CHECK_INT(label_oci(NAMED(PROFILE), "", LABEL_PROC,
			    LABEL_SHOW "echo x >/tmp/free; echo x >/tmp/denied; ls /tmp"),
		  0);
	CHECK_SAYS(PROFILE " (enforce)\n");
	CHECK_SAYS("denied: Permission denied\nfree\n");
	CHECK_INT(label_oci("", "", LABEL_PROC, LABEL_SHOW "echo x >/tmp/denied; ls /tmp"), 0);
	CHECK_SAYS("unconfined\n");
	CHECK_SAYS("\ndenied\n");
}

/* The profile does not depend on what the container calls /proc. */
static void without_its_proc(void)
{
	CHECK_INT(label_oci(NAMED(PROFILE), "", "", "echo x >/tmp/denied; ls /tmp"), 0);
	CHECK_SAYS("denied: Permission denied\n");
	CHECK(label_oci(NAMED(PROFILE), "", "{\"destination\":\"/proc\",\"type\":\"tmpfs\"},",
			"echo ran") != 0);
	CHECK_SAYS("only a procfs goes there");
	CHECK(!strstr(guest_output, "ran\n"));
}

static void of_an_exec(void)
{
	label_start();
	CHECK_INT(GUEST_RUN("nacre", "oci", "exec", "--apparmor", PROFILE, "labelled", "cat",
			    "/proc/self/attr/current"),
		  0);
	CHECK_STR(guest_output, PROFILE " (enforce)\n");
	CHECK(GUEST_RUN("nacre", "oci", "exec", "--apparmor", "nacre-gues", "labelled", "echo",
			"ran") != 0);
	CHECK_SAYS("apparmor: the kernel knows no label nacre-gues");
	CHECK(!strstr(guest_output, "ran\n"));
	CHECK_INT(GUEST_RUN("nacre", "oci", "delete", "--force", "labelled"), 0);
}

static void of_a_plan(void)
{
	struct error err = ERROR_INIT;
	struct isolate_plan plan;

	isolate_plan_init(&plan);
	plan.apparmor = PROFILE;
	CHECK_INT(label_spawn(&plan, &err), 0);
	CHECK_STR(guest_output, PROFILE " (enforce)\n");
	isolate_plan_init(&plan);
	plan.apparmor = PROFILE;
	plan.no_new_privs = true;
	CHECK_INT(label_spawn(&plan, &err), 0);
	CHECK_STR(guest_output, PROFILE " (enforce)\n");
}

static void unknown(void)
{
	struct error err = ERROR_INIT;
	struct isolate_plan plan;

	isolate_plan_init(&plan);
	plan.apparmor = "nacre-gues";
	CHECK(label_spawn(&plan, &err) < 0);
	CHECK_STR(err.text, "set the labels: apparmor: the kernel knows no label nacre-gues");
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_STR(guest_output, "");
	CHECK(label_oci(NAMED("no-such-profile"), "", LABEL_PROC, "echo ran") != 0);
	CHECK_SAYS("apparmor: the kernel knows no label no-such-profile");
	CHECK(!strstr(guest_output, "ran\n"));
}

/* The other module is in this kernel too, and off. */
static void no_selinux(void)
{
	CHECK(label_oci("\"selinuxLabel\":\"a:b:c:s0\",", "", LABEL_PROC, "echo ran") != 0);
	CHECK_SAYS("selinux: not in the kernel of this host");
	CHECK(label_oci("", "\"mountLabel\":\"a:b:c:s0\",", LABEL_PROC, "echo ran") != 0);
	CHECK_SAYS("selinux_mount: not in the kernel of this host");
}

UNIT_MAIN({ "AppArmor is on and takes a profile", is_on },
	  { "the profile of a bundle", of_a_bundle },
	  { "whatever the container calls /proc", without_its_proc },
	  { "the profile of an exec", of_an_exec }, { "the profile of a plan", of_a_plan },
	  { "a profile that is not there", unknown }, { "SELinux is not there", no_selinux })
