/*
 * A boot sector that shows whether a processor can be trusted with guests. Some hosts offer KVM, run the firmware and
 * even real mode, and fail as soon as a guest does what every system does. So this one enters long mode with paging on,
 * works in memory for a while, checks what it wrote, and only then sends its one word through the serial port.
 *
 * The assembled bytes are in src/hypervisor/qemu/boot-sector.ts; a test compares.
 */
.code16
.section .text
.globl _start
_start:
  cli
  xorw %ax, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  movw $0x7c00, %sp
  cld
  /* Page tables at 0x1000: the first 2 MiB, as they are. */
  movl $0x1000, %edi
  xorl %eax, %eax
  movl $3072, %ecx
  rep stosl
  movl $0x2003, 0x1000
  movl $0x3003, 0x2000
  movl $0x83, 0x3000
  movl $0x1000, %eax
  movl %eax, %cr3
  movl $0x20, %eax
  movl %eax, %cr4
  movl $0xc0000080, %ecx
  rdmsr
  orl $0x100, %eax
  wrmsr
  lgdt gdt_pointer
  movl %cr0, %eax
  orl $0x80000001, %eax
  movl %eax, %cr0
  ljmpl $8, $long_mode

.code64
long_mode:
  movw $16, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %ss
  movl $0x10000, %esp
  /* Numbers at 1 MiB, written and added up again. */
  movl $0x100000, %edi
  movl $50000, %ecx
1:
  movq %rcx, (%rdi)
  addq $8, %rdi
  decl %ecx
  jnz 1b
  movl $0x100000, %esi
  movl $50000, %ecx
  xorl %ebx, %ebx
2:
  addq (%rsi), %rbx
  addq $8, %rsi
  decl %ecx
  jnz 2b
  movl $1250025000, %eax
  cmpq %rax, %rbx
  jne 4f
  /* The port needs no setting up to take bytes. */
  leaq word(%rip), %rsi
  movw $0x3f8, %dx
3:
  lodsb
  testb %al, %al
  jz 4f
  outb %al, %dx
  jmp 3b
4:
  hlt
  jmp 4b

word:
  .asciz "godwit\n"
.align 8
gdt:
  .quad 0, 0x00209a0000000000, 0x0000920000000000
gdt_pointer:
  .word 23
  .long gdt
.org 510
.word 0xaa55
