/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/command_groups.h"

#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/options/health_options.h"
#include "cli/options/labels.h"
#include "cli/options/net_words.h"
#include "cli/options/ps_filter.h"
#include "cli/options/restart_option.h"
#include "cli/output/tty.h"
#include "cli/table/work_options.h"

/* Of a pod that is run, or created. */
#define OPTIONS_RUN                                                                                \
	{ "rm", 0, NULL, "remove the pod once it has ended" },                                     \
		{ "volumes-from", 0, "TARGET[:ro]",                                                \
		  "the volumes and directories of another pod, at the same places" },              \
		{ "cidfile", 0, "FILE",                                                            \
		  "write its id to this file, which must not be there yet" },                      \
		{ "interactive", 'i', NULL, "pass standard input on" },                            \
		{ "tty", 't', NULL, "give it a terminal; with -i it is this one" },                \
		OPTION_DETACH_KEYS, OPTION_NAME, OPTION_RESTART,                                   \
		{ "user", 'u', "USER", "user, uid, user:group or uid:gid, else the image's" },     \
		OPTIONS_ENV_HERE, OPTION_ENV, OPTION_ENV_FILE, OPTION_CWD,                         \
		{ "entrypoint", 0, "WORD",                                                         \
		  "the program, in place of the image's entrypoint; '': none" },                   \
		{ "replace", 0, NULL,                                                              \
		  "first remove what has its name, as `nacre rm --force` does" },                  \
		{ "quiet", 'q', NULL, "tell nothing of the pull of its image" }, OPTIONS_NET,      \
		OPTIONS_WALLS, OPTIONS_HEALTH, OPTIONS_SHARED, OPTIONS_LIMITS, OPTION_IN,          \
		OPTIONS_KIND, OPTION_PULL, OPTIONS_LABELS

static const struct arg_option options_create[] = {
	OPTIONS_RUN,
	OPTION_END,
};

static const struct arg_option options_run[] = {
	{ "detach", 'd', NULL, "print the pod's id and leave it running" },
	{ "pidfile", 0, "FILE",
	  "write the pid of its program to this file, which must not be there yet" },
	OPTIONS_RUN,
	OPTION_END,
};

static const struct arg_option options_pod[] = {
	OPTION_NAME,
	OPTION_IN,
	OPTIONS_KIND,
	OPTIONS_NET,
	{ "rm", 0, NULL, "remove the pod once all its containers have ended" },
	{ "replace", 0, NULL, "first remove what has its name, as `nacre rm --force` does" },
	{ "pod-id-file", 0, "FILE", "write its id to this file, which must not be there yet" },
	{ "quiet", 'q', NULL, "tell nothing of the pull of its images" },
	OPTIONS_SHARED,
	{ "security-profile", 0, "NAME", "of those of its containers that name none" },
	OPTION_RESTART,
	OPTIONS_LIMITS,
	OPTION_PULL,
	OPTIONS_LABELS,
	OPTION_END,
};

const struct arg_option command_container_options[] = {
	{ "interactive", 'i', NULL, "keep its standard input open" },
	{ "tty", 't', NULL, "give it a terminal" },
	{ "requires", 0, "NAME[:started|healthy|completed]",
	  "begin when that one has come so far; may be given again" },
	{ "init-ctr", 0, "always", "it runs to its end, with 0, before those behind it begin" },
	{ "restart", 0, "POLICY",
	  "start it alone again, as its pod runs on; of an init container: a sidecar" },
	{ "user", 'u', "USER", "user, uid, user:group or uid:gid, else the image's" },
	OPTIONS_ENV_HERE,
	OPTION_ENV,
	OPTION_ENV_FILE,
	OPTION_CWD,
	{ "entrypoint", 0, "WORD", "the program, in place of the image's entrypoint; '': none" },
	OPTIONS_WALLS,
	OPTIONS_HEALTH,
	OPTIONS_LIMITS,
	OPTION_END,
};

static const struct arg_option options_cell[] = {
	OPTION_NAME,
	OPTION_RESTART,
	OPTION_IN,
	{ "userns", 0, "MODE",
	  "auto: 65,536 users and groups that no pod or other cell has; host" },
	OPTIONS_NET,
	{ "user", 'u', "USER", "user, uid, user:group or uid:gid, else the image's" },
	OPTIONS_ENV_HERE,
	OPTION_ENV,
	OPTION_ENV_FILE,
	OPTION_CWD,
	{ "entrypoint", 0, "WORD", "the program, in place of the image's entrypoint; '': none" },
	OPTIONS_WALLS,
	OPTIONS_HEALTH,
	OPTIONS_LIMITS,
	OPTION_PULL,
	OPTIONS_LABELS,
	OPTION_END,
};

