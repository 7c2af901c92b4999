#!/bin/sh
# Fetches the jars of an OpenSearch node and compiles its starter, once for all checkouts. Prints their folder.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache="${XDG_CACHE_HOME:-$HOME/.cache}/levada-tests"
mark=$(cat "$here/pom.xml" "$here/SearchNode.java" | sha256sum | cut -c1-16)
home="$cache/opensearch-$mark"
if [ -e "$home/classes/SearchNode.class" ]; then
    echo "$home"
    exit 0
fi
for program in java javac mvn; do
    if ! command -v "$program" >/dev/null 2>&1; then
        echo "$program is missing: tests of OpenSearch need a JDK and Maven (on Debian: default-jdk-headless maven)" >&2
        exit 1
    fi
done
mkdir -p "$cache"
draft=$(mktemp -d "$cache/draft-XXXXXX")
trap 'rm -rf "$draft"' EXIT
mvn --quiet --batch-mode --file "$here/pom.xml" dependency:copy-dependencies "-DoutputDirectory=$draft/lib" >&2
javac -cp "$draft/lib/*" -d "$draft/classes" "$here/SearchNode.java" >&2
mv -T "$draft" "$home" 2>/dev/null || [ -e "$home/classes/SearchNode.class" ] # another run was faster
echo "$home"
