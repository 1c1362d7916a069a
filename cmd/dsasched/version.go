package main

import (
	"bytes"
	"errors"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/formulation/highs"
)

type versionJSON struct {
	Module   string  `json:"module"`
	Version  string  `json:"version"`
	Revision string  `json:"revision,omitempty"`
	Modified bool    `json:"modified"` // since that revision
	Go       string  `json:"go"`
	Platform string  `json:"platform"`
	Cgo      bool    `json:"cgo"`
	HiGHS    *string `json:"highs"` // null: not in this build
	Note     string  `json:"note,omitempty"`
}

func newVersion() *cobra.Command {
	cmd := command("version")
	cmd.Args = noArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := versions()
		return emit(cmd, v, func(b *bytes.Buffer) {
			version := v.Version
			if v.Revision != "" {
				version += " (revision " + v.Revision
				if v.Modified {
					version += ", modified"
				}
				version += ")"
			}
			row(b, "dsasched", "%s", version)
			cgo := "with cgo"
			if !v.Cgo {
				cgo = "without cgo"
			}
			row(b, "Go", "%s %s, %s", v.Go, v.Platform, cgo)
			if v.HiGHS != nil {
				row(b, "HiGHS", "%s", *v.HiGHS)
			} else {
				row(b, "HiGHS", "%s", v.Note)
			}
		})
	}
	return cmd
}

// release is the version of a released program, which scripts/release.sh sets; "": that of the module.
var release string

func versions() versionJSON {
	v := versionJSON{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Module = info.Main.Path
		if info.Main.Version != "" {
			v.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "CGO_ENABLED":
				v.Cgo = s.Value == "1"
			case "vcs.revision":
				v.Revision = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	if release != "" {
		v.Version = release
	}
	if _, err := highs.New(); errors.Is(err, highs.ErrUnavailable) {
		v.Note = highs.ErrUnavailable.Error()
	} else if err != nil {
		v.Note = err.Error()
	} else {
		version := highs.Version()
		v.HiGHS = &version
	}
	return v
}
