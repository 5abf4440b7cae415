/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/guest/elf64.h"

#include <elf.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"

#define ELF_PVH_OWNER "Xen"
#define ELF_PVH_TYPE 18 /* XEN_ELFNOTE_PHYS32_ENTRY */
#define ELF_NOTE_ALIGN 4

/* Whether count entries of that size from `at` lie within the file. */
static bool elf_holds(size_t len, uint64_t at, uint64_t count, uint64_t size)
{
	return at <= len && (count == 0 || (len - at) / count >= size);
}

static bool elf_head(const uint8_t *data, size_t len, Elf64_Ehdr *ret)
{
	if (len < sizeof(*ret))
		return false;
	memcpy(ret, data, sizeof(*ret));
	return memcmp(ret->e_ident, ELFMAG, SELFMAG) == 0 && ret->e_ident[EI_CLASS] == ELFCLASS64 &&
	       ret->e_ident[EI_DATA] == ELFDATA2LSB &&
	       (ret->e_phnum == 0 || ret->e_phentsize == sizeof(Elf64_Phdr)) &&
	       (ret->e_shnum == 0 || ret->e_shentsize == sizeof(Elf64_Shdr)) &&
	       elf_holds(len, ret->e_phoff, ret->e_phnum, sizeof(Elf64_Phdr)) &&
	       elf_holds(len, ret->e_shoff, ret->e_shnum, sizeof(Elf64_Shdr));
}

bool elf_begins_kernel(const uint8_t *head, size_t len)
{
	Elf64_Ehdr e;

	if (len < sizeof(e))
		return false;
	memcpy(&e, head, sizeof(e));
	return memcmp(e.e_ident, ELFMAG, SELFMAG) == 0 && e.e_ident[EI_CLASS] == ELFCLASS64 &&
	       e.e_ident[EI_DATA] == ELFDATA2LSB && e.e_type == ET_EXEC && e.e_machine == EM_X86_64;
}

bool elf_is_valid(const uint8_t *data, size_t len)
{
	Elf64_Ehdr head;

	return elf_head(data, len, &head);
}

/* The i-th segment; false past the last, and for one that is not within the file. */
static bool elf_segment(const uint8_t *data, size_t len, size_t i, Elf64_Phdr *ret)
{
	Elf64_Ehdr head;

	if (!elf_head(data, len, &head) || i >= head.e_phnum)
		return false;
	memcpy(ret, data + head.e_phoff + i * sizeof(*ret), sizeof(*ret));
	return elf_holds(len, ret->p_offset, 1, ret->p_filesz);
}

bool elf_is_dynamic(const uint8_t *data, size_t len)
{
	Elf64_Phdr segment;

	for (size_t i = 0; elf_segment(data, len, i, &segment); i++)
		if (segment.p_type == PT_INTERP)
			return true;
	return false;
}

static uint64_t elf_aligned(uint64_t n)
{
	return (n + ELF_NOTE_ALIGN - 1) & ~(uint64_t)(ELF_NOTE_ALIGN - 1);
}

/* What the note of that owner and type says, within p; false where there is none. */
static bool elf_find_note(const uint8_t *p, size_t len, const char *owner, uint32_t type,
			  const uint8_t **ret, size_t *ret_len)
{
	Elf64_Nhdr note;

	while (len >= sizeof(note)) {
		uint64_t size;

		memcpy(&note, p, sizeof(note));
		size = sizeof(note) + elf_aligned(note.n_namesz) + elf_aligned(note.n_descsz);
		if (size > len)
			return false;
		if (note.n_type == type && note.n_namesz == strlen(owner) + 1 &&
		    memcmp(p + sizeof(note), owner, note.n_namesz) == 0) {
			*ret = p + sizeof(note) + elf_aligned(note.n_namesz);
			*ret_len = note.n_descsz;
			return true;
		}
		p += size;
		len -= size;
	}
	return false;
}

static bool elf_note(const uint8_t *data, size_t len, const char *owner, uint32_t type,
		     const uint8_t **ret, size_t *ret_len)
{
	Elf64_Phdr segment;

	for (size_t i = 0; elf_segment(data, len, i, &segment); i++)
		if (segment.p_type == PT_NOTE &&
		    elf_find_note(data + segment.p_offset, segment.p_filesz, owner, type, ret,
				  ret_len))
			return true;
	return false;
}

bool elf_is_pvh(const uint8_t *data, size_t len)
{
	const uint8_t *found;
	size_t n;

	return elf_note(data, len, ELF_PVH_OWNER, ELF_PVH_TYPE, &found, &n);
}

void elf_build_id(const uint8_t *data, size_t len, char *ret, size_t size)
{
	const uint8_t *found;
	size_t n;

	ret[0] = '\0';
	if (!elf_note(data, len, ELF_NOTE_GNU, NT_GNU_BUILD_ID, &found, &n))
		return;
	for (size_t i = 0; i < n && 2 * i + 2 < size; i++)
		(void)str_printf(ret + 2 * i, 3, "%02x", found[i]);
}

uint64_t elf_memory(const uint8_t *data, size_t len)
{
	uint64_t begin = UINT64_MAX, end = 0;
	Elf64_Phdr segment;

	for (size_t i = 0; elf_segment(data, len, i, &segment); i++) {
		if (segment.p_type != PT_LOAD || segment.p_memsz > UINT64_MAX - segment.p_paddr)
			continue;
		begin = MIN(begin, segment.p_paddr);
		end = MAX(end, segment.p_paddr + segment.p_memsz);
	}
	return end > begin ? end - begin : 0;
}

size_t elf_trim(uint8_t *data, size_t len)
{
	Elf64_Phdr segment;
	Elf64_Ehdr head;
	uint64_t end;

	if (!elf_head(data, len, &head) || head.e_phnum == 0)
		return len;
	end = head.e_phoff + head.e_phnum * sizeof(segment);
	for (size_t i = 0; i < head.e_phnum; i++) {
		if (!elf_segment(data, len, i, &segment))
			return len;
		end = MAX(end, segment.p_offset + segment.p_filesz);
	}
	head.e_shoff = 0;
	head.e_shnum = 0;
	head.e_shstrndx = 0;
	memcpy(data, &head, sizeof(head));
	return end;
}

static bool elf_section_at(const uint8_t *data, size_t len, const Elf64_Ehdr *head, size_t i,
			   Elf64_Shdr *ret)
{
	if (i >= head->e_shnum)
		return false;
	memcpy(ret, data + head->e_shoff + i * sizeof(*ret), sizeof(*ret));
	return ret->sh_type == SHT_NOBITS || elf_holds(len, ret->sh_offset, 1, ret->sh_size);
}

bool elf_section(const uint8_t *data, size_t len, const char *name, const uint8_t **ret,
		 size_t *ret_len)
{
	Elf64_Shdr names, section;
	Elf64_Ehdr head;

	if (!elf_head(data, len, &head) ||
	    !elf_section_at(data, len, &head, head.e_shstrndx, &names) ||
	    names.sh_type != SHT_STRTAB)
		return false;
	for (size_t i = 0; elf_section_at(data, len, &head, i, &section); i++) {
		const char *own = (const char *)data + names.sh_offset + section.sh_name;

		if (section.sh_type == SHT_NOBITS || section.sh_name >= names.sh_size ||
		    names.sh_size - section.sh_name <= strlen(name) ||
		    memcmp(own, name, strlen(name) + 1) != 0)
			continue;
		*ret = data + section.sh_offset;
		*ret_len = section.sh_size;
		return true;
	}
	return false;
}