static const struct arg_option options_spawn[] = {
	OPTION_NAME,    OPTION_IN,      OPTIONS_KIND, { "network", 0, "MODE", "own or host" },
	OPTIONS_LIMITS, OPTIONS_LABELS, OPTION_END,
};

static const struct arg_option options_update[] = {
	OPTION_CONTAINER,
	{ "whole", 0, NULL, "the pod, cell or instance itself, not its container" },
	OPTIONS_LIMITS,
	OPTION_END,
};

static const struct arg_option options_execute[] = {
	OPTION_NAME,
	{ "user", 'u', "UID[:GID]", "in numbers, else the node's own" },
	{ "env", 'e', "NAME=VALUE", "set a variable; without any there are PATH and HOME" },
	OPTION_CWD,
	{ "interactive", 'i', NULL,
	  "read standard input to its end first (at most 4 MiB), pass it" },
	{ "timeout", 0, "TIME", "kill it after so long: 10, 500ms, 5m" },
	{ "keep", 0, NULL, "keep its record and its log until `nacre rm`" },
	{ "comment", 0, "TEXT", "free text, which `nacre inspect` shows" },
	OPTIONS_LABELS,
	OPTION_END,
};

static const struct arg_option options_attach[] = {
	OPTION_CONTAINER,
	{ "no-stdin", 0, NULL, "only watch" },
	{ "replay", 'r', NULL, "first what it wrote before, up to the last 64 KiB" },
	OPTION_DETACH_KEYS,
	OPTION_END,
};

static const struct arg_option options_exec[] = {
	{ "detach", 'd', NULL, "leave it running, and what it writes goes nowhere" },
	{ "interactive", 'i', NULL, "pass standard input on" },
	{ "tty", 't', NULL, "give it a terminal; with -i it is this one" },
	OPTION_DETACH_KEYS,
	OPTION_CONTAINER,
	{ "user", 'u', "USER", "else the container's" },
	{ "env", 'e', "NAME=VALUE", "set a variable, over the container's" },
	OPTION_ENV_FILE,
	OPTION_CWD,
	{ "timeout", 0, "TIME", "kill it after so long: 10, 500ms, 5m" },
	OPTION_END,
};

static const struct arg_option options_ps[] = {
	{ "all", 'a', NULL, "also what has ended" },
	{ "quiet", 'q', NULL, "ids alone" },
	OPTION_PS_FILTER,
	{ "last", 'n', "N", "only the last N that were made, also of what has ended" },
	{ "latest", 'l', NULL, "only the last one, likewise" },
	{ "no-trunc", 0, NULL, "whole commands in templates" },
	{ "kind", 'k', "KIND", "only pod, cell, executable or instance; may be given again" },
	{ "state", 's', "STATE",
	  "only in this state, also created or one of the ended; may be given again" },
	OPTION_FORMAT,
	OPTION_END,
};

static const struct arg_option options_tree[] = {
	{ "watch", 'w', NULL, "draw it again at each change, until Ctrl-C" },
	{ "short", 's', NULL, "leave the processes out" },
	OPTION_END,
};

static const struct arg_option options_stats[] = {
	{ "watch", 'w', NULL, "again every 2 s, until Ctrl-C" },
	OPTION_END,
};

static const struct arg_option options_inspect[] = {
	OPTION_FORMAT,
	{ "docker", 0, NULL, "in the form of docker, which its templates are about; also images" },
	OPTION_END,
};

static const struct arg_option options_events[] = {
	{ "since-token", 0, "TOKEN", "begin behind the event that had this token (see -o json)" },
	{ "object", 0, "OBJECT",
	  "only workload, container, instance or image; may be given again" },
	OPTION_END,
};

static const struct arg_option options_logs[] = {
	{ "follow", 'f', NULL, "go on until the container has ended" },
	{ "timestamps", 't', NULL, "put the time in front of each line" },
	{ "since", 0, "TIME", "only lines from then on: 1h30m (ago), 2026-01-31T10:00:00Z" },
	{ "until", 0, "TIME", "only lines from before: 10m (ago), seconds since 1970, a date" },
	{ "tail", 'n', "N", "only the last N lines of what is there" },
	OPTION_CONTAINER,
	OPTION_END,
};

