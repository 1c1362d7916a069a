#!/usr/bin/env bash
#
# Installs the LaTeX that the tests compile tables with, where that is possible: with
# apt and as root, or with sudo that asks nothing. Where it is not, it says so and
# succeeds: the tables are then not compiled.

set -euo pipefail

case ${1:-} in
'') ;;
-h | --help)
	cat <<-'END'
		Usage: scripts/latex.sh [-h | --help]

		Installs pdflatex and the package booktabs with apt if they are missing and
		that is possible.
	END
	exit 0
	;;
*)
	echo "latex: found $1, expected no argument" >&2
	exit 2
	;;
esac

ready() { command -v pdflatex >/dev/null 2>&1 && kpsewhich booktabs.sty >/dev/null 2>&1; }
if ready; then exit 0; fi

as_root=()
if [[ $(id -u) != 0 ]]; then as_root=(sudo -n); fi
install() {
	command -v apt-get >/dev/null 2>&1 &&
		"${as_root[@]}" apt-get -qq update &&
		"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -qq -o DPkg::Lock::Timeout=300 install --no-install-recommends texlive-latex-base texlive-latex-recommended
}
if install >/dev/null 2>&1 && ready; then
	echo "latex: installed pdflatex"
else
	echo "latex: pdflatex can't be installed here; the tables are not compiled by the tests"
fi
