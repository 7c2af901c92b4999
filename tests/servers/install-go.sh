#!/bin/sh
# Builds the S3 server that some tests talk to, where it is missing and Go is there. It is kept in the user's cache.
set -eu

version=v1.8.0
cache=${XDG_CACHE_HOME:-$HOME/.cache}/levada-tests
program=$cache/versitygw-$version

if [ -x "$program" ] || command -v versitygw >/dev/null 2>&1; then
    exit 0
fi
if ! command -v go >/dev/null 2>&1; then
    echo "Go is not installed, so versitygw cannot be built. Tests that need it are skipped (with CI=true they fail)." >&2
    exit 0
fi
echo "building versitygw $version for the tests" >&2
mkdir -p "$cache"
scratch=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' HUP INT TERM
if ! GOBIN=$scratch go install "github.com/versity/versitygw/cmd/versitygw@$version" >"$scratch/log" 2>&1; then
    tail -3 "$scratch/log" >&2
    echo "could not build versitygw. Tests that need it are skipped (with CI=true they fail)." >&2
    exit 0
fi
mv "$scratch/versitygw" "$program"
