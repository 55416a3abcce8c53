#include "init.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HTTP_PORT 80
#define LINE_PORT 7777
#define LISTENERS 2
#define CONNECTIONS_MAX (SERVER_POLLS_MAX - LISTENERS)

struct connection {
  struct channel channel; /* first: a channel that was given out is found again by its address */
  int is_http;
  u64 last_us;
};

static int listeners[LISTENERS];
static struct connection connections[CONNECTIONS_MAX];

static int listen_on(u16 port) {
  int yes = 1, fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int is_v6 = fd >= 0;
  if (!is_v6) fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(fd, is_v6 ? (void *)&six : (void *)&four, is_v6 ? sizeof six : sizeof four) || listen(fd, 16))
    channel_say(&console, "trouble port=%u listen=refused\n", port);
  return fd;
}

void server_open(void) {
  for (size_t i = 0; i < CONNECTIONS_MAX; i++) connections[i].channel.fd = -1;
  listeners[0] = listen_on(HTTP_PORT);
  listeners[1] = listen_on(LINE_PORT);
}

static void take_http_line(struct channel *channel, const char *line) {
  char state[192], body[224];
  /* Whatever is asked for, the answer follows the empty line after the question. */
  if (*line || channel->is_closing) return;
  state_text(state, sizeof state);
  int length = snprintf(body, sizeof body, "guest %s\n", state);
  channel_say(channel,
              "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", length,
              body);
  channel->is_closing = 1;
}

static void close_connection(struct connection *connection) {
  close(connection->channel.fd);
  connection->channel.fd = -1;
}

/* One that is free, else the one that has been silent for the longest. */
static struct connection *place_for_connection(void) {
  struct connection *best = &connections[0];
  for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
    if (connections[i].channel.fd < 0) return &connections[i];
    if (connections[i].last_us < best->last_us) best = &connections[i];
  }
  close_connection(best);
  return best;
}

static void take_connection(int listener, int is_http) {
  int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) return;
  struct connection *connection = place_for_connection();
  channel_open(&connection->channel, fd);
  connection->is_http = is_http;
  connection->last_us = now_us();
}

size_t server_poll(struct pollfd *polls) {
  for (size_t i = 0; i < LISTENERS; i++) polls[i] = (struct pollfd){listeners[i], POLLIN, 0};
  for (size_t i = 0; i < CONNECTIONS_MAX; i++)
    polls[LISTENERS + i] = (struct pollfd){connections[i].channel.fd, channel_events(&connections[i].channel), 0};
  return SERVER_POLLS_MAX;
}

static void handle_connection(struct connection *connection, short events) {
  struct channel *channel = &connection->channel;
  connection->last_us = now_us();
  int lives = !(events & (POLLERR | POLLHUP));
  if (lives && events & POLLIN) lives = channel_read(channel, connection->is_http ? take_http_line : answer);
  if (lives) lives = channel_write(channel);
  if (!lives) close_connection(connection);
}

void server_handle(const struct pollfd *polls, size_t count) {
  for (size_t i = LISTENERS; i < count; i++)
    if (polls[i].fd >= 0 && polls[i].revents) handle_connection(&connections[i - LISTENERS], polls[i].revents);
  for (size_t i = 0; i < LISTENERS; i++)
    if (polls[i].revents & POLLIN) take_connection(listeners[i], i == 0);
}
