/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The smallest kernel that QEMU's `microvm` boots, by Xen's PVH entry, made with `as` and `ld` by the tests. It says on the serial
 * line how much memory its machine has and the end of its command line ("memory 64 MiB: a b"), and echoes what it reads there; 'P'
 * powers the machine off, and so does the power button of ACPI, after "button".
 */
	.section .note.pvh, "a", @note
	.long	4, 8, 18		/* XEN_ELFNOTE_PHYS32_ENTRY */
	.asciz	"Xen"
	.quad	_start

	.set	ged, 0xfea00000		/* generic event device: events, and from 0x200 on sleep */

	.text
	.code32
	.globl _start
_start:
	cli
	movl	$stack, %esp
	movl	40(%ebx), %esi		/* hvm_start_info: memmap_paddr, memmap_entries */
	movl	48(%ebx), %ecx
	xorl	%eax, %eax
	xorl	%edx, %edx
sum:
	cmpl	$1, 16(%esi)		/* RAM */
	jne	next
	addl	8(%esi), %eax
	adcl	12(%esi), %edx
next:
	addl	$24, %esi
	loop	sum
	addl	$0xfffff, %eax		/* what firmware keeps is less than 1 MiB */
	adcl	$0, %edx
	shrdl	$20, %edx, %eax
	movl	$memory, %esi
	call	print
	call	number
	movl	$unit, %esi
	call	print
	movl	24(%ebx), %esi		/* cmdline_paddr */
	call	print
	movl	$end_of_line, %esi
	call	print
look:
	testl	$2, ged			/* the power button */
	jnz	button
	movw	$0x3fd, %dx
	inb	%dx, %al
	testb	$1, %al
	jz	look
	movw	$0x3f8, %dx
	inb	%dx, %al
	call	put
	cmpb	$'P', %al
	jne	look
off:
	movb	$0x34, ged + 0x200	/* S5 */
	jmp	off
button:
	movl	$pressed, %esi
	call	print
	jmp	off

number:					/* eax, in decimal digits */
	movl	$10, %edi
	xorl	%ecx, %ecx
digit:
	xorl	%edx, %edx
	divl	%edi
	addb	$'0', %dl
	pushl	%edx
	incl	%ecx
	testl	%eax, %eax
	jnz	digit
say:
	popl	%eax
	call	put
	loop	say
	ret

print:
	pushl	%eax
more:
	lodsb
	testb	%al, %al
	jz	printed
	call	put
	jmp	more
printed:
	popl	%eax
	ret

put:
	pushl	%edx
	movb	%al, %ah
	movw	$0x3fd, %dx
busy:
	inb	%dx, %al
	testb	$0x20, %al
	jz	busy
	movb	%ah, %al
	movw	$0x3f8, %dx
	outb	%al, %dx
	popl	%edx
	ret

memory:		.asciz	"memory "
unit:		.asciz	" MiB: "
end_of_line:	.asciz	"\r\n"
pressed:	.asciz	"button\r\n"
	.bss
	.skip	4096
stack:
