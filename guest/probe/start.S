/* The way in: QEMU starts us by the PVH note in 32-bit protected mode, without paging, start info in ebx. */
.section .note.Xen,"a",@note
.align 4
.long 4, 4, 18
.asciz "Xen"
.long _start

.section .text
.globl _start
_start:
  cli
  cld
  movl $stack_top, %esp
  lgdt gdt_pointer
  ljmp $8, $1f
1:
  movw $16, %ax
  movw %ax, %ds
  movw %ax, %es
  movw %ax, %fs
  movw %ax, %gs
  movw %ax, %ss
  pushl %ebx
  call probe_main
2:
  cli
  hlt
  jmp 2b

.globl timer_entry
timer_entry:
  pushal
  cld
  call on_timer
  popal
  iret

.globl spurious_entry
spurious_entry:
  iret

.globl exception_entry
exception_entry:
  cli
  call on_exception
1:
  hlt
  jmp 1b

.align 8
gdt:
  .quad 0, 0x00cf9a000000ffff, 0x00cf92000000ffff
gdt_pointer:
  .word 23
  .long gdt

.section .bss
.align 16
.skip 16384
stack_top:

.section .note.GNU-stack,"",@progbits
