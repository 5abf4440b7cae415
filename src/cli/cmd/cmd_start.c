/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/cmd/id_file.h"
#include "cli/cmd/pull.h"
#include "cli/options/labels.h"
#include "cli/options/net_words.h"
#include "cli/options/restart_option.h"
#include "cli/options/spec.h"
#include "cli/options/walls.h"
#include "cli/output/alloc.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"

/* The containers of `nacre pod`, taken from the words in place. */
struct pod_containers {
	struct args *args; /* of each, in front of its name */
	const struct arg_option *options;
	struct spec_container *specs;
	Aurae__Runtime__V0__Container **list;
	void **requires; /* what the messages point to; NULL for none */
	Aurae__Runtime__V0__RestartPolicy *restarts;
	size_t n;
};

static void pod_containers_done(struct pod_containers *p)
{
	for (size_t i = 0; i < p->n; i++) {
		spec_container_done(&p->specs[i]);
		args_done(&p->args[i]);
	}
	for (size_t i = 0; i < p->n; i++)
		free(p->requires[i]);
	free(p->requires);
	free(p->restarts);
	free(p->args);
	free(p->specs);
	free(p->list);
}
#define _cleanup_pod_containers_ _cleanup_(pod_containers_done)

/* --requires NAME[:CONDITION], taken apart in place: a list of pointers, with the messages behind.
 */
static void *pod_containers_require(Aurae__Runtime__V0__Container *c, const struct args *a)
{
	Aurae__Runtime__V0__Requirement **list, *messages;
	size_t n = 0, pos = 0;
	char *value;

	while (args_next(a, "requires", &pos))
		n++;
	if (n == 0)
		return NULL;
	list = xrealloc(NULL, n, sizeof(*messages) + sizeof(Aurae__Runtime__V0__Requirement *));
	messages = (Aurae__Runtime__V0__Requirement *)(void *)&list[n];
	pos = 0;
	for (size_t i = 0; i < n && (value = args_next(a, "requires", &pos)); i++) {
		char *colon = strchr(value, ':');

		aurae__runtime__v0__requirement__init(&messages[i]);
		messages[i].container = value;
		if (colon)
			*colon++ = '\0';
		spec_set(&messages[i].condition, colon);
		list[i] = &messages[i];
	}
	c->requires = list;
	c->n_requires = n;
	return list;
}

/* [OPTION…] NAME=IMAGE [WORD…] */
static int pod_containers_add(struct pod_containers *p, char **words, size_t n, struct error *err)
{
	struct spec_container *spec = &p->specs[p->n];
	struct args *a = &p->args[p->n];
	const char *word;
	char *equals;
	int r;

	*a = (struct args)ARGS_INIT;
	*spec = (struct spec_container){ .env = { .list = NULL } };
	p->requires[p->n] = NULL;
	p->list[p->n++] = &spec->message;
	r = args_parse(a, p->options, NULL, 1, (int)n, words, err);
	if (r < 0)
		return error_wrap(err, r, "container %zu", p->n);
	word = a->n_operands > 0 ? a->operands[0] : "";
	equals = strchr(word, '=');
	if (!equals || equals == word || !equals[1])
		return error_refuse(err, ERROR_INVALID,
				    "a container of a pod is NAME=IMAGE [WORD…], not \"%s\"", word);
	*equals = '\0';
	r = spec_container_init(spec, a, err);
	if (r < 0)
		return error_wrap(err, r, "container %s", word);
	spec->message.name = a->operands[0];
	spec->message.image = equals + 1;
	if (args_value(a, "init-ctr") && !str_eq(args_value(a, "init-ctr"), "always"))
		return error_refuse(err, ERROR_INVALID,
				    "--init-ctr is always (at each start), not \"%s\"",
				    args_value(a, "init-ctr"));
	spec->message.init_container = args_value(a, "init-ctr") != NULL;
	r = restart_option_read(&spec->message.restart, &p->restarts[p->n - 1], a, false, err);
	if (r < 0)
		return error_wrap(err, r, "container %s", word);
	p->requires[p->n - 1] = pod_containers_require(&spec->message, a);
	spec->message.stdin = args_flag(a, "interactive");
	spec->message.tty = args_flag(a, "tty");
	return 0;
}

static int pod_containers_init(struct pod_containers *p, const struct cli *cli, char **words,
			       size_t n, struct error *err)
{
	size_t first = 0;
	int r;

	p->options = cli->commands->container_options;
	/* Each takes one word at least, so n are enough. */
	p->args = xrealloc(NULL, n, sizeof(*p->args));
	p->specs = xrealloc(NULL, n, sizeof(*p->specs));
	p->list = xrealloc(NULL, n, sizeof(Aurae__Runtime__V0__Container *));
	p->requires = xrealloc(NULL, n, sizeof(void *));
	p->restarts = xrealloc(NULL, n, sizeof(*p->restarts));
	for (size_t i = 0; i <= n; i++) {
		if (i < n && !str_eq(words[i], "--"))
			continue;
		r = pod_containers_add(p, words + first, i - first, err);
		if (r < 0)
			return r;
		first = i + 1;
	}
	return 0;
}

