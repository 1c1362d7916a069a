#!/usr/bin/env bash
#
# Makes this machine able to build and test: checks Go, installs a C and C++
# compiler, CMake and pkg-config where it may, and provides the HiGHS solver.
# Safe to run again: it says and does nothing when nothing is missing.
#
# HiGHS comes from the first of these that works:
#   1. what pkg-config finds already,
#   2. the distribution's package libhighs-dev,
#   3. Debian's source package, built into the user's cache folder.
#
# Settings, all optional:
#   DSASCHED_CACHE            where HiGHS is built to; ~/.cache/dsasched by default
#   DSASCHED_JOBS             compile jobs; one per core by default
#   DSASCHED_DEBIAN_MIRROR    URL of a Debian mirror, for machines that have none in apt's sources
#   DSASCHED_HIGHS_TARBALL    the source archive as a file, for machines without a network

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/env.sh
. scripts/env.sh

min_highs=1.7 # the callbacks that formulation/highs uses
highs=1.10.0
archive=highs_$highs+ds.orig.tar.xz
pool=pool/main/h/highs/highs_$highs%2bds.orig.tar.xz
sha256=5964fc1ca4f0b23dd45987bbed1838f2e570e96aa624635ac63d277152b6c94a

prefix=$DSASCHED_CACHE/highs-$highs
log=$DSASCHED_CACHE/setup.log
work=
child=
as_root=()

