/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/volumes_from.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "cli/remote/client.h"

static bool volumes_from_has(const struct volumes_from *v, size_t n, const char *target)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(v->list[i]->target, target))
			return true;
	return false;
}

static void volumes_from_add(struct volumes_from *v, Aurae__Runtime__V0__Mount *m, bool read_only,
			     Aurae__Runtime__V0__Container *to)
{
	if (m->tmpfs || m->identity || m->n_secrets > 0 || m->cdi ||
	    volumes_from_has(v, to->n_mounts, m->target))
		return;
	m->read_only = m->read_only || read_only;
	m->chown = false;
	v->list = xrealloc(v->list, to->n_mounts + 1, sizeof(*v->list));
	v->list[to->n_mounts++] = m;
}

static int volumes_from_ask(struct volumes_from *v, struct client *client, const char *text,
			    Aurae__Runtime__V0__Container *to, struct error *err)
{
	Nacre__V1__InspectRequest request = NACRE__V1__INSPECT_REQUEST__INIT;
	_cleanup_str_ char *target = xstrdup(text);
	char *colon = strchr(target, ':');
	const Nacre__V1__Workload *w;
	Nacre__V1__InspectResponse *answer;

	if (colon)
		*colon++ = '\0';
	if (colon && !str_eq(colon, "ro") && !str_eq(colon, "rw"))
		return error_refuse(err, ERROR_INVALID, "--volumes-from is TARGET[:ro], not \"%s\"",
				    text);
	request.target = target;
	answer = client_ask(client, "/nacre.v1.WorkloadService/Inspect", &request.base,
			    &nacre__v1__inspect_response__descriptor, err);
	if (!answer)
		return error_wrap(err, err->code, "--volumes-from");
	v->answers = xrealloc(v->answers, v->n_answers + 1, sizeof(*v->answers));
	v->answers[v->n_answers++] = answer;
	w = answer->workload;
	for (size_t i = 0; w && i < w->n_containers; i++)
		for (size_t k = 0; k < w->containers[i]->n_mounts; k++)
			volumes_from_add(v, w->containers[i]->mounts[k],
					 colon && *colon == 'r' && colon[1] == 'o', to);
	return 0;
}

int volumes_from_take(struct volumes_from *v, struct client *client, const struct args *a,
		      Aurae__Runtime__V0__Container *to, struct error *err)
{
	const char *text;
	size_t pos = 0;
	int r = 0;

	v->list = xrealloc(NULL, to->n_mounts + 1, sizeof(*v->list));
	for (size_t i = 0; i < to->n_mounts; i++)
		v->list[i] = to->mounts[i];
	while (r == 0 && (text = args_next(a, "volumes-from", &pos)))
		r = volumes_from_ask(v, client, text, to, err);
	to->mounts = v->list;
	return r;
}

void volumes_from_done(struct volumes_from *v)
{
	for (size_t i = 0; i < v->n_answers; i++)
		protobuf_c_message_free_unpacked(&v->answers[i]->base, NULL);
	free(v->answers);
	free(v->list);
	*v = (struct volumes_from)VOLUMES_FROM_INIT;
}
