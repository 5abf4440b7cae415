/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cell/start/mounts.h"
#include "isolate/cgroup/devices.h"
#include "isolate/disk/ext4_file.h"
#include "isolate/mount/bind.h"
#include "rpc/exchange/client.h"
#include "runtime/start/identity_mount.h"
#include "runtime/start/mount_manner.h"
#include "runtime/start/resources.h"
#include "runtime/start/secret_mount.h"
#include "runtime/storage/image_mount.h"
#include "volumes/volumes.h"

#define SETTINGS_INIT "/dev/init"
#define SETTINGS_SHM "/dev/shm"

static char settings_none[] = "";
static const char settings_digits[] = "0123456789abcdef";

/* ---- volumes ---- */

/* A volume of the node. */
static int settings_check_named(const Aurae__Runtime__V0__Volume *volume, size_t i,
				struct error *err)
{
	char field[ERROR_FIELD_MAX];

	(void)str_printf(field, sizeof(field), "volumes[%zu].named", i);
	if (!str_empty(volume->host_path))
		return error_field(err, ERROR_INVALID, field, "not beside host_path");
	return volume_check_name(field, volume->named, err);
}

int settings_check_volumes(Aurae__Runtime__V0__Volume *const *volumes, size_t n, struct error *err)
{
	char field[ERROR_FIELD_MAX];

	if (n > SETTINGS_VOLUMES_MAX)
		return error_field(err, ERROR_INVALID, "volumes",
				   "%zu are more than the limit of %d", n, SETTINGS_VOLUMES_MAX);
	for (size_t i = 0; i < n; i++) {
		(void)str_printf(field, sizeof(field), "volumes[%zu].name", i);
		if (!name_is_label(volumes[i]->name))
			return error_field(err, ERROR_INVALID, field,
					   "\"%.80s\" is not a name: 1 to %d of a-z, 0-9 and '-', "
					   "neither first nor last a '-'",
					   volumes[i]->name, NAME_LABEL_MAX);
		for (size_t k = 0; k < i; k++)
			if (str_eq(volumes[i]->name, volumes[k]->name))
				return error_field(err, ERROR_INVALID, field,
						   "%s is taken by volumes[%zu]", volumes[i]->name,
						   k);
		if (!str_empty(volumes[i]->named)) {
			int r = settings_check_named(volumes[i], i, err);

			if (r < 0)
				return r;
			continue;
		}
		(void)str_printf(field, sizeof(field), "volumes[%zu].host_path", i);
		if (volumes[i]->host_path[0] != '/')
			return error_field(err, ERROR_INVALID, field,
					   "\"%.80s\" is not an absolute path",
					   volumes[i]->host_path);
	}
	return 0;
}

static const Aurae__Runtime__V0__Volume *volume_find(Aurae__Runtime__V0__Volume *const *volumes,
						     size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(volumes[i]->name, name))
			return volumes[i];
	return NULL;
}

/* ---- mounts ---- */

int settings_check_target(const char *field, const char *target, struct error *err)
{
	return mounts_check_target(field, target, err);
}

static int mount_check_tmpfs(const Aurae__Runtime__V0__Mount *m, const char *field,
			     struct error *err)
{
	char name[ERROR_FIELD_MAX];

	(void)str_printf(name, sizeof(name), "%s.tmpfs", field);
	if (!str_empty(m->source))
		return error_field(err, ERROR_INVALID, name, "not beside a source");
	if (m->tmpfs->mode > 07777) {
		(void)str_printf(name, sizeof(name), "%s.tmpfs.mode", field);
		return error_field(err, ERROR_INVALID, name, "%o is more than 7777",
				   m->tmpfs->mode);
	}
	(void)str_printf(name, sizeof(name), "%s.tmpfs.%s", field,
			 m->tmpfs->uid > INT32_MAX ? "uid" : "gid");
	if (m->tmpfs->uid > INT32_MAX || m->tmpfs->gid > INT32_MAX)
		return error_field(err, ERROR_INVALID, name, "more than %d", INT32_MAX);
	(void)str_printf(name, sizeof(name), "%s.read_only", field);
	if (m->read_only)
		return error_field(err, ERROR_INVALID, name, "an empty tmpfs is of no use then");
	return 0;
}

