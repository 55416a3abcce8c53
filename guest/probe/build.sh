#!/bin/sh
# Builds the probe guest into the directory given, or beside its sources. Needs gcc and binutils, nothing else.
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
strip probe.elf
# In one step, so that nobody starts half a guest.
cp probe.elf "$out/.probe.elf.$$"
mv "$out/.probe.elf.$$" "$out/probe.elf"
