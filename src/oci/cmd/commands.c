/* SPDX-License-Identifier: Apache-2.0 */
#include "base/macros.h"
#include "base/text/str.h"
#include "oci/cmd/command.h"
#include "oci/cmd/handlers.h"

/* The one table of commands. It is the manual too: help and nacre-oci(1) are written from it. */

#define OPTION_END                                                                                 \
	{                                                                                          \
		NULL, 0, NULL, NULL                                                                \
	}
#define OPTION_BUNDLE                                                                              \
	{                                                                                          \
		"bundle", 'b', "DIR", "where config.json is, else the current directory"           \
	}
#define OPTIONS_CONSOLE                                                                            \
	{ "console-socket", 0, "PATH", "a unix socket that gets the master of the terminal" },     \
	{                                                                                          \
		"pidfd-socket", 0, "PATH", "a unix socket that gets a pidfd of the process"        \
	}
#define OPTION_PID_FILE                                                                            \
	{                                                                                          \
		"pid-file", 0, "FILE", "where to write the number of the process"                  \
	}
#define OPTION_PRESERVE                                                                            \
	{                                                                                          \
		"preserve-fds", 0, "N", "pass N descriptors on, from 3 + $LISTEN_FDS on"           \
	}
#define OPTIONS_ROOT                                                                               \
	{ "no-pivot", 0, NULL, "chroot in place of pivot_root: for a host on a ramdisk" },         \
	{                                                                                          \
		"no-new-keyring", 0, NULL, "keep the caller's session keyring"                     \
	}

static const struct arg_option options_before[] = {
	{ "root", 0, "DIR", "where the state of containers is, else " OCI_ROOT_DEFAULT },
	{ "log", 0, "FILE", "write errors and warnings there, too" },
	{ "log-format", 0, "FORM", "text or json" },
	{ "debug", 0, NULL, "write more into the log" },
	{ "systemd-cgroup", 0, NULL,
	  "cgroupsPath is SLICE:PREFIX:NAME; the groups are made here, without systemd" },
	{ "rootless", 0, "WORD", "accepted and ignored: what is not allowed is refused" },
	{ "version", 'v', NULL, "print the version" },
	{ "help", 'h', NULL, "list the commands" },
	OPTION_END,
};

static const struct arg_option options_create[] = {
	OPTION_BUNDLE, OPTIONS_CONSOLE, OPTION_PID_FILE, OPTIONS_ROOT, OPTION_PRESERVE, OPTION_END,
};

static const struct arg_option options_run[] = {
	OPTION_BUNDLE,
	OPTIONS_CONSOLE,
	OPTION_PID_FILE,
	OPTIONS_ROOT,
	OPTION_PRESERVE,
	{ "detach", 'd', NULL, "leave it running" },
	{ "keep", 0, NULL, "do not delete it once it has ended" },
	{ "no-subreaper", 0, NULL, "accepted and ignored: orphans are the caller's anyway" },
	OPTION_END,
};

static const struct arg_option options_exec[] = {
	OPTIONS_CONSOLE,
	OPTION_PID_FILE,
	OPTION_PRESERVE,
	{ "process", 'p', "FILE", "the process as JSON, in place of a command" },
	{ "detach", 'd', NULL, "leave it running" },
	{ "tty", 't', NULL, "give it a terminal" },
	{ "cwd", 0, "DIR", "its directory, else the container's" },
	{ "env", 'e', "NAME=VALUE", "a variable, over the container's; may be given again" },
	{ "user", 'u', "UID[:GID]", "else the container's" },
	{ "additional-gids", 'g', "GID", "one more group; may be given again" },
	{ "cap", 'c', "CAPABILITY", "one more capability; may be given again" },
	{ "no-new-privs", 0, NULL, "set no_new_privs" },
	{ "apparmor", 0, "PROFILE", "the AppArmor profile" },
	{ "process-label", 0, "LABEL", "the SELinux label" },
	{ "cgroup", 0, "PATH", "a group below the container's" },
	{ "ignore-paused", 0, NULL, "also in a container that is paused" },
	OPTION_END,
};

