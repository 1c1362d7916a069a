#!/usr/bin/env bash
#
# Fuzzes all that reads a file, and what works on what was read.

set -euo pipefail

usage() {
	cat <<-'END'
		Usage: scripts/fuzz.sh [-h | --help] [RUNS [PACKAGE...]]

		Divides RUNS (default 10000000) equally over the fuzz targets of all packages, or of
		those named (./model/onnx), and prints how many each had. Ends at the first input that
		fails, which Go keeps in testdata/fuzz of the package, as a test from then on. What
		makes new ways through the code stays in Go's cache; the next call goes on from there.
	END
}
case ${1:-} in
-h | --help)
	usage
	exit 0
	;;
esac
runs=${1:-10000000}
if [[ ! $runs =~ ^[1-9][0-9]*$ ]]; then
	echo "fuzz.sh: found $1, expected a number of runs" >&2
	usage >&2
	exit 2
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/env.sh
. scripts/env.sh

mapfile -t folders < <(if (($# > 1)); then printf '%s\n' "${@:2}"; else grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u; fi)
targets=()
for dir in "${folders[@]}"; do
	while read -r name; do targets+=("$dir $name"); done < <(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\).*/\1/p' "$dir"/*_test.go | sort)
done
log=$(mktemp)
trap 'rm -f -- "$log"' EXIT
total=0 last=
for i in "${!targets[@]}"; do
	read -r dir name <<<"${targets[i]}"
	each=$((runs * (i + 1) / ${#targets[@]} - runs * i / ${#targets[@]}))
	((each)) || continue
	if ! go test -run '^$' -fuzz "^$name\$" -fuzztime "${each}x" -fuzzminimizetime 100x "$dir" >"$log" 2>&1; then
		cat "$log"
		exit 1
	fi
	last=$(sed -n 's/^fuzz: elapsed: .* execs: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
	printf '%-50s %10d\n' "$dir $name" "${last:-0}"
	total=$((total + ${last:-0}))
done
printf '%-50s %10d\n' "in all, of ${#targets[@]} targets" "$total"