#define OPTION_ALL                                                                                 \
	{                                                                                          \
		"all", 'a', NULL, "each one that runs, in the place of TARGET"                     \
	}

static const struct arg_option options_kill[] = {
	{ "signal", 's', "SIGNAL", "send this one, such as HUP, SIGUSR1 or 9; else SIGKILL" },
	OPTION_CONTAINER,
	OPTION_ALL,
	OPTION_END,
};

static const struct arg_option options_pause[] = {
	OPTION_ALL,
	OPTION_END,
};

static const struct arg_option options_stop[] = {
	OPTION_ALL,
	OPTION_CONTAINER,
	{ "time", 't', "TIME", "between asking and killing: 10 (seconds, the default), 500ms, 5m" },
	OPTION_END,
};

static const struct arg_option options_start[] = {
	{ "attach", 'a', NULL, "stay with it, as `nacre run` does" },
	{ "interactive", 'i', NULL, "with --attach: pass standard input on" },
	OPTION_CONTAINER,
	OPTION_DETACH_KEYS,
	OPTION_END,
};

static const struct arg_option options_rm[] = {
	{ "force", 'f', NULL, "kill it first where it runs" },
	{ "all", 'a', NULL, "each one that has ended, or with --force each one that there is" },
	{ "volumes", 'v', NULL, "with its volumes that have no name" },
	OPTION_END,
};

