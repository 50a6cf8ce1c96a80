#!/usr/bin/env bash
# Finds what gorgonia.org/cu is compiled and linked with, and runs a command with it:
#   toolkit.sh COMMAND...        with the CUDA toolkit of this machine, 11.8 to 13
#   toolkit.sh -fake DIR COMMAND...   with the fake library that internal/fakecuda/make has built in DIR
# The command gets CGO_CFLAGS and CGO_LDFLAGS, in front of what they were. Other packages' cgo flags cannot be set from Go.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

die() {
    printf 'gorgonia: %s\n' "$@" >&2
    exit 1
}

# toolkits prints folders that may be one, the best guess first.
toolkits() {
    [ -z "${CUDA_HOME:-}" ] || { echo "$CUDA_HOME"; return; }
    [ -z "${CUDA_PATH:-}" ] || echo "$CUDA_PATH"
    echo /usr/local/cuda
    compgen -G '/usr/local/cuda-*' | sort -rV || true
    local nvcc
    if nvcc=$(command -v nvcc); then dirname "$(dirname "$(readlink -f "$nvcc")")"; fi
    echo /opt/cuda
    echo /usr
}

# headers prints the include folder of a toolkit, which has one more level where it serves several targets.
headers() {
    local dir
    for dir in "$1/include" "$1/targets/$(uname -m)-linux/include" "$1/targets/sbsa-linux/include"; do
        [ ! -e "$dir/cuda.h" ] || { readlink -f "$dir"; return; }
    done
    return 1
}

find_toolkit() {
    local root tried=()
    while read -r root; do
        if include=$(headers "$root"); then
            toolkit=$(readlink -f "$root")
            return
        fi
        tried+=("$root")
    done < <(toolkits)
    die "no cuda.h: looked in include below ${tried[*]}." \
        "Install the CUDA toolkit (its headers are enough: cuda-driver-dev, cuda-cudart-dev), 11.8 to 13, or set CUDA_HOME to its folder." \
        "Without a toolkit, make gorgonia-carry builds with a header of this repository's."
}

# find_library sets library to the folder with libcuda.so: the driver's, or the toolkit's stub to link with.
find_library() {
    local dir
    for dir in "$toolkit/lib64/stubs" "$toolkit/lib/stubs" "$toolkit"/targets/*/lib/stubs \
        "/usr/lib/$(uname -m)-linux-gnu" /usr/lib64 /usr/lib /usr/local/nvidia/lib64; do
        [ ! -e "$dir/libcuda.so" ] || { library=$dir; return; }
    done
    die "no libcuda.so to link with: looked in lib64/stubs of $toolkit and in the system's folders." \
        "Install NVIDIA's driver, or the package of the toolkit with the stubs (cuda-driver-dev)."
}

check_version() {
    local version
    version=$(awk '$1 == "#define" && $2 == "CUDA_VERSION" { print $3; exit }' "$include/cuda.h")
    [ -n "$version" ] || die "$include/cuda.h says no CUDA_VERSION."
    [ "$version" -ge 11080 ] || die "$include/cuda.h is of CUDA $((version / 1000)).$((version % 1000 / 10)), needed is 11.8 or later."
}

[ "$(uname -s)" = Linux ] || die "gorgonia.org/cu is built on Linux only here."
command -v "$(set -- ${CC:-gcc}; echo "$1")" >/dev/null || die "no C compiler ${CC:-gcc}: cgo needs one. Install gcc, or set CC."

if [ "${1:-}" = -fake ]; then
    library=$2 include=$2/source/include
    export LD_LIBRARY_PATH="$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    shift 2
else
    find_toolkit
    find_library
    echo "gorgonia: headers of $include, library of $library" >&2
fi
check_version
# Go's build cache does not look into these headers: a changed sum compiles anew.
sum=$(cat "$here/shim/cuda.h" "$include/cuda.h" $([ ! -d "$include/fakecuda" ] || echo "$include"/fakecuda/*.h) | cksum | cut -d ' ' -f 1)
export CGO_ENABLED=1
export CGO_CFLAGS="-DVRAM_HEADERS=$sum -I$here/shim -I$include -O2 -g${CGO_CFLAGS:+ $CGO_CFLAGS}"
export CGO_LDFLAGS="-L$library${CGO_LDFLAGS:+ $CGO_LDFLAGS}"
exec "$@"