static bool mount_is_of_volume(const Aurae__Runtime__V0__Mount *m)
{
	return !str_empty(m->volume) || m->anonymous;
}

static int mount_take_volume(struct pod_mount_spec *to, const char *name, struct error *err)
{
	to->source = name;
	to->is_volume = true;
	to->map_ids = true;
	return volume_check_name(to->field, name, err);
}

/* What the source says: a path, or the name of a volume. */
static int mount_take_source(struct pod_mount_spec *to, const Aurae__Runtime__V0__Mount *m,
			     Aurae__Runtime__V0__Volume *const *volumes, size_t n_volumes,
			     struct error *err)
{
	const Aurae__Runtime__V0__Volume *volume;

	if (str_empty(m->source))
		return error_field(err, ERROR_INVALID, to->field, "required");
	to->source = m->source;
	to->read_only = m->read_only;
	to->map_ids = true;
	if (m->source[0] == '/')
		return 0;
	volume = volume_find(volumes, n_volumes, m->source);
	if (!volume)
		return error_field(err, ERROR_NOT_FOUND, to->field,
				   "\"%.80s\" is neither an absolute path nor among the volumes",
				   m->source);
	to->read_only = m->read_only || volume->read_only;
	if (!str_empty(volume->named))
		return mount_take_volume(to, volume->named, err);
	to->source = volume->host_path;
	return 0;
}

static int mount_take(struct arena *a, struct pod_mount_spec *to,
		      const Aurae__Runtime__V0__Mount *m, const char *field,
		      Aurae__Runtime__V0__Volume *const *volumes, size_t n_volumes,
		      struct error *err)
{
	char name[ERROR_FIELD_MAX];
	int r;

	(void)str_printf(name, sizeof(name), "%s.target", field);
	r = mounts_check_target(name, m->target, err);
	if (r < 0)
		return r;
	(void)str_printf(name, sizeof(name), "%s.%s", field,
			 m->identity             ? "identity"
			 : !str_empty(m->image)  ? "image"
			 : mount_is_of_volume(m) ? "volume"
						 : "source");
	*to = (struct pod_mount_spec){ .field = arena_strdup(a, name), .no_exec = m->no_exec };
	if (!to->field)
		return error_set(err, -ENOMEM, "mounts");
	to->mount.target = m->target;
	if (!str_empty(m->image)) {
		r = image_mount_take(to, m, field, err);
	} else if (m->identity) {
		r = identity_mount_take(to, m, field, err);
	} else if (m->n_secrets) {
		r = secret_mount_take(a, to, m, field, err);
	} else if (mount_is_of_volume(m)) {
		if (!str_empty(m->source) || m->tmpfs)
			return mount_refuse(field, "volume", "not beside a source or a tmpfs", err);
		to->read_only = m->read_only;
		to->anonymous = m->anonymous;
		r = mount_take_volume(to, m->volume, err);
	} else if (m->tmpfs) {
		to->mount.size = m->tmpfs->size;
		to->mount.mode = m->tmpfs->mode;
		to->mount.uid = m->tmpfs->uid;
		to->mount.gid = m->tmpfs->gid;
		to->mount.no_exec = m->no_exec;
		r = mount_check_tmpfs(m, field, err);
	} else {
		r = mount_take_source(to, m, volumes, n_volumes, err);
	}
	return r < 0 ? r : mount_take_manner(to, m, field, err);
}

static int settings_take_mounts(struct arena *a, struct pod_container_spec *to,
				const Aurae__Runtime__V0__Container *from, const char *field,
				Aurae__Runtime__V0__Volume *const *volumes, size_t n_volumes,
				struct error *err)
{
	struct pod_mount_spec *mounts = arena_zalloc(a, from->n_mounts, sizeof(*mounts));
	char name[ERROR_FIELD_MAX];

