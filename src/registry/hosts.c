/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/hosts.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "registry/limits.h"
#include "wire/message/fetchmsg.h"

#define HOSTS_WORD_MAX 4096
#define HOSTS_DIAL_MAX 3600000
#define HOSTS_BARE "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

struct hosts_reader {
	const char *p, *end;
	unsigned line;
	struct arena *arena;
	struct hosts *to;
	struct hosts_entry *entry; /* where keys go */
	bool in_header;            /* they are names of headers there */
	uint32_t seen;             /* keys of this table, by their row */
	const char *word;          /* the last string */
};

static int hosts_refuse(struct hosts_reader *r, struct error *err, const char *why)
{
	return error_refuse(err, ERROR_INVALID, "hosts.toml, line %u: %s", r->line, why);
}

static int hosts_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "read hosts.toml");
}

static bool hosts_at(const struct hosts_reader *r, char c)
{
	return r->p < r->end && *r->p == c;
}

static void hosts_blanks(struct hosts_reader *r)
{
	while (hosts_at(r, ' ') || hosts_at(r, '\t'))
		r->p++;
	if (hosts_at(r, '#'))
		while (r->p < r->end && *r->p != '\n')
			r->p++;
}

/* Over ends of lines as well, as within an array. */
static void hosts_gap(struct hosts_reader *r)
{
	for (;;) {
		hosts_blanks(r);
		if (hosts_at(r, '\r') && r->p + 1 < r->end && r->p[1] == '\n')
			r->p++;
		if (!hosts_at(r, '\n'))
			return;
		r->p++;
		r->line++;
	}
}

static int hosts_end_of_line(struct hosts_reader *r, struct error *err)
{
	const char *before = r->p;

	hosts_blanks(r);
	if (r->p == r->end || hosts_at(r, '\n') || hosts_at(r, '\r'))
		return 0;
	r->p = before;
	return hosts_refuse(r, err, "something behind the value");
}

static int hosts_escape(char c)
{
	static const char from[] = "\"\\tnr/", to[] = "\"\\\t\n\r/";
	const char *at = c ? strchr(from, c) : NULL;

	return at ? to[at - from] : -1;
}

/* "..." with escapes, or '...' without; on one line. */
static int hosts_string(struct hosts_reader *r, struct error *err)
{
	char word[HOSTS_WORD_MAX];
	char quote = *r->p++;
	size_t n = 0;

	while (r->p < r->end && *r->p != quote && *r->p != '\n') {
		int c = (unsigned char)*r->p++;

		if (c == '\\' && quote == '"')
			c = r->p < r->end ? hosts_escape(*r->p++) : -1;
		if (c <= 0 || n + 1 >= sizeof(word))
			return hosts_refuse(r, err, "a string that is not understood");
		word[n++] = (char)c;
	}
	if (!hosts_at(r, quote))
		return hosts_refuse(r, err, "a string without its end");
	r->p++;
	word[n] = '\0';
	if (!str_is_utf8(word, n) || !str_is_clean(word))
		return hosts_refuse(r, err, "a string that is no plain text");
	r->word = arena_strdup(r->arena, word);
	return r->word ? 0 : hosts_memory(err);
}

static int hosts_text(struct hosts_reader *r, struct error *err)
{
	if (!hosts_at(r, '"') && !hosts_at(r, '\''))
		return hosts_refuse(r, err, "a string is needed");
	return hosts_string(r, err);
}

static int hosts_key(struct hosts_reader *r, struct error *err)
{
	size_t n = 0;

	if (hosts_at(r, '"') || hosts_at(r, '\''))
		return hosts_string(r, err);
	while (r->p + n < r->end && strchr(HOSTS_BARE, r->p[n]) && r->p[n])
		n++;
	if (n == 0)
		return hosts_refuse(r, err, "a key is needed");
	r->word = arena_strndup(r->arena, r->p, n);
	r->p += n;
	return r->word ? 0 : hosts_memory(err);
}

/* ---- lists ---- */

/* A list of at most HOSTS_LIST_MAX, ended by NULL. */
static int hosts_add(struct hosts_reader *r, const char ***list, size_t *n, const char *word,
		     struct error *err)
{
	if (*n == HOSTS_LIST_MAX)
		return hosts_refuse(r, err, "a list that is too long");
	if (!*list)
		*list = arena_zalloc(r->arena, HOSTS_LIST_MAX + 1, sizeof(**list));
	if (!*list)
		return hosts_memory(err);
	(*list)[(*n)++] = word;
	return 0;
}

typedef int (*hosts_element)(struct hosts_reader *r, void *userdata, struct error *err);

static int hosts_array(struct hosts_reader *r, hosts_element element, void *userdata,
		       struct error *err)
{
	int code;

	for (r->p++;; r->p++) {
		hosts_gap(r);
		if (hosts_at(r, ']'))
			break;
		code = element(r, userdata, err);
		if (code < 0)
			return code;
		hosts_gap(r);
		if (hosts_at(r, ']'))
			break;
		if (!hosts_at(r, ','))
			return hosts_refuse(r, err, "a list without its end");
	}
	r->p++;
	return 0;
}

