/*
 * The probe: a guest of a few kilobytes that boots in milliseconds and can prove what it went through. Several times a
 * second it says on the serial port
 *
 *   guest boot=6f1c… count=1042 uptime=104.2 memory=ok disk=ok
 *
 * with an id that is drawn at boot, and a count that starts then and never again: the same id with a lower count, or
 * twice the same count, is a guest that ran twice. A part of memory and disk is checked before each such line.
 *
 * On the kernel's command line: mib= (memory to work on), repeat= (words after which those of a page repeat, so that it
 * can be packed), rate= (MiB to dirty per second), tick= (ms between lines), hz= (timer interrupts), write= (ms between
 * disk writes), blocks= (of the disk), button=ignore (a guest that does not shut down when asked). As lines on the serial port: memory, disk, status, ping TEXT, rate N, tick N, write N,
 * button off|ignore, poweroff. Each is answered by a line that begins with `answer`.
 */
#include "probe.h"

#define MEMORY_START 0x400000u

struct start_info {
  u32 magic, version, flags, modules;
  u64 module_list, command_line, rsdp, memory_map;
  u32 memory_map_entries, reserved;
};
struct memory_range {
  u64 address, size;
  u32 type, reserved;
};
struct gate {
  u16 low, selector;
  u8 zero, type;
  u16 high;
} __attribute__((packed));

extern void timer_entry(void), spurious_entry(void), exception_entry(void);

static struct gate gates[256];
static char boot_id[33];
static u32 count, tick_ms = 200, write_ms = 50;
static int ignores_button;

static const char *after(const char *text, const char *prefix) {
  while (*prefix)
    if (*text++ != *prefix++) return 0;
  return text;
}

static u32 number(const char *text) {
  u32 value = 0;
  while (*text >= '0' && *text <= '9') value = value * 10 + (u32)(*text++ - '0');
  return value;
}

/* What follows `key` on the command line, or nothing. Words are separated by blanks. */
static const char *option(const char *line, const char *key) {
  for (const char *at = line; at && *at; at++) {
    const char *value = at == line || at[-1] == ' ' ? after(at, key) : 0;
    if (value) return value;
  }
  return 0;
}

static u32 option_number(const char *line, const char *key, u32 otherwise) {
  const char *value = option(line, key);
  return value ? number(value) : otherwise;
}

static u32 random_word(void) {
  static u32 state;
  u32 a = 1, b, c = 0, d, low, high, hardware = 0;
  __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  if (c & (1u << 30)) __asm__ volatile("rdrand %0" : "=r"(hardware));
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return state = mix(state ^ low ^ mix(high) ^ hardware);
}

static u32 draw_boot_id(void) {
  u32 word = 0, first = 0;
  for (u32 i = 0; i < 32; i++) {
    if (i % 8 == 0) word = random_word();
    if (i == 0) first = word;
    boot_id[i] = "0123456789abcdef"[(word >> (28 - 4 * (i % 8))) & 15];
  }
  return first;
}

static void set_gate(u32 vector, void (*entry)(void)) {
  gates[vector] = (struct gate){(u16)(u32)entry, 8, 0, 0x8e, (u16)((u32)entry >> 16)};
}

static void open_interrupts(void) {
  for (u32 vector = 0; vector < 256; vector++) set_gate(vector, vector < 32 ? exception_entry : spurious_entry);
  set_gate(32, timer_entry);
  struct {
    u16 limit;
    u32 base;
  } __attribute__((packed)) pointer = {sizeof gates - 1, (u32)gates};
  __asm__ volatile("lidt %0" ::"m"(pointer));
}

void on_exception(void) {
  put("guest boot=");
  put(boot_id);
  put(" exception\n");
  serial_flush();
}

/* Where the memory that begins at 1 MiB ends. */
static u32 memory_end(const struct start_info *info) {
  const struct memory_range *range = (void *)(u32)info->memory_map;
  for (u32 i = 0; info->version >= 1 && i < info->memory_map_entries; i++) {
    u64 end = range[i].address + range[i].size;
    if (range[i].type == 1 && range[i].address <= 0x100000 && end > 0x100000) return (u32)end;
  }
  return 0;
}