say() { printf 'setup: %s\n' "$*"; }
die() {
	printf 'setup: error: %s\n' "$*" >&2
	exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# cleanup runs on every way out. A compile in the background has a process
# group of its own, so that it can be ended as a whole.
cleanup() {
	local code=$?
	trap - EXIT INT TERM HUP
	if [[ -n $child ]]; then
		kill -TERM -- "-$child" 2>/dev/null || true
		wait "$child" 2>/dev/null || true
	fi
	if [[ -n $work ]]; then rm -rf -- "$work"; fi
	exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# logged runs a command with its output in the log, in the background so that
# an interrupt is acted upon at once. It does not inherit the lock.
logged() {
	local code=0
	set -m
	"$@" </dev/null >>"$log" 2>&1 9>&- &
	child=$!
	set +m
	wait "$child" || code=$?
	child=
	return "$code"
}

# step is logged, but failure is the end, with the log's last lines.
step() {
	local what=$1
	shift
	if ! logged "$@"; then
		tail -n 15 "$log" >&2
		die "$what failed; the whole log is in $log"
	fi
}

check_go() {
	local want got
	want=$(awk '$1 == "go" { print $2 }' go.mod)
	have go || die "Go $want or newer is needed and there is no go in PATH (see https://go.dev/dl)"
	got=$(go env GOVERSION 2>&1) || die "Go $want or newer is needed, and this one says: ${got##*$'\n'}"
	got=${got#go}
	[[ $(printf '%s\n' "$want" "${got%%[ -]*}" | sort -V | head -n 1) == "$want" ]] ||
		die "Go $want or newer is needed; this is $got"
}

# usable: does a program that uses HiGHS compile, link and start? A version
# number is not enough: Debian 13's highs.pc names folders that don't exist.
usable() {
	local cc flags dir code=0
	cc=$(go env CC)
	have pkg-config && have "${cc%% *}" && pkg-config --atleast-version=$min_highs highs 2>/dev/null || return 1
	eval "flags=($(pkg-config --cflags --libs highs))"
	dir=$(mktemp -d)
	cat >"$dir/probe.c" <<-'EOF'
		#include <stdint.h>
		#include <interfaces/highs_c_api.h>
		#include <lp_data/HighsCallbackStruct.h>
		int main(void) {
		  void* highs = Highs_create();
		  HighsCallbackDataIn in;
		  in.user_interrupt = Highs_setCallback(highs, 0, 0);
		  Highs_destroy(highs);
		  return Highs_versionMajor() != 1;
		}
	EOF
	{ $cc "$dir/probe.c" -o "$dir/probe" "${flags[@]}" && "$dir/probe"; } >"$dir/out" 2>&1 || code=1
	rm -rf -- "$dir"
	return "$code"
}

# write_pc VERSION LIBS CFLAGS writes the highs.pc that env.sh makes visible.
write_pc() {
	local dir=$DSASCHED_CACHE/pkgconfig
	mkdir -p "$dir"
	cat >"$dir/.highs.pc.$$" <<-EOF
		Name: HiGHS
		Description: Solver for linear and mixed-integer programs
		Version: $1
		Libs: $2
		Cflags: $3
	EOF
	mv -f "$dir/.highs.pc.$$" "$dir/highs.pc"
}

# find_root fills as_root with what makes a command run as root, if anything.
find_root() {
	if [[ $(id -u) == 0 ]]; then
		as_root=(env)
	elif have sudo && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
		sudo -v || return 1
		as_root=(sudo)
	else
		return 1
	fi
}

apt_get() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Lock::Timeout=300 "$@"
}

updated=
apt_update() {
	[[ -z $updated ]] || return 0
	updated=yes
	# Lists of some third party that can't be had are no reason to stop.
	logged apt_get update || say "apt-get update failed, going on with the lists there are"
}

# need TOOL=PACKAGE... installs the packages of the tools that are missing.
need() {
	local pair missing=()
	for pair in "$@"; do
		have "${pair%%=*}" || missing+=("${pair#*=}")
	done
	((${#missing[@]})) || return 0
	if ! have apt-get || ! find_root; then
		die "please install: ${missing[*]} (Debian's names; installing them takes root and apt, which are not both here)"
	fi
	say "installing ${missing[*]}"
	apt_update
	step "installing ${missing[*]}" apt_get install --no-install-recommends "${missing[@]}"
}

# mend makes the distribution's HiGHS usable if all that it lacks is a right
# highs.pc.
mend() {
	local config=/usr/include/highs/HConfig.h version
	[[ -r $config ]] || return 1
	version=$(awk '$2 ~ /^HIGHS_VERSION_(MAJOR|MINOR|PATCH)$/ { v = v "." $3 } END { print substr(v, 2) }' "$config")
	write_pc "$version" "-lhighs" "-I/usr/include/highs"
	usable || {
		rm -f -- "$DSASCHED_CACHE/pkgconfig/highs.pc"
		return 1
	}
}

# from_package installs the distribution's HiGHS, if it has one that is new
# enough.
from_package() {
	have apt-get && have apt-cache && find_root || return 1
	apt_update
	local version
	version=$(LC_ALL=C apt-cache policy libhighs-dev 2>/dev/null | awk '$1 == "Candidate:" { print $2 }')
	[[ -n $version && $version != "(none)" ]] && dpkg --compare-versions "$version" ge "$min_highs" || return 1
	say "installing libhighs-dev $version"
	logged apt_get install --no-install-recommends libhighs-dev || return 1
	usable || mend
}

# mirrors prints the Debian mirrors to try, one per line.
mirrors() {
	if [[ -n ${DSASCHED_DEBIAN_MIRROR:-} ]]; then
		printf '%s\n' "${DSASCHED_DEBIAN_MIRROR%/}"
	fi
	if have apt-get; then
		# shellcheck disable=SC2016 # apt, not the shell, fills in the fields
		apt-get indextargets --format '$(ORIGIN) $(REPO_URI)' 2>/dev/null |
			awk '$1 == "Debian" { sub("/$", "", $2); print $2 }' | sort -u
	fi
}

fetch() {
	# apt's own downloader knows the machine's proxies and the like.
	if [[ -x /usr/lib/apt/apt-helper ]]; then
		logged /usr/lib/apt/apt-helper download-file "$1" "$2"
	elif have curl; then
		logged curl -fsSL -o "$2" "$1"
	else
		logged wget -q -O "$2" "$1"
	fi
}

# get_source puts the archive at $work/$archive.
get_source() {
	local mirror file=$work/$archive got=
	if [[ -n ${DSASCHED_HIGHS_TARBALL:-} ]]; then
		[[ -r $DSASCHED_HIGHS_TARBALL ]] || die "DSASCHED_HIGHS_TARBALL: no file $DSASCHED_HIGHS_TARBALL"
		cp -- "$DSASCHED_HIGHS_TARBALL" "$file"
		got=yes
	else
		while read -r mirror; do
			if fetch "$mirror/$pool" "$file"; then
				got=yes
				break
			fi
		done < <(mirrors)
	fi
	[[ -n $got ]] ||
		die "can't download $archive: no Debian mirror in apt's sources has it; name one in DSASCHED_DEBIAN_MIRROR, or the downloaded file in DSASCHED_HIGHS_TARBALL"
	got=$(sha256sum <"$file")
	[[ ${got%% *} == "$sha256" ]] || die "$archive has SHA-256 ${got%% *}, not $sha256"
}

# from_source builds in a folder beside the final one and moves the whole in
# place at the end, so that a build that was cut short leaves nothing behind
# that looks like HiGHS.
from_source() {
	need make=make cmake=cmake tar=tar xz=xz-utils
	work=$(mktemp -d "$DSASCHED_CACHE/.build.XXXXXX")
	say "downloading HiGHS $highs"
	get_source
	local jobs=${DSASCHED_JOBS:-$(nproc)}
	say "building HiGHS $highs with $jobs jobs (takes minutes)"
	step "unpacking HiGHS" tar -xf "$work/$archive" -C "$work"
	step "configuring HiGHS" cmake -S "$work/HiGHS-$highs" -B "$work/build" -G "Unix Makefiles" \
		-DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
		-DBUILD_SHARED_LIBS=ON -DBUILD_TESTING=OFF -DBUILD_EXAMPLES=OFF -DZLIB=OFF
	step "building HiGHS" cmake --build "$work/build" --parallel "$jobs"
	step "installing HiGHS" env DESTDIR="$work/stage" cmake --install "$work/build"
	if [[ -e $prefix ]]; then mv -T -- "$prefix" "$work/old"; fi
	mv -T -- "$work/stage$prefix" "$prefix"
	use_built
	rm -rf -- "$work"
	work=
}

use_built() {
	local at=${prefix// /\\ } # a .pc file's only quoting
	write_pc "$highs" "-L$at/lib -Wl,-rpath,$at/lib -lhighs" "-I$at/include/highs"
}

[[ $DSASCHED_CACHE == /* ]] || die "DSASCHED_CACHE and XDG_CACHE_HOME must be absolute, not $DSASCHED_CACHE"
check_go
if usable; then exit 0; fi

if [[ $(uname -s) != Linux ]]; then
	die "HiGHS $min_highs or newer is needed: install it so that 'pkg-config highs' finds it (this script can do so on Linux only)"
fi
need flock=util-linux
mkdir -p "$DSASCHED_CACHE"
exec 9>"$DSASCHED_CACHE/setup.lock"
if ! flock -n 9; then
	say "waiting for another setup to end"
	flock 9
	if usable; then exit 0; fi
fi
: >"$log"
# Left by a run that was killed without a chance to tidy up; with the lock
# held, nobody is using them.
rm -rf -- "$DSASCHED_CACHE"/.build.* "$DSASCHED_CACHE"/pkgconfig/.highs.pc.*

# g++ also brings the C library's headers, which Debian's gcc only recommends.
need gcc=gcc g++=g++ pkg-config=pkg-config
if ! usable && [[ -e $prefix/lib/libhighs.so ]]; then
	use_built # the build is there, what points to it got lost
fi
if ! usable && ! mend && ! from_package; then
	from_source
fi
if ! usable; then
	die "HiGHS is installed, yet a program that uses it doesn't run; 'pkg-config --cflags --libs highs' gives: $(pkg-config --cflags --libs highs 2>&1)"
fi
say "ready: HiGHS $(pkg-config --modversion highs), $(go env GOVERSION)"
