/* An address for the first network card, by DHCP (RFC 2131): discover, request, and request again when half of the lease is
 * over. Answers are asked for as broadcasts, since before there is an address nothing else would be heard. */
#include "init.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVER_PORT 67
#define CLIENT_PORT 68
#define MAGIC_COOKIE 0x63825363u
#define RETRY_US 250000u
#define RETRY_US_MAX 8000000u
#define LEASE_SECONDS_MIN 60u
#define OPTIONS_SIZE 312

enum { OPTION_MASK = 1, OPTION_ROUTER = 3, OPTION_NAME = 12, OPTION_ADDRESS = 50, OPTION_LEASE = 51, OPTION_TYPE = 53 };
enum { OPTION_SERVER = 54, OPTION_WANTED = 55, OPTION_END = 255 };
enum { DISCOVER = 1, OFFER = 2, REQUEST = 3, ACKNOWLEDGED = 5, REFUSED = 6 };

struct message {
  u8 operation, hardware_type, hardware_length, hops;
  u32 transaction;
  u16 seconds, flags;
  u32 client, yours, server, relay;
  u8 hardware[16], server_name[64], file[128];
  u32 cookie;
  u8 options[OPTIONS_SIZE];
} __attribute__((packed));

static char name[IFNAMSIZ], address_text[INET_ADDRSTRLEN] = "none";
static u8 mac[6];
static int fd = -1;
static u32 transaction, offered, server, address, mask, router;
static u64 due = ~0ull, retry_us = RETRY_US;
static enum { NO_CARD, DISCOVERING, REQUESTING, BOUND } state;

static int is_card(const struct dirent *entry) { return !strncmp(entry->d_name, "e", 1); }

static int control(unsigned long request, void *argument) {
  int socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  int result = ioctl(socket_fd, request, argument);
  close(socket_fd);
  return result;
}

static void bring_up(const char *interface) {
  struct ifreq request = {0};
  snprintf(request.ifr_name, IFNAMSIZ, "%s", interface);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  control(SIOCSIFFLAGS, &request);
}

static void set_address(unsigned long what, u32 value) {
  struct ifreq request = {0};
  struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = value};
  snprintf(request.ifr_name, IFNAMSIZ, "%s", name);
  memcpy(&request.ifr_addr, &in, sizeof in);
  control(what, &request);
}

static void set_router(u32 value) {
  struct rtentry route = {.rt_flags = RTF_UP | RTF_GATEWAY, .rt_dev = name};
  struct sockaddr_in any = {.sin_family = AF_INET}, in = {.sin_family = AF_INET, .sin_addr.s_addr = value};
  memcpy(&route.rt_dst, &any, sizeof any);
  memcpy(&route.rt_genmask, &any, sizeof any);
  memcpy(&route.rt_gateway, &in, sizeof in);
  control(SIOCADDRT, &route);
}

static int open_socket(void) {
  int yes = 1, socket_fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(CLIENT_PORT)};
  setsockopt(socket_fd, SOL_SOCKET, SO_BROADCAST, &yes, sizeof yes);
  setsockopt(socket_fd, SOL_SOCKET, SO_BINDTODEVICE, name, strlen(name) + 1);
  if (!bind(socket_fd, (void *)&here, sizeof here)) return socket_fd;
  close(socket_fd);
  return -1;
}

void network_open(u32 seed) {
  struct dirent **entries;
  struct ifreq request = {0};
  bring_up("lo");
  if (scandir("/sys/class/net", &entries, is_card, alphasort) < 1) return;
  snprintf(name, sizeof name, "%.15s", entries[0]->d_name);
  snprintf(request.ifr_name, IFNAMSIZ, "%s", name);
  control(SIOCGIFHWADDR, &request);
  memcpy(mac, request.ifr_hwaddr.sa_data, sizeof mac);
  bring_up(name);
  fd = open_socket();
  transaction = seed;
  state = DISCOVERING;
  due = 0;
}

static u8 *add_option(u8 *at, u8 code, const void *value, size_t length) {
  *at++ = code;
  *at++ = (u8)length;
  memcpy(at, value, length);
  return at + length;
}

