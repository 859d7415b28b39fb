package service

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version describes the running binary in one line: version, commit, toolchain.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown " + runtime.Version()
	}
	version, commit, dirty := info.Main.Version, "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = " " + s.Value[:min(12, len(s.Value))]
		case "vcs.modified":
			if s.Value == "true" {
				dirty = " (modified)"
			}
		}
	}
	if version == "" {
		version = "(devel)"
	}
	return fmt.Sprintf("%s%s%s %s", version, commit, dirty, info.GoVersion)
}