	if (!mounts)
		return error_set(err, -ENOMEM, "mounts");
	for (size_t i = 0; i < from->n_mounts; i++) {
		int r;

		(void)str_printf(name, sizeof(name), "%s.mounts[%zu]", field, i);
		r = mount_take(a, &mounts[i], from->mounts[i], name, volumes, n_volumes, err);
		if (r < 0)
			return r;
		for (size_t k = 0; k < i; k++) {
			if (!mounts_are_same(mounts[i].mount.target, mounts[k].mount.target))
				continue;
			(void)str_printf(name, sizeof(name), "%s.mounts[%zu].target", field, i);
			return error_field(err, ERROR_INVALID, name,
					   "%.200s is taken by mounts[%zu]", mounts[i].mount.target,
					   k);
		}
	}
	to->mounts = mounts;
	to->n_mounts = from->n_mounts;
	return identity_mount_name(a, to, field, err);
}

/* ---- devices, and what else is mounted ---- */

/* "rwm"; nothing said is all of it. */
static int device_access(const Aurae__Runtime__V0__Device *d, const char *field, unsigned *ret,
			 struct error *err)
{
	static const char letters[] = "rwm";
	char name[ERROR_FIELD_MAX];
	const char *at;

	*ret = str_empty(d->permissions) ? DEVICE_ALL : 0;
	for (const char *p = d->permissions; *p; p++) {
		at = strchr(letters, *p);
		if (!at) {
			(void)str_printf(name, sizeof(name), "%s.permissions", field);
			return error_field(err, ERROR_INVALID, name,
					   "\"%.20s\" is not made of r, w and m", d->permissions);
		}
		*ret |= DEVICE_READ << (at - letters);
	}
	return 0;
}

/* Whether something is mounted there already. */
static bool mounts_have(const struct pod_container_spec *to, const char *target)
{
	for (size_t i = 0; i < to->n_mounts; i++)
		if (mounts_are_same(to->mounts[i].mount.target, target))
			return true;
	return false;
}

/*
 * A device is a mount of the node's own one, read-only: it can be opened for writing, and its owner
 * and mode stay what they are. Its group says what it can be opened for.
 */
static int device_take(struct arena *a, struct pod_container_spec *to,
		       const Aurae__Runtime__V0__Device *d, const char *field,
		       struct pod_mount_spec *m, struct error *err)
{
	char name[ERROR_FIELD_MAX];
	int r;

	*m = (struct pod_mount_spec){
		.source = d->host_path, .read_only = true, .follow = true, .devices = true
	};
	m->mount.target = str_empty(d->path) ? d->host_path : d->path;
	(void)str_printf(name, sizeof(name), "%s.host_path", field);
	m->field = arena_strdup(a, name);
	if (!m->field)
		return error_set(err, -ENOMEM, "%s", field);
	if (d->host_path[0] != '/')
		return error_field(err, ERROR_INVALID, name, "\"%.80s\" is no absolute path",
				   d->host_path);
	(void)str_printf(name, sizeof(name), "%s.path", field);
	r = mounts_check_target(name, m->mount.target, err);
	if (r == 0 && mounts_have(to, m->mount.target))
		return error_field(err, ERROR_INVALID, name, "%.200s is taken by another mount",
				   m->mount.target);
	return r < 0 ? r : device_access(d, field, &m->mount.access, err);
}

/* A file or directory of the node that the container does not ask for by itself. */
static int settings_add_own(struct arena *a, struct pod_container_spec *to, const char *source,
			    const char *target, const char *field, struct pod_mount_spec *m,
			    struct error *err)
{
	*m = (struct pod_mount_spec){ .source = source, .follow = true };
	m->mount.target = target;
	m->field = arena_strdup(a, field);
	if (!m->field)
		return error_set(err, -ENOMEM, "%s", field);
	if (mounts_have(to, target))
		return error_field(err, ERROR_INVALID, field, "%s is taken by another mount",
				   target);
	return 0;
}

