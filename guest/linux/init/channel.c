#include "init.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void channel_open(struct channel *channel, int fd) {
  channel->fd = fd;
  channel->is_closing = 0;
  channel->input_length = channel->output_length = 0;
}

void channel_say(struct channel *channel, const char *format, ...) {
  char text[4096];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0 || (size_t)length >= sizeof text) return;
  if (channel->output_length + (size_t)length > sizeof channel->output) return;
  memcpy(channel->output + channel->output_length, text, (size_t)length);
  channel->output_length += (size_t)length;
}

short channel_events(const struct channel *channel) {
  return (short)((channel->is_closing ? 0 : POLLIN) | (channel->output_length ? POLLOUT : 0));
}

static int is_temporary(void) { return errno == EAGAIN || errno == EINTR; }

/* The end of the first line, or nothing yet. */
static char *line_end(struct channel *channel) {
  for (size_t i = 0; i < channel->input_length; i++) {
    char c = channel->input[i];
    if (c == '\n' || (c == '\r' && channel->ends_lines_with_return)) return channel->input + i;
  }
  return NULL;
}

int channel_read(struct channel *channel, line_taker taker) {
  ssize_t length =
      read(channel->fd, channel->input + channel->input_length, sizeof channel->input - channel->input_length);
  if (length == 0) return 0;
  if (length < 0) return is_temporary();
  channel->input_length += (size_t)length;
  for (char *end = line_end(channel); end; end = line_end(channel)) {
    char line[sizeof channel->input];
    size_t size = (size_t)(end - channel->input);
    memcpy(line, channel->input, size);
    line[size && line[size - 1] == '\r' ? size - 1 : size] = 0;
    channel->input_length -= size + 1;
    memmove(channel->input, end + 1, channel->input_length);
    taker(channel, line);
  }
  /* A line that long means nothing. */
  if (channel->input_length == sizeof channel->input) channel->input_length = 0;
  return 1;
}

int channel_write(struct channel *channel) {
  while (channel->output_length) {
    ssize_t length = write(channel->fd, channel->output, channel->output_length);
    if (length < 0) return is_temporary();
    channel->output_length -= (size_t)length;
    memmove(channel->output, channel->output + length, channel->output_length);
  }
  return !channel->is_closing;
}
