/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/chain.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "plugin/run.h"

#define CHAIN_TRIES 3 /* where a plugin asks for another one */
#define CHAIN_COMPLAINT_MAX 200

/* ---- one plugin ---- */

static bool chain_is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static int chain_find(const struct chain *c, const char *type, char *ret, size_t size,
		      struct error *err)
{
	for (const char *at = c->bin_dirs; *at;) {
		size_t n = strcspn(at, ":");

		if (str_printf(ret, size, "%.*s/%s", (int)n, at, type) >= 0 &&
		    chain_is_program(ret))
			return 0;
		at += n + (at[n] == ':');
	}
	return error_refuse(
		err, ERROR_PRECONDITION,
		"the plugin %s is in none of the directories %.200s (install it, or name "
		"its directory in network.cni.bin_dirs)",
		type, c->bin_dirs);
}

static int chain_env(const struct chain *c, const char *verb, char ***ret)
{
	const struct {
		const char *name, *value;
	} variables[] = {
		{ "CNI_COMMAND", verb },   { "CNI_CONTAINERID", c->container },
		{ "CNI_NETNS", c->netns }, { "CNI_IFNAME", c->interface },
		{ "CNI_ARGS", c->args },   { "CNI_PATH", c->bin_dirs },
		{ "PATH", c->path },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(variables) && r == 0; i++) {
		_cleanup_str_ char *word = NULL;

		if (!*c->container && i >= 1 && i <= 4)
			continue;
		word = str_format("%s=%s", variables[i].name, variables[i].value);
		r = word ? strv_add(ret, word) : -ENOMEM;
	}
	return r;
}

/* Why it failed, in its own words where it has any. */
static int chain_blame(const char *type, const char *verb, struct plugin_run *run,
		       struct error *err)
{
	char said[CNI_ERROR_TEXT_MAX] = "", how[32];
	size_t n = run->complaint.len;

	if (run->signal)
		(void)str_printf(how, sizeof(how), "was killed by signal %d", run->signal);
	else
		(void)str_printf(how, sizeof(how), "failed");
	if (cni_error_parse(said, &run->code, buf_data(&run->out), run->out.len) < 0) {
		n = n < CHAIN_COMPLAINT_MAX ? n : CHAIN_COMPLAINT_MAX;
		if (n > 0)
			(void)str_printf(said, sizeof(said), "%.*s", (int)n,
					 (const char *)buf_data(&run->complaint));
		else
			(void)str_printf(said, sizeof(said), "exit code %d and not a word",
					 run->status);
		str_clean(said);
		if (!str_is_utf8(said, strlen(said)))
			(void)str_copy(said, sizeof(said), "it said what is no text");
	}
	return error_refuse(
		err, run->code == CNI_CODE_TRY_LATER ? ERROR_UNAVAILABLE : ERROR_PRECONDITION,
		"the plugin %s %s in %s: %s", type, how, verb, said);
}

/* Its answer is in run->out. */
static int chain_run_once(const struct chain *c, size_t i, const char *verb, const struct buf *in,
			  struct plugin_run *run, struct error *err)
{
	const char *type = c->config->plugins[i].type;
	_cleanup_strv_ char **env = NULL;
	char path[PATH_MAX];
	int r;

	r = chain_find(c, type, path, sizeof(path), err);
	if (r < 0)
		return r;
	if (chain_env(c, verb, &env) < 0)
		return error_set(err, -ENOMEM, "run the plugin %s", type);
	run->path = path;
	run->env = env;
	run->input = buf_data(in);
	run->input_len = in->len;
	run->limit = c->limit;
	run->cancel_fd = c->cancel_fd;
	r = plugin_run(run, err);
	if (r < 0)
		return r;
	return run->status == 0 ? 0 : chain_blame(type, verb, run, err);
}

static void chain_pause(const struct chain *c)
{
	const struct timespec pause = { .tv_sec = (time_t)(c->pause / NSEC_PER_SEC),
					.tv_nsec = (long)(c->pause % NSEC_PER_SEC) };

	(void)nanosleep(&pause, NULL);
}

static int chain_run(const struct chain *c, size_t i, const char *verb,
		     const struct json_value *previous, const char *attachments,
		     struct plugin_run *run, struct error *err)
{
	_cleanup_(buf_done) struct buf in = BUF_INIT;
	struct error own = ERROR_INIT;
	int r;

