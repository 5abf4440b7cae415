/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a pull is at, a line for each layer. On a terminal the lines stand below one another and are
 * drawn over again; else each is written once, when its layer has its place.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/alloc.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/credentials.h"
#include "cli/handlers.h"
#include "cli/output.h"
#include "cli/pull.h"
#include "cli/spec.h"
#include "cli/text.h"
#include "cli/view.h"

#define PULL_PERIOD (100 * NSEC_PER_MSEC)
#define PULL_LINES_MAX 16 /* of layers at once on a terminal: those that something happens to */
#define PULL_BAR 24
#define PULL_LAYERS_MAX 1024
#define PULL_ID_DIGITS 12 /* so many are meant as an id */
#define PULL_CREDENTIALS_MAX ((size_t)4 << 20)

struct pull_line {
	char digest[TEXT_SIZE];
	char state[16];
	uint64_t loaded, size;
	uint64_t first; /* bytes that were there when it began */
	nsec_t begun;
	bool there;
};

struct pull {
	struct client_call call;
	bool json, live, pulled;
	bool quiet; /* its id is not what was asked for */
	nsec_t due;
	unsigned n_drawn;
	struct pull_line *lines;
	unsigned n_lines;
};

/* ---- on a terminal ---- */

static void pull_wipe(struct pull *p)
{
	if (p->n_drawn)
		(void)fprintf(stderr, "\033[%uA\r\033[J", p->n_drawn);
	p->n_drawn = 0;
}

/* "31.4 MB/s, 12 s left"; "" where that is not known yet. */
static void pull_rate(char *to, size_t size, const struct pull_line *l, nsec_t now)
{
	nsec_t passed = now > l->begun ? now - l->begun : 0;
	double rate;
	char text[TEXT_SIZE];

	*to = '\0';
	if (passed < NSEC_PER_SEC / 2 || l->loaded <= l->first)
		return;
	rate = (double)(l->loaded - l->first) * 1e9 / (double)passed;
	text_bytes(text, (uint64_t)rate);
	(void)str_printf(to, size, "%s/s, %.0f s left", text,
			 (double)(l->size - MIN(l->loaded, l->size)) / rate);
}

static void pull_draw_line(const struct pull *p, unsigned k, nsec_t now)
{
	const struct pull_line *l = &p->lines[k];
	unsigned full = l->size ? (unsigned)(l->loaded * PULL_BAR / l->size) : PULL_BAR;
	char bar[PULL_BAR + 1], size[TEXT_SIZE], rate[64] = "", line[256];
	unsigned width = output_width(STDERR_FILENO);

	for (unsigned i = 0; i < PULL_BAR; i++)
		bar[i] = i < full ? '#' : '.';
	bar[PULL_BAR] = '\0';
	text_bytes(size, l->size);
	if (str_eq(l->state, "loading"))
		pull_rate(rate, sizeof(rate), l, now);
	(void)str_printf(line, sizeof(line), "%3u/%u %s [%s] %9s %s", k + 1, p->n_lines, l->digest,
			 bar, size, *rate ? rate : l->state);
	if (width > 1)
		line[text_prefix(line, width - 1)] = '\0';
	(void)fprintf(stderr, "%s\n", line);
}

static void pull_draw(struct pull *p)
{
	nsec_t now = clock_mono();
	unsigned n = 0;

	if (!p->live || now < p->due)
		return;
	pull_wipe(p);
	for (unsigned k = 0; k < p->n_lines && n < PULL_LINES_MAX; k++) {
		if (!*p->lines[k].state || str_eq(p->lines[k].state, "unpacked"))
			continue;
		pull_draw_line(p, k, now);
		n++;
	}
	p->n_drawn = n;
	p->due = now + PULL_PERIOD;
	(void)fflush(stderr);
}

/* ---- what comes ---- */

static void pull_say(struct pull *p, const char *text)
{
	pull_wipe(p);
	(void)fprintf(stderr, "%s\n", text);
	p->due = 0;
}

static void pull_layer_ends(struct pull *p, unsigned k)
{
	const struct pull_line *l = &p->lines[k];
	char size[TEXT_SIZE];
	_cleanup_str_ char *text = NULL;

	text_bytes(size, l->size);
	text = xformat("%3u/%u %s %s %s", k + 1, p->n_lines, l->digest, size,
		       l->there ? "was there" : "pulled");
	pull_say(p, text);
}

