#!/bin/sh
# Builds what some tests need and Go can build, where it is missing and Go is there: an S3 server, and Helm. They are kept in the user's cache.
set -eu

cache=${XDG_CACHE_HOME:-$HOME/.cache}/levada-tests

# build NAME VERSION PACKAGE
build() {
    program=$cache/$1-$2
    if [ -x "$program" ] || command -v "$1" >/dev/null 2>&1; then
        return
    fi
    if ! command -v go >/dev/null 2>&1; then
        echo "Go is not installed, so $1 cannot be built. Tests that need it are skipped (with CI=true they fail)." >&2
        return
    fi
    echo "building $1 $2 for the tests" >&2
    mkdir -p "$cache"
    scratch=$(mktemp -d "$cache/build.XXXXXX")
    trap 'rm -rf "$scratch"' EXIT
    trap 'exit 1' HUP INT TERM
    if GOBIN=$scratch go install "$3@$2" >"$scratch/log" 2>&1; then
        mv "$scratch/$1" "$program"
    else
        tail -3 "$scratch/log" >&2
        echo "could not build $1. Tests that need it are skipped (with CI=true they fail)." >&2
    fi
    rm -rf "$scratch"
}

build versitygw v1.8.0 github.com/versity/versitygw/cmd/versitygw
build helm v3.22.0 helm.sh/helm/v3/cmd/helm
