package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pfl-forge/pfl-forge/agent/sandbox"
)

// BenchmarkStart measures a command that does nothing.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	home, err := PrivateHome(dir)
	if err != nil {
		b.Fatal(err)
	}
	system := sandbox.Spec{Mounts: sandbox.System(os.Getenv("PATH"), filepath.Dir(home))}
	files := system.With(sandbox.Path(dir, sandbox.Writable)...)
	network := files.With()
	network.Network = sandbox.NetworkNone
	for name, spec := range map[string]*sandbox.Spec{"bare": nil, "sandbox": &files, "sandbox without network": &network} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r, err := Run(b.Context(), Command{Path: "/bin/true", Dir: dir, Env: Environment(home), Sandbox: spec})
				if err != nil || r.ExitCode != 0 {
					b.Fatal(r.ExitCode, err)
				}
			}
		})
	}
}
