/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/json.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "cli/cmd/handlers.h"
#include "cli/options/spec.h"
#include "cli/output/alloc.h"
#include "cli/output/pem.h"
#include "cli/output/table.h"
#include "cli/remote/client.h"
#include "cli/remote/remote.h"
#include "cli/table/command.h"

#define CERTIFICATE "CERTIFICATE"

/* ---- identity issue ---- */

/* The files that are written: in each layout three and, of Aurae's, a fourth that says where they
 * are.
 */
enum issue_file { ISSUE_CA, ISSUE_CERT, ISSUE_KEY, ISSUE_CONFIG, ISSUE_FILE_COUNT };

struct issue {
	const char *name, *dir;
	char *names[ISSUE_FILE_COUNT];
	char *texts[ISSUE_FILE_COUNT];
	bool replace, aurae;
};

static void issue_done(struct issue *i)
{
	for (size_t f = 0; f < ISSUE_FILE_COUNT; f++) {
		if (i->texts[f])
			explicit_bzero(i->texts[f], strlen(i->texts[f]));
		free(i->texts[f]);
		free(i->names[f]);
	}
}

/* A key that is there belongs to somebody: found before one is made. */
static int issue_check_files(const struct issue *i, int dir_fd, struct error *err)
{
	for (size_t f = 0; f < ISSUE_FILE_COUNT && !i->replace; f++) {
		_cleanup_fd_ int fd = -1;

		/* That of the authority is the same for all users of a node. */
		if (f == ISSUE_CA || !i->names[f])
			continue;
		fd = sysio_openat(dir_fd, i->names[f], O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);

		if (fd >= 0)
			return error_refuse(err, ERROR_EXISTS,
					    "%s/%s is there already (--force replaces it)", i->dir,
					    i->names[f]);
	}
	return 0;
}

/* Whole or not at all. */
static int issue_write_file(const struct issue *i, int dir_fd, enum issue_file f, struct error *err)
{
	_cleanup_str_ char *new = xformat(".%s.%d", i->names[f], (int)getpid());
	_cleanup_fd_ int fd = -1;
	int r;

	fd = sysio_openat(dir_fd, new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			  f == ISSUE_KEY ? 0600 : 0644);
	if (fd < 0)
		return error_set(err, -errno, "make %s/%s", i->dir, i->names[f]);
	r = fd_write_full(fd, i->texts[f], strlen(i->texts[f]));
	if (r == 0 && sysio_fsync(fd) < 0)
		r = -errno;
	if (r == 0 && sysio_renameat(dir_fd, new, dir_fd, i->names[f]) < 0)
		r = -errno;
	if (r < 0)
		(void)sysio_unlinkat(dir_fd, new, 0);
	return r < 0 ? error_set(err, r, "write %s/%s", i->dir, i->names[f]) : 0;
}

