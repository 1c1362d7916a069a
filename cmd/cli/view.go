package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments"
	"github.com/dsasched/dsasched/plots/recording"
	"github.com/dsasched/dsasched/scheduler"
)

// viewJSON is the answer of `dsasched view`.
type viewJSON struct {
	File      string       `json:"file"`
	Bytes     int          `json:"file_bytes"`
	Schedules []viewedJSON `json:"schedules"`
}

type viewedJSON struct {
	Schedule string  `json:"schedule"` // file
	Model    string  `json:"model"`
	Hardware string  `json:"hardware"`
	Variant  string  `json:"variant"`
	Latency  float64 `json:"latency_s"`
}

func newView() *cobra.Command {
	cmd := command("view")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 2 {
			return usagef("takes at most two schedules, found %d: %s", len(args), quoted(args))
		}
		return oneArg("SCHEDULE.json", scheduleHint)(cmd, args[:min(1, len(args))])
	}
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion,
		cobra.ShellCompDirective) {
		if len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return []cobra.Completion{"json"}, cobra.ShellCompDirectiveFilterFileExt
	}
	accelerator := addScheduleHardware(cmd)
	out := addFile(cmd, "o output", "`file` to write; '-': the standard output (default SCHEDULE.html)")
	out.stdout = true
	show := cmd.Flags().Bool("open", false, "open the page in a browser")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *show && out.name == stdoutName {
			return usagef("--open and -o - exclude each other: a browser opens a file")
		}
		var list []recording.Shown
		a := viewJSON{File: out.name}
		if a.File == "" {
			a.File = strings.TrimSuffix(args[0], filepath.Ext(args[0])) + ".html"
		}
		if a.File == args[0] {
			return usagef("%s is the file that is read: name another with -o", a.File)
		}
		for _, name := range args {
			x := try(shownFile(cmd, name, *accelerator))
			list = append(list, x)
			a.Schedules = append(a.Schedules, viewedJSON{name, x.Result.Source, x.Result.Machine.Name, x.Result.Recipe.Name,
				x.Result.LatencySeconds()})
		}
		html := try(recording.Page(list))
		if out.name == stdoutName {
			try(cmd.OutOrStdout().Write(html))
			return nil
		}
		check(replaceFile(a.File, html))
		a.Bytes = len(html)
		err := emit(cmd, a, func(b *bytes.Buffer) {
			row(b, "page", "%s, %.2f MB", printable(a.File), float64(a.Bytes)/1e6)
			for _, s := range a.Schedules {
				row(b, "schedule", "%s: %s on %s, variant %s, %s", printable(s.Schedule), printable(s.Model), s.Hardware,
					s.Variant, duration(s.Latency))
			}
		})
		if err == nil && *show {
			err = openPage(a.File)
		}
		return err
	}
	return cmd
}

// shownFile simulates the schedule of a file for a page.
func shownFile(cmd *cobra.Command, name, accelerator string) (recording.Shown, error) {
	origin, r, err := restoreAloud(cmd, name, accelerator)
	return recording.Shown{Result: r, Options: scheduler.Options{InPlace: origin.InPlace}, File: filepath.Base(name)}, err
}

// openPage starts a browser and does not wait for it.
func openPage(file string) error {
	program := cmp.Or(os.Getenv("BROWSER"), map[string]string{"darwin": "open"}[runtime.GOOS], "xdg-open")
	path, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	browser := exec.Command(program, path)
	if err := browser.Start(); err != nil {
		return fmt.Errorf("--open: no browser starts (%w): open %s, or name a browser in BROWSER", err, file)
	}
	return browser.Process.Release()
}

// reportJSON is the answer of `dsasched report`.
type reportJSON struct {
	File  string `json:"file"`
	Bytes int    `json:"file_bytes"`
	*experiments.Contents
}

func newReport() *cobra.Command {
	cmd := command("report")
	cmd.ValidArgsFunction = completeOne(nil, cobra.ShellCompDirectiveFilterDirs)
	cmd.Args = atMostOneArg("folder of results")
	out := addFile(cmd, "o output", "`file` to write; '-': the standard output (default RESULTS/report.html)")
	out.stdout = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir := "results"
		if len(args) > 0 {
			dir = args[0]
		}
		if dir == "" {
			return usagef("the folder of results is empty, expected a name")
		}
		file := cmp.Or(out.name, filepath.Join(dir, "report.html"))
		html, contents := try2(experiments.Page(dir))
		if file == stdoutName {
			if _, err := cmd.OutOrStdout().Write(html); err != nil {
				return fmt.Errorf("the page can't be written: %w", err)
			}
			return nil
		}
		check(replaceFile(file, html))
		lines, figures := 0, 0
		var names []string
		for _, e := range contents.Experiments {
			lines += e.Lines
			figures += len(e.Figures)
			names = append(names, printable(e.Name))
		}
		answer := reportJSON{file, len(html), contents}
		return emit(cmd, answer, func(b *bytes.Buffer) {
			row(b, "page", "%s, %.2f MB", printable(file), float64(len(html))/1e6)
			rowOf(b, "experiments", names)
			row(b, "compared", "%d published numbers and statements", lines)
			row(b, "figures", "%d", figures)
			if !contents.Viewer {
				row(b, "viewer", "none: 'dsasched run timeline' records schedules for it")
			}
		})
	}
	return cmd
}

// solverVersion names the solver for the record, or is empty.
func solverVersion() string {
	if v := versions(); v.HiGHS != nil {
		return "HiGHS " + *v.HiGHS
	}
	return ""
}
