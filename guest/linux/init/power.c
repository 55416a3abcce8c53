/* The power button, which the kernel shows as a keyboard with one key; and the ways to stop. */
#include "init.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/input.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/reboot.h>
#include <termios.h>
#include <unistd.h>

#define FLUSH_US_MAX 1000000

static int inputs[POWER_POLLS_MAX];
static size_t input_count;
static int ignores_button;

void power_open(void) {
  DIR *directory = opendir("/dev/input");
  if (!directory) return;
  for (struct dirent *entry = readdir(directory); entry && input_count < POWER_POLLS_MAX; entry = readdir(directory)) {
    char path[300];
    if (strncmp(entry->d_name, "event", 5)) continue;
    snprintf(path, sizeof path, "/dev/input/%s", entry->d_name);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) inputs[input_count++] = fd;
  }
  closedir(directory);
}

void set_button(int is_ignored) { ignores_button = is_ignored; }

size_t power_poll(struct pollfd *polls) {
  for (size_t i = 0; i < input_count; i++) polls[i] = (struct pollfd){inputs[i], POLLIN, 0};
  return input_count;
}

void power_handle(const struct pollfd *poll) {
  struct input_event event;
  if (!poll->revents) return;
  while (read(poll->fd, &event, sizeof event) == sizeof event)
    if (event.type == EV_KEY && event.code == KEY_POWER && event.value == 1 && !ignores_button) shut_down(0);
}

void shut_down(int is_reboot) {
  channel_say(&console, "guest boot=%s power=%s\n", boot_id, is_reboot ? "reboot" : "off");
  disks_flush();
  sync();
  /* A reader who has gone to sleep is not waited for. */
  for (u64 start = now_us(); console.output_length && now_us() - start < FLUSH_US_MAX; usleep(1000))
    channel_write(&console);
  int waiting = 1;
  for (u64 start = now_us(); waiting && now_us() - start < FLUSH_US_MAX; usleep(1000))
    if (ioctl(console.fd, TIOCOUTQ, &waiting)) break;
  reboot(is_reboot ? RB_AUTOBOOT : RB_POWER_OFF);
  for (;;) pause();
}
