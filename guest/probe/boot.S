/*
 * The way in from a disk: the BIOS loads this sector, which loads the probe behind it, puts it where it belongs, and starts
 * it as QEMU would, with the start info that it expects. SECTORS, BYTES and END come from what was linked.
 */
.code16
.section .text
.globl _start
_start:
  ljmp $0, $1f
1:
  cli
  cld
  xorw %ax, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  movw $0x7c00, %sp
  sti
  movw $packet, %si
  movb $0x42, %ah
  int $0x13
  jc stop
  /* How much memory there is: KiB up to 16 MiB, and blocks of 64 KiB above. */
  movw $0xe801, %ax
  xorw %cx, %cx
  xorw %dx, %dx
  int $0x15
  jc stop
  movzwl %cx, %ecx
  movzwl %dx, %edx
  shll $10, %ecx
  shll $16, %edx
  addl %edx, %ecx
  movl %ecx, memory_size
  cli
  inb $0x92, %al
  orb $2, %al
  outb %al, $0x92
  lgdt gdt_pointer
  movl %cr0, %eax
  orl $1, %eax
  movl %eax, %cr0
  ljmpl $8, $protected
stop:
  hlt
  jmp stop

.code32
protected:
  movw $16, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  movl $LOADED, %esi
  movl $START, %edi
  movl $BYTES, %ecx
  rep movsb
  movl $END, %ecx
  subl %edi, %ecx
  xorl %eax, %eax
  rep stosb
  movl $start_info, %ebx
  movl $START, %eax
  jmp *%eax

.set START, 0x100000
.set LOADED, 0x10000

.align 4
packet:
  .byte 16, 0
  .word SECTORS, 0, LOADED >> 4
  .quad 1
start_info:
  .long 0x336ec578, 1, 0, 0
  .long 0, 0, command_line, 0, 0, 0, memory_map, 0
  .long 1, 0
memory_map:
  .quad START
memory_size:
  .quad 0
  .long 1, 0
.align 8
gdt:
  .quad 0, 0x00cf9a000000ffff, 0x00cf92000000ffff
gdt_pointer:
  .word 23
  .long gdt
command_line:
  .asciz ""
.org 510
.word 0xaa55