static void send_message(u8 type) {
  struct message message = {.operation = 1, .hardware_type = 1, .hardware_length = 6, .transaction = transaction};
  struct sockaddr_in everybody = {.sin_family = AF_INET, .sin_port = htons(SERVER_PORT), .sin_addr.s_addr = ~0u};
  char host_name[64] = "";
  u8 *end = message.options;
  message.flags = htons(0x8000);
  message.cookie = htonl(MAGIC_COOKIE);
  memcpy(message.hardware, mac, sizeof mac);
  end = add_option(end, OPTION_TYPE, &type, 1);
  end = add_option(end, OPTION_WANTED, "\x01\x03\x33", 3);
  if (!gethostname(host_name, sizeof host_name - 1) && host_name[0] && host_name[0] != '(')
    end = add_option(end, OPTION_NAME, host_name, strlen(host_name));
  if (type == REQUEST) {
    end = add_option(end, OPTION_ADDRESS, &offered, 4);
    end = add_option(end, OPTION_SERVER, &server, 4);
  }
  *end = OPTION_END;
  if (sendto(fd, &message, sizeof message, 0, (void *)&everybody, sizeof everybody) < 0) return;
}

void network_work(u64 now) {
  if (state == NO_CARD || now < due) return;
  if (state == BOUND) state = REQUESTING;
  send_message(state == DISCOVERING ? DISCOVER : REQUEST);
  due = now + retry_us;
  if (retry_us < RETRY_US_MAX) retry_us *= 2;
  /* A server that does not know us any more does not answer. */
  else state = DISCOVERING;
}

u64 network_due(void) { return due; }
int network_fd(void) { return fd; }
const char *network_address(void) { return address_text; }

/* A number of four bytes, as it came, or another. */
static u32 option(const struct message *message, size_t length, u8 code, u32 otherwise) {
  const u8 *at = message->options, *end = (const u8 *)message + length;
  while (at + 2 <= end && *at != OPTION_END) {
    if (!*at) {
      at++;
      continue;
    }
    if (at + 2 + at[1] > end) break;
    u32 value = at[2];
    if (*at == code && at[1] >= 4) memcpy(&value, at + 2, 4);
    if (*at == code) return value;
    at += 2 + at[1];
  }
  return otherwise;
}

static void take_lease(const struct message *message, size_t length, u64 now) {
  u32 lease = ntohl(option(message, length, OPTION_LEASE, htonl(3600)));
  if (lease < LEASE_SECONDS_MIN) lease = LEASE_SECONDS_MIN;
  due = now + (u64)lease * 500000;
  retry_us = RETRY_US;
  state = BOUND;
  if (message->yours == address) return;
  address = message->yours;
  mask = option(message, length, OPTION_MASK, htonl(0xffffff00));
  router = option(message, length, OPTION_ROUTER, 0);
  set_address(SIOCSIFADDR, address);
  set_address(SIOCSIFNETMASK, mask);
  if (router) set_router(router);
  inet_ntop(AF_INET, &address, address_text, sizeof address_text);
  network_say(&console);
}

static void take(const struct message *message, size_t length, u64 now) {
  if (message->operation != 2 || message->transaction != transaction || memcmp(message->hardware, mac, 6)) return;
  if (message->cookie != htonl(MAGIC_COOKIE)) return;
  u32 type = option(message, length, OPTION_TYPE, 0);
  if (state == DISCOVERING && type == OFFER) {
    offered = message->yours;
    server = option(message, length, OPTION_SERVER, message->server);
    state = REQUESTING;
    due = now;
  } else if (state == REQUESTING && type == ACKNOWLEDGED) {
    take_lease(message, length, now);
  } else if (state == REQUESTING && type == REFUSED) {
    state = DISCOVERING;
    due = now + retry_us;
  }
}

void network_read(u64 now) {
  struct message message;
  ssize_t length;
  while ((length = recv(fd, &message, sizeof message, 0)) > 0)
    if ((size_t)length > offsetof(struct message, options)) take(&message, (size_t)length, now);
}

void network_say(struct channel *to) {
  char gateway[INET_ADDRSTRLEN];
  if (state == NO_CARD) return;
  inet_ntop(AF_INET, &router, gateway, sizeof gateway);
  channel_say(to, "network interface=%s mac=%02x:%02x:%02x:%02x:%02x:%02x address=%s/%d gateway=%s\n", name, mac[0], mac[1],
              mac[2], mac[3], mac[4], mac[5], address_text, __builtin_popcount(mask), gateway);
}
