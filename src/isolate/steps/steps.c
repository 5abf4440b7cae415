/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps/steps.h"

#include <unistd.h>

#include "base/fault/failpoint.h"
#include "isolate/steps/steps_exec.h"
#include "isolate/steps/steps_fd.h"
#include "isolate/steps/steps_inside.h"
#include "isolate/steps/steps_label.h"
#include "isolate/steps/steps_ns.h"
#include "isolate/steps/steps_point.h"
#include "isolate/steps/steps_privilege.h"
#include "isolate/steps/steps_root.h"
#include "isolate/steps/steps_share.h"
#include "isolate/steps/steps_user.h"

/*
 * The order is the contract:
 *
 * - what is written to /proc comes first, since the descriptor of the spawner's /proc is closed
 * with all others before anything of a container is entered; only a plan with sysctls, clocks or
 * labels keeps it until the program, in a process that cannot be traced from where it is;
 * - the user namespace is the first: what is made afterwards is made with its ids and belongs to
 * it; clocks are set before the ids change, and hard limits raised before it is entered;
 * - the place of the root is opened in the mount namespace that the clone has made, and by the
 *   spawner's user: that of a new user namespace need not reach it;
 * - a namespace is entered before what is mounted in its view (sysfs shows the net namespace of who
 *   mounts it, mqueue the ipc namespace, cgroup2 the cgroup namespace);
 * - a container's own user namespace comes as soon as its root is complete, which its ids alone
 *   could not make; whose files they are is known before;
 * - everything that needs privilege comes before it is dropped; a filter without no_new_privs needs
 *   CAP_SYS_ADMIN and comes before, one with it comes last, right before the program;
 * - the death signal comes behind the change of credentials, which clears it.
 */
static const struct {
	const char *name;
	int (*run)(struct isolate_steps *s, struct error *err);
} steps_table[] = {
	{ "reset the signals", isolate_step_signals },
	{ "wait for the ids", isolate_step_ids },
	{ "set the OOM score", isolate_step_oom },
	{ "close the spawner's descriptors", isolate_step_close },
	{ "open the place of the root", isolate_step_place_root },
	{ "raise the limits", isolate_step_rlimits_raise },
	{ "join the namespaces", isolate_step_join },
	{ "make the time namespace", isolate_step_time },
	{ "enter the user namespace", isolate_step_inside },
	{ "make the cgroup namespace", isolate_step_cgroup_ns },
	{ "start the session", isolate_step_session },
	{ "start the session keyring", isolate_step_keyring },
	{ "set the hostname", isolate_step_hostname },
	{ "bring up the loopback device", isolate_step_loopback },
	{ "set the sysctls", isolate_step_sysctls },
	{ "look for the security modules", isolate_step_modules },
	{ "act in the namespaces", isolate_step_namespaces },
	{ "make files as root of the container", isolate_step_file_ids },
	{ "make the root file system", isolate_step_root },
	{ "enter the user namespace of the container", isolate_step_enter_user },
	{ "find the home of the user", isolate_step_home },
	{ "enter the working directory", isolate_step_cwd },
	{ "make the root file system read-only", isolate_step_read_only },
	{ "set the share of the machine", isolate_step_share },
	{ "set the limits", isolate_step_rlimits },
	{ "open the null device of the root", isolate_step_stdio_null },
	{ "hand over the standard streams", isolate_step_stdio_owner },
	{ "set the labels", isolate_step_labels },
	{ "set the personality", isolate_step_personality },
	{ "drop the bounding set", isolate_step_bounding },
	{ "place the descriptors", isolate_step_place },
	{ "set the early filter", isolate_step_seccomp_early },
	{ "set the user", isolate_step_user },
	{ "drop the capabilities", isolate_step_caps },
	{ "set the death signal", isolate_step_death_signal },
	{ "act before the program", isolate_step_ready },
	{ "set no_new_privs", isolate_step_no_new_privs },
	{ "unblock the signals", isolate_step_unblock },
	{ "set the filter", isolate_step_seccomp },
	{ "execute the program", isolate_step_exec },
};

static void steps_report(const struct isolate_steps *s, const struct error *err)
{
	struct isolate_report report = { .exit_hint = s->exit_hint, .error = *err };
	ssize_t n = write(s->report_fd, &report, sizeof(report));

	/* Without a reader nobody is left to care; the exit code still tells the class. */
	(void)n;
}

_noreturn_ void isolate_steps_run(struct isolate_steps *s)
{
	struct error err = ERROR_INIT;

	s->exit_hint = ISOLATE_EXIT_FAILED;
	for (size_t i = 0; i < ARRAY_SIZE(steps_table); i++) {
		int r = FAILPOINT("spawn.step");

		if (r < 0)
			(void)error_set(&err, r, "step %zu", i);
		else
			r = steps_table[i].run(s, &err);
		if (r < 0) {
			(void)error_wrap(&err, r, "%s", steps_table[i].name);
			break;
		}
	}
	steps_report(s, &err);
	_exit(s->exit_hint);
}
