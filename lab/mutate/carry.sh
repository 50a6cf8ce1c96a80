#!/usr/bin/env bash
# Puts all that a run needs on a Linux machine without Go and without a network into a folder:
#   carry.sh FOLDER PACKAGE...   packages whose tests run there, as the go command names them
# The folder then has the Go toolchain, the source of modules, the working tree with the results of earlier runs, and carried.sh.
# Compiled tests would be ten times as large: each has the same packages again.
set -euo pipefail

[ $# -ge 2 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
folder=$1
shift
mkdir -p "$folder"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cp "$here/carried.sh" "$folder/carried.sh"

# pack FOLDER FILE: the files whose names come from the input.
pack() {
    LC_ALL=C sort -u | tar -C "$1" --owner=0 --group=0 -T - -cf - | xz -T0 -6 >"$folder/$2.tar.xz"
    printf 'carry: %s, %s bytes\n' "$folder/$2.tar.xz" "$(stat -c %s "$folder/$2.tar.xz")"
}

root=$(go env GOROOT)
tools=pkg/tool/$(go env GOOS)_$(go env GOARCH)
{
    printf '%s\n' VERSION go.env bin/go "$tools"/{asm,compile,link,vet}
    cd "$root"
    find pkg/include -type f
    find src -type f ! -name '*_test.go' ! -path '*/testdata/*' ! -path 'src/cmd/*'
} | pack "$root" go

modules=$(go env GOMODCACHE)
{
    go list -deps -test -f '{{with .Module}}{{if .Version}}{{.Dir}}{{end}}{{end}}' "$@" | sed '/^$/d' | sort -u |
        while read -r dir; do find "$dir" -type f ! -name '*_test.go' ! -path '*/testdata/*'; done
    go list -m -f '{{if .Version}}{{.Dir}}{{end}}' all >/dev/null 2>&1 || true # completes the cache of go.mod files
    find "$modules/cache/download" -type f \( -name '*.mod' -o -name '*.info' -o -name '*.ziphash' \)
} | sed "s|^$modules/||" | pack "$modules" modules

tree=$(git rev-parse --show-toplevel)
{
    git -C "$tree" ls-files --cached --others --exclude-standard
    cd "$tree"
    [ ! -e .mutants/results.json ] || echo .mutants/results.json
} | while read -r file; do [ ! -f "$file" ] || [ -L "$file" ] || echo "$file"; done | pack "$tree" tree
