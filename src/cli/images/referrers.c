/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/images/referrers.h"

#include <stdlib.h>

#include "base/text/str.h"
#include "cli/images/registry_auth.h"
#include "cli/output/alloc.h"

static char **referrers_annotations(const Nacre__V1__Referrer *m)
{
	char **texts = xrealloc(NULL, 2 * m->n_annotations + 1, sizeof(*texts));

	for (size_t i = 0; i < m->n_annotations; i++) {
		texts[2 * i] = xstrdup(m->annotations[i]->name);
		texts[2 * i + 1] = xstrdup(m->annotations[i]->value);
	}
	texts[2 * m->n_annotations] = NULL;
	return texts;
}

static void referrers_message(struct client_call *call, const ProtobufCMessage *message)
{
	struct referrers *r = container_of(call, struct referrers, call);
	const Nacre__V1__ReferrersResponse *m =
		(const Nacre__V1__ReferrersResponse *)(const void *)message;

	if (!str_empty(m->subject) && !r->subject)
		r->subject = xstrdup(m->subject);
	r->list = xrealloc(r->list, r->n + m->n_referrers + 1, sizeof(*r->list));
	for (size_t i = 0; i < m->n_referrers; i++)
		r->list[r->n++] = (struct referrer){
			.digest = xstrdup(m->referrers[i]->digest),
			.media_type = xstrdup(m->referrers[i]->media_type),
			.artifact_type = xstrdup(m->referrers[i]->artifact_type),
			.size = m->referrers[i]->size,
			.annotations = referrers_annotations(m->referrers[i]),
			.n_left_out = m->referrers[i]->annotations_left_out,
		};
}

int referrers_ask(struct referrers *r, const struct client_target *daemon,
		  const Nacre__V1__Image *image, struct error *err)
{
	Nacre__V1__ReferrersRequest request = NACRE__V1__REFERRERS_REQUEST__INIT;
	Nacre__V1__RegistryAuth auth = NACRE__V1__REGISTRY_AUTH__INIT, *auths[] = { &auth };
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(REGISTRY_AUTH_MEMORY_MAX);
	_cleanup_client_ struct client *client = NULL;
	int n;

	if (image->n_repo_digests == 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the image came from no registry that could be asked");
	request.image = image->repo_digests[0];
	n = registry_auth_find(&auth, &arena, request.image, err);
	if (n < 0)
		return n;
	request.auths = auths;
	request.n_auths = n > 0 ? 1 : 0;
	client = client_open(daemon, err);
	if (!client)
		return err->code;
	r->call = (struct client_call){ .type = &nacre__v1__referrers_response__descriptor,
					.on_message = referrers_message };
	client_call_start(client, &r->call, "/nacre.v1.ImageService/Referrers", &request.base);
	(void)client_call_wait(client, &r->call);
	*err = r->call.err;
	client_call_done(&r->call);
	return err->code;
}

void referrers_show(struct json *j, const char *key, const struct referrers *r)
{
	json_put_object(j, key);
	json_put_string(j, "subject", r->subject ? r->subject : "");
	json_put_array(j, "list");
	for (size_t i = 0; i < r->n; i++) {
		json_put_object(j, NULL);
		json_put_string(j, "digest", r->list[i].digest);
		json_put_string(j, "artifact_type", r->list[i].artifact_type);
		json_put_string(j, "media_type", r->list[i].media_type);
		json_put_unsigned(j, "size", r->list[i].size);
		json_put_object(j, "annotations");
		for (char **a = r->list[i].annotations; *a; a += 2)
			json_put_string(j, a[0], a[1]);
		json_put_end(j);
		if (r->list[i].n_left_out)
			json_put_unsigned(j, "annotations_left_out", r->list[i].n_left_out);
		json_put_end(j);
	}
	json_put_end(j);
	json_put_end(j);
}

void referrers_done(struct referrers *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->list[i].digest);
		free(r->list[i].media_type);
		free(r->list[i].artifact_type);
		strv_free(r->list[i].annotations);
	}
	free(r->list);
	free(r->subject);
}