/*
 * Makes the call; where it finds no image, and that is wanted, the images that are not there are
 * pulled, and it is made again. NULL with *status, told already.
 */
static void *start_ask(const struct cli *cli, const struct args *args, const char *method,
		       const ProtobufCMessage *request, const ProtobufCMessageDescriptor *type,
		       Aurae__Runtime__V0__Container *const *containers, size_t n, int *status)
{
	bool is_pod = type == &aurae__runtime__v0__run_pod_response__descriptor;
	bool quiet = is_pod && args_flag(args, "quiet");
	_cleanup_client_ struct client *client = NULL;
	struct error err = ERROR_INIT;
	enum pull_when when;
	void *answer = NULL;
	int pulled = 0, r = 0;

	*status = CLI_FAILED;
	if (pull_when_read(&when, args_value(args, "pull"), &err) == 0)
		client = client_open(&cli->daemon, &err);
	if (client && is_pod) {
		*status = replace_named(client, args);
		if (*status)
			return NULL;
		*status = CLI_FAILED;
	}
	if (client && !pull_is_first(when))
		answer = client_ask(client, method, request, type, &err);
	if (answer || !client || (err.kind != ERROR_NOT_FOUND && !pull_is_first(when)))
		goto end;
	for (size_t i = 0; i < n && r >= 0; i++) {
		r = pull_image_quietly(client, when, containers[i]->image, quiet);
		pulled += r > 0;
	}
	if (r < 0) {
		*status = -r;
		return NULL;
	}
	if (pulled || pull_is_first(when))
		answer = client_ask(client, method, request, type, &err);
end:
	if (!answer)
		(void)cli_fail(&err);
	return answer;
}

/* What came of its init containers: a status for the first that failed. */
static int pod_report_init(const struct pod_containers *p,
			   const Aurae__Runtime__V0__RunPodResponse *answer)
{
	for (size_t i = 0; i < MIN(p->n, answer->n_containers); i++) {
		const Aurae__Runtime__V0__ContainerStatus *c = answer->containers[i];

		if (!p->list[i]->init_container || p->list[i]->restart || c->exit_code == 0)
			continue;
		(void)cli_complain("the init container %s ended with %d: nothing behind it was "
				   "started",
				   c->name, c->exit_code);
		return c->exit_code;
	}
	return 0;
}

int cmd_pod(const struct cli *cli, const struct args *args)
{
	_cleanup_pod_containers_ struct pod_containers containers = { .n = 0 };
	_cleanup_(spec_nic_done) struct spec_nic nic = { .words = NULL };
	_cleanup_(net_words_done) struct net_words net = { .words = NULL };
	_cleanup_(pod_options_done) struct pod_options shared = { .sysctls = NULL };
	Aurae__Runtime__V0__RunPodRequest request = AURAE__RUNTIME__V0__RUN_POD_REQUEST__INIT;
	Aurae__Runtime__V0__Resources resources;
	Aurae__Runtime__V0__RestartPolicy restart;
	Aurae__Runtime__V0__Meta meta = AURAE__RUNTIME__V0__META__INIT;
	_cleanup_(labels_done) struct labels labels = { .list = NULL };
	_cleanup_message_ Aurae__Runtime__V0__RunPodResponse *answer = NULL;
	_cleanup_fd_ int id_fd = -1;
	struct error err = ERROR_INIT;
	int status;

	if (pod_containers_init(&containers, cli, args->operands, args->n_operands, &err) < 0)
		return cli_fail(&err);
	request.meta = &meta;
	request.containers = containers.list;
	request.n_containers = containers.n;
	request.auto_remove = args_flag(args, "rm");
	if (walls_limits(&request.resources, &resources, args, &err) < 0 ||
	    spec_nic_init(&nic, args, &err) < 0 ||
	    net_words_init(&net, args, &request.pod_network, &err) < 0 ||
	    net_words_networks(&net, args, &request, &err) < 0 ||
	    labels_init(&labels, &meta, args, &err) < 0 ||
	    pod_options_take(&shared, args, &request.security, &err) < 0 ||
	    restart_option_read(&request.restart, &restart, args, args_flag(args, "rm"), &err) < 0)
		return cli_fail(&err);
	if (args_value(args, "security-profile")) {
		shared.message.profile = args_value(args, "security-profile");
		request.security = &shared.message;
	}
	request.nics = nic.list;
	request.n_nics = nic.list[0] ? 1 : 0;
	spec_set(&meta.name, args_value(args, "name"));
	spec_set(&request.parent, args_value(args, "in"));
	spec_set(&request.kind, args_value(args, "kind"));
	request.cold = args_flag(args, "cold");
	if (id_file_open(args, "pod-id-file", &id_fd, &err) < 0)
		return cli_fail(&err);
	answer = start_ask(cli, args, "/aurae.runtime.v0.RuntimeService/RunPod", &request.base,
			   &aurae__runtime__v0__run_pod_response__descriptor, request.containers,
			   request.n_containers, &status);
	if (!answer && id_fd >= 0)
		id_file_drop(args, "pod-id-file");
	if (!answer || id_file_write(id_fd, args, "pod-id-file", answer->id) < 0)
		return answer ? CLI_FAILED : status;
	if (cli->json)
		view_started(answer->id, answer->name, answer->kind, answer->kind_reason);
	else
		(void)puts(answer->id);
	status = spec_report(answer->containers, answer->n_containers);
	return status ? status : pod_report_init(&containers, answer);
}

