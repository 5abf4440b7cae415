/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/guest/guest_build.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "vm/guest/cpio.h"
#include "vm/guest/elf64.h"
#include "vm/guest/guest_tools.h"
#include "vm/guest/kmod.h"

#define BUILD_PROGRAM_MAX ((size_t)256 << 20)
#define BUILD_SHORT 4 /* digits of each build's id in a name */
#define BUILD_NESTED "-nested"
#define BUILD_CLOUD "-cloud"
#define BUILD_MIB (UINT64_C(1) << 20)
/* What a guest needs beside its kernel and, for a moment, twice its initramfs: its keeper, its
 * gate, the kernel's own. In steps of as much. */
#define BUILD_ROOM_MIB 48
#define BUILD_STEP_MIB 32

/* What is not tested in every boot anew, what no guest uses, and what is said on the console of a
 * boot that goes well (pid 1 turns it up behind that): half a second where the processor is
 * emulated. A name that a kernel does not have is passed over. */
#define BUILD_WORDS                                                                                \
	"quiet cryptomgr.notests initcall_blacklist=dquot_init,load_system_certificate_list,"      \
	"snapshot_device_init,crypto_kdf108_init,digsig_init,init_encrypted"

static const struct {
	const char *name;
	enum kmod_want want;
} build_modules[] = {
	{ "virtio_mmio", KMOD_MUST }, { "virtio_console", KMOD_MUST }, { "virtio_net", KMOD_MUST },
	{ "virtio_blk", KMOD_MUST },  { "overlay", KMOD_MUST },        { "erofs", KMOD_MUST },
	{ "button", KMOD_MAY },       { "evdev", KMOD_MAY },           { "virtiofs", KMOD_LATER },
	{ "bridge", KMOD_LATER },     { "veth", KMOD_LATER },          { "virtio_rng", KMOD_LATER },
	{ "tun", KMOD_LATER },
};

/* Of clouds: the network of EC2 (Nitro and Xen), of Compute Engine, of vSphere; and images as disks
 * in memory (isolate/disk/disk_loop.h). */
static const char *const build_modules_cloud[] = { "loop", "virtio_pci", "ena",   "xen_netfront",
						   "gve",  "vmxnet3",    "e1000e" };

struct building {
	const struct guest_build *b;
	struct guest_new dir;
	struct kernel_image kernel;
	struct kmod_list modules;
	struct buf gate; /* trimmed; empty where there is none */
	struct guest_desc desc;
	char name[GUEST_SET_NAME_MAX + 1];
};

static void build_tell(const struct guest_build *b, const char *text)
{
	if (b->tell)
		b->tell(b->userdata, text);
}

/* ---- what goes in ---- */

static int build_read(int fd, size_t max, const char *what, struct buf *ret, struct error *err)
{
	struct stat st;
	uint8_t *room;
	int r;

	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "look at %s", what);
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || (uint64_t)st.st_size > max)
		return error_refuse(err, ERROR_INVALID, "%s is no file of 1 byte to %zu MiB", what,
				    max >> 20);
	r = buf_reserve(ret, (size_t)st.st_size, &room);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r == 0)
		r = fd_read_full(fd, room, (size_t)st.st_size);
	if (r < 0)
		return error_set(err, r, "read %s", what);
	buf_added(ret, (size_t)st.st_size);
	return 0;
}

static int build_take_kernel(struct building *g, struct error *err)
{
	_cleanup_(buf_done) struct buf data = BUF_INIT;
	char text[256];
	const char *why = NULL;
	int r;

	r = build_read(g->b->kernel_fd, KERNEL_IMAGE_MAX, "the kernel", &data, err);
	if (r == 0)
		r = kernel_image_take(&g->kernel, &data, &why, err);
	if (r < 0 || !why)
		return r;
	(void)str_printf(text, sizeof(text),
			 "the kernel stays packed, and starts a little later: %s", why);
	build_tell(g->b, text);
	return 0;
}

static int build_take_modules(struct building *g, struct error *err)
{
	_cleanup_(kmod_tree_freep) struct kmod_tree *tree = NULL;
	char text[128];
	int r = kmod_tree_open(&tree, g->b->modules_fd, err);

	for (size_t i = 0; r == 0 && g->b->cloud && i < ARRAY_SIZE(build_modules_cloud); i++)
		r = kmod_list_add(&g->modules, tree, build_modules_cloud[i], KMOD_MAY, NULL, err);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(build_modules); i++) {
		bool missing = false;

		r = kmod_list_add(&g->modules, tree, build_modules[i].name, build_modules[i].want,
				  &missing, err);
		(void)str_printf(text, sizeof(text), "the kernel has no %s: its guests do without",
				 build_modules[i].name);
		if (r == 0 && missing)
			build_tell(g->b, text);
	}
	return r;
}

static int build_take_program(int fd, const char *what, struct buf *ret, struct error *err)
{
	int r = build_read(fd, BUILD_PROGRAM_MAX, what, ret, err);

	if (r < 0)
		return r;
	if (!elf_is_valid(buf_data(ret), ret->len) || elf_is_dynamic(buf_data(ret), ret->len))
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s is not static: a guest has no libraries for it", what);
	ret->len = elf_trim(ret->base + ret->head, ret->len);
	return 0;
}

