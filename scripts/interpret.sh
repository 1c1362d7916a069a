#!/usr/bin/env bash
#
# Interprets random programs: see internal/interp.

set -euo pipefail

case ${1:-} in
-h | --help)
	cat <<-'END'
		Usage: scripts/interpret.sh [-h | --help] [--nests] [PROGRAMS [SEED]]

		Schedules random networks on small accelerators by all recipes in turn, executes
		their programs on values, and compares every output with the network's. PROGRAMS is
		how many (10000), SEED that of the first (0). With --nests, the programs are of
		single kernels that run by random loop nests.
	END
	exit 0
	;;
--nests)
	test='TestNests' count='-nests'
	shift
	;;
*)
	test='TestRandom' count='-programs'
	;;
esac
for number in "$@"; do
	if [[ ! $number =~ ^[0-9]+$ ]]; then
		echo "interpret: found $number, expected a number" >&2
		exit 2
	fi
done

cd "$(dirname "$0")/.."
# shellcheck source=scripts/env.sh
. scripts/env.sh
go test ./internal/interp -run "^$test\$" -v -timeout 0 -args "$count" "${1:-10000}" -seed "${2:-0}"
