package local

import (
	"path/filepath"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/trust"
	"github.com/pfl-forge/pfl-forge/proof"
)

// Keys returns the folder of the user's signing key, which all their repositories
// share and none contains; empty if the environment names no home. It is made by
// the first run.
func Keys(getenv func(string) string) proof.Folder {
	home := trust.StateHome(getenv)
	if home == "" {
		return ""
	}
	return proof.Folder(filepath.Join(home, "pfl-forge", "keys"))
}
