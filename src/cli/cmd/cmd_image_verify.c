/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/images/registry_auth.h"
#include "cli/output/alloc.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"

#define VERIFY_KEY_MAX 16384
#define VERIFY_REFUSED 1 /* the exit status: it was asked, and may not be had */

/* The file as a text in the arena. */
static int verify_read_key(struct arena *a, const char *path, char **ret, struct error *err)
{
	_cleanup_(buf_done) struct buf pem = BUF_INIT;
	int r = fd_read_file(AT_FDCWD, path, VERIFY_KEY_MAX, &pem);

	if (r == 0 && pem.len == 0)
		return error_refuse(err, ERROR_INVALID, "the key %.200s is empty", path);
	if (r == 0 && memchr(buf_data(&pem), '\0', pem.len))
		r = -EINVAL;
	if (r < 0)
		return error_set(err, r, "read the key %.200s", path);
	*ret = arena_strndup(a, (const char *)buf_data(&pem), pem.len);
	return *ret ? 0 : error_set(err, -ENOMEM, "read the key %.200s", path);
}

static void verify_row(struct table *t, const char *name, const char *text)
{
	table_add_color(t, TABLE_BOLD, name);
	table_add(t, text);
}

static void verify_table_signer(struct table *t, const Nacre__V1__Signer *s, const char *key)
{
	verify_row(t, "KEY", key ?: s->key);
	verify_row(t, "FINGERPRINT", s->fingerprint);
	verify_row(t, "IDENTITY", s->identity);
	for (size_t i = 0; i < s->n_annotations; i++) {
		const Nacre__V1__Annotation *a = s->annotations[i];
		_cleanup_str_ char *text = xformat("%s=%s", a->name, a->value);

		verify_row(t, "ANNOTATION", text);
	}
}

static void verify_table(const struct cli *cli, const Nacre__V1__VerifyImageResponse *m,
			 const char *key)
{
	struct table t = TABLE_INIT(2);
	const Nacre__V1__Verdict *v = m->verdict;

	verify_row(&t, "REFERENCE", v->reference);
	verify_row(&t, "DIGEST", v->digest);
	verify_row(&t, "OF", m->stored ? "the node's image" : "the registry");
	verify_row(&t, "VERDICT", v->verdict);
	if (!key && !str_eq(v->verdict, "no-policy"))
		verify_row(&t, "SCOPE", str_empty(v->scope) ? "\"\"" : v->scope);
	for (size_t i = 0; i < v->n_signers; i++)
		verify_table_signer(&t, v->signers[i], key);
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

static int verify_show(const struct cli *cli, const Nacre__V1__VerifyImageResponse *m,
		       const char *key)
{
	const Nacre__V1__Verdict *v = m->verdict;
	struct json j = JSON_INIT(stdout);

	if (cli->json) {
		json_put_object(&j, NULL);
		view_verdict(&j, "verdict", v);
		json_put_bool(&j, "stored", m->stored);
		json_put_end(&j);
	} else {
		verify_table(cli, m, key);
	}
	/* Only what is known to be good is. */
	if (str_eq(v->verdict, "signed") ||
	    (!key && (str_eq(v->verdict, "accepted") || str_eq(v->verdict, "no-policy"))))
		return 0;
	(void)cli_complain("%s", str_empty(v->reason) ? "it is not accepted" : v->reason);
	return VERIFY_REFUSED;
}

static int verify_fill(Nacre__V1__VerifyImageRequest *q, Nacre__V1__RegistryAuth *auth,
		       struct arena *arena, const char *key, struct error *err)
{
	int r = 0;

	if (key)
		r = verify_read_key(arena, key, &q->key, err);
	if (r == 0)
		r = registry_auth_find(auth, arena, q->image, err);
	if (r < 0)
		return r;
	q->n_auths = r > 0 ? 1 : 0;
	return 0;
}

int cmd_image_verify(const struct cli *cli, const struct args *args)
{
	Nacre__V1__VerifyImageRequest request = NACRE__V1__VERIFY_IMAGE_REQUEST__INIT;
	Nacre__V1__RegistryAuth auth = NACRE__V1__REGISTRY_AUTH__INIT, *auths[] = { &auth };
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(REGISTRY_AUTH_MEMORY_MAX);
	_cleanup_message_ Nacre__V1__VerifyImageResponse *answer = NULL;
	const char *key = args_value(args, "key");
	struct error err = ERROR_INIT;

	request.image = args->operands[0];
	request.auths = auths;
	if (verify_fill(&request, &auth, &arena, key, &err) < 0)
		return cli_fail(&err);
	answer = client_ask_once(&cli->daemon, "/nacre.v1.ImageService/Verify", &request.base,
				 &nacre__v1__verify_image_response__descriptor, 0, &err);
	if (!answer)
		return cli_fail(&err);
	if (!answer->verdict)
		return cli_complain("the daemon's answer has no verdict");
	return verify_show(cli, answer, key);
}
