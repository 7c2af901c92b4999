#!/bin/sh
# Installs the servers that some tests talk to, where they are missing and this may be done: on Debian and its kin, as
# root. Their system services are neither started nor enabled; the tests start private ones.
set -eu

missing=""

# need PACKAGE PROGRAM...: any one of these programs will do.
need() {
    package=$1
    shift
    for program in "$@"; do
        if command -v "$program" >/dev/null 2>&1; then
            return
        fi
    done
    missing="$missing $package"
}

need rabbitmq-server rabbitmq-server /usr/sbin/rabbitmq-server /usr/lib/rabbitmq/bin/rabbitmq-server
need postgresql /usr/lib/postgresql/*/bin/initdb
need redis-server redis-server
need mariadb-server mariadbd /usr/sbin/mariadbd
need pgbouncer pgbouncer /usr/sbin/pgbouncer
if [ "${PATRONI:-}" ]; then
    need patroni patroni
    need "etcd-server python3-etcd" etcd
fi
need tshark tshark
need nginx-light nginx /usr/sbin/nginx
need tinyproxy-bin tinyproxy
need microsocks microsocks
need nodejs node
need systemd systemd-analyze
need chromium chromium chromium-browser google-chrome
need default-jdk-headless javac
need maven mvn
need "poppler-utils poppler-data" pdftotext
need iproute2 ip
need nftables nft
need faketime faketime

# The jars of OpenSearch; a test that finds none says so.
jars() { sh "$(dirname "$0")/jvm/install.sh" >/dev/null || true; }

if [ -z "$missing" ]; then
    jars
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "not installed:$missing. Tests that need them are skipped (with CI=true they fail)." >&2
    echo "To run them: install these packages (on Debian: sudo apt-get install --no-install-recommends$missing)." >&2
    exit 0
fi

# Debian's way of saying that a package's service is not to be started while it is installed.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
echo "installing$missing for the tests" >&2
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # one word per package
install() { apt-get install --quiet --quiet --yes --no-install-recommends $missing >/dev/null; }
if ! install 2>/dev/null && ! { apt-get update --quiet --quiet && install; }; then
    echo "could not install:$missing. Tests that need them are skipped (with CI=true they fail)." >&2
    exit 0
fi
for package in $missing; do
    systemctl disable --quiet "$package" >/dev/null 2>&1 || true
done
jars
