package machine

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"runtime/debug"
	"sync"

	"github.com/pfl-forge/pfl-forge/services/runner/flow"
)

// Rules names the rules of this program. Two programs with the same name decide
// the same, so a snapshot of one can be read by the other. The name is not
// counted up by hand: it is derived from the source of the rules, and from the
// commit that the program was built from, for the packages that the rules use.
//
// A program that was built from a changed work tree, of which only what the rules use has changed
// and not the rules, has the name of the one before. That is for whoever works on pfl-forge to
// know: the snapshots of such a server are removed by removing the stream OBJ_FORGE_SNAPSHOTS.
var Rules = sync.OnceValue(func() string {
	sum := sha256.New()
	_ = fs.WalkDir(flow.Sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		source, err := flow.Sources.ReadFile(path)
		sum.Write([]byte(path + "\x00"))
		sum.Write(source)
		return err
	})
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, s := range built.Settings {
			if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
				sum.Write([]byte("\x00" + s.Value))
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
})
