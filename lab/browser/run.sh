#!/usr/bin/env bash
# Tests the live page in a Chromium, which install.sh installs where there is none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

./install.sh
VRAM_BROWSER=required exec "${GO:-go}" test -count=1 "$@" .
