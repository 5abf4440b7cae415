/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps/steps_label.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/text/str.h"

#define STEPS_LABEL_SIZE (ISOLATE_LABEL_MAX + 64)

/* Whether the file of the module says the label that was written: alone (SELinux, which may end it
 * with NUL), or with its mode behind it, "label (enforce)" (AppArmor). */
static bool steps_label_is(const char *text, const char *label)
{
	size_t len = strlen(label);

	return str_has_prefix(text, label) && (!text[len] || strchr(" \n", text[len]));
}

static int steps_label_set(int fd, const char *text, const char *label, struct error *err)
{
	char back[STEPS_LABEL_SIZE];
	ssize_t n;

	if (pwrite(fd, text, strlen(text), 0) < 0) {
		if (errno == ENOENT || errno == EINVAL)
			return error_refuse(err, ERROR_PRECONDITION, "the kernel knows no label %s",
					    label);
		return error_set(err, -errno, "write %s", label);
	}
	n = pread(fd, back, sizeof(back) - 1, 0);
	if (n < 0)
		return error_set(err, -errno, "read the label back");
	back[n] = '\0';
	return steps_label_is(back, label) ? 0 : error_set(err, -EIO, "read the label back");
}

static int steps_label_missing(const char *module, struct error *err)
{
	return error_refuse(err, ERROR_PRECONDITION, "%s: not in the kernel of this host", module);
}

/* Whether the module answers at all: one that was built in but is off does not. */
static bool steps_label_answers(int proc_fd, const char *current)
{
	_cleanup_fd_ int fd = rootfd_open_beneath(proc_fd, current, O_RDONLY);
	char text[STEPS_LABEL_SIZE];

	return fd >= 0 && pread(fd, text, sizeof(text), 0) > 0;
}

static int steps_apparmor(int proc_fd, const char *label, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	char text[STEPS_LABEL_SIZE];
	int r;

	fd = rootfd_open_beneath(proc_fd, "thread-self/attr/apparmor/exec", O_RDWR);
	if (fd < 0)
		return error_set(err, fd, "apparmor: open attr/exec");
	r = str_printf(text, sizeof(text), "exec %s", label);
	if (r < 0)
		return error_set(err, r, "apparmor");
	r = steps_label_set(fd, text, label, err);
	return r < 0 ? error_wrap(err, r, "apparmor") : 0;
}

/* The file system of SELinux is known to the kernel only where SELinux is on. */
static bool steps_selinux_is_on(int proc_fd)
{
	_cleanup_fd_ int fd = rootfd_open_beneath(proc_fd, "filesystems", O_RDONLY);
	char text[4096];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return strstr(text, "\tselinuxfs\n") != NULL;
}

static int steps_selinux(int proc_fd, const char *label, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	int r;

	fd = rootfd_open_beneath(proc_fd, "thread-self/attr/exec", O_RDWR);
	if (fd < 0)
		return error_set(err, fd, "selinux: open attr/exec");
	r = steps_label_set(fd, label, label, err);
	return r < 0 ? error_wrap(err, r, "selinux") : 0;
}

/*
 * Should: say that a module is missing before anything is labelled or mounted.
 * Must not: take one that was built in but is off for one that is there.
 */
int isolate_step_modules(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;

	if ((p->selinux || p->selinux_mount) && !steps_selinux_is_on(s->proc_fd))
		return steps_label_missing(p->selinux ? "selinux" : "selinux_mount", err);
	/* Its own directory is there since 5.8. */
	if (p->apparmor && !steps_label_answers(s->proc_fd, "thread-self/attr/apparmor/current"))
		return steps_label_missing("apparmor", err);
	return 0;
}

/*
 * Should: give the program the labels of the plan, and see them taken (security.md A05, A13).
 * Must not: run it without one that the plan names; write to another /proc than the spawner's
 * private one; come behind no_new_privs, with which a label can only narrow.
 */
int isolate_step_labels(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	int r = 0;

	if (p->selinux)
		r = steps_selinux(s->proc_fd, p->selinux, err);
	if (r == 0 && p->apparmor)
		r = steps_apparmor(s->proc_fd, p->apparmor, err);
	return r;
}
