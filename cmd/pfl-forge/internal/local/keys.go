package local

import (
	"log/slog"
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

// prepared returns the folder with a key in it. Where none can be made, as in a home
// that is read-only, nothing is signed: a run needs no key. One that is there and
// cannot be used is an error, because its person may rely on it.
func prepared(keys proof.Folder, log *slog.Logger) (proof.Folder, error) {
	if keys == "" {
		return "", nil
	}
	err := keys.Prepare()
	if err != nil && !keys.HasKey() {
		log.Warn("merges are not signed", "error", err)
		return "", nil
	}
	return keys, err
}
