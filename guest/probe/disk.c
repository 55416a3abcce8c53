/* A virtio disk, by the legacy interface of either transport: memory-mapped (microvm) or PCI (pc, q35). What was written
 * is remembered in memory: after a move, memory and disk must agree with each other, and a lost write shows. */
#include "probe.h"

#define MMIO_START 0xfeb00000u
#define MMIO_STEP 0x200u
#define MMIO_QUEUE 8u
#define QUEUE_MAX 256u
#define BLOCKS_MAX 4096u
#define WORDS 1024u
#define READ 0
#define WRITE 1
#define READ_ONLY (1u << 5)

struct descriptor {
  u64 address;
  u32 length;
  u16 flags, next;
} __attribute__((packed));

/* Descriptors and available ring, then, on the next page, the used ring. */
static u8 rings[12288] __attribute__((aligned(4096)));
static u32 buffer[WORDS] __attribute__((aligned(4096))), expected[WORDS];
static struct {
  u32 type, reserved;
  u64 sector;
} __attribute__((packed)) header;
static volatile u8 status;

static u32 mmio;
static u16 port;
static u32 queue_size, used_at, blocks, seed, writes, failures, glance_at, where;
static u32 written[BLOCKS_MAX];

static void notify(void) {
  if (mmio) MMIO32(mmio + 0x50) = 0;
  else out16(port + 0x10, 0);
}

static void acknowledge(void) {
  if (mmio) MMIO32(mmio + 0x64) = MMIO32(mmio + 0x60);
  else (void)in8(port + 0x13);
}

/* 0 when it went well. */
static int transfer(u32 type, u32 block, u32 *data) {
  struct descriptor *table = (void *)rings;
  volatile u16 *available = (void *)(rings + 16 * queue_size);
  volatile u16 *used = (void *)(rings + used_at);
  header.type = type;
  header.sector = (u64)block * 8;
  status = 0xff;
  table[0] = (struct descriptor){(u32)&header, sizeof header, 1, 1};
  table[1] = (struct descriptor){(u32)data, WORDS * 4, type == READ ? 1 | 2 : 1, 2};
  table[2] = (struct descriptor){(u32)&status, 1, 2, 0};
  u16 before = used[1];
  available[2 + available[1] % queue_size] = 0;
  __asm__ volatile("" ::: "memory");
  available[1]++;
  __asm__ volatile("lock; addl $0, (%%esp)" ::: "memory");
  notify();
  while (used[1] == before) __asm__ volatile("pause");
  __asm__ volatile("" ::: "memory");
  acknowledge();
  return status;
}

/* Whether the disk that was just opened is one to boot from: that one is let alone. */
static int holds_a_system(void) {
  u8 *bytes = (void *)buffer;
  return !transfer(READ, 0, buffer) && bytes[510] == 0x55 && bytes[511] == 0xaa;
}

/* The rings, for a device that begins anew. Answers their place in the unit that devices count in. */
static u32 fresh_rings(u32 size) {
  for (u32 i = 0; i < sizeof rings; i++) rings[i] = 0;
  queue_size = size;
  used_at = (18 * size + 6 + 4095) & ~4095u;
  return (u32)rings >> 12;
}

static int open_mmio(void) {
  for (u32 base = MMIO_START; base < MMIO_START + 24 * MMIO_STEP; base += MMIO_STEP) {
    if (MMIO32(base) != 0x74726976 || MMIO32(base + 4) != 1 || MMIO32(base + 8) != 2) continue;
    MMIO32(base + 0x70) = 0;
    MMIO32(base + 0x70) = 3;
    MMIO32(base + 0x14) = 0;
    if (MMIO32(base + 0x10) & READ_ONLY) continue;
    MMIO32(base + 0x24) = 0;
    MMIO32(base + 0x20) = 0;
    MMIO32(base + 0x28) = 4096;
    MMIO32(base + 0x30) = 0;
    if (MMIO32(base + 0x34) < MMIO_QUEUE) continue;
    mmio = base;
    MMIO32(base + 0x38) = MMIO_QUEUE;
    MMIO32(base + 0x3c) = 4096;
    MMIO32(base + 0x40) = fresh_rings(MMIO_QUEUE);
    MMIO32(base + 0x70) = 7;
    if (holds_a_system()) {
      MMIO32(base + 0x70) = 0;
      continue;
    }
    blocks = MMIO32(base + 0x100) / 8;
    return 1;
  }
  return 0;
}

static int open_pci(void) {
  if (pci_read(0, 0) == 0xffffffff) return 0;
  for (u32 slot = 1; slot < 32; slot++) {
    if (pci_read(slot, 0) != 0x10011af4) continue;
    u32 bar = pci_read(slot, 0x10);
    if (!(bar & 1)) continue;
    pci_write(slot, 4, (pci_read(slot, 4) & 0xffff) | 7);
    u16 base = bar & 0xfffc;
    out8(base + 0x12, 0);
    out8(base + 0x12, 3);
    if (in32(base) & READ_ONLY) continue;
    out32(base + 4, 0);
    out16(base + 0x0e, 0);
    u32 size = in16(base + 0x0c);
    if (!size || size > QUEUE_MAX) continue;
    port = base;
    out32(base + 8, fresh_rings(size));
    out8(base + 0x12, 7);
    if (holds_a_system()) {
      out8(base + 0x12, 0);
      continue;
    }
    blocks = in32(base + 0x14) / 8;
    return 1;
  }
  return 0;
}

void disk_open(u32 with_seed, u32 wanted_blocks) {
  seed = where = with_seed;
  /* Memory below 4 GiB ends far from where the transports are; on machines with PCI there is nothing to be found there. */
  if (!(pci_read(0, 0) == 0xffffffff ? open_mmio() : open_pci())) return;
  if (blocks > wanted_blocks) blocks = wanted_blocks;
  if (blocks > BLOCKS_MAX) blocks = BLOCKS_MAX;
}

u32 disk_blocks(void) { return blocks; }
u32 disk_writes(void) { return writes; }
int disk_is_bad(void) { return failures != 0; }

static void compose(u32 *words, u32 block, u32 sequence) {
  u32 word = mix(seed ^ mix(block) ^ sequence);
  words[0] = block;
  words[1] = sequence;
  for (u32 i = 2; i < WORDS; i++) {
    word += 0x9e3779b9u;
    words[i] = word ^ (word >> 11);
  }
}

void disk_write_one(void) {
  if (!blocks) return;
  where = mix(where + 1);
  u32 block = where % blocks;
  compose(buffer, block, writes + 1);
  if (transfer(WRITE, block, buffer)) failures++;
  else written[block] = ++writes;
}

static int is_right(u32 block) {
  if (!written[block]) return 1;
  if (transfer(READ, block, buffer)) return 0;
  compose(expected, block, written[block]);
  for (u32 i = 0; i < WORDS; i++)
    if (buffer[i] != expected[i]) return 0;
  return 1;
}

void disk_glance(void) {
  if (!blocks) return;
  if (!is_right(glance_at)) failures++;
  if (++glance_at == blocks) glance_at = 0;
}

u32 disk_check(void) {
  u32 bad = 0;
  for (u32 block = 0; block < blocks; block++) bad += !is_right(block);
  failures += bad;
  return bad;
}
