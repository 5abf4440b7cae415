/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/images/platform_option.h"

#include <stdbool.h>
#include <string.h>

#include "base/text/str.h"

static const char platform_letters[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

static const char *const platform_systems[] = { "aix",     "android", "darwin", "freebsd",
						"illumos", "js",      "netbsd", "openbsd",
						"plan9",   "solaris", "wasip1", "windows" };

static const struct {
	const char *word, *architecture, *variant;
} platform_names[] = {
	{ "x86_64", "amd64", "" }, { "x86-64", "amd64", "" }, { "aarch64", "arm64", "" },
	{ "armv7l", "arm", "v7" }, { "armhf", "arm", "v7" },  { "armel", "arm", "v6" },
	{ "i386", "386", "" },     { "i686", "386", "" },     { "loongarch64", "loong64", "" },
};

static bool platform_is_system(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(platform_systems); i++)
		if (str_eq(platform_systems[i], word))
			return true;
	return false;
}

/* The next word of *text, which is then behind it and its slash. Whether it is one. */
static bool platform_word(const char **text, char ret[PLATFORM_OPTION_MAX + 1])
{
	size_t n = strspn(*text, platform_letters);
	bool good = n > 0 && str_printf(ret, PLATFORM_OPTION_MAX + 1, "%.*s", (int)n, *text) >= 0;

	*text += n;
	if (**text != '/')
		return good && !**text;
	++*text;
	return good && **text;
}

/* Where the architecture is said by another name, and perhaps its variant with it. */
static void platform_translate(struct platform_option *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(platform_names); i++) {
		if (!str_eq(platform_names[i].word, p->architecture))
			continue;
		(void)str_copy(p->architecture, sizeof(p->architecture),
			       platform_names[i].architecture);
		if (!*p->variant)
			(void)str_copy(p->variant, sizeof(p->variant), platform_names[i].variant);
		return;
	}
}

int platform_option_read(struct platform_option *ret, const char *text, struct error *err)
{
	const char *rest = text;
	bool good;

	*ret = (struct platform_option){ "", "" };
	if (!text)
		return 0;
	if (str_has_prefix(rest, "linux/"))
		rest += strlen("linux/");
	good = platform_word(&rest, ret->architecture);
	if (platform_is_system(ret->architecture))
		return error_refuse(err, ERROR_INVALID,
				    "--platform: \"%.80s\": images are for linux here, not for %s",
				    text, ret->architecture);
	if (good && *rest)
		good = platform_word(&rest, ret->variant) && !*rest;
	if (!good || str_eq(ret->architecture, "linux"))
		return error_refuse(err, ERROR_INVALID,
				    "--platform wants an architecture, such as arm64/v8, "
				    "and \"%.80s\" is none",
				    text);
	platform_translate(ret);
	return 0;
}
