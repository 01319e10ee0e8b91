#!/bin/sh
# Build the image of Docker cells, rsi-base:py311, without a registry: Debian's python3 and pytest.
# usage: .ci/base_image.sh [--force]    environment: RSI_BASE_IMAGE, RSI_DEBIAN_MIRROR
# Needs root, debootstrap and docker; starts dockerd when none answers.
set -eu

image=${RSI_BASE_IMAGE:-rsi-base:py311}
mirror=${RSI_DEBIAN_MIRROR:-http://deb.debian.org/debian}
suite=bookworm

need() {
    command -v "$1" >/dev/null 2>&1 || { echo "base_image: $1 is not installed" >&2; exit 1; }
}

answers() {
    docker version >/dev/null 2>&1
}

start_daemon() {
    need dockerd
    log=${TMPDIR:-/tmp}/dockerd.log
    # cells have no network, so a host that forbids iptables can still run them
    for options in "" "--iptables=false --ip6tables=false --bridge=none"; do
        # shellcheck disable=SC2086  # options are words
        setsid dockerd $options >"$log" 2>&1 </dev/null &
        daemon=$!
        for _ in $(seq 60); do
            if answers; then return 0; fi
            kill -0 "$daemon" 2>/dev/null || break
            sleep 0.5
        done
        kill "$daemon" 2>/dev/null || true
        wait "$daemon" 2>/dev/null || true
    done
    echo "base_image: dockerd does not start; see $log" >&2
    tail -n 5 "$log" >&2
    exit 1
}

need docker
answers || start_daemon
if [ "${1:-}" != --force ] && docker image inspect "$image" >/dev/null 2>&1; then
    echo "base_image: $image is there"
    exit 0
fi

need debootstrap
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase --include=python3,python3-pytest,python3-coverage \
    "$suite" "$root" "$mirror" >"$root.log" 2>&1 || { tail -n 20 "$root.log" >&2; exit 1; }
rm -f "$root.log"
ln -sf python3 "$root/usr/bin/python"
# pytest's console script has another name in Debian
[ -e "$root/usr/bin/pytest" ] || ln -s pytest-3 "$root/usr/bin/pytest"
# a read-only image that is not compiled makes every cell compile it: 3.5 times the cost
chroot "$root" python3 -m compileall -q /usr/lib/python3.11 /usr/lib/python3/dist-packages || true
rm -rf "$root/var/cache/apt" "$root/var/lib/apt/lists" "$root/usr/share/doc" \
    "$root/usr/share/man" "$root/usr/share/locale"
tar -C "$root" -c . | docker import --change 'ENV LC_ALL=C.UTF-8' - "$image" >/dev/null
echo "base_image: built $image"
