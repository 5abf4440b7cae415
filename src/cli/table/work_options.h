/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_TABLE_WORK_OPTIONS_H
#define NACRE_CLI_TABLE_WORK_OPTIONS_H

#include "cli/output/tty.h"

/* Options that several of the commands about workloads (cli/table/commands_work.c) have in common:
 * parts of tables of struct arg_option. */

#define OPTION_ENV                                                                                 \
	{                                                                                          \
		"env", 'e', "NAME=VALUE",                                                          \
			"set a variable; NAME alone takes it from here, if it is set"              \
	}
/* Variables from here, before those of --env-file and --env. */
#define OPTIONS_ENV_HERE                                                                           \
	{ "env-host", 0, NULL, "set every variable that is set here" },                            \
	{                                                                                          \
		"http-proxy", 0, NULL,                                                             \
			"set http_proxy, https_proxy, ftp_proxy and no_proxy as they are here"     \
	}
#define OPTION_ENV_FILE                                                                            \
	{                                                                                          \
		"env-file", 0, "FILE", "set variables, from lines NAME=VALUE; may be given again"  \
	}
#define OPTION_CWD                                                                                 \
	{                                                                                          \
		"cwd", 'w', "DIR", "start in this directory"                                       \
	}
#define OPTION_NAME                                                                                \
	{                                                                                          \
		"name", 'n', "NAME", "its name: a-z, 0-9 and '-'; else one is made up"             \
	}
#define OPTION_IN                                                                                  \
	{                                                                                          \
		"in", 0, "PATH", "make it inside this instance, such as a/b/c"                     \
	}
/* And what only one of kind vm can have. */
#define OPTIONS_KIND                                                                               \
	{ "kind", 0, "KIND", "cell (namespaces), vm (its own kernel), ec2, gce, vsphere, auto" },  \
		{ "cold", 0, NULL, "boot a vm; share no page with another one (vm.templates)" },   \
	{                                                                                          \
		"nic", 0, "bridge=NAME,…",                                                         \
			"eth1, in that bridge of the node; also address=IP/LENGTH, gateway=IP, "   \
			"mac=MAC"                                                                  \
	}
#define OPTION_DETACH_KEYS                                                                         \
	{                                                                                          \
		"detach-keys", 0, "KEYS", "that leave a terminal, else " DETACH_KEYS_DEFAULT       \
	}
#define OPTION_CONTAINER                                                                           \
	{                                                                                          \
		"container", 'c', "NAME", "the container, where there are several"                 \
	}
#define OPTION_FORMAT                                                                              \
	{                                                                                          \
		"format", 'F', "TEXT", "a line of this form, such as '{name} {containers[0].pid}'" \
	}
