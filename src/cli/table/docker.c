/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/docker.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "cli/table/command.h"

/* ---- tables ---- */

#define PS_TABLE                                                                                   \
	"table {{.ID}}\\t{{.Image}}\\t{{.Command}}\\t{{.RunningFor}}\\t{{.Status}}\\t{{.Ports}}"   \
	"\\t{{.Names}}"
#define IMAGES_TABLE "table {{.Repository}}\\t{{.Tag}}\\t{{.ID}}\\t{{.CreatedSince}}\\t{{.Size}}"

static const char no_build[] =
	"nacre builds no images: build with another tool, then use `load` or `pull`";
static const char no_cluster[] = "nacre is one node, without a cluster of its own";

/* In the place of one of theirs, ours; or why there is none. */
struct docker_command {
	const char *theirs; /* one word, or two */
	const char *ours;   /* words; NULL: none */
	const char *reason;
	/* What is added unless one of the options is there (long names of theirs, between blanks).
	 */
	const char *unless, *option, *value;
	bool ends; /* the last operand is what an option said, or "-" */
};

static const struct docker_command docker_commands[] = {
	{ "ps", "ps", .unless = " quiet format output ", .option = "--format", .value = PS_TABLE },
	{ "images", "image ls", .unless = " quiet format output ", .option = "--format",
	  .value = IMAGES_TABLE },
	{ "stats", "stats", .unless = " no-stream ", .option = "--watch" },
	{ "top", "processes" },
	{ "inspect", "inspect --docker" },
	{ "image inspect", "image inspect --docker" },
	{ "rmi", "image rm" },
	{ "pull", "image pull" },
	{ "push", "image push" },
	{ "tag", "image tag" },
	{ "history", "image history" },
	{ "save", "image export", .ends = true },
	{ "load", "image import", .ends = true },
	{ "pod ls", "ps --kind pod" },
	{ "pod prune", "prune --kind pod" },
	{ "container prune", "prune" },
	{ "system info", "info" },
	{ "network list", "network ls" },
	{ "network remove", "network rm" },
	{ "import", NULL, "use `nacre image import --root --name NAME FILE`" },
	{ "build", NULL, no_build },
	{ "buildx", NULL, no_build },
	{ "builder", NULL, no_build },
	{ "image build", NULL, no_build },
	{ "commit", NULL, "nacre commits no images: build with another tool, then use `load`" },
	{ "compose", NULL, "there is no compose here; `nacre pod` starts containers together" },
	{ "swarm", NULL, no_cluster },
	{ "service", NULL, no_cluster },
	{ "stack", NULL, no_cluster },
	{ "node", NULL, no_cluster },
	{ "config", NULL, "nacre keeps no configs" },
	{ "plugin", NULL, "nacre has no plugins but those of CNI, which its configuration names" },
	{ "manifest", NULL, "nacre makes no manifests; `nacre image inspect` shows them" },
	{ "trust", NULL, "signatures are the policy's affair: see `nacre help image verify`" },
	{ "search", NULL, "registries have no search in common; `nacre image tags` lists tags" },
	{ "checkpoint", NULL, "nacre checkpoints no workloads" },
	{ "generate", NULL, "nacre generates no units and no manifests" },
	{ "play", NULL, "nacre plays no manifests; a kubelet may use it by the CRI" },
	{ "kube", NULL, "nacre plays no manifests; a kubelet may use it by the CRI" },
	{ "machine", NULL, "nacre needs no machine; `nacre vm run` starts machines of others" },
	{ "unshare", NULL, "nacre runs as a daemon with root's privileges" },
	{ "mount", NULL, "`nacre cp` and `nacre export` reach the files of a container" },
	{ "pod create", NULL, "a pod is made with its containers: `nacre pod NAME=IMAGE …`" },
};

/* Other names of theirs for the same. A group whose commands stand alone here has "". */
static const char *const docker_synonyms[][2] = {
	{ "container ls", "ps" },     { "container list", "ps" }, { "container ps", "ps" },
	{ "image ls", "images" },     { "image list", "images" }, { "image rm", "rmi" },
	{ "image remove", "rmi" },    { "image save", "save" },   { "image load", "load" },
	{ "image import", "import" }, { "pod ps", "pod ls" },     { "pod list", "pod ls" },
	{ "container remove", "rm" },
};
static const char *const docker_groups[] = { "container", "pod" };

/* An option of theirs that ours has by another name, or not at all. */
struct docker_option {
	const char *commands; /* of theirs, between blanks; one of two words with a '_' */
	const char *name;
	char letter;
	bool value;
	/* Words, of which the last takes the value; "": nothing has to be said; "-": the value is
	 * the last operand; NULL: there is none. */
	const char *ours;
	const char *reason;
};