/* Behind the mounts that it asks for. */
static int settings_take_more(struct arena *a, struct pod_container_spec *to,
			      const Aurae__Runtime__V0__Container *from, const char *field,
			      const struct settings_whole *whole, struct error *err)
{
	size_t n_all = to->n_mounts + from->n_devices + 2;
	struct pod_mount_spec *mounts = arena_zalloc(a, n_all, sizeof(*mounts));
	char name[ERROR_FIELD_MAX];
	int r = 0;

	if (!mounts)
		return error_set(err, -ENOMEM, "mounts");
	for (size_t i = 0; i < to->n_mounts; i++)
		mounts[i] = to->mounts[i];
	to->mounts = mounts;
	(void)str_printf(name, sizeof(name), "%s.init", field);
	if (from->init) {
		to->init = SETTINGS_INIT;
		r = settings_add_own(a, to, whole->init, SETTINGS_INIT, name, &mounts[to->n_mounts],
				     err);
		mounts[to->n_mounts++].read_only = true;
	}
	(void)str_printf(name, sizeof(name), "%s.ipc", field);
	if (r == 0 && whole->host_ipc && !mounts_have(to, SETTINGS_SHM)) {
		r = settings_add_own(a, to, SETTINGS_SHM, SETTINGS_SHM, name, &mounts[to->n_mounts],
				     err);
		to->n_mounts++;
	}
	for (size_t i = 0; i < from->n_devices && r == 0; i++) {
		(void)str_printf(name, sizeof(name), "%s.devices[%zu]", field, i);
		r = device_take(a, to, from->devices[i], name, &mounts[to->n_mounts], err);
		to->n_mounts++;
	}
	if (r < 0 || to->n_mounts <= CONTAINER_MOUNTS_MAX)
		return r;
	(void)str_printf(name, sizeof(name), "%s.%s", field,
			 from->n_devices > 0 ? "devices" : "mounts");
	return error_field(err, ERROR_INVALID, name,
			   "%zu mounts with those of devices are more than the limit of %d",
			   to->n_mounts, CONTAINER_MOUNTS_MAX);
}

/* ---- the text of the record ---- */

/* The mounts as they are shown: with the paths and names that they stand for. */
static int settings_mounts_shown(struct arena *a, Nacre__V1__KeptSettings *to,
				 const Aurae__Runtime__V0__Container *from,
				 const struct pod_container_spec *spec)
{
	Aurae__Runtime__V0__Mount *mounts = arena_zalloc(a, from->n_mounts + 1, sizeof(*mounts));

	to->mounts = arena_zalloc(a, from->n_mounts + 1, sizeof(*to->mounts));
	if (!mounts || !to->mounts)
		return -ENOMEM;
	for (size_t i = 0; i < from->n_mounts; i++) {
		mounts[i] = *from->mounts[i];
		if (spec->mounts[i].is_volume) {
			mounts[i].source = settings_none;
			mounts[i].volume = (char *)(uintptr_t)spec->mounts[i].source;
			mounts[i].anonymous = false;
		} else if (spec->mounts[i].source && !spec->mounts[i].is_identity &&
			   !spec->mounts[i].n_secrets) {
			mounts[i].source = (char *)(uintptr_t)spec->mounts[i].source;
		}
		mounts[i].read_only = spec->mounts[i].read_only;
		to->mounts[i] = &mounts[i];
	}
	to->n_mounts = from->n_mounts;
	return 0;
}

static char *settings_pack_any(struct arena *a, const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *bytes = arena_alloc(a, len + 1);
	char *text = arena_alloc(a, 2 * len + 1);

	if (!bytes || !text)
		return NULL;
	(void)protobuf_c_message_pack(m, bytes);
	for (size_t i = 0; i < len; i++) {
		text[2 * i] = settings_digits[bytes[i] >> 4];
		text[2 * i + 1] = settings_digits[bytes[i] & 15];
	}
	text[2 * len] = '\0';
	return text;
}

static char *settings_pack(struct arena *a, const Nacre__V1__KeptSettings *m)
{
	return settings_pack_any(a, &m->base);
}

char *settings_of_resources(struct arena *a, Aurae__Runtime__V0__Resources *resources)
{
	Nacre__V1__KeptSettings shown = NACRE__V1__KEPT_SETTINGS__INIT;

	shown.resources = resources;
	return settings_pack(a, &shown);
}