static const struct arg_option options_list[] = {
	{ "format", 'f', "FORM", "table or json" },
	{ "quiet", 'q', NULL, "IDs alone" },
	OPTION_END,
};

static const struct arg_option options_ps[] = {
	{ "format", 'f', "FORM", "table or json (numbers alone)" },
	OPTION_END,
};

static const struct arg_option options_kill[] = {
	{ "all", 'a', NULL, "every process of the container" },
	OPTION_END,
};

static const struct arg_option options_delete[] = {
	{ "force", 'f', NULL, "kill it first; and no error where there is none" },
	OPTION_END,
};

static const struct arg_option options_update[] = {
	{ "resources", 'r', "FILE", "linux.resources as JSON; - is standard input" },
	{ "blkio-weight", 0, "N", "10 to 1000" },
	{ "cpu-period", 0, "US", "length of a period" },
	{ "cpu-quota", 0, "US", "CPU time in each period, -1 for no limit" },
	{ "cpu-burst", 0, "US", "CPU time that may be saved up" },
	{ "cpu-share", 0, "N", "relative weight, 2 to 262144" },
	{ "cpu-rt-period", 0, "US", "cgroup version 1 only: refused" },
	{ "cpu-rt-runtime", 0, "US", "cgroup version 1 only: refused" },
	{ "cpu-idle", 0, "N", "1: only when nobody else wants the CPU" },
	{ "cpuset-cpus", 0, "LIST", "CPUs, such as 0-3,7" },
	{ "cpuset-mems", 0, "LIST", "memory nodes" },
	{ "memory", 0, "BYTES", "limit, -1 for none" },
	{ "memory-reservation", 0, "BYTES", "what is protected from others" },
	{ "memory-swap", 0, "BYTES", "memory and swap together, -1 for no limit" },
	{ "kernel-memory", 0, "BYTES", "cgroup version 1 only: refused" },
	{ "kernel-memory-tcp", 0, "BYTES", "cgroup version 1 only: refused" },
	{ "pids-limit", 0, "N", "-1 for no limit" },
	OPTION_END,
};

#define OPTION_IMAGE_PATH                                                                          \
	{                                                                                          \
		"image-path", 0, "DIR", "where the image is, else checkpoint"                      \
	}
#define OPTIONS_CRIU                                                                               \
	{ "work-path", 0, "DIR", "where criu works and writes its log, else --image-path" },       \
		{ "tcp-established", 0, NULL, "with TCP connections that are open" },              \
		{ "ext-unix-sk", 0, NULL, "with unix sockets whose other end is outside" },        \
		{ "shell-job", 0, NULL, "with a terminal or session of the host's" },              \
		{ "file-locks", 0, NULL, "with locks on files" },                                  \
		{ "manage-cgroups-mode", 0, "WORD",                                                \
		  "what criu does about groups: soft (the default), full, strict or ignore" },     \
		{ "empty-ns", 0, "WORD", "network: leave the network namespace empty" },           \
		{ "auto-dedup", 0, NULL, "take out of an image what a later one has" },            \
	{                                                                                          \
		"lazy-pages", 0, NULL, "refused: memory cannot be left behind"                     \
	}

static const struct arg_option options_checkpoint[] = {
	OPTION_IMAGE_PATH,
	OPTIONS_CRIU,
	{ "parent-path", 0, "DIR",
	  "an earlier image, from --image-path on: write what has changed" },
	{ "leave-running", 0, NULL, "let the container go on" },
	{ "pre-dump", 0, NULL, "write memory alone, and let the container go on" },
	{ "page-server", 0, "ADDRESS", "refused: memory cannot be sent to another host" },
	OPTION_END,
};

