#!/usr/bin/env bash
#
# Kills runs and sweeps at random moments, and lets them meet a full disk: nothing that
# was finished may be lost or computed twice, and in the end each byte is that of a run
# which nothing disturbed.

set -euo pipefail

usage() {
	cat <<-'END'
		Usage: scripts/kills.sh [-h | --help] [KILLS]

		Sends SIGKILL to 'dsasched run' and 'dsasched sweep' at random moments, KILLS times
		in all (default 200), and starts the same command again each time. Then both meet a
		small tmpfs that is full, with room for more and more, and are run again after
		room is made. Last, strace shows that each file and its folder are written to the
		disk before the file counts. What cannot be done on this machine is skipped, with a word.

		DSASCHED   the program; built from this checkout if it is not given
		SEED       of the random moments (default 1)
	END
}
case ${1:-} in
-h | --help)
	usage
	exit 0
	;;
esac
kills=${1:-200}
if [[ ! $kills =~ ^[1-9][0-9]*$ ]] || (($# > 1)); then
	echo "kills.sh: found $*, expected a number of kills" >&2
	usage >&2
	exit 2
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
RANDOM=${SEED:-1}

tmp=$(mktemp -d)
trap 'rm -rf -- "$tmp"' EXIT
if [[ -z ${DSASCHED:-} ]]; then
	# shellcheck source=scripts/env.sh
	. scripts/env.sh
	go build -o "$tmp/dsasched" ./cmd/dsasched
	DSASCHED=$tmp/dsasched
fi
export DSASCHED

die() {
	printf 'kills: %s\n' "$*" >&2
	exit 1
}

# job WHAT: what is run in the present folder. With few kills there is less to compute.
job() {
	case $1 in
	run)
		local names=(astitch-reductions)
		((kills < 50)) || names+=(fig3)
		exec "$DSASCHED" run "${names[@]}" --out results --workers 2
		;;
	sweep)
		exec "$DSASCHED" sweep toy-fig5 --set batch=1,2,3,4 --set variant=tvm,cross-layer --cells cells --csv all.csv -o all.svg --workers 2
		;;
	esac
}

# finished lists the cells of the present folder, with what changes when one is written again.
finished() { find . -regex '.*cells/[^/]*-[0-9a-f]*\.json' -exec stat -c '%n %i %Y' {} + | sort; }

# partial fails unless each file here but temporaries and wall times is as in folder $1.
partial() {
	find . -type f ! -name '.*.tmp' ! -name timing.csv ! -name out ! -name err -print0 |
		while IFS= read -r -d '' name; do cmp -s "$name" "$1/$name" || die "$PWD/$name is not as it would be"; done
}

# kept fails if a cell that was finished before is gone, or was written again.
kept() {
	local gone
	gone=$(comm -23 "$tmp/before" "$tmp/after")
	[[ -z $gone ]] || die "finished cells were lost or written again: $gone"
}

# whole fails unless all is as in folder $1, and nothing else is here.
whole() { diff -r -x timing.csv -x err "$1" . >&2 || die "$PWD differs from an undisturbed one"; }

# killed WHAT N: N kills of a job, over as many rounds from the beginning as they take.
killed() {
	local what=$1 n=$2 done=0 rounds=0 starts=0 ms status want=$tmp/$1 wait before
	while ((done < n)); do
		rm -rf -- "$tmp/round"
		mkdir "$tmp/round"
		cd "$tmp/round"
		rounds=$((rounds + 1))
		while :; do
			finished >"$tmp/before"
			starts=$((starts + 1))
			(job "$what") >out 2>err &
			local pid=$!
			if ((done < n)); then
				ms=$((RANDOM * RANDOM % (took[$what] + 1)))
				printf -v wait '%d.%03d' $((ms / 1000)) $((ms % 1000))
				sleep "$wait"
				kill -KILL "$pid" 2>/dev/null || :
			fi
			status=0
			wait "$pid" 2>/dev/null || status=$?
			finished >"$tmp/after"
			kept
			partial "$want"
			case $status in
			0) break ;;
			137) done=$((done + 1)) ;;
			*) die "$what: status $status: $(cat err)" ;;
			esac
		done
		whole "$want"
		cd "$tmp"
	done
	echo "$what: $done kills, $starts starts, the same bytes in $rounds of $rounds rounds"
}

