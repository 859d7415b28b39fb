package cli

import (
	"fmt"
	"log/slog"

	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/local"
)

// runLog returns the logger of a run: a file, or with --verbose standard error.
func (a *app) runLog(repo *local.Repository) (*slog.Logger, func(), error) {
	if a.verbose {
		return a.log(), func() {}, nil
	}
	file, err := repo.OpenLog()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open the log: %w", err)
	}
	return slog.New(slog.NewTextHandler(file, nil)), func() { _ = file.Close() }, nil
}