static void pull_layer_json(const Nacre__V1__PullLayer *m)
{
	struct json j = { .to = stdout, .compact = true };

	json_put_object(&j, NULL);
	json_put_string(&j, "event", "layer");
	json_put_unsigned(&j, "number", m->number);
	json_put_unsigned(&j, "count", m->count);
	json_put_string(&j, "digest", m->digest);
	json_put_string(&j, "state", m->state);
	json_put_unsigned(&j, "loaded", m->loaded);
	json_put_unsigned(&j, "size", m->size);
	json_put_bool(&j, "there", m->there);
	json_put_end(&j);
	(void)fflush(stdout);
}

static void pull_layer(struct pull *p, const Nacre__V1__PullLayer *m)
{
	struct pull_line *l;

	if (p->json)
		pull_layer_json(m);
	if (p->json || m->count > PULL_LAYERS_MAX || m->number == 0 || m->number > m->count)
		return;
	if (m->count > p->n_lines) {
		p->lines = xrealloc(p->lines, m->count, sizeof(*p->lines));
		for (; p->n_lines < m->count; p->n_lines++)
			p->lines[p->n_lines] = (struct pull_line){ .size = 0 };
	}
	l = &p->lines[m->number - 1];
	if (str_eq(m->state, "loading") && !str_eq(l->state, "loading")) {
		l->begun = clock_mono();
		l->first = m->loaded;
	}
	text_short_id(l->digest, m->digest);
	(void)str_copy(l->state, sizeof(l->state), m->state);
	l->loaded = m->loaded;
	l->size = m->size;
	l->there = m->there;
	if (str_eq(l->state, "unpacked"))
		pull_layer_ends(p, m->number - 1);
	pull_draw(p);
}

static void pull_note(struct pull *p, const char *text)
{
	struct json j = { .to = stdout, .compact = true };

	if (!p->json) {
		pull_say(p, text);
		return;
	}
	json_put_object(&j, NULL);
	json_put_string(&j, "event", "note");
	json_put_string(&j, "text", text);
	json_put_end(&j);
	(void)fflush(stdout);
}

static void pull_ends(struct pull *p, const Nacre__V1__Image *image)
{
	struct json j = { .to = stdout, .compact = true };

	pull_wipe(p);
	p->pulled = true;
	if (p->quiet)
		return;
	if (!p->json) {
		(void)puts(image->id);
		return;
	}
	json_put_object(&j, NULL);
	json_put_string(&j, "event", "image");
	view_image(&j, "image", image);
	json_put_end(&j);
}

static void pull_message(struct client_call *call, const ProtobufCMessage *message)
{
	struct pull *p = container_of(call, struct pull, call);
	const Nacre__V1__PullResponse *m = (const Nacre__V1__PullResponse *)message;

	if (*m->note)
		pull_note(p, m->note);
	if (m->layer)
		pull_layer(p, m->layer);
	if (m->image)
		pull_ends(p, m->image);
}

/* ---- the command ---- */

/* The host of a reference, as credentials are kept for it. The caller frees it. */
static char *pull_host(const char *image)
{
	size_t n = strcspn(image, "/");

	if (image[n] && (memchr(image, '.', n) || memchr(image, ':', n) ||
			 (n == strlen("localhost") && strncmp(image, "localhost", n) == 0)))
		return xformat("%.*s", (int)n, image);
	return xstrdup("docker.io");
}

/* 0, or an error: then nothing is asked. */
static int pull_auth(Nacre__V1__RegistryAuth *auth, struct arena *arena, const char *host,
		     struct error *err)
{
	struct credentials c;
	int r;

	r = credentials_find(&c, arena, host, err);
	if (r <= 0)
		return r;
	spec_set(&auth->host, (char *)(uintptr_t)c.host);
	spec_set(&auth->username, (char *)(uintptr_t)c.username);
	spec_set(&auth->password, (char *)(uintptr_t)c.password);
	spec_set(&auth->identity_token, (char *)(uintptr_t)c.identity_token);
	spec_set(&auth->registry_token, (char *)(uintptr_t)c.registry_token);
	return 1;
}

/* "linux/arm64/v8", "arm64/v8" or "arm64". */
static int pull_platform(Nacre__V1__PullRequest *q, char *platform)
{
	char *slash;

	if (!platform)
		return 0;
	if (str_has_prefix(platform, "linux/"))
		platform += strlen("linux/");
	slash = strchr(platform, '/');
	if (slash)
		*slash = '\0';
	q->architecture = platform;
	if (slash)
		q->variant = slash + 1;
	return *platform ? 0 : cli_complain("--platform wants an architecture, such as arm64/v8");
}