# full WHAT: a job on a disk with room for 0, 1/8, ..., 7/8 of what it writes, then with
# enough; with few kills for 0 and 1/2.
full() {
	local what=$1 need status i steps=(0 4)
	((kills < 50)) || steps=({0..7})
	need=$(find "$tmp/$what" -type f ! -name out ! -name err -printf '%s\n' | awk '{ k += 4 * int(($1 + 4095) / 4096) } END { print k }')
	mkdir -p "$tmp/disk"
	mount -t tmpfs -o size=$((need * 2 + 256))k none "$tmp/disk"
	for i in "${steps[@]}"; do
		mkdir "$tmp/disk/here"
		cd "$tmp/disk/here"
		dd if=/dev/zero of=../ballast bs=1k count=$((need * 2 + 256 - need * i / 8)) status=none 2>/dev/null || :
		status=0
		(job "$what") >"$tmp/out" 2>"$tmp/err" || status=$?
		((status == 1)) || die "$what on a full disk: status $status: $(cat "$tmp/err")"
		grep -Eq "(results|cells|all)[^ ]*: no space left on device" "$tmp/err" || die "$what on a full disk names no file: $(tail -n 1 "$tmp/err")"
		tail -n 1 "$tmp/err" >>"$tmp/said"
		[[ -z $(find . -name '.*.tmp') ]] || die "$what on a full disk leaves $(find . -name '.*.tmp')"
		partial "$tmp/$what"
		finished >"$tmp/before"
		rm ../ballast
		(job "$what") >out 2>err || die "$what after room was made: $(cat err)"
		finished >"$tmp/after"
		kept
		whole "$tmp/$what"
		cd "$tmp"
		rm -r "$tmp/disk/here"
	done
	umount "$tmp/disk"
	echo "$what: ${#steps[@]} full disks, the same bytes after room was made; the last said: $(tail -n 1 "$tmp/said")"
}

# synced reads what strace -y saw: each rename comes after an fsync of the file, and before
# one of the folder, until which nothing else is renamed by the thread.
synced() {
	awk '
		{ thread = $1 }
		match($0, /fsync\([0-9]+<[^>]*>/) {
			name = substr($0, RSTART, RLENGTH); sub(/^[^<]*</, "", name); sub(/>$/, "", name)
			synced[name] = NR
			if (waits[name] != "") { counted += split(waits[name], parts, "\n") - 1; waits[name] = "" }
		}
		/rename(at|at2)?\(/ {
			n = split($0, quoted, "\""); from = quoted[2]; to = quoted[4]
			for (s in synced) if (length(s) >= length(from) && substr(s, length(s) - length(from) + 1) == from) known = 1
			if (!known) { print "kills: " from " got its name " to " before it was on the disk"; bad = 1 }
			known = 0; renames++
			folder = to; sub(/\/[^\/]*$/, "", folder); if (folder == to) folder = ""
			folder = cwd (folder == "" ? "" : "/" folder)
			waits[folder] = waits[folder] to "\n"
		}
		END {
			for (w in waits) if (waits[w] != "") { print "kills: the folder " w " was not written to the disk after " waits[w]; bad = 1 }
			if (!renames || bad) exit 1
			print renames " files, each on the disk before its name, and its name after that"
		}' cwd="$PWD" "$1"
}

declare -A took
for what in run sweep; do
	mkdir "$tmp/$what"
	cd "$tmp/$what"
	start=$(date +%s%N)
	(job "$what") >out 2>err || die "$what: $(cat err)"
	[[ -n $(finished) ]] || die "$what keeps no cells"
	took[$what]=$((($(date +%s%N) - start) / 1000000))
	cd "$tmp"
done
killed run $(((kills + 1) / 2))
killed sweep $((kills / 2))

ns=(unshare -m)
[[ $(id -u) == 0 ]] || ns=(unshare -rm)
mkdir "$tmp/disk"
if "${ns[@]}" mount -t tmpfs none "$tmp/disk" 2>/dev/null; then
	export tmp kills
	export -f full job finished partial kept whole die
	for what in run sweep; do "${ns[@]}" bash -euo pipefail -c "full $what"; done
else
	echo "full disk: skipped, no tmpfs can be mounted here"
fi

if strace -o /dev/null true 2>/dev/null; then
	mkdir "$tmp/traced"
	cd "$tmp/traced"
	(export -f job && strace -f -y -qq -e trace=fsync,rename,renameat,renameat2 -o "$tmp/trace" bash -c 'job sweep') >out 2>err || die "under strace: $(cat err)"
	synced "$tmp/trace" || die "not synced"
	cd "$tmp"
else
	echo "order of writes: skipped, there is no strace that may trace"
fi
