package harness

import (
	"cmp"
	"runtime/debug"
)

// programVersion is the version of this module in the running program.
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	version = cmp.Or(version, "(devel)")
	if version == "(devel)" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				version += " " + s.Value
			}
		}
	}
	return version
}