int cmd_cell(const struct cli *cli, const struct args *args)
{
	_cleanup_(spec_container_done) struct spec_container spec = { .env = { .list = NULL } };
	_cleanup_(net_words_done) struct net_words net = { .words = NULL };
	Aurae__Runtime__V0__RunCellRequest request = AURAE__RUNTIME__V0__RUN_CELL_REQUEST__INIT;
	/* Of which the fields about networks are the same. */
	Aurae__Runtime__V0__RunPodRequest as_pod = AURAE__RUNTIME__V0__RUN_POD_REQUEST__INIT;
	Aurae__Runtime__V0__RestartPolicy restart;
	Aurae__Runtime__V0__Meta meta = AURAE__RUNTIME__V0__META__INIT;
	_cleanup_(labels_done) struct labels labels = { .list = NULL };
	_cleanup_message_ Aurae__Runtime__V0__RunCellResponse *answer = NULL;
	struct error err = ERROR_INIT;
	int status;

	if (spec_container_init(&spec, args, &err) < 0 ||
	    net_words_init(&net, args, &as_pod.pod_network, &err) < 0 ||
	    net_words_networks(&net, args, &as_pod, &err) < 0 ||
	    labels_init(&labels, &meta, args, &err) < 0 ||
	    restart_option_read(&request.restart, &restart, args, false, &err) < 0)
		return cli_fail(&err);
	request.meta = &meta;
	request.containers = spec.list;
	request.n_containers = 1;
	spec_set(&meta.name, args_value(args, "name"));
	spec_set(&request.instance, args_value(args, "in"));
	spec_set(&request.userns, args_value(args, "userns"));
	request.network = as_pod.network;
	request.pod_network = as_pod.pod_network;
	request.further_networks = as_pod.further_networks;
	request.n_further_networks = as_pod.n_further_networks;
	answer = start_ask(cli, args, "/aurae.runtime.v0.RuntimeService/RunCell", &request.base,
			   &aurae__runtime__v0__run_cell_response__descriptor, request.containers,
			   request.n_containers, &status);
	if (!answer)
		return status;
	if (cli->json)
		view_started(answer->id, answer->name, "cell", NULL);
	else
		(void)puts(answer->name);
	return spec_report(answer->containers, answer->n_containers);
}

int cmd_spawn(const struct cli *cli, const struct args *args)
{
	_cleanup_(spec_nic_done) struct spec_nic nic = { .words = NULL };
	Aurae__Runtime__V0__SpawnRequest request = AURAE__RUNTIME__V0__SPAWN_REQUEST__INIT;
	Aurae__Runtime__V0__Meta meta = AURAE__RUNTIME__V0__META__INIT;
	_cleanup_(labels_done) struct labels labels = { .list = NULL };
	_cleanup_message_ Aurae__Runtime__V0__SpawnResponse *answer = NULL;
	Aurae__Runtime__V0__Resources resources;
	struct error err = ERROR_INIT;

	request.meta = &meta;
	spec_set(&meta.name, args_value(args, "name"));
	spec_set(&request.parent, args_value(args, "in"));
	spec_set(&request.kind, args_value(args, "kind"));
	request.cold = args_flag(args, "cold");
	spec_set(&request.network, args_value(args, "network"));
	if (walls_limits(&request.resources, &resources, args, &err) < 0 ||
	    spec_nic_init(&nic, args, &err) < 0 || labels_init(&labels, &meta, args, &err) < 0)
		return cli_fail(&err);
	request.nics = nic.list;
	request.n_nics = nic.list[0] ? 1 : 0;
	answer = client_ask_once(&cli->daemon, "/aurae.runtime.v0.RuntimeService/Spawn",
				 &request.base, &aurae__runtime__v0__spawn_response__descriptor, 0,
				 &err);
	if (!answer)
		return cli_fail(&err);
	if (cli->json) {
		view_started(answer->id, answer->name, answer->kind, answer->kind_reason);
		return 0;
	}
	(void)puts(answer->name);
	/* Why it is of this kind is for a person only. */
	if (isatty(STDERR_FILENO) && !str_empty(answer->kind_reason))
		(void)cli_complain("kind %s: %s", answer->kind, answer->kind_reason);
	return 0;
}
