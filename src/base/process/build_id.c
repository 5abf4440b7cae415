/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/build_id.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/macros.h"

#define NOTE_ALIGN(n) (((n) + 3U) & ~(size_t)3)

static void id_format(char *to, const uint8_t *id, size_t len)
{
	static const char digits[] = "0123456789abcdef";

	len = MIN(len, (size_t)BUILD_ID_MAX / 2);
	for (size_t i = 0; i < len; i++) {
		to[2 * i] = digits[id[i] >> 4];
		to[2 * i + 1] = digits[id[i] & 15];
	}
	to[2 * len] = '\0';
}

static void notes_find(char *to, const uint8_t *at, size_t len)
{
	while (len >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) note;
		size_t name, size;

		memcpy(&note, at, sizeof(note));
		name = sizeof(note) + NOTE_ALIGN(note.n_namesz);
		size = name + NOTE_ALIGN(note.n_descsz);
		if (size > len)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
		    memcmp(at + sizeof(note), ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0)
			id_format(to, at + name, note.n_descsz);
		at += size;
		len -= size;
	}
}

/* The program itself comes first. */
static int program_find(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE)
			notes_find(data,
				   (const uint8_t *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
				   info->dlpi_phdr[i].p_memsz);
	return 1;
}

const char *build_id(void)
{
	static char id[BUILD_ID_MAX + 1];

	if (!id[0])
		(void)dl_iterate_phdr(program_find, id);
	return id;
}