static int settings_keep(struct arena *a, struct pod_container_spec *to,
			 const Aurae__Runtime__V0__Container *from)
{
	Aurae__Runtime__V0__Security security = AURAE__RUNTIME__V0__SECURITY__INIT;
	static char profile[] = "profile";
	Nacre__V1__KeptSettings shown = NACRE__V1__KEPT_SETTINGS__INIT;

	if (settings_mounts_shown(a, &shown, from, to) < 0)
		return -ENOMEM;
	shown.read_only_root = from->read_only_root;
	shown.disk = from->disk;
	shown.resources = from->resources;
	if (from->security) {
		security = *from->security;
		shown.security = &security;
	}
	/* Of a profile only that there was one. */
	if (security.seccomp_profile.len > 0)
		security.seccomp = profile;
	security.seccomp_profile = (ProtobufCBinaryData){ .len = 0 };
	shown.devices = from->devices;
	shown.n_devices = from->n_devices;
	shown.cdi_devices = from->cdi_devices;
	shown.n_cdi_devices = from->n_cdi_devices;
	shown.init = from->init;
	shown.health = from->health;
	shown.init_container = from->init_container;
	shown.restart = from->restart;
	to->settings = settings_pack(a, &shown);
	return to->settings ? 0 : -ENOMEM;
}

static int settings_check_counts(const Aurae__Runtime__V0__Container *from, const char *field,
				 size_t *n_used, struct error *err)
{
	char name[ERROR_FIELD_MAX];

	(void)str_printf(name, sizeof(name), "%s.mounts", field);
	*n_used += from->n_mounts;
	if (from->n_mounts > CONTAINER_MOUNTS_MAX)
		return error_field(err, ERROR_INVALID, name, "%zu are more than the limit of %d",
				   from->n_mounts, CONTAINER_MOUNTS_MAX);
	if (from->n_devices > CONTAINER_MOUNTS_MAX) {
		(void)str_printf(name, sizeof(name), "%s.devices", field);
		return error_field(err, ERROR_INVALID, name, "%zu are more than the limit of %d",
				   from->n_devices, CONTAINER_MOUNTS_MAX);
	}
	if (*n_used > SETTINGS_MOUNTS_MAX)
		return error_field(
			err, ERROR_INVALID, name,
			"with those of the containers before it more than the limit of %d",
			SETTINGS_MOUNTS_MAX);
	return 0;
}

static int settings_check_disk(const Aurae__Runtime__V0__Container *from, const char *field,
			       struct error *err)
{
	char name[ERROR_FIELD_MAX];

	if (!from->disk || (from->disk >= EXT4_FILE_MIN && from->disk <= EXT4_FILE_MAX))
		return 0;
	(void)str_printf(name, sizeof(name), "%s.disk", field);
	return error_field(err, ERROR_INVALID, name,
			   "%" PRIu64 " bytes; a limit is 16 MiB to 1 TiB", from->disk);
}

int settings_take(struct arena *a, struct pod_container_spec *to,
		  const Aurae__Runtime__V0__Container *from, const char *field,
		  const struct settings_whole *whole, size_t *n_used, struct error *err)
{
	char name[ERROR_FIELD_MAX];
	char **words = NULL;
	int r;

	if (from->n_mounts == 0 && !from->read_only_root && !from->resources && !from->disk &&
	    !from->security && from->n_devices == 0 && !from->init && !from->health &&
	    !from->init_container && !from->restart && !whole->host_ipc && from->n_cdi_devices == 0)
		return 0;
	r = settings_check_disk(from, field, err);
	if (r < 0)
		return r;
	r = settings_check_counts(from, field, n_used, err);
	if (r == 0 && from->n_mounts > 0)
		r = settings_take_mounts(a, to, from, field, whole->volumes, whole->n_volumes, err);
	if (r == 0)
		r = settings_take_more(a, to, from, field, whole, err);
	(void)str_printf(name, sizeof(name), "%s.resources", field);
	if (r == 0)
		r = resources_words(a, from->resources, whole->base_fd, name, &words, err);
	if (r < 0)
		return r;
	to->limits = words;
	to->read_only_root = from->read_only_root;
	to->disk = from->disk;
	r = settings_keep(a, to, from);
	return r < 0 ? error_set(err, r, "%s", field) : 0;
}

