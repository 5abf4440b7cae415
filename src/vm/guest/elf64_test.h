/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_ELF64_TEST_H
#define NACRE_VM_ELF64_TEST_H

#include <elf.h>
#include <stdint.h>
#include <string.h>

/*
 * A small ELF file for tests: one segment or none, and a section ".modinfo" or none, with a table
 * of names. Returns its length.
 */
struct elf_made {
	uint8_t data[4096];
	size_t len;
};

static inline void elf_made_put(struct elf_made *e, size_t at, const void *data, size_t len)
{
	memcpy(e->data + at, data, len);
	e->len = at + len > e->len ? at + len : e->len;
}

/* Of this type (PT_*), with these contents at 512. */
static inline void elf_made_segment(struct elf_made *e, uint32_t type, const void *data, size_t len)
{
	const Elf64_Phdr segment = { .p_type = type,
				     .p_offset = 512,
				     .p_filesz = len,
				     .p_memsz = len + 100,
				     .p_paddr = 0x100000 };
	const Elf64_Ehdr head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
				  .e_phoff = 64,
				  .e_phnum = 1,
				  .e_phentsize = sizeof(segment) };

	*e = (struct elf_made){ .len = 0 };
	elf_made_put(e, 0, &head, sizeof(head));
	elf_made_put(e, 64, &segment, sizeof(segment));
	elf_made_put(e, 512, data, len);
}

/* A module with that .modinfo. */
static inline void elf_made_module(struct elf_made *e, const char *info, size_t len)
{
	static const char names[] = "\0.shstrtab\0.modinfo";
	const Elf64_Shdr sections[] = {
		{ .sh_type = SHT_NULL },
		{ .sh_type = SHT_STRTAB, .sh_name = 1, .sh_offset = 512, .sh_size = sizeof(names) },
		{ .sh_type = SHT_PROGBITS, .sh_name = 11, .sh_offset = 1024, .sh_size = len },
	};
	const Elf64_Ehdr head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB },
				  .e_shoff = 128,
				  .e_shnum = 3,
				  .e_shstrndx = 1,
				  .e_shentsize = sizeof(sections[0]) };

	*e = (struct elf_made){ .len = 0 };
	elf_made_put(e, 0, &head, sizeof(head));
	elf_made_put(e, 128, sections, sizeof(sections));
	elf_made_put(e, 512, names, sizeof(names));
	elf_made_put(e, 1024, info, len);
}

#endif
