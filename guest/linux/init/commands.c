/*
 * What can be said to the guest, a line each; every one is answered by a line that begins with `answer`:
 *
 *   memory, disk       check everything          status, ping TEXT   show that it lives
 *   rate N             MiB to dirty per second   disks, ls           what is attached; files on ISO volumes
 *   tick N, write N    ms between lines, writes  network, cloud-init what it knows of them
 *   button off|ignore  what the power button does
 *   size               how many processors and how much memory there are
 *   clock              what time it is, and how often somebody has set it
 *   poweroff, reboot, panic                      on the console only
 */
#include "init.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *after(const char *text, const char *prefix) {
  size_t length = strlen(prefix);
  return strncmp(text, prefix, length) ? NULL : text + length;
}

static void answer_check(struct channel *to, const char *what, u32 all, u32 bad, u32 changes) {
  channel_say(to, "answer boot=%s %s=%s checked=%u bad=%u written=%u\n", boot_id, what, bad ? "bad" : "ok", all, bad,
              changes);
}

static void panic(void) {
  int fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);
  if (write(fd, "c", 1) != 1) channel_say(&console, "trouble panic=refused\n");
}

static int answer_power(const char *line) {
  if (!strcmp(line, "poweroff")) shut_down(0);
  if (!strcmp(line, "reboot")) shut_down(1);
  if (strcmp(line, "panic")) return 0;
  panic();
  return 1;
}

/* Commands with a number. 0 when it was none of them. */
static int answer_setting(struct channel *to, const char *line) {
  static const struct {
    const char *name;
    void (*set)(u32);
  } settings[] = {{"rate", memory_rate}, {"tick", set_tick}, {"write", set_write}};
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
    const char *rest = after(line, settings[i].name);
    if (!rest || *rest != ' ') continue;
    u32 value = (u32)strtoul(rest + 1, NULL, 10);
    if (!value && settings[i].set == set_tick) return 0;
    settings[i].set(value);
    channel_say(to, "answer %s=%u\n", settings[i].name, value);
    return 1;
  }
  return 0;
}

static int answer_question(struct channel *to, const char *line) {
  char state[192];
  const char *rest;
  if (!strcmp(line, "memory")) {
    answer_check(to, "memory", memory_pages(), memory_check(), memory_dirtied());
  } else if (!strcmp(line, "disk")) {
    answer_check(to, "disk", disks_blocks(), disks_check(), disks_writes());
  } else if (!strcmp(line, "status")) {
    state_text(state, sizeof state);
    channel_say(to, "answer %s address=%s\n", state, network_address());
  } else if ((rest = after(line, "ping "))) {
    channel_say(to, "answer boot=%s pong=%s\n", boot_id, rest);
  } else if (!strcmp(line, "disks")) {
    disks_list(to);
    channel_say(to, "answer disks\n");
  } else if (!strcmp(line, "ls")) {
    u32 files = volumes_list(to);
    channel_say(to, "answer files=%u\n", files);
  } else if (!strcmp(line, "network")) {
    network_say(to);
    channel_say(to, "answer address=%s\n", network_address());
  } else if (!strcmp(line, "cloud-init")) {
    cloud_init_say(to);
    channel_say(to, "answer cloud-init\n");
  } else if (!strcmp(line, "size")) {
    size_say(to);
  } else if (!strcmp(line, "clock")) {
    clock_say(to);
  } else if ((rest = after(line, "button "))) {
    set_button(!strcmp(rest, "ignore"));
    channel_say(to, "answer button=%s\n", strcmp(rest, "ignore") ? "off" : "ignore");
  } else {
    return 0;
  }
  return 1;
}

void answer(struct channel *to, const char *line) {
  if (!*line) return;
  if (to->may_shut_down && answer_power(line)) return;
  if (!answer_setting(to, line) && !answer_question(to, line)) channel_say(to, "answer unknown\n");
}
