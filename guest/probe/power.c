/* The power button and the way off, as ACPI has them: fixed registers on machines with PCI, a device of its own on microvm. */
#include "probe.h"

#define PM_STATUS 0x600
#define PM_ENABLE 0x602
#define PM_CONTROL 0x604
#define PM_POWER_BUTTON 0x100
#define PM_SLEEP 0x2000
#define GED_EVENTS 0xfea00000u
#define GED_SLEEP 0xfea00200u
#define GED_POWER_BUTTON 2

static int has_pci;

u32 pci_read(u32 slot, u32 offset) {
  out32(0xcf8, 0x80000000u | slot << 11 | offset);
  return in32(0xcfc);
}

void pci_write(u32 slot, u32 offset, u32 value) {
  out32(0xcf8, 0x80000000u | slot << 11 | offset);
  out32(0xcfc, value);
}

void power_open(void) {
  has_pci = pci_read(0, 0) != 0xffffffff;
  if (has_pci) out16(PM_ENABLE, PM_POWER_BUTTON);
}

int power_button_was_pressed(void) {
  if (!has_pci) return (MMIO32(GED_EVENTS) & GED_POWER_BUTTON) != 0;
  if (!(in16(PM_STATUS) & PM_POWER_BUTTON)) return 0;
  out16(PM_STATUS, PM_POWER_BUTTON);
  return 1;
}

void power_off(void) {
  if (has_pci) out16(PM_CONTROL, PM_SLEEP);
  else MMIO8(GED_SLEEP) = 0x34;
  for (;;) __asm__ volatile("cli; hlt");
}
