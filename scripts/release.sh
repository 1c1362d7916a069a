#!/bin/sh
# Makes archives of the program for Linux, without cgo, and a file of their checksums: scripts/release.sh [VERSION [FOLDER]]
#
# VERSION is the tag of what is checked out, or else what git describe says; FOLDER is build/release. The same sources
# and the same Go give the same bytes on any machine: times are that of the commit, owners are none, and the program
# holds no path. Programs without cgo have all but the integer programs, which say so.
set -eu
usage='Usage: scripts/release.sh [VERSION [FOLDER]]'
case ${1:-} in
-h | --help)
	echo "$usage"
	exit 0
	;;
-*)
	echo "release.sh: found $1, expected a version. $usage" >&2
	exit 2
	;;
esac
cd "$(dirname "$0")/.."
version=${1:-$(git describe --tags --always --dirty)}
out=${2:-build/release}
time=$(git log -1 --format=%ct)
case $version in
*[!A-Za-z0-9._+-]* | '')
	echo "release.sh: the version is '$version', expected letters, digits and . _ + -" >&2
	exit 2
	;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
for arch in amd64 arm64; do
	name=dsasched-$version-linux-$arch
	mkdir "$work/$name"
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch GOFLAGS= go build -trimpath -buildvcs=false \
		-ldflags "-s -w -buildid= -X github.com/dsasched/dsasched/cmd/cli.release=$version" -o "$work/$name/dsasched" ./cmd/dsasched
	cp LICENSE README.md CHANGELOG.md "$work/$name/"
	chmod 755 "$work/$name" "$work/$name/dsasched"
	chmod 644 "$work/$name/LICENSE" "$work/$name/README.md" "$work/$name/CHANGELOG.md"
	tar -C "$work" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$time" -cf - "$name" |
		gzip -n -9 >"$out/$name.tar.gz"
done
(cd "$out" && sha256sum "dsasched-$version-linux-amd64.tar.gz" "dsasched-$version-linux-arm64.tar.gz" >"dsasched-$version-SHA256SUMS")
ls -l "$out"/dsasched-"$version"-*
