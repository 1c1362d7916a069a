#!/usr/bin/env bash
#
# A Slurm of one machine on the loopback interface, for the tests of array jobs.

set -euo pipefail

case ${1:-} in
-h | --help | '')
	cat <<-'END'
		Usage: scripts/slurm.sh [-h | --help] install | start DIR | stop DIR

		install installs Debian's slurmctld, slurmd, slurm-client and munge, if they are
		not there. start starts munged, slurmctld and slurmd, all of whose files are in DIR,
		as the present user, and prints the place of the configuration, for SLURM_CONF.
		stop ends what start has started. Where it can't be had or started, it says why and
		fails.
	END
	exit 0
	;;
esac
say() { printf 'slurm: %s\n' "$*" >&2; }
die() {
	say "$*"
	exit 1
}
have() { PATH=$PATH:/usr/sbin command -v "$1" >/dev/null 2>&1; }
PATH=$PATH:/usr/sbin

lacking() {
	for name in slurmctld slurmd sbatch munged mungekey; do
		have "$name" || { printf %s "$name" && return; }
	done
}

# ended waits until the process of a pid file is gone; after five seconds it is killed.
ended() {
	local pid
	pid=$(cat "$1" 2>/dev/null) || return 0
	kill "$pid" 2>/dev/null || return 0
	for _ in {1..50}; do
		kill -0 "$pid" 2>/dev/null || return 0
		sleep 0.1
	done
	kill -9 "$pid" 2>/dev/null || :
}

case $1 in
install)
	[[ -n $(lacking) ]] || exit 0
	have apt-get || die "there is no $(lacking) and no apt to install it with"
	as_root=()
	if [[ $(id -u) != 0 ]]; then
		if ! have sudo || ! { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
			die "there is no $(lacking); please install Debian's package slurm-wlm (it takes root)"
		fi
		as_root=(sudo)
	fi
	say "installing Slurm"
	apt_get() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Lock::Timeout=300 "$@" </dev/null >/dev/null 2>&1; }
	apt_get update || say "apt-get update failed, going on with the lists there are"
	apt_get install --no-install-recommends slurmctld slurmd slurm-client munge || die "Debian's packages slurmctld, slurmd, slurm-client and munge can't be installed"
	[[ -z $(lacking) ]] || die "the packages have brought no $(lacking)"
	;;
start)
	dir=${2:?slurm: DIR is missing}
	[[ -z $(lacking) ]] || die "there is no $(lacking): scripts/slurm.sh install"
	mkdir -p "$dir"/{state,spool}
	dir=$(cd "$dir" && pwd)
	chmod 755 "$dir"
	trap '[[ $? == 0 ]] || "$0" stop "$dir"' EXIT
	[[ ${#dir} -lt 80 ]] || die "the name of $dir is too long for a socket"
	user=$(id -un) host=$(hostname -s)
	# Ports that nothing listens on: the first two of a block by process number.
	port=$((20000 + $$ % 20000))
	(umask 077 && rm -f "$dir/munge.key" && mungekey --create --keyfile="$dir/munge.key")
	munged --force --socket="$dir/munge.socket" --key-file="$dir/munge.key" --pid-file="$dir/munged.pid" \
		--log-file="$dir/munged.log" --seed-file="$dir/munge.seed" || die "munged does not start: $(tail -n 1 "$dir/munged.log")"
	cat >"$dir/slurm.conf" <<-END
		ClusterName=loopback
		SlurmctldHost=$host(127.0.0.1)
		SlurmctldPort=$port
		SlurmdPort=$((port + 1))
		AuthType=auth/munge
		AuthInfo=socket=$dir/munge.socket
		CredType=cred/munge
		SlurmUser=$user
		SlurmdUser=$user
		StateSaveLocation=$dir/state
		SlurmdSpoolDir=$dir/spool
		SlurmctldPidFile=$dir/slurmctld.pid
		SlurmdPidFile=$dir/slurmd.pid
		SlurmctldLogFile=$dir/slurmctld.log
		SlurmdLogFile=$dir/slurmd.log
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		JobAcctGatherType=jobacct_gather/none
		SelectType=select/cons_tres
		SelectTypeParameters=CR_CPU
		MpiDefault=none
		ReturnToService=2
		InactiveLimit=0
		MinJobAge=2
		SchedulerParameters=sched_min_interval=0,bf_interval=1
		NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
		PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
	END
	# Nothing here needs control groups; since 23.02 they can be left out altogether.
	version=$(slurmd -V | tr -dc '0-9.')
	cgroup=disabled
	[[ ${version%%.*} -ge 23 ]] || cgroup=cgroup/v1
	printf 'CgroupPlugin=%s\n' "$cgroup" >"$dir/cgroup.conf"
	export SLURM_CONF=$dir/slurm.conf
	slurmctld -c >>"$dir/start.log" 2>&1 || die "slurmctld does not start: $(tail -n 1 "$dir/start.log")"
	slurmd -c >>"$dir/start.log" 2>&1 || die "slurmd does not start: $(tail -n 1 "$dir/start.log")"
	for _ in {1..100}; do
		if [[ $(sinfo -h -o %t 2>/dev/null) == idle ]]; then
			echo "$SLURM_CONF"
			exit 0
		fi
		sleep 0.1
	done
	say "no node is ready: $(sinfo -h -o '%t %E' 2>&1); $(tail -n 2 "$dir/slurmd.log" 2>/dev/null)"
	exit 1
	;;
stop)
	dir=${2:?slurm: DIR is missing}
	for name in slurmd slurmctld munged; do
		ended "$dir/$name.pid"
	done
	;;
*)
	die "found $1, expected install, start or stop"
	;;
esac
