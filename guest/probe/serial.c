/* The first serial port: the guest's only voice and ear. */
#include "probe.h"

#define PORT 0x3f8

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

void serial_flush(void) {
  for (u32 i = 0; i < length; i++) {
    /* Bounded: nobody may be taking the bytes, and the guest must go on. */
    for (u32 tries = 0; tries < 100000 && !(in8(PORT + 5) & 0x20); tries++) {}
    out8(PORT, line[i]);
  }
  length = 0;
}

int serial_read(void) { return in8(PORT + 5) & 1 ? in8(PORT) : -1; }
