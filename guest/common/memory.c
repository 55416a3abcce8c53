/* Memory that is written all the time and can be checked at any time. A page that was lost, mixed up with another one or
 * left at an older state does not have the content that follows from the table of generations. */
#include "guest.h"

#define WORDS 1024u
#define GLANCE_PAGES 16u

static u32 *pages, *generations;
static u32 count, seed, repeat, position, generation = 1, dirtied, rate, bad_seen, glance_at;
static u64 measured_from;
static u32 measured_pages;

static u32 first_word(u32 page, u32 of) { return mix(seed ^ mix(page) ^ (of * 0x9e3779b9u)); }

/* The word after one; where words repeat, that is the first one again after so many. */
static u32 next_word(u32 word, u32 i, u32 page, u32 of) {
  return (repeat && i % repeat == 0 ? first_word(page, of) : word) + 0x9e3779b9u;
}

static void fill(u32 page, u32 of) {
  u32 *words = pages + page * WORDS, word = first_word(page, of);
  generations[page] = of;
  words[0] = page;
  words[1] = of;
  for (u32 i = 2; i < WORDS; i++) {
    word = next_word(word, i, page, of);
    words[i] = word ^ (word >> 13);
  }
}

static int is_right(u32 page) {
  u32 *words = pages + page * WORDS, of = generations[page], word = first_word(page, of);
  if (words[0] != page || words[1] != of) return 0;
  for (u32 i = 2; i < WORDS; i++) {
    word = next_word(word, i, page, of);
    if (words[i] != (word ^ (word >> 13))) return 0;
  }
  return 1;
}

void memory_repeat(u32 words) { repeat = words; }

void memory_open(u32 with_seed, void *start, u32 bytes) {
  seed = with_seed;
  /* Each page has a generation; one less, for what aligning the pages costs. */
  count = bytes / (WORDS * 4 + 4);
  if (count) count--;
  generations = start;
  pages = (u32 *)(((__UINTPTR_TYPE__)(generations + count) + 4095) & ~(__UINTPTR_TYPE__)4095);
  for (u32 page = 0; page < count; page++) fill(page, 0);
}

u32 memory_pages(void) { return count; }
u32 memory_dirtied(void) { return dirtied; }
int memory_is_bad(void) { return bad_seen != 0; }

void memory_rate(u32 mib_per_second) {
  rate = mib_per_second;
  measured_from = now_us();
  measured_pages = 0;
}

int memory_is_dirtied(void) { return rate != 0; }

int memory_work(u64 now) {
  if (!rate || !count) return 0;
  u32 elapsed_ms = divide(now - measured_from, 1000);
  /* What could not be done within a second is not made up for. */
  if (elapsed_ms > 1000) {
    measured_from = now;
    measured_pages = 0;
    return 0;
  }
  u32 due = divide((u64)elapsed_ms * rate * 256, 1000);
  for (u32 i = 0; i < 64 && measured_pages < due; i++) {
    fill(position, generation);
    dirtied++;
    measured_pages++;
    if (++position == count) {
      position = 0;
      generation++;
    }
  }
  return measured_pages < due;
}

void memory_glance(void) {
  for (u32 i = 0; i < GLANCE_PAGES && count; i++) {
    if (!is_right(glance_at)) bad_seen++;
    if (++glance_at == count) glance_at = 0;
  }
}

u32 memory_check(void) {
  u32 bad = 0;
  for (u32 page = 0; page < count; page++) bad += !is_right(page);
  bad_seen += bad;
  return bad;
}
