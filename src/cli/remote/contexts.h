/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_CONTEXTS_H
#define NACRE_CLI_CONTEXTS_H

#include <stddef.h>

#include "base/log/error.h"

/*
 * Daemons that the user has given names to: contexts.json in the user's directory of configuration,
 * an object of "current" and "contexts", whose members are named as the options that they stand
 * for.
 */

#define CONTEXTS_MAX 256
#define CONTEXT_NAME_MAX 64

enum context_field {
	CONTEXT_HOST,
	CONTEXT_SOCKET,
	CONTEXT_TLS_CA,
	CONTEXT_TLS_CERT,
	CONTEXT_TLS_KEY,
	CONTEXT_TLS_NAME,
	CONTEXT_FIELD_COUNT
};

struct context {
	char *name;
	char *fields[CONTEXT_FIELD_COUNT]; /* NULL: it has none */
};

struct contexts {
	struct context list[CONTEXTS_MAX];
	size_t n;
	char *current; /* NULL: none */
};

extern const char *const context_field_names[CONTEXT_FIELD_COUNT];

/* Where there is no file there is no context. The object is the caller's. ERROR_INVALID names the
 * file. */
int contexts_load(struct contexts **ret, struct error *err);
int contexts_parse(struct contexts **ret, const char *text, size_t len, const char *name,
		   struct error *err);
/* Whole or not at all. */
int contexts_save(const struct contexts *all, struct error *err);
struct contexts *contexts_free(struct contexts *all);
static inline void contexts_freep(struct contexts **all)
{
	*all = contexts_free(*all);
}

/* NULL: there is none of that name. */
struct context *contexts_find(struct contexts *all, const char *name);
/* A new one behind the others, or NULL: there are as many as can be. */
struct context *contexts_add(struct contexts *all, const char *name);
void contexts_remove(struct contexts *all, struct context *c);
int context_check_name(const char *name, struct error *err);

#endif
