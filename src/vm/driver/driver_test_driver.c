/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A machine without the daemon, for tests, by a process that has given up what the daemon gives up
 * (isolate/seccomp/confine.h):
 *
 *   vm-driver DIR CGROUP start KERNEL INITRD UID SLOTS WRITABLE [TAP [MEMORY [STATE [held]]]]
 *                                                                      makes one
 *   vm-driver DIR CGROUP adopt                                         takes one up
 *   vm-driver DIR CGROUP try KERNEL INITRD UID MARKER kvm|tcg          vm/probe/probe.h: "VERDICT
 * TEXT"
 *
 *   vm-driver DIR CGROUP boot UID bios|uefi VARS raw|qcow2 BASE OVERLAY   one that boots by
 *                                      firmware from a qcow2 that lies over a base; VARS: "-"
 *   vm-driver seed PATH NAME TEXT...   writes a disk with these files (vm/disk/seed.h)
 *   vm-driver qcow2 PATH BYTES BACKING FORMAT   writes an empty one (vm/disk/qcow2.h)
 *
 * DIR is its directory, CGROUP that of its leaf. TAP: in a TAP device of that name, made here, "-"
 * for none. MEMORY: the file of its memory; STATE: what it goes on from. What comes on stdin is
 * done, a line each: "put SLOT raw|qcow2 ro|rw PATH", "remove SLOT", "stop", "save PATH", "resume",
 * "kill", "type TEXT" (to the console); the end of stdin ends this program, and not the machine.
 * What happens is told on stdout, a line each: "pid N", "up STATE", "panic", "state STATE", "done
 * SLOT", "failed SLOT TEXT", "refused TEXT", "| CONSOLE", "end CAUSE TEXT", "words LINE".
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "isolate/seccomp/confine.h"
#include "loop/loop.h"
#include "vm/disk/qcow2.h"
#include "vm/disk/seed.h"
#include "vm/probe/probe.h"
#include "vm/qemu/qemu_driver.h"

static struct loop *driver_loop;
static struct vm *driver_vm;
static int driver_console_fd = -1;
#define DRIVER_SAVED 99 /* instead of a slot */

static struct loop_fd driver_console;
static struct loop_fd driver_input;

static _noreturn_ void driver_fail(const struct error *err)
{
	printf("refused %s\n", error_text(err));
	(void)fflush(stdout);
	_exit(1);
}

static void driver_on_up(struct vm *vm, void *owner)
{
	printf("up %d\n", (int)vm->driver->state(vm));
}

static void driver_on_panic(struct vm *vm, void *owner)
{
	printf("panic\n");
}

static void driver_on_state(struct vm *vm, enum vm_state state, void *owner)
{
	printf("state %d\n", (int)state);
}

static void driver_on_end(struct vm *vm, const struct vm_end *end, void *owner)
{
	char words[VM_LAST_WORDS_MAX + 1];
	char *at = words, *line;

	(void)str_copy(words, sizeof(words), end->words);
	for (line = strsep(&at, "\n"); line && *line; line = strsep(&at, "\n"))
		printf("words %s\n", line);
	printf("end %d %s\n", (int)end->cause, end->text);
	driver_vm = vm->driver->free(vm);
	loop_quit(driver_loop, 0);
}

static const struct vm_events driver_events = {
	.on_up = driver_on_up,
	.on_panic = driver_on_panic,
	.on_state = driver_on_state,
	.on_end = driver_on_end,
};

static void driver_on_done(struct vm *vm, const struct error *err, void *data)
{
	unsigned slot = (unsigned)(uintptr_t)data;

	if (err)
		printf("failed %u %s\n", slot, error_text(err));
	else
		printf("done %u\n", slot);
}

