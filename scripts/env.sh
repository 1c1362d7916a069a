# shellcheck shell=sh
# To be sourced: . scripts/env.sh
#
# Lets pkg-config, and so cgo, find the HiGHS that scripts/setup.sh has
# provided. Comes last in the search, so that a HiGHS of your own in
# PKG_CONFIG_PATH is used first. Programs built this way carry the library's
# place with them and need nothing of this to run.

DSASCHED_CACHE=${DSASCHED_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/dsasched}
case ":${PKG_CONFIG_PATH:-}:" in
*":$DSASCHED_CACHE/pkgconfig:"*) ;;
*) PKG_CONFIG_PATH=${PKG_CONFIG_PATH:+$PKG_CONFIG_PATH:}$DSASCHED_CACHE/pkgconfig ;;
esac

# Go's build cache does not notice when pkg-config's answer changes, and would
# go on linking with the HiGHS of before. It does notice a change of flags in
# the environment: hence a macro that nothing reads, named after the answer.
export PKG_CONFIG_PATH
_dsasched_key=-DDSASCHED_HIGHS_$({ pkg-config --modversion highs || :; pkg-config --cflags --libs highs || :; } 2>/dev/null | cksum | cut -d ' ' -f 1)
case " ${CGO_CFLAGS:=-O2 -g} " in
*" $_dsasched_key "*) ;;
*) CGO_CFLAGS="$CGO_CFLAGS $_dsasched_key" ;;
esac
unset _dsasched_key

export DSASCHED_CACHE CGO_CFLAGS
