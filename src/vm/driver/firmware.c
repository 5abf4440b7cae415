/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/driver/firmware.h"

#include <assert.h>
#include <errno.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/macros.h"
#include "vm/driver/jail.h"

#define FIRMWARE_PLACES_MAX 4

static const struct firmware_file {
	const char *what, *package;
	const char *places[FIRMWARE_PLACES_MAX];
} firmware_files[] = {
	[VM_FIRMWARE_NONE] = { "QEMU's microvm",
			       "qemu-system-data or seabios",
			       { "/usr/share/qemu/bios-microvm.bin",
				 "/usr/share/seabios/bios-microvm.bin",
				 "/usr/share/qemu/qboot.rom" } },
	[VM_FIRMWARE_BIOS] = { "a BIOS",
			       "seabios",
			       { "/usr/share/seabios/bios-256k.bin",
				 "/usr/share/qemu/bios-256k.bin" } },
	[VM_FIRMWARE_UEFI] = { "UEFI",
			       "ovmf",
			       { "/usr/share/OVMF/OVMF_CODE_4M.fd",
				 "/usr/share/OVMF/OVMF_CODE.fd" } },
};
static_assert(ARRAY_SIZE(firmware_files) == VM_FIRMWARE_COUNT, "files for each");

/* In the order of the code that it belongs to. */
static const struct firmware_file firmware_vars = {
	"UEFI", "ovmf", { "/usr/share/OVMF/OVMF_VARS_4M.fd", "/usr/share/OVMF/OVMF_VARS.fd" }
};

static int firmware_find(const struct firmware_file *f, struct error *err)
{
	_cleanup_fd_ int host_fd = jail_open_host(err);

	if (host_fd < 0)
		return host_fd;
	for (size_t i = 0; i < FIRMWARE_PLACES_MAX && f->places[i]; i++) {
		int fd = rootfd_open_regular(host_fd, f->places[i]);

		if (fd >= 0)
			return fd;
		if (fd != -ENOENT)
			return error_set(err, fd, "open %s", f->places[i]);
	}
	return error_refuse(err, ERROR_PRECONDITION, "there is no firmware for %s (the package %s)",
			    f->what, f->package);
}

int firmware_open(enum vm_firmware firmware, struct error *err)
{
	return firmware_find(&firmware_files[firmware], err);
}

int firmware_open_vars(struct error *err)
{
	return firmware_find(&firmware_vars, err);
}

int firmware_check(enum vm_firmware firmware, struct error *err)
{
	int fd = firmware_open(firmware, err);

	(void)fd_close(fd);
	if (fd < 0 || firmware != VM_FIRMWARE_UEFI)
		return MIN(fd, 0);
	fd = firmware_open_vars(err);
	(void)fd_close(fd);
	return MIN(fd, 0);
}