static int driver_put(char *line, struct error *err)
{
	const char *number = strsep(&line, " ");
	const char *format = strsep(&line, " ");
	const char *mode = strsep(&line, " ");
	const char *path = line;
	_cleanup_fd_ int fd = -1;
	struct vm_disk disk = { .fd = -1 };
	uint32_t slot = 0;

	if (!path || parse_u32(number, &slot) < 0)
		return error_refuse(err, ERROR_INVALID, "put: slot, format, mode and path");
	disk.writable = str_eq(mode, "rw");
	disk.format = str_eq(format, "qcow2") ? VM_DISK_QCOW2 : VM_DISK_RAW;
	fd = sysio_openat(AT_FDCWD, path, (disk.writable ? O_RDWR : O_RDONLY) | O_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, -errno, "open %s", path);
	disk.fd = fd;
	return driver_vm->driver->put_disk(driver_vm, slot, &disk, driver_on_done,
					   (void *)(uintptr_t)slot, err);
}

static int driver_save(const char *path, struct error *err)
{
	_cleanup_fd_ int fd = sysio_openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);

	if (fd < 0)
		return error_set(err, -errno, "open %s", path);
	return driver_vm->driver->snapshot(driver_vm, fd, driver_on_done,
					   (void *)(uintptr_t)DRIVER_SAVED, err);
}

static int driver_do(char *line, struct error *err)
{
	const struct vm_driver *d = driver_vm->driver;
	char *rest = line;
	const char *word = strsep(&rest, " ");

	if (str_eq(word, "put") && rest)
		return driver_put(rest, err);
	if (str_eq(word, "remove") && rest)
		return d->remove_disk(driver_vm, (unsigned)strtoul(rest, NULL, 10), driver_on_done,
				      (void *)(uintptr_t)strtoul(rest, NULL, 10), err);
	if (str_eq(word, "save") && rest)
		return driver_save(rest, err);
	if (str_eq(word, "resume"))
		return d->resume(driver_vm, err);
	if (str_eq(word, "stop"))
		return d->stop(driver_vm, err);
	if (str_eq(word, "kill")) {
		d->kill(driver_vm);
		return 0;
	}
	if (str_eq(word, "type") && rest)
		return dprintf(driver_console_fd, "%s\n", rest) < 0 ? -errno : 0;
	return error_refuse(err, ERROR_INVALID, "what is \"%s\"", word);
}

static void driver_on_input(struct loop_fd *source, unsigned events)
{
	static char data[4096];
	static size_t have;
	ssize_t n = read(STDIN_FILENO, data + have, sizeof(data) - 1 - have);
	char *line = data, *end;

	if (n <= 0) {
		loop_quit(driver_loop, 0);
		return;
	}
	have += (size_t)n;
	data[have] = '\0';
	for (end = strchr(line, '\n'); end && driver_vm; end = strchr(line, '\n')) {
		struct error err = ERROR_INIT;

		*end = '\0';
		if (driver_do(line, &err) < 0)
			printf("refused %s\n", error_text(&err));
		line = end + 1;
	}
	have -= (size_t)(line - data);
	memmove(data, line, have);
}

static void driver_on_console(struct loop_fd *source, unsigned events)
{
	static char data[4096];
	static size_t have;
	ssize_t n = read(driver_console_fd, data + have, sizeof(data) - 1 - have);
	char *line = data, *end;

	if (n <= 0) {
		loop_fd_done(&driver_console);
		return;
	}
	have += (size_t)n;
	data[have] = '\0';
	for (end = strchr(line, '\n'); end; end = strchr(line, '\n')) {
		*end = '\0';
		printf("| %s\n", line);
		line = end + 1;
	}
	have -= (size_t)(line - data);
	memmove(data, line, have);
	if (have == sizeof(data) - 1)
		have = 0;
}

static int driver_open(const char *path, int flags)
{
	struct error err = ERROR_INIT;
	int fd = sysio_openat(AT_FDCWD, path, flags | O_CLOEXEC, 0);

	if (fd < 0) {
		(void)error_set(&err, -errno, "open %s", path);
		driver_fail(&err);
	}
	return fd;
}

static int driver_tap(const char *name)
{
	struct ifreq request = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	int fd = driver_open("/dev/net/tun", O_RDWR);
	struct error err = ERROR_INIT;

	(void)str_copy(request.ifr_name, sizeof(request.ifr_name), name);
	if (ioctl(fd, TUNSETIFF, &request) < 0) {
		(void)error_set(&err, -errno, "make %s", name);
		driver_fail(&err);
	}
	return fd;
}

