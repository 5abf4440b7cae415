/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/format/exposition.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits that are enough for any double, and those that are enough for most. */
#define EXPOSITION_DIGITS 17
#define EXPOSITION_FEW_DIGITS 15

void exposition_init(struct exposition *e, struct buf *out)
{
	*e = (struct exposition){ .out = out };
}

void exposition_family(struct exposition *e, const char *name, const char *kind, const char *help)
{
	e->name = name;
	e->kind = kind;
	e->help = help;
	e->has_head = 0;
}

static void exposition_put(struct exposition *e, const char *text, size_t len)
{
	if (e->result == 0)
		e->result = buf_add(e->out, text, len);
}

static void exposition_put_str(struct exposition *e, const char *text)
{
	exposition_put(e, text, strlen(text));
}

static void exposition_put_head(struct exposition *e)
{
	if (e->has_head)
		return;
	e->has_head = 1;
	if (e->result == 0)
		e->result = buf_addf(e->out, "# HELP %s %s\n# TYPE %s %s\n", e->name, e->help,
				     e->name, e->kind);
}

/* Between quotation marks. */
static void exposition_put_value(struct exposition *e, const char *value)
{
	while (*value) {
		size_t plain = strcspn(value, "\\\"\n");

		exposition_put(e, value, plain);
		value += plain;
		if (!*value)
			return;
		exposition_put_str(e, *value == '\n' ? "\\n" : *value == '"' ? "\\\"" : "\\\\");
		value++;
	}
}

static void exposition_put_labels(struct exposition *e, const struct exposition_label *labels,
				  size_t n)
{
	const char *before = "{";

	for (size_t i = 0; i < n; i++) {
		if (!labels[i].value)
			continue;
		exposition_put_str(e, before);
		exposition_put_str(e, labels[i].name);
		exposition_put_str(e, "=\"");
		exposition_put_value(e, labels[i].value);
		exposition_put_str(e, "\"");
		before = ",";
	}
	if (*before == ',')
		exposition_put_str(e, "}");
}

static void exposition_put_number(struct exposition *e, double value)
{
	char text[40];

	if (isnan(value))
		(void)snprintf(text, sizeof(text), "NaN");
	else if (isinf(value))
		(void)snprintf(text, sizeof(text), value > 0 ? "+Inf" : "-Inf");
	else
		(void)snprintf(text, sizeof(text), "%.*g", EXPOSITION_FEW_DIGITS, value);
	if (isfinite(value) && strtod(text, NULL) != value)
		(void)snprintf(text, sizeof(text), "%.*g", EXPOSITION_DIGITS, value);
	exposition_put_str(e, text);
}

void exposition_sample(struct exposition *e, const char *suffix,
		       const struct exposition_label *labels, size_t n_labels, double value)
{
	exposition_put_head(e);
	exposition_put_str(e, e->name);
	exposition_put_str(e, suffix);
	exposition_put_labels(e, labels, n_labels);
	exposition_put_str(e, " ");
	exposition_put_number(e, value);
	exposition_put_str(e, "\n");
}

int exposition_end(struct exposition *e)
{
	exposition_put_str(e, EXPOSITION_END);
	return e->result;
}
