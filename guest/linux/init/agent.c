/* Enough of the QEMU guest agent's protocol to be seen, to be told apart, and to be asked to shut down: a JSON object per
 * line each way. Nobody but the host is on the other side, and what it says is looked through for the few words that
 * matter here. */
#include "init.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define PORT_NAME "org.qemu.guest_agent.0"
#define ABSENCE_US 250000

static struct channel agent = {.fd = -1};
static u64 absent_until;
static u32 clock_sets;

static int open_port(void) {
  char path[320], name[64];
  int fd = -1;
  DIR *directory = opendir("/sys/class/virtio-ports");
  if (!directory) return -1;
  for (struct dirent *entry = readdir(directory); entry && fd < 0; entry = readdir(directory)) {
    snprintf(path, sizeof path, "/sys/class/virtio-ports/%s/name", entry->d_name);
    read_text(path, name, sizeof name);
    if (strcmp(name, PORT_NAME)) continue;
    snprintf(path, sizeof path, "/dev/%s", entry->d_name);
    fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  }
  closedir(directory);
  return fd;
}

void agent_open(void) { channel_open(&agent, open_port()); }

/* A port to which nobody is connected says so without end: it is asked again only after a while. */
size_t agent_poll(struct pollfd *polls, u64 now) {
  *polls = (struct pollfd){now < absent_until ? -1 : agent.fd, channel_events(&agent), 0};
  return 1;
}

/* Copies the text behind a key, with its quotes gone. 0 when there is none. */
static int word_of(const char *line, const char *key, char *word, size_t size) {
  const char *at = strstr(line, key);
  if (!at) return 0;
  at += strlen(key);
  at += strspn(at, "\" :");
  size_t length = 0;
  while (length + 1 < size && (isalnum((unsigned char)at[length]) || at[length] == '-' || at[length] == '_')) length++;
  memcpy(word, at, length);
  word[length] = 0;
  return length > 0;
}

static void say_information(void) {
  channel_say(&agent, "{\"return\":{\"version\":\"7.2.0\",\"supported_commands\":[");
  static const char *const names[] = {"guest-sync", "guest-sync-delimited", "guest-ping",      "guest-info",
                                      "guest-get-osinfo", "guest-get-host-name", "guest-get-time", "guest-shutdown",
                                      "guest-network-get-interfaces", "guest-set-time"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    channel_say(&agent, "%s{\"name\":\"%s\",\"enabled\":true,\"success-response\":%s}", i ? "," : "", names[i],
                strcmp(names[i], "guest-shutdown") ? "true" : "false");
  channel_say(&agent, "]}}\n");
}

static void say_system(void) {
  struct utsname system;
  uname(&system);
  channel_say(&agent,
              "{\"return\":{\"id\":\"godwit-guest\",\"name\":\"Godwit's Linux guest\",\"pretty-name\":\"Godwit's Linux "
              "guest\",\"version\":\"1\",\"version-id\":\"1\",\"kernel-release\":\"%s\",\"kernel-version\":\"%s\","
              "\"machine\":\"%s\"}}\n",
              system.release, system.version, system.machine);
}

static void say_interfaces(void) {
  const char *address = network_address();
  channel_say(&agent, "{\"return\":[{\"name\":\"eth0\",\"ip-addresses\":[");
  if (strcmp(address, "none"))
    channel_say(&agent, "{\"ip-address-type\":\"ipv4\",\"ip-address\":\"%s\",\"prefix\":24}", address);
  channel_say(&agent, "]}]}\n");
}

static void set_time(const char *nanoseconds) {
  long long time_ns = atoll(nanoseconds);
  struct timespec time = {time_ns / 1000000000, time_ns % 1000000000};
  if (clock_settime(CLOCK_REALTIME, &time)) {
    channel_say(&agent, "{\"error\":{\"class\":\"GenericError\",\"desc\":\"The clock cannot be set\"}}\n");
    return;
  }
  clock_sets++;
  channel_say(&agent, "{\"return\":{}}\n");
}

void clock_say(struct channel *to) {
  channel_say(to, "answer clock=%lld set=%u\n", (long long)time(NULL), clock_sets);
}

static void say_simple(const char *command) {
  char name[65] = "";
  if (!strcmp(command, "guest-ping")) {
    channel_say(&agent, "{\"return\":{}}\n");
  } else if (!strcmp(command, "guest-get-host-name")) {
    gethostname(name, sizeof name - 1);
    channel_say(&agent, "{\"return\":{\"host-name\":\"%s\"}}\n", name);
  } else if (!strcmp(command, "guest-get-time")) {
    channel_say(&agent, "{\"return\":%lld}\n", (long long)time(NULL) * 1000000000);
  } else {
    channel_say(&agent, "{\"error\":{\"class\":\"CommandNotFound\",\"desc\":\"The command %s has not been found\"}}\n",
                command);
  }
}

static void take_line(struct channel *from, const char *line) {
  char command[64], value[32];
  (void)from;
  if (!word_of(line, "\"execute\"", command, sizeof command)) return;
  if (!strncmp(command, "guest-sync", 10)) {
    if (!word_of(line, "\"id\"", value, sizeof value)) return;
    /* A byte that cannot be part of an answer tells where this one begins. */
    channel_say(&agent, "%s{\"return\":%s}\n", strcmp(command, "guest-sync") ? "\xff" : "", value);
  } else if (!strcmp(command, "guest-info")) {
    say_information();
  } else if (!strcmp(command, "guest-get-osinfo")) {
    say_system();
  } else if (!strcmp(command, "guest-network-get-interfaces")) {
    say_interfaces();
  } else if (!strcmp(command, "guest-set-time") && word_of(line, "\"time\"", value, sizeof value)) {
    set_time(value);
  } else if (!strcmp(command, "guest-shutdown")) {
    shut_down(word_of(line, "\"mode\"", value, sizeof value) && !strcmp(value, "reboot"));
  } else {
    say_simple(command);
  }
}

void agent_handle(const struct pollfd *poll, u64 now) {
  if (!poll->revents) return;
  if (poll->revents & POLLIN && channel_read(&agent, take_line) && channel_write(&agent)) return;
  if (poll->revents & POLLHUP || poll->revents & POLLIN) {
    absent_until = now + ABSENCE_US;
    agent.input_length = agent.output_length = 0;
    return;
  }
  channel_write(&agent);
}
