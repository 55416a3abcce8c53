/* What the parts of the probe know of each other. */
#ifndef PROBE_H
#define PROBE_H

#include "guest.h"

static inline void out8(u16 port, u8 value) { __asm__ volatile("outb %0, %1" ::"a"(value), "Nd"(port)); }
static inline void out16(u16 port, u16 value) { __asm__ volatile("outw %0, %1" ::"a"(value), "Nd"(port)); }
static inline void out32(u16 port, u32 value) { __asm__ volatile("outl %0, %1" ::"a"(value), "Nd"(port)); }
static inline u8 in8(u16 port) { u8 v; __asm__ volatile("inb %1, %0" : "=a"(v) : "Nd"(port)); return v; }
static inline u16 in16(u16 port) { u16 v; __asm__ volatile("inw %1, %0" : "=a"(v) : "Nd"(port)); return v; }
static inline u32 in32(u16 port) { u32 v; __asm__ volatile("inl %1, %0" : "=a"(v) : "Nd"(port)); return v; }

#define MMIO32(address) (*(volatile u32 *)(address))
#define MMIO8(address) (*(volatile u8 *)(address))

/* serial.c: text is gathered and sent by serial_flush, one whole line at a time. */
void serial_open(void);
void put(const char *text);
void put_number(u32 value);
void put_field(const char *name, u32 value);
void serial_flush(void);
int serial_read(void); /* the next byte, or -1 */

/* clock.c */
void clock_open(u32 interrupts_per_second);

/* disk.c: blocks whose content follows from their number and the write that made it. */
void disk_open(u32 seed, u32 wanted_blocks);
u32 disk_blocks(void); /* 0 without a disk */
u32 disk_writes(void);
void disk_write_one(void);
void disk_glance(void); /* reads one block back, in turn */
u32 disk_check(void);
int disk_is_bad(void);

/* power.c */
u32 pci_read(u32 slot, u32 offset);
void pci_write(u32 slot, u32 offset, u32 value);
void power_open(void);
int power_button_was_pressed(void);
void power_off(void);

#endif
