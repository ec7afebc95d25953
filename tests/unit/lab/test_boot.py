"""The kernel's command line of an emulated node is what GRUB would make of its menu."""

import pytest

from gpufab_cli.lab.hardware.boot import command_line

MENU = "menuentry 'x' {{\n\tlinux\t/boot/vmlinuz-lab {}\n\tinitrd /boot/i\n}}\n\tlinux /boot/vmlinuz-lab single\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("ro quiet", "BOOT_IMAGE=/boot/vmlinuz-lab ro quiet"),
        ("ro pci=a=1\\;2\\;3 quiet", "BOOT_IMAGE=/boot/vmlinuz-lab ro pci=a=1;2;3 quiet"),
        ("ro pci=a=1;2 quiet", "BOOT_IMAGE=/boot/vmlinuz-lab ro pci=a=1"),  # nothing quotes it: a command ends
        ("", "BOOT_IMAGE=/boot/vmlinuz-lab"),
    ],
)
def test_a_command_line(words, line):
    assert command_line(MENU.format(words)) == line


def test_a_menu_without_a_kernel():
    assert command_line("set timeout=5\n") == ""
