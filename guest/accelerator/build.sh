#!/bin/sh
# Assembles the boot sector into the directory given, or beside its source.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -m32 -c "$here/boot.S" -o "$work/boot.o"
ld -m elf_i386 -Ttext 0x7c00 --oformat binary -o "$out/boot.bin" "$work/boot.o"
