#!/usr/bin/env bash
# Installs Chromium where there is no browser for the tests of the live page: from the packages of Debian or Ubuntu, as root or by sudo
# without a password. A machine on which that does not work fails here. CHROMIUM names a browser to take.
set -euo pipefail

found() {
	local name
	for name in ${CHROMIUM:-chromium chromium-browser google-chrome google-chrome-stable chrome}; do
		command -v "$name" >/dev/null && return 0
	done
	return 1
}

if ! found; then
	as_root=()
	[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
	if command -v apt-get >/dev/null; then
		echo "browser: installing Chromium"
		{ "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium; } >&2 || true
	fi
fi
found || { echo "browser: there is no Chromium, and none could be installed: apt-get install chromium, or set CHROMIUM" >&2; exit 1; }
