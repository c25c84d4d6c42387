#!/bin/bash
# boot.sh FOLDER FINDINGS COMMAND PACKAGING: boots this machine's own systemd with our units, in the namespaces in which this runs,
# above a copy of the file system that goes away with it.
set -eu
folder=$1 findings=$2 command=$3 packaging=$4
mount --make-rprivate /
mount -t tmpfs tmpfs "$folder"
mkdir "$folder/upper" "$folder/work" "$folder/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
root=$folder/root
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t bpf bpf "$root/sys/fs/bpf" -o mode=0700
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount --rbind /dev "$root/dev"
# As udev makes it.
mknod -m 666 "$folder/tun" c 10 200
mount --bind "$folder/tun" "$root/dev/net/tun"
mkdir -p "$root/findings" "$root/oldroot" "$root/etc/ranway"
mount --bind "$findings" "$root/findings"
rm -rf "$root"/etc/systemd/system/*.wants "$root/etc/systemd/system/default.target"

cp "$command" "$root/usr/bin/ranway"
cp "$packaging"/ranway-*.service "$root/etc/systemd/system/"
cp "$packaging"/etc/* "$root/etc/ranway/"
chroot "$root" getent group ranway > /dev/null || chroot "$root" groupadd --system ranway
install -m 755 "$(dirname "$0")/probe.sh" "$root/usr/local/bin/probe"
cat > "$root/etc/systemd/system/probe.service" << 'END'
[Unit]
DefaultDependencies=no
After=sysinit.target dbus.socket
Wants=dbus.socket
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
ExecStart=/usr/local/bin/probe
TimeoutStartSec=150
StandardOutput=file:/findings/out
StandardError=inherit
END
ip link set lo up
cd "$root"
pivot_root . oldroot
umount -l /oldroot
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=ranway \
    /usr/lib/systemd/systemd --system --unit=probe.service --log-target=console --show-status=no