/* Works on memory above the program, as far as there is any. */
static void open_memory(u32 seed, u32 wanted_mib, u32 end) {
  u32 room = end > MEMORY_START ? end - MEMORY_START : 0;
  if (wanted_mib > 2048) wanted_mib = 2048;
  u32 wanted = memory_bytes(wanted_mib);
  memory_open(seed, (void *)MEMORY_START, wanted < room ? wanted : room);
}

static void put_head(const char *kind) {
  put(kind);
  put(" boot=");
  put(boot_id);
  put_field("count", count);
}

static const char *verdict(int is_bad) { return is_bad ? "bad" : "ok"; }

static void put_state(const char *kind) {
  u32 tenths = divide(now_us(), 100000);
  put_head(kind);
  put_field("uptime", tenths / 10);
  put(".");
  put_number(tenths % 10);
  put(" memory=");
  put(verdict(memory_is_bad()));
  put(" disk=");
  put(disk_blocks() ? verdict(disk_is_bad()) : "none");
}

static void answer_check(const char *what, u32 all, u32 bad, u32 changes) {
  put_head("answer");
  put(" ");
  put(what);
  put("=");
  put(verdict(bad != 0));
  put_field("checked", all);
  put_field("bad", bad);
  put_field("written", changes);
  put("\n");
}

static void shut_down(void) {
  put_head("guest");
  put(" power=off\n");
  serial_flush();
  power_off();
}

static void answer(const char *line) {
  const char *rest;
  if (after(line, "memory")) return answer_check("memory", memory_pages(), memory_check(), memory_dirtied());
  if (after(line, "disk")) return answer_check("disk", disk_blocks(), disk_check(), disk_writes());
  if (after(line, "poweroff")) shut_down();
  if (after(line, "status")) {
    put_state("answer");
  } else if ((rest = after(line, "ping "))) {
    put_head("answer");
    put(" pong=");
    put(rest);
  } else if ((rest = after(line, "rate "))) {
    memory_rate(number(rest));
    put("answer rate=");
    put_number(number(rest));
  } else if ((rest = after(line, "tick ")) && number(rest)) {
    tick_ms = number(rest);
    put("answer tick=");
    put_number(tick_ms);
  } else if ((rest = after(line, "write "))) {
    write_ms = number(rest);
    put("answer write=");
    put_number(write_ms);
  } else if ((rest = after(line, "button "))) {
    ignores_button = after(rest, "ignore") != 0;
    put(ignores_button ? "answer button=ignore" : "answer button=off");
  } else {
    put("answer unknown");
  }
  put("\n");
}

static void listen(void) {
  static char line[64];
  static u32 length;
  for (int byte = serial_read(); byte >= 0; byte = serial_read()) {
    if (byte != '\n' && byte != '\r') {
      if (length < sizeof line - 1) line[length++] = (char)byte;
      continue;
    }
    line[length] = 0;
    if (length) answer(line);
    length = 0;
    serial_flush();
  }
}

static void run(void) {
  u64 next_line = 0, next_write = 0;
  for (;;) {
    u64 now = now_us();
    listen();
    if (power_button_was_pressed() && !ignores_button) shut_down();
    if (now >= next_line) {
      next_line = now + (u64)tick_ms * 1000;
      memory_glance();
      disk_glance();
      count++;
      put_state("guest");
      put("\n");
      serial_flush();
    }
    if (write_ms && now >= next_write) {
      next_write = now + (u64)write_ms * 1000;
      disk_write_one();
    }
    if (!memory_work(now)) __asm__ volatile("hlt");
  }
}

void probe_main(const struct start_info *info) {
  const char *line = info->magic == 0x336ec578 ? (const char *)(u32)info->command_line : 0;
  serial_open();
  u32 seed = draw_boot_id();
  open_interrupts();
  clock_open(option_number(line, "hz=", 100));
  memory_repeat(option_number(line, "repeat=", 0));
  open_memory(seed, option_number(line, "mib=", 4), memory_end(info));
  disk_open(seed, option_number(line, "blocks=", 256));
  power_open();
  tick_ms = option_number(line, "tick=", tick_ms);
  write_ms = option_number(line, "write=", write_ms);
  ignores_button = option(line, "button=ignore") != 0;
  put_head("ready");
  put_field("pages", memory_pages());
  put_field("blocks", disk_blocks());
  put("\n");
  serial_flush();
  memory_rate(option_number(line, "rate=", 0));
  run();
}
