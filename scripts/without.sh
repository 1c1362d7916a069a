#!/usr/bin/env bash
#
# Takes systems off a copy of the project and builds what is left.

set -euo pipefail

usage() {
	cat <<-'END'
		Usage: scripts/without.sh [-h | --help] [--test] [SYSTEM...]

		Copies the project, removes systems (folders of systems/, all if none is named) from the
		copy, and builds and vets the rest. Of a system go its folder, its call in
		systems/systems.go, its commands (cmd/cli/NAME.go, NAME_*.go, *_NAME.go) and
		*_NAME_test.go.
		Systems that import it go with it.
		--test also tests what is left, but for the command and the root's tables, which name all.
	END
}
test=
case ${1:-} in
-h | --help)
	usage
	exit 0
	;;
--test)
	test=1
	shift
	;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/env.sh
. scripts/env.sh

mapfile -t known < <(find systems -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort)
(($#)) || set -- "${known[@]}"
for name; do
	if [[ ! -d systems/$name || $name = */* ]]; then
		echo "without.sh: found $name, expected one of ${known[*]}" >&2
		usage >&2
		exit 2
	fi
done
# Copies in different folders share what they build.
export GOFLAGS="${GOFLAGS:-} -trimpath"
copy=$(mktemp -d)
trap 'rm -rf -- "$copy"' EXIT
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' f; do
	if [[ -e $f ]]; then printf '%s\0' "$f"; fi
done | tar --null -T - -cf - | tar -xf - -C "$copy"
cd "$copy"
gone=("$@")
for ((i = 0; i < ${#gone[@]}; i++)); do
	name=${gone[i]}
	if [[ ! -d systems/$name ]]; then continue; fi
	rm -r "systems/$name"
	mapfile -t using < <(grep -rlE "/systems/$name(/|\")" systems --include='*.go' | cut -d / -f 2 | grep -v '\.go$' | sort -u)
	gone+=("${using[@]}")
	find . \( -path "./cmd/cli/$name.go" -o -path "./cmd/cli/${name}_*.go" \
		-o -path "./cmd/cli/*_${name}.go" -o -name "*_${name}_test.go" \) -delete
	sed -i "\\#/systems/$name[/\"]#d; \\#// $name: #d" systems/systems.go
done
go build ./...
go vet ./...
echo "without ${gone[*]}: builds"
if [[ $test ]]; then
	mapfile -t left < <(go list ./... | grep -v -e '/cmd/' -e '/dsasched/dsasched$')
	go test "${left[@]}"
fi
