/* Disks with an ISO 9660 file system: configuration, secrets, and what cloud-init reads. This guest only tells of them;
 * of cloud-init's data it takes the host's name. */
#include "init.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define VOLUMES_MAX 16u
#define FILE_BYTES_MAX (4u << 20)
#define DESCRIPTOR_AT 32768
#define LABEL_AT 40
#define LABEL_LENGTH 32
#define VALUE_SIZE 256

struct volume {
  char label[LABEL_LENGTH + 1];
  char path[64];
};

static struct volume volumes[VOLUMES_MAX];
static u32 volume_count;
static char instance_id[VALUE_SIZE], host_name[VALUE_SIZE], user_data_hash[65];
static int has_cloud_init;

int is_iso9660(int fd, char label[LABEL_LENGTH + 1]) {
  static char descriptor[4096] __attribute__((aligned(4096)));
  if (pread(fd, descriptor, sizeof descriptor, DESCRIPTOR_AT) < 2048 || memcmp(descriptor + 1, "CD001", 5)) return 0;
  size_t length = LABEL_LENGTH;
  while (length && (descriptor[LABEL_AT + length - 1] == ' ' || !descriptor[LABEL_AT + length - 1])) length--;
  for (size_t i = 0; i < length; i++) {
    char c = descriptor[LABEL_AT + i];
    label[i] = c > ' ' && c < 127 ? c : '_';
  }
  label[length] = 0;
  return 1;
}

/* The whole file with a zero after it, or nothing. */
static char *read_file(const char *path, size_t *length) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  char *bytes = fd < 0 ? NULL : malloc(FILE_BYTES_MAX + 1);
  *length = 0;
  if (!bytes) return NULL;
  for (ssize_t more = 1; more > 0 && *length < FILE_BYTES_MAX; *length += more > 0 ? (size_t)more : 0)
    more = read(fd, bytes + *length, FILE_BYTES_MAX - *length);
  close(fd);
  bytes[*length] = 0;
  return bytes;
}

/* What stands behind a key that follows one of the characters of `before`, in JSON or in plain YAML; printable, and without
 * blanks. */
static void find_value(const char *text, const char *before, const char *key, char value[VALUE_SIZE]) {
  size_t length = strlen(key);
  for (const char *at = strstr(text, key); at; at = strstr(at + 1, key)) {
    if (at != text && !strchr(before, at[-1])) continue;
    const char *from = at + length;
    from += strspn(from, "\"'");
    from += strspn(from, " \t");
    if (*from != ':') continue;
    from += 1 + strspn(from + 1, " \t\"'");
    size_t size = strcspn(from, "\"'\r\n\t ,}#");
    if (!size || size >= VALUE_SIZE) continue;
    for (size_t i = 0; i < size; i++) value[i] = isgraph((unsigned char)from[i]) ? from[i] : '_';
    value[size] = 0;
    return;
  }
}

static void read_cloud_init(const struct volume *volume) {
  char path[128];
  size_t length;
  has_cloud_init = 1;
  snprintf(path, sizeof path, "%s/meta-data", volume->path);
  char *text = read_file(path, &length);
  if (text) {
    find_value(text, "\n\"'{, ", "instance-id", instance_id);
    find_value(text, "\n\"'{, ", "local-hostname", host_name);
    free(text);
  }
  snprintf(path, sizeof path, "%s/user-data", volume->path);
  text = read_file(path, &length);
  if (!text) return;
  sha256_text(text, length, user_data_hash);
  if (!strncmp(text, "#cloud-config", 13)) find_value(text, "\n", "hostname", host_name);
  free(text);
}

static void open_volume(const char *name) {
  struct volume *volume = &volumes[volume_count];
  char device[64];
  snprintf(device, sizeof device, "/dev/%.16s", name);
  int fd = open(device, O_RDONLY | O_CLOEXEC);
  int is_volume = fd >= 0 && is_iso9660(fd, volume->label);
  if (fd >= 0) close(fd);
  if (!is_volume) return;
  snprintf(volume->path, sizeof volume->path, "/mnt/%.16s", name);
  mkdir(volume->path, 0755);
  if (mount(device, volume->path, "iso9660", MS_RDONLY, "")) {
    channel_say(&console, "trouble volume=%s mount=refused\n", name);
    return;
  }
  if (!strcasecmp(volume->label, "cidata")) read_cloud_init(volume);
  volume_count++;
}

static int may_hold_volume(const struct dirent *entry) {
  return !strncmp(entry->d_name, "vd", 2) || !strncmp(entry->d_name, "sd", 2) || !strncmp(entry->d_name, "sr", 2);
}

void volumes_open(void) {
  struct dirent **entries;
  int count = scandir("/sys/block", &entries, may_hold_volume, alphasort);
  for (int i = 0; i < count && volume_count < VOLUMES_MAX; i++) open_volume(entries[i]->d_name);
  if (host_name[0] && sethostname(host_name, strlen(host_name))) channel_say(&console, "trouble hostname=refused\n");
}

void cloud_init_say(struct channel *to) {
  if (has_cloud_init)
    channel_say(to, "cloud-init instance-id=%s hostname=%s user-data-sha256=%s\n", instance_id, host_name,
                user_data_hash);
}

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

/* `inside` is the directory within the volume, with a slash behind it. */
static u32 list_directory(struct channel *to, const struct volume *volume, const char *inside, int depth) {
  struct dirent **entries;
  char path[1024], name[512];
  u32 files = 0;
  snprintf(path, sizeof path, "%s/%s", volume->path, inside);
  int count = scandir(path, &entries, is_visible, alphasort);
  for (int i = 0; i < count; i++) {
    struct stat status;
    snprintf(name, sizeof name, "%.200s%.255s", inside, entries[i]->d_name);
    snprintf(path, sizeof path, "%s/%s", volume->path, name);
    free(entries[i]);
    if (stat(path, &status)) continue;
    if (S_ISDIR(status.st_mode)) {
      strcat(name, "/");
      if (depth) files += list_directory(to, volume, name, depth - 1);
      continue;
    }
    char hash[65] = "";
    size_t length;
    char *bytes = read_file(path, &length);
    if (bytes) sha256_text(bytes, length, hash);
    free(bytes);
    channel_say(to, "file volume=%s path=%s bytes=%zu sha256=%s\n", volume->label, name, length, hash);
    files++;
  }
  if (count >= 0) free(entries);
  return files;
}

u32 volumes_list(struct channel *to) {
  u32 files = 0;
  for (u32 i = 0; i < volume_count; i++) files += list_directory(to, &volumes[i], "", 3);
  return files;
}
