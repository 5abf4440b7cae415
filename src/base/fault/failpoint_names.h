/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_FAILPOINT_NAMES_H
#define NACRE_BASE_FAILPOINT_NAMES_H

#include <stdbool.h>

/*
 * The one table of failpoints: name, who comes there ("any": the daemon, and keepers;
 * "upgrade": only where a daemon meets keepers of another build; "vm": the daemon, with instances
 * in machines; "ahead": likewise, where those are made ahead of need; "network": the daemon, with
 * pods on networks; "alone": the daemon, when a container is started alone; "sandbox": the daemon,
 * with containers that come and go; "rename": likewise, when one is renamed; "cni": nacre-cni;
 * "cloud": the daemon, with machines in a cloud; "far": likewise, with pods in them), whether it
 * has a place behind the step too, and what the process is about to do. Used by failpoint.c and
 * failpoint_list.c only; tests/daemon/test_killed.py makes its sweep from it.
 */
static const struct {
	const char *name;
	const char *who;
	bool both;
	const char *about;
} failpoint_names[] = {
	{ "store.write", "daemon", true, "write a change of state to a store" },
	{ "store.commit", "daemon", true, "commit several changes of state" },

	{ "spawn.sockets", "any", true, "make the sockets of a keeper" },
	{ "spawn.clone", "any", true, "clone the process of a container or keeper" },
	{ "spawn.prepared", "any", false, "let the cloned process begin its steps" },
	{ "spawn.step", "child", false, "take a step between clone and exec" },

	{ "import.start", "daemon", true, "start the helper that reads an image" },
	{ "import.blob", "daemon", true, "take a blob into the content store" },
	{ "import.sync", "daemon", true, "sync the layers of an image" },
	{ "import.layer", "daemon", true, "take an unpacked layer into the store" },
	{ "import.record", "daemon", true, "record the image" },
	{ "import.clean", "daemon", true, "take away what an import does not need any more" },
	{ "pull.start", "daemon", true, "start the helper that pulls an image" },
	{ "pull.plan", "daemon", true, "plan what is to be loaded of an image" },
	{ "pull.partial", "daemon", true, "open the file of a blob that is to be loaded" },
	{ "pull.blob", "daemon", true, "take a loaded blob into the content store" },
	{ "pull.clean", "daemon", true, "take away what a pull does not need any more" },
	{ "push.start", "daemon", true, "start the helper that pushes an image" },
	{ "push.end", "daemon", false, "tell that an image was pushed" },
	{ "copy.start", "daemon", true, "start the helper that copies an image" },
	{ "copy.file", "daemon", true, "make the file of a blob on its way to a registry" },
	{ "copy.end", "daemon", false, "tell that an image was copied" },
	{ "image.remove", "daemon", true, "drop the record of an image" },
	{ "image.change", "daemon", true, "record a name or a pin of an image" },
	{ "image.collect", "daemon", true, "take away what nobody needs" },
	{ "image.prune", "daemon", true, "prune an image" },
	{ "image.trash", "daemon", true, "move a layer or blob out of sight" },

	{ "network.record", "network", false, "record a network" },
	{ "cni.add", "cni", true, "let plugins put a pod on their network" },
	{ "cloud.record", "cloud", true, "record a machine that a cloud is to make" },
	{ "cloud.create", "cloud", true, "ask a cloud for a machine" },
	{ "cloud.made", "cloud", true, "record what a cloud calls a new machine" },
	{ "cloud.terminate", "cloud", true, "ask a cloud to end a machine" },
	{ "cloud.forget", "cloud", true, "drop the record of a machine in a cloud" },
	{ "far.run", "far", true, "have the machine of an instance made in a cloud" },
	{ "far.gate", "far", true, "start the gate of a machine in a cloud" },
	{ "far.end", "far", true, "end the machine of an instance in a cloud" },
	{ "network.guest", "network", true, "join a network to the machine of a pod" },
	{ "network.namespace", "network", true, "make the network namespace of a cell" },
	{ "network.metadata", "network", true, "make the sockets of a metadata service" },
	{ "network.plug", "network", true, "make the port of a pod" },
	{ "network.unplug", "network", true, "take the rules of a pod away" },
	{ "names.write", "network", false, "write names of pods into their files" },
	{ "connect.begin", "network", true, "record that a pod comes to a network" },
	{ "connect.record", "network", true, "record that a pod has come to a network" },
	{ "disconnect.begin", "network", true, "record that a pod leaves a network" },

	{ "instance.record", "daemon", true, "record a new instance" },
	{ "instance.create", "daemon", true, "make the directories and sockets of an instance" },
	{ "instance.spawned", "daemon", true, "record the keeper of an instance" },
	{ "instance.connect", "daemon", true, "connect to the keeper of an instance" },
	{ "instance.nested", "daemon", true, "ask a keeper for an instance below it" },
	{ "instance.ready", "daemon", true, "take an instance as ready" },
	{ "instance.stop", "daemon", true, "tell an instance to end" },
	{ "instance.ended", "daemon", true, "take notice that an instance has ended" },
	{ "instance.clean", "daemon", true, "remove the cgroup and directory of an instance" },
	{ "instance.forget", "daemon", true, "drop the record of an instance" },

	{ "workload.create", "daemon", true, "record a new workload" },
	{ "workload.created", "again", true, "record that the files of a workload are there" },
	{ "workload.again", "again", true, "record that a workload is started again" },
	{ "container.again", "alone", true, "make the files of a container that is started alone" },
	{ "workload.rename", "rename", true, "record that a workload is renamed" },
	{ "workload.log", "daemon", true, "make the log of a container" },
	{ "container.rootfs", "daemon", true, "make the root file system of a container" },
	{ "container.start", "daemon", true, "ask the keeper to start a container" },
	{ "container.started", "daemon", true, "record that a container runs" },
	{ "container.ended", "daemon", true, "record that a container has ended" },
	{ "workload.stop", "daemon", true, "stop the containers of a workload" },
	{ "workload.kill", "daemon", true, "kill the containers of a workload" },
	{ "workload.end", "daemon", true, "record that a workload has ended" },
	{ "workload.down", "daemon", true, "take a workload down in its keeper" },
	{ "workload.remove", "daemon", true, "take away what a workload left" },
	{ "workload.files", "daemon", true, "remove the files of a workload" },
	{ "workload.forget", "daemon", true, "drop the record of a workload" },
	{ "sandbox.create", "sandbox", true, "record a container of a sandbox" },
	{ "member.files", "sandbox", true, "make the files of a container of a sandbox" },
	{ "volume.record", "volume", true, "record a volume" },
	{ "volume.fill", "volume", true, "put what was copied into a volume" },
	{ "volume.drop", "volume", true, "drop the record of a volume" },
	{ "volume.files", "volume", true, "remove the files of a volume" },
	{ "rootfs.remove", "daemon", true, "remove the directories of a container" },

	{ "boot.instance", "daemon", true, "take up an instance of an earlier daemon" },
	{ "boot.workload", "daemon", true, "take up a workload of an earlier daemon" },
	{ "boot.resume", "daemon", true, "finish or undo what an earlier daemon had begun" },
	{ "boot.serve", "daemon", true, "serve" },

	{ "keeper.hello", "keeper", true, "answer the hello of the parent" },
	{ "keeper.start", "keeper", true, "start a container" },
	{ "keeper.signal", "keeper", true, "pass a signal on" },
	{ "keeper.remove", "keeper", true, "begin to remove a cell" },
	{ "keeper.spawn", "keeper", true, "make an instance below" },
	{ "keeper.spawned", "keeper", true, "take an instance below as ready" },
	{ "keeper.end", "keeper", true, "end an instance below" },
	{ "keeper.clean", "keeper", true, "remove the cgroup and directory of an instance below" },
	{ "keeper.shutdown", "keeper", true, "end everything" },
	{ "cell.make", "keeper", true, "make the cgroup of a cell" },
	{ "cell.shm", "keeper", true, "mount the shared memory of a cell" },
	{ "cell.warm_pool", "keeper", true, "make what the next cell needs ahead of it" },
	{ "cell.spare_container", "keeper", true,
	  "make a process for the next cell ahead of need" },
	{ "cell.remove", "keeper", true, "remove the cgroup of a cell" },
	{ "container.make", "keeper", true, "make the cgroup of a container" },
	{ "container.clone", "keeper", true, "clone the process of a container" },
	{ "container.runs", "keeper", true, "take a container as running" },
	{ "container.exit", "keeper", true, "take notice of the end of a container" },
	{ "container.clean", "keeper", true, "remove the cgroup of a container" },
	{ "exec.start", "keeper", true, "start a program in a container" },
	{ "exec.exit", "keeper", true, "take notice of the end of a program in a container" },

	{ "vm.place", "vm", true, "make the directory and the group of a machine" },
	{ "vm.network", "vm", true, "make the network of a machine, with its TAP device" },
	{ "vm.gate", "vm", true, "start the gate of a machine" },
	{ "vm.tell", "vm", true, "tell a guest who it is" },
	{ "vm.volumes", "vm", true, "start what serves the volumes of a machine" },
	{ "vm.group", "vm", true, "make the group of a machine's monitor" },
	{ "vm.start", "vm", true, "start a machine's monitor in its jail" },
	{ "vm.up", "vm", true, "take a monitor's word that its machine runs" },
	{ "vm.booted", "vm", true, "record what a guest has said of itself" },
	{ "vm.disk", "vm", true, "put a disk into a machine" },
	{ "vm.disk_out", "vm", true, "take a disk out of a machine" },
	{ "image.disk", "vm", true, "make the disk of an image" },
	{ "vm.end", "vm", true, "take notice that a machine's monitor has ended" },
	{ "vm.over", "vm", true, "tell that a machine has ended" },
	{ "vm.gate_end", "vm", true, "take notice that a machine's gate has ended" },
	{ "vm.adopt", "vm", true, "take up a machine of an earlier daemon" },
	{ "template.start", "ahead", true, "start the machine that a template is made of" },
	{ "template.save", "ahead", true, "save that machine" },
	{ "template.ready", "ahead", true, "let machines go on from a template" },
	{ "pool.make", "ahead", true, "begin with a machine of the pool" },
	{ "pool.wait", "ahead", true, "let a machine of the pool wait" },
	{ "pool.take", "ahead", true, "take a machine out of the pool" },
	{ "pool.give", "ahead", true, "let a machine of the pool go on as an instance's" },

	{ "upgrade.protocol", "upgrade", false,
	  "say hello: an error makes it a protocol of nobody" },
	{ "upgrade.write", "upgrade", false, "write the state of a keeper for its next program" },
	{ "upgrade.exec", "upgrade", false, "execute the next program of a keeper" },
	{ "upgrade.resume", "upgrade", false, "go on as the next program of a keeper" },
};

#endif
