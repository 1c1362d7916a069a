#!/usr/bin/env bash
#
# Known vulnerabilities in what the program calls, by govulncheck.

set -euo pipefail

usage() {
	cat <<-'END'
		Usage: scripts/vulncheck.sh [-h | --help] [PACKAGE...]

		Fails if a function that the packages (default ./...) call is known to be vulnerable.
		Where the database cannot be reached, it says so and passes.

		VULNDB   address of the database (default https://vuln.go.dev)
	END
}
case ${1:-} in
-h | --help)
	usage
	exit 0
	;;
-*)
	echo "vulncheck.sh: found $1, expected packages" >&2
	usage >&2
	exit 2
	;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/env.sh
. scripts/env.sh

tmp=$(mktemp -d)
trap 'rm -rf -- "$tmp"' EXIT
GOBIN=$tmp go install golang.org/x/vuln/cmd/govulncheck@v1.9.0
(($#)) || set -- ./...
status=0
"$tmp/govulncheck" -db "${VULNDB:-https://vuln.go.dev}" "$@" >"$tmp/out" 2>&1 || status=$?
if ((status == 1)) && grep -q '^govulncheck: fetching vulnerabilities: ' "$tmp/out"; then
	echo "skipped: $(head -n 1 "$tmp/out")"
	exit 0
fi
cat "$tmp/out"
exit "$status"
