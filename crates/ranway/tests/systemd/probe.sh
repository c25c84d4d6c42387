#!/bin/bash
# Runs in a booted system, as a service of its own, and leaves its findings in /findings/out. See systemd.rs.
set -u
fail() { echo "FAILED: $*"; for s in backlog measure mdcc pep proxy rnis; do systemctl --no-pager --full status ranway-$s; done; cat /findings/pep; exit 1; }
expect() { # expect WHAT COMMAND...: within 15 s
    what=$1; shift
    for _ in $(seq 150); do "$@" && return 0; sleep 0.1; done
    fail "$what"
}
is() { # is SERVICE PROPERTY VALUE
    [ "$(systemctl show -p $2 --value ranway-$1)" = "$3" ]
}
served() { # served PORT NAME: whether a metric of this name is served there
    (exec 3<> /dev/tcp/127.0.0.1/$1 && printf 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3 &&
        grep -q "^$2" <&3) 2> /dev/null
}
interface() { # interface NAME ADDRESS
    ip link add $1 type veth peer name far-$1
    ip link set $1 up; ip link set far-$1 up
    ip addr add $2/24 dev $1
}
interface wan 10.7.1.1; interface ran 10.7.2.1; interface modem 10.7.3.1
echo 1 > /proc/sys/net/ipv4/ip_forward

echo 'OPTIONS=--wan wan --ran ran --metrics 127.0.0.1:9183' > /etc/ranway/pep.conf
echo 'OPTIONS=--modem modem --metrics 127.0.0.1:9184' > /etc/ranway/backlog.conf
printf '%s = "%s"\n' wan wan ran ran metrics 127.0.0.1:9180 reports recording:unix:/run/ranway-proxy/reports > /etc/ranway/proxy.toml
echo 'OPTIONS=--listen 127.0.0.1:443 --open --metrics 127.0.0.1:9181' > /etc/ranway/measure.conf
echo 'OPTIONS=--input recording:unix:/run/ranway-rnis/reports --metrics 127.0.0.1:9182' > /etc/ranway/rnis.conf
echo 'OPTIONS=--default' > /etc/ranway/mdcc.conf
chgrp ranway /etc/ranway/proxy.toml; chmod 640 /etc/ranway/*.conf /etc/ranway/proxy.toml
# What the PEP says.
mkdir -p /run/systemd/system/ranway-pep.service.d
printf '[Service]\nExecStart=\nExecStart=/usr/bin/ranway pep $OPTIONS\nStandardError=append:/findings/pep\nRestartSec=1\n' \
    > /run/systemd/system/ranway-pep.service.d/loud.conf
systemctl daemon-reload
services="backlog measure mdcc pep proxy rnis"
for s in $services; do
    systemctl start ranway-$s || fail "start ranway-$s"
done
expect "the proxy's socket for reports" test -S /run/ranway-proxy/reports
expect "the socket of rnis" test -S /run/ranway-rnis/reports
expect "the backlog's interface" test -e /sys/class/net/backlog0
[ "$(cat /proc/sys/net/ipv4/tcp_congestion_control)" = mdcc ] || fail "mdcc is not the default"
for s in $services; do
    systemctl is-active --quiet ranway-$s || fail "ranway-$s is not active"
    is $s NRestarts 0 || fail "ranway-$s was started again"
    pid=$(systemctl show -p MainPID --value ranway-$s)
    [ $s = mdcc ] || [ "$(awk '/^Uid:/ { print $2 }' /proc/$pid/status)" != 0 ] || fail "ranway-$s is root"
done

# All serve metrics; what is loaded needs a process for that.
systemd-run --quiet --unit ranway-mdcc-metrics ranway mdcc status --quiet --metrics 127.0.0.1:9185 || fail "watch mdcc"
for one in 9180:proxy 9181:measure 9182:rnis 9183:pep 9184:backlog 9185:mdcc; do
    expect "the metrics of ${one#*:}" served ${one%:*} ranway_${one#*:}_
done

# The PEP's programs stay attached while another version takes its place, and after a crash.
is pep NFileDescriptorStore 11 || fail "descriptors that are kept"
cp /usr/bin/ranway /usr/bin/ranway.new && mv /usr/bin/ranway.new /usr/bin/ranway
old=$(systemctl show -p MainPID --value ranway-pep)
systemctl restart ranway-pep || fail "restart the PEP"
is pep MainPID $old && fail "the PEP is still the old one"
is pep NFileDescriptorStore 11 || fail "descriptors that are kept after a restart"
[ $(grep -c 'taken over from the previous one, metrics at' /findings/pep) = 1 ] || fail "the restarted PEP has not taken over"
kill -KILL $(systemctl show -p MainPID --value ranway-pep)
expect "the PEP is started again" is pep NRestarts 1
expect "the PEP is active again" systemctl is-active --quiet ranway-pep
[ $(grep -c 'taken over from the previous one, metrics at' /findings/pep) = 2 ] || fail "the PEP has not taken over after a crash"
# What was kept for an interface that has gone is of no use.
ip link del ran
expect "the PEP ends without its interface" is pep SubState auto-restart
interface ran 10.7.2.1
expect "the PEP is active at the new interface" systemctl is-active --quiet ranway-pep
is pep NFileDescriptorStore 11 || fail "descriptors that are kept at the new interface"
[ $(grep -c 'taken over' /findings/pep) = 2 ] || fail "the PEP has taken over what was of no use"

# A new process takes over from the proxy, and is the service's main one; one that cannot start does not.
expect "the proxy is active" systemctl is-active --quiet ranway-proxy
main() { [ "$(systemctl show -p MainPID --value ranway-proxy)" != $old ]; }
restarts=$(systemctl show -p NRestarts --value ranway-proxy)
for turn in 1 2; do
    old=$(systemctl show -p MainPID --value ranway-proxy)
    systemctl kill --kill-whom=main --signal=USR2 ranway-proxy
    expect "another process is the proxy's main one" main
    expect "the proxy before ends" sh -c "! kill -0 $old 2> /dev/null"
    expect "the new proxy's socket for reports" test -S /run/ranway-proxy/reports
done
old=$(systemctl show -p MainPID --value ranway-proxy)
cp /etc/ranway/proxy.toml /tmp/proxy.toml; echo 'port = 5081' >> /etc/ranway/proxy.toml
systemctl kill --kill-whom=main --signal=USR2 ranway-proxy; sleep 1
main && fail "a proxy with another port has taken over"
cp /tmp/proxy.toml /etc/ranway/proxy.toml
is proxy ActiveState active && is proxy NRestarts $restarts || fail "the proxy after its successors"

for s in $services; do
    systemctl stop ranway-$s || fail "stop ranway-$s"
    is $s Result success || fail "how ranway-$s ended"
done
[ "$(cat /proc/sys/net/ipv4/tcp_congestion_control)" != mdcc ] || fail "mdcc is still the default"
expect "who watches mdcc ends with it" is mdcc-metrics ActiveState inactive
ls /sys/fs/bpf | grep -v '\.debug$' && fail "programs are left"
# Nothing was left to take over.
systemctl start ranway-pep || fail "start the PEP again"
[ $(grep -c 'taken over' /findings/pep) = 2 ] || fail "a stopped PEP was still attached"
systemctl stop ranway-pep
echo PASSED