#define RUNS " run create "
static const char not_kept[] = "its output is kept in nacre's own log: see `logs`";

static const struct docker_option docker_options[] = {
	{ RUNS "exec ", "workdir", 'w', true, "--cwd", NULL },
	{ RUNS, "net", 0, true, "--network", NULL },
	{ RUNS, "hostname", 'h', true, "--hostname", NULL },
	{ RUNS, "memory-reservation", 0, true, "--memory-low", NULL },
	{ RUNS, "publish-all", 'P', false, NULL, "name each port with -p" },
	{ RUNS, "attach", 'a', true, NULL, "-i and -t say what is passed on" },
	{ RUNS, "gpus", 0, true, NULL, "nacre passes no graphics processor on" },
	{ RUNS, "link", 0, true, NULL, "pods of one network find each other by name" },
	{ RUNS, "network-alias", 0, true, NULL,
	  "pods of one network find each other by name: use --name" },
	{ RUNS, "expose", 0, true, "", NULL },
	{ RUNS, "pod", 0, true, NULL,
	  "a pod is made with its containers: `nacre pod NAME=IMAGE …`" },
	{ RUNS, "cpu-shares", 'c', true, "--cpu-shares", NULL },
	{ RUNS, "expose", 0, true, "", NULL },
	{ RUNS, "disable-content-trust", 0, false, "", NULL },
	{ RUNS, "stop-signal", 0, true, NULL, "the stop signal is the image's; see `kill`" },
	{ RUNS, "stop-timeout", 0, true, NULL, "`stop -t` says it" },
	{ RUNS, "annotation", 0, true, NULL, "-l gives it a label" },
	{ RUNS, "oom-kill-disable", 0, false, NULL, "cgroup v2 has no such switch" },
	{ RUNS, "memory-swappiness", 0, true, NULL, "cgroup v2 has no such file; see --swap" },
	{ RUNS, "systemd", 0, true, NULL,
	  "an init that makes groups wants --security-opt writable-cgroups" },
	{ RUNS, "uidmap", 0, true, NULL, "--userns auto gives it ids of its own" },
	{ RUNS, "gidmap", 0, true, NULL, "--userns auto gives it ids of its own" },
	{ RUNS, "sdnotify", 0, true, NULL, "--health-cmd says when it is ready" },
	{ RUNS, "tls-verify", 0, true, NULL, "hosts.toml says how a registry is reached" },
	{ RUNS, "log-driver", 0, true, NULL, not_kept },
	{ RUNS, "log-opt", 0, true, NULL, not_kept },
	{ RUNS, "platform", 0, true, NULL, "pull the image with --platform first" },
	{ " exec ", "privileged", 0, false, NULL, "a program has what its container has" },
	{ " ps ", "size", 's', false, NULL, "`nacre image df` tells what a container takes" },
	{ " ps images ", "noheading", 0, false, NULL, "use --format" },
	{ " ps ", "sort", 0, true, NULL, "they come in the order in which they were made" },
	{ " images ", "all", 'a', false, "", NULL },
	{ " images ", "quiet", 'q', false, "--quiet --short", NULL },
	{ " images ", "filter", 'f', true, NULL, "use --dangling, --unused, or a PREFIX" },
	{ " rmi ", "force", 'f', false, NULL, "remove what is made of the image first" },
	{ " save ", "output", 'o', true, "-", NULL },
	{ " load ", "input", 'i', true, "-", NULL },
	{ " load ", "quiet", 'q', false, "", NULL },
	{ " export ", "output", 'o', true, "--file", NULL },
	{ " secret_create ", "label", 'l', true, NULL, "a secret has no labels" },
	{ " secret_create ", "driver", 'd', true, NULL, "secrets are files of the node" },
	{ " secret_inspect ", "showsecret", 0, false, NULL, "nothing shows a secret" },
	{ " secret_inspect ", "format", 'f', true, NULL, "use jq on what it prints" },
	{ " volume_export ", "output", 'o', true, "--file", NULL },
	{ " login pull push ", "tls-verify", 0, true, NULL,
	  "hosts.toml says how a registry is reached" },
	{ " login pull push ", "cert-dir", 0, true, NULL, "use certs.d of the node" },
	{ " login ", "verbose", 'v', false, "", NULL },
	{ " logs ", "details", 0, false, NULL, "a line of the log has a time and its text alone" },
	{ " stop restart ", "timeout", 0, true, "--time", NULL },
	{ " stop restart ", "signal", 's', true, NULL,
	  "the stop signal is the image's; see `kill`" },
	{ " inspect ", "format", 'f', true, "--format", NULL },
	{ " inspect ", "type", 0, true, NULL, "use `container inspect` or `image inspect`" },
	{ " inspect ", "size", 's', false, NULL, "`nacre image df` tells what a container takes" },
	{ " image_inspect ", "format", 'f', true, "--format", NULL },
	{ " stats ", "no-stream", 0, false, "", NULL },
	{ " stats ", "all", 'a', false, NULL, "what has ended uses nothing" },
	{ " stats ", "format", 0, true, NULL, "use -o json" },
	{ " history ", "no-trunc", 0, false, "", NULL },
	{ " network_ls ", "no-trunc", 0, false, "", NULL },
	{ " network_create ", "opt", 'o', true, "--opt", NULL },
	{ " image_prune ", "force", 'f', false, "", NULL },
	{ " image_prune ", "filter", 0, true, NULL, "use --older-than" },
	{ " info system_info version ", "format", 'f', true, NULL, "use -o json" },
	{ " network_ls ", "filter", 'f', true, NULL, "use -o json, and jq on what it prints" },
	{ " events ", "since", 0, true, NULL, "events are told from now on, and not kept" },
	{ " events ", "until", 0, true, NULL, "events are told until you interrupt it" },
	{ " events ", "filter", 'f', true, NULL, "use -o json, and jq on what it prints" },
	{ " update ", "restart", 0, true, NULL, "a policy is given when it is made" },
	{ " system_df ", "verbose", 'v', false, NULL, "`nacre image df` says more" },
};

