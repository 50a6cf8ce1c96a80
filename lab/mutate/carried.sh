#!/usr/bin/env bash
# Runs the table of mutants on a machine without Go, from the files that carry.sh has put into this folder:
#   carried.sh RESULTS FLAG...   flags as ARGS of make mutate
# The folder RESULTS gets results.json, for .mutants where the files come from, the report and the progress. All else is in a temporary
# folder, but for the build cache if GOCACHE names one, which makes a second run shorter.
set -euo pipefail

[ $# -ge 1 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
results=$(cd "$1" && pwd)
shift
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
for part in go modules tree; do
    mkdir "$work/$part"
    tar -C "$work/$part" -xJf "$here/$part.tar.xz" &
done
wait
export GOROOT="$work/go" GOMODCACHE="$work/modules" GOPATH="$work/path" GOCACHE="${GOCACHE:-$work/cache}" TMPDIR="$work"
export PATH="$work/go/bin:$PATH" GOPROXY=off GOTOOLCHAIN=local GOFLAGS='-buildvcs=false -gcflags=all=-dwarf=false' CGO_ENABLED=0
cd "$work/tree"
[ ! -e .mutants/results.json ] || cp .mutants/results.json "$results/results.json"
go run ./lab/mutate/table -cache "$results/results.json" "$@" >"$results/report.txt" 2>"$results/progress.txt" ||
    { tail -n 20 "$results/progress.txt" >&2; exit 1; }
grep -A1000 '^| package' "$results/report.txt" | sed '/^$/q'
