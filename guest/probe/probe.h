/* What the parts of the probe know of each other. */
#ifndef PROBE_H
#define PROBE_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

static inline void out8(u16 port, u8 value) { __asm__ volatile("outb %0, %1" ::"a"(value), "Nd"(port)); }
static inline void out16(u16 port, u16 value) { __asm__ volatile("outw %0, %1" ::"a"(value), "Nd"(port)); }
static inline void out32(u16 port, u32 value) { __asm__ volatile("outl %0, %1" ::"a"(value), "Nd"(port)); }
static inline u8 in8(u16 port) { u8 v; __asm__ volatile("inb %1, %0" : "=a"(v) : "Nd"(port)); return v; }
static inline u16 in16(u16 port) { u16 v; __asm__ volatile("inw %1, %0" : "=a"(v) : "Nd"(port)); return v; }
static inline u32 in32(u16 port) { u32 v; __asm__ volatile("inl %1, %0" : "=a"(v) : "Nd"(port)); return v; }

#define MMIO32(address) (*(volatile u32 *)(address))
#define MMIO8(address) (*(volatile u8 *)(address))

/* Scatters the bits of a number. */
static inline u32 mix(u32 x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

/* serial.c: text is gathered and sent by serial_flush, one whole line at a time. */
void serial_open(void);
void put(const char *text);
void put_number(u32 value);
void put_field(const char *name, u32 value);
void serial_flush(void);
int serial_read(void); /* the next byte, or -1 */

/* clock.c */
void clock_open(u32 interrupts_per_second);
u64 now_us(void);
u32 divide(u64 value, u32 by);

/* memory.c: pages whose content follows from their number and how often they were written. */
void memory_open(u32 seed, u32 wanted_mib, u32 end);
u32 memory_pages(void);
u32 memory_dirtied(void);
void memory_rate(u32 mib_per_second);
int memory_work(u64 now); /* dirties what is due; 1 when there is more to do at once */
void memory_glance(void); /* checks a few pages, in turn */
u32 memory_check(void);   /* checks all; answers how many are bad */
int memory_is_bad(void);

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
