/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_FAILPOINT_NAMES_H
#define NACRE_BASE_FAILPOINT_NAMES_H

/*
 * The one table of failpoints: name, and what the process is about to do there. Used by failpoint.c
 * and failpoint_off.c only.
 */
static const struct {
	const char *name;
	const char *about;
} failpoint_names[] = {
	{ "store.write", "write a change of state to a store" },
	{ "spawn.clone", "clone the process of a container or keeper" },
	{ "spawn.prepared", "let the cloned process begin its steps" },
	{ "import.start", "start the helper that reads an image" },
	{ "import.blob", "take a blob into the content store" },
	{ "import.layer", "take an unpacked layer into the store" },
	{ "import.record", "record the image" },
	{ "instance.create", "make the directories and sockets of an instance" },
	{ "instance.spawned", "record the keeper of an instance" },
	{ "workload.create", "record a new workload" },
	{ "container.rootfs", "make the root file system of a container" },
	{ "container.start", "ask the keeper to start a container" },
	{ "container.started", "record that a container runs" },
	{ "workload.stop", "stop the containers of a workload" },
	{ "workload.remove", "take away what a workload left" },
};

#endif
