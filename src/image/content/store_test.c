/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/memory/inventory.h"
#include "base/text/str.h"
#include "image/content/image_inventory.h"
#include "image/content/model.h"
#include "image/content/store_bed_test.h"
#include "image/image.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "loop/wait_test.h"
#include "scratch.h"
#include "store/root.h"
#include "unit.h"

static bool say_finding(void *userdata, const struct inventory_finding *f)
{
	unsigned *n = userdata;

	printf("# %s %s: %s\n", f->kind, f->name, f->what);
	++*n;
	return true;
}

/* What is named in memory, in the database and on the disk, is the same. */
static void check_inventory(struct stage *s, unsigned n_findings)
{
	static const char *const dirs[][2] = { { "layer", "layers/1" }, { "layer", "layers/2" } };
	struct error err = ERROR_INIT;
	struct inventory t;
	unsigned n = 0;

	inventory_init(&t);
	CHECK_INT(image_store_inventory(s->images, &t, &err), 1);
	CHECK(!t.incomplete);
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (is_there(s, dirs[i][1]))
			inventory_seen(&t, dirs[i][0], strchr(dirs[i][1], '/') + 1);
	for (char c = '0'; c <= 'f'; c = (char)(c == '9' ? 'a' : c + 1)) {
		char path[128], id[72];

		digest(id, c);
		(void)str_printf(path, sizeof(path), "blobs/sha256/%s", id + strlen("sha256:"));
		if (is_there(s, path))
			inventory_seen(&t, "blob", id + strlen("sha256:"));
	}
	inventory_each(&t, say_finding, &n);
	inventory_done(&t);
	CHECK_INT(n, n_findings);
}

static void finds(void)
{
	static const struct {
		const char *reference;
		char first; /* digit of its id; 0: none */
		enum error_kind kind;
	} table[] = {
		{ "busybox", 'a', 0 },
		{ "docker.io/library/busybox:latest", 'a', 0 },
		{ "x/tools:1", 'a', 0 },
		{ "x/tools:2", 0, ERROR_NOT_FOUND },
		{ "sha256:a" HEX_63, 'a', 0 },
		{ "sha256:b" HEX_63, 'a', 0 },
		{ "sha256:d" HEX_63, 'c', 0 },
		{ "sha256:e" HEX_63, 0, ERROR_NOT_FOUND },
		{ "busybox@sha256:b" HEX_63, 'a', 0 },
		{ "busybox@sha256:e" HEX_63, 0, ERROR_NOT_FOUND },
		{ "a00000", 'a', 0 },
		{ "c" HEX_63, 'c', 0 },
		{ "a0000", 0, ERROR_NOT_FOUND },
		{ "c" HEX_63 "0", 0, ERROR_NOT_FOUND },
		{ "UPPER", 0, ERROR_INVALID },
		{ "", 0, ERROR_INVALID },
	};
	struct error err = ERROR_INIT;
	struct stage s;

	stage_init(&s);
	put(&s, 'a', 1, two_names);
	put(&s, 'c', 2, no_names);
	stage_again(&s);
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct image *image;

		err = (struct error)ERROR_INIT;
		image = image_store_find(s.images, table[i].reference, &err);
		if (table[i].first == 0) {
			CHECK(!image);
			CHECK_INT(err.kind, table[i].kind);
		} else {
			CHECK(image != NULL);
			CHECK_STR(err.text, "");
			CHECK_INT(image->id[strlen("sha256:")], table[i].first);
		}
		/* Whoever does not ask why gets the same answer. */
		CHECK(image_store_find(s.images, table[i].reference, NULL) == image);
	}
	check_inventory(&s, 0);
	stage_done(&s);
}

static void ambiguous(void)
{
	char near[72] = "sha256:a00000", name[] = "x/near:1";
	char *names[] = { name, NULL };
	struct root_image image = { .id = near, .digest = near, .names = names };
	struct error err = ERROR_INIT;
	struct stage s;

	for (size_t i = strlen(near); i < strlen("sha256:" HEX_63) + 1; i++)
		near[i] = '1';
	stage_init(&s);
	put(&s, 'a', 1, two_names);
	CHECK_INT(root_store_put_image(s.root, &image, NULL, 0, on_done, &s, &err), 0);
	wait_done(&s, 2);
	stage_again(&s);
	CHECK(!image_store_find(s.images, "a00000", &err));
	CHECK_INT(err.kind, ERROR_INVALID);
	CHECK_STR(err.text, "\"a00000\" is the beginning of more than one image id");
	CHECK(image_store_find(s.images, "a000001", &err) != NULL);
	/* It has no content: nothing of it lies on the disk. */
	CHECK_INT(image_store_remove(s.images, "a000001", on_done, &s, &err), 0);
	wait_done(&s, 3);
	CHECK_STR(s.err.text, "");
	CHECK(image_store_find(s.images, "a00000", NULL) != NULL);
	stage_done(&s);
}

