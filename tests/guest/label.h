/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_TESTS_LABEL_H
#define NACRE_TESTS_LABEL_H

/* Containers and plans with a label, and what the kernel says that they have. */

#include <sys/stat.h>

#include "guest.h"
#include "isolate/spawn/spawn.h"
#include "unit.h"

#define LABEL_BUNDLE "/run/labels"
#define LABEL_PROC "{\"destination\":\"/proc\",\"type\":\"proc\"},"

/* A bundle with these members for the process and for linux. */
static inline void label_bundle(const char *process, const char *os, const char *mounts,
				const char *script)
{
	int fd;

	(void)mkdir(LABEL_BUNDLE, 0755);
	fd = open(LABEL_BUNDLE "/config.json", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(dprintf(fd,
		      "{\"ociVersion\":\"1.2.0\",\"process\":{%s\"noNewPrivileges\":true,"
		      "\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/\",\"env\":[\"PATH=/bin\"],"
		      "\"args\":[\"sh\",\"-c\",\"%s\"]},\"root\":{\"path\":\"/images/rootfs\"},"
		      "\"mounts\":[%s{\"destination\":\"/tmp\",\"type\":\"tmpfs\"}],\"linux\":{%s"
		      "\"cgroupsPath\":\"/labels\",\"namespaces\":[{\"type\":\"pid\"},"
		      "{\"type\":\"mount\"},{\"type\":\"ipc\"},{\"type\":\"uts\"}]}}",
		      process, script, mounts, os) > 0);
	(void)close(fd);
}

/* Runs such a bundle to its end: its exit status. What it said is in guest_output. */
static inline int label_oci(const char *process, const char *os, const char *mounts,
			    const char *script)
{
	label_bundle(process, os, mounts, script);
	return GUEST_RUN("nacre", "oci", "run", "--bundle", LABEL_BUNDLE, "labelled");
}

/* Starts one that sleeps, with the streams of nobody. */
static inline void label_start(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	label_bundle("", "", LABEL_PROC, "sleep 100000");
	CHECK_INT(guest_wait(guest_start(fd, (const char *const[]){ "nacre", "oci", "create",
								    "--bundle", LABEL_BUNDLE,
								    "labelled", NULL })),
		  0);
	(void)close(fd);
	CHECK_INT(GUEST_RUN("nacre", "oci", "start", "labelled"), 0);
}

#define LABEL_SHOW "cat /proc/self/attr/current; echo; "

#define CHECK_SAYS(text)                                                                           \
	do {                                                                                       \
		if (!strstr(guest_output, text))                                                   \
			guest_show();                                                              \
		CHECK(strstr(guest_output, text) != NULL);                                         \
	} while (0)

/* The engine itself: what a plan's program says, in guest_output, or why there is none, in err. */
static inline int label_spawn(struct isolate_plan *plan, struct error *err)
{
	static char cat[] = "cat", current[] = "/proc/self/attr/current", path[] = "PATH=/bin";
	struct isolate_child c = ISOLATE_CHILD_INIT;
	int fds[2], hint = 0, r;
	siginfo_t info;
	ssize_t n;

	CHECK(pipe2(fds, O_CLOEXEC) == 0);
	plan->argv = (char *[]){ cat, current, NULL };
	plan->env = (char *[]){ path, NULL };
	plan->stdio[1] = fds[1];
	r = isolate_spawn(plan, &c, err);
	(void)close(fds[1]);
	if (r == 0) {
		r = isolate_child_report(&c, &hint, err);
		CHECK(waitid(P_PIDFD, (id_t)c.pidfd, &info, WEXITED) == 0);
	}
	n = read(fds[0], guest_output, sizeof(guest_output) - 1);
	guest_output[n > 0 ? n : 0] = '\0';
	(void)close(fds[0]);
	isolate_child_done(&c);
	return r;
}

#endif
