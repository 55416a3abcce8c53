/*
 * A Linux guest that does nothing but show what it went through. Its kernel is Debian's; this is all that runs on it.
 * Several times a second it says on the serial port
 *
 *   guest boot=6f1c… count=1042 uptime=104.2 memory=ok disk=ok
 *
 * with an id that is drawn at boot, and a count that starts then and never again: the same id with a lower count, or
 * twice the same count, is a guest that ran twice. A part of memory and disks is checked before each such line.
 *
 * It has an address by DHCP, answers on port 80 with its state and on port 7777 with what the console answers, reads
 * what cloud-init would read, and shuts down when its power button is pressed.
 *
 * On the kernel's command line: mib= (memory to work on), rate= (MiB to dirty per second), tick= (ms between lines),
 * write= (ms between disk writes), blocks= (of each disk), button=ignore (a guest that does not shut down when asked).
 * What can be said to it: commands.c.
 */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define LOG_LEVEL_COMMAND 8
#define IDLE_MS_MAX 1000
#define DIRTYING_MS_MAX 5

char boot_id[BOOT_ID_LENGTH + 1];
struct channel console = {.fd = -1, .ends_lines_with_return = 1, .may_shut_down = 1};
static u32 count, tick_ms = 200, write_ms = 50;
static u64 next_line, next_write;

u64 now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (u64)now.tv_sec * 1000000 + (u64)now.tv_nsec / 1000;
}

u32 divide(u64 value, u32 by) { return (u32)(value / by); }

void set_tick(u32 ms) {
  tick_ms = ms;
  next_line = 0;
}

void set_write(u32 ms) {
  write_ms = ms;
  next_write = 0;
}

void state_text(char *text, size_t size) {
  u32 tenths = divide(now_us(), 100000);
  snprintf(text, size, "boot=%s count=%u uptime=%u.%u memory=%s disk=%s", boot_id, count, tenths / 10, tenths % 10,
           memory_is_bad() ? "bad" : "ok", disks_blocks() ? disks_are_bad() ? "bad" : "ok" : "none");
}

void read_text(const char *path, char *text, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? 0 : read(fd, text, size - 1);
  if (fd >= 0) close(fd);
  if (length < 0) length = 0;
  while (length && text[length - 1] == '\n') length--;
  text[length] = 0;
}

static void mount_systems(void) {
  mount("devtmpfs", "/dev", "devtmpfs", 0, "");
  mount("proc", "/proc", "proc", 0, "");
  mount("sysfs", "/sys", "sysfs", 0, "");
}

static void load_modules(void) {
  char names[4096], path[128];
  read_text("/modules/order", names, sizeof names);
  for (char *name = strtok(names, "\n"); name; name = strtok(NULL, "\n")) {
    snprintf(path, sizeof path, "/modules/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)
      channel_say(&console, "trouble module=%s error=%s\n", name, strerrorname_np(errno));
    close(fd);
    unlink(path);
  }
}

static void open_console(void) {
  int fd = open("/dev/ttyS0", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  struct termios settings;
  if (fd >= 0 && !tcgetattr(fd, &settings)) {
    cfmakeraw(&settings);
    settings.c_cflag |= CLOCAL;
    cfsetspeed(&settings, B115200);
    tcsetattr(fd, TCSANOW, &settings);
  }
  channel_open(&console, fd);
}

static u32 draw_boot_id(void) {
  u8 bytes[BOOT_ID_LENGTH / 2];
  u32 seed;
  getrandom(bytes, sizeof bytes, 0);
  for (size_t i = 0; i < sizeof bytes; i++) snprintf(boot_id + 2 * i, 3, "%02x", bytes[i]);
  memcpy(&seed, bytes, sizeof seed);
  return seed;
}

/* What follows `key` on the command line, or nothing. Words are separated by blanks. */
static const char *option(const char *line, const char *key) {
  for (const char *at = strstr(line, key); at; at = strstr(at + 1, key))
    if (at == line || at[-1] == ' ') return at + strlen(key);
  return NULL;
}

static u32 option_number(const char *line, const char *key, u32 otherwise) {
  const char *value = option(line, key);
  return value ? (u32)strtoul(value, NULL, 10) : otherwise;
}

/* As much as was asked for, or as there is; the kernel itself needs some. */
static void open_memory(u32 seed, u32 mib) {
  for (; mib; mib /= 2) {
    void *start = mmap(NULL, memory_bytes(mib), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0);
    if (start == MAP_FAILED) continue;
    memory_open(seed, start, memory_bytes(mib));
    return;
  }
}

static void tick(u64 now) {
  char state[192];
  next_line = now + (u64)tick_ms * 1000;
  memory_glance();
  disks_glance();
  count++;
  state_text(state, sizeof state);
  channel_say(&console, "guest %s\n", state);
}

static u64 earlier(u64 a, u64 b) { return a < b ? a : b; }

/* Does what is due, and answers for how many ms there is nothing more to do. */
static int work(u64 now) {
  if (now >= next_line) tick(now);
  if (write_ms && now >= next_write) {
    next_write = now + (u64)write_ms * 1000;
    disks_write_one();
  }
  network_work(now);
  size_work(now);
  if (memory_work(now)) return 0;
  u64 due = earlier(now + (memory_is_dirtied() ? DIRTYING_MS_MAX : IDLE_MS_MAX) * 1000, next_line);
  if (write_ms) due = earlier(due, next_write);
  due = earlier(due, network_due());
  return due > now ? (int)divide(due - now + 999, 1000) : 0;
}

static void console_handle(short events) {
  if (events & POLLIN) channel_read(&console, answer);
  if (events & (POLLIN | POLLOUT)) channel_write(&console);
}

static void run(void) {
  struct pollfd polls[3 + POWER_POLLS_MAX + SERVER_POLLS_MAX];
  for (;;) {
    int patience_ms = work(now_us());
    size_t power = 2, agent = power + power_poll(polls + power);
    size_t server = agent + agent_poll(polls + agent, now_us());
    size_t end = server + server_poll(polls + server);
    polls[0] = (struct pollfd){console.fd, channel_events(&console), 0};
    polls[1] = (struct pollfd){network_fd(), POLLIN, 0};
    if (poll(polls, end, patience_ms) <= 0) continue;
    console_handle(polls[0].revents);
    if (polls[1].revents) network_read(now_us());
    for (size_t i = power; i < agent; i++) power_handle(&polls[i]);
    if (server > agent) agent_handle(&polls[agent], now_us());
    server_handle(polls + server, end - server);
  }
}

int main(void) {
  char line[2048];
  mount_systems();
  klogctl(LOG_LEVEL_COMMAND, NULL, 1);
  open_console();
  load_modules();
  read_text("/proc/cmdline", line, sizeof line);
  u32 seed = draw_boot_id();
  tick_ms = option_number(line, "tick=", tick_ms);
  write_ms = option_number(line, "write=", write_ms);
  if (!tick_ms) tick_ms = 1;
  open_memory(seed, option_number(line, "mib=", 8));
  size_open();
  volumes_open();
  disks_open(seed, option_number(line, "blocks=", 1024));
  power_open();
  set_button(option(line, "button=ignore") != NULL);
  agent_open();
  network_open(seed);
  server_open();
  channel_say(&console, "ready boot=%s count=0 pages=%u blocks=%u\n", boot_id, memory_pages(), disks_blocks());
  cloud_init_say(&console);
  memory_rate(option_number(line, "rate=", 0));
  run();
}