static int hosts_one_or_more(struct hosts_reader *r, hosts_element element, void *userdata,
			     struct error *err)
{
	return hosts_at(r, '[') ? hosts_array(r, element, userdata, err)
				: element(r, userdata, err);
}

/* ---- values ---- */

static int hosts_bool(struct hosts_reader *r, bool *ret, struct error *err)
{
	static const char *const words[] = { "false", "true" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t len = strlen(words[i]);

		if ((size_t)(r->end - r->p) >= len && strncmp(r->p, words[i], len) == 0) {
			r->p += len;
			*ret = i == 1;
			return 0;
		}
	}
	return hosts_refuse(r, err, "true or false is needed");
}

static int hosts_capability(struct hosts_reader *r, void *userdata, struct error *err)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} names[] = { { "pull", FETCH_CAN_PULL },
		      { "resolve", FETCH_CAN_RESOLVE },
		      { "push", FETCH_CAN_PUSH } };
	int code;

	code = hosts_text(r, err);
	if (code < 0)
		return code;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (str_eq(names[i].name, r->word)) {
			r->entry->can |= names[i].bit;
			return 0;
		}
	}
	return hosts_refuse(r, err, "capabilities are \"pull\", \"resolve\" and \"push\"");
}

static int hosts_take_capabilities(struct hosts_reader *r, struct error *err)
{
	r->entry->can = 0;
	return hosts_one_or_more(r, hosts_capability, NULL, err);
}

static int hosts_ca(struct hosts_reader *r, void *userdata, struct error *err)
{
	int code = hosts_text(r, err);

	return code == 0 ? hosts_add(r, &r->entry->ca, &r->entry->n_ca, r->word, err) : code;
}

static int hosts_take_ca(struct hosts_reader *r, struct error *err)
{
	return hosts_one_or_more(r, hosts_ca, NULL, err);
}

struct hosts_pair {
	const char *words[2];
	size_t n;
};

static int hosts_pair_word(struct hosts_reader *r, void *userdata, struct error *err)
{
	struct hosts_pair *pair = userdata;
	int code = hosts_text(r, err);

	if (code == 0 && pair->n == 2)
		code = hosts_refuse(r, err, "a client is a certificate and its key");
	if (code == 0)
		pair->words[pair->n++] = r->word;
	return code;
}

/* "file" that has both, or ["certificate", "key"] where the key may be "" for the same. */
static int hosts_client(struct hosts_reader *r, void *userdata, struct error *err)
{
	struct hosts_pair pair = { .n = 0 };
	int code;

	code = hosts_one_or_more(r, hosts_pair_word, &pair, err);
	if (code == 0 && pair.n == 0)
		code = hosts_refuse(r, err, "a client is a certificate and its key");
	if (code == 0)
		code = hosts_add(r, &r->entry->client, &r->entry->n_client, pair.words[0], err);
	if (code == 0)
		code = hosts_add(r, &r->entry->client, &r->entry->n_client,
				 pair.n == 2 && *pair.words[1] ? pair.words[1] : pair.words[0],
				 err);
	return code;
}

static int hosts_take_client(struct hosts_reader *r, struct error *err)
{
	return hosts_one_or_more(r, hosts_client, NULL, err);
}

static int hosts_take_server(struct hosts_reader *r, struct error *err)
{
	int code = hosts_text(r, err);

	if (code == 0)
		r->entry->url = r->word;
	return code;
}

static int hosts_take_skip_verify(struct hosts_reader *r, struct error *err)
{
	return hosts_bool(r, &r->entry->skip_verify, err);
}

static int hosts_take_override_path(struct hosts_reader *r, struct error *err)
{
	return hosts_bool(r, &r->entry->override_path, err);
}

/* As Go writes durations, with one unit: "500ms", "10s", "2m". */
static int hosts_take_dial_timeout(struct hosts_reader *r, struct error *err)
{
	uint64_t n = 0;
	const char *p;
	int code = hosts_text(r, err);

	if (code < 0)
		return code;
	for (p = r->word; *p >= '0' && *p <= '9' && n <= HOSTS_DIAL_MAX; p++)
		n = n * 10 + (uint64_t)(*p - '0');
	if (str_eq(p, "s"))
		n *= 1000;
	else if (str_eq(p, "m"))
		n *= 60000;
	else if (!str_eq(p, "ms"))
		n = 0;
	if (n == 0 || n > HOSTS_DIAL_MAX)
		return hosts_refuse(r, err, "a duration is \"500ms\", \"10s\" or \"2m\"");
	r->entry->dial_ms = (uint32_t)n;
	return 0;
}

static const struct {
	const char *name;
	bool top; /* only outside of the tables */
	int (*take)(struct hosts_reader *r, struct error *err);
} hosts_keys[] = {
	{ "server", true, hosts_take_server },
	{ "capabilities", false, hosts_take_capabilities },
	{ "ca", false, hosts_take_ca },
	{ "client", false, hosts_take_client },
	{ "skip_verify", false, hosts_take_skip_verify },
	{ "override_path", false, hosts_take_override_path },
	{ "dial_timeout", false, hosts_take_dial_timeout },
};

