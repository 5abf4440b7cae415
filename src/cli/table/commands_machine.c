/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/command_groups.h"

#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/table/vm_words.h"

#define OPTION_ROOT                                                                                \
	{                                                                                          \
		"root", 0, "DIR",                                                                  \
			"the daemon's root directory, else as it says, or /var/lib/nacre"          \
	}

static const struct arg_option options_guest[] = {
	OPTION_ROOT,
	OPTION_END,
};

static const struct arg_option options_guest_build[] = {
	{ "name", 'n', "NAME", "its name, else of the kernel's release and this build" },
	{ "from", 0, "DIR", "take boot/vmlinuz-* and lib/modules below DIR, else below /" },
	{ "kernel", 0, "FILE", "this kernel instead: a bzImage or a vmlinux" },
	{ "modules", 0, "DIR", "its lib/modules/RELEASE; without, all is built in" },
	{ "gate", 0, "FILE", "nacre-gate, else the one beside this program; or: none" },
	{ "keep-default", 0, NULL, "leave the default as it is, where there is one" },
	{ "nested", 0, NULL, "with QEMU for guests that have guests of their own" },
	{ "cloud", 0, NULL, "with what a machine in a cloud needs, for an image there" },
	OPTION_ROOT,
	OPTION_END,
};

static const struct command machine_commands[] = {
	{
		.name = "vm run",
		.operands = "[IMAGE]",
		.summary = "run a machine with a system of its own",
		.help = vm_run_help,
		.options = vm_run_options,
		.n_max = 1,
		.run = cmd_vm_run,
	},
	{
		.name = "vm disks",
		.operands = "",
		.summary = "list what such machines have kept",
		.help = "With what each takes here, and the image that it lies over.",
		.run = cmd_vm_disks,
	},
	{
		.name = "vm rmdisk",
		.operands = "NAME…",
		.summary = "remove what such machines have kept",
		.help = "One that a machine has is not removed.",
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_vm_rmdisk,
	},
	{
		.name = "guest build",
		.operands = "",
		.summary = "make what virtual machines start from",
		.help = "A guest set is a kernel, and a first file system with this nacre, its "
			"gate and the\n"
			"modules that are needed. The kernel is Debian's linux-image-cloud-amd64 "
			"where that is\n"
			"installed (of several the newest), or any other that has virtio. Packages "
			"can also be\n"
			"unpacked:\n"
			"\n"
			"    apt-get download linux-image-6.1.0-56-cloud-amd64\n"
			"    dpkg-deb -x linux-image-*.deb kernel\n"
			"    nacre guest build --from kernel\n"
			"\n"
			"The small kernel of `make guest-kernel` starts three times as fast:\n"
			"\n"
			"    nacre guest build --kernel build/guest-kernel/vmlinux\n"
			"\n"
			"With --nested an instance with a kernel of its own can have others below "
			"it (nacre spawn\n"
			"--in). The set has this host's QEMU with its libraries then, as an EROFS "
			"of some 130 MB.\n"
			"\n"
			"With --cloud it also has the network drivers of clouds. Its kernel and "
			"initrd are what\n"
			"the image for --kind ec2, gce or vsphere boots (doc/cloud.md); give\n"
			"--keep-default with it.\n"
			"\n"
			"The daemon is not needed for it. The new set becomes the default. Sets "
			"that are there\n"
			"stay as they are, and what runs from them goes on. Where the same set is "
			"there already\n"
			"nothing happens. Prints its name.",
		.options = options_guest_build,
		.run = cmd_guest_build,
	},
	{
		.name = "guest ls",
		.operands = "",
		.summary = "list what virtual machines can start from",
		.help = "With the kernel's release, the nacre in it, its size, whether a virtual "
			"machine runs\n"
			"from it, and which is taken where none is named.",
		.options = options_guest,
		.run = cmd_guest_ls,
	},
	{
		.name = "guest default",
		.operands = "NAME",
		.summary = "choose the guest set that new virtual machines get",
		.help = "Those that run keep theirs.",
		.options = options_guest,
		.n_min = 1,
		.n_max = 1,
		.run = cmd_guest_default,
	},
	{
		.name = "guest rm",
		.operands = "NAME…",
		.summary = "remove guest sets",
		.help = "One that a virtual machine runs from is not removed.",
		.options = options_guest,
		.n_min = 1,
		.n_max = CLI_OPERANDS_ANY,
		.run = cmd_guest_rm,
	},
};

const struct command_group command_group_machine = { machine_commands,
						     ARRAY_SIZE(machine_commands) };
