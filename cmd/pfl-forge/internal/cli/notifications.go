package cli

import (
	"github.com/pfl-forge/pfl-forge/notify"
)

// notifications returns whom the user wants to be told of what needs people.
func (a *app) notifications() (*notify.Config, error) {
	path := notify.UserFile(a.getenv)
	if path == "" {
		return &notify.Config{}, nil
	}
	return notify.Load(path)
}
