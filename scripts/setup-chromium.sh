#!/usr/bin/env bash
#
# Provides Chromium, in which tests open the report page (plots/page), from
# the distribution's packages. Says and does nothing if it is there. Where it can't
# be had, it says why and fails; the tests that need it are then skipped, unless
# DSASCHED_BROWSER=required, with which they fail.

set -euo pipefail

say() { printf 'setup-chromium: %s\n' "$*"; }
die() {
	printf 'setup-chromium: %s\n' "$*" >&2
	exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }
# usable: does it run? Ubuntu's chromium-browser only says where to get a browser.
usable() { have "$1" && "$1" --version >/dev/null 2>&1; }

for name in chromium chromium-browser google-chrome; do
	if usable "$name"; then exit 0; fi
done

have apt-get || die "there is no Chromium and no apt to install it with; please install Chromium (or Google Chrome) so that it is in PATH"
as_root=()
if [[ $(id -u) != 0 ]]; then
	if ! have sudo || ! { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
		die "there is no Chromium; please install Debian's package chromium (it takes root)"
	fi
	as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f -- "$log"' EXIT
apt_get() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$log" 2>&1
}
say "installing chromium (takes a minute)"
# Lists of some third party that can't be had are no reason to stop.
apt_get update || say "apt-get update failed, going on with the lists there are"
if ! apt_get install --no-install-recommends chromium; then
	tail -n 5 "$log" >&2
	die "Debian's package chromium can't be installed"
fi
usable chromium || die "the package chromium has brought no browser that runs"
say "ready: $(chromium --version)"