static int pull_run(struct client *client, struct pull *p, const ProtobufCMessage *request)
{
	struct error err;

	client_call_start(client, &p->call, "/nacre.v1.ImageService/Pull", request);
	(void)client_call_wait(client, &p->call);
	err = p->call.err;
	client_call_done(&p->call);
	pull_wipe(p);
	free(p->lines);
	if (err.code)
		return cli_fail(&err);
	return p->pulled ? 0 : cli_complain("the daemon did not tell which image this is");
}

/* One image, with the credentials that the user has for its registry. The exit status. */
static int pull_one(struct client *client, struct pull *pull, Nacre__V1__PullRequest *request)
{
	Nacre__V1__RegistryAuth auth = NACRE__V1__REGISTRY_AUTH__INIT, *auths[] = { &auth };
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(PULL_CREDENTIALS_MAX);
	_cleanup_str_ char *host = pull_host(request->image);
	const char *term = getenv("TERM");
	struct error err = ERROR_INIT;
	int r;

	pull->call = (struct client_call){ .type = &nacre__v1__pull_response__descriptor,
					   .on_message = pull_message };
	pull->live = !pull->json && isatty(STDERR_FILENO) && term && !str_eq(term, "dumb");
	r = pull_auth(&auth, &arena, host, &err);
	if (r < 0)
		return cli_fail(&err);
	request->auths = auths;
	request->n_auths = r > 0 ? 1 : 0;
	return pull_run(client, pull, &request->base);
}

int cmd_image_pull(const struct cli *cli, const struct args *args)
{
	Nacre__V1__PullRequest request = NACRE__V1__PULL_REQUEST__INIT;
	_cleanup_str_ char *platform = NULL;
	struct pull pull = { .json = cli->json };
	_cleanup_client_ struct client *client = NULL;
	struct error err = ERROR_INIT;
	int r;

	platform = args_value(args, "platform") ? xstrdup(args_value(args, "platform")) : NULL;
	r = pull_platform(&request, platform);
	if (r != 0)
		return r;
	request.image = args->operands[0];
	client = client_open(cli->socket, &err);
	if (!client)
		return cli_fail(&err);
	return pull_one(client, &pull, &request);
}

/* ---- for who runs something ---- */

int pull_when_read(enum pull_when *ret, const char *word, struct error *err)
{
	static const char *const words[PULL_WHEN_COUNT] = { "missing", "always", "never" };

	*ret = PULL_MISSING;
	for (size_t i = 0; word && i < PULL_WHEN_COUNT; i++) {
		if (!str_eq(words[i], word))
			continue;
		*ret = (enum pull_when)i;
		return 0;
	}
	return word ? error_refuse(err, ERROR_INVALID,
				   "--pull: \"%.40s\" is none of missing, always, never", word)
		    : 0;
}

/* Whether it names something that a registry can be asked for: no digest or id alone. */
static bool pull_is_name(const char *image)
{
	size_t n = strspn(image, "0123456789abcdef");

	return *image && !str_has_prefix(image, "sha256:") && (image[n] || n < PULL_ID_DIGITS);
}

static bool pull_is_missing(struct client *client, const char *image)
{
	Nacre__V1__InspectImageRequest request = NACRE__V1__INSPECT_IMAGE_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__InspectImageResponse *answer = NULL;
	struct error err = ERROR_INIT;

	request.image = (char *)(uintptr_t)image;
	answer = client_ask(client, "/nacre.v1.ImageService/Inspect", &request.base,
			    &nacre__v1__inspect_image_response__descriptor, &err);
	return !answer && err.kind == ERROR_NOT_FOUND;
}

int pull_image(struct client *client, enum pull_when when, const char *image)
{
	Nacre__V1__PullRequest request = NACRE__V1__PULL_REQUEST__INIT;
	struct pull pull = { .quiet = true };
	int status;

	if (when == PULL_NEVER || !pull_is_name(image) ||
	    (when == PULL_MISSING && !pull_is_missing(client, image)))
		return 0;
	request.image = (char *)(uintptr_t)image;
	status = pull_one(client, &pull, &request);
	return status ? -status : 1;
}