static int issue_open_dir(const struct issue *i, struct error *err)
{
	int fd;

	if (sysio_mkdirat(AT_FDCWD, i->dir, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make the directory %s", i->dir);
	fd = sysio_openat(AT_FDCWD, i->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return fd < 0 ? error_set(err, -errno, "open the directory %s", i->dir) : fd;
}

/* The names of Aurae's clients are constants of theirs. */
static int issue_layout(struct issue *i, const char *layout, struct error *err)
{
	i->aurae = layout && str_eq(layout, "aurae");
	if (layout && !i->aurae && !str_eq(layout, "nacre"))
		return error_refuse(err, ERROR_INVALID,
				    "--layout is \"nacre\" or \"aurae\", not \"%s\"", layout);
	i->names[ISSUE_CERT] = xformat(i->aurae ? "_signed.client.%s.crt" : "%s.crt", i->name);
	i->names[ISSUE_KEY] = xformat(i->aurae ? "client.%s.key" : "%s.key", i->name);
	if (i->aurae)
		i->names[ISSUE_CONFIG] = xstrdup("config");
	if (str_eq(i->names[ISSUE_CERT], i->names[ISSUE_CA]))
		return error_refuse(
			err, ERROR_INVALID,
			"a user cannot be called \"%s\": the authority's certificate is "
			"%s",
			i->name, i->names[ISSUE_CA]);
	return 0;
}

/* The client configuration of Aurae, which names files absolutely, and one address of the node. */
static int issue_aurae_config(const struct cli *cli, struct issue *i, struct error *err)
{
	Nacre__V1__AuthorityRequest request = NACRE__V1__AUTHORITY_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__AuthorityResponse *answer = NULL;
	_cleanup_str_ char *dir = realpath(i->dir, NULL);

	if (!dir)
		return error_set(err, -errno, "find %s", i->dir);
	if (strpbrk(dir, "\"\\"))
		return error_refuse(err, ERROR_INVALID,
				    "the configuration of Aurae cannot name the directory %s", dir);
	answer = client_ask_once(&cli->daemon, "/nacre.v1.IdentityService/Authority", &request.base,
				 &nacre__v1__authority_response__descriptor, 0, err);
	if (!answer)
		return err->code;
	i->texts[ISSUE_CONFIG] = xformat(
		"[auth]\nca_crt = \"%s/%s\"\nclient_crt = \"%s/%s\"\nclient_key = \"%s/%s\"\n\n"
		"[system]\nsocket = \"%s\"\n",
		dir, i->names[ISSUE_CA], dir, i->names[ISSUE_CERT], dir, i->names[ISSUE_KEY],
		answer->n_listen > 0 ? answer->listen[0] : "127.0.0.1:" TARGET_PORT);
	return 0;
}

static int issue_options(const struct args *args, struct issue *i, Nacre__V1__IssueRequest *request,
			 struct error *err)
{
	const char *days = args_value(args, "days"), *out = args_value(args, "out");

	if (days && (parse_u32(days, &request->days) < 0 || request->days == 0))
		return error_refuse(err, ERROR_INVALID, "--days: \"%s\" is no number of days",
				    days);
	spec_set(&request->role, args_value(args, "role"));
	i->name = args->operands[0];
	request->name = args->operands[0];
	if (strchr(i->name, '/') || i->name[0] == '.')
		return error_refuse(err, ERROR_INVALID, "\"%s\" is no name for a user", i->name);
	i->dir = out ? out : ".";
	i->replace = args_flag(args, "force");
	i->names[ISSUE_CA] = xstrdup("ca.crt");
	return issue_layout(i, args_value(args, "layout"), err);
}

static void identity_time(uint64_t seconds, char *ret, size_t size)
{
	time_t t = (time_t)seconds;
	struct tm tm;

	if (!gmtime_r(&t, &tm) || strftime(ret, size, "%Y-%m-%d %H:%M UTC", &tm) == 0)
		ret[0] = '\0';
}

static void identity_members(struct json *j, const Nacre__V1__Identity *i)
{
	json_put_string(j, "name", i->name);
	json_put_string(j, "id", i->id);
	json_put_string(j, "serial", i->serial);
	json_put_string(j, "role", i->role);
	json_put_time(j, "issued", i->issued_at * NSEC_PER_SEC);
	json_put_time(j, "begins", i->not_before * NSEC_PER_SEC);
	json_put_time(j, "ends", i->not_after * NSEC_PER_SEC);
	if (i->revoked_at)
		json_put_time(j, "revoked", i->revoked_at * NSEC_PER_SEC);
	else
		json_put_null(j, "revoked");
}

static void issue_tell(const struct cli *cli, const struct issue *i, const Nacre__V1__Identity *who)
{
	struct json j = JSON_INIT(stdout);
	char until[64];

	identity_time(who->not_after, until, sizeof(until));
	if (!cli->json) {
		(void)printf("%s\n%s, %s, until %s: %s/{%s,%s,%s}\n", who->serial, who->id,
			     who->role, until, i->dir, i->names[ISSUE_CA], i->names[ISSUE_CERT],
			     i->names[ISSUE_KEY]);
		return;
	}
	json_put_object(&j, NULL);
	identity_members(&j, who);
	json_put_string(&j, "directory", i->dir);
	json_put_string(&j, "ca", i->names[ISSUE_CA]);
	json_put_string(&j, "certificate", i->names[ISSUE_CERT]);
	json_put_string(&j, "key", i->names[ISSUE_KEY]);
	json_put_end(&j);
}

static int issue_run(const struct cli *cli, struct issue *i, Nacre__V1__IssueRequest *request,
		     struct error *err)
{
	_cleanup_message_ Nacre__V1__IssueResponse *answer = NULL;
	_cleanup_fd_ int dir_fd = issue_open_dir(i, err);
	int r;

	if (dir_fd < 0)
		return dir_fd;
	r = issue_check_files(i, dir_fd, err);
	if (r == 0)
		r = remote_new_key(&i->texts[ISSUE_KEY], &request->public_key.data,
				   &request->public_key.len, err);
	if (r < 0)
		return r;
	answer = client_ask_once(&cli->daemon, "/nacre.v1.IdentityService/Issue", &request->base,
				 &nacre__v1__issue_response__descriptor, 0, err);
	if (!answer)
		return err->code;
	if (!answer->identity)
		return error_refuse(err, ERROR_FAULT, "the daemon's answer has no certificate");
	i->texts[ISSUE_CA] = pem_certificates(answer->authority.data, answer->authority.len);
	i->texts[ISSUE_CERT] =
		pem_text(CERTIFICATE, answer->certificate.data, answer->certificate.len);
	if (i->aurae)
		r = issue_aurae_config(cli, i, err);
	for (size_t f = 0; f < ISSUE_FILE_COUNT && r == 0; f++)
		if (i->texts[f])
			r = issue_write_file(i, dir_fd, (enum issue_file)f, err);
	if (r == 0)
		issue_tell(cli, i, answer->identity);
	return r;
}

int cmd_identity_issue(const struct cli *cli, const struct args *args)
{
	Nacre__V1__IssueRequest request = NACRE__V1__ISSUE_REQUEST__INIT;
	_cleanup_(issue_done) struct issue i = { .name = NULL };
	struct error err = ERROR_INIT;
	int r = issue_options(args, &i, &request, &err);

	if (r == 0)
		r = issue_run(cli, &i, &request, &err);
	free(request.public_key.data);
	return r < 0 ? cli_fail(&err) : 0;
}

/* ---- identity ls ---- */

static const char *identity_state(const Nacre__V1__Identity *i, uint64_t now)
{
	return i->revoked_at ? "revoked" : now >= i->not_after ? "over" : "valid";
}

static void identity_table(const struct cli *cli, const Nacre__V1__ListIdentitiesResponse *list)
{
	static const char *const heads[] = { "NAME", "ROLE", "STATE", "UNTIL", "SERIAL" };
	uint64_t now = clock_real() / NSEC_PER_SEC;
	struct table t = TABLE_INIT(ARRAY_SIZE(heads));

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_add_color(&t, TABLE_BOLD, heads[i]);
	for (size_t i = 0; i < list->n_identities; i++) {
		const Nacre__V1__Identity *who = list->identities[i];
		char until[64];

		identity_time(who->not_after, until, sizeof(until));
		table_add(&t, who->name);
		table_add(&t, who->role);
		table_add(&t, identity_state(who, now));
		table_add(&t, until);
		table_add(&t, who->serial);
	}
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

int cmd_identity_ls(const struct cli *cli, const struct args *args)
{
	Nacre__V1__ListIdentitiesRequest request = NACRE__V1__LIST_IDENTITIES_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ListIdentitiesResponse *list = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	(void)args;
	list = client_ask_once(&cli->daemon, "/nacre.v1.IdentityService/ListIdentities",
			       &request.base, &nacre__v1__list_identities_response__descriptor, 0,
			       &err);
	if (!list)
		return cli_fail(&err);
	if (!cli->json) {
		identity_table(cli, list);
		return 0;
	}
	json_put_array(&j, NULL);
	for (size_t i = 0; i < list->n_identities; i++) {
		json_put_object(&j, NULL);
		identity_members(&j, list->identities[i]);
		json_put_end(&j);
	}
	json_put_end(&j);
	return 0;
}

/* ---- identity revoke, ca ---- */

int cmd_identity_revoke(const struct cli *cli, const struct args *args)
{
	int status = 0;

	for (size_t i = 0; i < args->n_operands; i++) {
		Nacre__V1__RevokeRequest request = NACRE__V1__REVOKE_REQUEST__INIT;
		_cleanup_message_ Nacre__V1__RevokeResponse *answer = NULL;
		struct error err = ERROR_INIT;

		request.target = args->operands[i];
		answer = client_ask_once(&cli->daemon, "/nacre.v1.IdentityService/Revoke",
					 &request.base, &nacre__v1__revoke_response__descriptor, 0,
					 &err);
		if (!answer)
			status = cli_fail(&err);
		else
			(void)puts(request.target);
	}
	return status;
}

static void ca_members(struct json *j, uint64_t active_at, uint64_t retires_at)
{
	if (active_at)
		json_put_time(j, "active", active_at * NSEC_PER_SEC);
	else
		json_put_null(j, "active");
	if (retires_at)
		json_put_time(j, "retires", retires_at * NSEC_PER_SEC);
	else
		json_put_null(j, "retires");
}

static int ca_show(const struct cli *cli, struct error *err)
{
	Nacre__V1__AuthorityRequest request = NACRE__V1__AUTHORITY_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__AuthorityResponse *answer = NULL;
	_cleanup_str_ char *pem = NULL;
	struct json j = JSON_INIT(stdout);

	answer = client_ask_once(&cli->daemon, "/nacre.v1.IdentityService/Authority", &request.base,
				 &nacre__v1__authority_response__descriptor, 0, err);
	if (!answer)
		return err->code;
	pem = pem_certificates(answer->certificate.data, answer->certificate.len);
	if (!cli->json) {
		(void)fputs(pem, stdout);
		return 0;
	}
	json_put_object(&j, NULL);
	json_put_string(&j, "trust_domain", answer->trust_domain);
	json_put_array(&j, "listen");
	for (size_t i = 0; i < answer->n_listen; i++)
		json_put_string(&j, NULL, answer->listen[i]);
	json_put_end(&j);
	json_put_string(&j, "certificate", pem);
	ca_members(&j, answer->active_at, answer->retires_at);
	json_put_end(&j);
	return 0;
}

static void ca_tell_change(const struct cli *cli, const ProtobufCBinaryData *certificate,
			   uint64_t active_at, uint64_t retires_at)
{
	_cleanup_str_ char *pem = pem_certificates(certificate->data, certificate->len);
	struct json j = JSON_INIT(stdout);

	if (!cli->json) {
		(void)fputs(pem, stdout);
		return;
	}
	json_put_object(&j, NULL);
	json_put_string(&j, "certificate", pem);
	ca_members(&j, active_at, retires_at);
	json_put_end(&j);
}

static int ca_rotate(const struct cli *cli, struct error *err)
{
	Nacre__V1__RotateAuthorityRequest request = NACRE__V1__ROTATE_AUTHORITY_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__RotateAuthorityResponse *answer = NULL;
	char until[64];

	answer = client_ask_once(&cli->daemon, "/nacre.v1.IdentityService/RotateAuthority",
				 &request.base, &nacre__v1__rotate_authority_response__descriptor,
				 0, err);
	if (!answer)
		return err->code;
	ca_tell_change(cli, &answer->certificate, answer->active_at, answer->retires_at);
	if (cli->json)
		return 0;
	if (!answer->retires_at) {
		(void)fprintf(stderr,
			      "the authority before had signed nothing that is valid still: "
			      "it is not trusted any more\n");
		return 0;
	}
	identity_time(answer->retires_at, until, sizeof(until));
	(void)fprintf(
		stderr,
		"the authority before stays trusted until %s; who has its root alone needs the "
		"new one by then (nacre identity issue --force)\n",
		until);
	return 0;
}

static int ca_retire(const struct cli *cli, struct error *err)
{
	Nacre__V1__RetireAuthorityRequest request = NACRE__V1__RETIRE_AUTHORITY_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__RetireAuthorityResponse *answer = NULL;

	answer = client_ask_once(&cli->daemon, "/nacre.v1.IdentityService/RetireAuthority",
				 &request.base, &nacre__v1__retire_authority_response__descriptor,
				 0, err);
	if (!answer)
		return err->code;
	ca_tell_change(cli, &answer->certificate, 0, 0);
	return 0;
}

int cmd_identity_ca(const struct cli *cli, const struct args *args)
{
	const char *what = args->n_operands > 0 ? args->operands[0] : "";
	struct error err = ERROR_INIT;
	int r;

	if (str_eq(what, "rotate"))
		r = ca_rotate(cli, &err);
	else if (str_eq(what, "retire"))
		r = ca_retire(cli, &err);
	else if (!*what)
		r = ca_show(cli, &err);
	else
		r = error_refuse(&err, ERROR_INVALID,
				 "identity ca: \"rotate\", \"retire\" or nothing, not \"%.100s\"",
				 what);
	return r < 0 ? cli_fail(&err) : 0;
}