static const struct command work_commands[] = {
	{
		.name = "run",
		.operands = "IMAGE [COMMAND…]",
		.summary = "run an image as a pod, in an instance of its own",
		.help = "Starts a pod with one container, \"main\", and stays with it: its output "
			"comes out here,\n"
			"and its exit status becomes that of nacre. SIGINT and SIGTERM ask the pod "
			"to stop;\n"
			"a second one kills it, a third leaves. SIGHUP, SIGQUIT, SIGUSR1 and "
			"SIGUSR2 go to\n"
			"the program. With -it this terminal is the program's; ctrl-p ctrl-q "
			"leaves it running.\n"
			"Once COMMAND is given, it takes the place of the image's command, behind "
			"the image's\n"
			"entrypoint.\n"
			"\n"
			"The record of the pod, its files and its log stay until `nacre rm`, "
			"unless --rm is\n"
			"given; `nacre start` runs it once more. With --restart it is started "
			"again by itself\n"
			"until somebody stops it: after 100 ms, then after twice as long each "
			"time, at most a\n"
			"minute. An image that the node has not is pulled first, as `nacre image "
			"pull` does it\n"
			"(--pull).\n"
			"\n"
			"    nacre run --rm busybox echo hello\n"
			"    nacre run -d --name web --env PORT=8080 busybox httpd -f -p 8080\n"
			"    nacre run --rm -v ./site:/www:ro --read-only --tmpfs /tmp busybox ls "
			"/www\n"
			"    echo 1+1 | nacre run --rm -i busybox bc\n"
			"    nacre run --rm -it busybox sh",
		.options = options_run,
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.n_verbatim = 1,
		.run = cmd_run,
	},
	{
		.name = "create",
		.operands = "IMAGE [COMMAND…]",
		.summary = "make a pod with its files, to be started later",
		.help = "As `nacre run`, but nothing runs, and it has no address yet, until `nacre "
			"start`.\n"
			"`nacre cp` reaches its files meanwhile. Prints its id.\n"
			"\n"
			"    nacre create --name web busybox httpd -f -p 8080 -h /www\n"
			"    nacre cp ./site web:/www\n"
			"    nacre start web",
		.options = options_create,
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.n_verbatim = 1,
		.run = cmd_create,
	},
	{
		.name = "start",
		.operands = "TARGET…",
		.summary = "start pods and cells that have ended, or were created",
		.help = "Each runs with the files that it has, as it was asked for at first: same "
			"id, name,\n"
			"limits and mounts, a new address unless --ip named one. Its log goes on. "
			"What runs\n"
			"already is left as it is. Those of kind vm keep no files, and cannot be "
			"started.\n"
			"With --container one container starts alone, in a pod or cell that "
			"runs.\n"
			"\n"
			"    nacre start web db\n"
			"    nacre start shop --container db\n"
			"    nacre start --attach job",
		.options = options_start,
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_start,
	},
	{
		.name = "pod",
		.operands = "CONTAINER=IMAGE [WORD…] [-- [OPTION…] CONTAINER=IMAGE [WORD…]]…",
		.summary = "run several containers as one pod",
		.help = "Starts a pod whose containers share localhost and IPC, prints its id and "
			"leaves it\n"
			"running. Each container is a name, an image and, if it is to differ from "
			"the\n"
			"image's, its command; \"--\" stands between two containers, and may stand "
			"before the\n"
			"first. Behind it come options of that container (-e, -v, "
			"--cap-add and all others\n"
			"that `nacre run` has of a container alone); those of the pod stand in "
			"front of all.\n"
			"\n"
			"    nacre pod --name shop web=busybox httpd -f -p 80 -- probe=busybox "
			"sleep 1000\n"
			"    nacre pod -m 1g -- -v data:/d db=IMAGE -- -u 99 --health-tcp 80 "
			"web=IMAGE\n"
			"    nacre pod -- --init-ctr always --restart always log=IMAGE -- "
			"web=IMAGE\n"
			"    nacre exec shop --container probe wget -qO- http://localhost/",
		.options = options_pod,
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.n_verbatim = 1,
		.run = cmd_pod,
	},
	{
		.name = "cell",
		.operands = "IMAGE [COMMAND…]",
		.summary = "run an image in a cell of the node or of an instance",
		.help = "A cell has a cgroup and network, IPC and UTS namespaces of its own, and "
			"no instance\n"
			"around it: one wall less than a pod. Prints its name and leaves it "
			"running. Without\n"
			"--network it has loopback alone; --network host is that of its node or "
			"instance.\n"
			"\n"
			"    nacre cell --name clock busybox sh -c 'while date; do sleep 1; done'\n"
			"    nacre cell --in a/b --name deep busybox sleep 1000\n"
			"    nacre cell --network shop --publish 8080:80 busybox httpd -f",
		.options = options_cell,
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.n_verbatim = 1,
		.run = cmd_cell,
	},
	{
		.name = "spawn",
		.operands = "",
		.summary = "make a nested instance: nacre again, inside a wall of its own",
		.help = "Prints the name of the instance, which lives until it is stopped or its "
			"parent ends.\n"
			"Cells, pods and further instances can be made inside it with --in.\n"
			"\n"
			"    nacre spawn --name a\n"
			"    nacre spawn --in a --name b\n"
			"    nacre tree",
		.options = options_spawn,
		.run = cmd_spawn,
	},
	{
		.name = "execute",
		.operands = "COMMAND [ARG…]",
		.summary = "run a program of this system, as a shell would, and wait for it",
		.help = "The program runs under the node's keeper with the node's own files. What "
			"it wrote\n"
			"comes out when it has ended (the first 4 MiB of each stream), and its "
			"exit status\n"
			"becomes that of nacre. COMMAND without any ARG is taken apart at its "
			"blanks; quotes\n"
			"and backslashes work as in a unit of systemd.\n"
			"\n"
			"    nacre execute uname -a\n"
			"    nacre execute --timeout 5 'sh -c \"sleep 1; echo done\"'",
		.options = options_execute,
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.n_verbatim = 1,
		.run = cmd_execute,
	},
	{
		.name = "exec",
		.operands = "TARGET COMMAND…",
		.summary = "run a program in a running container",
		.help = "Its output comes out as it is written, and its exit status becomes that "
			"of nacre.\n"
			"Ending nacre kills the program. SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 "
			"and SIGUSR2\n"
			"go to the program; SIGTERM ends nacre too, a second later at most, "
			"and the third\n"
			"SIGINT. What the program leaves running when it ends is not waited for.\n"
			"\n"
			"    nacre exec web ps\n"
			"    nacre exec -d web sh -c 'sleep 60; rm /lock'\n"
			"    nacre exec -it web sh\n"
			"    nacre exec -i web sh -c 'cat > /file' < file\n"
			"    nacre exec shop --container probe --user nobody id",
		.options = options_exec,
		.n_min = 2,
		.n_max = CLI_OPERANDS_ANY,
		.n_verbatim = 2,
		.run = cmd_exec,
	},
	{
		.name = "attach",
		.operands = "TARGET",
		.summary = "join the program of a running container",
		.help = "Its output comes out here from now on, what is typed goes to it where it "
			"was started\n"
			"with -i, and its exit status becomes that of nacre. Leaving does not "
			"touch "
			"it: with a\n"
			"terminal by ctrl-p ctrl-q, else by the third SIGINT; signals go to the "
			"program. Who does\n"
			"not read for ten seconds while it writes is put off.\n"
			"\n"
			"    nacre run -dit --name shell busybox sh\n"
			"    nacre attach shell",
		.options = options_attach,
		.n_min = 1,
		.n_max = 1,
		.run = cmd_attach,
	},
	{
		.name = "ps",
		.operands = "[PATH]",
		.summary = "list what runs",
		.help = "Pods, cells, executables and instances, in the order in which they were "
			"made; with\n"
			"PATH only those inside of that instance, at any depth. Machines in a "
			"cloud stand at the\n"
			"end of the table; for programs `nacre cloud ls` has them.\n"
			"\n"
			"Of several filters one of each key must fit, but all labels. --format "
			"takes templates of\n"
			"docker, too: of ID, Names, Image, Command, CreatedAt, Status, State, "
			"Ports, Labels and\n"
			"Networks; with \"table \" in front, columns with heads.\n"
			"\n"
			"    nacre ps -a\n"
			"    nacre ps --filter label=env=test --filter status=running\n"
			"    nacre ps -a --format 'table {{.Names}}\\t{{.Status}}'\n"
			"    nacre ps --kind pod --state failed --format '{name}: {reason}'\n"
			"    nacre ps -a -o json | jq '.[] | select(.exit_code != 0) | .name'",
		.options = options_ps,
		.n_max = 1,
		.run = cmd_ps,
	},
	{
		.name = "tree",
		.operands = "",
		.summary = "draw what runs as a tree of instances",
		.help = "Instances, pods, cells and their containers by path, with kind, state and "
			"process id,\n"
			"and the processes of each container as the node sees them.\n"
			"\n"
			"    nacre tree --short\n"
			"    nacre tree --watch",
		.options = options_tree,
		.run = cmd_tree,
	},
	{
		.name = "top",
		.operands = "[TARGET…]",
		.summary = "watch who uses the CPU and the memory",
		.help = "Workloads by what they use of one CPU just now, drawn again every 2 s "
			"until "
			"Ctrl-C.\n"
			"Where standard output is no terminal it looks twice, one second apart, "
			"and "
			"ends.\n"
			"\"-\" is what the node does not count: cgroup v2 has no such controller "
			"there.",
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_top,
	},
	{
		.name = "stats",
		.operands = "[TARGET…]",
		.summary = "tell what workloads have used so far",
		.help = "CPU time, memory, processes, and bytes read and written, from their "
			"cgroups. An\n"
			"instance or a pod counts with all that is in it. One with a machine of "
			"its own says\n"
			"so itself; a second line tells what that takes of this node: processor "
			"time, memory\n"
			"(RAM that is in use, and the overhead of its processes), and its limit "
			"here.\n"
			"\n"
			"    nacre stats web\n"
			"    nacre stats -o json | jq '.workloads[] | {name, cpu: .cpu.total_us}'",
		.options = options_stats,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_stats,
	},
	{
		.name = "inspect",
		.operands = "TARGET…",
		.summary = "tell all about workloads, as JSON",
		.help = "TARGET is an id or a path of names (\"web\", \"a/b/c\"), here and "
			"wherever a command\n"
			"takes a TARGET. Several give an array.\n"
			"\n"
			"With --format one line comes out: TEXT, in which {PATH} stands for a "
			"value "
			"of that JSON.\n"
			"A PATH is names parted by '.'; [0] behind a name is the first of an "
			"array, "
			"[*] all of it\n"
			"with commas between them. {{ and }} are braces, \\n, \\t and \\\\ what "
			"they "
			"are in C.\n"
			"\n"
			"A template of docker is about the document of --docker: what stands there "
			"under the\n"
			"names that docker and podman have.\n"
			"\n"
			"    nacre inspect --format '{containers[0].pid}' web\n"
			"    nacre inspect --format '{{.State.Status}} "
			"{{.NetworkSettings.IPAddress}}' web\n"
			"    nacre inspect --format '{name}\\t{containers[*].state}' shop",
		.options = options_inspect,
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_inspect,
	},
	{
		.name = "logs",
		.operands = "TARGET",
		.summary = "print what a container wrote",
		.help = "From its beginning, byte by byte as it was written: standard output to "
			"standard\n"
			"output, standard error to standard error. What is not kept any more, or "
			"was\n"
			"never written because the disk was full, is told on standard error.\n"
			"\n"
			"    nacre logs -f web\n"
			"    nacre logs --since 10m --tail 100 web\n"
			"    nacre logs shop --container probe",
		.options = options_logs,
		.n_min = 1,
		.n_max = 1,
		.run = cmd_logs,
	},
	{
		.name = "events",
		.operands = "[TARGET]",
		.summary = "print changes of state as they happen",
		.help = "From now on until nacre is interrupted, or the daemon ends; with TARGET "
			"only "
			"those of\n"
			"it and of what is below it. With -o json, one object a line, whose "
			"resume_token goes on\n"
			"behind it: the daemon keeps the last 4096 events.\n"
			"\n"
			"    nacre events --object workload a\n"
			"    nacre events -o json --since-token TOKEN",
		.options = options_events,
		.n_max = 1,
		.run = cmd_events,
	},

	{
		.name = "stop",
		.operands = "TARGET…",
		.summary = "ask workloads to end, kill what is left",
		.help = "Every container gets SIGTERM, or the stop signal of its image, and "
			"SIGKILL after the\n"
			"time, all targets at once. An instance is stopped with all that is in "
			"it, at every\n"
			"depth, in the same way. What has ended already is left as it is. One "
			"that is paused\n"
			"goes on first. With --container one container is stopped, and the others "
			"run on.",
		.options = options_stop,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_stop,
	},
	{
		.name = "restart",
		.operands = "TARGET…",
		.summary = "stop pods and cells, and start them again",
		.help = "As `nacre stop` and `nacre start`, all targets at once. What has ended is "
			"started.\n"
			"With --container one container is restarted, with its files, and the "
			"others run on.\n"
			"\n"
			"    nacre restart web\n"
			"    nacre restart shop --container db\n"
			"    nacre restart --time 1m --all",
		.options = options_stop,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_restart,
	},
	{
		.name = "kill",
		.operands = "TARGET…",
		.summary = "kill workloads, or send them another signal",
		.help = "SIGKILL goes to all processes of a workload, in all of its containers; "
			"nacre\n"
			"returns when it has ended. Another signal goes to the first process of "
			"a container.\n"
			"\n"
			"    nacre kill web\n"
			"    nacre kill --signal HUP --container proxy shop",
		.options = options_kill,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_kill,
	},
	{
		.name = "pause",
		.operands = "TARGET…",
		.summary = "stop the processes of workloads where they are",
		.help = "All processes of its containers get no time until `nacre unpause`; their "
			"memory and\n"
			"their connections stay. `nacre ps` shows it as paused. No program can be "
			"started in\n"
			"it meanwhile.",
		.options = options_pause,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_pause,
	},
	{
		.name = "unpause",
		.operands = "TARGET…",
		.summary = "let paused workloads go on",
		.help = "One that is not paused is left as it is.",
		.options = options_pause,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_unpause,
	},
	{
		.name = "rename",
		.operands = "TARGET NAME",
		.summary = "give a workload another name",
		.help = "Whatever it does goes on: id, processes, files, log and addresses stay, "
			"and "
			"pods of its\n"
			"networks find it by the new name. Its own hostname follows when it is "
			"started again.\n"
			"What is in an instance stays in there: NAME is a-z, 0-9 and '-', without "
			"a path.\n"
			"\n"
			"    nacre rename web web-old",
		.n_min = 2,
		.n_max = 2,
		.run = cmd_rename,
	},
	{
		.name = "update",
		.operands = "TARGET",
		.summary = "change the limits of what runs",
		.help = "Of its container, or with --whole of the pod, cell or instance itself: "
			"what no option\n"
			"names stays as it is, \"none\" takes a limit away. All change, or none.\n"
			"\n"
			"    nacre update web --memory 512m --cpus 1.5\n"
			"    nacre update shop --whole --pids-limit 1000",
		.options = options_update,
		.n_min = 1,
		.n_max = 1,
		.run = cmd_update,
	},
	{
		.name = "rm",
		.operands = "TARGET…",
		.summary = "remove workloads that have ended, with every trace",
		.help = "Record, log and files go.\n"
			"\n"
			"    nacre rm -f web\n"
			"    nacre rm --all",
		.options = options_rm,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_rm,
	},
};

const struct command_group command_group_work = { work_commands, ARRAY_SIZE(work_commands) };
