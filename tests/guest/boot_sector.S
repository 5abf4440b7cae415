/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The smallest guest that a BIOS boots: a sector, made with `as` and `ld` by the tests. It counts its boots in the first byte
 * of the second sector of its disk, says so on the serial line ("boot 1"), and echoes what it reads there; 'R' resets the machine,
 * 'P' powers it off, and so does the power button of ACPI, after "button".
 */
	.code16
	.globl _start
_start:
	ljmp	$0, $begin
begin:
	xorw	%ax, %ax
	movw	%ax, %ds
	movw	%ax, %es
	movw	%ax, %ss
	movw	$0x7c00, %sp
	movb	%dl, drive
	movb	$0x42, %ah		/* read */
	call	disk
	incb	0x7e00
	movw	$0x4300, %ax		/* write */
	call	disk
	cli				/* the BIOS reads the serial line by its timer */
	movw	$0x602, %dx		/* PM1_EN of q35: the power button, before anybody hears of us */
	movw	$0x100, %ax
	outw	%ax, %dx
	movw	$hello, %si
	call	print
	movb	0x7e00, %al
	call	put
	movw	$end_of_line, %si
	call	print
look:
	movw	$0x600, %dx		/* PM1_STS */
	inw	%dx, %ax
	testb	$1, %ah
	jnz	button
	movw	$0x3fd, %dx
	inb	%dx, %al
	testb	$1, %al
	jz	look
	movw	$0x3f8, %dx
	inb	%dx, %al
	call	put
	cmpb	$'R', %al
	je	reset
	cmpb	$'P', %al
	je	off
	jmp	look
button:
	movw	$pressed, %si
	call	print
off:
	movw	$0x604, %dx		/* PM1_CNT: S5 */
	movw	$0x2000, %ax
	outw	%ax, %dx
	jmp	off
reset:
	movw	$0xcf9, %dx
	movb	$6, %al
	outb	%al, %dx
	jmp	reset

disk:
	movb	drive, %dl
	movw	$packet, %si
	int	$0x13
	jc	broken
	ret
broken:
	movw	$failed, %si
	call	print
	jmp	off

print:
	lodsb
	testb	%al, %al
	jz	1f
	call	put
	jmp	print
1:	ret

put:
	movb	%al, %bl
	movw	$0x3fd, %dx
1:	inb	%dx, %al
	testb	$0x20, %al
	jz	1b
	movb	%bl, %al
	movw	$0x3f8, %dx
	outb	%al, %dx
	ret

hello:	.asciz "\r\nboot "
pressed: .asciz "button"
failed:	.asciz "no disk"
end_of_line: .asciz "\r\n"
drive:	.byte 0
	.balign 4
packet:	.byte 16, 0
	.word 1, 0x7e00, 0
	.quad 1
	.org 510
	.word 0xaa55
