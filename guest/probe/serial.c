/* The first serial port: the guest's only voice and ear. */
#include "probe.h"

#define PORT 0x3f8
#define PATIENCE_US 2000000

static char line[512];
static u32 length;

void serial_open(void) {
  out8(PORT + 1, 0);
  out8(PORT + 3, 0x80);
  out8(PORT + 0, 1);
  out8(PORT + 1, 0);
  out8(PORT + 3, 3);
  out8(PORT + 2, 7);
  out8(PORT + 4, 3);
}

static void put_char(char c) {
  if (length < sizeof line) line[length++] = c;
}

void put(const char *text) {
  while (*text) put_char(*text++);
}

void put_number(u32 value) {
  char digits[10];
  int count = 0;
  do digits[count++] = '0' + value % 10;
  while (value /= 10);
  while (count) put_char(digits[--count]);
}

void put_field(const char *name, u32 value) {
  put(" ");
  put(name);
  put("=");
  put_number(value);
}

static int can_send(void) { return in8(PORT + 5) & 0x20; }

/* Whoever listens may stop taking bytes; QEMU holds a few hundred for them. A reader that is late is waited for, one that
 * has gone to sleep is not: the guest goes on, and says what it has to say to nobody until somebody takes bytes again. */
static int wait_until_taken(void) {
  static int sleeps;
  if (!can_send() && sleeps) return 0;
  for (u64 start = now_us(); !can_send();) {
    if (now_us() - start < PATIENCE_US) continue;
    sleeps = 1;
    return 0;
  }
  /* The line that was cut off ends here. */
  if (sleeps) {
    sleeps = 0;
    out8(PORT, '\n');
    return wait_until_taken();
  }
  return 1;
}

void serial_flush(void) {
  for (u32 i = 0; i < length && wait_until_taken(); i++) out8(PORT, line[i]);
  length = 0;
}

int serial_read(void) { return in8(PORT + 5) & 1 ? in8(PORT) : -1; }