static void wait_gone(struct stage *s, const char *name)
{
	LOOP_WAIT(s->loop, !is_there(s, name));
}

/* What no record names goes at the start, and a record without its layer goes too. */
static void opening_tidies(void)
{
	struct stage s;

	stage_init(&s);
	put(&s, 'a', 1, two_names);
	put(&s, 'c', 2, no_names);
	make(&s, "staging/half", true);
	make(&s, "staging/half/file", false);
	make(&s, "layers/7", true);
	make(&s, "layers/junk", true);
	make(&s, "blobs/sha256/e" HEX_63, false);
	make(&s, "blobs/sha256/x", false);
	CHECK_INT(unlinkat(s.fd, "layers/2", AT_REMOVEDIR), 0);
	stage_again(&s);
	image_rootfs_sweep(s.images);
	wait_gone(&s, "staging/half");
	CHECK(!is_there(&s, "layers/7") && !is_there(&s, "layers/junk"));
	CHECK(!is_there(&s, "blobs/sha256/e" HEX_63) && !is_there(&s, "blobs/sha256/x"));
	/* The blob of the image that lost its layer has no image any more. */
	CHECK(!is_there(&s, "blobs/sha256/c" HEX_63));
	CHECK(is_there(&s, "layers/1") && is_there(&s, "blobs/sha256/a" HEX_63));
	CHECK(image_store_find(s.images, "busybox", NULL) != NULL);
	CHECK(!image_store_find(s.images, "c00000", NULL));
	stage_again(&s);
	CHECK(!image_store_find(s.images, "c00000", NULL));
	check_inventory(&s, 0);
	stage_done(&s);
}

