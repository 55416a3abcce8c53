#!/bin/sh
# Builds the probe guest into the directory given, or beside its sources: probe.elf, a kernel, and probe.img, a disk that
# boots it. Needs gcc and binutils, nothing else.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
common=$here/../common
out=${1:-$here}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
# No vector instructions: there is no state for them, and translated they would be slow.
gcc -m32 -O2 -Wall -Wextra -Werror -std=gnu11 -ffreestanding -fno-pic -fno-pie -fno-stack-protector \
  -fno-asynchronous-unwind-tables -fno-tree-vectorize -mgeneral-regs-only -nostdlib -nostdinc -I"$here" -I"$common" \
  -c "$here"/start.S "$here"/main.c "$here"/serial.c "$here"/clock.c "$common"/memory.c "$here"/disk.c "$here"/power.c
ld -m elf_i386 -T "$here/link.ld" -z max-page-size=4096 --no-warn-rwx-segments --build-id=none -o probe.elf \
  start.o main.o serial.o clock.o memory.o disk.o power.o
end=$(nm probe.elf | sed -n 's/^\([0-9a-f]*\) . _end$/0x\1/p')
strip probe.elf

# The disk: a sector that loads what follows it.
objcopy -O binary probe.elf probe.bin
bytes=$(stat -c %s probe.bin)
gcc -m32 -c -DBYTES="$bytes" -DSECTORS="$(((bytes + 511) / 512))" -DEND="$end" -o boot.o "$here/boot.S"
ld -m elf_i386 -Ttext 0x7c00 --oformat binary -o probe.img boot.o
cat probe.bin >> probe.img
truncate -s 1M probe.img

# In one step each, so that nobody starts half a guest.
for file in probe.elf probe.img; do
  cp "$file" "$out/.$file.$$"
  mv "$out/.$file.$$" "$out/$file"
done
