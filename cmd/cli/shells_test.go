package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// completions are programs for the shells that read a script and print what it
// offers for the words of a command line, one a line. What a shell sets up for a
// person who types is put in place by hand; the script is as it is.
var completions = map[string]string{
	"bash": `source "$1"; shift
_init_completion() { words=("${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=${words[cword]}; prev=${words[cword-1]}; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9
complete -p dsasched >/dev/null || exit 1
__start_dsasched
printf '%s\n' "${COMPREPLY[@]}"`,
	"zsh": `autoload -Uz compinit && compinit -u -D && source "$1" || exit 1; shift
[[ $_comps[dsasched] == _dsasched ]] || { print "not registered"; exit 1 }
_describe() { print -l -- "${(@M)completions:#${words[CURRENT]}*}" } # which is the one to filter
words=("$@"); CURRENT=$#
_dsasched`,
	"fish": `source $argv[1]; complete --do-complete (string join ' ' -- $argv[2..])`,
}

// The shells themselves read the scripts and offer what the program says.
func TestCompletionInShells(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	program := "#!/bin/sh\n" + asMain + "=1 exec '" + self + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "dsasched"), []byte(program), 0o777); err != nil {
		t.Fatal(err)
	}
	for shell, complete := range completions {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("skipped: %s is not on this machine", shell)
			}
			script := filepath.Join(t.TempDir(), "script")
			if err := os.WriteFile(script, []byte(answer(t, "completion", shell)), 0o666); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(path, "-n", script).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, c := range []struct {
				words []string
				want  []string // each begins a line
				not   string
			}{
				{[]string{"dsasched", "sche"}, []string{"schedule"}, "sweep"},
				{[]string{"dsasched", "schedule", "resnet5"}, []string{"resnet50"}, "bert-128"},
				{[]string{"dsasched", "schedule", "--order", ""}, []string{"bfs", "dfs", "search"}, "greedy"},
				{[]string{"dsasched", "sweep", "resnet50", "--set", "batc"}, []string{"batch="}, "variant="},
			} {
				var args []string
				switch shell {
				case "bash":
					args = append([]string{"--norc", "-c", complete, "bash", script}, c.words...)
				case "zsh":
					args = append([]string{"-f", "-c", complete, "zsh", script}, c.words...)
				case "fish":
					args = append([]string{"--no-config", "-c", complete, script}, c.words...)
				}
				cmd := exec.Command(path, args...)
				cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+t.TempDir(), "TERM=dumb")
				out, err := cmd.Output()
				if err != nil {
					t.Errorf("%q: %v: %s", c.words, err, out)
					continue
				}
				lines := "\n" + strings.ReplaceAll(string(out), `\`, "")
				for _, w := range c.want {
					if !strings.Contains(lines, "\n"+w) {
						t.Errorf("%q: no %s is offered: %s", c.words, w, out)
					}
				}
				if strings.Contains(lines, "\n"+c.not) {
					t.Errorf("%q: %s is offered: %s", c.words, c.not, out)
				}
			}
		})
	}
}