/* ---- words ---- */

static void docker_push(struct docker_line *l, const char *word)
{
	l->words = xrealloc(l->words, l->n + 2, sizeof(*l->words));
	l->words[l->n++] = xstrdup(word);
	l->words[l->n] = NULL;
}

/* The words of a text, parted by blanks. */
static void docker_push_words(struct docker_line *l, const char *text)
{
	_cleanup_str_ char *copy = xstrdup(text);
	char *rest = copy, *word;

	while ((word = strsep(&rest, " ")))
		if (*word)
			docker_push(l, word);
}

bool docker_is_name(const char *argv0)
{
	const char *slash = argv0 ? strrchr(argv0, '/') : NULL;
	const char *name = slash ? slash + 1 : argv0;

	return name && (str_eq(name, "docker") || str_eq(name, "podman"));
}

/* Whether a word is in a list between blanks; of two words both, as one. */
static bool docker_is_in(const char *list, const char *word, size_t len)
{
	_cleanup_str_ char *whole = xformat(" %.*s ", (int)len, word);

	return list && strstr(list, whole);
}

/* ---- one line ---- */

struct docker_parse {
	const struct command_table *all; /* of ours */
	struct docker_line *line;
	const char *program;
	char *theirs;                         /* the command, by its first name */
	const struct docker_command *command; /* NULL: it has ours */
	const struct command *ours;
	size_t n_operands;
	char *last;  /* "-": its value */
	char *given; /* long names of the options, between blanks */
};

static void docker_parse_done(struct docker_parse *p)
{
	free(p->theirs);
	free(p->last);
	free(p->given);
}

static const struct docker_command *docker_find_command(const char *words)
{
	for (size_t i = 0; i < ARRAY_SIZE(docker_commands); i++)
		if (str_eq(docker_commands[i].theirs, words))
			return &docker_commands[i];
	return NULL;
}

static const char *docker_synonym(const char *words)
{
	for (size_t i = 0; i < ARRAY_SIZE(docker_synonyms); i++)
		if (str_eq(docker_synonyms[i][0], words))
			return docker_synonyms[i][1];
	return NULL;
}

static bool docker_is_group(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(docker_groups); i++)
		if (str_eq(docker_groups[i], word))
			return true;
	return false;
}

/* How many words of the line the command has; it is theirs, or ours of that name. */
static size_t docker_take_command(struct docker_parse *p, int argc, char **argv)
{
	_cleanup_str_ char *two = argc > 1 ? xformat("%s %s", argv[0], argv[1]) : xstrdup("");
	const char *known = docker_synonym(two);
	size_t n = 0;

	if (known || docker_find_command(two)) {
		p->theirs = xstrdup(known ? known : two);
		n = 2;
	} else if (argc > 1 && docker_is_group(argv[0]) && argv[1][0] != '-') {
		/* Theirs have these under a group, and most of them beside it too. */
		p->theirs = xstrdup(argv[1]);
		n = 2;
	} else if (docker_find_command(argv[0])) {
		p->theirs = xstrdup(argv[0]);
		n = 1;
	}
	if (p->theirs)
		p->command = docker_find_command(p->theirs);
	if (!n && command_find(p->all, argv, (size_t)argc, &n))
		p->theirs = xstrdup(n == 2 ? two : argv[0]);
	return n;
}