static void driver_run(struct vm_spec *spec, int dir_fd, int cgroup_fd, const char *uid)
{
	struct error err = ERROR_INIT;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		abort();
	spec->title = "test/a,b";
	spec->dir_fd = dir_fd;
	spec->cgroup_fd = cgroup_fd;
	spec->uid = (uid_t)strtoul(uid, NULL, 10);
	spec->gid = spec->uid;
	spec->console_fd = pair[1];
	if (vm_qemu.start(&driver_vm, driver_loop, spec, &driver_events, NULL, &err) < 0)
		driver_fail(&err);
	(void)fd_close(pair[1]);
	driver_console_fd = pair[0];
	loop_fd_init(&driver_console, driver_loop, pair[0], LOOP_READ, driver_on_console);
}

static void driver_start(int dir_fd, int cgroup_fd, char **argv)
{
	static const char *const words[] = { "quiet", "audit=0", "cryptomgr.notests", NULL };
	struct vm_nic nic = { .tap_fd = -1, .mac = { 2, 0x6e, 0x61, 0x63, 0x72, 2 } };
	struct vm_spec spec;

	vm_spec_init(&spec);
	spec.memory_mib = 160;
	spec.words = words;
	spec.kernel_fd = driver_open(argv[0], O_RDONLY);
	spec.initrd_fd = driver_open(argv[1], O_RDONLY);
	spec.n_slots = (unsigned)strtoul(argv[3], NULL, 10);
	spec.writable_slots = (uint32_t)strtoul(argv[4], NULL, 0);
	if (argv[5] && argv[6]) {
		spec.memory_fd = driver_open(argv[6], O_RDWR);
		spec.state_fd = argv[7] ? driver_open(argv[7], O_RDONLY) : -1;
		spec.held = argv[7] && argv[8];
	}
	if (argv[5] && !str_eq(argv[5], "-")) {
		nic.tap_fd = driver_tap(argv[5]);
		spec.nics = &nic;
		spec.n_nics = 1;
	}
	driver_run(&spec, dir_fd, cgroup_fd, argv[2]);
	(void)fd_close(spec.kernel_fd);
	(void)fd_close(spec.initrd_fd);
	(void)fd_close(spec.memory_fd);
	(void)fd_close(spec.state_fd);
	(void)fd_close(nic.tap_fd);
}

static void driver_boot(int dir_fd, int cgroup_fd, char **argv)
{
	struct vm_disk base = { .fd = driver_open(argv[4], O_RDONLY) };
	const struct vm_disk disk = { .fd = driver_open(argv[5], O_RDWR),
				      .format = VM_DISK_QCOW2,
				      .writable = true,
				      .base = &base };
	struct vm_spec spec;

	vm_spec_init(&spec);
	base.format = str_eq(argv[3], "qcow2") ? VM_DISK_QCOW2 : VM_DISK_RAW;
	spec.memory_mib = 128;
	spec.reboots = true;
	spec.firmware = str_eq(argv[1], "uefi") ? VM_FIRMWARE_UEFI : VM_FIRMWARE_BIOS;
	spec.vars_fd = str_eq(argv[2], "-") ? -1 : driver_open(argv[2], O_RDWR);
	spec.disks = &disk;
	spec.n_disks = 1;
	driver_run(&spec, dir_fd, cgroup_fd, argv[0]);
	(void)fd_close(base.fd);
	(void)fd_close(disk.fd);
	(void)fd_close(spec.vars_fd);
}

static void driver_on_tried(struct probe *p, const struct probe_record *record, void *owner)
{
	struct probe_record known;
	struct error err = ERROR_INIT;

	printf("%d %s\n", (int)record->verdict, record->text);
	if (probe_write(record, *(int *)owner, "trial", &err) < 0)
		driver_fail(&err);
	probe_read(&known, *(int *)owner, "trial");
	printf("%d %s\n", (int)known.verdict, known.text);
	loop_quit(driver_loop, 0);
}

