# Ends a lab: its processes, namespaces and files. $1 is its ID.
#
# The lab is over when the input ends. The output is the lab's lock, which is held by being open: nobody takes the ID
# while this runs. Whatever is gone already is fine, so this may run twice.

trap '' HUP INT QUIT TERM
case $1 in '' | *[!0-9a-fx]*) exit 2 ;; esac
exec 3>&1 >/dev/null 2>&1
read -r _

status=0
for path in "/run/netns/ranway-$1-"* "/etc/netns/ranway-$1-"*; do
    [ -e "$path" ] || continue
    ns=${path##*/}
    tries=0
    # Again and again, for there may be one that forks.
    while pids=$(ip netns pids "$ns") && [ -n "$pids" ] && [ "$tries" -lt 100 ]; do
        kill -KILL $pids
        tries=$((tries + 1))
        sleep 0.01 || sleep 1
    done
    [ ! -e "/run/netns/$ns" ] || ip netns delete "$ns" || status=1
    rm -rf "/etc/netns/$ns" || status=1
done

# Root alone can write there. Where `ethtool` is missing, interfaces stay as they are.
[ ! -f "/run/ranway/$1/restore" ] || sh "/run/ranway/$1/restore"

# What is left is left with its record, for the next start to try again.
[ "$status" = 0 ] && rm -rf "/run/ranway/$1"
