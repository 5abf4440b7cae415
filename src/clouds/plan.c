/* SPDX-License-Identifier: Apache-2.0 */
#include "clouds/plan.h"

#include <errno.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"

#define PRICE_DIGITS 6

bool cloud_word_is_valid(const char *word)
{
	size_t n = strlen(word);

	for (const char *c = word; *c; c++)
		if (*c <= ' ' || *c > '~' || strchr("\"',\\", *c))
			return false;
	return n > 0 && n <= CLOUD_WORD_MAX;
}

/* "0.0208" in millionths. */
static int cloud_price_parse(const char *text, uint64_t *ret)
{
	size_t whole = strcspn(text, "."), digits = text[whole] ? strlen(text + whole + 1) : 0;
	char padded[32];

	if (whole == 0 || whole > 9 || (text[whole] && digits == 0) || digits > PRICE_DIGITS)
		return -EINVAL;
	(void)str_printf(padded, sizeof(padded), "%.*s%s%.*s", (int)whole, text,
			 digits ? text + whole + 1 : "", (int)(PRICE_DIGITS - digits), "000000");
	return parse_u64(padded, 0, UINT64_MAX, ret);
}

int cloud_type_parse(const char *text, struct cloud_type *ret)
{
	char copy[160], *cpus, *memory, *price;
	uint64_t n;

	*ret = (struct cloud_type){ .cpus = 0 };
	if (str_copy(copy, sizeof(copy), text) < 0)
		return -EINVAL;
	cpus = strchr(copy, '=');
	memory = cpus ? strchr(cpus, ':') : NULL;
	if (!memory)
		return -EINVAL;
	*cpus++ = '\0';
	*memory++ = '\0';
	price = strchr(memory, ':');
	if (price)
		*price++ = '\0';
	if (!cloud_word_is_valid(copy) || str_copy(ret->name, sizeof(ret->name), copy) < 0 ||
	    parse_u64(cpus, 1, 1024, &n) < 0 || parse_size(memory, &ret->memory) < 0 ||
	    ret->memory == 0 || (price && cloud_price_parse(price, &ret->price) < 0))
		return -EINVAL;
	ret->cpus = (unsigned)n;
	return 0;
}

int cloud_plan_type(const struct cloud_settings *s, unsigned cpus, uint64_t memory,
		    const struct cloud_type **ret, struct error *err)
{
	const struct cloud_type *best = NULL;

	if (s->n_types == 0)
		return error_field(err, ERROR_INVALID, "type",
				   "required: the configuration has no cloud.%s.types to choose "
				   "from",
				   s->provider);
	for (size_t i = 0; i < s->n_types; i++) {
		const struct cloud_type *t = &s->types[i];

		if (t->cpus >= cpus && t->memory >= memory &&
		    (!best || (t->price && best->price && t->price < best->price)))
			best = t;
	}
	if (!best)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "no type of cloud.%s.types in the configuration has %u "
				    "processors and %llu bytes of memory",
				    s->provider, cpus, (unsigned long long)memory);
	*ret = best;
	return 0;
}

int cloud_plan_size(const struct cloud_settings *s, const char *type, unsigned cpus,
		    uint64_t memory, struct cloud_type *ret, struct error *err)
{
	const struct cloud_type *found;
	int r;

	*ret = (struct cloud_type){ .cpus = cpus, .memory = memory };
	for (size_t i = 0; *type && i < s->n_types; i++) {
		if (!str_eq(s->types[i].name, type))
			continue;
		*ret = s->types[i];
		return 0;
	}
	if (*type)
		return error_field(err, ERROR_INVALID, "type",
				   "\"%.32s\" is none of cloud.vsphere.types in the configuration",
				   type);
	if (s->n_types == 0)
		return 0;
	r = cloud_plan_type(s, cpus, memory, &found, err);
	if (r == 0)
		*ret = *found;
	return r;
}
