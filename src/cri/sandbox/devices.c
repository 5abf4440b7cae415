/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/sandbox/devices.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "runtime/storage/cdi_call.h"

#define DEVICES_ANNOTATION "cdi.k8s.io/"

struct devices_list {
	char *names[CDI_NAMES_MAX];
	size_t n;
};

static int devices_add(struct devices_list *l, char *name, struct error *err)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->names[i], name))
			return 0;
	if (l->n == CDI_NAMES_MAX)
		return error_field(err, ERROR_INVALID, CRI_FIELD_DEVICES,
				   "more than the limit of %d", CDI_NAMES_MAX);
	l->names[l->n++] = name;
	return 0;
}

static int devices_annotated(struct arena *a, struct devices_list *l, const char *value,
			     struct error *err)
{
	char *words = arena_strdup(a, value), *save = NULL;
	int r = 0;

	if (!words)
		return error_set(err, -ENOMEM, CRI_FIELD_DEVICES);
	for (char *name = strtok_r(words, ", ", &save); name && r == 0;
	     name = strtok_r(NULL, ", ", &save))
		r = devices_add(l, name, err);
	return r;
}

int cri_container_devices(struct arena *a, const Runtime__V1__ContainerConfig *config, char ***ret,
			  size_t *ret_n, struct error *err)
{
	struct devices_list *l = NULL;
	int r = 0;

	*ret_n = 0;
	for (size_t i = 0; config && i < config->n_cdi_devices && r == 0; i++) {
		l = l ?: arena_zalloc(a, 1, sizeof(*l));
		r = l ? devices_add(l, config->cdi_devices[i]->name, err)
		      : error_set(err, -ENOMEM, CRI_FIELD_DEVICES);
	}
	for (size_t i = 0; config && i < config->n_annotations && r == 0; i++) {
		if (!str_has_prefix(config->annotations[i]->key, DEVICES_ANNOTATION))
			continue;
		l = l ?: arena_zalloc(a, 1, sizeof(*l));
		r = l ? devices_annotated(a, l, config->annotations[i]->value, err)
		      : error_set(err, -ENOMEM, CRI_FIELD_DEVICES);
	}
	if (r < 0 || !l)
		return r;
	*ret = l->names;
	*ret_n = l->n;
	return 0;
}
