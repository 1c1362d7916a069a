#!/usr/bin/env bash
#
# Everything that must hold before a change goes in. Stops at the first step
# that fails.

set -euo pipefail

usage() {
	cat <<-'END'
		Usage: ./run_tests.sh [--full] [-h | --help]

		Sets the machine up (scripts/setup.sh, scripts/shells.sh, scripts/latex.sh), then checks
		formatting, go vet, staticcheck and known vulnerabilities, builds with and without cgo, runs all tests,
		those of packages that start goroutines with the race detector, runs one experiment
		and executes the notebooks. Stops at the first step that fails.

		  --full   race detector also in experiments that start goroutines and on commands
		           that do work in parallel; sweeps over seeds, networks and machines in full
		           (DSASCHED_FULL=1), of which a sample runs otherwise; the second checker
		           of certificates, for which python3 must be there, on more networks
		           (takes twice as long)
	END
}

full=
case ${1:-} in
'') ;;
--full) full=yes ;;
-h | --help)
	usage
	exit 0
	;;
*)
	echo "run_tests.sh: found $1, expected --full or nothing" >&2
	usage >&2
	exit 2
	;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")"

staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2

# Packages that start goroutines are tested with the race detector, which takes 5 to 15
# times as long. Patterns as for go list.
race=(./experiments/harness ./formulation/highs ./formulation/solve ./model/network)
if [[ -n $full ]]; then
	race+=(./experiments ./systems/measured/calibration ./systems/explore)
	export DSASCHED_FULL=1
	# The second checker of certificates is a Python program.
	export DSASCHED_PYTHON=required
	if ! command -v python3 >/dev/null; then
		echo "run_tests.sh --full: python3 is not on the PATH, which scripts/check_certificate.py needs"
		exit 1
	fi
fi

step() { printf '\n== %s (after %d min)\n' "$*" $((SECONDS / 60)); }

tmp=$(mktemp -d)
trap 'rm -rf -- "$tmp"' EXIT

step "set up"
./scripts/setup.sh
./scripts/shells.sh
./scripts/latex.sh
# shellcheck source=scripts/env.sh
. scripts/env.sh
# The report page is tested in a browser where there is one; DSASCHED_BROWSER=required
# makes that a must.
if ! ./scripts/setup-chromium.sh && [[ ${DSASCHED_BROWSER:-} == required ]]; then
	echo "DSASCHED_BROWSER=required, but there is no browser"
	exit 1
fi
go version
echo "HiGHS $(pkg-config --modversion highs)"

step "gofmt"
unformatted=$(gofmt -l .)
if [[ -n $unformatted ]]; then
	echo "not formatted, run gofmt -w on:"
	printf '%s\n' "$unformatted"
	exit 1
fi

step "go vet"
go vet ./...

step "staticcheck"
go run "$staticcheck" ./...

step "known vulnerabilities"
./scripts/vulncheck.sh

step "build and vet without cgo"
CGO_ENABLED=0 go build -o "$tmp/dsasched-nocgo" ./cmd/dsasched
"$tmp/dsasched-nocgo" version
"$tmp/dsasched-nocgo" schedule toy-fig3 --batch 8 --quiet >/dev/null
if said=$("$tmp/dsasched-nocgo" schedule toy-fig3 --batch 8 --order ilp --quiet 2>&1) || [[ $said != *"HiGHS is not in this build"* ]]; then
	echo "without cgo, an integer program says: $said"
	exit 1
fi
CGO_ENABLED=0 go vet ./formulation/... ./cmd/cli # where files are built by tags

# Copies of the project, of which systems are taken, share what is built here.
export GOFLAGS="${GOFLAGS:-} -trimpath"
# Tests make many programs and throw them away: collecting them less takes a third of the processor time off.
export GOGC=${GOGC:-400} GOMEMLIMIT=${GOMEMLIMIT:-2GiB}

step "test"
# The dearest of those late in the list first, so that none of them is left over at the end.
go test -timeout 30m ./scheduler ./scheduler/search ./internal/interp ./...

step "test, with the race detector, what starts goroutines"
go test -race -timeout 60m "${race[@]}"
go test -race -run 'TestNetworkIsReadOnce|TestFallback' ./scheduler # recipes side by side
if [[ -n $full ]]; then
	# Searches, sweeps and experiments; progress and interrupts beside them.
	go test -race -timeout 60m \
		-run 'Bench$|Cancel|CertifyChunk|CompareOnKinds|Interrupt|Kills|LogOf|Progress|Report|Run|Status|Sweep|Terminal|Tune' ./cmd/cli
fi

step "test without cgo what differs there"
CGO_ENABLED=0 go test ./formulation/highs

if [[ -n $full ]]; then
	step "without each system, and without all of them"
	for dir in systems/*/; do scripts/without.sh "$(basename "$dir")"; done
	scripts/without.sh # with --test, the tests of what is left, too: they are those above
fi

step "smoke: the ablation experiment"
go build -o "$tmp/dsasched" ./cmd/dsasched
"$tmp/dsasched" run ablation --out "$tmp/results"
table=$tmp/results/ablation/ablation.csv
if [[ ! -f $table ]]; then
	echo "the experiment has not written ablation/ablation.csv"
	exit 1
fi
lines=$(wc -l <"$table")
if ((lines <= 10)); then
	echo "ablation/ablation.csv has $lines lines, want more than 10:"
	cat "$table"
	exit 1
fi
echo "ablation/ablation.csv has $lines lines"

step "notebooks"
./notebooks/run.sh
JUPYTER_DATA_DIR=$tmp/jupyter ./notebooks/run.sh --install
[[ -f $tmp/jupyter/kernels/gonb/kernel.json ]]

step "all steps passed"