static void removes(void)
{
	struct error err = ERROR_INIT;
	struct image *image;
	struct stage s;

	stage_init(&s);
	put(&s, 'a', 1, two_names);
	stage_again(&s);
	image = image_store_find(s.images, "busybox", &err);
	CHECK(image != NULL);
	CHECK_INT(image_store_remove(s.images, "nowhere", on_done, &s, &err), err.code);
	CHECK_INT(err.kind, ERROR_NOT_FOUND);
	CHECK(image_store_remove(s.images, "nowhere", on_done, &s, NULL) < 0);
	/* A name of several may go while containers use the image, the image may not. */
	image->n_users = 2;
	CHECK_INT(image_store_remove(s.images, "x/tools:1", on_done, &s, &err), 0);
	CHECK(!image_store_find(s.images, "x/tools:1", NULL));
	wait_done(&s, 2);
	CHECK_STR(s.err.text, "");
	err = (struct error)ERROR_INIT;
	CHECK(image_store_remove(s.images, "busybox", on_done, &s, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_STR(err.text, "image \"busybox\" is in use by 2 containers");
	image->n_users = 1;
	CHECK(image_store_remove(s.images, "sha256:b" HEX_63, on_done, &s, &err) < 0);
	CHECK_STR(err.text, "image \"sha256:b" HEX_63 "\" is in use by 1 container");
	image->n_users = 0;
	check_inventory(&s, 0);
	CHECK_INT(image_store_remove(s.images, "busybox", on_done, &s, &err), 0);
	CHECK(!image_store_find(s.images, "a00000", NULL));
	wait_done(&s, 3);
	CHECK_STR(s.err.text, "");
	CHECK(!is_there(&s, "layers/1") && !is_there(&s, "blobs/sha256/a" HEX_63));
	CHECK(list_empty(image_store_list(s.images)));
	check_inventory(&s, 0);
	stage_again(&s);
	CHECK(list_empty(image_store_list(s.images)));
	stage_done(&s);
}

/*
 * No file may grow, as on a full disk. A name that cannot go stays. Of an image the content goes
 * first where that is what makes room, and the record with it or at the next start.
 */
static void removes_on_a_full_disk(void)
{
	struct error err = ERROR_INIT;
	struct stage s;

	stage_init(&s);
	put(&s, 'a', 1, two_names);
	stage_again(&s);
	disk_is_full(true);
	CHECK_INT(image_store_remove(s.images, "x/tools:1", on_done, &s, &err), 0);
	wait_done(&s, 2);
	CHECK(s.err.code < 0);
	CHECK(image_store_find(s.images, "x/tools:1", NULL) != NULL);
	CHECK_INT(image_store_remove(s.images, "a00000", on_done, &s, &err), 0);
	wait_done(&s, 3);
	disk_is_full(false);
	CHECK(s.err.code < 0);
	/* Whole or gone, and the same after a start; what is there can be removed now. */
	CHECK((image_store_find(s.images, "busybox", NULL) != NULL) == is_there(&s, "layers/1"));
	stage_again(&s);
	CHECK((image_store_find(s.images, "busybox", NULL) != NULL) == is_there(&s, "layers/1"));
	if (image_store_find(s.images, "busybox", NULL)) {
		CHECK_INT(image_store_remove(s.images, "a00000", on_done, &s, &err), 0);
		wait_done(&s, 4);
		CHECK_STR(s.err.text, "");
	}
	CHECK(!is_there(&s, "layers/1"));
	stage_done(&s);
}

/* As a pull does that ends just then. */
static void comes_back(struct stage *s)
{
	char *blobs[] = { NULL };
	int64_t layer = 1;
	const struct root_image i = { .id = "sha256:a" HEX_63,
				      .digest = "sha256:b" HEX_63,
				      .names = two_names,
				      .blobs = blobs,
				      .layers = &layer,
				      .n_layers = 1 };
	struct image_record *r = image_record_new(&i);

	CHECK(r != NULL);
	CHECK(layer_add(s->images, 1, 0, "sha256:b" HEX_63, 0) != NULL);
	CHECK_INT(image_record_hold(s->images, r), 0);
	list_add_tail(&s->images->images, &r->image.link);
	put(s, 'a', 1, two_names);
}

/* A disk of its own for the store, which nobody else sees; false where that may not be. */
static bool small_disk(const struct stage *s)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", s->path, "tmpfs", 0, "size=2m") == 0;
}

static void fill_disk(const struct stage *s)
{
	_cleanup_fd_ int fd = -1;

	(void)unlinkat(s->fd, "root.db-reserve", 0);
	make(s, "fill", false);
	fd = openat(s->fd, "fill", O_WRONLY | O_CLOEXEC);
	for (off_t at = 0; posix_fallocate(fd, at, 4096) == 0; at += 4096)
		;
}

/* Its content goes first where the disk is full, and then its record: but not that of one that is
 * there again. */
static void is_pulled_while_it_is_removed(void)
{
	struct error err = ERROR_INIT;
	struct stage s;

	stage_init(&s);
	stage_close(&s);
	if (small_disk(&s)) {
		(void)close(s.fd);
		s.fd = open(s.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		stage_open(&s);
		put(&s, 'a', 1, two_names);
		stage_again(&s);
		fill_disk(&s);
		CHECK_INT(image_store_remove(s.images, "a00000", on_done, &s, &err), 0);
		wait_gone(&s, "layers/1");
		CHECK_INT(unlinkat(s.fd, "fill", 0), 0);
		comes_back(&s);
		wait_done(&s, 3);
		CHECK_STR(s.err.text, "");
		stage_again(&s);
		CHECK(image_store_find(s.images, "busybox", NULL) != NULL);
		check_inventory(&s, 0);
		stage_close(&s);
		CHECK_INT(umount2(s.path, MNT_DETACH), 0);
	}
	s.fd = fd_close(s.fd);
	CHECK_INT(scratch_remove(s.path), 0);
}

/* Their records cannot be dropped there, and what else there is opens all the same. */
static void lost_images_on_a_full_disk(void)
{
	struct stage s;

	stage_init(&s);
	put(&s, 'a', 1, two_names);
	for (int64_t i = 2; i <= 9; i++) {
		char name[24];

		put(&s, (char)('0' + i), i, no_names);
		(void)str_printf(name, sizeof(name), "layers/%" PRId64, i);
		CHECK_INT(unlinkat(s.fd, name, AT_REMOVEDIR), 0);
	}
	s.full = true;
	stage_again(&s);
	image_rootfs_sweep(s.images);
	CHECK(image_store_find(s.images, "busybox", NULL) != NULL);
	CHECK(!image_store_find(s.images, "sha256:2" HEX_63, NULL));
	disk_is_full(false);
	s.full = false;
	stage_again(&s);
	image_rootfs_sweep(s.images);
	stage_again(&s);
	image_rootfs_sweep(s.images);
	check_inventory(&s, 0);
	stage_done(&s);
}

static void cannot_open(void)
{
	struct image_store_config config = { .fetch_path = "/nowhere",
					     .transfer_path = "/nowhere" };
	static const char *const dirs[] = { "blobs", "blobs/sha256", "layers", "containers",
					    "staging" };
	struct image_store *images = NULL;
	struct stage s;

	stage_init(&s);
	config = (struct image_store_config){ .loop = s.loop,
					      .pool = s.pool,
					      .store = s.root,
					      .root_fd = s.fd,
					      .fetch_path = "/nowhere",
					      .transfer_path = "/nowhere" };
	s.images = image_store_free(s.images);
	for (size_t i = ARRAY_SIZE(dirs); i > 0; i--) {
		const char *name = strrchr(dirs[i - 1], '/');
		struct error err = ERROR_INIT;
		char text[128];

		(void)unlinkat(s.fd, "layers/0", AT_REMOVEDIR);
		CHECK_INT(unlinkat(s.fd, dirs[i - 1], AT_REMOVEDIR), 0);
		make(&s, dirs[i - 1], false);
		CHECK_INT(image_store_new(&images, &config, &err), -ENOTDIR);
		CHECK(!images);
		(void)str_printf(text, sizeof(text),
				 "open the store of images: open the directory %s: Not a directory",
				 name ? name + 1 : dirs[i - 1]);
		CHECK_STR(error_text(&err), text);
		CHECK_INT(unlinkat(s.fd, dirs[i - 1], 0), 0);
		if (name)
			continue;
		make(&s, dirs[i - 1], true);
		if (str_eq(dirs[i - 1], "layers"))
			make(&s, "layers/0", true);
	}
	stage_done(&s);
}

static void roots_without_a_mount(void)
{
	static const char *const bad[] = { "", ".", "..", "a/b", "a\nb", HEX_63 "0" };
	struct error err = ERROR_INIT;
	struct image *image;
	struct stage s;

	stage_init(&s);
	put(&s, 'a', 1, two_names);
	stage_again(&s);
	image = image_store_find(s.images, "busybox", NULL);
	CHECK(image != NULL);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		err = (struct error)ERROR_INIT;
		CHECK(image_rootfs_make(s.images, image, bad[i], NULL, NULL, &err) < 0);
		CHECK_INT(err.kind, ERROR_INVALID);
		/* Nothing to adopt or remove either. */
		image_rootfs_adopt(s.images, image, bad[i]);
		image_rootfs_remove(s.images, image, bad[i]);
		CHECK_INT(image->n_users, 0);
	}
	/* One of an earlier life: held, in nobody's way, and not made twice. */
	make(&s, "containers/old", true);
	image_rootfs_adopt(s.images, image, "old");
	CHECK_INT(image->n_users, 1);
	CHECK(image_rootfs_make(s.images, image, "old", NULL, NULL, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXISTS);
	/* The layer has gone: the sentence says so, and no directory stays. */
	CHECK_INT(unlinkat(s.fd, "layers/1", AT_REMOVEDIR), 0);
	err = (struct error)ERROR_INIT;
	CHECK_INT(image_rootfs_make(s.images, image, "new", NULL, NULL, &err), -ENOENT);
	CHECK_STR(error_text(&err),
		  "root file system of container new: look at layer 1: No such file or directory");
	CHECK_INT(image->n_users, 1);
	wait_gone(&s, "containers/new");
	make(&s, "containers/stray", true);
	make(&s, "containers/.hidden", true);
	image_rootfs_sweep(s.images);
	wait_gone(&s, "containers/stray");
	CHECK(!is_there(&s, "containers/.hidden"));
	CHECK(is_there(&s, "containers/old"));
	image_rootfs_remove(s.images, image, "old");
	image_rootfs_remove(s.images, image, "old");
	CHECK_INT(image->n_users, 0);
	wait_gone(&s, "containers/old");
	stage_done(&s);
}

/* A name and a pin hold at once, and after a start; a pinned image loses names, but for the last.
 */
static void names_and_pins(void)
{
	struct error err = ERROR_INIT;
	struct stage s;

	stage_init(&s);
	put(&s, 'a', 1, two_names);
	put(&s, 'c', 2, no_names);
	stage_again(&s);
	CHECK_INT(image_store_tag(s.images, "c00000", "x/tools:1", on_done, &s, &err), 0);
	CHECK(image_store_find(s.images, "x/tools:1", NULL) ==
	      image_store_find(s.images, "c00000", NULL));
	CHECK_INT(image_store_tag(s.images, "c00000", "x/tools:1", on_done, &s, &err), 0);
	CHECK_INT(image_store_pin(s.images, "a00000", true, on_done, &s, &err), 0);
	wait_done(&s, 5);
	CHECK_STR(s.err.text, "");
	CHECK(image_store_tag(s.images, "c00000", "x@sha256:a" HEX_63, on_done, &s, &err) < 0);
	CHECK_INT(err.kind, ERROR_INVALID);
	err = (struct error)ERROR_INIT;
	CHECK(image_store_tag(s.images, "nowhere", "y", on_done, &s, &err) < 0);
	CHECK_INT(err.kind, ERROR_NOT_FOUND);
	err = (struct error)ERROR_INIT;
	stage_again(&s);
	CHECK(image_store_find(s.images, "x/tools:1", NULL) ==
	      image_store_find(s.images, "c00000", NULL));
	CHECK(image_store_remove(s.images, "busybox", on_done, &s, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_STR(err.text, "image \"busybox\" is pinned (see `nacre image unpin`)");
	CHECK_INT(image_store_tag(s.images, "busybox", "more", on_done, &s, &err), 0);
	CHECK_INT(image_store_remove(s.images, "busybox", on_done, &s, &err), 0);
	CHECK_INT(image_store_pin(s.images, "more", false, on_done, &s, &err), 0);
	CHECK_INT(image_store_remove(s.images, "more", on_done, &s, &err), 0);
	wait_done(&s, 9);
	CHECK_STR(s.err.text, "");
	check_inventory(&s, 0);
	stage_done(&s);
}

/* What the database refuses has not been. */
static void changes_on_a_full_disk(void)
{
	struct error err = ERROR_INIT;
	struct image *a;
	struct stage s;

	stage_init(&s);
	put(&s, 'a', 1, two_names);
	put(&s, 'c', 2, no_names);
	stage_again(&s);
	disk_is_full(true);
	CHECK_INT(image_store_tag(s.images, "c00000", "x/tools:1", on_done, &s, &err), 0);
	wait_done(&s, 3);
	CHECK(s.err.code < 0);
	CHECK_INT(image_store_pin(s.images, "a00000", true, on_done, &s, &err), 0);
	wait_done(&s, 4);
	CHECK(s.err.code < 0);
	disk_is_full(false);
	a = image_store_find(s.images, "a00000", NULL);
	CHECK(a && !a->pinned && image_store_find(s.images, "x/tools:1", NULL) == a);
	stage_done(&s);
}

/* The content of an image stays while it is leased, whatever becomes of the image. */
static void leases(void)
{
	struct image_lease *lease = NULL, *other = NULL;
	struct error err = ERROR_INIT;
	_cleanup_fd_ int fd = -1;
	struct image *image;
	struct stage s;

	stage_init(&s);
	put(&s, 'a', 1, two_names);
	put(&s, 'c', 2, no_names);
	stage_again(&s);
	image = image_store_find(s.images, "a00000", NULL);
	CHECK_INT(image_lease_new(&lease, s.images, image), 0);
	CHECK_INT(image_store_remove(s.images, "a00000", on_done, &s, &err), 0);
	wait_done(&s, 3);
	CHECK_STR(s.err.text, "");
	CHECK(!image_store_find(s.images, "a00000", NULL));
	CHECK(is_there(&s, "layers/1") && is_there(&s, "blobs/sha256/a" HEX_63));
	check_inventory(&s, 0);
	CHECK_STR(image_lease_image(lease)->id, "sha256:a" HEX_63);
	CHECK_STR(image_lease_blobs(lease)[0], "sha256:a" HEX_63);
	fd = image_lease_open(lease, "sha256:a" HEX_63);
	CHECK(fd >= 0);
	lease = image_lease_free(lease);
	wait_gone(&s, "layers/1");
	CHECK(!is_there(&s, "blobs/sha256/a" HEX_63));
	check_inventory(&s, 0);
	/* One that outlives its store holds nothing; what it held without a record goes. */
	image = image_store_find(s.images, "c00000", NULL);
	CHECK_INT(image_lease_new(&lease, s.images, image), 0);
	CHECK_INT(image_lease_new(&other, s.images, image), 0);
	CHECK_INT(image_store_remove(s.images, "c00000", on_done, &s, &err), 0);
	wait_done(&s, 4);
	other = image_lease_free(other);
	CHECK(is_there(&s, "layers/2"));
	stage_again(&s);
	CHECK_INT(image_lease_open(lease, "sha256:c" HEX_63), -ESHUTDOWN);
	lease = image_lease_free(lease);
	wait_gone(&s, "layers/2");
	stage_done(&s);
}

static void on_usage(void *userdata, const struct image_usage *u, const struct error *err)
{
	struct stage *s = userdata;

	on_done(s, err);
	/* At the end of a store nobody looks. */
	if (err || s->n_done > 3)
		return;
	CHECK_INT(u->n_images, 2);
	CHECK_INT(u->n_partials, 1);
	CHECK(u->partial_bytes == u->partials[0].bytes && u->free_bytes > 0);
	CHECK(!u->incomplete && u->database_bytes > 0);
	/* Empty files, and a directory each. */
	CHECK(u->images[0].shared == 0 && u->images[1].shared == 0);
	CHECK_INT(u->layer_bytes % 512, 0);
}

static void on_pruned(void *userdata, const struct image_pruned *p, const struct error *err)
{
	struct stage *s = userdata;

	on_done(s, err);
	s->n_pruned = err ? 0 : p->n;
	for (size_t i = 0; !err && i < p->n; i++)
		CHECK_INT(p->items[i].err.code, 0);
}

/* What nobody needs goes, and nothing else; a download goes on while somebody holds it. */
static void prunes(void)
{
	struct image_prune_options all = { .all = true }, dangling = { .dry_run = true };
	struct error err = ERROR_INIT;
	struct stage s;

	stage_init(&s);
	put(&s, 'a', 1, two_names);
	put(&s, 'c', 2, no_names);
	stage_again(&s);
	make(&s, "layers/9", true);
	make(&s, "staging/half", true);
	make(&s, "partial/e" HEX_63, false);
	CHECK_INT(image_store_usage(s.images, on_usage, &s, &err), 0);
	wait_done(&s, 3);
	CHECK_STR(s.err.text, "");
	/* The image without a name, the layer, the directory, the download. */
	CHECK_INT(image_store_prune(s.images, &dangling, on_pruned, &s, &err), 0);
	wait_done(&s, 4);
	CHECK_INT(s.n_pruned, 4);
	CHECK(is_there(&s, "layers/9") && is_there(&s, "layers/2"));
	image_store_find(s.images, "busybox", NULL)->n_users = 1;
	CHECK_INT(image_store_prune(s.images, &all, on_pruned, &s, &err), 0);
	wait_done(&s, 5);
	CHECK_STR(s.err.text, "");
	CHECK_INT(s.n_pruned, 4);
	CHECK(is_there(&s, "layers/1") && !is_there(&s, "layers/2") && !is_there(&s, "layers/9"));
	CHECK(!is_there(&s, "staging/half") && !is_there(&s, "partial/e" HEX_63));
	image_store_find(s.images, "busybox", NULL)->n_users = 0;
	all.older_than = 3600;
	image_store_find(s.images, "busybox", NULL)->created = UINT64_MAX;
	CHECK_INT(image_store_prune(s.images, &all, on_pruned, &s, &err), 0);
	wait_done(&s, 6);
	CHECK_INT(s.n_pruned, 0);
	check_inventory(&s, 0);
	/* A store that ends does not wait for it. */
	CHECK_INT(image_store_prune(s.images, &all, on_pruned, &s, &err), 0);
	CHECK_INT(image_store_usage(s.images, on_usage, &s, &err), 0);
	stage_done(&s);
}

UNIT_MAIN({ "prunes", prunes }, { "names and pins", names_and_pins },
	  { "changes on a full disk", changes_on_a_full_disk }, { "leases", leases },
	  { "finds", finds }, { "an ambiguous beginning", ambiguous },
	  { "opening tidies", opening_tidies }, { "removes", removes },
	  { "removes on a full disk", removes_on_a_full_disk }, { "cannot be opened", cannot_open },
	  { "is pulled while it is removed", is_pulled_while_it_is_removed },
	  { "lost images on a full disk", lost_images_on_a_full_disk },
	  { "roots without a mount", roots_without_a_mount })