static const struct arg_option options_restore[] = {
	OPTION_BUNDLE,
	OPTION_IMAGE_PATH,
	OPTIONS_CRIU,
	{ "console-socket", 0, "PATH", "a unix socket that gets the master of the terminal" },
	OPTION_PID_FILE,
	{ "detach", 'd', NULL, "leave it running" },
	{ "no-subreaper", 0, NULL, "accepted and ignored: orphans are the caller's anyway" },
	{ "no-pivot", 0, NULL, "accepted and ignored: criu changes the root in its own way" },
	{ "lsm-profile", 0, "TYPE:NAME",
	  "another label than in the image, apparmor:NAME or selinux:NAME" },
	{ "lsm-mount-context", 0, "LABEL", "another label of SELinux for mounts" },
	OPTION_END,
};

static const struct arg_option options_events[] = {
	{ "stats", 0, NULL, "the statistics once" },
	{ "interval", 0, "TIME", "between two of them, else 5s" },
	OPTION_END,
};

static const struct arg_option options_spec[] = {
	OPTION_BUNDLE,
	{ "rootless", 0, NULL, "for a user without privilege" },
	OPTION_END,
};

static const struct arg_option options_none[] = { OPTION_END };

static const struct oci_command commands[] = {
	{ "create", "ID", "make a container that waits for start",
	  "Does everything but execute the program. Hooks of the kinds prestart, createRuntime\n"
	  "and createContainer run. A container that cannot be made leaves nothing behind.",
	  options_create, 1, 1, 0, oci_create },
	{ "start", "ID", "let a created container execute its program", NULL, options_none, 1, 1, 0,
	  oci_start },
	{ "run", "ID", "make a container, start it and stay with it",
	  "Its exit status becomes that of this command, signals go to it, and once it has ended\n"
	  "it is deleted.",
	  options_run, 1, 1, 0, oci_run },
	{ "exec", "ID COMMAND…", "run one more process in a container",
	  "What is not said is as config.json has it for the container. Without -d its exit\n"
	  "status becomes that of this command.",
	  options_exec, 1, OCI_OPERANDS_ANY, 1, oci_exec },
	{ "state", "ID", "the state of a container as JSON", NULL, options_none, 1, 1, 0,
	  oci_state },
	{ "list", "", "all containers of --root", NULL, options_list, 0, 0, 0, oci_list },
	{ "ps", "ID", "the processes of a container", NULL, options_ps, 1, 1, 0, oci_ps },
	{ "kill", "ID [SIGNAL]", "send a signal to a container's first process, else SIGTERM", NULL,
	  options_kill, 1, 2, 0, oci_kill },
	{ "delete", "ID", "remove what is left of a container that has ended",
	  "Whatever a killed create has left behind goes with --force.", options_delete, 1, 1, 0,
	  oci_delete },
	{ "pause", "ID", "stop all processes of a container where they are", NULL, options_none, 1,
	  1, 0, oci_pause },
	{ "resume", "ID", "let them go on", NULL, options_none, 1, 1, 0, oci_resume },
	{ "update", "ID", "change the limits of a container",
	  "What the host cannot enforce is refused by name, and then nothing has changed.",
	  options_update, 1, 1, 0, oci_update },
	{ "events", "ID", "statistics and OOM kills of a container, a line of JSON each", NULL,
	  options_events, 1, 1, 0, oci_events },
	{ "checkpoint", "ID", "write a running container down, and end it",
	  "The program criu does it, and must be in PATH. A container that cannot be written down\n"
	  "goes on; one that was ended is stopped, and is there until it is deleted.",
	  options_checkpoint, 1, 1, 0, oci_checkpoint },
	{ "restore", "ID", "make a container that was written down, and stay with it",
	  "With --detach it is left running. Hooks of the kinds prestart and createRuntime run.\n"
	  "A container that cannot be restored leaves nothing behind.",
	  options_restore, 1, 1, 0, oci_restore },
	{ "features", "", "what this runtime can do, as JSON", NULL, options_none, 0, 0, 0,
	  oci_features },
	{ "spec", "", "write a config.json to begin with", NULL, options_spec, 0, 0, 0, oci_spec },
	{ "man", "", "print nacre-oci(1)", NULL, options_none, 0, 0, 0, oci_man },
};

const struct oci_table oci_table = { commands, ARRAY_SIZE(commands), options_before };