int settings_take_whole(struct arena *a, struct workload_spec *to,
			const struct settings_whole *whole, struct error *err)
{
	Nacre__V1__KeptSettings shown = NACRE__V1__KEPT_SETTINGS__INIT;
	char **words;
	int r;

	r = resources_words(a, whole->resources, whole->base_fd, "resources", &words, err);
	if (r < 0 || (!words && !whole->security))
		return r;
	if (words)
		shown.resources = whole->resources;
	shown.pod = (Aurae__Runtime__V0__PodSecurity *)(uintptr_t)whole->security;
	to->limits = words;
	to->settings = settings_pack(a, &shown);
	return to->settings ? 0 : error_set(err, -ENOMEM, "resources");
}

static int settings_digit(char c)
{
	const char *at = c ? strchr(settings_digits, c) : NULL;

	return at ? (int)(at - settings_digits) : -1;
}

static void *settings_alloc(void *a, size_t n)
{
	return arena_alloc(a, n);
}

/* The arena goes as a whole. */
static void settings_free(void *a, void *p)
{
}

/* The message of so many digits; NULL where there is nothing to show. */
static void *settings_unpack_any(struct arena *a, const ProtobufCMessageDescriptor *type,
				 const char *digits, size_t n)
{
	ProtobufCAllocator allocator = { .alloc = settings_alloc,
					 .free = settings_free,
					 .allocator_data = a };
	size_t len = n / 2;
	uint8_t *bytes = len > 0 ? arena_alloc(a, len) : NULL;

	for (size_t i = 0; bytes && i < len; i++) {
		int high = settings_digit(digits[2 * i]);
		int low = settings_digit(digits[2 * i + 1]);

		if (high < 0 || low < 0)
			return NULL;
		bytes[i] = (uint8_t)(high << 4 | low);
	}
	/* What a later release wrote may be more than this one reads. */
	return bytes ? (void *)rpc_decode(type, bytes, len, &allocator, NULL) : NULL;
}

static Nacre__V1__KeptSettings *settings_unpack(struct arena *a, const char *settings)
{
	return settings_unpack_any(a, &nacre__v1__kept_settings__descriptor, settings,
				   settings ? strcspn(settings, ",.~") : 0);
}

/* What is kept of labels, the network and another family, with the ',', '.' or '~'; "": nothing. */
static const char *settings_tail(const char *settings)
{
	return settings ? settings + strcspn(settings, ",.~") : "";
}

/* The same of the network and another family. */
static const char *settings_network_tail(const char *settings)
{
	return settings ? settings + strcspn(settings, ".~") : "";
}

static const char *settings_record_tail(const char *settings)
{
	return settings ? settings + strcspn(settings, "~") : "";
}

int settings_add_labels(struct arena *a, const char **settings,
			const Aurae__Runtime__V0__Meta *meta, struct error *err)
{
	Aurae__Runtime__V0__Meta kept = AURAE__RUNTIME__V0__META__INIT;
	const char *now = *settings ? *settings : "";
	char *text;

	if (!meta || meta->n_labels == 0)
		return 0;
	kept.labels = meta->labels;
	kept.n_labels = meta->n_labels;
	text = settings_pack_any(a, &kept.base);
	if (text)
		text = arena_printf(a, "%.*s,%s%s", (int)strcspn(now, ",.~"), now, text,
				    settings_network_tail(now));
	if (!text)
		return error_set(err, -ENOMEM, "meta.labels");
	*settings = text;
	return 0;
}

Aurae__Runtime__V0__Meta *settings_meta(struct arena *a, const char *settings)
{
	const char *tail = settings_tail(settings);

	return *tail == ',' ? settings_unpack_any(a, &aurae__runtime__v0__meta__descriptor,
						  tail + 1, strcspn(tail + 1, ".~"))
			    : NULL;
}

