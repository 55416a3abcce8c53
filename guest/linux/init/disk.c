/* Disks by their raw blocks. What was written is remembered in memory: after a move, memory and disk must agree with each
 * other, and a lost write shows. The first block of a disk tells that it is ours, so that what others have stored is never
 * written over; the rest is known to be whole from one boot to the next by what each block says of itself. */
#include "init.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <linux/fs.h>
#include <unistd.h>

#define DISKS_MAX 8u
#define BLOCKS_MAX 4096u
#define BLOCK_BYTES 4096u
#define WORDS (BLOCK_BYTES / 4)
#define HEAD_WORDS 3u
#define MAGIC "godwit guest disk\n"

struct disk {
  char name[16];
  int fd;
  u32 blocks, boots, glance_at;
  u32 written[BLOCKS_MAX];
};

struct first_block {
  char magic[32];
  char last_boot[64];
  u32 boots;
};

static struct disk disks[DISKS_MAX];
static u32 buffer[WORDS] __attribute__((aligned(4096))), expected[WORDS];
static u32 disk_count, seed, where, writes, failures, turn;

static int transfer(struct disk *disk, int is_write, u32 block) {
  off_t at = (off_t)block * BLOCK_BYTES;
  ssize_t length = is_write ? pwrite(disk->fd, buffer, BLOCK_BYTES, at) : pread(disk->fd, buffer, BLOCK_BYTES, at);
  return length == BLOCK_BYTES;
}

static void compose(u32 *words, u32 of_seed, u32 block, u32 sequence) {
  u32 word = mix(of_seed ^ mix(block) ^ sequence);
  words[0] = block;
  words[1] = sequence;
  words[2] = of_seed;
  for (u32 i = HEAD_WORDS; i < WORDS; i++) {
    word += 0x9e3779b9u;
    words[i] = word ^ (word >> 11);
  }
}

static int holds(u32 of_seed, u32 block, u32 sequence) {
  compose(expected, of_seed, block, sequence);
  return !memcmp(buffer, expected, BLOCK_BYTES);
}

static int is_empty(void) {
  for (u32 i = 0; i < WORDS; i++)
    if (buffer[i]) return 0;
  return 1;
}

/* Reads the first block, and marks an empty disk. 0 when the disk is somebody else's. */
static int claim(struct disk *disk) {
  struct first_block *first = (void *)buffer;
  if (!transfer(disk, 0, 0)) return 0;
  if (!is_empty() && strncmp(first->magic, MAGIC, sizeof first->magic)) return 0;
  strcpy(first->magic, MAGIC);
  disk->boots = ++first->boots;
  snprintf(first->last_boot, sizeof first->last_boot, "%s", boot_id);
  return transfer(disk, 1, 0);
}

/* What earlier boots have written must be as they wrote it. */
static void check_earlier(struct disk *disk) {
  for (u32 block = 1; block < disk->blocks; block++) {
    if (!transfer(disk, 0, block)) failures++;
    else if (!is_empty() && !holds(buffer[2], block, buffer[1])) failures++;
  }
}

static int open_disk(const char *name, struct disk *disk, u32 wanted_blocks) {
  char path[64], label[33];
  u64 bytes = 0;
  snprintf(path, sizeof path, "/dev/%s", name);
  int fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
  if (fd < 0) return 0;
  snprintf(disk->name, sizeof disk->name, "%s", name);
  disk->fd = fd;
  ioctl(fd, BLKGETSIZE64, &bytes);
  u64 blocks = bytes / BLOCK_BYTES;
  disk->blocks = (u32)(blocks < wanted_blocks ? blocks : wanted_blocks);
  if (disk->blocks >= 2 && !is_iso9660(fd, label) && claim(disk)) return 1;
  close(fd);
  return 0;
}

static int is_disk(const struct dirent *entry) {
  return !strncmp(entry->d_name, "vd", 2) || !strncmp(entry->d_name, "sd", 2);
}

void disks_open(u32 with_seed, u32 wanted_blocks) {
  struct dirent **entries;
  seed = where = with_seed;
  if (wanted_blocks > BLOCKS_MAX) wanted_blocks = BLOCKS_MAX;
  int count = scandir("/sys/block", &entries, is_disk, alphasort);
  for (int i = 0; i < count; i++)
    if (disk_count < DISKS_MAX && open_disk(entries[i]->d_name, &disks[disk_count], wanted_blocks))
      check_earlier(&disks[disk_count++]);
}

u32 disks_blocks(void) {
  u32 blocks = 0;
  for (u32 i = 0; i < disk_count; i++) blocks += disks[i].blocks;
  return blocks;
}

u32 disks_writes(void) { return writes; }
int disks_are_bad(void) { return failures != 0; }

void disks_write_one(void) {
  if (!disk_count) return;
  struct disk *disk = &disks[turn++ % disk_count];
  where = mix(where + 1);
  u32 block = 1 + where % (disk->blocks - 1);
  compose(buffer, seed, block, writes + 1);
  if (transfer(disk, 1, block)) disk->written[block] = ++writes;
  else failures++;
}

static int is_right(struct disk *disk, u32 block) {
  if (!disk->written[block]) return 1;
  return transfer(disk, 0, block) && holds(seed, block, disk->written[block]);
}

void disks_glance(void) {
  if (!disk_count) return;
  struct disk *disk = &disks[turn % disk_count];
  if (!is_right(disk, disk->glance_at)) failures++;
  if (++disk->glance_at == disk->blocks) disk->glance_at = 0;
}

u32 disks_check(void) {
  u32 bad = 0;
  for (u32 i = 0; i < disk_count; i++)
    for (u32 block = 0; block < disks[i].blocks; block++) bad += !is_right(&disks[i], block);
  failures += bad;
  return bad;
}

void disks_flush(void) {
  for (u32 i = 0; i < disk_count; i++) fdatasync(disks[i].fd);
}

static const struct disk *ours(const char *name) {
  for (u32 i = 0; i < disk_count; i++)
    if (!strcmp(disks[i].name, name)) return &disks[i];
  return NULL;
}

static void list_one(struct channel *to, const char *name) {
  char path[96], sectors[32], is_read_only[8], serial[64], label[33] = "";
  snprintf(path, sizeof path, "/sys/block/%.16s/size", name);
  read_text(path, sectors, sizeof sectors);
  snprintf(path, sizeof path, "/sys/block/%.16s/ro", name);
  read_text(path, is_read_only, sizeof is_read_only);
  snprintf(path, sizeof path, "/sys/block/%.16s/serial", name);
  read_text(path, serial, sizeof serial);
  snprintf(path, sizeof path, "/dev/%.16s", name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  int is_iso = fd >= 0 && is_iso9660(fd, label);
  if (fd >= 0) close(fd);
  const struct disk *disk = ours(name);
  channel_say(to, "disk name=%s bytes=%llu access=%s serial=%s use=%s boots=%u label=%s\n", name,
              strtoull(sectors, NULL, 10) * 512, is_read_only[0] == '1' ? "ro" : "rw", serial,
              disk ? "checked" : is_iso ? "iso9660" : "none", disk ? disk->boots : 0, label);
}

void disks_list(struct channel *to) {
  struct dirent **entries;
  int count = scandir("/sys/block", &entries, is_disk, alphasort);
  for (int i = 0; i < count; i++) {
    list_one(to, entries[i]->d_name);
    free(entries[i]);
  }
  if (count >= 0) free(entries);
}
