/*
 * How large the machine is. Processors and memory that are plugged in while it runs are there for nobody before they are
 * switched on, which on other systems udev does.
 */
#include "init.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CPUS "/sys/devices/system/cpu"
#define LOOK_US 500000

static u64 next_look;

static int put_text(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  int is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  if (fd >= 0) close(fd);
  return is_written;
}

/* How many a list such as `0-2,5` names. */
static u32 listed(const char *list) {
  u32 count = 0, first, last;
  int length;
  while (*list) {
    if (sscanf(list, "%u%n", &first, &length) != 1) break;
    list += length;
    last = first;
    if (*list == '-' && sscanf(list + 1, "%u%n", &last, &length) == 1) list += length + 1;
    count += last - first + 1;
    if (*list == ',') list++;
  }
  return count;
}

static u32 processors(const char *which) {
  char path[64], list[256];
  snprintf(path, sizeof path, CPUS "/%s", which);
  read_text(path, list, sizeof list);
  return listed(list);
}

void size_open(void) {
  put_text("/sys/devices/system/memory/auto_online_blocks", "online");
}

/* The numbers of processors need not be without gaps: those beyond the last are not there, and cost a failed open. */
void size_work(u64 now) {
  char path[64], state[8];
  if (now < next_look) return;
  next_look = now + LOOK_US;
  u32 present = processors("present");
  if (processors("online") == present) return;
  for (u32 i = 0; i < PROCESSORS_MAX; i++) {
    snprintf(path, sizeof path, CPUS "/cpu%u/online", i);
    read_text(path, state, sizeof state);
    if (!strcmp(state, "0")) put_text(path, "1");
  }
}

void size_say(struct channel *to) {
  char text[256];
  u32 kib = 0;
  read_text("/proc/meminfo", text, sizeof text);
  sscanf(text, "MemTotal: %u kB", &kib);
  channel_say(to, "answer boot=%s processors=%u memory=%uMiB\n", boot_id, processors("online"), kib / 1024);
}
