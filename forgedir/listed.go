package forgedir

import (
	"github.com/pfl-forge/pfl-forge/forgedir/disk"
	"github.com/pfl-forge/pfl-forge/forgedir/layout"
)

// Listed returns the list of intents that KeepListed has kept; nil if there is
// none, or not all of it. It may be old, and of another store.
func Listed(repository string) []byte {
	folder, err := disk.Look(repository)
	if err != nil {
		return nil
	}
	list, _ := folder.ReadCache(layout.Listed)
	_ = folder.Close() // nothing was written
	return list
}

// KeepListed keeps a list of the repository's intents, so that the next command need
// not make it of thousands of journals. Where it cannot be written it is made again.
func KeepListed(repository string, list []byte) {
	folder, err := disk.Look(repository)
	if err != nil {
		return
	}
	if next, err := folder.BeginCache(layout.Listed); err == nil {
		_ = next.Put(list)
	}
	_ = folder.Close()
}
