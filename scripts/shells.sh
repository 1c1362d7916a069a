#!/usr/bin/env bash
#
# Installs the shells whose completion is tested, where that is possible: with
# apt and as root, or with sudo that asks nothing. Where it is not, it says so
# and succeeds: the tests of the shells that are missing are skipped.

set -euo pipefail

usage() {
	cat <<-'END'
		Usage: scripts/shells.sh [-h | --help]

		Installs zsh and fish with apt if they are missing and that is possible.
	END
}

case ${1:-} in
'') ;;
-h | --help)
	usage
	exit 0
	;;
*)
	echo "shells: found $1, expected no argument" >&2
	usage >&2
	exit 2
	;;
esac

missing=()
for shell in zsh fish; do
	command -v "$shell" >/dev/null 2>&1 || missing+=("$shell")
done
((${#missing[@]})) || exit 0

as_root=()
if [[ $(id -u) != 0 ]]; then as_root=(sudo -n); fi
install() {
	command -v apt-get >/dev/null 2>&1 &&
		"${as_root[@]}" apt-get -qq update &&
		"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Lock::Timeout=300 install --no-install-recommends "${missing[@]}"
}
if install >/dev/null 2>&1; then
	echo "shells: installed ${missing[*]}"
else
	echo "shells: ${missing[*]} can't be installed here; the tests of their completion are skipped"
fi