/* What its container may reach. */
#define OPTIONS_WALLS                                                                              \
	{ "volume", 'v', "[SOURCE:]TARGET[:ro,noexec,nocopy,U,rslave,…]",                          \
	  "mount a volume of the node by name, or a path of it; may be given again" },             \
		{ "mount", 0, "type=KIND,source=SOURCE,target=TARGET,…",                           \
		  "the same in docker's words: bind, volume, tmpfs or image" },                    \
		{ "tmpfs", 0, "TARGET[:size=64m,mode=700,uid=1,noexec]",                           \
		  "mount a new file system in memory; may be given again" },                       \
		{ "shm-size", 0, "SIZE", "of /dev/shm, else half of the machine's memory: 256m" }, \
		{ "identity", 0, NULL,                                                             \
		  "the socket of SPIFFE's Workload API at /run/spiffe: certificates of its own" }, \
		{ "secret", 0, "NAME[,type=mount|env,target=…,uid=,gid=,mode=]",                   \
		  "a secret as a file in /run/secrets or a variable; may be given again" },        \
		{ "read-only", 0, NULL, "nothing of its root can be written to" },                 \
		{ "read-only-tmpfs", 0, NULL,                                                      \
		  "with --read-only: /run, /tmp and /var/tmp are new file systems in memory" },    \
		{ "tz", 0, "ZONE",                                                                 \
		  "the node's file of this time zone as /etc/localtime: Europe/Berlin, or "        \
		  "local" },                                                                       \
                                                                                                   \
		{ "cap-add", 0, "NAME", "give it a capability, or ALL; may be given again" },      \
		{ "cap-drop", 0, "NAME", "take one from it, or ALL; may be given again" },         \
		{ "group-add", 0, "GID", "one more group of its user; may be given again" },       \
		{ "oom-score-adj", 0, "N", "end it sooner where memory runs out; -1000 to 1000" }, \
		{ "security-opt", 0, "WORD",                                                       \
		  "no-new-privileges[=false], seccomp=unconfined|FILE, writable-cgroups, "         \
		  "mask=PATH, unmask=PATH|ALL" },                                                  \
		{ "privileged", 0, NULL, "every capability and device, no filter: no wall" },      \
		{ "device", 0, "HOST[:CONTAINER[:rwm]]|VENDOR/CLASS=NAME",                         \
		  "let it open a device of the node, by path or by its vendor's name (CDI); may "  \
		  "be given again" },                                                              \
		{ "ulimit", 0, "NAME=SOFT[:HARD]",                                                 \
		  "of each of its processes: nofile=1024:4096; may be given again" },              \
		{ "init", 0, NULL, "a small first process that reaps, and passes signals on" },    \
		{ "security-profile", 0, "NAME",                                                   \
		  "baseline (the node's default): as docker and podman have it; restricted: no "   \
		  "capability; privileged" },                                                      \
	{                                                                                          \
		"disk", 0, "SIZE", "its root takes at most so much of the disk: 64m, 1g"           \
	}
/* What the containers of a pod share. */
#define OPTIONS_SHARED                                                                             \
	{ "pid", 0, "MODE", "whose processes it sees: private, pod or host" },                     \
		{ "ipc", 0, "MODE", "private or host: shared memory, with /dev/shm" },             \
		{ "uts", 0, "MODE", "private, host or container:NAME: the name of the system" },   \
		{ "userns", 0, "MODE",                                                             \
		  "auto: users and groups of its own, 65,536 ids that no other pod has; host" },   \
		{ "sysctl", 0, "NAME=VALUE",                                                       \
		  "of its own namespaces: net.ipv4.ip_forward=1; may be given again" },            \
	{                                                                                          \
		"cgroup-parent", 0, "PATH", "make its cgroup in this one of the node"              \
	}
/* What a group of processes may use. */
#define OPTIONS_LIMITS                                                                             \
	{ "memory", 'm', "SIZE", "at most so much memory: 64m, 1g, none" },                        \
		{ "memory-low", 0, "SIZE", "leave it so much while others have some to spare" },   \
		{ "memory-high", 0, "SIZE", "slow it down past so much" },                         \
		{ "swap", 0, "SIZE", "at most so much swap beside it: 64m, 0, none" },             \
		{ "cpus", 0, "N", "at most so many CPUs' time: 0.5, 2, none" },                    \
		{ "cpu-weight", 0, "N",                                                            \
		  "its share of short time, 1 to 10000, beside others' 100" },                     \
		{ "cpu-shares", 0, "N",                                                            \
		  "the same in docker's numbers: 2 to 262144, usually 1024" },                     \
		{ "cpu-quota", 0, "MICROSECONDS", "at most so much time of each --cpu-period" },   \
		{ "cpu-period", 0, "MICROSECONDS",                                                 \
		  "1000 to 1000000, else 100000; for --cpu-quota" },                               \
		{ "memory-swap", 0, "SIZE",                                                        \
		  "at most so much memory and swap together, with --memory; -1: any swap" },       \
		{ "cpuset-cpus", 0, "LIST", "run on these CPUs alone: 0-3,7" },                    \
		{ "cpuset-mems", 0, "LIST", "use these nodes of memory alone" },                   \
	{                                                                                          \
		"pids-limit", 0, "N", "at most so many processes and threads, or none"             \
	}

#define OPTION_PULL                                                                                \
	{                                                                                          \
		"pull", 0, "WHEN",                                                                 \
			"load the image: missing (unless it is there), always, newer (as always, " \
			"but the "                                                                 \
			"one that is here will do) or never"                                       \
	}

#endif