/* Which kernel, nacre and gate it is: two sets of the same are the same. */
static int build_identify(struct building *g, struct error *err)
{
	struct guest_desc *d = &g->desc;
	int r = g->b->gate_fd < 0 ? 0
				  : build_take_program(g->b->gate_fd, "nacre-gate", &g->gate, err);

	(void)str_copy(d->release, sizeof(d->release), g->kernel.release);
	(void)str_copy(d->version, sizeof(d->version), NACRE_VERSION);
	(void)str_copy(d->build, sizeof(d->build), build_id()[0] ? build_id() : "-");
	elf_build_id(buf_data(&g->gate), g->gate.len, d->gate, sizeof(d->gate));
	if (!d->gate[0])
		(void)str_copy(d->gate, sizeof(d->gate), "-");
	return r;
}

/* ---- the initramfs ---- */

static int build_add_modules(const struct building *g, struct cpio *c, struct error *err)
{
	static const char *const marks[] = {
		[KMOD_MUST] = "", [KMOD_MAY] = "?", [KMOD_LATER] = "+"
	};
	_cleanup_(buf_done) struct buf list = BUF_INIT;
	char name[KMOD_NAME_MAX + sizeof("modules/.ko")];
	int r = cpio_add_dir(c, "modules", err);

	for (size_t i = 0; r == 0 && i < g->modules.n; i++) {
		const struct kmod *m = &g->modules.items[i];

		r = buf_addf(&list, "%s%s.ko\n", marks[m->want], m->name);
		if (r < 0)
			return error_set(err, r, "list the modules");
		(void)str_printf(name, sizeof(name), "modules/%s.ko", m->name);
		r = cpio_add_file(c, name, 0644, buf_data(&m->data), m->data.len, err);
	}
	return r < 0 ? r : cpio_add_file(c, "modules/list", 0644, buf_data(&list), list.len, err);
}

/* What the kernel opens for pid 1 before that has mounted anything, then the programs. */
static int build_fill(const struct building *g, struct cpio *c, struct error *err)
{
	static const char *const dirs[] = {
		"dev", "proc", "sys", "root", "libexec", "libexec/nacre"
	};
	_cleanup_(buf_done) struct buf nacre = BUF_INIT;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(dirs); i++)
		r = cpio_add_dir(c, dirs[i], err);
	if (r == 0)
		r = cpio_add_char_device(c, "dev/console", 0600, 5, 1, err);
	if (r == 0)
		r = build_take_program(g->b->nacre_fd, "nacre", &nacre, err);
	if (r == 0)
		r = cpio_add_file(c, "init", 0755, buf_data(&nacre), nacre.len, err);
	if (r == 0 && g->gate.len > 0)
		r = cpio_add_file(c, "libexec/nacre/nacre-gate", 0755, buf_data(&g->gate),
				  g->gate.len, err);
	if (r == 0 && g->modules.n > 0)
		r = build_add_modules(g, c, err);
	return r < 0 ? r : cpio_end(c, err);
}

static int build_sync(int fd, struct error *err)
{
	return sysio_fsync(fd) < 0 ? error_set(err, -errno, "write the guest set to the disk") : 0;
}

static int build_write_initrd(struct building *g, struct error *err)
{
	_cleanup_fd_ int fd = guest_new_file(&g->dir, "initrd", err);
	struct cpio c = CPIO_INIT(fd);
	int r;

	if (fd < 0)
		return fd;
	r = build_fill(g, &c, err);
	g->desc.initrd_bytes = c.size;
	return r < 0 ? r : build_sync(fd, err);
}

/* ---- the set ---- */

static int build_write_file(struct building *g, const char *name, const void *data, size_t len,
			    struct error *err)
{
	_cleanup_fd_ int fd = guest_new_file(&g->dir, name, err);
	int r;

	if (fd < 0)
		return fd;
	r = fd_write_full(fd, data, len);
	if (r < 0)
		return error_set(err, r, "write the file %s of a guest set", name);
	return build_sync(fd, err);
}

static void build_describe(struct building *g)
{
	struct guest_desc *d = &g->desc;
	uint64_t bytes = kernel_image_memory(&g->kernel) + 2 * d->initrd_bytes;
	uint64_t mib = bytes / BUILD_MIB + BUILD_ROOM_MIB;

	d->is_vmlinux = g->kernel.is_vmlinux;
	d->needs_acpi = !kernel_image_finds_mmio(&g->kernel);
	d->memory_mib = (unsigned)((mib + BUILD_STEP_MIB - 1) / BUILD_STEP_MIB * BUILD_STEP_MIB);
	d->kernel_bytes = g->kernel.data.len;
	(void)str_copy(d->words, sizeof(d->words), BUILD_WORDS);
}

static int build_tools(struct building *g, struct error *err)
{
	const struct guest_tools tools = {
		.dir_fd = g->dir.dir_fd,
		.name = g->name,
		.gate = buf_data(&g->gate),
		.gate_len = g->gate.len,
	};

	if (g->gate.len == 0)
		return error_refuse(err, ERROR_INVALID,
				    "guests that have guests need nacre-gate, which this set is to "
				    "do without");
	return guest_tools_make(&tools, err);
}

