#!/bin/sh
# Makes a Debian root ($1) a machine of the tier: files, a user, keys ($2: a public key), nothing that costs time at boot.
set -eu
root=$1
cp -r "$(dirname "$0")/rootfs/." "$root/"
chmod 0440 "$root/etc/sudoers.d/ops"
chroot "$root" useradd --create-home --shell /bin/bash ops
cp "$2" "$root/etc/ssh/authorized_keys"
chmod 0644 "$root/etc/ssh/authorized_keys"
rm -f "$root"/etc/ssh/ssh_host_*
ssh-keygen -q -t ed25519 -N '' -C gpufab-vm -f "$root/etc/ssh/ssh_host_ed25519_key"
: >"$root/etc/machine-id"
echo gpu01 >"$root/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 gpu01\n' >"$root/etc/hosts"
printf '/dev/vda / ext4 errors=remount-ro 0 1\n' >"$root/etc/fstab"

# The site's own: names of the rail ports by their permanent addresses, and what addresses they have.
network=$root/etc/systemd/network
for rail in 0 1 2 3; do
    printf '[Match]\nPermanentMACAddress=52:54:00:67:01:0%s 52:54:00:67:02:0%s\n[Link]\nName=rail%s\n' \
        $rail $rail $rail >"$network/11-rail$rail.link"
    for host in 1 2; do
        cat >"$network/30-rail$rail-gpu0$host.network" <<END
[Match]
Name=rail$rail
Host=gpu0$host
[Link]
MTUBytes=9000
[Network]
Address=10.10.$rail.$host/24
LinkLocalAddressing=no
IPv6AcceptRA=no
ConfigureWithoutCarrier=yes
END
    done
done

chroot "$root" systemctl --quiet enable systemd-networkd.service ssh.service
for unit in systemd-binfmt.service proc-sys-fs-binfmt_misc.automount proc-sys-fs-binfmt_misc.mount apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer \
    getty@tty1.service serial-getty@ttyS0.service systemd-networkd-wait-online.service e2scrub_reap.service \
    systemd-timesyncd.service systemd-firstboot.service; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
sed -i '/pam_motd/d' "$root/etc/pam.d/sshd" "$root/etc/pam.d/login"
# Where python has compiled its library before, it starts in half the time.
chroot "$root" python3 -m compileall -q /usr/lib/python3* >/dev/null 2>&1 || :