static int driver_try(int dir_fd, int cgroup_fd, char **argv)
{
	struct probe_trial trial = { .driver = &vm_qemu, .marker = argv[3] };
	struct error err = ERROR_INIT;
	struct probe *p = NULL;
	struct vm_spec spec;
	int r;

	vm_spec_init(&spec);
	spec.memory_mib = 160;
	spec.dir_fd = dir_fd;
	spec.cgroup_fd = cgroup_fd;
	spec.kernel_fd = driver_open(argv[0], O_RDONLY);
	spec.initrd_fd = driver_open(argv[1], O_RDONLY);
	spec.uid = (uid_t)strtoul(argv[2], NULL, 10);
	spec.gid = spec.uid;
	spec.accel = str_eq(argv[4], "kvm") ? VM_ACCEL_HARDWARE : VM_ACCEL_EMULATED;
	trial.machine = &spec;
	if (probe_start(&p, driver_loop, &trial, driver_on_tried, &dir_fd, &err) < 0)
		driver_fail(&err);
	(void)fd_close(spec.kernel_fd);
	(void)fd_close(spec.initrd_fd);
	r = loop_run(driver_loop);
	(void)probe_free(p);
	(void)loop_free(driver_loop);
	return r;
}

static int driver_seed(const char *path, char **argv)
{
	struct seed_file files[SEED_FILES_MAX];
	_cleanup_fd_ int fd = driver_open(path, O_WRONLY);
	struct error err = ERROR_INIT;
	uint8_t *image;
	size_t n;
	int r;

	for (n = 0; n < SEED_FILES_MAX && argv[2 * n] && argv[2 * n + 1]; n++)
		files[n] =
			(struct seed_file){ argv[2 * n], argv[2 * n + 1], strlen(argv[2 * n + 1]) };
	if (seed_make(&image, files, n, &err) < 0)
		driver_fail(&err);
	r = fd_write_full(fd, image, SEED_BYTES);
	free(image);
	return r < 0;
}

static int driver_qcow2(char **argv)
{
	_cleanup_fd_ int fd = driver_open(argv[0], O_WRONLY);
	struct error err = ERROR_INIT;
	uint8_t *head;
	uint64_t file;
	size_t len;
	int r;

	if (qcow2_make(&head, &len, &file, strtoull(argv[1], NULL, 10), argv[2], argv[3], &err) < 0)
		driver_fail(&err);
	r = fd_write_full(fd, head, len);
	free(head);
	return r < 0 || ftruncate(fd, (off_t)file) < 0;
}

int main(int argc, char **argv)
{
	struct error err = ERROR_INIT;
	int dir_fd, cgroup_fd, r;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 2 && str_eq(argv[1], "seed"))
		return driver_seed(argv[2], argv + 3);
	if (argc == 6 && str_eq(argv[1], "qcow2"))
		return driver_qcow2(argv + 2);
	if (argc < 4 || (str_eq(argv[3], "start") && argc < 9) ||
	    (str_eq(argv[3], "boot") && argc != 10))
		return 2;
	if (loop_new(&driver_loop) < 0)
		return 1;
	if (confine_daemon(&err) < 0 || vm_qemu.check(&err) < 0)
		driver_fail(&err);
	dir_fd = driver_open(argv[1], O_RDONLY | O_DIRECTORY);
	cgroup_fd = driver_open(argv[2], O_RDONLY | O_DIRECTORY);
	if (str_eq(argv[3], "try"))
		return argc == 9 ? driver_try(dir_fd, cgroup_fd, argv + 4) : 2;
	if (str_eq(argv[3], "start"))
		driver_start(dir_fd, cgroup_fd, argv + 4);
	else if (str_eq(argv[3], "boot"))
		driver_boot(dir_fd, cgroup_fd, argv + 4);
	else if (vm_qemu.adopt(&driver_vm, driver_loop, dir_fd, cgroup_fd, &driver_events, NULL,
			       &err) < 0)
		driver_fail(&err);
	printf("pid %d\n", (int)driver_vm->driver->pid(driver_vm));
	loop_fd_init(&driver_input, driver_loop, STDIN_FILENO, LOOP_READ, driver_on_input);
	r = loop_run(driver_loop);
	loop_fd_done(&driver_console);
	loop_fd_done(&driver_input);
	if (driver_vm)
		driver_vm = driver_vm->driver->free(driver_vm);
	(void)loop_free(driver_loop);
	return r;
}