static int build_write(struct building *g, struct error *err)
{
	_cleanup_str_ char *text = NULL;
	int r;

	r = build_write_file(g, "kernel", buf_data(&g->kernel.data), g->kernel.data.len, err);
	if (r < 0)
		return r;
	r = build_write_initrd(g, err);
	if (r < 0)
		return r;
	build_describe(g);
	text = guest_desc_write(&g->desc);
	if (!text)
		return error_set(err, -ENOMEM, "describe the guest set");
	r = build_write_file(g, "set", text, strlen(text), err);
	if (r == 0 && g->b->nested)
		r = build_tools(g, err);
	return r < 0 ? r : guest_new_commit(&g->dir, g->name, err);
}

/* What is there by the name: 1 where it is what would be made, 0 where there is none. */
static int build_find(const struct building *g, struct guest_set_info *ret, struct error *err)
{
	struct guest_set_info old;

	if (guest_set_look(g->b->root_fd, g->name, &old) < 0)
		return 0;
	if (g->b->nested) {
		_cleanup_fd_ int fd = guest_set_open_tools(g->b->root_fd, g->name, NULL);

		if (fd < 0)
			return error_refuse(err, ERROR_EXISTS,
					    "there is a guest set %s already, whose guests have no "
					    "guests: remove it first, or choose another name",
					    g->name);
	}
	*ret = old;
	if (str_eq(old.desc.release, g->desc.release) && str_eq(old.desc.build, g->desc.build) &&
	    str_eq(old.desc.gate, g->desc.gate))
		return 1;
	return error_refuse(err, ERROR_EXISTS,
			    "there is a guest set %s already, of kernel %s and nacre %s (build "
			    "%.8s): remove it first, or choose another name",
			    g->name, old.desc.release, old.desc.version, old.desc.build);
}

static int build_choose_name(struct building *g, struct error *err)
{
	if (g->b->name && !guest_set_is_name(g->b->name))
		return error_refuse(err, ERROR_INVALID, "\"%s\" is no name of a guest set",
				    g->b->name);
	if (g->b->name)
		return str_copy(g->name, sizeof(g->name), g->b->name);
	/* The release is cut rather than the builds. */
	(void)str_printf(g->name, sizeof(g->name), "%.*s-%.*s%.*s%s%s",
			 GUEST_SET_NAME_MAX - 2 * BUILD_SHORT - 1 -
				 (int)(g->b->nested ? strlen(BUILD_NESTED) : 0) -
				 (int)(g->b->cloud ? strlen(BUILD_CLOUD) : 0),
			 g->desc.release, BUILD_SHORT, g->desc.build, BUILD_SHORT, g->desc.gate,
			 g->b->nested ? BUILD_NESTED : "", g->b->cloud ? BUILD_CLOUD : "");
	if (!guest_set_is_name(g->name))
		return error_refuse(err, ERROR_INVALID,
				    "the kernel's release \"%s\" makes no name: give one",
				    g->kernel.release);
	return 0;
}

static int build_run(struct building *g, struct guest_set_info *ret, bool *ret_made,
		     struct error *err)
{
	int r = build_take_kernel(g, err);

	if (r == 0)
		r = build_identify(g, err);
	if (r == 0)
		r = build_choose_name(g, err);
	if (r < 0)
		return r;
	r = build_find(g, ret, err);
	*ret_made = r == 0;
	if (r != 0)
		return r < 0 ? r : 0;
	r = build_take_modules(g, err);
	if (r == 0)
		r = guest_new_begin(&g->dir, g->b->root_fd, err);
	if (r == 0)
		r = build_write(g, err);
	if (r < 0)
		return r;
	*ret = (struct guest_set_info){ .desc = g->desc };
	return str_copy(ret->name, sizeof(ret->name), g->name);
}

/* Whether there is one that can be used. */
static bool build_has_default(int root_fd)
{
	struct guest_set s = GUEST_SET_INIT;
	int r = guest_set_open(&s, root_fd, NULL, NULL);

	guest_set_done(&s);
	return r == 0;
}

int guest_build(const struct guest_build *b, struct guest_set_info *ret, bool *ret_made,
		struct error *err)
{
	struct building g = {
		.b = b,
		.dir = GUEST_NEW_INIT,
		.kernel = KERNEL_IMAGE_INIT,
		.modules = KMOD_LIST_INIT,
		.gate = BUF_INIT,
	};
	struct guest_set_info info = { .name = "" };
	int r = build_run(&g, &info, ret_made, err);

	guest_new_done(&g.dir);
	kernel_image_done(&g.kernel);
	kmod_list_done(&g.modules);
	buf_done(&g.gate);
	if (r == 0 && !(b->keep_default && build_has_default(b->root_fd))) {
		r = guest_set_make_default(b->root_fd, info.name, err);
		info.is_default = r == 0;
	}
	if (r < 0)
		return r;
	*ret = info;
	return 0;
}
