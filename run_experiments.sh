#!/usr/bin/env bash
#
# Builds the command and runs experiments into results/: the study of greedy
# against optimal and the papers' figures, or those named as arguments, in their
# quick forms; with --all in full, and all if none is named. Finished parts are
# kept and skipped, so a run that was interrupted goes on where it was.
#
#   ./run_experiments.sh                 the study and the papers' figures
#   ./run_experiments.sh --all           everything, in full
#   ./run_experiments.sh --no-exact      without the methods that look for optima
#   ./run_experiments.sh ablation        one experiment

set -euo pipefail

usage() {
	cat <<-'END'
		Usage: ./run_experiments.sh [-h | --help] [--all] [--no-exact] [EXPERIMENT...]

		Builds the command and runs experiments into results/: the study of greedy
		against optimal and the papers' figures, or those that are named, in their quick
		forms. It says how long that will take. Finished parts are kept: a run that was
		interrupted goes on where it was. 'dsasched list' lists the experiments. --all
		takes those that are named, or all, in full. --no-exact leaves out the methods
		that look for optima.
	END
}

for argument in "$@"; do
	case $argument in
	-h | --help)
		usage
		exit 0
		;;
	--all | --no-exact) ;;
	-*)
		echo "run_experiments.sh: found $argument, expected --all, --no-exact or names of experiments" >&2
		usage >&2
		exit 2
		;;
	esac
done
cd "$(dirname "${BASH_SOURCE[0]}")"

./scripts/setup.sh
# shellcheck source=scripts/env.sh
. scripts/env.sh

# For the record of where results come from. It stands outside of the program, since
# another program would compute finished results anew.
DSASCHED_REVISION=$(git describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null || :)
export DSASCHED_REVISION

go build -o build/dsasched ./cmd/dsasched
build/dsasched run --out results "$@"

echo
echo "Tables and figures:"
if [[ -f results/report.html ]]; then echo "  results/report.html has all of them in one page"; fi
find results -type f \( -name '*.md' -o -name '*.png' \) | sort | sed 's/^/  /'
