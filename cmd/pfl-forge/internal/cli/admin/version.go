package admin

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
)

// versionDoc describes the running binary, as programs read it. Version is that of the module,
// devel for one that was built from a checkout. Commit is a whole object name.
type versionDoc struct {
	Version  string `json:"version"          yaml:"version"`
	Commit   string `json:"commit,omitempty" yaml:"commit,omitempty"`
	Modified bool   `json:"modified"         yaml:"modified"` // built from a tree with uncommitted changes
	Go       string `json:"go"               yaml:"go"`
	Platform string `json:"platform"         yaml:"platform"`
}

// VersionCommand returns the command version. The first word of its line is the name of the
// program, the second the version, for scripts that cut it.
func VersionCommand(a *kit.App) *cobra.Command {
	var format render.Format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Args:  kit.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := version()
			if format.Data() {
				return format.Write(a.Out, v)
			}
			line := "pfl-forge " + v.Version
			if v.Commit != "" {
				line += " (" + render.ShortCommit(v.Commit) + ")"
			}
			fmt.Fprintf(a.Out, "%s, %s, %s\n", line, v.Go, v.Platform)
			return nil
		},
	}
	kit.OutputFlag(cmd, &format)
	return cmd
}

// version returns the build information of the running binary. It reads what
// the go command has put into the binary, so no build needs flags for it. Where
// nothing is there, the version is devel and the commit empty.
func version() versionDoc {
	v := versionDoc{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