char *settings_with_network(struct arena *a, const char *settings,
			    const Nacre__V1__WorkloadNetwork *network)
{
	char *text = settings_pack_any(a, &network->base);
	int n = settings ? (int)strcspn(settings, ".~") : 0;

	return text ? arena_printf(a, "%.*s.%s%s", n, settings ? settings : "", text,
				   settings_record_tail(settings))
		    : NULL;
}

Nacre__V1__WorkloadNetwork *settings_network(struct arena *a, const char *settings)
{
	const char *tail = settings_network_tail(settings);

	return *tail == '.' ? settings_unpack_any(a, &nacre__v1__workload_network__descriptor,
						  tail + 1, strcspn(tail + 1, "~"))
			    : NULL;
}

char *settings_with_record(struct arena *a, const char *settings, const ProtobufCMessage *record)
{
	char *text = settings_pack_any(a, record);
	int n = settings ? (int)strcspn(settings, "~") : 0;

	return text ? arena_printf(a, "%.*s~%s", n, settings ? settings : "", text) : NULL;
}

void *settings_record(struct arena *a, const char *settings, const ProtobufCMessageDescriptor *type)
{
	const char *tail = settings_record_tail(settings);

	return *tail ? settings_unpack_any(a, type, tail + 1, strlen(tail + 1)) : NULL;
}

char *settings_text(struct arena *a, const ProtobufCMessage *m)
{
	return settings_pack_any(a, m);
}

void *settings_message(struct arena *a, const ProtobufCMessageDescriptor *type, const char *text)
{
	return settings_unpack_any(a, type, text, strlen(text));
}

int settings_read(struct arena *a, const char *settings, struct settings_kept *ret,
		  struct error *err)
{
	const Nacre__V1__KeptSettings *kept = settings_unpack(a, settings);
	bool has_head = settings && strcspn(settings, ",.~") > 0;

	*ret = (struct settings_kept){ .network = settings_network(a, settings) };
	if ((has_head && !kept) || (*settings_network_tail(settings) == '.' && !ret->network))
		return error_set(err, -EBADMSG, "read what is kept of a workload");
	if (!kept)
		return 0;
	ret->resources = kept->resources;
	ret->mounts = kept->mounts;
	ret->n_mounts = kept->n_mounts;
	ret->health = kept->health;
	ret->security = kept->security;
	return 0;
}

void settings_show(struct arena *a, Nacre__V1__Container *to, const char *settings)
{
	Nacre__V1__KeptSettings *kept = settings_unpack(a, settings);

	if (!kept)
		return;
	to->mounts = kept->mounts;
	to->n_mounts = kept->n_mounts;
	secret_mount_hide(kept->mounts, kept->n_mounts);
	to->read_only_root = kept->read_only_root;
	to->disk = kept->disk;
	to->resources = kept->resources;
	to->security = kept->security;
	to->devices = kept->devices;
	to->n_devices = kept->n_devices;
	to->cdi_devices = kept->cdi_devices;
	to->n_cdi_devices = kept->n_cdi_devices;
	to->init = kept->init;
	to->health = kept->health;
	to->init_container = kept->init_container;
	to->restart = kept->restart;
}

Aurae__Runtime__V0__PodSecurity *settings_security(struct arena *a, const char *settings)
{
	Nacre__V1__KeptSettings *kept = settings_unpack(a, settings);

	return kept ? kept->pod : NULL;
}

Aurae__Runtime__V0__Resources *settings_resources(struct arena *a, const char *settings)
{
	Nacre__V1__KeptSettings *kept = settings_unpack(a, settings);

	return kept ? kept->resources : NULL;
}

char *settings_add(struct arena *a, const char *settings, const char *added)
{
	Nacre__V1__KeptSettings none = NACRE__V1__KEPT_SETTINGS__INIT;
	Nacre__V1__KeptSettings *kept = settings_unpack(a, settings) ?: &none;
	Aurae__Runtime__V0__Resources *with = settings_resources(a, added);
	const char *tail = settings_tail(settings);
	char *text;

	if (!with)
		return NULL;
	if (kept->resources)
		resources_merge(kept->resources, with);
	else
		kept->resources = with;
	text = settings_pack(a, kept);
	return text && *tail ? arena_printf(a, "%s%s", text, tail) : text;
}
