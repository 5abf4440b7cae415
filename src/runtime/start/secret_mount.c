/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/secret_mount.h"

#include <errno.h>

#include "base/text/str.h"
#include "volumes/secrets.h"

#define SECRET_MODE 0444

int secret_mount_take(struct arena *a, struct pod_mount_spec *to,
		      const Aurae__Runtime__V0__Mount *m, const char *field, struct error *err)
{
	struct secret_file *files = arena_zalloc(a, m->n_secrets, sizeof(*files));
	char name[ERROR_FIELD_MAX];
	int r = 0;

	if (!files)
		return error_set(err, -ENOMEM, "mounts");
	for (size_t i = 0; i < m->n_secrets && r == 0; i++) {
		const Aurae__Runtime__V0__MountedSecret *s = m->secrets[i];

		(void)str_printf(name, sizeof(name), "%s.secrets[%zu].name", field, i);
		r = secret_check_name(name, s->name, err);
		(void)str_printf(name, sizeof(name), "%s.secrets[%zu].file", field, i);
		if (r == 0 && (m->n_secrets > 1 || *s->file))
			r = secret_check_file(name, s->file, err);
		for (size_t k = 0; r == 0 && k < i; k++)
			if (str_eq(files[k].file, s->file))
				return error_field(err, ERROR_INVALID, name,
						   "%.80s is taken by another one", s->file);
		(void)str_printf(name, sizeof(name), "%s.secrets[%zu]", field, i);
		if (r == 0 && (s->mode > 07777 || s->uid > INT32_MAX || s->gid > INT32_MAX))
			return error_field(err, ERROR_INVALID, name,
					   "its mode, uid or gid is none");
		files[i] = (struct secret_file){ .secret = s->name,
						 .file = s->file,
						 .uid = s->uid,
						 .gid = s->gid,
						 .mode = s->mode ? s->mode : SECRET_MODE };
	}
	(void)str_printf(name, sizeof(name), "%s.secrets", field);
	to->field = arena_strdup(a, name);
	if (!to->field)
		return error_set(err, -ENOMEM, "mounts");
	to->source = m->volume;
	to->secrets = files;
	to->n_secrets = m->n_secrets;
	to->read_only = true;
	to->no_exec = true;
	to->map_ids = true;
	return r;
}

void secret_mount_hide(Aurae__Runtime__V0__Mount **mounts, size_t n)
{
	static char none[] = "";

	for (size_t i = 0; i < n; i++)
		if (mounts[i]->n_secrets)
			mounts[i]->volume = none;
}