static const struct docker_option *docker_find_option(const struct docker_parse *p,
						      const char *name, size_t len, char letter)
{
	_cleanup_str_ char *command = xstrdup(p->theirs);
	char *blank = strchr(command, ' ');

	if (blank)
		*blank = '_';
	for (size_t i = 0; i < ARRAY_SIZE(docker_options); i++) {
		const struct docker_option *o = &docker_options[i];

		if (!docker_is_in(o->commands, command, strlen(command)))
			continue;
		if (name ? strlen(o->name) == len && strncmp(o->name, name, len) == 0
			 : o->letter && o->letter == letter)
			return o;
	}
	return NULL;
}

static const struct arg_option *docker_find_own(const struct arg_option *table, const char *name,
						size_t len, char letter)
{
	for (const struct arg_option *o = table; o && o->name; o++)
		if (name ? strlen(o->name) == len && strncmp(o->name, name, len) == 0
			 : o->letter && o->letter == letter)
			return o;
	return NULL;
}

static const struct arg_option *docker_find_ours(const struct docker_parse *p, const char *name,
						 size_t len, char letter)
{
	const struct arg_option *o =
		docker_find_own(p->ours ? p->ours->options : NULL, name, len, letter);

	return o ? o : docker_find_own(command_options, name, len, letter);
}

static void docker_note(struct docker_parse *p, const char *name)
{
	char *longer = xformat("%s%s ", p->given ? p->given : " ", name);

	free(p->given);
	p->given = longer;
}

/* One of theirs with its value, or NULL for a flag. */
static int docker_put(struct docker_parse *p, const struct docker_option *o, const char *value,
		      struct error *err)
{
	docker_note(p, o->name);
	if (!o->ours)
		return error_refuse(err, ERROR_UNSUPPORTED, "%s %s: --%s: %s", p->program,
				    p->theirs, o->name, o->reason);
	if (str_eq(o->ours, "-")) {
		free(p->last);
		p->last = xstrdup(value);
		return 0;
	}
	docker_push_words(p->line, o->ours);
	if (value && *o->ours)
		docker_push(p->line, value);
	return 0;
}

/* One of ours, by its long name. */
static void docker_put_own(struct docker_parse *p, const struct arg_option *o, const char *value)
{
	_cleanup_str_ char *word =
		value ? xformat("--%s=%s", o->name, value) : xformat("--%s", o->name);

	docker_note(p, o->name);
	docker_push(p->line, word);
}

static int docker_needs(const struct docker_parse *p, const char *name, struct error *err)
{
	return error_refuse(err, ERROR_INVALID, "%s %s: option --%s needs a value", p->program,
			    p->theirs, name);
}

/* How many words it took beside this one. */
static int docker_long(struct docker_parse *p, const char *word, const char *next,
		       struct error *err)
{
	const char *name = word + 2, *value = strchr(name, '=');
	size_t len = value ? (size_t)(value - name) : strlen(name);
	const struct docker_option *theirs = docker_find_option(p, name, len, 0);
	const struct arg_option *ours = docker_find_ours(p, name, len, 0);
	bool wants = theirs ? theirs->value : ours && ours->value;
	bool takes = wants && !value;
	int r;

	if (!theirs && !ours) {
		docker_push(p->line, word);
		return 0;
	}
	/* Theirs take a truth for a flag. */
	if (!wants && value && str_eq(value + 1, "false"))
		return 0;
	if (!wants && value && !str_eq(value + 1, "true"))
		return error_refuse(err, ERROR_INVALID, "%s %s: option --%.*s is true or false",
				    p->program, p->theirs, (int)len, name);
	if (takes && !next)
		return docker_needs(p, name, err);
	value = !wants ? NULL : takes ? next : value + 1;
	r = theirs ? docker_put(p, theirs, value, err) : 0;
	if (!theirs)
		docker_put_own(p, ours, value);
	return r < 0 ? r : takes;
}