	if (cni_request_print(&in, &(struct cni_request){ .config = c->config,
							  .plugin = i,
							  .previous = previous,
							  .offered = c->offered,
							  .attachments = attachments }) < 0)
		return error_set(err, -ENOMEM, "run the plugin %s", c->config->plugins[i].type);
	for (int n = 0;; n++) {
		own = (struct error)ERROR_INIT;
		r = chain_run_once(c, i, verb, &in, run, &own);
		if (own.kind != ERROR_UNAVAILABLE || n + 1 == CHAIN_TRIES)
			break;
		chain_pause(c);
	}
	return r < 0 ? (error_copy(err, &own), r) : 0;
}

/* ---- the chain ---- */

int chain_is_complete(const struct chain *c, struct error *err)
{
	char path[PATH_MAX];
	int r = 0;

	for (size_t i = 0; i < c->config->n_plugins && r == 0; i++)
		r = chain_find(c, c->config->plugins[i].type, path, sizeof(path), err);
	return r;
}

int chain_add(const struct chain *c, struct cni_result *ret, struct error *err)
{
	const struct json_value *previous = NULL;
	int r = 0;

	for (size_t i = 0; i < c->config->n_plugins && r == 0; i++) {
		struct plugin_run run = PLUGIN_RUN_INIT;

		r = chain_run(c, i, "ADD", previous, NULL, &run, err);
		if (r == 0) {
			r = cni_result_parse(ret, c->arena, buf_data(&run.out), run.out.len,
					     c->interface, err);
			if (r < 0)
				(void)error_wrap(err, r, "the answer of the plugin %s to ADD",
						 c->config->plugins[i].type);
			else
				previous = ret->tree;
		}
		plugin_run_done(&run);
	}
	return r;
}

int chain_del(const struct chain *c, const struct json_value *result, struct error *err)
{
	/* Older plugins know no previous result of a DEL. */
	const bool tells = cni_version_compare(c->config->version, "0.4.0") >= 0;
	int r = 0;

	for (size_t i = c->config->n_plugins; i-- > 0 && r == 0;) {
		struct plugin_run run = PLUGIN_RUN_INIT;
		struct error own = ERROR_INIT;

		r = chain_run(c, i, "DEL", tells ? result : NULL, NULL, &run, &own);
		if (r < 0 && run.code == CNI_CODE_UNKNOWN_CONTAINER)
			r = 0;
		if (r < 0)
			(void)error_copy(err, &own);
		plugin_run_done(&run);
	}
	return r;
}

int chain_check(const struct chain *c, const struct json_value *result, struct error *err)
{
	int r = 0;

	if (c->config->disable_check || cni_version_compare(c->config->version, "0.4.0") < 0)
		return 0;
	for (size_t i = 0; i < c->config->n_plugins && r == 0; i++) {
		struct plugin_run run = PLUGIN_RUN_INIT;

		r = chain_run(c, i, "CHECK", result, NULL, &run, err);
		plugin_run_done(&run);
	}
	return r;
}

int chain_gc(const struct chain *c, const char *attachments, struct error *err)
{
	int first = 0;

	if (c->config->disable_gc || cni_version_compare(c->config->version, "1.1.0") < 0)
		return 0;
	for (size_t i = 0; i < c->config->n_plugins; i++) {
		struct plugin_run run = PLUGIN_RUN_INIT;
		struct error own = ERROR_INIT;
		int r = chain_run(c, i, "GC", NULL, attachments, &run, &own);

		if (r < 0 && first == 0) {
			first = r;
			(void)error_copy(err, &own);
		}
		plugin_run_done(&run);
	}
	return first;
}

int chain_status(const struct chain *c, struct error *err)
{
	int r = 0;

	if (cni_version_compare(c->config->version, "1.1.0") < 0)
		return 0;
	for (size_t i = 0; i < c->config->n_plugins && r == 0; i++) {
		struct plugin_run run = PLUGIN_RUN_INIT;

		r = chain_run(c, i, "STATUS", NULL, NULL, &run, err);
		plugin_run_done(&run);
	}
	return r;
}

int chain_version(const struct chain *c, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < c->config->n_plugins && r == 0; i++) {
		struct plugin_run run = PLUGIN_RUN_INIT;
		const char *type = c->config->plugins[i].type;

		r = chain_run(c, i, "VERSION", NULL, NULL, &run, err);
		if (r == 0 && !cni_version_is_supported(buf_data(&run.out), run.out.len,
							c->config->version, c->arena))
			r = error_refuse(
				err, ERROR_PRECONDITION,
				"the plugin %s does not speak version %s of CNI, which the "
				"configuration of the network %s names (cniVersion)",
				type, c->config->version, c->config->name);
		plugin_run_done(&run);
	}
	return r;
}
