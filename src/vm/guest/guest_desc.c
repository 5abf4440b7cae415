/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/guest/guest_desc.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"

#define DESC_FORMAT "1"
#define DESC_MEMORY_MAX (1U << 20) /* MiB */

char *guest_desc_write(const struct guest_desc *d)
{
	return str_format("format " DESC_FORMAT
			  "\nrelease %s\nversion %s\nbuild %s\ngate %s\nkernel %s %" PRIu64
			  "\ninitrd %" PRIu64 "\ndevices %s\nmemory %u\nwords %s\n",
			  d->release, d->version, d->build, d->gate,
			  d->is_vmlinux ? "vmlinux" : "bzimage", d->kernel_bytes, d->initrd_bytes,
			  d->needs_acpi ? "acpi" : "mmio", d->memory_mib, d->words);
}

/* Printable, and no blanks in it. */
static bool desc_is_word(const char *value)
{
	if (!*value)
		return false;
	for (const char *p = value; *p; p++)
		if (*p <= ' ' || *p >= 0x7f)
			return false;
	return true;
}

static bool desc_take_word(char *to, size_t size, const char *value)
{
	return desc_is_word(value) && str_copy(to, size, value) == 0;
}

static bool desc_format(struct guest_desc *d, const char *value)
{
	return str_eq(value, DESC_FORMAT);
}

static bool desc_release(struct guest_desc *d, const char *value)
{
	return desc_take_word(d->release, sizeof(d->release), value);
}

static bool desc_version(struct guest_desc *d, const char *value)
{
	return desc_take_word(d->version, sizeof(d->version), value);
}

static bool desc_build(struct guest_desc *d, const char *value)
{
	return desc_take_word(d->build, sizeof(d->build), value);
}

static bool desc_gate(struct guest_desc *d, const char *value)
{
	return desc_take_word(d->gate, sizeof(d->gate), value);
}

static bool desc_kernel(struct guest_desc *d, const char *value)
{
	const char *bytes = strchr(value, ' ');

	d->is_vmlinux = str_has_prefix(value, "vmlinux ");
	return (d->is_vmlinux || str_has_prefix(value, "bzimage ")) &&
	       parse_u64(bytes + 1, 1, KERNEL_IMAGE_MAX, &d->kernel_bytes) == 0;
}

static bool desc_initrd(struct guest_desc *d, const char *value)
{
	return parse_u64(value, 1, UINT32_MAX, &d->initrd_bytes) == 0;
}

static bool desc_devices(struct guest_desc *d, const char *value)
{
	d->needs_acpi = str_eq(value, "acpi");
	return d->needs_acpi || str_eq(value, "mmio");
}

static bool desc_memory(struct guest_desc *d, const char *value)
{
	uint64_t mib;

	if (parse_u64(value, 1, DESC_MEMORY_MAX, &mib) < 0)
		return false;
	d->memory_mib = (unsigned)mib;
	return true;
}

/* Words with one blank between them; none is fine. */
static bool desc_words(struct guest_desc *d, const char *value)
{
	size_t len = strlen(value);

	for (const char *p = value; *p; p++)
		if (*p < ' ' || *p >= 0x7f || (*p == ' ' && (p == value || p[1] == ' ')))
			return false;
	return (len == 0 || value[len - 1] != ' ') &&
	       str_copy(d->words, sizeof(d->words), value) == 0;
}

static const struct {
	const char *key;
	bool (*take)(struct guest_desc *d, const char *value);
} desc_lines[] = {
	{ "format", desc_format }, { "release", desc_release }, { "version", desc_version },
	{ "build", desc_build },   { "gate", desc_gate },       { "kernel", desc_kernel },
	{ "initrd", desc_initrd }, { "devices", desc_devices }, { "memory", desc_memory },
	{ "words", desc_words },
};

static bool desc_take_line(struct guest_desc *d, size_t i, const char *line)
{
	size_t key_len = strlen(desc_lines[i].key);

	return str_has_prefix(line, desc_lines[i].key) && line[key_len] == ' ' &&
	       desc_lines[i].take(d, line + key_len + 1);
}

int guest_desc_read(struct guest_desc *ret, const char *text, size_t len, struct error *err)
{
	char line[GUEST_DESC_WORDS_MAX + 16];
	struct guest_desc d = { .memory_mib = 0 };
	const char *p = text, *end;

	if (len == 0)
		return error_set(err, -EBADMSG, "line 1, which is missing");
	end = text + len;
	for (size_t i = 0; i < ARRAY_SIZE(desc_lines); i++) {
		const char *feed = memchr(p, '\n', (size_t)(end - p));
		size_t n = feed ? (size_t)(feed - p) : 0;

		if (!feed || n >= sizeof(line) || memchr(p, '\0', n))
			return error_set(err, -EBADMSG, "line %zu, \"%s\"", i + 1,
					 desc_lines[i].key);
		memcpy(line, p, n);
		line[n] = '\0';
		if (!desc_take_line(&d, i, line))
			return error_set(err, -EBADMSG, "line %zu, \"%s\"", i + 1,
					 desc_lines[i].key);
		p = feed + 1;
	}
	if (p != end)
		return error_set(err, -EBADMSG, "what follows the last line");
	*ret = d;
	return 0;
}

void guest_desc_words(struct guest_desc *d, const char **ret, size_t n)
{
	char *rest = NULL;
	size_t at = 0;

	for (char *word = strtok_r(d->words, " ", &rest); word && at < n;
	     word = strtok_r(NULL, " ", &rest))
		ret[at++] = word;
	ret[at] = NULL;
}
