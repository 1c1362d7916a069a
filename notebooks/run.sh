#!/usr/bin/env bash
#
# Executes the notebooks from scratch and compares the outputs with those that are
# committed, byte for byte.
#
#   notebooks/run.sh             compare all
#   notebooks/run.sh --update    put the new outputs in the place of the old ones
#   notebooks/run.sh --install   let your own Jupyter find the kernel, and no more
#
# After the option, if there is one, notebooks may be named: 1-quick-start.ipynb
#
# It needs Go and what scripts/setup.sh provides. Jupyter is taken from PATH or, with
# root or sudo on a Debian-like system, installed from the distribution. The Go
# kernel, gonb, is built into the user's cache folder.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
# shellcheck source=../scripts/env.sh
. ../scripts/env.sh

die() {
	printf 'notebooks: error: %s\n' "$*" >&2
	exit 1
}

mode=
case ${1:-} in
--update | --install)
	mode=$1
	shift
	;;
-*) die "unknown option $1, expected --update or --install" ;;
esac
notebooks=("$@")
((${#notebooks[@]})) || notebooks=(*.ipynb)
for nb in "${notebooks[@]}"; do
	[[ $nb == *.ipynb && $nb != */* && -f $nb ]] || die "there is no notebook $nb in this folder"
done

# The kernel, in a folder that is named after what it is built from.
bin=$DSASCHED_CACHE/notebooks/$(cat go.mod go.sum <(go env GOVERSION) | sha256sum | cut -c 1-16)
if [[ ! -x $bin/gonb || ! -x $bin/goimports ]]; then
	echo "notebooks: building the kernel"
	mkdir -p "$bin"
	go build -o "$bin/" github.com/janpfeifer/gonb golang.org/x/tools/cmd/goimports
fi

# kernel DIR describes the kernel in DIR/kernels/gonb.
kernel() {
	mkdir -p "$1/kernels/gonb"
	cat >"$1/kernels/gonb/kernel.json" <<-EOF
		{
		  "argv": ["$bin/gonb", "--kernel", "{connection_file}", "-raw_error", "-go_work", "$PWD"],
		  "display_name": "Go (gonb)",
		  "language": "go",
		  "interrupt_mode": "message",
		  "env": {
		    "PATH": "$bin:$PATH",
		    "PKG_CONFIG_PATH": "$PKG_CONFIG_PATH",
		    "CGO_CFLAGS": "$CGO_CFLAGS"
		  }
		}
	EOF
}

if [[ $mode == --install ]]; then
	data=${JUPYTER_DATA_DIR:-$HOME/.local/share/jupyter}
	kernel "$data"
	echo "notebooks: the kernel is described in $data/kernels/gonb"
	exit
fi

if ! command -v jupyter-nbconvert >/dev/null; then
	packages=(jupyter-nbconvert jupyter-client python3-ipykernel)
	as_root=()
	if [[ $(id -u) != 0 ]]; then as_root=(sudo); fi
	if ! command -v apt-get >/dev/null || { ((${#as_root[@]})) && ! sudo -n true 2>/dev/null; }; then
		die "there is no jupyter-nbconvert; please install ${packages[*]} (Debian's names)"
	fi
	echo "notebooks: installing ${packages[*]}"
	"${as_root[@]}" apt-get -qq -o DPkg::Lock::Timeout=300 update >/dev/null || true
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Lock::Timeout=300 \
		install --no-install-recommends "${packages[@]}" >/dev/null
fi

go vet ./...

tmp=$(mktemp -d)
trap 'rm -rf -- "$tmp"' EXIT
kernel "$tmp/jupyter"
export JUPYTER_PATH=$tmp/jupyter

# What the last notebooks read: that of 4 as run_experiments.sh makes it, and kept like that.
made() { # made LETTER ARGUMENTS of dsasched run
	[[ " ${notebooks[*]} " == *" $1-"* ]] || return 0
	(
		cd ..
		go build -o build/dsasched ./cmd/dsasched
		build/dsasched run --quiet "${@:2}" >/dev/null
	)
}
made 4 --out results fig14 fig15
made 5 --no-exact --out build/systems systems

# Two at a time; the logs are shown where one fails.
failed=
printf '%s\n' "${notebooks[@]}" | xargs -P 2 -I '{}' sh -c '
	jupyter-nbconvert --config nbconvert_config.py --to notebook --execute \
		--output-dir "$1" "$2" >"$1/$2.log" 2>&1 </dev/null || : >"$1/$2.failed"' sh "$tmp" '{}'
for nb in "${notebooks[@]}"; do
	if [[ -e $tmp/$nb.failed ]]; then
		printf 'notebooks: %s failed:\n' "$nb"
		tail -n 40 "$tmp/$nb.log"
		failed=yes
	elif cmp -s "$nb" "$tmp/$nb"; then
		printf 'notebooks: %s: as committed\n' "$nb"
	elif [[ $mode == --update ]]; then
		cp -- "$tmp/$nb" "$nb"
		printf 'notebooks: %s: updated\n' "$nb"
	else
		printf 'notebooks: %s has other outputs now (notebooks/run.sh --update takes them):\n' "$nb"
		diff -U 0 "$nb" "$tmp/$nb" | cut -c 1-160 | head -n 40 || true
		failed=yes
	fi
done
[[ -z $failed ]]
