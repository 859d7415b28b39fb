package flow

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"runtime/debug"
	"sync"
)

// sources are the rules as they were compiled.
//
//go:embed *.go */*.go
var sources embed.FS

// Rules names the rules of this program: those of another program with the same name decide the same. A snapshot of
// others is not gone on with. Nobody has to remember to count a version up: the name follows from the source of
// the rules, and from the commit that the program was built from, for what the rules use from elsewhere.
var Rules = sync.OnceValue(func() string {
	sum := sha256.New()
	_ = fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var source []byte
			source, err = sources.ReadFile(path)
			sum.Write([]byte(path + "\x00"))
			sum.Write(source)
		}
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