/* ---- tables ---- */

static int hosts_header_value(struct hosts_reader *r, void *userdata, struct error *err)
{
	const char *name = userdata;
	const char *line;
	int code = hosts_text(r, err);

	if (code < 0)
		return code;
	line = arena_printf(r->arena, "%s: %s", name, r->word);
	if (!line)
		return hosts_memory(err);
	return hosts_add(r, &r->entry->headers, &r->entry->n_headers, line, err);
}

static int hosts_take_header(struct hosts_reader *r, char *name, struct error *err)
{
	if (!*name || name[strspn(name, HOSTS_BARE)])
		return hosts_refuse(r, err, "no name of a header");
	return hosts_one_or_more(r, hosts_header_value, name, err);
}

static int hosts_assignment(struct hosts_reader *r, struct error *err)
{
	size_t i = 0;
	char *name;
	int code;

	code = hosts_key(r, err);
	if (code < 0)
		return code;
	name = arena_strdup(r->arena, r->word);
	if (!name)
		return hosts_memory(err);
	hosts_blanks(r);
	if (!hosts_at(r, '='))
		return hosts_refuse(r, err, "a key without '='");
	r->p++;
	hosts_blanks(r);
	if (r->in_header)
		return hosts_take_header(r, name, err);
	while (i < ARRAY_SIZE(hosts_keys) && !str_eq(hosts_keys[i].name, name))
		i++;
	if (i == ARRAY_SIZE(hosts_keys) || (hosts_keys[i].top && r->entry != &r->to->server))
		return error_refuse(err, ERROR_INVALID,
				    "hosts.toml, line %u: the key \"%.60s\" is not known here",
				    r->line, name);
	if (r->seen & (1U << i))
		return hosts_refuse(r, err, "a key for the second time");
	r->seen |= 1U << i;
	return hosts_keys[i].take(r, err);
}

static int hosts_enter_host(struct hosts_reader *r, struct error *err)
{
	struct hosts *to = r->to;

	if (!to->entries)
		to->entries = arena_zalloc(r->arena, REGISTRY_HOSTS_MAX, sizeof(*to->entries));
	if (!to->entries)
		return hosts_memory(err);
	if (to->n_entries == REGISTRY_HOSTS_MAX)
		return hosts_refuse(r, err, "too many hosts");
	for (size_t i = 0; i < to->n_entries; i++)
		if (str_eq(to->entries[i].url, r->word))
			return hosts_refuse(r, err, "a host for the second time");
	r->entry = &to->entries[to->n_entries++];
	r->entry->url = r->word;
	r->entry->can = FETCH_CAN_FLAGS;
	r->seen = 0;
	return 0;
}

/* [header], [host."URL"] or [host."URL".header]. */
static int hosts_table(struct hosts_reader *r, struct error *err)
{
	const char *words[3];
	size_t n = 0;
	int code;

	do {
		r->p++;
		hosts_blanks(r);
		code = n < 3 ? hosts_key(r, err)
			     : hosts_refuse(r, err, "a table that is not known");
		if (code < 0)
			return code;
		words[n++] = r->word;
		hosts_blanks(r);
	} while (hosts_at(r, '.'));
	if (!hosts_at(r, ']'))
		return hosts_refuse(r, err, "a table without ']'");
	r->p++;
	r->in_header = str_eq(words[n - 1], "header") && n != 2;
	if (n == 1 && r->in_header && !r->to->n_entries && r->entry == &r->to->server)
		return 0;
	if (!str_eq(words[0], "host") || n < 2 || (n == 3 && !r->in_header))
		return hosts_refuse(r, err, "a table that is not known");
	r->word = words[1];
	if (n == 2)
		return hosts_enter_host(r, err);
	if (!r->entry->url || r->entry == &r->to->server || !str_eq(r->entry->url, words[1]))
		return hosts_refuse(r, err, "headers of another host than the one above");
	return 0;
}

int hosts_parse(struct hosts *ret, struct arena *arena, const char *text, size_t len,
		struct error *err)
{
	struct hosts hosts = { .server.can = FETCH_CAN_FLAGS };
	struct hosts_reader r = { .p = text,
				  .end = text + len,
				  .line = 1,
				  .arena = arena,
				  .to = &hosts,
				  .entry = &hosts.server };
	int code;

	if (memchr(text, '\0', len))
		return hosts_refuse(&r, err, "a NUL");
	for (;;) {
		hosts_gap(&r);
		if (r.p == r.end)
			break;
		code = hosts_at(&r, '[') ? hosts_table(&r, err) : hosts_assignment(&r, err);
		if (code == 0)
			code = hosts_end_of_line(&r, err);
		if (code < 0)
			return code;
	}
	*ret = hosts;
	return 0;
}
