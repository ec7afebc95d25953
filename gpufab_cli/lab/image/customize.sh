#!/bin/sh
# Run by mmdebstrap with the new root as $1: makes a Debian root a lab node.
set -eu
root=$1
here=$(dirname "$0")

cp -r "$here/rootfs/." "$root/"
chmod 0440 "$root/etc/sudoers.d/ops"
chmod 0755 "$root/usr/lib/gpufab-lab/shim" "$root/usr/lib/gpufab-lab/daemon" "$root/usr/sbin/update-grub"
chroot "$root" update-grub
chroot "$root" systemctl --quiet enable nvidia-fabricmanager.service
chroot "$root" useradd --create-home --shell /bin/bash ops
rm -f "$root"/etc/ssh/ssh_host_* "$root/etc/machine-id"
: > "$root/etc/machine-id"

# The vendor tools: diverted, so that a package that brings the real one leaves the emulated one in place.
divert() {
    chroot "$root" dpkg-divert --quiet --local --rename --divert "$1.real" --add "$1"
    ln -s /usr/lib/gpufab-lab/shim "$root$1"
}
divert /usr/bin/ip
divert /usr/bin/rdma
divert /usr/sbin/dcb
divert /usr/sbin/devlink
divert /usr/sbin/ethtool
divert /usr/bin/nvidia-smi
divert /usr/bin/dmesg
divert /usr/bin/mlxconfig
divert /usr/bin/mlxfwreset
divert /usr/bin/mstconfig
divert /usr/bin/mstfwreset
divert /usr/bin/nv-fabricmanager
divert /usr/sbin/modinfo
ln -s /usr/lib/gpufab-lab/shim "$root/sbin/gpufab-boot"

# No login on consoles, no timers; no udev (a container gets no uevents, and /sys is writable here); and no units that
# spend inotify instances, of which a host with many nodes runs out.
for unit in getty.target console-getty.service systemd-logind.service systemd-udevd.service systemd-udev-trigger.service \
    systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-networkd.service \
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
    systemd-tmpfiles-setup-dev-early.service systemd-tmpfiles-setup-dev.service systemd-remount-fs.service \
    systemd-ask-password-console.path systemd-ask-password-wall.path \
    sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount modprobe@configfs.service; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done

# Nothing of what these look for can be in a node: partitions, a hibernated system, a TPM, sockets of a hypervisor,
# consoles, units named on the kernel's command line, updates to install at boot.
mkdir -p "$root/etc/systemd/system-generators"
for generator in gpt-auto hibernate-resume tpm2 ssh getty debug run system-update; do
    ln -s /dev/null "$root/etc/systemd/system-generators/systemd-$generator-generator"
done

# A login runs no scripts that compose a message of the day; nobody reads it.
sed -i '/pam_motd/d' "$root/etc/pam.d/sshd" "$root/etc/pam.d/login"

# All that the first boot of a new system brings up to date is.
touch "$root/etc/.updated" "$root/var/.updated"
