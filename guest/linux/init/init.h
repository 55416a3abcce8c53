/* What the parts of the Linux guest know of each other. */
#ifndef INIT_H
#define INIT_H

#include <poll.h>
#include <stddef.h>

#include "guest.h"

#define BOOT_ID_LENGTH 32

/* channel.c: text to and from somebody, a line at a time. What does not fit is left out by whole lines, never cut, and
 * nobody is waited for. */
struct channel {
  int fd;
  int ends_lines_with_return; /* as terminals do */
  int may_shut_down;
  int is_closing; /* once everything is sent */
  size_t input_length, output_length;
  char input[4096];
  char output[65536];
};
typedef void (*line_taker)(struct channel *from, const char *line);
void channel_open(struct channel *channel, int fd);
void channel_say(struct channel *channel, const char *format, ...) __attribute__((format(printf, 2, 3)));
short channel_events(const struct channel *channel);          /* what to poll for */
int channel_read(struct channel *channel, line_taker taker);  /* 0 when the other side is gone */
int channel_write(struct channel *channel);                   /* likewise */

/* main.c */
extern char boot_id[BOOT_ID_LENGTH + 1];
extern struct channel console;
void state_text(char *text, size_t size);
void set_tick(u32 ms);
void set_write(u32 ms);
void read_text(const char *path, char *text, size_t size); /* without the line's end; empty when it cannot be read */

/* commands.c */
void answer(struct channel *to, const char *line);

/* disk.c: every disk that is empty, or was when this guest first saw it, is written to and checked. */
void disks_open(u32 seed, u32 wanted_blocks);
u32 disks_blocks(void); /* 0 without a disk */
u32 disks_writes(void);
void disks_write_one(void);
void disks_glance(void); /* reads one block back, in turn */
u32 disks_check(void);   /* reads all; answers how many are bad */
int disks_are_bad(void);
void disks_list(struct channel *to);
void disks_flush(void);

/* volumes.c: disks with an ISO 9660 file system, as configuration comes. */
void volumes_open(void);
u32 volumes_list(struct channel *to); /* every file; answers how many */
void cloud_init_say(struct channel *to);
int is_iso9660(int fd, char label[33]);

/* network.c: an address by DHCP for the first card. */
void network_open(u32 seed);
void network_work(u64 now);
u64 network_due(void);
int network_fd(void); /* -1 when nothing is expected */
void network_read(u64 now);
void network_say(struct channel *to);
const char *network_address(void);

/* server.c: the same commands by TCP as on the console, and the state by HTTP. */
void server_open(void);
size_t server_poll(struct pollfd *polls);
void server_handle(const struct pollfd *polls, size_t count);
#define SERVER_POLLS_MAX 18

/* agent.c: enough of a QEMU guest agent to be seen and to be asked to shut down. */
void agent_open(void);
size_t agent_poll(struct pollfd *polls, u64 now);
void agent_handle(const struct pollfd *poll, u64 now);
void clock_say(struct channel *to); /* what time it is, and how often the agent was told */

/* power.c */
void power_open(void);
size_t power_poll(struct pollfd *polls);
#define POWER_POLLS_MAX 8
void power_handle(const struct pollfd *poll); /* shuts down when the button was pressed */
void set_button(int is_ignored);
void shut_down(int is_reboot) __attribute__((noreturn));

/* size.c: how many processors and how much memory there are; what is plugged in is switched on. */
void size_open(void);
void size_work(u64 now);
void size_say(struct channel *to);
#define PROCESSORS_MAX 64

/* sha256.c */
void sha256_text(const void *bytes, size_t length, char hex[65]);

#endif
