/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_ELF64_H
#define NACRE_VM_ELF64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A reader of ELF files of 64 bits, as far as guest sets need it: programs, kernels, modules. Every
 * offset in a file is checked against its length.
 */

/* Whether it is such a file at all, with its tables within it. */
bool elf_is_valid(const uint8_t *data, size_t len);
/* The beginning of a file says that it may be a kernel of x86-64: a program at an address of its
 * own. */
bool elf_begins_kernel(const uint8_t *head, size_t len);
/* It names an interpreter: it needs a dynamic linker and libraries. */
bool elf_is_dynamic(const uint8_t *data, size_t len);
/* It is a kernel that a VMM can enter directly (the note XEN_ELFNOTE_PHYS32_ENTRY). */
bool elf_is_pvh(const uint8_t *data, size_t len);
/* Its GNU build-id in hexadecimal, cut to what fits in size with a NUL; "" where it has none. */
void elf_build_id(const uint8_t *data, size_t len, char *ret, size_t size);
/* Bytes of memory from the start of its first segment to the end of its last. */
uint64_t elf_memory(const uint8_t *data, size_t len);

/*
 * Leaves of a program what is loaded when it runs: sections behind its segments (debug information,
 * symbols) go. Changes its head, and returns the new length.
 */
size_t elf_trim(uint8_t *data, size_t len);

/* The section of that name, within data; false where there is none. */
bool elf_section(const uint8_t *data, size_t len, const char *name, const uint8_t **ret,
		 size_t *ret_len);

#endif
