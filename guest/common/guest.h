/* What both guests share: numbers, and the memory that they work on. */
#ifndef GUEST_H
#define GUEST_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

/* Scatters the bits of a number. */
static inline u32 mix(u32 x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

/* Each guest has a clock of its own, and a way to divide: there is no library in the smaller one. */
u64 now_us(void);
u32 divide(u64 value, u32 by);

/* memory.c: pages whose content follows from their number and how often they were written. */
static inline u32 memory_bytes(u32 mib) { return (mib * 256 + 1) * 4100; } /* pages, the table of them, and alignment */
void memory_repeat(u32 words); /* before it is opened: after so many words of a page they repeat; 0 for never */
void memory_open(u32 seed, void *start, u32 bytes);
u32 memory_pages(void);
u32 memory_dirtied(void);
void memory_rate(u32 mib_per_second);
int memory_is_dirtied(void);
int memory_work(u64 now); /* dirties what is due; 1 when there is more to do at once */
void memory_glance(void); /* checks a few pages, in turn */
u32 memory_check(void);   /* checks all; answers how many are bad */
int memory_is_bad(void);

#endif