static int docker_short(struct docker_parse *p, const char *word, const char *next,
			struct error *err)
{
	for (const char *at = word + 1; *at; at++) {
		const struct docker_option *theirs = docker_find_option(p, NULL, 0, *at);
		const struct arg_option *ours = docker_find_ours(p, NULL, 0, *at);
		bool wants = theirs ? theirs->value : ours && ours->value;
		const char *value = !wants ? NULL : at[1] ? at + 1 : next;
		int r = 0;

		if (!theirs && !ours)
			return error_refuse(err, ERROR_INVALID, "%s %s: unknown option -%c",
					    p->program, p->theirs, *at);
		if (wants && !value)
			return docker_needs(p, theirs ? theirs->name : ours->name, err);
		if (theirs)
			r = docker_put(p, theirs, value, err);
		else
			docker_put_own(p, ours, value);
		if (r < 0 || wants)
			return r < 0 ? r : !at[1];
	}
	return 0;
}

static int docker_words(struct docker_parse *p, int argc, char **argv, struct error *err)
{
	size_t n_verbatim = p->ours && p->ours->n_verbatim ? p->ours->n_verbatim : (size_t)-1;

	for (int i = 0; i < argc; i++) {
		char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
		int r = 0;

		if (p->n_operands >= n_verbatim || str_eq(word, "--")) {
			for (; i < argc; i++)
				docker_push(p->line, argv[i]);
			break;
		}
		if (word[0] != '-' || !word[1]) {
			docker_push(p->line, word);
			p->n_operands++;
			continue;
		}
		r = word[1] == '-' ? docker_long(p, word, next, err)
				   : docker_short(p, word, next, err);
		if (r < 0)
			return r;
		i += r;
	}
	return 0;
}

/* What stands in front of the command: ours, and of theirs -H of a socket. */
static int docker_before(struct docker_parse *p, int argc, char **argv, int *ret_n,
			 struct error *err)
{
	static const char scheme[] = "unix://";
	int i;

	for (i = 1; i < argc && argv[i][0] == '-' && argv[i][1]; i++) {
		char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
		int r;

		if (str_eq(word, "-v") || str_eq(word, "--version")) {
			docker_push(p->line, "version");
			continue;
		}
		if (str_eq(word, "-H") && next && str_has_prefix(next, scheme)) {
			docker_push(p->line, "--socket");
			docker_push(p->line, next + strlen(scheme));
			i++;
			continue;
		}
		r = word[1] == '-' ? docker_long(p, word, next, err)
				   : docker_short(p, word, next, err);
		if (r < 0)
			return r;
		i += r;
	}
	*ret_n = i;
	return 0;
}

/* What theirs say where nothing else is asked for. */
static void docker_defaults(const struct docker_parse *p, const struct docker_command *c)
{
	_cleanup_str_ char *copy = xstrdup(c->unless);
	char *rest = copy, *word;

	while ((word = strsep(&rest, " ")))
		if (*word && docker_is_in(p->given, word, strlen(word)))
			return;
	docker_push(p->line, c->option);
	if (c->value)
		docker_push(p->line, c->value);
}

/* The command, from the place where it stands. */
static int docker_translate(struct docker_parse *p, int argc, char **argv, struct error *err)
{
	size_t n = docker_take_command(p, argc, argv), first = p->line->n, n_ours;
	const struct docker_command *c = p->command;
	int r;

	if (!p->theirs) {
		/* Nobody knows it, and nacre says so. */
		for (int i = 0; i < argc; i++)
			docker_push(p->line, argv[i]);
		return 0;
	}
	if (c && !c->ours)
		return error_refuse(err, ERROR_UNSUPPORTED, "%s %s: %s", p->program, p->theirs,
				    c->reason);
	docker_push_words(p->line, c ? c->ours : p->theirs);
	p->ours = command_find(p->all, p->line->words + first, p->line->n - first, &n_ours);
	r = docker_words(p, argc - (int)n, argv + n, err);
	if (r < 0)
		return r;
	if (c && c->option)
		docker_defaults(p, c);
	if (c && c->ends)
		docker_push(p->line, p->last ? p->last : "-");
	return 0;
}

int docker_line_init(struct docker_line *l, const struct command_table *all, int argc, char **argv,
		     struct error *err)
{
	_cleanup_(docker_parse_done) struct docker_parse p = { .all = all, .line = l };
	const char *slash = strrchr(argv[0], '/');
	int before, r;

	*l = (struct docker_line){ .words = NULL };
	p.program = slash ? slash + 1 : argv[0];
	p.theirs = xstrdup("");
	docker_push(l, argv[0]);
	r = docker_before(&p, argc, argv, &before, err);
	if (r < 0 || before == argc)
		return r;
	free(p.theirs);
	p.theirs = NULL;
	return docker_translate(&p, argc - before, argv + before, err);
}

void docker_line_done(struct docker_line *l)
{
	strv_free(l->words);
	*l = (struct docker_line){ .words = NULL };
}
